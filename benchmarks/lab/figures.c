/* Tables 1 and 2 and Figures 2 to 5 of the 2012 mapping paper, from end to end: its machines are
 * measured by servet-probe on the simulated backend (machines.c), servet-map's algorithm places
 * their workers by what was found, and the model says what a placement is worth (predict.c). So
 * the bandwidths are predictions: the paper measured NPB programs, which this cannot run on its
 * machines; what a memory-bound program gains is at most what is shown here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/lab/lab.h"
#include "mapper/map.h"

const char *const bench_placements[LAB_PLACEMENTS] = {"default", "servet-mem", "servet-comm"};

/* The tables place four workers on two nodes of the x86_64 cluster. */
enum { TABLE_WORKERS = 4, TABLE_PUS = 16 };

/* The paper's machines. The caches of the Itaniums are private and take no part in any placement
 * (papers-machines probes them), so only memory and messages are measured there; on the Nehalem
 * nodes the third level is shared by pairs, which only a measurement of the sizes finds.
 * 32 nodes of the Finis Terrae (142 in all) give 128 workers a memory bus each, as Section 4.3 says
 * its Servet runs did; the Nehalem cluster has 8 (Section 4.2). */
enum { NEHALEM, FINIS_TERRAE, SUPERDOME, MACHINES };
static const struct {
    const char *node, *probes, *pair; /* without a pair: one shared-memory machine */
    uint32_t nodes;
} machines[MACHINES] = {
    [NEHALEM] = {"nehalem", "cache,sharing,memory,message", "nehalem-2-nodes", 8},
    [FINIS_TERRAE] = {"finis-terrae", "memory,message", "finis-terrae-2-nodes", 32},
    [SUPERDOME] = {"superdome", "memory,message", NULL, 1},
};

static const struct figure_source {
    const char *number, *title;
    size_t machine;
    bool hybrid; /* one rank a node with as many threads as it has workers */
    uint32_t cores[LAB_CORES_LIMIT];
} sources[] = {
    {"2", "x86_64 cluster: 8 nodes of 2 Nehalem packages", NEHALEM, false, {4, 8, 16, 32, 64}},
    {"3", "Finis Terrae: nodes of 16 Itanium 2 cores", FINIS_TERRAE, false, {8, 16, 32, 64, 128}},
    {"4", "Superdome: 128 Itanium 2 cores", SUPERDOME, false, {8, 16, 32, 64, 128}},
    {"5", "Hybrid programs, x86_64 cluster", NEHALEM, true, {4, 8, 16, 32, 64}},
    {"5", "Hybrid programs, Finis Terrae", FINIS_TERRAE, true, {8, 16, 32, 64, 128}},
};
#define FIGURES (sizeof sources / sizeof *sources)

/* -- measuring -- */

static int measure(size_t machine, struct servet_profile **out, struct servet_error *error)
{
    struct servet_profile *node, *pair;
    int rc = bench_probed(machines[machine].node, machines[machine].probes, &node, error);
    if (rc || !machines[machine].pair) {
        *out = rc ? NULL : node;
        return rc;
    }
    rc = bench_probed(machines[machine].pair, "message", &pair, error);
    if (rc) {
        profile_free(node);
        return rc;
    }
    rc = bench_cluster(node, pair, machines[machine].nodes);
    profile_free(pair);
    if (rc) {
        profile_free(node);
        return profile_error(error, rc, "%s: expected a layer that joins its two nodes",
                             machines[machine].pair);
    }
    *out = node;
    return 0;
}

/* -- placing -- */

static int place(const struct servet_profile *profile, size_t placement, uint32_t cores,
                 uint32_t *workers, struct servet_error *error)
{
    if (placement == LAB_DEFAULT) {
        return bench_default_placement(profile, cores, workers);
    }
    struct map_request request = {
        .priority = placement == LAB_MEMORY ? MAP_MEMORY : MAP_COMMUNICATION, .workers = cores};
    return map_workers(profile, &request, workers, NULL, error);
}

/* Section 4.5: one process a node, on the nodes that as many workers get, its threads by memory
 * priority. */
static int place_hybrid(const struct servet_profile *profile, uint32_t nodes, uint32_t cores,
                        uint32_t *workers, struct servet_error *error)
{
    struct map_domain_request request = {
        .priority = MAP_MEMORY, .ranks = nodes, .threads_each = cores / nodes};
    return map_domains(profile, &request, workers, error);
}

static int predict_one(const struct servet_profile *profile, const struct figure_source *source,
                       size_t placement, struct lab_point *point, struct servet_error *error)
{
    struct prediction *out = &point->of[placement];
    uint32_t *workers = calloc(point->cores, sizeof *workers);
    if (!workers) {
        return profile_error(error, -ENOMEM, "not enough memory for %u workers", point->cores);
    }
    int rc = place(profile, placement, point->cores, workers, error);
    if (!rc) {
        rc = bench_predict(profile, workers, point->cores, out);
    }
    if (!rc && source->hybrid && placement == LAB_MEMORY) {
        rc = place_hybrid(profile, out->nodes, point->cores, workers, error);
        rc = rc ? rc : bench_predict(profile, workers, point->cores, out);
    }
    free(workers);
    return rc;
}

static int predict(const struct servet_profile *profile, const struct figure_source *source,
                   struct lab_figure *figure, struct servet_error *error)
{
    *figure = (struct lab_figure){.number = source->number,
                                  .title = source->title,
                                  .placements = source->hybrid ? LAB_MEMORY + 1 : LAB_PLACEMENTS,
                                  .count = LAB_CORES_LIMIT};
    for (size_t i = 0; i < LAB_CORES_LIMIT; i++) {
        figure->points[i].cores = source->cores[i];
        for (size_t placement = 0; placement < figure->placements; placement++) {
            int rc = predict_one(profile, source, placement, &figure->points[i], error);
            if (rc) {
                return rc;
            }
        }
    }
    return 0;
}

double bench_increase(const struct lab_point *point, size_t placement)
{
    return 100.0 * (point->of[placement].bytes_per_s / point->of[LAB_DEFAULT].bytes_per_s - 1.0);
}

/* -- tables of weights -- */

struct weights {
    FILE *out;
    json_t *rows;
};

/* Totals of one row as the paper prints them: '-' for who is taken (null in JSON). */
static void keep_row(void *context, const struct map_row *row)
{
    struct weights *weights = context;
    json_t *totals = json_array();
    fprintf(weights->out, "  %2zu", row->worker + 1);
    for (size_t i = 0; i < row->pu_count; i++) {
        double total = (double)row->total[i] / (double)row->denominator;
        if (row->taken[i]) {
            fprintf(weights->out, "    -");
        } else {
            fprintf(weights->out, " %4g", total);
        }
        json_array_append_new(totals, row->taken[i] ? json_null() : json_real(total));
    }
    fprintf(weights->out, "   -> %u\n", row->chosen);
    json_array_append_new(
        weights->rows, json_pack("{s:o,s:I}", "totals", totals, "chosen", (json_int_t)row->chosen));
}

static int print_table(FILE *out, const char *number, enum map_priority priority,
                       const struct servet_profile *profile, json_t *json)
{
    struct weights weights = {out, json_array()};
    struct map_explainer explainer = {keep_row, &weights};
    struct profile_set two_nodes;
    uint32_t chosen[TABLE_WORKERS], pus[TABLE_PUS];
    for (uint32_t i = 0; i < TABLE_PUS; i++) {
        pus[i] = i;
    }
    int rc = profile_set_from_array(pus, TABLE_PUS, &two_nodes);
    if (rc) {
        json_decref(weights.rows);
        return rc;
    }
    fprintf(out, "Like Table %s, from measured layers: weights of %d PUs before each choice\n",
            number, TABLE_PUS);
    const struct map_request request = {
        .priority = priority, .workers = TABLE_WORKERS, .allowed = &two_nodes};
    rc = map_workers(profile, &request, chosen, &explainer, NULL);
    fprintf(out, "\n");
    profile_set_free(&two_nodes);
    json_array_append_new(json, json_pack("{s:s,s:o}", "table", number, "rows", weights.rows));
    return rc;
}

/* -- output -- */

static void print_figure(FILE *out, const struct lab_figure *figure)
{
    fprintf(out, "Like Figure %s, predicted from the measured profile: %s\n", figure->number,
            figure->title);
    fprintf(out, "  %5s  %-12s %5s %12s %10s %14s %14s\n", "cores", "placement", "nodes",
            "memory GB/s", "increase", "ring us/msg", "pairs us/msg");
    for (size_t i = 0; i < figure->count; i++) {
        for (size_t placement = 0; placement < figure->placements; placement++) {
            const struct prediction *p = &figure->points[i].of[placement];
            fprintf(out, "  %5u  %-12s %5u %12.2f %9.0f%% %14.1f %14.1f\n", figure->points[i].cores,
                    bench_placements[placement], p->nodes, p->bytes_per_s * 1e-9,
                    bench_increase(&figure->points[i], placement), p->ring_seconds * 1e6,
                    p->pair_seconds * 1e6);
        }
    }
    fprintf(out, "\n");
}

static json_t *figure_json(const struct lab_figure *figure)
{
    json_t *list = json_array();
    for (size_t i = 0; i < figure->count; i++) {
        for (size_t placement = 0; placement < figure->placements; placement++) {
            const struct prediction *p = &figure->points[i].of[placement];
            json_array_append_new(list, json_pack("{s:I,s:s,s:I,s:f,s:f,s:f}", "cores",
                                                  (json_int_t)figure->points[i].cores, "placement",
                                                  bench_placements[placement], "nodes",
                                                  (json_int_t)p->nodes, "bytes_per_s",
                                                  p->bytes_per_s, "ring_seconds", p->ring_seconds,
                                                  "pair_seconds", p->pair_seconds));
        }
    }
    return json_pack(
        "{s:s,s:s,s:s,s:o}", "figure", figure->number, "machine", figure->title, "origin",
        "predicted from what was measured on a simulated machine, not measured", "points", list);
}

int bench_figures(FILE *out, const char *folder, json_t **json, struct servet_error *error)
{
    struct servet_profile *profiles[MACHINES] = {NULL};
    struct lab_figure figures[FIGURES];
    json_t *list = json_array();
    int rc = 0;
    for (size_t i = 0; !rc && i < MACHINES; i++) {
        rc = measure(i, &profiles[i], error);
    }
    rc = rc ? rc : print_table(out, "1", MAP_MEMORY, profiles[NEHALEM], list);
    rc = rc ? rc : print_table(out, "2", MAP_COMMUNICATION, profiles[NEHALEM], list);
    for (size_t i = 0; !rc && i < FIGURES; i++) {
        rc = predict(profiles[sources[i].machine], &sources[i], &figures[i], error);
        if (!rc) {
            print_figure(out, &figures[i]);
            json_array_append_new(list, figure_json(&figures[i]));
        }
    }
    for (size_t i = 0; i < MACHINES; i++) {
        profile_free(profiles[i]);
    }
    if (rc) {
        json_decref(list);
        return rc;
    }
    if (folder) {
        bench_figures_plot(folder, figures, FIGURES);
    }
    *json = list;
    return 0;
}
