/* The tables of the page: those of the text of servet-show, how many workers are worth having, and
 * every figure with its quality. Cells that are too long, and notes on how a figure was measured,
 * are folded: they open. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/worth/worth.h"
#include "profile/base/cli.h"
#include "profile/codec/codec.h"
#include "profile/text/chart.h"
#include "profile/text/text.h"
#include "report/report.h"

/* Longer than any number with its unit: such a cell may be broken into lines. */
#define NUMBER_WIDTH 20

/* -- what tables are made of -- */

/* A cell; one that leaves something out opens to that. The row is cut up. */
static void put_cell(FILE *out, char *cell, bool head)
{
    char *all = cell;
    const char *shown = strsep(&all, "\v");
    const bool number = isdigit((unsigned char)*shown) || *shown == '-';
    const char *class = all || strlen(shown) > NUMBER_WIDTH ? " class=\"words\""
                        : number                            ? " class=\"n\""
                                                            : "";
    fprintf(out, head ? "<th scope=\"row\">" : "<td%s>", class);
    fputs(all ? "<details><summary>" : "", out);
    profile_xml_text(out, shown);
    if (all) {
        fputs("</summary>", out);
        profile_xml_text(out, all);
        fputs("</details>", out);
    }
    fputs(head ? "</th>" : "</td>", out);
}

/* Text has no capitals at its heads; single letters are names. */
static void put_head(FILE *out, char *row, bool capitals)
{
    for (char *cell; (cell = strsep(&row, "\t"));) {
        *cell = (char)(capitals && cell[0] && cell[1] ? toupper((unsigned char)*cell) : *cell);
        fputs("<th scope=\"col\">", out);
        profile_xml_text(out, cell);
        fputs("</th>", out);
    }
}

bool report_table(FILE *out, const char *id, const char *caption, struct table *table)
{
    const bool any = table->row_count > 1;
    if (any && caption) {
        fprintf(out, "<div class=\"card scroll\" id=\"%s\">\n<table><caption>", id);
        profile_xml_text(out, caption);
        fputs("</caption>\n", out);
    } else if (any) {
        fputs("<div class=\"scroll\"><table>", out);
    }
    for (size_t row = 0; any && row < table->row_count; row++) {
        char *at = table->rows[row];
        fputs(row && row == table->chosen ? "<tr class=\"chosen\">" : "<tr>", out);
        if (row == 0) {
            put_head(out, at, caption);
        }
        for (bool head = true; row && at; head = false) {
            put_cell(out, strsep(&at, "\t"), head);
        }
        fputs("</tr>\n", out);
    }
    fputs(any ? "</table></div>\n" : "", out);
    profile_table_free(table);
    return any;
}

/* -- memory -- */

static void put_levels(FILE *out, const struct profile_memory *memory, const char *id)
{
    struct table table = {0};
    if (memory->method) {
        fputs("<details class=\"note\"><summary>How memory was measured</summary>Measured with ",
              out);
        profile_xml_text(out, memory->method);
        fputs(".</details>\n", out);
    }
    profile_table_levels(&table, memory, true);
    if (!report_table(out, id, "PUs that disturb one another at memory", &table) &&
        memory->reference_bytes_per_s > 0) {
        fputs("<p class=\"note\">No two PUs were found to disturb one another at memory.</p>\n",
              out);
    }
}

/* -- messages and BSP -- */

static void put_layers(FILE *out, const struct profile_communication *found, const char *where,
                       const char *id)
{
    struct table table = {0};
    char caption[64], latency[96];
    snprintf(caption, sizeof caption, "Layers %s", where);
    snprintf(latency, sizeof latency, "latency one way%s%.40s", found->message_bytes ? " of " : "",
             found->message_bytes ? profile_figure_bytes(found->message_bytes).text : "");
    profile_table_layers(&table, found, latency, "between");
    report_table(out, id, caption, &table);
}

/* The same for each class but the first, which has no number. */
static const char *class_id(char id[64], const char *name, size_t index)
{
    snprintf(id, 64, "%s", name);
    if (index) {
        snprintf(id, 64, "%s-%zu", name, index);
    }
    return id;
}

static void put_between_nodes(struct page *page, enum plot_section section)
{
    const struct servet_profile *profile = page->report->profile;
    struct table table = {0};
    if (section == PLOT_MESSAGES) {
        put_layers(page->out, &profile->network, "between nodes", "layers-network");
    } else if (section == PLOT_BSP) {
        profile_table_bsp(&table, profile);
        report_table(page->out, "bsp-table", "BSP parameters, in flops", &table);
    }
}

void report_html_tables(struct page *page, enum plot_section section)
{
    static const struct {
        void (*make)(struct table *table, const struct profile_class *node_class);
        enum plot_section section;
        const char *id, *caption;
    } tables[] = {
        {profile_table_caches, PLOT_CACHES, "cache-table", "Caches, from the core outwards"},
        {profile_table_tlb, PLOT_CACHES, "tlb", "TLB"},
        {profile_table_access, PLOT_MEMORY, "numa-access",
         "Memory of each NUMA node: latency of a load, bandwidth of one worker"},
        {profile_table_kernels, PLOT_MEMORY, "loops", "Loops over memory"},
        {profile_table_devices, PLOT_MEMORY, "devices", "GPUs, network cards and disks"},
        {profile_table_transfers, PLOT_MEMORY, "transfers",
         "Copies between memory of a NUMA node and a GPU"},
    };
    const size_t index = page->node_class;
    char id[64];
    if (index == PLOT_NETWORK) {
        put_between_nodes(page, section);
        return;
    }
    const struct profile_class *node_class = &page->report->profile->classes[index];
    if (section == PLOT_MEMORY) {
        put_levels(page->out, &node_class->memory, class_id(id, "overhead", index));
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct table table = {0};
        if (tables[i].section == section) {
            tables[i].make(&table, node_class);
            report_table(page->out, class_id(id, tables[i].id, index), tables[i].caption, &table);
        }
    }
    if (section == PLOT_MESSAGES) {
        put_layers(page->out, &node_class->communication, "inside a node",
                   class_id(id, "layers", index));
    }
}

/* -- advice -- */

static void put_worth(FILE *out, const struct map_worth_rows *rows)
{
    struct table table = {0}, queues = {0};
    char caption[96];
    snprintf(caption, sizeof caption, "Fewest workers that get %.0f %% of the memory bandwidth",
             MAP_WORTH_SHARE * 100);
    profile_table_row(
        &table,
        "of\tPUs\tworth having\tordinary copies\tcopies of the levels\tat most\tmeasured up "
        "to\ton PUs");
    for (size_t i = 0; i < rows->count; i++) {
        const struct map_worth_row *row = &rows->rows[i];
        char name[96], places[32];
        snprintf(name, sizeof name, row->groups > 1 ? "%s, %zu of them" : "%s", row->scope,
                 row->groups);
        if (!row->measured) {
            profile_table_row(&table, "%s\t%zu\t-\t-\t-\t-\t-\t-", name, row->pus);
            continue;
        }
        profile_table_row(&table, "%s\t%zu\t%zu\t%s\t%s\t%s\t%u", name, row->pus,
                          row->worth.workers,
                          profile_figure_bandwidth(row->worth.ordinary_bytes_per_s).text,
                          profile_figure_bandwidth(row->worth.bytes_per_s).text,
                          profile_figure_bandwidth(row->worth.most_bytes_per_s).text,
                          row->worth.measured_workers);
        snprintf(places, sizeof places, "%zu PUs", row->worth.workers);
        const bool many = strlen(row->places) > GROUPS_WIDTH / 2;
        profile_table_cell(&table, many ? places : row->places, many ? row->places : NULL);
    }
    report_table(out, "worth", caption, &table);
    profile_table_row(&queues, "layer\tworth having\tmeasured up to");
    for (size_t i = 0; i < rows->queue_count; i++) {
        const struct map_queue_row *row = &rows->queues[i];
        profile_table_row(&queues, "%s\t%u%s\t%u", row->layer, row->worth,
                          row->worth == row->most ? " or more" : "", row->most);
    }
    report_table(out, "queues", "Messages at a time beyond which a layer only queues", &queues);
}

static void put_suggestions(FILE *out, const struct map_suggestions *found, const char *id)
{
    struct table table = {0};
    char caption[128], launch[256] = "";
    snprintf(caption, sizeof caption, "Ranks and threads on a node of %u cores, %s priority",
             found->cores, found->priority == MAP_MEMORY ? "memory" : "communication");
    profile_table_row(
        &table, "ranks × threads\tordinary copies\tcopies of the levels\tL%u of a thread\treason",
        found->cache_level);
    for (size_t i = 0; i < found->count; i++) {
        const struct map_suggestion *row = &found->list[i];
        profile_table_row(&table, "%u × %u\t%s\t%s\t%s\t%s", row->ranks, row->threads,
                          profile_figure_bandwidth(row->ordinary_bytes_per_s).text,
                          profile_figure_bandwidth(row->bytes_per_s).text,
                          profile_figure_bytes((uint64_t)row->cache_bytes).text, row->why);
        if (row->chosen) {
            table.chosen = i + 1;
            map_suggest_launch(found, row, launch, sizeof launch);
        }
    }
    report_table(out, id, caption, &table);
    fputs("<p>Proposed: <code>", out);
    profile_xml_text(out, launch);
    fputs("</code></p>\n", out);
}

void report_html_advice(struct page *page)
{
    struct servet_error why;
    struct map_worth_rows rows;
    FILE *out = page->out;
    fputs("<section id=\"workers\">\n<h2>How many workers</h2>\n<p class=\"note\">Predicted from "
          "the profile; nothing was run for it.</p>\n",
          out);
    const int rc = map_worth_rows_make(page->report->profile, NULL, &rows, &why);
    if (rc == -ENODATA) {
        fputs("<p class=\"note\">", out);
        profile_xml_text(out, why.text);
        fputs("</p>\n", out);
    } else {
        cli_check(rc, &why);
        put_worth(out, &rows);
        map_worth_rows_free(&rows);
    }
    for (int i = 0; i < 2; i++) {
        const struct map_suggest_request request = {.priority = i ? MAP_COMMUNICATION : MAP_MEMORY};
        struct map_suggestions found;
        map_suggest(page->report->profile, &request, &found);
        put_suggestions(out, &found, i ? "suggest-communication" : "suggest-memory");
    }
    fputs("</section>\n", out);
}

/* -- every figure -- */

void report_html_figures(struct page *page)
{
    FILE *out = page->out;
    fputs("<section id=\"figures\">\n<h2>Every figure and its quality</h2>\n<details>"
          "<summary>Show</summary>\n",
          out);
    struct table table = {0};
    profile_table_row(&table, "place\tfigure\tvalue\torigin\trepetitions\tspread");
    for (size_t i = 0; i < page->items.count; i++) {
        const struct item *item = &page->items.items[i];
        const struct profile_quality *quality = item->quality;
        char repetitions[24] = "";
        bool spread = quality && quality->spread >= 0;
        if (quality && quality->repetitions) {
            snprintf(repetitions, sizeof repetitions, "%u", quality->repetitions);
        }
        profile_table_row(&table, "%s\t%s", item->where, item->name);
        profile_table_cell(&table, item->shown, strstr(item->shown, "... (") ? item->exact : NULL);
        profile_table_cell(&table, quality ? profile_origin_names[quality->origin] : "", NULL);
        profile_table_cell(&table, repetitions, NULL);
        profile_table_cell(&table, spread ? profile_figure_spread(quality->spread).text : "", NULL);
    }
    report_table(out, "figure-table",
                 "Spread: distance of the quartiles over the median. Inferred: taken over from an "
                 "equivalent thing that was measured.",
                 &table);
    fputs("</details>\n</section>\n", out);
}
