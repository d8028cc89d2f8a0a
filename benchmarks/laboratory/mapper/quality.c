/* How good are the mappings on machines of others? For every topology given (hwloc XML files,
 * folders of them, or descriptions such as "package:2 l3:8 core:8 pu:2") and for the modern
 * machines below, maps 2, 3, 4, 7, 13, half, all but one and all cores, and ranks with threads,
 * with both priorities and compares with hwloc-distrib, compact, scatter, OMP_PROC_BIND=spread and,
 * where beside_mpibind has built it, mpibind. PROFILE.json=TOPOLOGY is a machine that was measured;
 * the other tools get its topology. By
 *
 *   predicted memory bandwidth of a rank and of the worker with least, where it was measured; most
 *   workers in one memory domain and how many share those of a worker on average (sums over the
 *   levels of domains: a rival that crowds packages is not as good); least and mean
 *   last-level cache of a worker, mean caches before the last; mean distance of neighbours in
 *   worker order (layers of the topology profile, 1 is nearest), for ranks with threads also inside
 *   ranks; caches and memory domains that several ranks use; most on one core.
 *
 * One line for every case in which another is better in one figure and not worse in the rest, with
 * its reason; exit status 1 when one has none. Memory priority is held against all figures,
 * communication priority against those from the distance on, which is what it is for.
 *
 * Without an argument: the topologies among the fixtures, and the modern machines. */
#include <dirent.h>
#include <hwloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mapper/command/command.h"
#include "mapper/map.h"
#include "mapper/worth/worth.h"

enum rival { DISTRIB, COMPACT, SCATTER, SPREAD, MPIBIND, RIVALS };
static const char *const rival_names[RIVALS] = {"hwloc-distrib", "compact", "scatter", "OMP spread",
                                                "mpibind"};

struct machine {
    const char *name, *source; /* source: given to the other tools */
    struct servet_profile *profile;
    struct map_view view;
    hwloc_topology_t topology;
    uint32_t *rivals[RIVALS]; /* leaves in worker order; those of hwloc-distrib and spread are made
                                 for each number of workers */
    uint32_t cores;
    int llc; /* index of the last cache level in struct map_figures, -1: none */
};

struct totals {
    size_t machines, cases, beaten, unexplained;
};

/* So many threads of so many ranks; workers are ranks of one thread. */
struct program {
    uint32_t ranks, threads;
};

static size_t workers_of(const struct program *program)
{
    return (size_t)program->ranks * program->threads;
}

static void *needed(void *memory)
{
    if (!memory) {
        fprintf(stderr, "quality: out of memory\n");
        exit(1);
    }
    return memory;
}

/* A rank's set is a part of the machine; its threads take the cores of it at equal distances. */
static bool spread_over(struct machine *m, hwloc_const_bitmap_t set, uint32_t threads,
                        uint32_t *leaves)
{
    uint32_t count = 0, *open = needed(calloc(m->view.leaf_count, sizeof *open));
    for (uint32_t i = 0; i < m->view.leaf_count && i < m->cores; i++) {
        uint32_t leaf = m->rivals[COMPACT][i]; /* the first PU of each core */
        if (hwloc_bitmap_isset(set, m->view.pu[leaf])) {
            open[count++] = leaf;
        }
    }
    for (uint32_t t = 0; t < threads && count; t++) {
        leaves[t] = open[(uint64_t)t * count / threads];
    }
    free(open);
    return count > 0;
}

static bool distribute(struct machine *m, const struct program *program)
{
    hwloc_obj_t root = hwloc_get_root_obj(m->topology);
    uint32_t *leaves = m->rivals[DISTRIB];
    hwloc_bitmap_t *sets = needed(calloc(program->ranks, sizeof *sets));
    bool all = true;
    hwloc_distrib(m->topology, &root, 1, sets, program->ranks, INT_MAX, 0);
    for (uint32_t i = 0; i < program->ranks; i++) {
        if (program->threads == 1) {
            leaves[i] = map_view_leaf(&m->view, (uint32_t)hwloc_bitmap_first(sets[i]));
        } else {
            all = spread_over(m, sets[i], program->threads, leaves + i * program->threads) && all;
        }
        hwloc_bitmap_free(sets[i]);
    }
    free(sets);
    return all;
}

/* $MPIBIND_PLACES answers with "pu N" for each thread, rank by rank (beside_mpibind). False: it
 * gave a rank no PU, or crashed. */
static bool ask_mpibind(struct machine *m, const struct program *program)
{
    const char *command = getenv("MPIBIND_PLACES");
    char line[8192];
    size_t count = 0;
    uint32_t pu;
    if (!command) {
        return false;
    }
    snprintf(line, sizeof line, "%s '%s' %u %u 2>/dev/null", command, m->source, program->ranks,
             program->threads);
    FILE *answer = popen(line, "r");
    while (answer && fgets(line, sizeof line, answer)) {
        if (sscanf(line, "pu %u", &pu) == 1 && count < workers_of(program) &&
            (m->rivals[MPIBIND][count] = map_view_leaf(&m->view, pu)) != MAP_NONE) {
            count++;
        }
    }
    return answer && pclose(answer) == 0 && count == workers_of(program);
}

/* One place for each core in the order of the hierarchy; worker i on the first place of its
 * part. */
static void spread(struct machine *m, uint32_t workers)
{
    for (uint32_t i = 0; i < workers; i++) {
        m->rivals[SPREAD][i] = m->rivals[COMPACT][(uint64_t)i * m->cores / workers];
    }
}

static struct map_figures figures(struct machine *m, const uint32_t *leaves, size_t workers)
{
    struct map_figures out;
    if (map_figures_of(&m->view, leaves, workers, &out) < 0) {
        needed(NULL);
    }
    return out;
}

/* Leaves in worker order. */
static void map_with(struct machine *m, enum map_priority priority, const struct program *program,
                     uint32_t *leaves)
{
    size_t workers = workers_of(program);
    struct map_request request = {.priority = priority, .workers = workers, .known = true};
    struct map_request ranks = {
        .priority = priority, .workers = program->ranks, .threads_each = program->threads};
    struct servet_error error;
    int rc = program->threads > 1 ? map_domains(m->profile, &ranks, leaves, &error)
                                  : map_workers(m->profile, &request, leaves, NULL, &error);
    if (rc < 0) {
        fprintf(stderr, "quality: %s: %s\n", m->name, error.text);
        exit(1);
    }
    for (size_t i = 0; i < workers; i++) {
        leaves[i] = map_view_leaf(&m->view, leaves[i]);
    }
}

enum figure {
    BANDWIDTH,
    LEAST,
    DOMAIN,
    CROWD,
    CACHE,
    CACHE_MEAN,
    INNER,
    DISTANCE,
    WITHIN,
    SHARED,
    CORE,
    FIGURES
};
static const char *const figure_names[FIGURES] = {"GB/s of a rank (negative)",
                                                  "GB/s of the worker with least (negative)",
                                                  "most workers in a memory domain, all levels",
                                                  "workers in a worker's memory domains",
                                                  "least last-level cache, KiB (negative)",
                                                  "mean last-level cache, KiB (negative)",
                                                  "mean caches before the last, KiB (negative)",
                                                  "mean distance of neighbours",
                                                  "mean distance of neighbours inside ranks",
                                                  "groups that several ranks use",
                                                  "most workers on a core"};

/* Workers in the memory domain of a worker, on average, summed over the levels. */
static double crowd_of(const struct machine *m, const uint32_t *leaves, size_t workers)
{
    const struct map_class *class = &m->view.classes[0];
    double sum = 0;
    for (size_t f = 0; f < class->family_count; f++) {
        const struct map_groups *groups = &class->families[f].groups;
        for (size_t i = 0; class->families[f].rule == MAP_RULE_MEMORY && i < workers; i++) {
            for (size_t j = 0; j < workers; j++) {
                uint32_t group = groups->group_of[leaves[i]];
                sum += i == j || (group != MAP_NONE && groups->group_of[leaves[j]] == group);
            }
        }
    }
    return sum / (double)workers;
}

/* Last-level caches and memory domains that threads of several ranks use: a rank's region should be
 * its own. */
static uint32_t count_shared(const struct machine *m, const uint32_t *leaves,
                             const struct program *program)
{
    const struct map_class *class = &m->view.classes[0];
    uint32_t shared = 0, *user = needed(calloc(m->view.leaf_count, sizeof *user));
    for (size_t f = 0; program->threads > 1 && f < class->family_count; f++) {
        const struct map_groups *groups = &class->families[f].groups;
        bool last = f < class->of->cache_count && (int)class->of->caches[f].level - 1 == m->llc;
        if (!last && class->families[f].rule != MAP_RULE_MEMORY) {
            continue;
        }
        memset(user, 0, m->view.leaf_count * sizeof *user); /* by group: rank + 1; none: 0 */
        for (size_t i = 0; i < workers_of(program); i++) {
            uint32_t group = groups->group_of[leaves[i]];
            uint32_t rank = (uint32_t)(i / program->threads) + 1;
            if (group != MAP_NONE && user[group] != MAP_NONE) {
                bool other = user[group] && user[group] != rank;
                shared += other;
                user[group] = other ? MAP_NONE : rank;
            }
        }
    }
    free(user);
    return shared;
}

/* Mean distance of a thread to the next one of its rank; 0: ranks have one. */
static double distance_within(const struct machine *m, const uint32_t *leaves,
                              const struct program *program)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 1; i < workers_of(program); i++) {
        if (i % program->threads) {
            sum += map_pair_distance(&m->view, leaves[i - 1], leaves[i]);
            count++;
        }
    }
    return count ? sum / (double)count : 0;
}

/* A placement with its figures, all so that less is better. */
struct scored {
    bool there;
    double figures[FIGURES];
    uint32_t shared;
    uint64_t kinds, far, caches; /* sums over the workers: slower kinds, far memory, less cache */
};

/* Why a case may fall short, or NULL: then it is a defect. A gain on worse PUs does not count. */
static const char *reason(const struct scored *ours, const struct scored *rival)
{
    if (rival->kinds > ours->kinds) {
        return "the most capable kind of core comes first";
    }
    if (rival->far > ours->far) {
        return "PUs without memory of their own come last";
    }
    if (rival->caches != ours->caches) {
        return "rule 1 counts the workers of a last-level cache and looks at its size last";
    }
    return ours->shared ? "ranks straddle groups that they do not divide" : NULL;
}

/* Half a per mille: sums of distances in another order. */
#define SAME 5e-4

static void judge(const struct machine *m, enum map_priority priority,
                  const struct program *program, const struct scored *ours,
                  const struct scored *rivals, struct totals *totals)
{
    const double *own = ours->figures;
    for (enum rival r = 0; r < RIVALS; r++) {
        enum figure better = FIGURES;
        bool worse = !rivals[r].there;
        const double *other = rivals[r].figures;
        for (enum figure f = priority == MAP_MEMORY ? BANDWIDTH : DISTANCE; f < FIGURES; f++) {
            double margin = SAME * (own[f] < 0 ? -own[f] : own[f]);
            better = better == FIGURES && other[f] < own[f] - margin ? f : better;
            worse = worse || other[f] > own[f] + margin;
        }
        if (better == FIGURES || worse) {
            continue;
        }
        const char *why = reason(ours, &rivals[r]);
        totals->beaten++;
        totals->unexplained += !why;
        printf("    falls short: %s, %u x %u, %s: %s %g, %s has %g (%s)\n", m->name, program->ranks,
               program->threads, priority == MAP_MEMORY ? "memory" : "communication",
               figure_names[better], own[better], rival_names[r], other[better],
               why ? why : "no reason known");
    }
}

static struct scored score(struct machine *m, const uint32_t *leaves, const struct program *program)
{
    const struct map_class *class = &m->view.classes[0];
    const size_t workers = workers_of(program);
    const struct map_figures f = figures(m, leaves, workers);
    const uint32_t shared = count_shared(m, leaves, program);
    struct scored scored = {
        .there = true,
        .figures = {[BANDWIDTH] = -f.memory_mean_bytes_per_s * program->threads / 1e9,
                    [LEAST] = -f.memory_worst_bytes_per_s / 1e9,
                    [CROWD] = crowd_of(m, leaves, workers),
                    [CACHE] = m->llc < 0 ? 0 : -f.cache_worst_bytes[m->llc] / 1024,
                    [CACHE_MEAN] = m->llc < 0 ? 0 : -f.cache_mean_bytes[m->llc] / 1024,
                    [DISTANCE] = f.neighbour_mean,
                    [WITHIN] = distance_within(m, leaves, program),
                    [SHARED] = shared,
                    [CORE] = f.core_most},
        .shared = shared};
    for (size_t level = 0; level < f.memory_levels; level++) {
        scored.figures[DOMAIN] += f.memory_most[level];
    }
    for (int level = 0; level < m->llc; level++) {
        scored.figures[INNER] -= f.cache_mean_bytes[level] / 1024;
    }
    for (size_t i = 0; i < workers; i++) {
        scored.kinds += class->kind[leaves[i]];
        scored.far += class->far[leaves[i]];
        scored.caches += class->cache_rank[leaves[i]];
    }
    return scored;
}

static void print_figure(const struct scored *s, enum figure which)
{
    static const int digits[FIGURES] = {[DISTANCE] = 2, [BANDWIDTH] = 1};
    char text[32];
    snprintf(text, sizeof text, "%.*f", digits[which], fabs(s->figures[which]));
    printf(" %7s", s->there ? text : "-");
}

static void print_case(const struct machine *m, const struct program *program,
                       const struct scored *memory, const struct scored *communication,
                       const struct scored *rivals)
{
    static const enum figure shown[] = {DOMAIN, CACHE, DISTANCE, BANDWIDTH};
    const size_t count = memory->figures[BANDWIDTH] < 0 ? 4 : 3;
    printf("%-44.44s %3u x %-3u", m->name, program->ranks, program->threads);
    for (size_t i = 0; i < count; i++) {
        fputs(" |", stdout);
        print_figure(memory, shown[i]);
        if (shown[i] == DISTANCE) {
            print_figure(communication, shown[i]);
        }
        for (enum rival r = 0; r < RIVALS; r++) {
            print_figure(&rivals[r], shown[i]);
        }
    }
    putchar('\n');
}

static void compare(struct machine *m, const struct program *program, struct totals *totals)
{
    struct scored rivals[RIVALS];
    uint32_t *leaves = needed(calloc(workers_of(program), sizeof *leaves));
    bool there[RIVALS] = {[COMPACT] = true, [SCATTER] = program->threads == 1, [SPREAD] = true};
    there[DISTRIB] = distribute(m, program);
    there[MPIBIND] = ask_mpibind(m, program);
    spread(m, (uint32_t)workers_of(program));
    for (enum rival r = 0; r < RIVALS; r++) {
        rivals[r] = there[r] ? score(m, m->rivals[r], program) : (struct scored){0};
    }
    map_with(m, MAP_MEMORY, program, leaves);
    struct scored memory = score(m, leaves, program);
    map_with(m, MAP_COMMUNICATION, program, leaves);
    struct scored communication = score(m, leaves, program);
    print_case(m, program, &memory, &communication, rivals);
    judge(m, MAP_MEMORY, program, &memory, rivals, totals);
    judge(m, MAP_COMMUNICATION, program, &communication, rivals, totals);
    totals->cases += 2;
    free(leaves);
}

/* `path`: a topology, or PROFILE.json=TOPOLOGY. */
static bool open_machine(const char *path, struct machine *m)
{
    struct servet_error error;
    char profile[4096];
    const char *measured = strstr(path, ".json=");
    int rc;
    if (measured) {
        snprintf(profile, sizeof profile, "%.*s", (int)(measured - path) + 5, path);
        path = measured + 6;
        rc = profile_load(profile, &m->profile, &error);
    } else {
        rc = profile_from_hwloc(path, &m->profile, &error);
    }
    m->source = path;
    if (rc < 0) {
        printf("%-44.44s left out: %s\n", m->name, error.text);
        return false;
    }
    if (map_view_make(m->profile, MAP_MEMORY, 1, &m->view, &error) < 0 ||
        hwloc_topology_init(&m->topology) < 0 ||
        (access(path, F_OK) == 0 ? hwloc_topology_set_xml(m->topology, path)
                                 : hwloc_topology_set_synthetic(m->topology, path)) < 0 ||
        hwloc_topology_load(m->topology) < 0) {
        needed(NULL);
    }
    for (uint32_t leaf = 0; leaf < m->view.leaf_count; leaf++) {
        m->cores += !map_core_mates_before(&m->view, leaf, NULL);
    }
    for (enum rival r = 0; r < RIVALS; r++) {
        m->rivals[r] = needed(calloc(m->view.leaf_count, sizeof *m->rivals[r]));
    }
    map_order_known(&m->view, MAP_COMPACT, m->rivals[COMPACT]);
    map_order_known(&m->view, MAP_SCATTER, m->rivals[SCATTER]);
    m->llc = -1;
    for (size_t i = 0; i < m->profile->classes[0].cache_count; i++) {
        int level = (int)m->profile->classes[0].caches[i].level - 1;
        m->llc = level > m->llc && level < MAP_FIGURE_LEVELS ? level : m->llc;
    }
    return true;
}

static void close_machine(struct machine *m)
{
    for (enum rival r = 0; r < RIVALS; r++) {
        free(m->rivals[r]);
    }
    hwloc_topology_destroy(m->topology);
    map_view_free(&m->view);
    profile_free(m->profile);
}

static void do_workers(struct machine *m, struct totals *totals)
{
    uint32_t numbers[] = {2, 3, 4, 7, 13, m->cores / 2, m->cores - 1, m->cores};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        bool repeated = false;
        for (size_t j = 0; j < i; j++) {
            repeated = repeated || numbers[j] == numbers[i];
        }
        if (!repeated && numbers[i] >= 2 && numbers[i] <= m->cores) {
            compare(m, &(struct program){numbers[i], 1}, totals);
        }
    }
}

/* Ranks whose threads fill the cores, and half of them. */
static void do_hybrids(struct machine *m, struct totals *totals)
{
    static const uint32_t ranks[] = {1, 2, 3, 4, 6, 8, 16};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        for (uint32_t part = 1; part <= 2; part++) {
            uint32_t threads = m->cores / ranks[i] / part;
            if (threads >= 2) {
                compare(m, &(struct program){ranks[i], threads}, totals);
            }
        }
    }
}

/* `name` NULL: the last part of the path. */
static void do_machine(const char *name, const char *path, struct totals *totals)
{
    const char *slash = strrchr(path, '/');
    struct machine m = {.name = name ? name : slash ? slash + 1 : path};
    if (!open_machine(path, &m)) {
        return;
    }
    totals->machines++;
    do_workers(&m, totals);
    do_hybrids(&m, totals);
    close_machine(&m);
}

static int is_xml(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && strcmp(entry->d_name + length - 4, ".xml") == 0;
}

static void do_path(const char *path, struct totals *totals)
{
    struct stat status;
    struct dirent **entries;
    if (stat(path, &status) < 0 || !S_ISDIR(status.st_mode)) {
        do_machine(NULL, path, totals);
        return;
    }
    int count = scandir(path, &entries, is_xml, alphasort);
    for (int i = 0; i < count; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        do_machine(NULL, file, totals);
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
}

/* Modern machines from their makers' data sheets and the sites' public descriptions of their nodes:
 * sockets, NUMA nodes a socket (NPS, SNC), last-level caches, cores, threads. */
static const struct {
    const char *name, *description;
} modern[] = {
    {"2x EPYC 7601", "package:2 group:4 [numa] l3:2(size=8MB) core:4 pu:2"},
    {"1x EPYC 7402", "package:1 [numa] l3:8(size=16MB) core:3 pu:2"},
    {"2x EPYC 7763 NPS1", "package:2 [numa] l3:8(size=32MB) core:8 pu:2"},
    {"2x EPYC 7763 NPS4 (Perlmutter, LUMI-C)",
     "package:2 group:4 [numa] l3:2(size=32MB) core:8 pu:2"},
    {"1x EPYC 7A53 NPS4 (Frontier, LUMI-G)",
     "package:1 group:4 [numa] l3:2(size=32MB) core:8 pu:2"},
    {"2x EPYC 9654 NPS1", "package:2 [numa] l3:12(size=32MB) core:8 pu:2"},
    {"2x EPYC 9654 NPS4", "package:2 group:4 [numa] l3:3(size=32MB) core:8 pu:2"},
    {"2x EPYC 9754 NPS1", "package:2 [numa] l3:16(size=16MB) core:8 pu:2"},
    {"2x EPYC 9754 NPS4", "package:2 group:4 [numa] l3:4(size=16MB) core:8 pu:2"},
    {"2x EPYC 9575F", "package:2 [numa] l3:8(size=32MB) core:8 pu:2"},
    {"4x MI300A", "package:4 [numa] l3:3(size=32MB) core:8 pu:2"},
    {"2x Xeon 6248", "package:2 [numa] l3:1(size=28160KB) l2:20(size=1MB) core:1 pu:2"},
    {"2x Xeon 8480+ (MareNostrum 5)",
     "package:2 [numa] l3:1(size=105MB) l2:56(size=2MB) core:1 pu:2"},
    {"2x Xeon 8480+ SNC4", "package:2 group:4 [numa] l3:1(size=26MB) l2:14(size=2MB) core:1 pu:2"},
    {"2x Xeon 6972P SNC3", "package:2 group:3 [numa] l3:1(size=160MB) l2:32(size=2MB) core:1 pu:2"},
    {"1x Xeon Phi 7250 SNC4", "package:1 group:4 [numa] l2:8(size=1MB) core:2 pu:4"},
    {"2x Altra Q80-30", "package:2 [numa] l2:80(size=1MB) core:1 pu:1"},
    {"2x Grace", "package:2 [numa] l3:1(size=114MB) l2:72(size=1MB) core:1 pu:1"},
    {"1x Graviton 3", "package:1 [numa] l3:1(size=32MB) l2:64(size=1MB) core:1 pu:1"},
    {"1x A64FX (Fugaku)", "package:1 group:4 [numa] l2:1(size=8MB) core:12 pu:1"},
    {"2x Kunpeng 920", "package:2 group:2 [numa] l3:1(size=32MB) l2:32(size=512KB) core:1 pu:1"},
    {"2x ThunderX2 CN9980", "package:2 [numa] l3:1(size=32MB) l2:32(size=256KB) core:1 pu:4"},
    {"2x Power9 (Summit, Sierra)", "package:2 [numa] l3:11(size=10MB) core:2 pu:4"},
};

int main(int argc, char **argv)
{
    struct totals totals = {0};
    printf("%-44s %9s | most in a domain, all levels: memory priority, hwloc-distrib, compact, "
           "scatter, OMP spread, mpibind | least last-level cache, KiB: the same | mean distance "
           "of neighbours: memory and communication priority, the others | where measured, GB/s of "
           "a rank\n",
           "machine", "ranks x t");
    for (int i = 1; i < argc; i++) {
        do_path(argv[i], &totals);
    }
    if (argc < 2) {
        do_path(FIXTURE_TOPOLOGIES, &totals);
    }
    for (size_t i = 0; i < sizeof modern / sizeof *modern; i++) {
        do_machine(modern[i].name, modern[i].description, &totals);
    }
    printf(
        "%zu machines, %zu cases; another is better in one figure and not worse in the rest: %zu, "
        "without a reason: %zu\n",
        totals.machines, totals.cases, totals.beaten, totals.unexplained);
    return totals.unexplained > 0;
}
