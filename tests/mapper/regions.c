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

enum fault { TWICE, DOUBLED, SHARED, CROSSED, FAR, SKEWED, FAULTS };

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
    [FAR] =
        {"threads away from GPUs", 2,
         "ranks wider than a NUMA node take those of ranks behind them where a package is full"},
    [SKEWED] = {"another mirror image", 4, "on parts of unequal groups, the same"}};

struct machine {
    char name[128];
    struct servet_profile *profile;
    uint32_t pu_count, core_count, smt; /* smt: least PUs of a core */
    uint32_t core[MOST_PUS];            /* by OS index; NONE: no PU */
    uint32_t level_count;
    bool memory[MOST_LEVELS]; /* a memory domain of the narrowest level, or a last cache */
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
    uint32_t doubled, shared, near, crossed[MOST_LEVELS];
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
    add_level(m, of->packages.groups, of->packages.group_count, false);
    add_level(m, numa, nodes, true);
    for (size_t c = 0; c < of->cache_count; c++) {
        add_level(m, of->caches[c].sharing.groups, of->caches[c].sharing.group_count, true);
    }
    free(numa);
}

/* GPUs are near the PUs of NUMA nodes. */
static void set_gpus(struct machine *m, const uint32_t *nodes, uint32_t count)
{
    static struct profile_device gpus[MOST_GPUS];
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
    for (uint32_t l = 0; l < m->level_count; l++) {
        out->crossed[l] = count_crossed(m, request, pus, l);
    }
}

/* Threads that could be near the GPUs, if every rank stays where its share of them is. */
static uint32_t most_near(const struct machine *m, const struct request *request)
{
    const struct profile_class *of = &m->profile->classes[0];
    const bool by_core = request->ranks * request->threads <= cores_of(m, request, NONE, 0);
    uint32_t sum = 0, gpus = (uint32_t)of->device_count, widest = 0, level = 0;
    if (request->ranks % gpus) {
        return 0; /* which rank has which GPU is a choice of its own */
    }
    while (level < m->level_count && !m->memory[level]) {
        level++;
    }
    for (uint32_t n = 0; n < of->numa_count; n++) {
        uint32_t room = cores_of(m, request, level, n);
        widest = room > widest ? room : widest;
    }
    for (size_t n = 0; n < of->numa_count; n++) {
        uint32_t here = 0, room = 0;
        for (uint32_t g = 0; g < gpus; g++) {
            here += of->devices[g].numa_node == of->numa[n].os_index;
        }
        for (size_t i = 0; i < request->allowed.count; i++) {
            room += profile_set_has(&of->numa[n].pus, request->allowed.ids[i]);
        }
        room = by_core ? cores_of(m, request, level, (uint32_t)n) : room;
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
    for (size_t g = 0; request->gpus && g < of->device_count; g++) {
        snprintf(gpus + strlen(gpus), sizeof gpus - strlen(gpus), "%s%u", g ? "," : " --gpus at ",
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
    if (request->gpus && threads <= cores && q->near < most_near(m, request)) {
        snprintf(what, sizeof what, ": %u of %u", q->near, most_near(m, request));
        count_fault(FAR, m, request, what);
    }
}

/* -- mirror images: PU i of a core stays the i-th, cores are reversed -- */

static uint32_t mirrored(const struct machine *m, uint32_t pu)
{
    uint32_t smt = m->pu_count / m->core_count;
    return (m->core_count - 1 - pu / smt) * smt + pu % smt;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Where threads have no core of their own, or GPUs not as many ranks, it is the numbering that says
 * who has less; what crosses is judged of both. */
static bool differs(const struct machine *m, const struct request *request, const struct quality *a,
                    const struct quality *b)
{
    bool even = request->ranks * request->threads <= cores_of(m, request, NONE, 0) &&
                !(request->gpus && request->ranks % m->profile->classes[0].device_count);
    return a->doubled != b->doubled || (even && (a->shared != b->shared || a->near != b->near));
}

static void try_one(struct machine *m, const struct request *request, uint32_t *gpus,
                    uint32_t gpu_count)
{
    uint32_t pus[4 * MOST_PUS], ids[MOST_PUS];
    struct request mirror = *request;
    struct quality q, other;
    set_gpus(m, gpus, gpu_count);
    found.requests++;
    ask(m, request, pus, &q);
    judge(m, request, pus, &q);
    mirror.allowed = (struct profile_set){ids, request->allowed.count};
    for (size_t i = 0; i < request->allowed.count; i++) {
        ids[i] = mirrored(m, request->allowed.ids[i]);
    }
    qsort(ids, request->allowed.count, sizeof *ids, by_number);
    uint32_t nodes = (uint32_t)m->profile->classes[0].numa_count;
    for (uint32_t g = 0; g < gpu_count; g++) {
        gpus[g] = nodes - 1 - gpus[g];
    }
    for (uint32_t g = 0; g < gpu_count / 2; g++) {
        uint32_t kept = gpus[g];
        gpus[g] = gpus[gpu_count - 1 - g];
        gpus[gpu_count - 1 - g] = kept;
    }
    set_gpus(m, gpus, gpu_count);
    ask(m, &mirror, pus, &other);
    if (differs(m, request, &q, &other)) {
        char what[128];
        snprintf(what, sizeof what, ": near %u, %u; shared %u, %u; crossed %u, %u; %u, %u", q.near,
                 other.near, q.shared, other.shared, q.crossed[0], other.crossed[0], q.crossed[1],
                 other.crossed[1]);
        set_gpus(m, gpus, gpu_count);
        count_fault(SKEWED, m, &mirror, what);
    }
}

/* -- drawing -- */

static void draw_request(struct machine *m)
{
    const struct profile_class *of = &m->profile->classes[0];
    uint32_t gpus[MOST_GPUS], gpu_count = 0, kept[MOST_PUS];
    struct request request = {.priority = below(2) ? MAP_COMMUNICATION : MAP_MEMORY,
                              .allowed = of->pus};
    if (below(3) == 0 && of->numa_count > 1) {
        gpu_count = 1 + below(of->numa_count < MOST_GPUS ? (uint32_t)of->numa_count : MOST_GPUS);
        for (uint32_t n = 0, left = gpu_count; left; n++) {
            if (below((uint32_t)of->numa_count - n) < left) {
                gpus[gpu_count - left--] = n;
            }
        }
        request.gpus = true;
    }
    if (below(3) == 0 && m->core_count > 4) { /* without some cores */
        uint32_t smt = m->pu_count / m->core_count, low = below(m->core_count / 4),
                 high = m->core_count - below(m->core_count / 4);
        request.allowed = (struct profile_set){kept, 0};
        for (uint32_t pu = low * smt; pu < high * smt; pu++) {
            kept[request.allowed.count++] = pu;
        }
    }
    uint32_t most = (uint32_t)request.allowed.count;
    request.ranks = 1 + below(most < 40 ? most : 40);
    request.threads = 1 + below(most / request.ranks < 2 ? 2 : most / request.ranks);
    if (request.ranks * request.threads <= 2 * m->pu_count) {
        try_one(m, &request, gpus, gpu_count);
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
    find_levels(m);
}

#define REQUESTS 100 /* of a drawn machine */
#define MACHINES 40

int main(int argc, char **argv)
{
    static struct machine m;
    bool any = false;
    size_t machines = argc > 1 ? strtoul(argv[1], NULL, 10) : MACHINES;
    for (size_t i = 0; i < machines; i++) {
        state = (i + 1 + (argc > 2 ? strtoul(argv[2], NULL, 10) : 0)) * 0x9e3779b97f4a7c15ull;
        draw_machine(&m);
        open_machine(&m);
        for (size_t r = 0; r < REQUESTS; r++) {
            draw_request(&m);
        }
        set_gpus(&m, NULL, 0);
        profile_free(m.profile);
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
