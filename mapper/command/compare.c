/* Predicted figures of this mapping, beside compact and scatter: from the profile alone, so
 * that it can be asked before a job runs. */
#include "mapper/command/command.h"

#include <stdlib.h>

#include "profile/base/cli.h"
#include "profile/scope.h"

enum { MAPPED = MAP_KNOWN_ORDERS, COLUMNS };

#define KIB 1024.0
#define GIGA 1e9
#define MICRO 1e-6

struct comparing {
    struct map_view *view;
    struct map_figures figures[COLUMNS];
};

/* The first `count` of an order that may be used, going round where there are fewer. */
static void take_allowed(const struct map_view *view, const struct profile_set *allowed,
                         const uint32_t *order, size_t count, uint32_t *leaves)
{
    size_t taken = 0;
    while (taken < count) { /* map_workers() has refused that nothing is allowed */
        for (uint32_t i = 0; i < view->leaf_count && taken < count; i++) {
            if (profile_set_has(allowed, view->pu[order[i]])) {
                leaves[taken++] = order[i];
            }
        }
    }
}

static void fill_mapping(struct comparing *c, const struct map_mapping *plan,
                         const struct profile_set *allowed)
{
    const size_t workers = plan->place_count;
    struct map_arena *arena = &c->view->arena;
    uint32_t *leaves = cli_needed(map_arena_get(arena, workers, sizeof *leaves));
    uint32_t *order = cli_needed(map_arena_get(arena, c->view->leaf_count, sizeof *order));
    for (size_t i = 0; i < workers; i++) {
        leaves[i] = map_view_leaf(c->view, plan->places[i].pu);
    }
    cli_done(map_figures_of(c->view, leaves, workers, &c->figures[MAPPED]));
    for (enum map_known_order known = 0; known < MAP_KNOWN_ORDERS; known++) {
        map_order_known(c->view, known, order);
        take_allowed(c->view, allowed, order, workers, leaves);
        cli_done(map_figures_of(c->view, leaves, workers, &c->figures[known]));
    }
}

static void print_compared(FILE *out, const char *name, const double *values, const char *format,
                           double unit)
{
    fprintf(out, "%-46s", name);
    for (size_t column = 0; column < COLUMNS; column++) {
        char text[32];
        snprintf(text, sizeof text, format, values[column] / unit);
        fprintf(out, " %9s", values[column] > 0 ? text : "-");
    }
    fputc('\n', out);
}

#define LINE(out, c, name, field, format, unit)                                                    \
    print_compared(out, name,                                                                      \
                   (const double[]){(double)(c)->figures[MAPPED].field,                            \
                                    (double)(c)->figures[MAP_COMPACT].field,                       \
                                    (double)(c)->figures[MAP_SCATTER].field},                      \
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

void map_compare(FILE *out, const struct map_mapping *plan, const struct profile_set *allowed)
{
    FREED_BY(map_view_free) struct map_view view;
    struct servet_error error;
    cli_check(map_view_make(plan->profile, plan->priority, plan->place_count, &view, &error),
              &error);
    struct comparing c = {.view = &view};
    fill_mapping(&c, plan, allowed);
    print_all(out, &c, plan);
}

/* -- Compact and scatter, the two common orders, to compare with. Both take one PU of every core
 * before any second one. -- */

/* A PU in the order of the hierarchy, and its number inside each group around it, from the node
 * inwards. */
struct standing {
    uint32_t leaf, sibling; /* place among the PUs of its core */
    uint32_t *ordinal, depth;
};

/* Innermost ordinal first: the node changes fastest. */
static int by_sibling_and_ordinal(const void *a, const void *b)
{
    const struct standing *x = a, *y = b;
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

/* Its groups are those of the mapper's tree, from the widest to the narrowest, and itself. A group
 * that the PU before it is in, too, keeps its number; the next one in the same outer group has the
 * next number. */
static void number_groups(const struct map_order *tree, uint32_t place, struct standing *out)
{
    const uint32_t *own = tree->group + (size_t)tree->item[place] * tree->depth;
    bool same = place > 0;
    const uint32_t *before = same ? tree->group + (size_t)tree->item[place - 1] * tree->depth : own;
    for (uint32_t d = 0; d <= tree->depth; d++) {
        bool shared = same && d < tree->depth && own[d] == before[d];
        out->ordinal[d + 1] = same ? out[-1].ordinal[d + 1] + !shared : 0;
        same = shared;
    }
    out->depth = tree->depth + 2;
}

void map_order_known(struct map_view *view, enum map_known_order order, uint32_t *leaves)
{
    struct map_arena *arena = &view->arena;
    struct map_order *trees = cli_needed(map_arena_get(arena, view->class_count, sizeof *trees));
    struct standing *all = cli_needed(map_arena_get(arena, view->leaf_count, sizeof *all)),
                    *at = all;
    for (size_t c = 0; c < view->class_count; c++) {
        cli_done(map_order_by_all(arena, &view->classes[c], view->priority, &trees[c]));
    }
    for (uint32_t node = 0; node < view->node_count; node++) {
        const struct map_node *of = &view->nodes[node];
        const struct map_order *tree = &trees[of->class_index];
        size_t pus = view->classes[of->class_index].of->pus.count;
        for (uint32_t place = 0; place < pus; place++, at++) {
            *at = (struct standing){.leaf = of->first_leaf + tree->item[place], .depth = 1};
            at->sibling = map_core_mates_before(view, at->leaf, NULL);
            at->ordinal =
                cli_needed(map_arena_get(arena, (size_t)tree->depth + 2, sizeof *at->ordinal));
            at->ordinal[0] = order == MAP_COMPACT ? (uint32_t)(at - all) : node;
            if (order == MAP_SCATTER) {
                number_groups(tree, place, at);
            }
        }
    }
    qsort(all, view->leaf_count, sizeof *all, by_sibling_and_ordinal);
    for (uint32_t i = 0; i < view->leaf_count; i++) {
        leaves[i] = all[i].leaf;
    }
}
