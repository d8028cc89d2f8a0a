/* How good are the mappings on machines of others? For every topology given (hwloc XML files or
 * folders of them), maps 2, 4, half and all cores with both priorities and compares with
 * hwloc-distrib, compact and scatter:
 *
 *   memory priority         most workers in one memory domain, and least last-level cache of a
 *                           worker, must be no worse than in the best of the three;
 *   communication priority  mean distance of neighbours in worker order (layers of the topology
 * profile, 1 is nearest) must not exceed compact's, and no two workers on one core while cores are
 * free.
 *
 * Without an argument: the topologies beside the repository (../shared), else the fixtures in it.
 * Prints one line per case and every case that falls short with its reason; exit status 1 when one
 * has none.
 */
#include <dirent.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mapper/command/predict.h"
#include "mapper/map.h"
#include "mapper/traffic/orders.h"

enum rival { DISTRIB, COMPACT, SCATTER, RIVALS };
static const char *const rival_names[RIVALS] = {"hwloc-distrib", "compact", "scatter"};

struct machine {
    const char *name;
    struct servet_profile *profile;
    struct map_view view;
    hwloc_topology_t topology;
    uint32_t *rivals[RIVALS]; /* leaves in worker order; that of hwloc-distrib is made for each
                                 number of workers */
    uint32_t cores;
    int llc; /* index of the last cache level in struct map_figures, -1: none */
};

struct totals {
    size_t machines, cases, short_of_memory, short_of_cache, short_of_latency, doubled, unexplained;
};

static void *needed(void *memory)
{
    if (!memory) {
        fprintf(stderr, "quality: out of memory\n");
        exit(1);
    }
    return memory;
}

static void distribute(struct machine *m, unsigned workers)
{
    hwloc_obj_t root = hwloc_get_root_obj(m->topology);
    hwloc_bitmap_t *sets = needed(calloc(workers, sizeof *sets));
    hwloc_distrib(m->topology, &root, 1, sets, workers, INT_MAX, 0);
    for (unsigned i = 0; i < workers; i++) {
        m->rivals[DISTRIB][i] = map_view_leaf(&m->view, (uint32_t)hwloc_bitmap_first(sets[i]));
        hwloc_bitmap_free(sets[i]);
    }
    free(sets);
}

static struct map_figures figures(struct machine *m, const uint32_t *leaves, size_t workers)
{
    struct map_figures out;
    if (map_figures_of(&m->view, leaves, workers, &out) < 0) {
        needed(NULL);
    }
    return out;
}

static struct map_figures mapped(struct machine *m, enum map_priority priority, size_t workers,
                                 uint32_t *leaves)
{
    struct map_request request = {.priority = priority, .workers = workers};
    struct servet_error error;
    if (map_workers(m->profile, &request, leaves, NULL, &error) < 0) {
        fprintf(stderr, "quality: %s: %s\n", m->name, error.text);
        exit(1);
    }
    for (size_t i = 0; i < workers; i++) {
        leaves[i] = map_view_leaf(&m->view, leaves[i]);
    }
    return figures(m, leaves, workers);
}

/* What the weights do not know of this machine, or NULL: then a case that falls short is a
 * defect. */
static const char *reason(const struct machine *m)
{
    const struct map_class *class = &m->view.classes[0];
    const struct profile_class *of = class->of;
    if (class->kind_count > 1) {
        return "the most capable kind of core comes first, and kinds are not mixed while one "
               "suffices";
    }
    size_t last_levels = 0;
    for (size_t i = 0; i < of->cache_count; i++) {
        if ((int)of->caches[i].level - 1 == m->llc) {
            last_levels++;
            if (of->caches[i].pus.count && of->caches[i].pus.count < of->pus.count &&
                last_levels == 1 && i + 1 == of->cache_count) {
                return "rule 1 weighs PUs without a last-level cache less";
            }
        }
    }
    return last_levels > 1 ? "rule 1 counts who shares a cache, not how large it is" : NULL;
}

static double llc_of(const struct machine *m, const struct map_figures *f)
{
    return m->llc < 0 ? 0 : f->cache_worst_bytes[m->llc];
}

static void say_short(const struct machine *m, size_t workers, const char *what, enum rival rival,
                      double ours, double theirs, struct totals *totals)
{
    const char *why = reason(m);
    totals->unexplained += !why;
    printf("    falls short: %s, %zu workers: %s %g, %s has %g (%s)\n", m->name, workers, what,
           ours, rival_names[rival], theirs, why ? why : "no reason known");
}

static void judge_memory(const struct machine *m, size_t workers, const struct map_figures *ours,
                         const struct map_figures *rivals, struct totals *totals)
{
    bool memory = false, cache = false;
    for (enum rival r = 0; r < RIVALS; r++) {
        if (!memory && ours->memory_levels && ours->memory_most[0] > rivals[r].memory_most[0]) {
            memory = true;
            say_short(m, workers, "most workers in a memory domain", r, ours->memory_most[0],
                      rivals[r].memory_most[0], totals);
        }
        if (!cache && llc_of(m, ours) < llc_of(m, &rivals[r])) {
            cache = true;
            say_short(m, workers, "least last-level cache (KiB)", r, llc_of(m, ours) / 1024,
                      llc_of(m, &rivals[r]) / 1024, totals);
        }
    }
    totals->short_of_memory += memory;
    totals->short_of_cache += cache;
}

static void judge_communication(const struct machine *m, size_t workers,
                                const struct map_figures *ours, const struct map_figures *compact,
                                struct totals *totals)
{
    if (ours->neighbour_mean > compact->neighbour_mean * (1 + 1e-9)) {
        totals->short_of_latency++;
        say_short(m, workers, "mean distance of neighbours", COMPACT, ours->neighbour_mean,
                  compact->neighbour_mean, totals);
    }
}

static void compare(struct machine *m, size_t workers, struct totals *totals)
{
    struct map_figures rivals[RIVALS];
    uint32_t *leaves = needed(calloc(workers, sizeof *leaves));
    distribute(m, (unsigned)workers);
    for (enum rival r = 0; r < RIVALS; r++) {
        rivals[r] = figures(m, m->rivals[r], workers);
    }
    struct map_figures memory = mapped(m, MAP_MEMORY, workers, leaves);
    struct map_figures communication = mapped(m, MAP_COMMUNICATION, workers, leaves);
    printf("%-44.44s %4zu | %4u %4u %4u %4u | %7.0f %7.0f %7.0f %7.0f | %5.2f %5.2f %5.2f %5.2f\n",
           m->name, workers, memory.memory_most[0], rivals[0].memory_most[0],
           rivals[1].memory_most[0], rivals[2].memory_most[0], llc_of(m, &memory) / 1024,
           llc_of(m, &rivals[0]) / 1024, llc_of(m, &rivals[1]) / 1024, llc_of(m, &rivals[2]) / 1024,
           communication.neighbour_mean, rivals[0].neighbour_mean, rivals[1].neighbour_mean,
           rivals[2].neighbour_mean);
    judge_memory(m, workers, &memory, rivals, totals);
    judge_communication(m, workers, &communication, &rivals[COMPACT], totals);
    if (memory.core_most > 1 || communication.core_most > 1) {
        totals->doubled++;
        printf("    falls short: %s, %zu workers: two on one core\n", m->name, workers);
    }
    totals->cases++;
    free(leaves);
}

static uint32_t count_cores(const struct map_view *view)
{
    const struct map_groups *cores = &view->classes[0].cores;
    uint32_t count = cores->group_count;
    for (uint32_t i = 0; i < cores->item_count; i++) {
        count += cores->group_of[i] == MAP_NONE;
    }
    return count;
}

static bool open_machine(const char *path, struct machine *m)
{
    struct servet_error error;
    if (profile_from_hwloc(path, &m->profile, &error) < 0) {
        printf("%-44.44s left out: %s\n", m->name, error.text);
        return false;
    }
    if (map_view_make(m->profile, MAP_MEMORY, 1, &m->view, &error) < 0 ||
        hwloc_topology_init(&m->topology) < 0 || hwloc_topology_set_xml(m->topology, path) < 0 ||
        hwloc_topology_load(m->topology) < 0) {
        needed(NULL);
    }
    m->cores = count_cores(&m->view);
    for (enum rival r = 0; r < RIVALS; r++) {
        m->rivals[r] = needed(calloc(m->view.leaf_count, sizeof *m->rivals[r]));
    }
    if (map_order_compact(&m->view, m->rivals[COMPACT]) < 0 ||
        map_order_scatter(&m->view, m->rivals[SCATTER]) < 0) {
        needed(NULL);
    }
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

static void do_file(const char *path, struct totals *totals)
{
    const char *slash = strrchr(path, '/');
    struct machine m = {.name = slash ? slash + 1 : path};
    if (!open_machine(path, &m)) {
        return;
    }
    totals->machines++;
    uint32_t numbers[] = {2, 4, m.cores / 2, m.cores};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        bool repeated = false;
        for (size_t j = 0; j < i; j++) {
            repeated = repeated || numbers[j] == numbers[i];
        }
        if (!repeated && numbers[i] >= 2 && numbers[i] <= m.cores) {
            compare(&m, numbers[i], totals);
        }
    }
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
        do_file(path, totals);
        return;
    }
    int count = scandir(path, &entries, is_xml, alphasort);
    for (int i = 0; i < count; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        do_file(file, totals);
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
}

int main(int argc, char **argv)
{
    struct totals totals = {0};
    printf("%-44s %4s | %-19s | %-31s | %s\n", "", "", "most in a domain",
           "least last-level cache, KiB", "mean distance of neighbours");
    printf("%-44s %4s | %4s %4s %4s %4s | %7s %7s %7s %7s | %5s %5s %5s %5s\n", "machine", "n",
           "mem", "dist", "comp", "scat", "mem", "distrib", "compact", "scatter", "comm", "dist",
           "comp", "scat");
    for (int i = 1; i < argc; i++) {
        do_path(argv[i], &totals);
    }
    if (argc < 2) {
        do_path(access(SHARED_TOPOLOGIES, R_OK) == 0 ? SHARED_TOPOLOGIES : FIXTURE_TOPOLOGIES,
                &totals);
    }
    printf("%zu machines, %zu cases; worse than the best of the others: memory domain %zu, "
           "last-level cache %zu; "
           "neighbours farther than compact: %zu; two on one core: %zu\n",
           totals.machines, totals.cases, totals.short_of_memory, totals.short_of_cache,
           totals.short_of_latency, totals.doubled);
    return totals.unexplained || totals.doubled;
}
