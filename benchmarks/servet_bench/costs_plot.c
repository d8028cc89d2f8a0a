#include "benchmarks/servet_bench/costs_plot.h"

#include <math.h>

#include "benchmarks/servet_bench/plot.h"

#define WIDTH 900
#define BAR_HEIGHT 26    /* of one way, in pixels */
#define PANEL_HEIGHT 110 /* of what stands around the bars of a panel */
#define LABELS 0.34      /* share of the width that the names take */

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

/* A logarithmic axis has no zero: bars begin at a tenth of the shortest. */
#define BEGIN 0.1

static double shortest(const json_t *cost)
{
    const json_t *way;
    size_t i;
    double least = INFINITY;
    json_array_foreach(json_object_get(cost, "ways"), i, way)
    {
        const json_t *seconds = json_object_get(way, "seconds");
        least = json_is_number(seconds) ? fmin(least, json_number_value(seconds)) : least;
    }
    return least;
}

static size_t ways_measured(const json_t *cost)
{
    const json_t *way;
    size_t i, count = 0;
    json_array_foreach(json_object_get(cost, "ways"), i, way)
    {
        count += json_is_number(json_object_get(way, "seconds"));
    }
    return count;
}

/* Bars from top to bottom, in the order of the table. */
static void write_bars(FILE *gnuplot, const json_t *cost, size_t panel, size_t bars)
{
    const json_t *way;
    size_t i, row = 0;
    fprintf(gnuplot, "$panel%zu << EOD\n", panel);
    json_array_foreach(json_object_get(cost, "ways"), i, way)
    {
        if (json_is_number(json_object_get(way, "seconds"))) {
            fprintf(gnuplot, "%zu %g \"", bars - row++,
                    json_number_value(json_object_get(way, "seconds")));
            plot_text(gnuplot, text(way, "name"));
            fprintf(gnuplot, "\"\n");
        }
    }
    fprintf(gnuplot, "EOD\n");
}

static void draw_panel(FILE *gnuplot, const json_t *cost, size_t panel, size_t bars, double top,
                       double height)
{
    fprintf(gnuplot, "set title \"");
    plot_text(gnuplot, text(cost, "what"));
    double begin = BEGIN * shortest(cost);
    fprintf(gnuplot,
            "\"\nset origin 0,%g\nset size 1,%g\nset yrange [0.4:%g]\nset xrange [%g:*]\n"
            "plot $panel%zu using 2:1:(%g):2:(column(1) - 0.35):(column(1) + 0.35):yticlabels(3) "
            "with boxxyerror lc rgb '#1b7837' notitle\n",
            top - height, height, (double)bars + 0.6, begin, panel, begin);
}

void costs_plot(const char *path, const json_t *costs)
{
    const json_t *cost;
    size_t i;
    double pixels = 0, top = 1;
    json_array_foreach(costs, i, cost)
    {
        pixels +=
            (double)ways_measured(cost) * BAR_HEIGHT + (ways_measured(cost) ? PANEL_HEIGHT : 0);
    }
    if (pixels <= 0) {
        return;
    }
    FILE *gnuplot = report_plot_open(path, WIDTH, (unsigned)pixels);
    json_array_foreach(costs, i, cost)
    {
        write_bars(gnuplot, cost, i, ways_measured(cost));
    }
    fprintf(gnuplot,
            "set multiplot\nset logscale x\nset format x '%%.0s %%cs'\nset style fill solid 0.7\n"
            "set grid xtics\nset lmargin at screen %g\nset rmargin at screen 0.96\nset ytics "
            "nomirror scale 0\n",
            LABELS);
    json_array_foreach(costs, i, cost)
    {
        size_t bars = ways_measured(cost);
        double height = ((double)bars * BAR_HEIGHT + PANEL_HEIGHT) / pixels;
        if (bars) {
            draw_panel(gnuplot, cost, i, bars, top, height);
            top -= height;
        }
    }
    fprintf(gnuplot, "unset multiplot\n");
    report_plot_close(gnuplot, path);
}
