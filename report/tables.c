/* The tables of the page: caches, the TLB, memory, the layers of messages, BSP parameters, how many
 * workers are worth having, and every figure with its quality. Cells that are too long, and notes
 * on how a figure was measured, are folded: they open. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/worth/suggest.h"
#include "mapper/worth/worth.h"
#include "profile/codec/codec.h"
#include "profile/query.h"
#include "profile/text/chart.h"
#include "profile/text/text.h"
#include "profile/tiers.h"
#include "report/report.h"

/* -- what tables are made of -- */

void report_table_open(FILE *out, const char *id, const char *caption, const char *heads)
{
    fprintf(out, "<div class=\"card scroll\" id=\"%s\">\n<table><caption>", id);
    profile_xml_text(out, caption);
    fputs(*heads ? "</caption>\n<tr>" : "</caption>\n", out);
    while (*heads) {
        size_t length = strcspn(heads, "|");
        fprintf(out, "<th scope=\"col\">%.*s</th>", (int)length, heads);
        heads += length + (heads[length] == '|');
        fputs(*heads ? "" : "</tr>\n", out);
    }
}

void report_table_close(FILE *out)
{
    fputs("</table>\n</div>\n", out);
}

static void open_row(FILE *out, bool chosen, const char *text)
{
    fputs(chosen ? "<tr class=\"chosen\"><th scope=\"row\">" : "<tr><th scope=\"row\">", out);
    profile_xml_text(out, text);
    fputs("</th>", out);
}

void report_table_row(FILE *out, const char *text)
{
    open_row(out, false, text);
}

void report_table_cell(FILE *out, const char *look, const char *text)
{
    fprintf(out, look ? "<td class=\"%s\">" : "<td>", look);
    profile_xml_text(out, text ? text : "");
    fputs("</td>", out);
}

/* `shown`, which opens to `all`. */
static void folded_cell(FILE *out, const char *shown, const char *all)
{
    fputs("<td class=\"words\"><details><summary>", out);
    profile_xml_text(out, shown);
    fputs("</summary>", out);
    profile_xml_text(out, all);
    fputs("</details></td>", out);
}

/* Groups that are too many for a table: the first ones, and all of them when it is opened. */
static void groups_cell(FILE *out, const char *shown, char *all)
{
    if (all && strstr(shown, "... (")) {
        folded_cell(out, shown, all);
    } else {
        report_table_cell(out, NULL, shown);
    }
    free(all);
}

static void relation_cell(FILE *out, const struct profile_relation *relation)
{
    groups_cell(out, profile_figure_sharers(relation).text, report_relation_text(relation));
}

static void set_cell(FILE *out, const struct profile_set *set)
{
    groups_cell(out, profile_figure_group(set).text, profile_set_text(set));
}

/* How sure a figure is, which opens to the note on how it was measured. */
static void quality_cell(FILE *out, const struct profile_quality *quality)
{
    struct figure shown = profile_figure_quality(quality);
    if (quality->note) {
        folded_cell(out, shown.text, quality->note);
    } else {
        report_table_cell(out, "words", shown.text);
    }
}

/* -- caches -- */

static void put_caches(FILE *out, const struct profile_class *node_class, const char *id)
{
    report_table_open(out, id, "Caches, from the core outwards",
                      "Level|Effective|Declared|Line|Ways|Shared by|PUs|Quality");
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        char text[24];
        snprintf(text, sizeof text, "L%u", cache->level);
        report_table_row(out, text);
        report_table_cell(out, "n", profile_figure_cache(cache).text);
        report_table_cell(out, "n", profile_figure_bytes(cache->declared_size_bytes).text);
        report_table_cell(out, "n", profile_figure_bytes(cache->line_bytes).text);
        snprintf(text, sizeof text, "%u", cache->associativity);
        report_table_cell(out, "n", cache->associativity ? text : "-");
        relation_cell(out, &cache->sharing);
        if (cache->pus.count) {
            set_cell(out, &cache->pus);
        } else {
            report_table_cell(out, NULL, "all");
        }
        quality_cell(out, &cache->quality);
        fputs("</tr>\n", out);
    }
    report_table_close(out);
}

static void put_tlb(FILE *out, const struct profile_class *node_class, const char *id)
{
    if (!node_class->tlb_count) {
        return;
    }
    report_table_open(out, id, "TLB", "Pages|Reach|A miss adds|Quality");
    for (size_t i = 0; i < node_class->tlb_count; i++) {
        const struct profile_tlb *level = &node_class->tlb[i];
        report_table_row(out, profile_figure_bytes(level->page_bytes).text);
        report_table_cell(out, "n", profile_figure_bytes(level->reach_bytes).text);
        report_table_cell(out, "n", profile_figure_seconds(level->seconds).text);
        quality_cell(out, &level->quality);
        fputs("</tr>\n", out);
    }
    report_table_close(out);
}

/* -- memory -- */

static void put_reference(FILE *out, const struct profile_memory *memory)
{
    if (memory->reference_bytes_per_s > 0) {
        fprintf(out, "<p class=\"note\">One worker alone copies %s (%s).</p>\n",
                profile_figure_bandwidth(memory->reference_bytes_per_s).text,
                profile_figure_quality(&memory->quality).text);
    }
    if (memory->method || memory->quality.note) {
        fputs("<details class=\"note\"><summary>How memory was measured</summary>", out);
        if (memory->method) {
            fputs("Measured with ", out);
            profile_xml_text(out, memory->method);
            fputs(". ", out);
        }
        profile_xml_text(out, memory->quality.note ? memory->quality.note : "");
        fputs("</details>\n", out);
    }
}

static void put_access_cell(FILE *out, const struct profile_class *node_class,
                            const struct profile_set *pus, uint32_t node)
{
    char text[2 * sizeof(struct figure) + 8] = "-";
    for (size_t i = 0; i < node_class->numa_access_count; i++) {
        const struct profile_numa_access *row = &node_class->numa_access[i];
        if (row->node == node && profile_set_equal(&row->pus, pus)) {
            snprintf(text, sizeof text, "%s, %s",
                     profile_figure_seconds(row->seconds_per_access).text,
                     profile_figure_bandwidth(row->bytes_per_s).text);
        }
    }
    report_table_cell(out, "n", text);
}

/* With its tier, where memory is not all alike. */
static void put_node_heads(FILE *out, const struct profile_class *node_class)
{
    struct profile_tiers tiers = {0};
    (void)profile_tiers_make(node_class, &tiers);
    for (size_t n = 0; n < node_class->numa_count; n++) {
        const char *word = tiers.nodes ? profile_tier_word(&tiers, tiers.nodes[n].tier) : "";
        fprintf(out, "<th scope=\"col\">Node %u%s%s</th>", node_class->numa[n].os_index,
                *word ? ", " : "", word);
    }
    profile_tiers_free(&tiers);
}

/* Rows of one group of PUs lie together, by node. */
static void put_access(FILE *out, const struct profile_class *node_class, const char *id)
{
    const struct profile_numa_access *rows = node_class->numa_access;
    size_t count = node_class->numa_access_count;
    bool notes = false;
    if (!count) {
        return;
    }
    report_table_open(out, id,
                      "Memory of each NUMA node: latency of a load, bandwidth of one worker", "");
    fputs("<tr><th scope=\"col\">From PUs</th>", out);
    put_node_heads(out, node_class);
    fputs("</tr>\n", out);
    for (size_t i = 0; i < count; i++) {
        notes |= rows[i].quality.note != NULL;
        if (i && profile_set_equal(&rows[i].pus, &rows[i - 1].pus)) {
            continue;
        }
        report_table_row(out, profile_figure_group(&rows[i].pus).text);
        for (size_t n = 0; n < node_class->numa_count; n++) {
            put_access_cell(out, node_class, &rows[i].pus, node_class->numa[n].os_index);
        }
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
    fputs(notes ? "<details class=\"note\"><summary>Notes</summary><ul>\n" : "", out);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].quality.note) {
            fprintf(out, "<li>PUs from %u, node %u: ", rows[i].pus.ids[0], rows[i].node);
            profile_xml_text(out, rows[i].quality.note);
            fputs("</li>\n", out);
        }
    }
    fputs(notes ? "</ul></details>\n</div>\n" : "</div>\n", out);
}

static void put_kernels(FILE *out, const struct profile_memory *memory, const char *id)
{
    char heads[160];
    if (!memory->kernel_count) {
        return;
    }
    snprintf(heads, sizeof heads, "Loop|One PU|%s%.90s|Each keeps|Quality",
             memory->kernel_pus.count ? "PUs " : "More PUs",
             memory->kernel_pus.count ? profile_figure_group(&memory->kernel_pus).text : "");
    report_table_open(out, id, "Loops over memory", heads);
    for (size_t i = 0; i < memory->kernel_count; i++) {
        const struct profile_kernel_rate *rate = &memory->kernels[i];
        report_table_row(out, profile_figure_kernel(rate).text);
        report_table_cell(out, "n", profile_figure_bandwidth(rate->bytes_per_s).text);
        report_table_cell(out, "n", profile_figure_bandwidth(rate->together_bytes_per_s).text);
        report_table_cell(out, "n", profile_figure_kept(rate, memory->kernel_pus.count).text);
        quality_cell(out, &rate->quality);
        fputs("</tr>\n", out);
    }
    report_table_close(out);
}

static void put_levels(FILE *out, const struct profile_memory *memory, const char *id)
{
    size_t listed = 0;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        const struct profile_scaling_point *last =
            level->scaling_count ? &level->scaling[level->scaling_count - 1] : NULL;
        char all[sizeof(struct figure) + 32] = "-";
        if (!report_level_disturbs(memory, i)) {
            continue;
        }
        if (!listed++) {
            report_table_open(out, id, "PUs that disturb one another at memory",
                              "Overhead level|Each of two|Each of all|PUs|Quality");
        }
        if (last) {
            snprintf(all, sizeof all, "%s of %u",
                     profile_figure_bandwidth(last->bytes_per_s / last->workers).text,
                     last->workers);
        }
        fprintf(out, "<tr><th scope=\"row\">%zu%s</th>", i, i ? "" : " (worst)");
        report_table_cell(out, "n", profile_figure_bandwidth(level->bytes_per_s).text);
        report_table_cell(out, "n", all);
        relation_cell(out, &level->collisions);
        quality_cell(out, &level->quality);
        fputs("</tr>\n", out);
    }
    if (listed) {
        report_table_close(out);
    } else if (memory->reference_bytes_per_s > 0) {
        fputs("<p class=\"note\">No two PUs were found to disturb one another at memory.</p>\n",
              out);
    }
}

/* -- messages and BSP -- */

static void put_layers(FILE *out, const struct profile_communication *found, const char *where,
                       const char *id)
{
    char caption[64], heads[160];
    if (!found->layer_count) {
        return;
    }
    snprintf(caption, sizeof caption, "Layers %s", where);
    snprintf(heads, sizeof heads, "Layer|Name|Latency%s%.40s, one way|Between|Quality",
             found->message_bytes ? " of " : "",
             found->message_bytes ? profile_figure_bytes(found->message_bytes).text : "");
    report_table_open(out, id, caption, heads);
    for (size_t i = 0; i < found->layer_count; i++) {
        const struct profile_layer *layer = &found->layers[i];
        fprintf(out, "<tr><th scope=\"row\">%zu%s</th>", i, i ? "" : " (fastest)");
        report_table_cell(out, NULL, layer->name ? layer->name : "-");
        report_table_cell(out, "n", profile_figure_seconds(layer->seconds).text);
        groups_cell(out, profile_figure_relation(&layer->members).text,
                    report_relation_text(&layer->members));
        quality_cell(out, &layer->quality);
        fputs("</tr>\n", out);
    }
    report_table_close(out);
}

void report_html_network(struct page *page)
{
    put_layers(page->out, &page->report->profile->network, "between nodes", "layers-network");
}

void report_html_bsp(struct page *page)
{
    const struct servet_profile *profile = page->report->profile;
    const struct chart_axis flops = {.unit = "flop"}, rate = {.unit = "flop/s"};
    char text[64];
    if (!profile->bsp_count) {
        return;
    }
    report_table_open(page->out, "bsp-table", "BSP parameters", "p|Backend|r|g|l|T(0)|Quality");
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        const double figures[] = {bsp->g_flops, bsp->l_flops, bsp->t0_flops};
        snprintf(text, sizeof text, "%u", bsp->processors);
        report_table_row(page->out, text);
        report_table_cell(page->out, NULL, bsp->backend ? bsp->backend : "-");
        profile_chart_value(&rate, bsp->r_flop_per_s, text, sizeof text);
        report_table_cell(page->out, "n", text);
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++) {
            profile_chart_value(&flops, figures[k], text, sizeof text);
            report_table_cell(page->out, "n", figures[k] > 0 ? text : "-");
        }
        quality_cell(page->out, &bsp->quality);
        fputs("</tr>\n", page->out);
    }
    report_table_close(page->out);
}

static void put_devices(FILE *out, const struct profile_class *node_class, const char *id)
{
    if (!node_class->device_count) {
        return;
    }
    report_table_open(out, id, "GPUs, network cards and disks",
                      "Device|Kind|Model|Bus|Card|NUMA node|Near PUs");
    for (size_t i = 0; i < node_class->device_count; i++) {
        const struct profile_device *device = &node_class->devices[i];
        char card[16], node[16];
        snprintf(card, sizeof card, "%u", device->card);
        snprintf(node, sizeof node, "%u", device->numa_node);
        report_table_row(out, device->name);
        report_table_cell(out, NULL, profile_device_kind_names[device->kind]);
        report_table_cell(out, "words", device->model ? device->model : "-");
        report_table_cell(out, NULL, device->bus_id ? device->bus_id : "-");
        report_table_cell(out, "n", card);
        report_table_cell(out, "n", device->numa_node == PROFILE_NOT_SAID ? "-" : node);
        set_cell(out, &device->pus);
        fputs("</tr>\n", out);
    }
    report_table_close(out);
}

static void put_transfers(FILE *out, const struct profile_class *node_class, const char *id)
{
    bool open = false;
    for (size_t i = 0; i < node_class->device_count; i++) {
        const struct profile_device *device = &node_class->devices[i];
        for (size_t k = 0; k < device->transfer_count; k++) {
            const struct profile_transfer *row = &device->transfers[k];
            char node[16];
            if (!open) {
                report_table_open(out, id, "Copies between memory of a NUMA node and a GPU",
                                  "GPU|NUMA node|To it|From it|Latency|Quality");
                open = true;
            }
            snprintf(node, sizeof node, "%u", row->node);
            report_table_row(out, device->name);
            report_table_cell(out, "n", node);
            report_table_cell(out, "n", profile_figure_bandwidth(row->to_device_bytes_per_s).text);
            report_table_cell(out, "n",
                              profile_figure_bandwidth(row->from_device_bytes_per_s).text);
            report_table_cell(out, "n", profile_figure_seconds(row->seconds).text);
            quality_cell(out, &row->quality);
            fputs("</tr>\n", out);
        }
    }
    if (open) {
        report_table_close(out);
    }
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

void report_html_tables(struct page *page, enum plot_section section,
                        const struct profile_class *node_class)
{
    const size_t index = (size_t)(node_class - page->report->profile->classes);
    FILE *out = page->out;
    char id[64];
    if (section == PLOT_CACHES && node_class->cache_count) {
        put_caches(out, node_class, class_id(id, "cache-table", index));
        put_tlb(out, node_class, class_id(id, "tlb", index));
    }
    if (section == PLOT_MEMORY) {
        put_reference(out, &node_class->memory);
        put_access(out, node_class, class_id(id, "numa-access", index));
        put_kernels(out, &node_class->memory, class_id(id, "loops", index));
        put_levels(out, &node_class->memory, class_id(id, "overhead", index));
        put_devices(out, node_class, class_id(id, "devices", index));
        put_transfers(out, node_class, class_id(id, "transfers", index));
    }
    if (section == PLOT_MESSAGES) {
        put_layers(out, &node_class->communication, "inside a node", class_id(id, "layers", index));
    }
}

/* -- advice -- */

static void put_worth(FILE *out, const struct map_worth_rows *rows)
{
    char text[96];
    if (rows->count) {
        snprintf(text, sizeof text, "Fewest workers that get %.0f %% of the memory bandwidth",
                 MAP_WORTH_SHARE * 100);
        report_table_open(out, "worth", text,
                          "Of|PUs|Worth having|They get|At most|Measured up to|On PUs");
    }
    for (size_t i = 0; i < rows->count; i++) {
        const struct map_worth_row *row = &rows->rows[i];
        snprintf(text, sizeof text, row->groups > 1 ? "%s, %zu of them" : "%s", row->scope,
                 row->groups);
        report_table_row(out, text);
        fprintf(out, "<td class=\"n\">%zu</td>", row->pus);
        if (!row->measured) {
            fputs("<td>-</td><td>-</td><td>-</td><td>-</td><td>-</td></tr>\n", out);
            continue;
        }
        fprintf(out, "<td class=\"n\">%zu</td>", row->worth.workers);
        report_table_cell(out, "n", profile_figure_bandwidth(row->worth.bytes_per_s).text);
        report_table_cell(out, "n", profile_figure_bandwidth(row->worth.most_bytes_per_s).text);
        fprintf(out, "<td class=\"n\">%u</td>", row->worth.measured_workers);
        snprintf(text, sizeof text, "%zu PUs", row->worth.workers);
        if (strlen(row->places) > GROUPS_WIDTH / 2) {
            folded_cell(out, text, row->places);
        } else {
            report_table_cell(out, "n", row->places);
        }
        fputs("</tr>\n", out);
    }
    fputs(rows->count ? "</table>\n</div>\n" : "", out);
    if (rows->queue_count) {
        report_table_open(out, "queues", "Messages at a time beyond which a layer only queues",
                          "Layer|Worth having|Measured up to");
    }
    for (size_t i = 0; i < rows->queue_count; i++) {
        const struct map_queue_row *row = &rows->queues[i];
        report_table_row(out, row->layer);
        fprintf(out, "<td class=\"n\">%u%s</td><td class=\"n\">%u</td></tr>\n", row->worth,
                row->worth == row->most ? " or more" : "", row->most);
    }
    fputs(rows->queue_count ? "</table>\n</div>\n" : "", out);
}

static void put_suggestions(FILE *out, const struct map_suggestions *found, const char *id)
{
    char text[128], heads[128], launch[256] = "";
    snprintf(text, sizeof text, "Ranks and threads on a node of %u cores, %s priority",
             found->cores, found->priority == MAP_MEMORY ? "memory" : "communication");
    snprintf(heads, sizeof heads, "Ranks × threads|Bandwidth of a node|L%u of a thread|Reason",
             found->cache_level);
    report_table_open(out, id, text, heads);
    for (size_t i = 0; i < found->count; i++) {
        const struct map_suggestion *row = &found->list[i];
        snprintf(text, sizeof text, "%u × %u", row->ranks, row->threads);
        open_row(out, row->chosen, text);
        report_table_cell(out, "n", profile_figure_bandwidth(row->bytes_per_s).text);
        report_table_cell(out, "n", profile_figure_bytes((uint64_t)row->cache_bytes).text);
        report_table_cell(out, "words", row->why);
        fputs("</tr>\n", out);
        if (row->chosen) {
            map_suggest_launch(found, row, launch, sizeof launch);
        }
    }
    fputs("</table>\n<p>Proposed: <code>", out);
    profile_xml_text(out, launch);
    fputs("</code></p>\n</div>\n", out);
}

int report_html_advice(struct page *page, struct servet_error *error)
{
    struct servet_error why;
    struct map_worth_rows rows;
    FILE *out = page->out;
    fputs("<section id=\"workers\">\n<h2>How many workers</h2>\n<p class=\"note\">Predicted from "
          "the profile; nothing was run for it.</p>\n",
          out);
    int rc = map_worth_rows_make(page->report->profile, NULL, &rows, &why);
    if (rc == 0) {
        put_worth(out, &rows);
        map_worth_rows_free(&rows);
    } else if (rc == -ENODATA) {
        fputs("<p class=\"note\">", out);
        profile_xml_text(out, why.text);
        fputs("</p>\n", out);
        rc = 0;
    }
    for (int i = 0; rc == 0 && i < 2; i++) {
        const struct map_suggest_request request = {.priority = i ? MAP_COMMUNICATION : MAP_MEMORY};
        struct map_suggestions found;
        rc = map_suggest(page->report->profile, &request, &found, &why);
        if (rc == 0) {
            put_suggestions(out, &found, i ? "suggest-communication" : "suggest-memory");
        }
    }
    fputs("</section>\n", out);
    return rc < 0 ? profile_error(error, rc, "report: %s", strerrordesc_np(-rc)) : 0;
}

/* -- every figure -- */

void report_html_figures(struct page *page)
{
    FILE *out = page->out;
    fputs("<section id=\"figures\">\n<h2>Every figure and its quality</h2>\n<details>"
          "<summary>Show</summary>\n",
          out);
    report_table_open(out, "figure-table",
                      "Spread: distance of the quartiles over the median. Inferred: taken over "
                      "from an equivalent thing that was measured.",
                      "Place|Figure|Value|Origin|Repetitions|Spread");
    for (size_t i = 0; i < page->items.count; i++) {
        const struct item *item = &page->items.items[i];
        const struct profile_quality *quality = item->quality;
        char repetitions[24] = "";
        bool spread = quality && quality->spread >= 0;
        if (quality && quality->repetitions) {
            snprintf(repetitions, sizeof repetitions, "%u", quality->repetitions);
        }
        fputs("<tr>", out);
        report_table_cell(out, "n", item->where);
        report_table_cell(out, "words", item->name);
        groups_cell(out, item->shown, strdup(item->exact));
        report_table_cell(out, "n", quality ? profile_origin_names[quality->origin] : "");
        report_table_cell(out, "n", repetitions);
        report_table_cell(out, "n", spread ? profile_figure_spread(quality->spread).text : "");
        fputs("</tr>\n", out);
    }
    report_table_close(out);
    fputs("</details>\n</section>\n", out);
}
