/* Figures behind the tables, in a line each: the rise of the latency (2010 paper, Figure 2b), the
 * interference of two PUs in a cache (Figure 8) and at memory (Figure 9a). A figure for each pair
 * would fill pages; minimum and maximum of each kind of pairs show whether the kinds are
 * separate. */
#include <math.h>

#include "profile/query.h"
#include "profile/text/text.h"

/* A smaller rise than this is what the curve of a busy machine has between the levels. */
static const double rise_least = 1.1;
enum { RISES_MOST = 6 };

static double rise_at(const struct profile_class *node_class, size_t i)
{
    const struct profile_cache_point *curve = node_class->cache_curve;
    return curve[i].seconds_per_access / curve[i - 1].seconds_per_access;
}

/* The highest rise within an octave to both sides: a level rises over several sizes. */
static bool is_peak(const struct profile_class *node_class, size_t i)
{
    const struct profile_cache_point *curve = node_class->cache_curve;
    const double rise = rise_at(node_class, i);
    bool highest = rise >= rise_least;
    for (size_t k = 1; highest && k < node_class->cache_curve_count; k++) {
        bool near = curve[k].bytes < 2 * curve[i].bytes && curve[i].bytes < 2 * curve[k].bytes;
        highest = !near || k == i || rise > rise_at(node_class, k) ||
                  (rise == rise_at(node_class, k) && i < k);
    }
    return highest;
}

void profile_show_rises(const struct profile_class *node_class, FILE *stream)
{
    size_t shown = 0;
    for (size_t i = 1; i < node_class->cache_curve_count && shown < RISES_MOST; i++) {
        if (is_peak(node_class, i)) {
            fprintf(stream, "%s %s (%.2f times)",
                    shown++ ? "," : "  latency rises most from one size to the next at",
                    profile_figure_bytes(node_class->cache_curve[i].bytes).text,
                    rise_at(node_class, i));
        }
    }
    fputs(shown ? "\n" : "", stream);
}

/* The figures of the pairs of one kind. */
struct range {
    double low, high;
    size_t pairs;
};

static void widen_range(struct range *range, double value)
{
    range->low = range->pairs ? fmin(range->low, value) : value;
    range->high = fmax(range->high, value);
    range->pairs++;
}

static void print_ratios(FILE *stream, const struct range *range, const char *separator,
                         const char *kind)
{
    if (range->pairs) {
        fprintf(stream, "%s %s %.2f", separator, kind, range->low);
        if (range->high > range->low) {
            fprintf(stream, " to %.2f", range->high);
        }
        fprintf(stream, " (%zu)", range->pairs);
    }
}

void profile_show_ratios(const struct profile_cache *cache, FILE *stream)
{
    struct range of[2] = {0};
    for (size_t i = 0; i < cache->pair_ratio_count; i++) {
        const struct profile_pair_figure *pair = &cache->pair_ratios[i];
        widen_range(&of[profile_related(&cache->sharing, pair->a, pair->b)], pair->value);
    }
    if (cache->pair_ratio_count) {
        fprintf(stream, "  L%u, time of two PUs together to alone:", cache->level);
        print_ratios(stream, &of[true], "", "sharing");
        print_ratios(stream, &of[false], of[true].pairs ? "," : "", "not sharing");
        fputs(" pairs, each in --json\n", stream);
    }
}

/* The worst level that holds the pair; level_count: none does. */
static size_t level_of(const struct profile_memory *memory, uint32_t a, uint32_t b)
{
    size_t level = 0;
    while (level < memory->level_count &&
           !profile_related(&memory->levels[level].collisions, a, b)) {
        level++;
    }
    return level;
}

void profile_show_pair_rates(const struct profile_memory *memory, FILE *stream)
{
    bool first = true;
    for (size_t level = 0; level <= memory->level_count; level++) {
        struct range range = {0};
        for (size_t i = 0; i < memory->pair_rate_count; i++) {
            const struct profile_pair_figure *pair = &memory->pair_rates[i];
            if (level_of(memory, pair->a, pair->b) == level) {
                widen_range(&range, pair->value);
            }
        }
        if (range.pairs) {
            fprintf(stream, "%s %s", first ? "  the slower of two PUs at once:" : ",",
                    profile_figure_bandwidth(range.low).text);
            if (range.high > range.low) {
                fprintf(stream, " to %s", profile_figure_bandwidth(range.high).text);
            }
            fprintf(stream, range.pairs > 1 ? " (%zu pairs" : " (%zu pair", range.pairs);
            fprintf(stream, level < memory->level_count ? ", level %zu)" : ")", level);
            first = false;
        }
    }
    fputs(first ? "" : "; each in --json\n", stream);
}
