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

#include "tests/mapper/quality.h"

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
                                                     .workers = request->ranks,
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
    quality_weigh(m, request, pus, request->gpus ? &devices : NULL, out);
    map_devices_free(&devices);
}

static void judge(const struct machine *m, const struct request *request, const uint32_t *pus,
                  const struct quality *q)
{
    const uint32_t threads = request->ranks * request->threads;
    const uint32_t cores = quality_cores(m, request);
    uint32_t twice = 0;
    bool seen[MOST_PUS] = {false};
    const bool forced = quality_must_cross(m, request, pus);
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
    for (uint32_t l = 0; l < m->level_count && !forced && !request->gpus; l++) {
        if (q->crossed[l] && threads <= request->allowed.count) {
            count_fault(CROSSED, m, request, q->crossed[l], request->ranks);
            break;
        }
    }
    if (q->beside) {
        count_fault(BESIDE, m, request, q->beside, request->ranks);
    }
    if (request->gpus && threads <= cores && q->near < quality_most_near(m, request)) {
        count_fault(FAR, m, request, q->near, quality_most_near(m, request));
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
    const bool even = request->ranks * request->threads <= quality_cores(m, request) &&
                      !(request->gpus && request->ranks % quality_gpus(m));
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
    m->has_gpus = quality_gpus(m);
    quality_levels(m);
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
