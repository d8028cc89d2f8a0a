/* How good is an answer: cores that are doubled or shared, groups that ranks cross though they need
 * not, threads near GPUs. */
#include "tests/mapper/quality.h"

#include <string.h>

#include "profile/query.h"

/* -- machines -- */

static void add_level(struct machine *m, const struct profile_set *groups, size_t count,
                      bool memory)
{
    if (count < 2 || m->level_count == MOST_LEVELS) {
        return;
    }
    struct level *level = &m->level[m->level_count];
    bool cores = false;
    *level = (struct level){.groups = groups, .count = count, .memory = memory};
    memset(level->of, 0xff, sizeof level->of);
    for (size_t g = 0; g < count; g++) {
        for (size_t i = 0; i < groups[g].count; i++) {
            level->of[groups[g].ids[i]] = (uint32_t)g;
            cores |= m->core[groups[g].ids[i]] != m->core[groups[g].ids[0]];
        }
    }
    m->level_count += cores;
}

void quality_levels(struct machine *m)
{
    const struct profile_class *of = &m->profile->classes[0];
    static struct profile_set numa[MOST_PUS];
    m->level_count = m->core_count = 0;
    m->smt = MOST_PUS;
    memset(m->core, 0xff, sizeof m->core);
    m->pu_count = (uint32_t)of->pus.count;
    for (size_t i = 0; i < of->pus.count; i++) {
        const struct profile_set *core = profile_group_of(&of->cores, of->pus.ids[i]);
        uint32_t size = core ? (uint32_t)core->count : 1;
        if (!core || core->ids[0] == of->pus.ids[i]) {
            m->core_count++;
            m->smt = size < m->smt ? size : m->smt;
        }
        m->core[of->pus.ids[i]] = core ? core->ids[0] : of->pus.ids[i];
    }
    size_t nodes = 0;
    for (size_t n = 0; n < of->numa_count; n++) {
        numa[nodes] = of->numa[n].pus;
        nodes += of->numa[n].pus.count > 0;
    }
    const size_t domains = of->memory.level_count ? of->memory.levels[0].collisions.group_count : 0;
    add_level(m, of->packages.groups, of->packages.group_count,
              of->packages.group_count == domains);
    add_level(m, numa, nodes, true);
    for (size_t c = 0; c < of->cache_count; c++) {
        add_level(m, of->caches[c].sharing.groups, of->caches[c].sharing.group_count, true);
    }
}

/* -- an answer -- */

/* Threads in the groups of a level, by rank and in all. */
struct usage {
    uint32_t of[MOST_RANKS][MOST_PUS], all[MOST_PUS];
};

static void count_threads(const struct request *request, const uint32_t *pus,
                          const struct level *level, struct usage *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < request->ranks * request->threads; i++) {
        const uint32_t group = level->of[pus[i]];
        if (group != NONE) {
            out->of[i / request->threads][group]++;
            out->all[group]++;
        }
    }
}

/* Is the rank in two groups of which other ranks use one? */
static bool crosses(const struct usage *usage, const struct level *level, uint32_t rank)
{
    uint32_t groups = 0;
    bool shared = false;
    for (size_t g = 0; g < level->count; g++) {
        groups += usage->of[rank][g] > 0;
        shared |= usage->of[rank][g] && usage->all[g] > usage->of[rank][g];
    }
    return groups > 1 && shared;
}

static bool is_near(const struct map_devices *devices, uint32_t rank, uint32_t pu)
{
    for (size_t i = devices->first[rank]; i < devices->first[rank + 1]; i++) {
        if (profile_set_has(&devices->held[i].device->pus, pu)) {
            return true;
        }
    }
    return false;
}

/* Cores, or PUs, of a set that may be used. */
static uint32_t room_of(const struct machine *m, const struct profile_set *allowed,
                        const struct profile_set *set, bool by_core)
{
    bool seen[MOST_PUS] = {false};
    uint32_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const uint32_t pu = set->ids[i], place = by_core ? m->core[pu] : pu;
        const bool may = profile_set_has(allowed, pu);
        count += may && !seen[place];
        seen[place] |= may;
    }
    return count;
}

uint32_t quality_cores(const struct machine *m, const struct request *request)
{
    return room_of(m, &request->allowed, &request->allowed, true);
}

/* Cores that a rank needs: one for each thread, else its part of them. */
static uint32_t cores_needed(const struct machine *m, const struct request *request)
{
    const uint32_t cores = quality_cores(m, request);
    return request->ranks * request->threads <= cores || request->ranks > cores
               ? request->threads
               : cores / request->ranks;
}

/* The PUs of a group that may be used, in `ids`. */
static struct profile_set allowed_in(const struct profile_set *allowed,
                                     const struct profile_set *group, uint32_t *ids)
{
    struct profile_set in = {ids, 0};
    for (size_t i = 0; i < allowed->count; i++) {
        ids[in.count] = allowed->ids[i];
        in.count += profile_set_has(group, allowed->ids[i]);
    }
    return in;
}

/* Communication priority puts all ranks into the smallest group that has cores for all threads,
 * whatever crosses inside: what it leaves to them. */
static struct request inside(const struct machine *m, const struct request *request)
{
    static uint32_t ids[MOST_PUS];
    struct request all = *request;
    uint32_t least = NONE;
    for (uint32_t l = 0; l < m->level_count && request->priority == MAP_COMMUNICATION; l++) {
        for (size_t g = 0; g < m->level[l].count; g++) {
            const struct profile_set *group = &m->level[l].groups[g];
            const uint32_t cores = room_of(m, &request->allowed, group, true);
            if (cores >= request->ranks * request->threads && cores < least) {
                least = cores;
                all.allowed = allowed_in(&request->allowed, group, ids);
            }
        }
    }
    return all;
}

/* Ranks that each group of the level holds whole, in `room`; all of them. */
static uint32_t count_whole(const struct machine *m, const struct request *request,
                            const struct level *level, uint32_t *room)
{
    const uint32_t need = cores_needed(m, request);
    uint32_t sum = 0;
    for (size_t g = 0; g < level->count; g++) {
        room[g] = room_of(m, &request->allowed, &level->groups[g], true) / need;
        sum += room[g];
    }
    return sum;
}

/* Most threads in a group of the level where each rank is in one group, as evenly as that goes. */
static uint32_t load_of_whole(const struct machine *m, const struct request *request,
                              const struct level *level)
{
    uint32_t room[MOST_PUS], ranks[MOST_PUS] = {0}, most = 0;
    (void)count_whole(m, request, level, room);
    for (uint32_t r = 0; r < request->ranks; r++) {
        size_t best = level->count;
        for (size_t g = 0; g < level->count; g++) {
            best =
                ranks[g] < room[g] && (best == level->count || ranks[g] < ranks[best]) ? g : best;
        }
        most = ++ranks[best] > most ? ranks[best] : most;
    }
    return most * request->threads;
}

/* Would whole ranks leave one less: more threads in one group, or to the rank whose threads'
 * groups have most, on average, a tenth more? */
static bool gains(const struct machine *m, const struct request *request, const uint32_t *pus,
                  const struct level *level)
{
    static struct usage usage;
    const uint32_t whole = load_of_whole(m, request, level);
    uint32_t most = 0, crowd = 0;
    count_threads(request, pus, level, &usage);
    for (uint32_t r = 0; r < request->ranks; r++) {
        uint32_t sum = 0;
        for (size_t g = 0; g < level->count; g++) {
            most = usage.all[g] > most ? usage.all[g] : most;
            sum += usage.of[r][g] * usage.all[g];
        }
        crowd = sum > crowd ? sum : crowd;
    }
    return most < whole || 1.1 * crowd / request->threads < whole;
}

/* The narrowest group that holds all these PUs and is no group of the level; else the machine. */
static const struct profile_set *group_around(const struct machine *m, const uint32_t *pus,
                                              uint32_t count, const struct level *level)
{
    const struct profile_set *best = &m->profile->classes[0].pus;
    for (const struct level *l = m->level; l < m->level + m->level_count; l++) {
        const uint32_t group = l->of[pus[0]];
        bool around = group != NONE && l != level;
        for (uint32_t i = 1; i < count; i++) {
            around &= l->of[pus[i]] == group;
        }
        best = around && l->groups[group].count < best->count ? &l->groups[group] : best;
    }
    return best;
}

static uint32_t groups_of(const struct profile_set *set, const struct level *level)
{
    uint32_t count = 0;
    for (size_t g = 0; g < level->count; g++) {
        count += profile_set_overlaps(&level->groups[g], set);
    }
    return count;
}

/* Beside GPUs: need the rank, which crosses the level, not do so? Whole groups hold all ranks that
 * are around them, and its GPUs are near to one, where it finds room. */
static bool crosses_beside(const struct machine *m, const struct request *request,
                           const uint32_t *pus, const struct map_devices *devices, uint32_t rank,
                           const struct level *level)
{
    const uint32_t threads = request->threads;
    const struct profile_set *around = group_around(m, pus + rank * threads, threads, level);
    uint32_t room = 0, inside = 0, ids[MOST_PUS];
    for (uint32_t r = 0; r < request->ranks; r++) {
        uint32_t in = 0;
        for (uint32_t t = 0; t < threads; t++) {
            in += profile_set_has(around, pus[r * threads + t]);
        }
        if (in && in < threads) {
            return false;
        }
        inside += in > 0;
    }
    for (size_t i = devices->first[rank]; i < devices->first[rank + 1]; i++) {
        const struct profile_set *site = &devices->held[i].device->pus;
        if (groups_of(site, level) > 1 || room_of(m, &request->allowed, site, true) < threads ||
            !profile_set_equal(site, &devices->held[devices->first[rank]].device->pus)) {
            return false;
        }
    }
    const struct profile_set part = allowed_in(&request->allowed, around, ids);
    for (size_t g = 0; g < level->count; g++) {
        room += room_of(m, &part, &level->groups[g], true) / threads;
    }
    return room >= inside;
}

void quality_weigh(const struct machine *m, const struct request *request, const uint32_t *pus,
                   const struct map_devices *devices, struct quality *out)
{
    static struct usage usage;
    uint32_t on_core[MOST_PUS] = {0}, rank_of[MOST_PUS], used = 0, extra = 0;
    memset(out, 0, sizeof *out);
    memset(rank_of, 0xff, sizeof rank_of);
    for (uint32_t i = 0; i < request->ranks * request->threads; i++) {
        uint32_t core = m->core[pus[i]], rank = i / request->threads;
        used += on_core[core] == 0;
        extra += on_core[core]++ > 0;
        out->shared += rank_of[core] != NONE && rank_of[core] != rank;
        rank_of[core] = rank;
        out->near += devices && is_near(devices, rank, pus[i]);
    }
    uint32_t idle = quality_cores(m, request) - used;
    out->doubled = extra < idle ? extra : idle;
    const bool apart = request->ranks * request->threads <= quality_cores(m, request);
    for (uint32_t l = 0; l < m->level_count; l++) {
        const struct level *level = &m->level[l];
        count_threads(request, pus, level, &usage);
        for (uint32_t r = 0; r < request->ranks; r++) {
            const bool crossed = crosses(&usage, level, r);
            out->crossed[l] += crossed;
            out->beside +=
                crossed && devices && apart && crosses_beside(m, request, pus, devices, r, level);
        }
    }
}

uint32_t quality_gpus(const struct machine *m)
{
    const struct profile_class *of = &m->profile->classes[0];
    uint32_t count = 0;
    for (size_t g = 0; g < of->device_count; g++) {
        count += of->devices[g].kind == PROFILE_GPU;
    }
    return count;
}

/* Threads that could be near the GPUs, if every rank stays where its share of them is. */
uint32_t quality_most_near(const struct machine *m, const struct request *request)
{
    const struct profile_class *of = &m->profile->classes[0];
    const bool by_core = request->ranks * request->threads <= quality_cores(m, request);
    uint32_t sum = 0, gpus = quality_gpus(m), widest = 0;
    for (uint32_t n = 0; n < of->numa_count; n++) {
        uint32_t room = room_of(m, &request->allowed, &of->numa[n].pus, true);
        widest = room > widest ? room : widest;
    }
    for (size_t g = 0; g < of->device_count; g++) {
        const struct profile_set *site = &of->devices[g].pus;
        uint32_t here = 0, room = room_of(m, &request->allowed, site, by_core);
        bool first = of->devices[g].kind == PROFILE_GPU;
        for (size_t other = 0; first && other < of->device_count; other++) {
            bool same = of->devices[other].kind == PROFILE_GPU &&
                        profile_set_equal(&of->devices[other].pus, site);
            if (of->devices[other].kind == PROFILE_GPU && !same &&
                profile_set_overlaps(&of->devices[other].pus, site)) {
                return 0;
            }
            here += same;
            first = !(same && other < g);
        }
        if (!first) {
            continue;
        }
        if (request->ranks % gpus || !room) {
            return 0; /* which rank has which GPU is a choice of its own */
        }
        uint32_t ranks = here * (request->ranks / gpus), threads = request->threads;
        /* one that finds no room has a node of its own, or is wider than any */
        uint32_t fit = threads <= room ? room / threads : threads > widest;
        ranks = ranks < fit ? ranks : fit;
        sum += ranks * threads < room ? ranks * threads : room;
    }
    return sum;
}

bool quality_must_cross(const struct machine *m, const struct request *request, const uint32_t *pus)
{
    const struct request limited = inside(m, request);
    const uint32_t cores = quality_cores(m, request);
    /* cores that do not divide are parted where they end */
    bool forced = request->ranks * request->threads > cores && cores % request->ranks;
    for (uint32_t l = 0; l < m->level_count; l++) {
        uint32_t room[MOST_PUS];
        const struct level *level = &m->level[l];
        forced |=
            count_whole(m, &limited, level, room) < limited.ranks ||
            (level->memory && request->priority == MAP_MEMORY && gains(m, request, pus, level));
    }
    return forced;
}
