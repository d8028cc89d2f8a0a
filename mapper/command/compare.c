/* What this mapping is predicted to give, beside compact and scatter: from the profile alone, so
 * that it can be asked before a job runs. */
#include "mapper/command/command.h"

#include <errno.h>

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
        rc = column == COMPACT ? map_order_compact(c->view, order)
                               : map_order_scatter(c->view, order);
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
        snprintf(name, sizeof name, "most workers in a memory domain of level %u", level + 1);
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
