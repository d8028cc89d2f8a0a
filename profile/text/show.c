/* A profile in words and tables, one after the other as the papers have them. A figure that was not
 * measured is named as missing. */
#include "profile/base/cli.h"
#include "profile/base/control_groups.h"
#include "profile/query.h"
#include "profile/text/text.h"
#include "profile/tiers.h"

#include <math.h>
#include <stdlib.h>

#define INDENT_TEXT 2

struct show {
    const struct servet_profile *profile;
    FILE *stream;
};

/* Prints a table below its title, or nothing where it is empty. */
static void print_table(const struct show *show, const char *title, struct table *table)
{
    if (table->row_count > 1 && title) {
        fprintf(show->stream, "\n%s\n", title);
    }
    profile_table_print(table, show->stream, INDENT_TEXT);
}

/* A set of any size; the rest is free text, so that no cut is needed. */
static void set_line(const struct show *show, const char *name, const struct profile_set *set,
                     const char *more)
{
    char *text = cli_needed(profile_set_text(set));
    fprintf(show->stream, "%*s%s %s%s\n", INDENT_TEXT, "", name, set->count ? text : "none", more);
    free(text);
}

void profile_show_bsp(const struct servet_profile *profile, FILE *stream)
{
    struct show show = {profile, stream};
    struct table table = {0};
    fprintf(stream, "BSP parameters: T(h) = h g + l flops\n");
    profile_table_bsp(&table, profile);
    print_table(&show, NULL, &table);
}

/* -- head -- */

static const char *or_unknown(const char *text)
{
    return text && *text ? text : "not known";
}

static void show_head(const struct show *show, const char *source, double quota)
{
    const struct servet_profile *p = show->profile;
    FILE *out = show->stream;
    fprintf(out, "host         %s\n", p->host_name);
    fprintf(out, "processor    %s, %s\n", or_unknown(p->cpu_model), or_unknown(p->architecture));
    fprintf(out, "kernel       %s\n", or_unknown(p->kernel));
    fprintf(out, "profile      %s\n",
            source ? source : "none found: this is what the operating system declares");
    if (quota > 0) {
        fprintf(out, "quota        %.3g CPUs; workers at a time: %u\n", quota,
                profile_quota_workers(quota));
    }
    if (!p->measured) {
        fprintf(out,
                "measured     not measured: sizes and groups are declared, there are no bandwidths "
                "and latencies%s\n",
                source ? "" : "; run servet-probe");
        return;
    }
    fprintf(out, "measured     %s, by %s",
            p->started && *p->started ? p->started : "at a time not known", or_unknown(p->tool));
    if (p->seconds > 0) {
        fprintf(out, ", took %.3g s", p->seconds);
    }
    fputc('\n', out);
    for (size_t i = 0; i < p->condition_count; i++) {
        fprintf(out, "%s %s: %s\n", i ? "            " : "conditions  ", p->conditions[i].key,
                p->conditions[i].value);
    }
}

/* -- a node class -- */

/* "(16 GiB, HBM, 800 GB/s declared, 690 GB/s together, fast memory)" */
static void describe_numa(const struct profile_numa *numa, const char *tier, char *out, size_t size)
{
    size_t used =
        (size_t)snprintf(out, size, " (%.48s", profile_figure_bytes(numa->memory_bytes).text);
    if (numa->kind) {
        used += (size_t)snprintf(out + used, size - used, ", %.32s", numa->kind);
    }
    if (numa->declared_bytes_per_s > 0) {
        used += (size_t)snprintf(out + used, size - used, ", %.32s declared",
                                 profile_figure_bandwidth(numa->declared_bytes_per_s).text);
    }
    if (numa->together_bytes_per_s > 0) {
        used += (size_t)snprintf(out + used, size - used, ", %.32s together",
                                 profile_figure_bandwidth(numa->together_bytes_per_s).text);
    }
    snprintf(out + used, size - used, "%s%s%s)", *tier ? ", " : "", tier, *tier ? " memory" : "");
}

static void show_numa(const struct show *show, const struct profile_class *node_class)
{
    struct profile_tiers tiers;
    cli_done(profile_tiers_make(node_class, &tiers));
    for (size_t i = 0; i < node_class->numa_count; i++) {
        const struct profile_numa *numa = &node_class->numa[i];
        char name[32], memory[208] = "";
        snprintf(name, sizeof name, "NUMA %-4u", numa->os_index);
        if (numa->memory_bytes) {
            describe_numa(numa, profile_tier_word(&tiers, tiers.nodes[i].tier), memory,
                          sizeof memory);
        }
        set_line(show, name, &numa->pus, memory);
    }
    profile_tiers_free(&tiers);
}

static void show_class_head(const struct show *show, const struct profile_class *node_class,
                            size_t index)
{
    const struct servet_profile *p = show->profile;
    FILE *out = show->stream;
    fprintf(out, "\nNode class %zu%s%s\n", index, node_class->name ? ": " : "",
            node_class->name ? node_class->name : "");
    for (size_t i = 0; i < p->node_range_count; i++) {
        if (p->nodes[i].class_index == index) {
            fprintf(out, "%*snodes     %s\n", INDENT_TEXT, "", p->nodes[i].names);
        }
    }
    set_line(show, "PUs      ", &node_class->pus, "");
    if (node_class->cores.group_count) {
        fprintf(out, "%*scores     %s\n", INDENT_TEXT, "",
                profile_figure_relation(&node_class->cores).text);
    }
    if (node_class->packages.group_count) {
        fprintf(out, "%*spackages  %s\n", INDENT_TEXT, "",
                profile_figure_relation(&node_class->packages).text);
    }
    show_numa(show, node_class);
    for (size_t i = 0; i < node_class->kind_count; i++) {
        char more[48];
        snprintf(more, sizeof more, " (efficiency %u)", node_class->kinds[i].efficiency);
        set_line(show, "kind     ", &node_class->kinds[i].pus, more);
    }
}

/* -- figures behind the tables, a line each: the rise of the latency (2010 paper, Figure 2b), the
 * interference of two PUs in a cache (Figure 8) and at memory (Figure 9a). A figure for each pair
 * would fill pages; minimum and maximum of each kind of pairs show whether the kinds are separate.
 * Nothing where it was not measured. -- */

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

static void show_rises(const struct profile_class *node_class, FILE *stream)
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

static void show_ratios(const struct profile_cache *cache, FILE *stream)
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

static void show_pair_rates(const struct profile_memory *memory, FILE *stream)
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

/* -- caches, memory -- */

static void show_caches(const struct show *show, const struct profile_class *node_class)
{
    struct table table = {0};
    if (!node_class->cache_count) {
        fprintf(show->stream, "\nCaches: none known\n");
        return;
    }
    profile_table_caches(&table, node_class);
    print_table(show, "Caches", &table);
    show_rises(node_class, show->stream);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        show_ratios(&node_class->caches[i], show->stream);
    }
}

static void show_scaling(const struct show *show, const struct profile_memory_level *level,
                         size_t index)
{
    for (size_t i = 0; i < level->scaling_count; i++) {
        if (!i) {
            fprintf(show->stream, "%*slevel %zu, all workers together:", INDENT_TEXT, "", index);
        }
        fprintf(show->stream, "%s %u: %s", i ? "," : "", level->scaling[i].workers,
                profile_figure_bandwidth(level->scaling[i].bytes_per_s).text);
        fputs(i + 1 == level->scaling_count ? "\n" : "", show->stream);
    }
}

/* A table that needs no more than itself. */
static void show_table(const struct show *show, const char *title,
                       void (*make)(struct table *table, const struct profile_class *node_class),
                       const struct profile_class *node_class)
{
    struct table table = {0};
    make(&table, node_class);
    print_table(show, title, &table);
}

static void show_memory(const struct show *show, const struct profile_class *node_class)
{
    const struct profile_memory *memory = &node_class->memory;
    struct table table = {0};
    fprintf(show->stream, "\nMemory access\n");
    if (memory->method) {
        fprintf(show->stream, "%*s%s\n", INDENT_TEXT, "", memory->method);
    }
    if (!(memory->reference_bytes_per_s > 0)) {
        fprintf(show->stream, "%*sbandwidth: not measured\n", INDENT_TEXT, "");
    }
    show_table(show, NULL, profile_table_kernels, node_class);
    show_pair_rates(memory, show->stream);
    if (!memory->level_count) {
        const char *note = memory->quality.note;
        if (memory->pair_rate_count > 0 || !note) {
            note = "no overhead: no two PUs disturb one another";
        } else if (memory->reference_bytes_per_s > 0) {
            return; /* the table has the note */
        }
        fprintf(show->stream, "%*s%s\n", INDENT_TEXT, "", note);
        return;
    }
    profile_table_levels(&table, memory, false);
    print_table(show, NULL, &table);
    for (size_t i = 0; i < memory->level_count; i++) {
        show_scaling(show, &memory->levels[i], i);
    }
}

/* -- communication -- */

/* Sizes in the table of message times: the first, the last and evenly between; --json has all of
 * them. */
#define CURVE_ROWS 8
#define CURVE_LAYERS (TABLE_COLUMNS - 1)

static const struct profile_message_point *point_at(const struct profile_layer *layer,
                                                    uint64_t bytes)
{
    for (size_t i = 0; i < layer->curve_count; i++) {
        if (layer->curve[i].bytes == bytes) {
            return &layer->curve[i];
        }
    }
    return NULL;
}

static void add_size(struct table *table, const struct profile_communication *communication,
                     uint64_t bytes)
{
    char row[TABLE_COLUMNS * sizeof(struct figure)];
    int used = snprintf(row, sizeof row, "%s", bytes ? profile_figure_bytes(bytes).text : "0 B");
    for (size_t i = 0; i < communication->layer_count && i < CURVE_LAYERS; i++) {
        const struct profile_message_point *point = point_at(&communication->layers[i], bytes);
        used += snprintf(row + used, sizeof row - (size_t)used, "\t%s",
                         point ? profile_figure_seconds(point->seconds).text : "-");
    }
    profile_table_row(table, "%s", row);
}

static void show_sizes(const struct show *show, const struct profile_communication *communication)
{
    const struct profile_layer *longest = communication->layers;
    struct table table = {0};
    for (size_t i = 1; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        longest = layer->curve_count > longest->curve_count ? layer : longest;
    }
    char head[TABLE_COLUMNS * sizeof "layer 0"] = "";
    int used = 0;
    size_t count = longest->curve_count, rows = count < CURVE_ROWS ? count : CURVE_ROWS;
    if (!count) {
        return;
    }
    for (size_t i = 0; i < communication->layer_count && i < CURVE_LAYERS; i++) {
        used += snprintf(head + used, sizeof head - (size_t)used, "\tlayer %zu", i);
    }
    profile_table_row(&table, "size%s", head);
    for (size_t i = 0; i < rows; i++) {
        add_size(&table, communication,
                 longest->curve[rows > 1 ? i * (count - 1) / (rows - 1) : 0].bytes);
    }
    fprintf(show->stream, "%*stime by size, one way%s\n", INDENT_TEXT, "",
            count > rows ? " (all sizes: --json)" : "");
    print_table(show, NULL, &table);
}

static void show_concurrency(const struct show *show, const struct profile_layer *layer,
                             size_t index)
{
    for (size_t i = 0; i < layer->concurrency_count; i++) {
        if (!i) {
            fprintf(show->stream, "%*slayer %zu, messages at a time:", INDENT_TEXT, "", index);
        }
        fprintf(show->stream, "%s %u: %s", i ? "," : "", layer->concurrency[i].messages,
                profile_figure_seconds(layer->concurrency[i].seconds).text);
        fputs(i + 1 == layer->concurrency_count ? "\n" : "", show->stream);
    }
}

/* "core to core, one cache line: 24 ns (core), 98 ns (L3)" */
static void show_lines(const struct show *show, const struct profile_communication *communication)
{
    bool first = true;
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        if (!(layer->line_seconds > 0)) {
            continue;
        }
        if (first) {
            fprintf(show->stream, "%*score to core, one cache line:", INDENT_TEXT, "");
        }
        fprintf(show->stream, "%s %s (%s", first ? "" : ",",
                profile_figure_seconds(layer->line_seconds).text,
                layer->name ? layer->name : "layer");
        if (layer->line_quality.spread > 0) {
            fprintf(show->stream, ", spread %.0f %%", 100 * layer->line_quality.spread);
        }
        fputc(')', show->stream);
        first = false;
    }
    if (communication->line_time_count > 1) {
        fprintf(show->stream, "; %zu pairs, each in --json", communication->line_time_count);
    }
    fputs(first ? "" : "\n", show->stream);
}

static void show_communication(const struct show *show,
                               const struct profile_communication *communication, const char *where,
                               const char *members)
{
    struct table table = {0};
    if (!communication->layer_count) {
        return;
    }
    fprintf(show->stream, "\nMessages %s", where);
    if (communication->message_bytes && show->profile->measured) {
        const char *data = communication->message_data;
        fprintf(show->stream, " (latency of %s%s%s, one way)",
                profile_figure_bytes(communication->message_bytes).text, data ? ", data " : "",
                data ? data : "");
    }
    fputc('\n', show->stream);
    profile_table_layers(&table, communication, "latency", members);
    print_table(show, NULL, &table);
    for (size_t i = 0; i < communication->layer_count; i++) {
        show_concurrency(show, &communication->layers[i], i);
    }
    show_lines(show, communication);
    show_sizes(show, communication);
}

void profile_show_text(const struct servet_profile *profile, const char *source, double quota,
                       FILE *stream)
{
    struct show show = {profile, stream};
    show_head(&show, source, quota);
    for (size_t i = 0; i < profile->class_count; i++) {
        const struct profile_class *node_class = &profile->classes[i];
        show_class_head(&show, node_class, i);
        show_caches(&show, node_class);
        show_table(&show, "TLB", profile_table_tlb, node_class);
        show_memory(&show, node_class);
        show_table(&show, "Memory of each NUMA node", profile_table_access, node_class);
        show_table(&show, "Devices", profile_table_devices, node_class);
        if (profile->measured) {
            show_table(&show, "Copies between memory of a NUMA node and a GPU",
                       profile_table_transfers, node_class);
        }
        show_communication(&show, &node_class->communication, "inside a node", "PUs");
    }
    show_communication(&show, &profile->network, "between nodes", "nodes (numbered from 0)");
    if (profile->bsp_count) {
        fputc('\n', stream);
        profile_show_bsp(profile, stream);
    }
}
