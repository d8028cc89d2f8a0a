/* The curves of a report: latency by working set, memory bandwidth by workers, messages by size and
 * by how many there are at once, BSP parameters. Each is a script in gnuplot's language with a
 * sentence beside it; how scripts become pictures is plot.c. The heat maps are in maps.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/query.h"
#include "profile/text/text.h"
#include "report/report.h"

/* -- BSP -- */

/* Parameters by the number of processors, one curve per backend. */

static const char *backend(const struct profile_bsp *bsp)
{
    return bsp->backend ? bsp->backend : "BSP";
}

enum quantity { BSP_G, BSP_L, BSP_R };

/* Seconds of a word or a synchronisation, or flop/s; <= 0: unknown. */
static double value(const struct profile_bsp *bsp, enum quantity quantity)
{
    double flops = quantity == BSP_G ? bsp->g_flops : bsp->l_flops;
    if (quantity == BSP_R) {
        return bsp->r_flop_per_s;
    }
    return bsp->r_flop_per_s > 0 && flops >= 0 ? flops / bsp->r_flop_per_s : -1;
}

/* The optimistic g; <= 0: unknown. */
static double packets(const struct profile_bsp *bsp)
{
    return bsp->r_flop_per_s > 0 ? bsp->g_packets_flops / bsp->r_flop_per_s : -1;
}

static void write_number(FILE *out, double value)
{
    if (value > 0) {
        fprintf(out, " %.6g", value);
    } else {
        fputs(" NaN", out);
    }
}

static void write_entry(FILE *out, uint32_t processors, double value, double of_packets)
{
    fprintf(out, "%u", processors);
    write_number(out, value);
    write_number(out, of_packets);
    fputc('\n', out);
}

static bool any_packets(const struct servet_profile *profile, const char *name)
{
    bool any = false;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        any |= packets(&profile->bsp[i]) > 0 && strcmp(backend(&profile->bsp[i]), name) == 0;
    }
    return any;
}

static size_t draw(FILE *out, const struct servet_profile *profile, enum quantity quantity)
{
    size_t blocks = 0;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        if (i == 0 || strcmp(backend(bsp), backend(bsp - 1)) != 0) {
            fprintf(out, "%s$b%zu << EOD\n", blocks ? "EOD\n" : "", blocks);
            blocks++;
        }
        write_entry(out, bsp->processors, value(bsp, quantity), packets(bsp));
    }
    fputs("EOD\n", out);
    size_t block = 0;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        if (i && strcmp(backend(bsp), backend(bsp - 1)) == 0) {
            continue;
        }
        fprintf(out, "%s$b%zu using 1:2 with linespoints lc rgb c%zu lw 1.5 pt 7 ps 0.7 title ",
                block ? ", " : "plot ", block, block % PLOT_COLOURS + 1);
        report_plot_quote(out, backend(bsp));
        if (quantity == BSP_G && any_packets(profile, backend(bsp))) {
            char name[64];
            snprintf(name, sizeof name, "%s, in packets", backend(bsp));
            fprintf(out,
                    ", $b%zu using 1:3 with linespoints lc rgb c%zu lw 1.5 dt 2 pt 6 ps 0.7 title ",
                    block, block % PLOT_COLOURS + 1);
            report_plot_quote(out, name);
        }
        block++;
    }
    fputc('\n', out);
    return block;
}

static void plot_quantity(struct plot_list *list, const struct servet_profile *profile,
                          enum quantity quantity, const char *name, const char *title,
                          const char *caption)
{
    bool any = false;
    uint32_t most = 1;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        any = any || value(&profile->bsp[i], quantity) > 0;
        most = profile->bsp[i].processors > most ? profile->bsp[i].processors : most;
    }
    FILE *out =
        any ? report_plot_open(list, PLOT_BSP, PLOT_CURVE, PLOT_NETWORK, 0, name, title) : NULL;
    if (!out) {
        return;
    }
    fprintf(out,
            "set xrange [0.7:%g]\nset yrange [0:*]\nset ytics add ('0' 0)\nset format y '%%.1s "
            "%%c%s'\nset xlabel "
            "'processors'\nset xtics %u\n",
            most + 0.3, quantity == BSP_R ? "flop/s" : "s", most <= 16 ? 1 : most / 8);
    fprintf(out, "set key %s left Left reverse\n", quantity == BSP_R ? "bottom" : "top");
    draw(out, profile, quantity);
    report_plot_close(list, "%s", caption);
}

static void plot_bsp(struct plot_list *list, const struct servet_profile *profile)
{
    plot_quantity(list, profile, BSP_R, "bsp-r", "BSP: r, rate of each processor",
                  "Of DAXPY on vectors in the first cache, all processors at once.");
    plot_quantity(
        list, profile, BSP_G, "bsp-g", "BSP: g, time of one word of an h-relation",
        "A superstep of an h-relation takes g h + l. Single words of 8 bytes: the pessimistic "
        "g; dashed, "
        "in large packets: the optimistic one.");
    plot_quantity(list, profile, BSP_L, "bsp-l", "BSP: l, time of a synchronisation",
                  "What every superstep costs before a word has been sent.");
}

/* -- caches -- */

/* The latency curve with the sizes that were inferred from it, and what the system declares beside
 * them. */

/* Sizes closer than this are one mark: their labels would lie on one another. */
#define ONE_MARK 0.02

/* Two lines of text above the plot for each level: the size, and what is declared. As shares of the
 * plot's width, about what "declared 35.75 MiB" takes; where the next label would lie on the last
 * one, it goes one row higher. */
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
    fprintf(out, "set arrow from first %.0f, graph 0 to first %.0f, graph 1 nohead %s\n", bytes,
            bytes, look);
}

/* The two lines of a level, centred over its mark as far as they stay inside the plot. */
static void label(FILE *out, struct labels *labels, double bytes, const char *first,
                  const char *second)
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
    fprintf(out, "set label '%s' at graph %.3f, graph 1 center offset 0,%g textcolor rgb c2\n",
            first, centre, above + 1);
    fprintf(out, "set label '%s' at graph %.3f, graph 1 center offset 0,%g textcolor rgb ink\n",
            second, centre, above);
}

static void mark(FILE *out, const struct profile_cache *cache, struct labels *labels)
{
    double declared = (double)cache->declared_size_bytes, effective = (double)cache->size_bytes;
    bool measured = cache->quality.origin != PROFILE_DECLARED;
    bool same = measured && profile_size_settled(cache) &&
                fabs(declared - effective) <= ONE_MARK * effective;
    double at = measured ? effective : declared;
    char first[2 * sizeof(struct figure)], second[2 * sizeof(struct figure)] = "";
    bool once = measured && cache->quality.repetitions == 1;
    if (at <= 0) {
        return;
    }
    bool settled = profile_size_settled(cache) || once;
    snprintf(first, sizeof first, "L%u%s%s", cache->level, measured ? " " : "",
             !measured ? "" : profile_figure_size(cache).text);
    if (measured && settled) {
        line(out, effective, "lc rgb c2 lw 1.2");
    } else if (measured && cache->size_high_bytes) {
        line(out, (double)cache->size_low_bytes, "lc rgb c2 lw 1.2 dt 3");
        line(out, (double)cache->size_high_bytes, "lc rgb c2 lw 1.2 dt 3");
    }
    if (same) {
        snprintf(second, sizeof second, "as declared");
    } else if (declared > 0) {
        snprintf(second, sizeof second, "declared %s",
                 profile_figure_bytes(cache->declared_size_bytes).text);
        line(out, declared, "lc rgb muted lw 1.2 dt 2");
    }
    label(out, labels, at, first, second);
}

/* The axis of working sets, with the sizes of the caches of the curve's PU. */
static void caches_axis(FILE *out, const struct profile_class *node_class)
{
    const struct profile_cache_point *curve = node_class->cache_curve;
    double low = (double)curve[0].bytes;
    double high = (double)curve[node_class->cache_curve_count - 1].bytes;
    fprintf(out, "set logscale x 2\nset xrange [%.0f:%.0f]\n", low, high);
    report_plot_byte_ticks(out, low, high);
    fputs("set xlabel 'working set of one PU'\n", out);
    struct labels labels = {.low = low, .high = high};
    for (size_t i = 0; i < node_class->cache_count; i++) {
        /* the curve is the lowest PU's, and another kind of cores has caches of its own */
        const struct profile_set *holders = &node_class->caches[i].pus;
        if (holders->count == 0 || profile_set_has(holders, node_class->pus.ids[0])) {
            mark(out, &node_class->caches[i], &labels);
        }
    }
    /* the title, where there is one, above the labels */
    fprintf(out, "set tmargin title_lines + %u\nset title offset 0,%u\n",
            LINES_A_ROW * labels.rows + 1, LINES_A_ROW * labels.rows);
}

static void plot_curve_of(struct plot_list *list, const struct servet_profile *profile,
                          size_t index)
{
    const struct profile_class *node_class = &profile->classes[index];
    const struct profile_cache_point *curve = node_class->cache_curve;
    FILE *out = report_plot_open(list, PLOT_CACHES, PLOT_CURVE, index, profile->class_count,
                                 "cache-curve", "Latency by working set");
    if (!out) {
        return;
    }
    caches_axis(out, node_class);
    fputs("set logscale y 10\nset format y '%.0s %cs'\nset ylabel 'time of one access' offset 1\n"
          "set ytics (1e-9, 2e-9, 5e-9, 1e-8, 2e-8, 5e-8, 1e-7, 2e-7, 5e-7, 1e-6)\n"
          "$curve << EOD\n",
          out);
    for (size_t i = 0; i < node_class->cache_curve_count; i++) {
        fprintf(out, "%.0f %.6g\n", (double)curve[i].bytes, curve[i].seconds_per_access);
    }
    fputs("EOD\nplot $curve using 1:2 with linespoints lc rgb c1 lw 1.5 pt 7 ps 0.45 notitle\n",
          out);
    report_plot_close(list,
                      "Dependent loads in random order on one PU. Solid lines: effective sizes, "
                      "inferred from this curve; dashed "
                      "lines: what the operating system declares.");
}

/* The 2010 paper's Figure 2b: a level of cache shows as a peak of what one size takes over what the
 * one before took. */
static void plot_gradient_of(struct plot_list *list, const struct servet_profile *profile,
                             size_t index)
{
    const struct profile_class *node_class = &profile->classes[index];
    const struct profile_cache_point *curve = node_class->cache_curve;
    FILE *out = report_plot_open(list, PLOT_CACHES, PLOT_CURVE, index, profile->class_count,
                                 "cache-gradient", "Gradient of the latency");
    if (!out) {
        return;
    }
    caches_axis(out, node_class);
    fputs("set ylabel 'times that of the size before' offset 1\n$curve << EOD\n", out);
    for (size_t i = 1; i < node_class->cache_curve_count; i++) {
        fprintf(out, "%.0f %.6g\n", (double)curve[i].bytes,
                curve[i].seconds_per_access / curve[i - 1].seconds_per_access);
    }
    fputs("EOD\nplot $curve using 1:2 with linespoints lc rgb c1 lw 1.5 pt 7 ps 0.45 notitle\n",
          out);
    report_plot_close(list,
                      "The curve's points, each over the one before: a level of cache shows as a "
                      "peak behind its size.");
}

static void plot_caches(struct plot_list *list, const struct servet_profile *profile)
{
    for (size_t i = 0; i < profile->class_count; i++) {
        if (profile->classes[i].cache_curve_count >= 2) {
            plot_curve_of(list, profile, i);
            plot_gradient_of(list, profile, i);
        }
        report_plot_pair_ratios(list, profile, i);
    }
}

/* -- memory -- */

/* Bandwidth by the number of workers that copy at once, one curve per overhead level. */

#define TICKS_ALL 16 /* up to so many workers each one gets its tick */

/* Over the highest point of the curves, so much is drawn: of hundreds of workers that nobody
 * disturbed there is no end, and the curves would lie on the axis. */
static const double headroom = 1.1;

static uint32_t most_workers(const struct profile_memory *memory, double *most_bytes_per_s)
{
    uint32_t most = 0;
    *most_bytes_per_s = memory->reference_bytes_per_s;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        for (size_t k = 0; k < level->scaling_count; k++) {
            most = level->scaling[k].workers > most ? level->scaling[k].workers : most;
            *most_bytes_per_s = fmax(*most_bytes_per_s, level->scaling[k].bytes_per_s);
        }
    }
    return most;
}

static void plot_memory_of(struct plot_list *list, const struct servet_profile *profile,
                           size_t index)
{
    const struct profile_memory *memory = &profile->classes[index].memory;
    double highest;
    uint32_t most = most_workers(memory, &highest);
    if (!most) {
        return;
    }
    FILE *out = report_plot_open(list, PLOT_MEMORY, PLOT_CURVE, index, profile->class_count,
                                 "memory-scaling", "Memory bandwidth by workers");
    if (!out) {
        return;
    }
    fprintf(out,
            "set xrange [0.7:%g]\nset yrange [0:%.6g]\nset ytics add ('0' 0)\nset format y '%%.1s "
            "%%cB/s'\nset xlabel "
            "'workers at once'\n",
            most + 0.3, headroom * highest);
    fprintf(out, "set ylabel 'together'\nset key bottom right\nset xtics %u\n",
            most <= TICKS_ALL ? 1 : most / 8);
    for (size_t i = 0; i < memory->level_count; i++) {
        fprintf(out, "$level%zu << EOD\n", i);
        for (size_t k = 0; k < memory->levels[i].scaling_count; k++) {
            fprintf(out, "%u %.6g\n", memory->levels[i].scaling[k].workers,
                    memory->levels[i].scaling[k].bytes_per_s);
        }
        fputs("EOD\n", out);
    }
    const char *separator = "plot ";
    if (memory->reference_bytes_per_s > 0) {
        fprintf(out, "%s%.6g*x with lines dt 3 lc rgb muted title 'if nobody disturbed anybody'",
                separator, memory->reference_bytes_per_s);
        separator = ", ";
    }
    for (size_t i = 0; i < memory->level_count; i++) {
        if (memory->levels[i].scaling_count) {
            fprintf(out, "%s$level%zu using 1:2 with linespoints lc rgb c%zu lw 1.5 pt 7 ps 0.7 ",
                    separator, i, i % PLOT_COLOURS + 1);
            fprintf(out, "title 'overhead level %zu'", i);
            separator = ", ";
        }
    }
    fputc('\n', out);
    report_plot_close(
        list,
        "Workers of one group of an overhead level copy memory at once. One worker alone "
        "reaches %s.",
        profile_figure_bandwidth(memory->reference_bytes_per_s).text);
}

static void plot_memory(struct plot_list *list, const struct servet_profile *profile)
{
    for (size_t i = 0; i < profile->class_count; i++) {
        plot_memory_of(list, profile, i);
        report_plot_pair_rates(list, profile, i);
    }
}

/* -- messages -- */

/* Time and bandwidth of a message by its size, and of many messages at once, one curve per
 * layer. */

struct range {
    double low, high;
};

static void layer_title(FILE *out, const struct profile_layer *layer, size_t index)
{
    char title[96];
    snprintf(title, sizeof title, "layer %zu%s%.60s", index, layer->name ? ": " : "",
             layer->name ? layer->name : "");
    report_plot_quote(out, title);
}

static struct range sizes(const struct profile_communication *communication)
{
    struct range range = {INFINITY, 0};
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        for (size_t k = 0; k < layer->curve_count; k++) {
            range.low = fmin(range.low, fmax((double)layer->curve[k].bytes, 1));
            range.high = fmax(range.high, (double)layer->curve[k].bytes);
        }
    }
    return range;
}

/* One line for each layer of which `points` counts more than one; `axes`: of "using". */
static void layer_lines(FILE *out, const struct profile_communication *communication,
                        size_t (*points)(const struct profile_layer *layer), const char *axes,
                        double point_size)
{
    const char *separator = "plot ";
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        if (points(layer) > 1) {
            fprintf(out,
                    "%s$layer%zu using %s with linespoints lc rgb c%zu lw 1.5 pt 7 ps %.1f title ",
                    separator, i, axes, i % PLOT_COLOURS + 1, point_size);
            layer_title(out, layer, i);
            separator = ", ";
        }
    }
    fputc('\n', out);
}

static size_t curve_points(const struct profile_layer *layer)
{
    return layer->curve_count;
}

static size_t concurrency_points(const struct profile_layer *layer)
{
    return layer->concurrency_count;
}

/* `axes`: of "using". An empty message has no place on a logarithmic axis and no bandwidth. */
static void curves(FILE *out, const struct profile_communication *communication, const char *axes)
{
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        fprintf(out, "$layer%zu << EOD\n", i);
        for (size_t k = 0; k < layer->curve_count; k++) {
            if (layer->curve[k].bytes) {
                fprintf(out, "%.0f %.6g\n", (double)layer->curve[k].bytes, layer->curve[k].seconds);
            }
        }
        fputs("EOD\n", out);
    }
    layer_lines(out, communication, curve_points, axes, 0.5);
}

static void size_axis(FILE *out, struct range range)
{
    fprintf(out,
            "set logscale x 2\nset xrange [%.0f:%.0f]\nset logscale y 10\nset xlabel 'size of the "
            "message'\n",
            range.low, range.high);
    report_plot_byte_ticks(out, range.low, range.high);
}

static void plot_sizes(struct plot_list *list, const struct profile_communication *communication,
                       size_t index, size_t classes, const char *prefix)
{
    struct range range = sizes(communication);
    if (!(range.high > range.low)) {
        return;
    }
    char name[64];
    snprintf(name, sizeof name, "%smessage-time", prefix);
    FILE *out = report_plot_open(list, PLOT_MESSAGES, PLOT_CURVE, index, classes, name,
                                 "Time of a message by size");
    if (out) {
        size_axis(out, range);
        fputs("set format y '%.0s %cs'\nset ylabel 'one way'\nset key top left Left reverse\n",
              out);
        curves(out, communication, "1:2");
        report_plot_close(list,
                          "One message at a time between two members of each layer, one way.");
    }
    snprintf(name, sizeof name, "%smessage-bandwidth", prefix);
    out = report_plot_open(list, PLOT_MESSAGES, PLOT_CURVE, index, classes, name,
                           "Bandwidth of a message by size");
    if (out) {
        size_axis(out, range);
        fputs("set format y '%.0s %cB/s'\nset ylabel 'one way'\nset key bottom right\n", out);
        curves(out, communication, "1:($1/$2)");
        report_plot_close(list, "The same figures as size divided by time.");
    }
}

static void plot_concurrency(struct plot_list *list,
                             const struct profile_communication *communication, size_t index,
                             size_t classes, const char *prefix)
{
    size_t curves_found = 0;
    uint32_t most = 0;
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        curves_found += layer->concurrency_count > 1;
        for (size_t k = 0; k < layer->concurrency_count; k++) {
            most = layer->concurrency[k].messages > most ? layer->concurrency[k].messages : most;
        }
    }
    char name[64];
    snprintf(name, sizeof name, "%smessage-concurrency", prefix);
    FILE *out = !curves_found ? NULL
                              : report_plot_open(list, PLOT_MESSAGES, PLOT_CURVE, index, classes,
                                                 name, "Many messages at once");
    if (!out) {
        return;
    }
    fprintf(out,
            "set logscale x 2\nset xrange [0.9:%g]\nset logscale y 10\nset format y '%%.0s "
            "%%cs'\nset xlabel 'messages at once'\n",
            1.1 * most);
    fputs("set ylabel 'slowest of them, one way'\nset key top left Left reverse\n", out);
    for (size_t i = 0; i < communication->layer_count; i++) {
        fprintf(out, "$layer%zu << EOD\n", i);
        for (size_t k = 0; k < communication->layers[i].concurrency_count; k++) {
            const struct profile_concurrency_point *point =
                &communication->layers[i].concurrency[k];
            fprintf(out, "%u %.6g\n", point->messages, point->seconds);
        }
        fputs("EOD\n", out);
    }
    layer_lines(out, communication, concurrency_points, "1:2", 0.7);
    report_plot_close(list,
                      "Messages sent at the same time inside one layer; a flat line is a network "
                      "that carries them all.");
}

static void plot_messages_of(struct plot_list *list,
                             const struct profile_communication *communication, size_t index,
                             size_t classes, const char *prefix)
{
    plot_sizes(list, communication, index, classes, prefix);
    plot_concurrency(list, communication, index, classes, prefix);
}

static void plot_messages(struct plot_list *list, const struct servet_profile *profile)
{
    for (size_t i = 0; i < profile->class_count; i++) {
        plot_messages_of(list, &profile->classes[i].communication, i, profile->class_count, "");
    }
    plot_messages_of(list, &profile->network, PLOT_NETWORK, profile->class_count, "network-");
}

int report_plots_of(const struct servet_profile *profile, struct plot_list *out,
                    struct servet_error *error)
{
    struct plot_list list = {0};
    plot_caches(&list, profile);
    report_plot_maps(&list, profile);
    plot_memory(&list, profile);
    plot_messages(&list, profile);
    plot_bsp(&list, profile);
    if (list.rc < 0) {
        int rc = profile_error(error, list.rc, "report: %s", strerrordesc_np(-list.rc));
        report_plot_free(&list);
        return rc;
    }
    *out = list;
    return 0;
}
