/* Are regions as good as the machine allows? Draws machines, and of each ranks x threads by both
 * priorities, on all PUs and on some, with GPUs and without, and counts requests with
 *
 *   a PU twice, though there are enough; a core with two threads while another one is idle;
 *   a core of two ranks, though the cores would do for a whole number each;
 *   a rank in two groups (packages, NUMA nodes, caches) of which it shares one, though whole groups
 *   would hold every rank and none would get less of a memory domain or of a cache;
 *   fewer threads near GPUs than there could be with as many crossings;
 *   another quality than the mirror image of the request on the mirror image of the machine.
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
    bool has_gpus;                      /* of its own */
    uint32_t level_count;
    bool memory[MOST_LEVELS]; /* memory domains of the narrowest level, or caches */
    uint32_t group[MOST_LEVELS][MOST_PUS];
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

static void *needed(void *memory)
{
    if (!memory) {
        fprintf(stderr, "regions: out of memory\n");
        exit(1);
    }
    return memory;
}

/* -- machines -- */

static void add_level(struct machine *m, const struct profile_set *groups, size_t count,
                      bool memory)
{
    if (count < 2 || m->level_count == MOST_LEVELS) {
        return;
    }
    uint32_t *of = m->group[m->level_count];
    memset(of, 0xff, MOST_PUS * sizeof *of);
    bool cores = false;
    for (size_t g = 0; g < count; g++) {
        for (size_t i = 0; i < groups[g].count; i++) {
            of[groups[g].ids[i]] = (uint32_t)g;
            cores |= m->core[groups[g].ids[i]] != m->core[groups[g].ids[0]];
        }
    }
    m->memory[m->level_count] = memory;
    m->level_count += cores;
}

static void find_levels(struct machine *m)
{
    const struct profile_class *of = &m->profile->classes[0];
    struct profile_set *numa = needed(calloc(of->numa_count + 1, sizeof *numa));
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
    free(numa);
}

/* -- mirror images: the last PU becomes the first, and so does every group -- */

static uint32_t mirror(const struct profile_set *pus, uint32_t pu)
{
    return pus->ids[pus->count - 1 - profile_set_position(pus, pu)];
}

/* From both ends, so that it stays in order. */
static void mirror_set(const struct profile_set *pus, struct profile_set *set)
{
    for (size_t low = 0, high = set->count; low < high--; low++) {
        const uint32_t last = mirror(pus, set->ids[low]);
        set->ids[low] = mirror(pus, set->ids[high]);
        set->ids[high] = last;
    }
}

static int by_first(const void *a, const void *b)
{
    const struct profile_set *x = a, *y = b;
    return x->ids[0] < y->ids[0] ? -1 : x->ids[0] > y->ids[0];
}

static void mirror_relation(const struct profile_set *pus, struct profile_relation *relation)
{
    for (size_t g = 0; g < relation->group_count; g++) {
        mirror_set(pus, &relation->groups[g]);
    }
    if (relation->group_count) {
        qsort(relation->groups, relation->group_count, sizeof *relation->groups, by_first);
    }
}

static void mirror_nodes(struct profile_class *of)
{
    for (size_t low = 0, high = of->numa_count; low + 1 < high--; low++) {
        struct profile_numa kept = of->numa[low];
        uint32_t last = of->numa[high].os_index;
        of->numa[low] = of->numa[high];
        of->numa[low].os_index = kept.os_index;
        of->numa[high] = kept;
        of->numa[high].os_index = last;
    }
    for (size_t n = 0; n < of->numa_count; n++) {
        mirror_set(&of->pus, &of->numa[n].pus);
    }
}

/* GPUs are counted from the other end. */
static void mirror_gpus(struct profile_class *of, const struct profile_class *original)
{
    size_t first = 0, count = 0;
    for (size_t i = 0; i < of->device_count; i++) {
        struct profile_device *at = &of->devices[i];
        first = at->kind == PROFILE_GPU && !count ? i : first;
        count += at->kind == PROFILE_GPU;
        mirror_set(&of->pus, &at->pus);
        for (size_t n = 0; n < of->numa_count; n++) {
            if (original->devices[i].numa_node == original->numa[n].os_index) {
                at->numa_node = of->numa[of->numa_count - 1 - n].os_index;
            }
        }
    }
    for (size_t low = first, high = first + count; low + 1 < high--; low++) {
        struct profile_device kept = of->devices[low];
        uint32_t number = of->devices[high].number;
        of->devices[low] = of->devices[high];
        of->devices[low].number = kept.number;
        of->devices[high] = kept;
        of->devices[high].number = number;
    }
}

static void mirror_class(struct profile_class *of, const struct profile_class *original)
{
    mirror_relation(&of->pus, &of->cores);
    mirror_relation(&of->pus, &of->packages);
    mirror_nodes(of);
    mirror_gpus(of, original);
    for (size_t k = 0; k < of->kind_count; k++) {
        mirror_set(&of->pus, &of->kinds[k].pus);
    }
    for (size_t c = 0; c < of->cache_count; c++) {
        mirror_set(&of->pus, &of->caches[c].pus);
        mirror_relation(&of->pus, &of->caches[c].sharing);
    }
    for (size_t l = 0; l < of->memory.level_count; l++) {
        mirror_relation(&of->pus, &of->memory.levels[l].collisions);
    }
    for (size_t l = 0; l < of->communication.layer_count; l++) {
        mirror_relation(&of->pus, &of->communication.layers[l].members);
    }
}

/* GPUs are near the PUs of NUMA nodes. */
static void set_gpus(struct machine *m, struct profile_device *gpus, const uint32_t *nodes,
                     uint32_t count)
{
    static char names[MOST_GPUS][16];
    struct profile_class *of = &m->profile->classes[0];
    for (uint32_t g = 0; g < count; g++) {
        snprintf(names[g], sizeof names[g], "cuda%u", g);
        gpus[g] = (struct profile_device){.kind = PROFILE_GPU,
                                          .name = names[g],
                                          .number = g,
                                          .card = g,
                                          .numa_node = of->numa[nodes[g]].os_index,
                                          .pus = of->numa[nodes[g]].pus};
    }
    of->devices = count ? gpus : NULL;
    of->device_count = count;
}

/* -- an answer -- */

static bool is_near(const struct machine *m, const struct map_devices *devices, uint32_t rank,
                    uint32_t pu)
{
    (void)m;
    for (size_t i = devices->first[rank]; i < devices->first[rank + 1]; i++) {
        if (profile_set_has(&devices->held[i].device->pus, pu)) {
            return true;
        }
    }
    return false;
}

/* Cores of a group that may be used. */
static uint32_t cores_of(const struct machine *m, const struct request *request, uint32_t level,
                         uint32_t group)
{
    static bool seen[MOST_PUS];
    uint32_t count = 0;
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < request->allowed.count; i++) {
        uint32_t pu = request->allowed.ids[i], core = m->core[pu];
        if ((level == NONE || m->group[level][pu] == group) && !seen[core]) {
            seen[core] = true;
            count++;
        }
    }
    return count;
}

/* Cores that a rank needs: one for each thread, else its part of them. */
static uint32_t cores_needed(const struct machine *m, const struct request *request)
{
    uint32_t cores = cores_of(m, request, NONE, 0);
    return request->ranks * request->threads <= cores || request->ranks > cores
               ? request->threads
               : cores / request->ranks;
}

/* Communication priority puts all ranks into the smallest group that has cores for all threads,
 * whatever crosses inside: what it leaves to them. */
static struct request inside(const struct machine *m, const struct request *request)
{
    static uint32_t ids[MOST_PUS];
    struct request all = *request;
    uint32_t least = NONE, level = 0, group = 0;
    for (uint32_t l = 0; l < m->level_count && request->priority == MAP_COMMUNICATION; l++) {
        for (uint32_t g = 0; g < MOST_PUS; g++) {
            uint32_t cores = cores_of(m, request, l, g);
            if (cores >= request->ranks * request->threads && cores < least) {
                least = cores;
                level = l;
                group = g;
            }
        }
    }
    all.allowed = least == NONE ? request->allowed : (struct profile_set){ids, 0};
    for (size_t i = 0; least != NONE && i < request->allowed.count; i++) {
        ids[all.allowed.count] = request->allowed.ids[i];
        all.allowed.count += m->group[level][request->allowed.ids[i]] == group;
    }
    return all;
}

/* Do whole groups of the level hold every rank? */
static bool holds_all(const struct machine *m, const struct request *request, uint32_t level)
{
    uint32_t room = 0, need = cores_needed(m, request);
    for (uint32_t g = 0; g < MOST_PUS; g++) {
        room += cores_of(m, request, level, g) / need;
    }
    return room >= request->ranks;
}

/* Most threads in a group of the level where each rank is in one group, as evenly as that goes. */
static uint32_t load_of_whole(const struct machine *m, const struct request *request,
                              uint32_t level)
{
    uint32_t room[MOST_PUS], ranks[MOST_PUS] = {0}, most = 0, need = cores_needed(m, request);
    for (uint32_t g = 0; g < MOST_PUS; g++) {
        room[g] = cores_of(m, request, level, g) / need;
    }
    for (uint32_t r = 0; r < request->ranks; r++) {
        uint32_t best = NONE;
        for (uint32_t g = 0; g < MOST_PUS; g++) {
            best = ranks[g] < room[g] && (best == NONE || ranks[g] < ranks[best]) ? g : best;
        }
        most = ++ranks[best] > most ? ranks[best] : most;
    }
    return most * request->threads;
}

/* Would whole ranks leave one less: more threads in one group, or to the rank whose threads'
 * groups have most, on average, a tenth more? */
static bool gains(const struct machine *m, const struct request *request, const uint32_t *pus,
                  uint32_t level)
{
    uint32_t load[MOST_PUS] = {0}, most = 0, whole = load_of_whole(m, request, level);
    double crowd = 0;
    for (uint32_t i = 0; i < request->ranks * request->threads; i++) {
        uint32_t group = m->group[level][pus[i]];
        most = group != NONE && ++load[group] > most ? load[group] : most;
    }
    for (uint32_t r = 0; r < request->ranks; r++) {
        double sum = 0;
        for (uint32_t t = 0; t < request->threads; t++) {
            uint32_t group = m->group[level][pus[r * request->threads + t]];
            sum += group == NONE ? 0 : load[group];
        }
        crowd = sum > crowd ? sum : crowd;
    }
    return most < whole || 1.1 * crowd / request->threads < whole;
}

/* Ranks in two groups of which other ranks use one. */
static uint32_t count_crossed(const struct machine *m, const struct request *request,
                              const uint32_t *pus, uint32_t level)
{
    uint32_t user[MOST_PUS], crossed = 0;
    memset(user, 0xff, sizeof user);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t r = 0; r < request->ranks; r++) {
            uint32_t first = NONE;
            bool several = false, shared = false;
            for (uint32_t t = 0; t < request->threads; t++) {
                uint32_t group = m->group[level][pus[r * request->threads + t]];
                if (group == NONE) {
                    continue;
                }
                if (pass == 0) {
                    user[group] = user[group] == NONE || user[group] == r ? r : MOST_PUS;
                }
                several |= first != NONE && first != group;
                first = group;
                shared |= user[group] == MOST_PUS;
            }
            crossed += pass == 1 && several && shared;
        }
    }
    return crossed;
}

/* The narrowest group that holds all these PUs and is wider than one of the level: its level, or
 * NONE: the machine. */
static uint32_t level_around(const struct machine *m, const uint32_t *pus, uint32_t count,
                             uint32_t level)
{
    uint32_t best = NONE, least = NONE;
    for (uint32_t l = 0; l < m->level_count; l++) {
        uint32_t group = m->group[l][pus[0]], size = 0;
        bool around = group != NONE;
        for (uint32_t i = 1; i < count; i++) {
            around &= m->group[l][pus[i]] == group;
        }
        for (uint32_t pu = 0; around && pu < MOST_PUS; pu++) {
            size += m->core[pu] != NONE && m->group[l][pu] == group;
        }
        if (around && l != level && size < least) {
            least = size;
            best = l;
        }
    }
    return best;
}

static uint32_t groups_of(const struct machine *m, const struct profile_set *set, uint32_t level)
{
    bool seen[MOST_PUS] = {false};
    uint32_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        uint32_t group = m->group[level][set->ids[i]];
        count += group != NONE && !seen[group];
        if (group != NONE) {
            seen[group] = true;
        }
    }
    return count;
}

/* Cores, or PUs, of a set that may be used. */
static uint32_t room_of(const struct machine *m, const struct request *request,
                        const struct profile_set *set, bool by_core)
{
    bool seen[MOST_PUS] = {false};
    uint32_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        uint32_t place = by_core ? m->core[set->ids[i]] : set->ids[i];
        count += profile_set_has(&request->allowed, set->ids[i]) && !seen[place];
        seen[place] |= profile_set_has(&request->allowed, set->ids[i]);
    }
    return count;
}

/* Beside GPUs: is the rank in two groups, of which others use one, though whole groups hold all
 * ranks that are around them, and its GPUs are near to one, where it finds room? */
static bool crosses_beside(const struct machine *m, const struct request *request,
                           const uint32_t *pus, const struct map_devices *devices, uint32_t rank,
                           uint32_t level)
{
    const uint32_t threads = request->threads, *own = pus + rank * threads;
    uint32_t around = level_around(m, own, threads, level), room = 0, inside = 0, ids[MOST_PUS];
    uint32_t group = around == NONE ? 0 : m->group[around][own[0]];
    bool several = false, alone = true;
    for (uint32_t r = 0; r < request->ranks; r++) {
        uint32_t in = 0;
        for (uint32_t t = 0; t < threads; t++) {
            uint32_t pu = pus[r * threads + t];
            in += around == NONE || m->group[around][pu] == group;
            several |= r == rank && m->group[level][pu] != m->group[level][own[0]];
            for (uint32_t i = 0; r != rank && i < threads; i++) {
                alone &= m->group[level][pu] != m->group[level][own[i]];
            }
        }
        if (in && in < threads) {
            return false;
        }
        inside += in > 0;
    }
    for (size_t i = devices->first[rank]; i < devices->first[rank + 1]; i++) {
        several &= groups_of(m, &devices->held[i].device->pus, level) < 2;
        several &= room_of(m, request, &devices->held[i].device->pus, true) >= threads;
        several &= profile_set_equal(&devices->held[i].device->pus,
                                     &devices->held[devices->first[rank]].device->pus);
    }
    struct request part = *request;
    part.allowed = (struct profile_set){ids, 0};
    for (size_t i = 0; i < request->allowed.count; i++) {
        uint32_t pu = request->allowed.ids[i];
        ids[part.allowed.count] = pu;
        part.allowed.count += around == NONE || m->group[around][pu] == group;
    }
    for (uint32_t g = 0; several && !alone && g < MOST_PUS; g++) {
        room += cores_of(m, &part, level, g) / threads;
    }
    return several && !alone && room >= inside;
}

static void weigh(const struct machine *m, const struct request *request, const uint32_t *pus,
                  const struct map_devices *devices, struct quality *out)
{
    uint32_t on_core[MOST_PUS] = {0}, rank_of[MOST_PUS], used = 0, extra = 0;
    memset(out, 0, sizeof *out);
    memset(rank_of, 0xff, sizeof rank_of);
    for (uint32_t i = 0; i < request->ranks * request->threads; i++) {
        uint32_t core = m->core[pus[i]], rank = i / request->threads;
        used += on_core[core] == 0;
        extra += on_core[core]++ > 0;
        out->shared += rank_of[core] != NONE && rank_of[core] != rank;
        rank_of[core] = rank;
        out->near += devices && is_near(m, devices, rank, pus[i]);
    }
    uint32_t idle = cores_of(m, request, NONE, 0) - used;
    out->doubled = extra < idle ? extra : idle;
    const bool apart = request->ranks * request->threads <= cores_of(m, request, NONE, 0);
    for (uint32_t l = 0; l < m->level_count; l++) {
        out->crossed[l] = count_crossed(m, request, pus, l);
        for (uint32_t r = 0; devices && apart && out->crossed[l] && r < request->ranks; r++) {
            out->beside += crosses_beside(m, request, pus, devices, r, l);
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
    const bool by_core = request->ranks * request->threads <= cores_of(m, request, NONE, 0);
    uint32_t sum = 0, gpus = count_gpus(m), widest = 0;
    for (uint32_t n = 0; n < of->numa_count; n++) {
        uint32_t room = room_of(m, request, &of->numa[n].pus, true);
        widest = room > widest ? room : widest;
    }
    for (size_t g = 0; g < of->device_count; g++) {
        const struct profile_set *site = &of->devices[g].pus;
        uint32_t here = 0, room = room_of(m, request, site, by_core);
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

static void count_fault(enum fault fault, const struct machine *m, const struct request *request,
                        const char *what)
{
    if (found.with[fault]++) {
        return;
    }
    char *set = profile_set_text(&request->allowed), gpus[64] = "";
    const struct profile_class *of = &m->profile->classes[0];
    if (request->gpus) {
        snprintf(gpus, sizeof gpus, " --gpus");
    }
    for (size_t g = 0; request->gpus && !m->has_gpus && g < of->device_count; g++) {
        snprintf(gpus + strlen(gpus), sizeof gpus - strlen(gpus), "%s%u", g ? "," : " at ",
                 of->devices[g].numa_node);
    }
    snprintf(found.first[fault], sizeof found.first[fault], "\"%s\" -r %u -t %u%s%s%s%s%s", m->name,
             request->ranks, request->threads,
             request->priority == MAP_COMMUNICATION ? " --comm-prior" : "",
             request->allowed.count < m->pu_count ? " --cpuset " : "",
             request->allowed.count < m->pu_count ? set : "", gpus, what);
    free(set);
}

/* 0; < 0: the request was refused. */
static int ask(const struct machine *m, const struct request *request, uint32_t *pus,
               struct quality *out)
{
    struct map_devices devices;
    struct servet_error error;
    const struct map_device_request all = {.ranks = {.priority = request->priority,
                                                     .ranks = request->ranks,
                                                     .threads_each = request->threads,
                                                     .allowed = &request->allowed},
                                           .gpus = request->gpus ? MAP_ALL_GPUS : 0};
    int rc = map_devices(m->profile, &all, pus, &devices, &error);
    if (rc < 0) {
        fprintf(stderr, "regions: %s: %s\n", m->name, error.text);
        exit(1);
    }
    weigh(m, request, pus, request->gpus ? &devices : NULL, out);
    map_devices_free(&devices);
    return rc;
}

static void judge(const struct machine *m, const struct request *request, const uint32_t *pus,
                  const struct quality *q)
{
    const uint32_t threads = request->ranks * request->threads;
    const uint32_t cores = cores_of(m, request, NONE, 0);
    char what[64];
    bool twice = false, seen[MOST_PUS] = {false};
    /* cores that do not divide are parted where they end */
    bool forced = threads > cores && cores % request->ranks;
    const struct request limited = inside(m, request);
    for (uint32_t i = 0; i < threads; i++) {
        twice |= seen[pus[i]];
        seen[pus[i]] = true;
    }
    if (twice && threads <= request->allowed.count) {
        count_fault(TWICE, m, request, "");
    }
    if (q->doubled) {
        snprintf(what, sizeof what, ": %u", q->doubled);
        count_fault(DOUBLED, m, request, what);
    }
    uint32_t whole = (request->threads + m->smt - 1) / m->smt;
    if (q->shared && threads <= request->allowed.count && request->ranks * whole <= cores) {
        snprintf(what, sizeof what, ": %u", q->shared);
        count_fault(SHARED, m, request, what);
    }
    /* the narrowest level that whole groups cannot hold, or that gains by crossing */
    for (uint32_t l = 0; l < m->level_count; l++) {
        forced |= !holds_all(m, &limited, l) ||
                  (m->memory[l] && request->priority == MAP_MEMORY && gains(m, request, pus, l));
    }
    for (uint32_t l = 0; l < m->level_count && !forced && !request->gpus; l++) {
        if (q->crossed[l] && threads <= request->allowed.count) {
            snprintf(what, sizeof what, ": %u at level %u", q->crossed[l], l);
            count_fault(CROSSED, m, request, what);
            break;
        }
    }
    if (q->beside) {
        snprintf(what, sizeof what, ": %u beside GPUs", q->beside);
        count_fault(BESIDE, m, request, what);
    }
    if (request->gpus && threads <= cores && q->near < most_near(m, request)) {
        snprintf(what, sizeof what, ": %u of %u", q->near, most_near(m, request));
        count_fault(FAR, m, request, what);
    }
}

/* Where threads have no core of their own, or GPUs not as many ranks, it is the numbering that says
 * who has less; what crosses is judged of both. */
static bool differs(const struct machine *m, const struct request *request, const struct quality *a,
                    const struct quality *b)
{
    bool even = request->ranks * request->threads <= cores_of(m, request, NONE, 0) &&
                !(request->gpus && request->ranks % count_gpus(m));
    return a->doubled != b->doubled || (even && (a->shared != b->shared || a->near != b->near));
}

static void try_one(struct machine *m, struct machine *mirror, const struct request *request)
{
    uint32_t pus[4 * MOST_PUS], ids[MOST_PUS];
    struct request reversed = *request;
    struct quality q, other;
    found.requests++;
    ask(m, request, pus, &q);
    judge(m, request, pus, &q);
    reversed.allowed = (struct profile_set){ids, request->allowed.count};
    memcpy(ids, request->allowed.ids, request->allowed.count * sizeof *ids);
    mirror_set(&m->profile->classes[0].pus, &reversed.allowed);
    ask(mirror, &reversed, pus, &other);
    if (differs(m, request, &q, &other)) {
        char what[128];
        snprintf(what, sizeof what, ": near %u, %u; shared %u, %u; crossed %u, %u; %u, %u", q.near,
                 other.near, q.shared, other.shared, q.crossed[0], other.crossed[0], q.crossed[1],
                 other.crossed[1]);
        count_fault(SKEWED, m, request, what);
    }
}

/* -- drawing -- */

/* GPUs at NUMA nodes that have PUs, in ascending order. */
static bool draw_gpus(struct machine *m, struct machine *mirror)
{
    static struct profile_device gpus[MOST_GPUS], reversed[MOST_GPUS];
    const struct profile_class *of = &m->profile->classes[0];
    uint32_t at[MOST_GPUS], from_end[MOST_GPUS], count = 0, nodes = 0;
    for (size_t n = 0; n < of->numa_count; n++) {
        nodes += of->numa[n].pus.count > 0;
    }
    if (below(3) == 0 && nodes > 1) {
        count = 1 + below(nodes < MOST_GPUS ? nodes : MOST_GPUS);
    }
    for (uint32_t n = 0, left = count; left; n++) {
        if (of->numa[n].pus.count && below(nodes--) < left) {
            from_end[left - 1] = (uint32_t)of->numa_count - 1 - n;
            at[count - left--] = n;
        }
    }
    set_gpus(m, gpus, at, count);
    set_gpus(mirror, reversed, from_end, count);
    return count;
}

static void draw_request(struct machine *m, struct machine *mirror)
{
    const struct profile_class *of = &m->profile->classes[0];
    uint32_t kept[MOST_PUS];
    size_t number[MOST_PUS]; /* of the PU's core */
    struct request request = {.priority = below(2) ? MAP_COMMUNICATION : MAP_MEMORY,
                              .allowed = of->pus};
    request.gpus = m->has_gpus ? below(2) : draw_gpus(m, mirror);
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
    request.ranks = 1 + below(most < 40 ? most : 40);
    request.threads = 1 + below(most / request.ranks < 2 ? 2 : most / request.ranks);
    if (request.ranks * request.threads <= 2 * m->pu_count) {
        try_one(m, mirror, &request);
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
    static struct machine mirror;
    state = (seed + 1) * 0x9e3779b97f4a7c15ull;
    if (!m->name[0]) {
        draw_machine(m);
    }
    open_machine(m);
    mirror = *m;
    open_machine(&mirror);
    mirror_class(&mirror.profile->classes[0], &m->profile->classes[0]);
    find_levels(&mirror);
    for (size_t r = 0; r < REQUESTS; r++) {
        draw_request(m, &mirror);
    }
    if (!m->has_gpus) {
        set_gpus(m, NULL, NULL, 0);
        set_gpus(&mirror, NULL, NULL, 0);
    }
    profile_free(m->profile);
    profile_free(mirror.profile);
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
