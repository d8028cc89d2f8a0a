/* The figures of the 2012 mapping paper: its core counts, three placements each, as tables and
 * plots:
 * predictions of the model (predict.c), not measurements. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/bench/report.h"
#include "benchmarks/lab/lab.h"
#include "mapper/map.h"
#include "profile/base/cli.h"

#define CORES_LIMIT 6
#define PLACEMENTS 3

static const char *const placements[PLACEMENTS] = {"default", "servet-mem", "servet-comm"};
static const char *const colours[PLACEMENTS] = {"#888888", "#1b7837", "#2166ac"};

/* `nodes`: 0 for as many as the profile has. 32 nodes of the Finis Terrae (142 in all) give 128
 * workers a memory bus each, as Section 4.3 says its Servet runs did; the Nehalem cluster has 8. */
static const struct machine_figure {
    const char *number, *title, *file;
    uint32_t nodes;
    uint32_t cores[CORES_LIMIT]; /* ended by 0 */
} figures[] = {
    {"2",
     "x86_64 cluster: 8 nodes of 2 Nehalem packages",
     "nehalem-8-nodes.json",
     0,
     {4, 8, 16, 32, 64}},
    {"3",
     "Finis Terrae: nodes of 16 Itanium 2 cores",
     "finis-terrae-2-nodes.json",
     32,
     {8, 16, 32, 64, 128}},
    {"4", "Superdome: 128 Itanium 2 cores", "superdome.json", 0, {8, 16, 32, 64, 128}},
};
#define FIGURES (sizeof figures / sizeof *figures)

struct point {
    uint32_t cores;
    struct prediction of[PLACEMENTS];
};

static struct servet_profile *load(const struct machine_figure *figure)
{
    struct servet_profile *profile;
    struct servet_error error;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", LAB_PROFILES, figure->file);
    if (profile_load(path, &profile, &error)) {
        cli_fail("%s", error.text);
    }
    if (figure->nodes && lab_enlarge(profile, figure->nodes)) {
        cli_fail("%s: expected one class and one network layer", path);
    }
    return profile;
}

static void place(const struct servet_profile *profile, size_t placement, uint32_t cores,
                  struct prediction *out)
{
    struct servet_error error = {0};
    uint32_t *workers = calloc(cores, sizeof *workers);
    if (!workers) {
        cli_fail("out of memory");
    }
    struct map_request request = {.priority = placement == 1 ? MAP_MEMORY : MAP_COMMUNICATION,
                                  .workers = cores};
    int code = placement == 0 ? lab_default_placement(profile, cores, workers)
                              : map_workers(profile, &request, workers, NULL, &error);
    if (code || lab_predict(profile, workers, cores, out)) {
        cli_fail("%u workers cannot be placed: %s", cores, strerror(-code));
    }
    free(workers);
}

static size_t predict(const struct machine_figure *figure, struct point *points)
{
    struct servet_profile *profile = load(figure);
    size_t count = 0;
    for (; count < CORES_LIMIT && figure->cores[count]; count++) {
        points[count].cores = figure->cores[count];
        for (size_t placement = 0; placement < PLACEMENTS; placement++) {
            place(profile, placement, figure->cores[count], &points[count].of[placement]);
        }
    }
    profile_free(profile);
    return count;
}

static double increase(const struct point *point, size_t placement)
{
    return 100.0 * (point->of[placement].bytes_per_s / point->of[0].bytes_per_s - 1.0);
}

static void print_table(FILE *out, const struct machine_figure *figure, const struct point *points,
                        size_t count)
{
    fprintf(out, "Like Figure %s, predicted (not measured): %s\n", figure->number, figure->title);
    fprintf(out, "  %5s  %-12s %5s %12s %10s %14s %14s\n", "cores", "placement", "nodes",
            "memory GB/s", "increase", "ring us/msg", "pairs us/msg");
    for (size_t i = 0; i < count; i++) {
        for (size_t placement = 0; placement < PLACEMENTS; placement++) {
            const struct prediction *p = &points[i].of[placement];
            fprintf(out, "  %5u  %-12s %5u %12.2f %9.0f%% %14.1f %14.1f\n", points[i].cores,
                    placements[placement], p->nodes, p->bytes_per_s * 1e-9,
                    increase(&points[i], placement), p->ring_seconds * 1e6, p->pair_seconds * 1e6);
        }
    }
    fprintf(out, "\n");
}

static json_t *figure_json(const struct machine_figure *figure, const struct point *points,
                           size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        for (size_t placement = 0; placement < PLACEMENTS; placement++) {
            const struct prediction *p = &points[i].of[placement];
            json_array_append_new(
                list, json_pack("{s:I,s:s,s:I,s:f,s:f,s:f}", "cores", (json_int_t)points[i].cores,
                                "placement", placements[placement], "nodes", (json_int_t)p->nodes,
                                "bytes_per_s", p->bytes_per_s, "ring_seconds", p->ring_seconds,
                                "pair_seconds", p->pair_seconds));
        }
    }
    return json_pack("{s:s,s:s,s:s,s:o}", "figure", figure->number, "machine", figure->title,
                     "origin", "predicted from the profile, not measured", "points", list);
}

static void write_points(FILE *gnuplot, const char *block, const struct point *points, size_t count)
{
    fprintf(gnuplot, "$%s << EOD\n", block);
    for (size_t i = 0; i < count; i++) {
        fprintf(gnuplot, "%u", points[i].cores);
        for (size_t p = 0; p < PLACEMENTS; p++) {
            fprintf(gnuplot, " %g %g %g", points[i].of[p].bytes_per_s * 1e-9,
                    increase(&points[i], p), points[i].of[p].ring_seconds * 1e6);
        }
        fprintf(gnuplot, "\n");
    }
    fprintf(gnuplot, "EOD\n");
}

/* Column of quantity `what` (0 bandwidth, 1 increase, 2 message) of placement p in the block
 * above. */
static size_t column(size_t what, size_t p)
{
    return 2 + 3 * p + what;
}

static void panel(FILE *gnuplot, const char *block, const char *label, size_t what, size_t first)
{
    fprintf(gnuplot, "set ylabel '%s'\nplot", label);
    for (size_t p = first; p < PLACEMENTS; p++) {
        fprintf(gnuplot, "%s $%s using %zu:xtic(1) lc rgb '%s' title '%s'", p > first ? "," : "",
                block, column(what, p), colours[p], placements[p]);
    }
    fprintf(gnuplot, "\n");
}

static void begin_plot(FILE *gnuplot, const char *title, unsigned panels)
{
    fprintf(
        gnuplot,
        "set style data histograms\nset style fill solid 0.7\nset xlabel 'cores'\nset grid ytics\n"
        "set key outside bottom center horizontal\nset yrange [0:*]\nset multiplot layout 1,%u "
        "title \"",
        panels);
    bench_plot_text(gnuplot, title);
    fprintf(gnuplot, " - PREDICTED from the profile, not measured\"\n");
}

static void path_of(const char *folder, const char *number, char *path, size_t size)
{
    snprintf(path, size, "%s/figure-%s.svg", folder, number);
}

static void plot_machine(const char *folder, const struct machine_figure *figure,
                         const struct point *points, size_t count)
{
    char path[PATH_MAX];
    path_of(folder, figure->number, path, sizeof path);
    FILE *gnuplot = bench_plot_open(path, 1200, 400);
    write_points(gnuplot, "points", points, count);
    begin_plot(gnuplot, figure->title, 3);
    panel(gnuplot, "points", "memory bandwidth, GB/s", 0, 0);
    panel(gnuplot, "points", "increase over the default, %", 1, 1);
    panel(gnuplot, "points", "message to the next worker, us", 2, 0);
    fprintf(gnuplot, "unset multiplot\n");
    bench_plot_close(gnuplot, path);
}

/* Figure 5 (NPB-MZ): one process a node and a thread on each core that was chosen there, so its
 * memory side is that of Figures 2 and 3; what it shows is the increase on both clusters. */
static void plot_hybrid(const char *folder, struct point points[][CORES_LIMIT],
                        const size_t *counts)
{
    char path[PATH_MAX];
    path_of(folder, "5", path, sizeof path);
    FILE *gnuplot = bench_plot_open(path, 900, 400);
    write_points(gnuplot, "a", points[0], counts[0]);
    write_points(gnuplot, "b", points[1], counts[1]);
    begin_plot(gnuplot,
               "Hybrid programs, one process a node: x86_64 cluster (left), Finis Terrae (right)",
               2);
    panel(gnuplot, "a", "increase of memory bandwidth, %", 1, 1);
    panel(gnuplot, "b", "increase of memory bandwidth, %", 1, 1);
    fprintf(gnuplot, "unset multiplot\n");
    bench_plot_close(gnuplot, path);
}

void lab_figures(FILE *out, const char *folder, json_t **json)
{
    struct point points[FIGURES][CORES_LIMIT];
    size_t counts[FIGURES];
    *json = json_array();
    for (size_t i = 0; i < FIGURES; i++) {
        counts[i] = predict(&figures[i], points[i]);
        print_table(out, &figures[i], points[i], counts[i]);
        json_array_append_new(*json, figure_json(&figures[i], points[i], counts[i]));
        if (folder) {
            plot_machine(folder, &figures[i], points[i], counts[i]);
        }
    }
    if (folder) {
        plot_hybrid(folder, points, counts);
    }
}
