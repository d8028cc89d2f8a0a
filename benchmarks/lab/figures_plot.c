/* Figures 2 to 5 of the 2012 mapping paper as pictures: bars for each number of cores. */
#include <limits.h>
#include <string.h>

#include "benchmarks/bench/report.h"
#include "benchmarks/lab/lab.h"

static const char *const colours[LAB_PLACEMENTS] = {"#888888", "#1b7837", "#2166ac"};
#define PANEL_PIXELS 400

/* Quantities of a point, in the order of its columns. */
enum { BANDWIDTH, INCREASE, MESSAGE, QUANTITIES };

static void write_points(FILE *gnuplot, size_t index, const struct lab_figure *figure)
{
    fprintf(gnuplot, "$f%zu << EOD\n", index);
    for (size_t i = 0; i < figure->count; i++) {
        const struct lab_point *point = &figure->points[i];
        fprintf(gnuplot, "%u", point->cores);
        for (size_t p = 0; p < figure->placements; p++) {
            fprintf(gnuplot, " %g %g %g", point->of[p].bytes_per_s * 1e-9, bench_increase(point, p),
                    point->of[p].ring_seconds * 1e6);
        }
        fprintf(gnuplot, "\n");
    }
    fprintf(gnuplot, "EOD\n");
}

static void panel(FILE *gnuplot, size_t index, const struct lab_figure *figure, const char *label,
                  size_t what)
{
    size_t first = what == INCREASE ? LAB_MEMORY : LAB_DEFAULT;
    fprintf(gnuplot, "set ylabel '%s'\nplot", label);
    for (size_t p = first; p < figure->placements; p++) {
        fprintf(gnuplot, "%s $f%zu using %zu:xtic(1) lc rgb '%s' title '%s'", p > first ? "," : "",
                index, 2 + QUANTITIES * p + what, colours[p], bench_placements[p]);
    }
    fprintf(gnuplot, "\n");
}

/* One machine: bandwidth, increase and messages. Several (hybrid programs): the increase on
 * each. */
static void plot(const char *folder, const struct lab_figure *figures, size_t count)
{
    char path[PATH_MAX];
    unsigned panels = count > 1 ? (unsigned)count : QUANTITIES;
    snprintf(path, sizeof path, "%s/figure-%s.svg", folder, figures[0].number);
    FILE *gnuplot = bench_plot_open(path, PANEL_PIXELS * panels, PANEL_PIXELS);
    for (size_t i = 0; i < count; i++) {
        write_points(gnuplot, i, &figures[i]);
    }
    fprintf(
        gnuplot,
        "set style data histograms\nset style fill solid 0.7\nset xlabel 'cores'\nset grid ytics\n"
        "set key outside bottom center horizontal\nset yrange [0:*]\nset multiplot layout 1,%u "
        "title \"",
        panels);
    bench_plot_text(gnuplot, figures[0].title);
    for (size_t i = 1; i < count; i++) {
        bench_plot_text(gnuplot, " | ");
        bench_plot_text(gnuplot, figures[i].title);
    }
    fprintf(gnuplot, " - PREDICTED from what was measured on simulated machines\"\n");
    for (size_t i = 0; i < count; i++) {
        if (count == 1) {
            panel(gnuplot, i, &figures[i], "memory bandwidth, GB/s", BANDWIDTH);
        }
        panel(gnuplot, i, &figures[i], "increase of memory bandwidth, %", INCREASE);
        if (count == 1) {
            panel(gnuplot, i, &figures[i], "message to the next worker, us", MESSAGE);
        }
    }
    fprintf(gnuplot, "unset multiplot\n");
    bench_plot_close(gnuplot, path);
}

void bench_figures_plot(const char *folder, const struct lab_figure *figures, size_t count)
{
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && strcmp(figures[next].number, figures[i].number) == 0;) {
            next++;
        }
        plot(folder, &figures[i], next - i);
    }
}
