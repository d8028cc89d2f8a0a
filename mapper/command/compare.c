/* Predicted figures of this mapping, beside compact and scatter: from the profile alone, so
 * that it can be asked before a job runs. */
#include "mapper/command/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/traffic/traffic.h"
#include "mapper/worth/worth.h"

enum column { MAPPED, COMPACT, SCATTER, COLUMNS };

#define KIB 1024.0
#define GIGA 1e9
#define MICRO 1e-6

struct comparing {
    struct map_view *view;
    const struct profile_set *allowed;
    size_t workers;
    struct map_figures figures[COLUMNS];
};

/* The first `workers` of an order that may be used, going round where there are fewer. */
static void take(const struct comparing *c, const uint32_t *order, uint32_t *leaves)
{
    size_t taken = 0;
    while (taken < c->workers) {
        size_t before = taken;
        for (uint32_t i = 0; i < c->view->leaf_count && taken < c->workers; i++) {
            if (profile_set_has(c->allowed, c->view->pu[order[i]])) {
                leaves[taken++] = order[i];
            }
        }
        if (taken == before) {
            return; /* nothing is allowed; map_workers() has refused that */
        }
    }
}

static int fill(struct comparing *c, const struct map_mapping *plan)
{
    struct map_arena *arena = &c->view->arena;
    uint32_t *leaves = map_arena_get(arena, c->workers, sizeof *leaves);
    uint32_t *order = map_arena_get(arena, c->view->leaf_count, sizeof *order);
    if (!leaves || !order) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < c->workers; i++) {
        leaves[i] = map_view_leaf(c->view, plan->places[i].pu);
    }
    int rc = map_figures_of(c->view, leaves, c->workers, &c->figures[MAPPED]);
    for (enum column column = COMPACT; rc == 0 && column < COLUMNS; column++) {
        rc = map_order_known(c->view, column == COMPACT ? MAP_COMPACT : MAP_SCATTER, order);
        if (rc == 0) {
            take(c, order, leaves);
            rc = map_figures_of(c->view, leaves, c->workers, &c->figures[column]);
        }
    }
    return rc;
}

static void print_line(FILE *out, const char *name, const double *values, const char *format,
                       double unit)
{
    fprintf(out, "%-46s", name);
    for (enum column column = 0; column < COLUMNS; column++) {
        char text[32];
        snprintf(text, sizeof text, format, values[column] / unit);
        fprintf(out, " %9s", values[column] > 0 ? text : "-");
    }
    fputc('\n', out);
}

#define LINE(out, c, name, field, format, unit)                                                    \
    print_line(out, name,                                                                          \
               (const double[]){(double)(c)->figures[MAPPED].field,                                \
                                (double)(c)->figures[COMPACT].field,                               \
                                (double)(c)->figures[SCATTER].field},                              \
               format, unit)

static void print_memory(FILE *out, const struct comparing *c)
{
    LINE(out, c, "memory bandwidth of the worst worker, GB/s", memory_worst_bytes_per_s, "%.2f",
         GIGA);
    LINE(out, c, "memory bandwidth of a worker on average, GB/s", memory_mean_bytes_per_s, "%.2f",
         GIGA);
    for (uint32_t level = 0; level < c->figures[MAPPED].memory_levels && level < MAP_FIGURE_LEVELS;
         level++) {
        char name[64];
        snprintf(name, sizeof name, "most workers in a group of overhead level %u", level);
        LINE(out, c, name, memory_most[level], "%.0f", 1);
    }
}

static void print_caches(FILE *out, const struct comparing *c)
{
    for (uint32_t level = 0; level < MAP_FIGURE_LEVELS; level++) {
        if (!c->figures[MAPPED].cache_most[level]) {
            continue;
        }
        char name[64];
        snprintf(name, sizeof name, "least L%u cache of a worker, KiB", level + 1);
        LINE(out, c, name, cache_worst_bytes[level], "%.0f", KIB);
        snprintf(name, sizeof name, "L%u cache of a worker on average, KiB", level + 1);
        LINE(out, c, name, cache_mean_bytes[level], "%.0f", KIB);
    }
}

static void print_all(FILE *out, const struct comparing *c, const struct map_mapping *plan)
{
    bool measured = plan->profile->measured;
    fprintf(out, "%-46s %9s %9s %9s\n",
            measured ? "predicted from what was measured" : "predicted, nothing was measured",
            "this", "compact", "scatter");
    print_memory(out, c);
    print_caches(out, c);
    LINE(out, c, "most workers on a core", core_most, "%.0f", 1);
    if (c->view->latencies_known) {
        LINE(out, c, "latency between neighbours, mean, us", neighbour_mean, "%.3f", MICRO);
        LINE(out, c, "latency between neighbours, worst, us", neighbour_worst, "%.3f", MICRO);
    } else {
        LINE(out, c, "layers between neighbours, mean", neighbour_mean, "%.2f", 1);
        LINE(out, c, "layers between neighbours, worst", neighbour_worst, "%.0f", 1);
    }
}

int map_compare(FILE *out, const struct map_mapping *plan, const struct profile_set *allowed,
                struct servet_error *error)
{
    struct map_view view;
    int rc = map_view_make(plan->profile, plan->priority, plan->place_count, &view, error);
    if (rc < 0) {
        return rc;
    }
    struct comparing c = {.view = &view, .allowed = allowed, .workers = plan->place_count};
    rc = fill(&c, plan);
    if (rc == 0) {
        print_all(out, &c, plan);
    }
    map_view_free(&view);
    return rc < 0 ? profile_error(error, rc, "out of memory") : 0;
}

/* -- Compact and scatter, the two orders that everybody knows, to compare with. Both take one PU of
 * every core before any second one, as their tools do. -- */

/* Where a PU is in the hierarchy, from the node inwards: in `group` by the lowest leaf of each
 * group around it, in `ordinal` counted inside the group around that. */
struct path {
    uint32_t leaf, sibling; /* place among the PUs of its core */
    uint32_t *group, *ordinal;
    uint32_t depth;
};

/* Its groups are those of the mapper's tree, from the widest to the narrowest. */
static void fill_path(const struct map_view *view, const struct map_order *trees, uint32_t leaf,
                      struct path *path)
{
    const struct map_node *node = &view->nodes[map_view_node(view, leaf)];
    const struct map_order *tree = &trees[node->class_index];
    const uint32_t *groups = tree->group + (size_t)(leaf - node->first_leaf) * tree->depth;
    path->leaf = leaf;
    path->sibling = map_core_mates_before(view, leaf, NULL);
    path->group[0] = node->first_leaf;
    for (uint32_t level = 0; level < tree->depth; level++) {
        path->group[level + 1] = node->first_leaf + groups[level];
    }
    path->group[tree->depth + 1] = leaf;
    path->depth = tree->depth + 2;
}

static int by_hierarchy(const void *a, const void *b)
{
    const struct path *x = a, *y = b;
    for (uint32_t d = 0; d < x->depth && d < y->depth; d++) {
        if (x->group[d] != y->group[d]) {
            return x->group[d] < y->group[d] ? -1 : 1;
        }
    }
    return x->leaf < y->leaf ? -1 : x->leaf > y->leaf;
}

/* Innermost ordinal first: the node changes fastest. */
static int by_sibling_and_ordinal(const void *a, const void *b)
{
    const struct path *x = a, *y = b;
    if (x->sibling != y->sibling) {
        return x->sibling < y->sibling ? -1 : 1;
    }
    for (uint32_t i = 1; i <= x->depth && i <= y->depth; i++) {
        uint32_t p = x->ordinal[x->depth - i], q = y->ordinal[y->depth - i];
        if (p != q) {
            return p < q ? -1 : 1;
        }
    }
    return x->leaf < y->leaf ? -1 : x->leaf > y->leaf;
}

/* The paths are in the order of the hierarchy. */
static void number_groups(struct path *paths, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct path *path = &paths[i];
        bool same = i > 0;
        for (uint32_t d = 0; d < path->depth; d++) {
            uint32_t before = i && d < path[-1].depth ? path[-1].group[d] : MAP_NONE;
            if (!same) {
                path->ordinal[d] = i && d == 0 ? path[-1].ordinal[0] + 1 : 0;
            } else if (before == path->group[d]) {
                path->ordinal[d] = path[-1].ordinal[d];
            } else {
                path->ordinal[d] = path[-1].ordinal[d] + 1;
                same = false;
            }
        }
    }
}

static struct path *make_paths(struct map_view *view)
{
    struct map_order *trees = map_arena_get(&view->arena, view->class_count, sizeof *trees);
    size_t deepest = 0;
    for (size_t c = 0; c < view->class_count; c++) {
        if (!trees ||
            map_order_by_all(&view->arena, &view->classes[c], view->priority, &trees[c]) < 0) {
            return NULL;
        }
        deepest = trees[c].depth + 2 > deepest ? trees[c].depth + 2 : deepest;
    }
    struct path *paths = map_arena_get(&view->arena, view->leaf_count, sizeof *paths);
    uint32_t *numbers =
        map_arena_get(&view->arena, 2 * deepest * view->leaf_count, sizeof *numbers);
    if (!paths || !numbers) {
        return NULL;
    }
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        paths[leaf].group = numbers;
        paths[leaf].ordinal = numbers + deepest;
        numbers += 2 * deepest;
        fill_path(view, trees, leaf, &paths[leaf]);
    }
    return paths;
}

int map_order_known(struct map_view *view, enum map_known_order order, uint32_t *leaves)
{
    struct path *paths = make_paths(view);
    if (!paths) {
        return -ENOMEM;
    }
    qsort(paths, view->leaf_count, sizeof *paths, by_hierarchy);
    if (order == MAP_SCATTER) {
        number_groups(paths, view->leaf_count);
    }
    for (uint32_t i = 0; order == MAP_COMPACT && i < view->leaf_count; i++) {
        paths[i].ordinal[0] = i;
        paths[i].depth = 1;
    }
    qsort(paths, view->leaf_count, sizeof *paths, by_sibling_and_ordinal);
    for (uint32_t i = 0; i < view->leaf_count; i++) {
        leaves[i] = paths[i].leaf;
    }
    return 0;
}
