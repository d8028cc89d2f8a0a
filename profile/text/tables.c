/* The tables of a profile, for the text of servet-show and for its page: the same rows in both. A
 * cell is as short as a column of text needs; what it leaves out (all groups, the note on how a
 * figure was measured) stands behind it, and the page opens to that. */
#include "profile/text/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/codec/codec.h"

/* -- tables -- */

#define GAP "  "

void profile_table_row(struct table *table, const char *format, ...)
{
    va_list args;
    table->rows = cli_needed(reallocarray(table->rows, table->row_count + 1, sizeof *table->rows));
    va_start(args, format);
    cli_done(vasprintf(&table->rows[table->row_count++], format, args));
    va_end(args);
}

void profile_table_cell(struct table *table, const char *shown, const char *all)
{
    char **row = &table->rows[table->row_count - 1], *before = *row;
    cli_done(asprintf(row, "%s\t%s%s%s", before, shown, all ? "\v" : "", all ? all : ""));
    free(before);
}

/* Length of what the cell at *at shows; *at moves to the next one, NULL: it was the last. */
static size_t next_cell(const char **at)
{
    const size_t shown = strcspn(*at, "\t\v");
    *at = strchr(*at, '\t');
    *at = *at ? *at + 1 : NULL;
    return shown;
}

void profile_table_free(struct table *table)
{
    for (size_t row = 0; row < table->row_count; row++) {
        free(table->rows[row]);
    }
    free(table->rows);
    *table = (struct table){0};
}

/* What the last cell of a row leaves out, the note on a measurement; NULL: nothing. */
static const char *note_of(const char *row)
{
    const char *note = strrchr(row, '\v');
    return note && !strchr(note, '\t') ? note + 1 : NULL;
}

/* How many of the first rows have this note. */
static size_t count_noted(const struct table *table, size_t rows, const char *note)
{
    size_t same = 0;
    for (size_t row = 1; row < rows; row++) {
        const char *other = note_of(table->rows[row]);
        same += other && strcmp(other, note) == 0;
    }
    return same;
}

/* Each note once: of sixteen NUMA nodes two hundred rows would say the same. */
static void print_notes(const struct table *table, FILE *stream, int indent)
{
    for (size_t row = 1; row < table->row_count; row++) {
        const char *head = table->rows[0], *cell = table->rows[row], *note = note_of(cell);
        if (!note || count_noted(table, row, note)) {
            continue;
        }
        fprintf(stream, "%*snote on %.*s %.*s", indent, "", (int)strcspn(head, "\t"), head,
                (int)strcspn(cell, "\t"), cell);
        if (count_noted(table, table->row_count, note) > 1) {
            fprintf(stream, ", and %zu more", count_noted(table, table->row_count, note) - 1);
        }
        fprintf(stream, ": %s\n", note);
    }
}

void profile_table_print(struct table *table, FILE *stream, int indent)
{
    size_t widths[TABLE_COLUMNS] = {0}, column;
    const bool any = table->row_count > 1;
    for (size_t row = 0; row < table->row_count; row++) {
        const char *at = table->rows[row];
        for (column = 0; at && column < TABLE_COLUMNS; column++) {
            size_t length = next_cell(&at);
            widths[column] = length > widths[column] ? length : widths[column];
        }
    }
    for (size_t row = 0; any && row < table->row_count; row++) {
        const char *cell = table->rows[row], *at = cell;
        for (column = 0; at && column < TABLE_COLUMNS; column++, cell = at) {
            size_t length = next_cell(&at);
            /* No spaces at the end of a line. */
            const int width = at ? (int)widths[column] : 0;
            fprintf(stream, "%*s%*.*s%s", column ? 0 : indent, "", table->numbers ? width : -width,
                    (int)length, cell, at ? GAP : "\n");
        }
    }
    if (any) {
        print_notes(table, stream, indent);
    }
    profile_table_free(table);
}

/* -- cells -- */

char *profile_relation_text(const struct profile_relation *relation)
{
    char *all = NULL;
    size_t length;
    FILE *stream = cli_needed(profile_stream_open(&all, &length));
    for (size_t i = 0; i < relation->group_count; i++) {
        char *text = cli_needed(profile_set_text(&relation->groups[i]));
        fprintf(stream, "%s ", text);
        free(text);
    }
    for (size_t i = 0; i < relation->pair_count; i++) {
        fprintf(stream, "%u+%u ", relation->pairs[i].a, relation->pairs[i].b);
    }
    cli_done(fclose(stream));
    return all;
}

/* Groups that are too many for a cell: all of them stand behind it. Takes `all`. */
static void groups_cell(struct table *table, struct figure shown, char *all)
{
    profile_table_cell(table, shown.text, strstr(shown.text, "... (") ? all : NULL);
    free(all);
}

/* `all`: they are all PUs of the class. */
static void set_cell(struct table *table, const struct profile_set *set, bool all)
{
    if (all) {
        profile_table_cell(table, "all", NULL);
    } else {
        groups_cell(table, profile_figure_group(set), cli_needed(profile_set_text(set)));
    }
}

static void quality_cell(struct table *table, const struct profile_quality *quality)
{
    profile_table_cell(table, profile_figure_quality(quality).text, quality->note);
}

static struct figure figure_number(uint32_t value)
{
    struct figure out = {"-"};
    if (value != PROFILE_NOT_SAID) {
        snprintf(out.text, sizeof out.text, "%u", value);
    }
    return out;
}

/* -- the tables -- */

void profile_table_caches(struct table *table, const struct profile_class *node_class)
{
    profile_table_row(table, "level\teffective\tdeclared\tline\tways\tshared by\tPUs\tquality");
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        profile_table_row(table, "L%u\t%s\t%s\t%s\t%s", cache->level,
                          profile_figure_cache(cache).text,
                          profile_figure_bytes(cache->declared_size_bytes).text,
                          profile_figure_bytes(cache->line_bytes).text,
                          cache->associativity ? figure_number(cache->associativity).text : "-");
        groups_cell(table, profile_figure_sharers(&cache->sharing),
                    profile_relation_text(&cache->sharing));
        set_cell(table, &cache->pus, cache->pus.count == 0);
        quality_cell(table, &cache->quality);
    }
}

void profile_table_tlb(struct table *table, const struct profile_class *node_class)
{
    profile_table_row(table, "pages\treach\ta miss adds\tquality");
    for (size_t i = 0; i < node_class->tlb_count; i++) {
        const struct profile_tlb *level = &node_class->tlb[i];
        profile_table_row(table, "%s\t%s\t%s", profile_figure_bytes(level->page_bytes).text,
                          profile_figure_bytes(level->reach_bytes).text,
                          profile_figure_seconds(level->seconds).text);
        quality_cell(table, &level->quality);
    }
}

void profile_table_access(struct table *table, const struct profile_class *node_class)
{
    profile_table_row(table, "PUs\tnode\tlatency\tone PU alone\tquality");
    for (size_t i = 0; i < node_class->numa_access_count; i++) {
        const struct profile_numa_access *row = &node_class->numa_access[i];
        profile_table_row(table, "%s\t%u\t%s\t%s", profile_figure_group(&row->pus).text, row->node,
                          profile_figure_seconds(row->seconds_per_access).text,
                          profile_figure_bandwidth(row->bytes_per_s).text);
        quality_cell(table, &row->quality);
    }
}

/* "86 %" of what it gets alone is left to each of `together` PUs; "-" where one is not known. */
static struct figure kept(const struct profile_kernel_rate *rate, size_t together)
{
    struct figure out = {"-"};
    double all = (double)together * rate->bytes_per_s;
    if (rate->together_bytes_per_s > 0 && all > 0) {
        snprintf(out.text, sizeof out.text, "%.0f %%", 100 * rate->together_bytes_per_s / all);
    }
    return out;
}

void profile_table_kernels(struct table *table, const struct profile_class *node_class)
{
    const struct profile_memory *memory = &node_class->memory;
    const size_t together = memory->kernel_pus.count;
    static const char *const names[] = {[PROFILE_NT_COPY] = "copy, non-temporal stores",
                                        [PROFILE_COPY] = "copy, ordinary stores",
                                        [PROFILE_READ] = "read",
                                        [PROFILE_TRIAD] = "STREAM's triad"};
    profile_table_row(table, "bandwidth of\tone PU alone\t%s%s together\teach keeps\tquality",
                      together ? "PUs " : "more PUs",
                      together ? profile_figure_group(&memory->kernel_pus).text : "");
    if (memory->reference_bytes_per_s > 0) {
        profile_table_row(table, "copy (of the levels)\t%s\t-\t-",
                          profile_figure_bandwidth(memory->reference_bytes_per_s).text);
        quality_cell(table, &memory->quality);
    }
    for (size_t i = 0; i < memory->kernel_count; i++) {
        const struct profile_kernel_rate *rate = &memory->kernels[i];
        profile_table_row(table, "%s\t%s\t%s\t%s", names[rate->kernel],
                          profile_figure_bandwidth(rate->bytes_per_s).text,
                          profile_figure_bandwidth(rate->together_bytes_per_s).text,
                          kept(rate, together).text);
        quality_cell(table, &rate->quality);
    }
}

bool profile_level_disturbs(const struct profile_memory *memory, size_t level)
{
    const double keeps = 0.95; /* less than repeated measurements of an idle machine differ by */
    const struct profile_memory_level *of = &memory->levels[level];
    const double alone = keeps * memory->reference_bytes_per_s;
    const struct profile_scaling_point *last =
        of->scaling_count ? &of->scaling[of->scaling_count - 1] : NULL;
    return alone <= 0 || of->bytes_per_s < alone ||
           (last && last->bytes_per_s < last->workers * alone);
}

void profile_table_levels(struct table *table, const struct profile_memory *memory,
                          bool only_disturbing)
{
    profile_table_row(
        table, "overhead level\teach of two PUs at once\tPUs that disturb one another\tquality");
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        if (only_disturbing && !profile_level_disturbs(memory, i)) {
            continue;
        }
        profile_table_row(table, "%zu%s\t%s", i, i ? "" : " (worst)",
                          profile_figure_bandwidth(level->bytes_per_s).text);
        groups_cell(table, profile_figure_relation(&level->collisions),
                    profile_relation_text(&level->collisions));
        quality_cell(table, &level->quality);
    }
}

void profile_table_devices(struct table *table, const struct profile_class *node_class)
{
    profile_table_row(table, "kind\tname\tbus\tcard\tNUMA\tnear PUs\tmodel");
    for (size_t i = 0; i < node_class->device_count; i++) {
        const struct profile_device *device = &node_class->devices[i];
        profile_table_row(table, "%s\t%s%s\t%s\t%u\t%s", profile_device_kind_names[device->kind],
                          device->name, device->down ? " (no link)" : "",
                          device->bus_id ? device->bus_id : "-", device->card,
                          figure_number(device->numa_node).text);
        /* all: near to no PUs in particular */
        set_cell(table, &device->pus, device->pus.count == node_class->pus.count);
        profile_table_cell(table, device->model ? device->model : "-", NULL);
    }
}

void profile_table_transfers(struct table *table, const struct profile_class *node_class)
{
    profile_table_row(table, "GPU\tnode\tto it\tfrom it\tlatency\tquality");
    for (size_t i = 0; i < node_class->device_count; i++) {
        const struct profile_device *device = &node_class->devices[i];
        if (device->kind != PROFILE_GPU) {
            continue;
        }
        for (size_t k = 0; k < device->transfer_count; k++) {
            const struct profile_transfer *row = &device->transfers[k];
            profile_table_row(table, "%s\t%u\t%s\t%s\t%s", device->name, row->node,
                              profile_figure_bandwidth(row->to_device_bytes_per_s).text,
                              profile_figure_bandwidth(row->from_device_bytes_per_s).text,
                              profile_figure_seconds(row->seconds).text);
            quality_cell(table, &row->quality);
        }
        if (!device->transfer_count) {
            profile_table_row(table, "%s\t-\tnot measured", device->name);
        }
    }
}

void profile_table_layers(struct table *table, const struct profile_communication *communication,
                          const char *latency, const char *members)
{
    profile_table_row(table, "layer\tname\t%s\t%s\tquality", latency, members);
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        profile_table_row(
            table, "%zu%s\t%s\t%s", i, i ? "" : " (fastest)", layer->name ? layer->name : "-",
            layer->seconds > 0 ? profile_figure_seconds(layer->seconds).text : "not measured");
        groups_cell(table, profile_figure_relation(&layer->members),
                    profile_relation_text(&layer->members));
        quality_cell(table, &layer->quality);
    }
}

/* From here on a figure is whole flops, with a blank at every thousand; below, three digits. */
#define WHOLE_FLOPS 100.0

/* 132 618, 0.731 */
static struct figure flops(double value)
{
    struct figure out;
    char digits[24];
    if (value < WHOLE_FLOPS) {
        snprintf(out.text, sizeof out.text, "%.3g", value);
        return out;
    }
    int length = snprintf(digits, sizeof digits, "%.0f", fmin(value, 1e15));
    size_t used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) {
            out.text[used++] = ' ';
        }
        out.text[used++] = digits[i];
    }
    out.text[used] = '\0';
    return out;
}

void profile_table_bsp(struct table *table, const struct servet_profile *profile)
{
    table->numbers = true;
    profile_table_row(table, "p\tg\tl\tT(0)\tg packets\tGflop/s\tbackend\tquality");
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        profile_table_row(table, "%u\t%s\t%s\t%s\t%s\t%.4g\t%s", bsp->processors,
                          flops(bsp->g_flops).text,
                          bsp->l_flops < 0 ? "-" : flops(bsp->l_flops).text,
                          bsp->t0_flops > 0 ? flops(bsp->t0_flops).text : "-",
                          bsp->g_packets_flops > 0 ? flops(bsp->g_packets_flops).text : "-",
                          bsp->r_flop_per_s * 1e-9, bsp->backend ? bsp->backend : "-");
        quality_cell(table, &bsp->quality);
    }
}
