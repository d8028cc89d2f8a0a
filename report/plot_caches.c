/* The latency curve with the sizes that were inferred from it, and what the system declares beside them. */
#include "plot.h"

#include "figures.h"

#include <math.h>

/* Where the labels of the marks begin, as shares of the plot's height. */
#define EFFECTIVE_LABEL 0.97
#define DECLARED_LABEL 0.52

/* Sizes closer than this are one mark: their labels would lie on one another. */
#define ONE_MARK 0.02

static void line(FILE *out, double bytes, const char *look)
{
    fprintf(out, "set arrow from first %.0f, graph 0 to first %.0f, graph 1 nohead %s\n", bytes, bytes, look);
}

static void mark(FILE *out, const struct profile_cache *cache)
{
    double declared = (double)cache->declared_size_bytes, effective = (double)cache->size_bytes;
    bool measured = cache->quality.origin != PROFILE_DECLARED;
    bool same = measured && fabs(declared - effective) <= ONE_MARK * effective;
    if (measured) {
        line(out, effective, "lc rgb c2 lw 1.2");
        fprintf(out, "set label 'L%u %s%s' at first %.0f, graph %g right rotate by 90 offset -1,0 textcolor rgb c2\n",
                cache->level, figure_bytes(cache->size_bytes).text, same ? " as declared" : "", effective,
                EFFECTIVE_LABEL);
    }
    if (declared > 0 && !same) {
        line(out, declared, "lc rgb muted lw 1.2 dt 2");
        fprintf(
            out,
            "set label 'L%u declared %s' at first %.0f, graph %g right rotate by 90 offset 1.1,0 textcolor rgb ink\n",
            cache->level, figure_bytes(cache->declared_size_bytes).text, declared, DECLARED_LABEL);
    }
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
    for (size_t i = 0; i < node_class->cache_count; i++) {
        mark(out, &node_class->caches[i]);
    }
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
