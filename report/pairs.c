/* What one PU does to each other one: in each cache (2010 paper, Figure 8), at memory (Figure 9a).
 * As in the paper, of one PU alone: the lowest that has measured pairs. */
#include "report/report.h"

/* How many pairs at the front of an ascending list have the same lower PU. */
static size_t pairs_of_first(const struct profile_pair_figure *pairs, size_t count)
{
    size_t of_first = 0;
    while (of_first < count && pairs[of_first].a == pairs[0].a) {
        of_first++;
    }
    return of_first;
}

static void write_pairs(FILE *out, const char *name, size_t number,
                        const struct profile_pair_figure *pairs, size_t count)
{
    fprintf(out, "$%s%zu << EOD\n", name, number);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%u %.6g\n", pairs[i].b, pairs[i].value);
    }
    fputs("EOD\n", out);
}

static void others_axis(FILE *out, const struct profile_class *node_class)
{
    fprintf(out,
            "set xrange [-0.5:%u.5]\nset yrange [0:*]\nset ytics add ('0' 0)\n"
            "set xlabel 'the other PU'\n",
            node_class->pus.ids[node_class->pus.count - 1]);
}

void report_plot_pair_rates(struct plot_list *list, const struct servet_profile *profile,
                            size_t index)
{
    const struct profile_class *node_class = &profile->classes[index];
    const struct profile_memory *memory = &node_class->memory;
    size_t of_first = pairs_of_first(memory->pair_rates, memory->pair_rate_count);
    FILE *out = of_first < 2
                    ? NULL
                    : report_plot_open(list, PLOT_MEMORY, PLOT_CURVE, index, profile->class_count,
                                       "memory-pairs", "Memory bandwidth beside one other PU");
    if (!out) {
        return;
    }
    others_axis(out, node_class);
    fputs("set format y '%.1s %cB/s'\nset ylabel 'the slower of the two'\n"
          "set key bottom right\n",
          out);
    write_pairs(out, "pairs", 0, memory->pair_rates, of_first);
    fputs("plot ", out);
    if (memory->reference_bytes_per_s > 0) {
        fprintf(out, "%.6g with lines dt 3 lc rgb muted title 'alone', ",
                memory->reference_bytes_per_s);
    }
    fputs("$pairs0 using 1:2 with points lc rgb c1 pt 7 ps 0.7 notitle\n", out);
    report_plot_close(list, "PU %u and another one copy at the same time.",
                      memory->pair_rates[0].a);
}

/* The cache's pairs of the class's lowest PU with measured ones in any cache. */
static size_t ratios_of(const struct profile_cache *cache, uint32_t pu,
                        const struct profile_pair_figure **pairs)
{
    size_t first = 0;
    while (first < cache->pair_ratio_count && cache->pair_ratios[first].a < pu) {
        first++;
    }
    *pairs = cache->pair_ratios + first;
    bool any = first < cache->pair_ratio_count && (*pairs)->a == pu;
    return any ? pairs_of_first(*pairs, cache->pair_ratio_count - first) : 0;
}

static uint32_t lowest_with_ratios(const struct profile_class *node_class)
{
    uint32_t lowest = UINT32_MAX;
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        if (cache->pair_ratio_count && cache->pair_ratios[0].a < lowest) {
            lowest = cache->pair_ratios[0].a;
        }
    }
    return lowest;
}

void report_plot_pair_ratios(struct plot_list *list, const struct servet_profile *profile,
                             size_t index)
{
    const struct profile_class *node_class = &profile->classes[index];
    const uint32_t pu = lowest_with_ratios(node_class);
    const struct profile_pair_figure *pairs;
    FILE *out = pu == UINT32_MAX
                    ? NULL
                    : report_plot_open(list, PLOT_CACHES, PLOT_CURVE, index, profile->class_count,
                                       "cache-pairs", "Time in a cache beside one other PU");
    if (!out) {
        return;
    }
    others_axis(out, node_class);
    fputs("set ylabel 'times that alone' offset 1\nset key tmargin center horizontal\n", out);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        size_t count = ratios_of(&node_class->caches[i], pu, &pairs);
        write_pairs(out, "cache", i, pairs, count);
    }
    fputs("plot 1 with lines dt 3 lc rgb muted title 'alone'", out);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        if (ratios_of(&node_class->caches[i], pu, &pairs)) {
            fprintf(out, ", $cache%zu using 1:2 with points lc rgb c%u pt 7 ps 0.7 title 'L%u'", i,
                    (node_class->caches[i].level - 1) % PLOT_COLOURS + 1,
                    node_class->caches[i].level);
        }
    }
    fputc('\n', out);
    report_plot_close(list,
                      "PU %u and another one use two thirds of the cache each: the slower of the "
                      "two takes much longer where it is one cache.",
                      pu);
}
