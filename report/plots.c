/* The curves of a report: latency by working set, memory bandwidth by workers, messages by size and
 * by number, one PU beside another, BSP parameters. Each is a chart (profile/text/chart.h) with a
 * sentence below it; the heat maps are in maps.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/query.h"
#include "profile/text/chart.h"
#include "profile/text/text.h"
#include "report/report.h"

/* -- charts -- */

#define FEW_POINTS 3 /* are read faster in a table */

/* The lowest x of all curves that lies beyond this one; INFINITY: none. */
static double x_beyond(const struct chart *chart, double x)
{
    double next = INFINITY;
    for (size_t i = 0; i < chart->series_count; i++) {
        for (size_t p = 0; p < chart->series[i].count; p++) {
            const double at = chart->series[i].points[p].x;
            next = at > x ? fmin(next, at) : next;
        }
    }
    return next;
}

/* One row for each x, one column for each curve that has a name. */
static void put_table(FILE *out, const struct chart *chart)
{
    struct table table = {0};
    char text[96];
    profile_table_row(&table, "%s", chart->x.label);
    for (size_t i = 0; i < chart->series_count; i++) {
        const struct chart_series *series = &chart->series[i];
        profile_table_cell(&table, *series->name ? series->name : chart->y.label, NULL);
    }
    for (double x = x_beyond(chart, -INFINITY); isfinite(x); x = x_beyond(chart, x)) {
        profile_chart_value(&chart->x, x, text, sizeof text);
        profile_table_row(&table, "%s", text);
        for (size_t i = 0; i < chart->series_count; i++) {
            const struct chart_series *series = &chart->series[i];
            snprintf(text, sizeof text, "-");
            for (size_t p = 0; p < series->count; p++) {
                if (series->points[p].x == x) {
                    profile_chart_value(&chart->y, series->points[p].y, text, sizeof text);
                }
            }
            profile_table_cell(&table, text, NULL);
        }
    }
    report_table(out, "", NULL, &table);
}

/* Draws the chart, or writes it as a table, with `caption` below; frees it. No points, no plot. */
static void add_chart(struct page *page, const char *name, struct chart *chart, const char *caption)
{
    size_t points = profile_chart_points(chart);
    if (points) {
        report_figure_open(page, name, chart->title);
        if (points <= FEW_POINTS) {
            put_table(page->out, chart);
        } else {
            profile_chart_svg(chart, page->out, false);
        }
        report_figure_close(page, "%s", caption);
    }
    profile_chart_free(chart);
}

/* -- BSP -- */

static const char *backend(const struct profile_bsp *bsp)
{
    return bsp->backend ? bsp->backend : "BSP";
}

enum quantity { BSP_R, BSP_G, BSP_L, BSP_PACKETS };

/* Seconds of a word or a synchronisation, or flop/s; NAN: not known. */
static double bsp_value(const struct profile_bsp *bsp, enum quantity quantity)
{
    const double flops[] = {
        [BSP_G] = bsp->g_flops, [BSP_L] = bsp->l_flops, [BSP_PACKETS] = bsp->g_packets_flops};
    if (quantity == BSP_R) {
        return bsp->r_flop_per_s;
    }
    return bsp->r_flop_per_s > 0 && flops[quantity] > 0 ? flops[quantity] / bsp->r_flop_per_s : NAN;
}

/* One curve for each backend, whose entries lie together. */
static void bsp_curves(struct chart *chart, const struct servet_profile *profile,
                       enum quantity quantity, enum chart_style style, const char *suffix)
{
    size_t curve = 0;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        if (i == 0 || strcmp(backend(bsp), backend(bsp - 1)) != 0) {
            char name[96];
            snprintf(name, sizeof name, "%.60s%s", backend(bsp), suffix);
            profile_chart_series(chart, CHART_COLOUR(curve++), style, name);
        }
        profile_chart_point(chart, bsp->processors, bsp_value(bsp, quantity));
    }
}

static bool any_packets(const struct servet_profile *profile)
{
    bool any = false;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        any |= profile->bsp[i].g_packets_flops > 0;
    }
    return any;
}

static void plot_bsp(struct page *page, const struct servet_profile *profile)
{
    static const struct {
        const char *name, *title, *label, *unit, *caption;
    } plots[] = {
        [BSP_R] = {"bsp-r", "BSP: r, rate of each processor", "rate of one processor, r", "flop/s",
                   "DAXPY on vectors in the first cache, all processors at once."},
        [BSP_G] = {"bsp-g", "BSP: g, time of one word of an h-relation", "time of one word, g", "s",
                   "A superstep of an h-relation takes g h + l. Single words of 8 bytes give the "
                   "pessimistic g, large packets (dashed) the optimistic one."},
        [BSP_L] = {"bsp-l", "BSP: l, time of a synchronisation", "time of a synchronisation, l",
                   "s", "Every superstep costs this before a word has been sent."},
    };
    for (enum quantity q = BSP_R; q <= BSP_L; q++) {
        struct chart chart = {.title = plots[q].title,
                              .x = {"processors, p", "", CHART_WHOLE, 0, NULL},
                              .y = {plots[q].label, plots[q].unit, CHART_LINEAR, 0, NULL}};
        bsp_curves(&chart, profile, q, CHART_CURVE, "");
        if (q == BSP_G && any_packets(profile)) {
            bsp_curves(&chart, profile, BSP_PACKETS, CHART_DASHED, ", in packets");
        }
        add_chart(page, plots[q].name, &chart, plots[q].caption);
    }
}

/* -- caches -- */

/* Sizes closer than this are one mark. */
#define ONE_MARK 0.02

/* The sizes of a level: a solid line for what was measured, a dashed one for what is declared. */
static void mark_cache(struct chart *chart, const struct profile_cache *cache)
{
    double declared = (double)cache->declared_size_bytes, effective = (double)cache->size_bytes;
    bool measured = cache->quality.origin != PROFILE_DECLARED;
    bool settled = profile_size_settled(cache), once = cache->quality.repetitions == 1;
    bool same = measured && settled && fabs(declared - effective) <= ONE_MARK * effective;
    char text[4 * sizeof(struct figure)];
    if ((measured ? effective : declared) <= 0) {
        return;
    }
    snprintf(text, sizeof text, "L%u%s%s%s%s%s", cache->level, measured ? " " : "",
             measured ? profile_figure_size(cache).text : "", same || declared > 0 ? "\n" : "",
             same           ? "as declared"
             : declared > 0 ? "declared "
                            : "",
             !same && declared > 0 ? profile_figure_bytes(cache->declared_size_bytes).text : "");
    if (measured && (settled || once)) {
        profile_chart_mark(chart, effective, 2, false, text);
    } else if (measured && cache->size_high_bytes) {
        profile_chart_mark(chart, (double)cache->size_low_bytes, 2, true, "");
        profile_chart_mark(chart, (double)cache->size_high_bytes, 2, true, text);
    }
    if (!same && declared > 0) {
        bool alone = !measured || !(settled || once || cache->size_high_bytes);
        profile_chart_mark(chart, declared, CHART_MUTED, true, alone ? text : "");
    }
}

/* The sizes of the caches of the curve's PU, the lowest: other kinds of cores have their own. */
static void mark_caches(struct chart *chart, const struct profile_class *node_class)
{
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_set *holders = &node_class->caches[i].pus;
        if (holders->count == 0 || profile_set_has(holders, node_class->pus.ids[0])) {
            mark_cache(chart, &node_class->caches[i]);
        }
    }
}

/* The latency curve with the sizes that were inferred from it, and its gradient, in which a level
 * of cache is a peak (2010 paper, Figure 2b). */
static void plot_cache_curve(struct page *page, const struct profile_class *node_class)
{
    const struct profile_cache_point *curve = node_class->cache_curve;
    struct chart time = {.title = "Latency by working set",
                         .x = {"working set of one PU, bytes", "B", CHART_BINARY, 0, NULL},
                         .y = {"time of one access", "s", CHART_DECIMAL, 0, NULL}};
    struct chart rise = {
        .title = "Gradient of the latency",
        .x = time.x,
        .y = {"time over that of the size before, ratio", "", CHART_LINEAR, 0, NULL}};
    profile_chart_series(&time, 1, CHART_CURVE, "");
    profile_chart_series(&rise, 1, CHART_CURVE, "");
    for (size_t i = 0; i < node_class->cache_curve_count; i++) {
        double bytes = (double)curve[i].bytes, seconds = curve[i].seconds_per_access;
        profile_chart_point(&time, bytes, seconds);
        profile_chart_point(&rise, bytes, i ? seconds / curve[i - 1].seconds_per_access : NAN);
    }
    mark_caches(&time, node_class);
    mark_caches(&rise, node_class);
    add_chart(page, "cache-curve", &time,
              "Dependent loads in random order on one PU. Solid lines: effective sizes, inferred "
              "from this curve; dashed lines: what the operating system declares, or the interval "
              "of a size that is not settled.");
    add_chart(page, "cache-gradient", &rise,
              "Each point of the curve over the one before: a level of cache is a peak behind its "
              "size.");
}

/* -- one PU beside each other one (2010 paper, Figures 8 and 9a): the lowest with such pairs -- */

static void pair_points(struct chart *chart, const struct profile_pair_figure *pairs, size_t count,
                        uint32_t pu)
{
    for (size_t i = 0; i < count; i++) {
        profile_chart_point(chart, pairs[i].b, pairs[i].a == pu ? pairs[i].value : NAN);
    }
}

/* A cache that the lowest PU does not have is of pairs of its own. */
static void plot_pair_ratios(struct page *page, const struct profile_class *node_class)
{
    uint32_t lowest = UINT32_MAX;
    char label[64], name[48], caption[192];
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        const uint32_t pu = cache->pair_ratio_count ? cache->pair_ratios[0].a : UINT32_MAX;
        lowest = pu < lowest ? pu : lowest;
    }
    snprintf(label, sizeof label, "number of the other PU, beside PU %u", lowest);
    struct chart chart = {.title = "Time in a cache beside one other PU",
                          .x = {label, "", CHART_WHOLE, 0, NULL},
                          .y = {"time over that alone, ratio", "", CHART_LINEAR, 0, NULL}};
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        const uint32_t pu = cache->pair_ratio_count ? cache->pair_ratios[0].a : lowest;
        snprintf(name, sizeof name, pu == lowest ? "L%u" : "L%u, beside PU %u", cache->level, pu);
        if (cache->pair_ratio_count) {
            profile_chart_series(&chart, CHART_COLOUR(cache->level - 1), CHART_POINTS, name);
            pair_points(&chart, cache->pair_ratios, cache->pair_ratio_count, pu);
        }
    }
    snprintf(caption, sizeof caption,
             "PU %u and another one use two thirds of the cache each: the slower of the two takes "
             "much longer where it is one cache.",
             lowest);
    add_chart(page, "cache-pairs", &chart, caption);
}

static void plot_pair_rates(struct page *page, const struct profile_class *node_class)
{
    const struct profile_memory *memory = &node_class->memory;
    uint32_t pu = memory->pair_rate_count ? memory->pair_rates[0].a : 0;
    char label[64], caption[96];
    snprintf(label, sizeof label, "number of the other PU, beside PU %u", pu);
    snprintf(caption, sizeof caption, "PU %u and another one copy at the same time.", pu);
    struct chart chart = {
        .title = "Memory bandwidth beside one other PU",
        .x = {label, "", CHART_WHOLE, 0, NULL},
        .y = {"bandwidth of the slower of the two", "B/s", CHART_LINEAR, 0, NULL}};
    profile_chart_series(&chart, 1, CHART_POINTS, "both at once");
    pair_points(&chart, memory->pair_rates, memory->pair_rate_count, pu);
    const size_t points = profile_chart_points(&chart);
    if (memory->reference_bytes_per_s > 0 && points) {
        /* The slower of the two, of two kinds of cores the lesser; a rule across the point, and in
         * a table the figure of the pair. */
        const double half = points > FEW_POINTS ? 0.5 : 0;
        profile_chart_series(&chart, CHART_MUTED, CHART_RULE, "alone");
        for (size_t i = 0; i < memory->pair_rate_count && memory->pair_rates[i].a == pu; i++) {
            const uint32_t other = memory->pair_rates[i].b;
            const double alone =
                fmin(profile_memory_alone(node_class, pu), profile_memory_alone(node_class, other));
            profile_chart_point(&chart, other - half, alone);
            profile_chart_point(&chart, other + half, half > 0 ? alone : NAN);
        }
    }
    add_chart(page, "memory-pairs", &chart, caption);
}

/* -- memory -- */

static void plot_scaling(struct page *page, const struct profile_class *node_class)
{
    const struct profile_memory *memory = &node_class->memory;
    const double alone = memory->reference_bytes_per_s, headroom = 1.1;
    struct chart chart = {.title = "Memory bandwidth by workers",
                          .x = {"workers at once", "", CHART_WHOLE, 0, NULL},
                          .y = {"bandwidth of all workers together", "B/s", CHART_LINEAR, 0, NULL}};
    char caption[256], name[48];
    double most = 0, highest = alone;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        if (level->scaling_count) {
            snprintf(name, sizeof name, "overhead level %zu", i);
            profile_chart_series(&chart, CHART_COLOUR(i), CHART_CURVE, name);
        }
        for (size_t k = 0; k < level->scaling_count; k++) {
            profile_chart_point(&chart, level->scaling[k].workers, level->scaling[k].bytes_per_s);
            most = fmax(most, level->scaling[k].workers);
            highest = fmax(highest, level->scaling[k].bytes_per_s);
        }
    }
    if (profile_chart_points(&chart) > FEW_POINTS && alone > 0) {
        /* ends where the curves do: of hundreds of workers it would press them on the axis */
        chart.y.high = headroom * highest;
        profile_chart_series(&chart, CHART_MUTED, CHART_RULE, "without interference");
        profile_chart_point(&chart, 1, alone);
        profile_chart_point(&chart, fmin(most, chart.y.high / alone),
                            fmin(most * alone, chart.y.high));
    }
    snprintf(caption, sizeof caption,
             "Workers of one group of an overhead level copy memory at once. One worker alone "
             "reaches %s.",
             profile_figure_bandwidth(alone).text);
    add_chart(page, "memory-scaling", &chart, caption);
}

/* -- messages -- */

static void layer_series(struct chart *chart, const struct profile_layer *layer, size_t index)
{
    char name[96];
    snprintf(name, sizeof name, "layer %zu%s%.60s", index, layer->name ? ": " : "",
             layer->name ? layer->name : "");
    profile_chart_series(chart, CHART_COLOUR(index), CHART_CURVE, name);
}

/* Time, bandwidth, and time of many at once. An empty message has no place on a logarithmic
 * axis. */
static void plot_messages(struct page *page, const struct profile_communication *found,
                          const char *prefix)
{
    char name[64];
    struct chart time = {.title = "Time of a message by size",
                         .x = {"size of the message, bytes", "B", CHART_BINARY, 0, NULL},
                         .y = {"time one way", "s", CHART_DECIMAL, 0, NULL}};
    struct chart rate = {.title = "Bandwidth of a message by size",
                         .x = time.x,
                         .y = {"bandwidth one way", "B/s", CHART_DECIMAL, 0, NULL}};
    struct chart many = {.title = "Many messages at once",
                         .x = {"messages at once", "", CHART_BINARY, 0, NULL},
                         .y = {"time of the slowest, one way", "s", CHART_DECIMAL, 0, NULL}};
    for (size_t i = 0; i < found->layer_count; i++) {
        const struct profile_layer *layer = &found->layers[i];
        if (layer->curve_count > 1) {
            layer_series(&time, layer, i);
            layer_series(&rate, layer, i);
        }
        for (size_t k = 0; k < layer->curve_count && layer->curve_count > 1; k++) {
            const struct profile_message_point *point = &layer->curve[k];
            profile_chart_point(&time, (double)point->bytes, point->seconds);
            profile_chart_point(&rate, (double)point->bytes, (double)point->bytes / point->seconds);
        }
        if (layer->concurrency_count > 1) {
            layer_series(&many, layer, i);
        }
        for (size_t k = 0; k < layer->concurrency_count && layer->concurrency_count > 1; k++) {
            profile_chart_point(&many, layer->concurrency[k].messages,
                                layer->concurrency[k].seconds);
        }
    }
    snprintf(name, sizeof name, "%smessage-time", prefix);
    add_chart(page, name, &time,
              "One message at a time between two members of each layer, one way.");
    snprintf(name, sizeof name, "%smessage-bandwidth", prefix);
    add_chart(page, name, &rate, "The same figures as size divided by time.");
    snprintf(name, sizeof name, "%smessage-concurrency", prefix);
    add_chart(page, name, &many,
              "Messages sent at the same time inside one layer; a flat line is a network that "
              "carries them all.");
}

void report_plots(struct page *page, enum plot_section section)
{
    const struct servet_profile *profile = page->report->profile;
    const bool network = page->node_class == PLOT_NETWORK;
    const struct profile_class *node_class = network ? NULL : &profile->classes[page->node_class];
    if (section == PLOT_MESSAGES) {
        plot_messages(page, network ? &profile->network : &node_class->communication,
                      network ? "network-" : "");
    } else if (network && section == PLOT_BSP) {
        plot_bsp(page, profile);
    } else if (!network && section == PLOT_CACHES) {
        plot_cache_curve(page, node_class);
        plot_pair_ratios(page, node_class);
    } else if (!network && section == PLOT_MEMORY) {
        plot_scaling(page, node_class);
        plot_pair_rates(page, node_class);
    }
}
