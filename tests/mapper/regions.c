/* Are regions as good as the machine allows? Draws machines, and of each ranks x threads by both
 * priorities, on all PUs and on some, with GPUs and without, and counts requests with
 *
 *   a PU twice, though there are enough; a core with two threads while another one is idle;
 *   a core of two ranks, though the cores would do for a whole number each;
 *   a rank in two groups (packages, NUMA nodes, caches) of which it shares one, though whole groups
 *   would hold every rank and none would get less of a memory domain or of a cache;
 *   fewer threads near GPUs than there could be with as many crossings;
 *   another quality than the request in the mirror (drawn machines are their own mirror images).
 *
 *     mapper-regions [MACHINES [FIRST-SEED]]
 *     mapper-regions FILE.xml ...                    these topologies, with the GPUs that they have
 *
 * One line for each fault with the first request that has it, and why a few may; exit status 1
 * where there are more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/devices/devices.h"
#include "mapper/map.h"
#include "mapper/weights/weights.h"
#include "profile/query.h"

#define MOST_PUS 512
#define MOST_LEVELS 12
#define MOST_GPUS 8
#define MOST_RANKS 40
#define NONE UINT32_MAX

enum fault { TWICE, DOUBLED, SHARED, CROSSED, BESIDE, FAR, SKEWED, FAULTS };

/* `permitted`: requests of a thousand that may have it, and why. */
static const struct {
    const char *name;
    uint32_t permitted;
    const char *why;
} faults[FAULTS] = {
    [TWICE] = {"a PU twice", 0, ""},
    [DOUBLED] = {"a core doubled, one idle", 0, ""},
    [SHARED] = {"a core of two ranks", 0, ""},
    [CROSSED] = {"a rank that crosses", 2,
                 "by memory, on parts of unequal groups: the ranks are laid out as workers are"},
    [BESIDE] = {"one, beside GPUs", 1,
                "ranks of GPUs that the cpuset leaves out are placed one by one"},
    [FAR] =
        {"threads away from GPUs", 2,
         "ranks wider than a NUMA node take those of ranks behind them where a package is full"},
    [SKEWED] = {"another mirror image", 4, "on parts of unequal groups, the same"}};

struct machine {
    char name[128];
    struct servet_profile *profile;
    uint32_t pu_count, core_count, smt; /* smt: least PUs of a core */
    uint32_t core[MOST_PUS];            /* by OS index; NONE: no PU */
    bool drawn;
    bool has_gpus;                            /* of its own */
    struct profile_device gpus[2][MOST_GPUS]; /* drawn ones, and their mirror image */
    uint32_t gpu_count;
    uint32_t level_count;
    struct level {
        const struct profile_set *groups;
        size_t count;
        bool memory;           /* domains of the narrowest level, or caches */
        uint32_t of[MOST_PUS]; /* by OS index: its group; NONE */
    } level[MOST_LEVELS];
};

struct request {
    uint32_t ranks, threads;
    enum map_priority priority;
    struct profile_set allowed;
    bool gpus;
};

/* The worth of an answer: equal for mirror images. */
struct quality {
    uint32_t doubled, shared, near, crossed[MOST_LEVELS], beside;
};

static struct {
    size_t requests, with[FAULTS];
    char first[FAULTS][320];
} found;

static uint64_t state;

static uint32_t below(uint32_t most)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545f4914f6cdd1dull) >> 33) % most;
}

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

static void find_levels(struct machine *m)
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

static uint32_t cores_of(const struct machine *m, const struct request *request)
{
    return room_of(m, &request->allowed, &request->allowed, true);
}

/* Cores that a rank needs: one for each thread, else its part of them. */
static uint32_t cores_needed(const struct machine *m, const struct request *request)
{
    const uint32_t cores = cores_of(m, request);
    return request->ranks * request->threads <= cores || request->ranks > cores
               ? request->threads
               : cores / request->ranks;
}

/* Of all PUs those that may be used, in `ids`. */
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

static void weigh(const struct machine *m, const struct request *request, const uint32_t *pus,
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
    uint32_t idle = cores_of(m, request) - used;
    out->doubled = extra < idle ? extra : idle;
    const bool apart = request->ranks * request->threads <= cores_of(m, request);
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

static uint32_t count_gpus(const struct machine *m)
{
    const struct profile_class *of = &m->profile->classes[0];
    uint32_t count = 0;
    for (size_t g = 0; g < of->device_count; g++) {
        count += of->devices[g].kind == PROFILE_GPU;
    }
    return count;
}

/* Threads that could be near the GPUs, if every rank stays where its share of them is. */
static uint32_t most_near(const struct machine *m, const struct request *request)
{
    const struct profile_class *of = &m->profile->classes[0];
    const bool by_core = request->ranks * request->threads <= cores_of(m, request);
    uint32_t sum = 0, gpus = count_gpus(m), widest = 0;
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

/* `of` is printed where it is not 0. */
static void count_fault(enum fault fault, const struct machine *m, const struct request *request,
                        uint32_t figure, uint32_t of)
{
    char *text = found.first[fault];
    const size_t size = sizeof found.first[fault];
    if (found.with[fault]++) {
        return;
    }
    char *set = profile_set_text(&request->allowed), gpus[64] = "";
    if (request->gpus) {
        snprintf(gpus, sizeof gpus, " --gpus");
    }
    for (size_t g = 0; request->gpus && g < m->gpu_count; g++) {
        snprintf(gpus + strlen(gpus), sizeof gpus - strlen(gpus), "%s%u", g ? "," : " at ",
                 m->gpus[0][g].numa_node);
    }
    const bool limited = request->allowed.count < m->pu_count;
    int used =
        snprintf(text, size, "\"%s\" -r %u -t %u%s%s%s%s: %u", m->name, request->ranks,
                 request->threads, request->priority == MAP_COMMUNICATION ? " --comm-prior" : "",
                 limited ? " --cpuset " : "", limited ? set : "", gpus, figure);
    if (of) {
        snprintf(text + used, size - (size_t)used, " of %u", of);
    }
    free(set);
}

/* With the drawn GPUs or their mirror image, where the machine has none of its own. */
static void ask(struct machine *m, bool mirror, const struct request *request, uint32_t *pus,
                struct quality *out)
{
    struct map_devices devices;
    struct servet_error error;
    struct profile_class *of = &m->profile->classes[0];
    const struct map_device_request all = {.ranks = {.priority = request->priority,
                                                     .ranks = request->ranks,
                                                     .threads_each = request->threads,
                                                     .allowed = &request->allowed},
                                           .gpus = request->gpus ? MAP_ALL_GPUS : 0};
    if (!m->has_gpus) {
        of->devices = m->gpu_count ? m->gpus[mirror] : NULL;
        of->device_count = m->gpu_count;
    }
    if (map_devices(m->profile, &all, pus, &devices, &error) < 0) {
        fprintf(stderr, "regions: %s: %s\n", m->name, error.text);
        exit(1);
    }
    weigh(m, request, pus, request->gpus ? &devices : NULL, out);
    map_devices_free(&devices);
}

static void judge(const struct machine *m, const struct request *request, const uint32_t *pus,
                  const struct quality *q)
{
    const uint32_t threads = request->ranks * request->threads;
    const uint32_t cores = cores_of(m, request);
    uint32_t twice = 0;
    bool seen[MOST_PUS] = {false};
    /* cores that do not divide are parted where they end */
    bool forced = threads > cores && cores % request->ranks;
    const struct request limited = inside(m, request);
    for (uint32_t i = 0; i < threads; i++) {
        twice += seen[pus[i]];
        seen[pus[i]] = true;
    }
    if (twice && threads <= request->allowed.count) {
        count_fault(TWICE, m, request, twice, 0);
    }
    if (q->doubled) {
        count_fault(DOUBLED, m, request, q->doubled, 0);
    }
    uint32_t whole = (request->threads + m->smt - 1) / m->smt;
    if (q->shared && threads <= request->allowed.count && request->ranks * whole <= cores) {
        count_fault(SHARED, m, request, q->shared, 0);
    }
    /* the narrowest level that whole groups cannot hold, or that gains by crossing */
    for (uint32_t l = 0; l < m->level_count; l++) {
        uint32_t room[MOST_PUS];
        const struct level *level = &m->level[l];
        forced |=
            count_whole(m, &limited, level, room) < limited.ranks ||
            (level->memory && request->priority == MAP_MEMORY && gains(m, request, pus, level));
    }
    for (uint32_t l = 0; l < m->level_count && !forced && !request->gpus; l++) {
        if (q->crossed[l] && threads <= request->allowed.count) {
            count_fault(CROSSED, m, request, q->crossed[l], request->ranks);
            break;
        }
    }
    if (q->beside) {
        count_fault(BESIDE, m, request, q->beside, request->ranks);
    }
    if (request->gpus && threads <= cores && q->near < most_near(m, request)) {
        count_fault(FAR, m, request, q->near, most_near(m, request));
    }
}

/* The same of the mirror image: the last PU becomes the first. Where threads have no core of their
 * own, or GPUs not as many ranks, it is the numbering that says who has less; what crosses is
 * judged of both. */
static void judge_mirrored(struct machine *m, const struct request *request,
                           const struct quality *q)
{
    const struct profile_set *all = &m->profile->classes[0].pus;
    const size_t count = request->allowed.count;
    uint32_t pus[4 * MOST_PUS], ids[MOST_PUS];
    struct request mirror = *request;
    struct quality other;
    mirror.allowed = (struct profile_set){ids, count};
    for (size_t i = 0; i < count; i++) {
        const size_t at = profile_set_position(all, request->allowed.ids[count - 1 - i]);
        ids[i] = all->ids[all->count - 1 - at];
    }
    ask(m, true, &mirror, pus, &other);
    const bool even = request->ranks * request->threads <= cores_of(m, request) &&
                      !(request->gpus && request->ranks % count_gpus(m));
    if (q->doubled != other.doubled ||
        (even && (q->shared != other.shared || q->near != other.near))) {
        count_fault(SKEWED, m, request, q->near + q->shared + q->doubled,
                    other.near + other.shared + other.doubled);
    }
}

/* -- drawing -- */

/* GPUs near the PUs of NUMA nodes, in ascending order, or of the mirror image's. */
static bool draw_gpus(struct machine *m)
{
    static char names[MOST_GPUS][16];
    const struct profile_class *of = &m->profile->classes[0];
    uint32_t nodes = 0, count = 0;
    for (size_t n = 0; n < of->numa_count; n++) {
        nodes += of->numa[n].pus.count > 0;
    }
    if (below(3) == 0 && nodes > 1) {
        count = 1 + below(nodes < MOST_GPUS ? nodes : MOST_GPUS);
    }
    m->gpu_count = count;
    for (size_t n = 0, g = 0; g < count; n++) {
        if (!of->numa[n].pus.count || below(nodes--) >= count - g) {
            continue;
        }
        for (size_t mirror = 0; mirror < 2; mirror++) {
            const size_t number = mirror ? count - 1 - g : g;
            const struct profile_numa *at = &of->numa[mirror ? of->numa_count - 1 - n : n];
            snprintf(names[number], sizeof names[number], "cuda%zu", number);
            m->gpus[mirror][number] = (struct profile_device){.kind = PROFILE_GPU,
                                                              .name = names[number],
                                                              .number = (uint32_t)number,
                                                              .card = (uint32_t)number,
                                                              .numa_node = at->os_index,
                                                              .pus = at->pus};
        }
        g++;
    }
    return count;
}

static void draw_request(struct machine *m)
{
    const struct profile_class *of = &m->profile->classes[0];
    uint32_t kept[MOST_PUS], pus[4 * MOST_PUS];
    struct quality q;
    size_t number[MOST_PUS]; /* of the PU's core */
    struct request request = {.priority = below(2) ? MAP_COMMUNICATION : MAP_MEMORY,
                              .allowed = of->pus};
    request.gpus = m->has_gpus ? below(2) : draw_gpus(m);
    if (below(3) == 0 && m->core_count > 4) { /* without some cores */
        uint32_t low = below(m->core_count / 4), high = m->core_count - below(m->core_count / 4);
        request.allowed = (struct profile_set){kept, 0};
        for (size_t i = 0, count = 0; i < of->pus.count; i++) {
            uint32_t pu = of->pus.ids[i], core = m->core[pu];
            number[pu] = pu == core ? count++ : number[core];
            kept[request.allowed.count] = pu;
            request.allowed.count += number[pu] >= low && number[pu] < high;
        }
    }
    uint32_t most = (uint32_t)request.allowed.count;
    request.ranks = 1 + below(most < MOST_RANKS ? most : MOST_RANKS);
    request.threads = 1 + below(most / request.ranks < 2 ? 2 : most / request.ranks);
    if (request.ranks * request.threads > 2 * m->pu_count) {
        return;
    }
    found.requests++;
    ask(m, false, &request, pus, &q);
    judge(m, &request, pus, &q);
    if (m->drawn) {
        judge_mirrored(m, &request, &q);
    }
}

static void draw_machine(struct machine *m)
{
    uint32_t packages = 1 + below(2), nodes = 1 + below(4), caches = 1 + below(4),
             cores = 2 + below(7), pus = 1 + below(2);
    snprintf(m->name, sizeof m->name, "package:%u group:%u [numa] l3:%u core:%u pu:%u", packages,
             nodes, caches, cores, pus);
    if (nodes == 1) {
        snprintf(m->name, sizeof m->name, "package:%u [numa] l3:%u core:%u pu:%u", packages, caches,
                 cores, pus);
    }
}

static void open_machine(struct machine *m)
{
    struct servet_error error;
    if (profile_from_hwloc(m->name, &m->profile, &error) < 0) {
        fprintf(stderr, "regions: %s: %s\n", m->name, error.text);
        exit(2);
    }
    const struct profile_set *pus = &m->profile->classes[0].pus;
    if (pus->ids[pus->count - 1] >= MOST_PUS) {
        fprintf(stderr, "regions: %s: expected PUs below %d\n", m->name, MOST_PUS);
        exit(2);
    }
    m->has_gpus = count_gpus(m);
    find_levels(m);
}

#define REQUESTS 100 /* of a machine */
#define MACHINES 40

static void judge_machine(struct machine *m, uint64_t seed)
{
    state = (seed + 1) * 0x9e3779b97f4a7c15ull;
    m->drawn = !m->name[0];
    if (m->drawn) {
        draw_machine(m);
    }
    open_machine(m);
    for (size_t r = 0; r < REQUESTS; r++) {
        draw_request(m);
    }
    if (!m->has_gpus) {
        m->profile->classes[0].devices = NULL;
        m->profile->classes[0].device_count = 0;
    }
    profile_free(m->profile);
}

int main(int argc, char **argv)
{
    static struct machine m;
    bool any = false, files = argc > 1 && strstr(argv[1], ".xml");
    size_t machines = files ? (size_t)argc - 1 : argc > 1 ? strtoul(argv[1], NULL, 10) : MACHINES;
    for (size_t i = 0; i < machines; i++) {
        m.name[0] = '\0';
        if (files) {
            snprintf(m.name, sizeof m.name, "%s", argv[1 + i]);
        }
        judge_machine(&m, i + (!files && argc > 2 ? strtoul(argv[2], NULL, 10) : 0));
    }
    printf("%zu requests on %zu machines\n", found.requests, machines);
    for (enum fault f = 0; f < FAULTS; f++) {
        printf("  %-26s %6zu  %s%s%s%s\n", faults[f].name, found.with[f], found.first[f],
               found.with[f] && faults[f].permitted ? " (" : "", found.with[f] ? faults[f].why : "",
               found.with[f] && faults[f].permitted ? ")" : "");
        any |= found.with[f] * 1000 > faults[f].permitted * found.requests;
    }
    return any;
}
