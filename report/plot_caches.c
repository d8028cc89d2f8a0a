/* The latency curve with the sizes that were inferred from it, and what the system declares beside them. */
#include "plot.h"

#include "figures.h"

#include <math.h>

/* Sizes closer than this are one mark: their labels would lie on one another. */
#define ONE_MARK 0.02

/* Two lines of text above the plot for each level: the size, and what is declared. As shares of the plot's width, about
 * what "declared 35.75 MiB" takes; where the next label would lie on the last one, it goes one row higher. */
#define LABEL_WIDTH 0.28
#define LINES_A_ROW 2
#define MOST_ROWS 2

struct labels {
    double low, high;        /* bytes, the ends of the axis */
    double taken[MOST_ROWS]; /* right end of the last label of each row */
    unsigned rows;           /* in use */
};

static void line(FILE *out, double bytes, const char *look)
{
    fprintf(out, "set arrow from first %.0f, graph 0 to first %.0f, graph 1 nohead %s\n", bytes, bytes, look);
}

/* The two lines of a level, centred over its mark as far as they stay inside the plot. */
static void label(FILE *out, struct labels *labels, double bytes, const char *first, const char *second)
{
    double centre = log(bytes / labels->low) / log(labels->high / labels->low);
    centre = fmin(fmax(centre, LABEL_WIDTH / 4), 1 - LABEL_WIDTH / 4);
    unsigned row = 0;
    while (row + 1 < MOST_ROWS && centre - LABEL_WIDTH / 2 < labels->taken[row]) {
        row++;
    }
    labels->taken[row] = centre + LABEL_WIDTH / 2;
    labels->rows = row + 1 > labels->rows ? row + 1 : labels->rows;
    double above = LINES_A_ROW * row + 0.5;
    fprintf(out, "set label '%s' at graph %.3f, graph 1 center offset 0,%g textcolor rgb c2\n", first, centre,
            above + 1);
    fprintf(out, "set label '%s' at graph %.3f, graph 1 center offset 0,%g textcolor rgb ink\n", second, centre, above);
}

static void mark(FILE *out, const struct profile_cache *cache, struct labels *labels)
{
    double declared = (double)cache->declared_size_bytes, effective = (double)cache->size_bytes;
    bool measured = cache->quality.origin != PROFILE_DECLARED;
    bool same = measured && fabs(declared - effective) <= ONE_MARK * effective;
    double at = measured ? effective : declared;
    char first[2 * sizeof(struct figure)], second[2 * sizeof(struct figure)] = "";
    if (at <= 0) {
        return;
    }
    snprintf(first, sizeof first, "L%u%s%s", cache->level, measured ? " " : "",
             measured ? figure_bytes(cache->size_bytes).text : "");
    if (measured) {
        line(out, effective, "lc rgb c2 lw 1.2");
    }
    if (same) {
        snprintf(second, sizeof second, "as declared");
    } else if (declared > 0) {
        snprintf(second, sizeof second, "declared %s", figure_bytes(cache->declared_size_bytes).text);
        line(out, declared, "lc rgb muted lw 1.2 dt 2");
    }
    label(out, labels, at, first, second);
}

static void plot_class(struct plot_list *list, const struct servet_profile *profile, size_t index)
{
    const struct profile_class *node_class = &profile->classes[index];
    const struct profile_cache_point *curve = node_class->cache_curve;
    size_t count = node_class->cache_curve_count;
    if (count < 2) {
        return;
    }
    FILE *out =
        plot_open(list, PLOT_CACHES, PLOT_CURVE, index, profile->class_count, "cache-curve", "Latency by working set");
    if (!out) {
        return;
    }
    double low = (double)curve[0].bytes, high = (double)curve[count - 1].bytes;
    fprintf(out, "set logscale x 2\nset logscale y 10\nset xrange [%.0f:%.0f]\n", low, high);
    plot_byte_ticks(out, "x", low, high);
    fputs("set format y '%.0s %cs'\nset xlabel 'working set of one PU'\nset ylabel 'time of one access' offset 1\n"
          "set ytics (1e-9, 2e-9, 5e-9, 1e-8, 2e-8, 5e-8, 1e-7, 2e-7, 5e-7, 1e-6)\n",
          out);
    struct labels labels = {.low = low, .high = high};
    for (size_t i = 0; i < node_class->cache_count; i++) {
        /* the curve is the lowest PU's, and another kind of cores has caches of its own */
        const struct profile_set *holders = &node_class->caches[i].pus;
        if (holders->count == 0 || profile_set_has(holders, node_class->pus.ids[0])) {
            mark(out, &node_class->caches[i], &labels);
        }
    }
    /* the title, where there is one, above the labels */
    fprintf(out, "set tmargin title_lines + %u\nset title offset 0,%u\n", LINES_A_ROW * labels.rows + 1,
            LINES_A_ROW * labels.rows);
    fputs("$curve << EOD\n", out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%.0f %.6g\n", (double)curve[i].bytes, curve[i].seconds_per_access);
    }
    fputs("EOD\nplot $curve using 1:2 with linespoints lc rgb c1 lw 1.5 pt 7 ps 0.45 notitle\n", out);
    plot_close(
        list,
        "Dependent loads in random order on one PU. Solid lines: effective sizes, inferred from this curve; dashed "
        "lines: what the operating system declares.");
}

void plot_caches(struct plot_list *list, const struct servet_profile *profile)
{
    for (size_t i = 0; i < profile->class_count; i++) {
        plot_class(list, profile, i);
    }
}
