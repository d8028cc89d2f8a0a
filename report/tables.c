/* The tables of the page: caches, the TLB, memory, the layers of messages, and every figure with
 * its quality. What is too long for a cell opens. */
#include <stdlib.h>
#include <string.h>

#include "profile/codec/codec.h"
#include "profile/text/text.h"
#include "report/report.h"

void report_html_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        }
    }
}

static void cell(FILE *out, const char *class_name, const char *text)
{
    fprintf(out, "<td%s%s%s>", class_name ? " class=\"" : "", class_name ? class_name : "",
            class_name ? "\"" : "");
    report_html_text(out, text ? text : "");
    fputs("</td>", out);
}

/* Cell of groups that are too many for a table: the first ones, and all of them when it is
 * opened. */
static void cell_that_opens(FILE *out, const char *shown, const char *all)
{
    if (!all || !strstr(shown, "... (")) {
        cell(out, NULL, shown);
        return;
    }
    fputs("<td><details><summary>", out);
    report_html_text(out, shown);
    fputs("</summary>", out);
    report_html_text(out, all);
    fputs("</details></td>", out);
}

static void cell_of_groups(FILE *out, const struct profile_relation *relation)
{
    char *all = report_relation_text(relation);
    cell_that_opens(out, profile_figure_relation(relation).text, all);
    free(all);
}

static void cell_of_group(FILE *out, const struct profile_set *group)
{
    char *all = profile_set_text(group);
    cell_that_opens(out, profile_figure_group(group).text, all);
    free(all);
}

static void put_cache_table(struct page *page, const struct profile_class *node_class)
{
    FILE *out = page->out;
    fputs("<div class=\"card "
          "scroll\">\n<table><tr><th>Level</th><th>Effective</th><th>Declared</th><th>Line</th>"
          "<th>Ways</th><th>Shared by</th><th>PUs</th><th>Quality</th></tr>\n",
          out);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        bool alone = !cache->sharing.group_count && !cache->sharing.pair_count;
        char ways[16];
        fprintf(out, "<tr><td>L%u</td>", cache->level);
        cell(out, "n", profile_figure_cache(cache).text);
        cell(out, "n", profile_figure_bytes(cache->declared_size_bytes).text);
        cell(out, "n", profile_figure_bytes(cache->line_bytes).text);
        snprintf(ways, sizeof ways, "%u", cache->associativity);
        cell(out, "n", cache->associativity ? ways : "-");
        if (alone) {
            cell(out, NULL, "nobody");
        } else {
            cell_of_groups(out, &cache->sharing);
        }
        if (cache->pus.count) {
            cell_of_group(out, &cache->pus);
        } else {
            cell(out, NULL, "all");
        }
        cell(out, "words", profile_figure_quality(&cache->quality).text);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n</div>\n", out);
}

static void put_tlb_table(struct page *page, const struct profile_class *node_class)
{
    FILE *out = page->out;
    if (!node_class->tlb_count) {
        return;
    }
    fputs("<div class=\"card scroll\" id=\"tlb\">\n<h3>TLB</h3>\n<table><tr><th>Pages</th>"
          "<th>Reach</th><th>A miss adds</th><th>Quality</th></tr>\n",
          out);
    for (size_t i = 0; i < node_class->tlb_count; i++) {
        const struct profile_tlb *level = &node_class->tlb[i];
        fputs("<tr>", out);
        cell(out, "n", profile_figure_bytes(level->page_bytes).text);
        cell(out, "n", profile_figure_bytes(level->reach_bytes).text);
        cell(out, "n", profile_figure_seconds(level->seconds).text);
        cell(out, "words", profile_figure_quality(&level->quality).text);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n</div>\n", out);
}

static void put_access_table(struct page *page, const struct profile_class *node_class)
{
    FILE *out = page->out;
    if (node_class->memory.method) {
        fputs("<p class=\"note\">Measured with ", out);
        report_html_text(out, node_class->memory.method);
        fputs(".</p>\n", out);
    }
    if (!node_class->numa_access_count) {
        return;
    }
    fputs("<div class=\"card scroll\" id=\"numa-access\">\n<h3>Memory of each NUMA "
          "node</h3>\n<table><tr><th>From "
          "PUs</th><th>Node</th><th>Latency</th><th>One worker</th><th>Quality</th></tr>\n",
          out);
    for (size_t i = 0; i < node_class->numa_access_count; i++) {
        const struct profile_numa_access *row = &node_class->numa_access[i];
        fputs("<tr>", out);
        cell_of_group(out, &row->pus);
        fprintf(out, "<td class=\"n\">%u</td>", row->node);
        cell(out, "n", profile_figure_seconds(row->seconds_per_access).text);
        cell(out, "n", profile_figure_bandwidth(row->bytes_per_s).text);
        cell(out, "words", profile_figure_quality(&row->quality).text);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n</div>\n", out);
}

static void put_kernel_table(FILE *out, const struct profile_memory *memory)
{
    if (!memory->kernel_count) {
        return;
    }
    fputs("<div class=\"card scroll\" id=\"loops\">\n<h3>Loops over memory</h3>\n<table><tr>"
          "<th>Loop</th><th>One PU</th><th>",
          out);
    report_html_text(out, memory->kernel_pus.count ? "PUs " : "More PUs");
    report_html_text(out, memory->kernel_pus.count ? profile_figure_group(&memory->kernel_pus).text
                                                   : "");
    fputs("</th><th>Each keeps</th><th>Quality</th></tr>\n", out);
    for (size_t i = 0; i < memory->kernel_count; i++) {
        const struct profile_kernel_rate *rate = &memory->kernels[i];
        fputs("<tr>", out);
        cell(out, NULL, profile_figure_kernel(rate).text);
        cell(out, "n", profile_figure_bandwidth(rate->bytes_per_s).text);
        cell(out, "n", profile_figure_bandwidth(rate->together_bytes_per_s).text);
        cell(out, "n", profile_figure_kept(rate, memory->kernel_pus.count).text);
        cell(out, "words", profile_figure_quality(&rate->quality).text);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n</div>\n", out);
}

static void put_level_table(FILE *out, const struct profile_memory *memory)
{
    if (!memory->level_count) {
        return;
    }
    fputs("<div class=\"card scroll\" id=\"overhead\">\n<h3>PUs that disturb one another</h3>\n"
          "<table><tr><th>Overhead level</th><th>Each of two</th><th>PUs</th><th>Quality</th></tr>"
          "\n",
          out);
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        fprintf(out, "<tr><td class=\"n\">%zu%s</td>", i, i ? "" : " (worst)");
        cell(out, "n", profile_figure_bandwidth(level->bytes_per_s).text);
        cell_of_groups(out, &level->collisions);
        cell(out, "words", profile_figure_quality(&level->quality).text);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n</div>\n", out);
}

static void put_layer_table(FILE *out, const struct profile_communication *found, const char *where)
{
    if (!found->layer_count) {
        return;
    }
    fprintf(out,
            "<div class=\"card scroll\">\n<h3>Layers %s</h3>\n<table><tr><th>Layer</th>"
            "<th>Name</th><th>Latency%s%s, one way</th><th>Between</th><th>Quality</th></tr>\n",
            where, found->message_bytes ? " of " : "",
            found->message_bytes ? profile_figure_bytes(found->message_bytes).text : "");
    for (size_t i = 0; i < found->layer_count; i++) {
        const struct profile_layer *layer = &found->layers[i];
        fprintf(out, "<tr><td class=\"n\">%zu%s</td>", i, i ? "" : " (fastest)");
        cell(out, NULL, layer->name ? layer->name : "-");
        cell(out, "n", profile_figure_seconds(layer->seconds).text);
        cell_of_groups(out, &layer->members);
        cell(out, "words", profile_figure_quality(&layer->quality).text);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n</div>\n", out);
}

void report_html_network(struct page *page)
{
    put_layer_table(page->out, &page->report->profile->network, "between nodes");
}

void report_html_tables(struct page *page, enum plot_section section,
                        const struct profile_class *node_class)
{
    if (section == PLOT_CACHES && node_class->cache_count) {
        put_cache_table(page, node_class);
        put_tlb_table(page, node_class);
    }
    if (section == PLOT_MEMORY) {
        put_access_table(page, node_class);
        put_kernel_table(page->out, &node_class->memory);
        put_level_table(page->out, &node_class->memory);
    }
    if (section == PLOT_MESSAGES) {
        put_layer_table(page->out, &node_class->communication, "inside a node");
    }
}

void report_html_figures(struct page *page)
{
    FILE *out = page->out;
    fputs("<section id=\"figures\">\n<h2>Every figure and its quality</h2>\n<div class=\"card "
          "scroll\">\n"
          "<table><tr><th>Of</th><th>Figure</th><th>Value</th><th>Origin</th><th>Repetitions</"
          "th><th>Spread</th></tr>\n",
          out);
    for (size_t i = 0; i < page->items.count; i++) {
        const struct item *item = &page->items.items[i];
        char repetitions[24] = "";
        struct figure spread = {.text = ""};
        if (item->quality && item->quality->repetitions) {
            snprintf(repetitions, sizeof repetitions, "%u", item->quality->repetitions);
        }
        if (item->quality && item->quality->spread >= 0) {
            spread = profile_figure_spread(item->quality->spread);
        }
        fputs("<tr>", out);
        cell(out, "n", item->where);
        cell(out, "words", item->name);
        cell_that_opens(out, item->shown, item->exact);
        cell(out, "n", item->quality ? profile_origin_names[item->quality->origin] : "");
        cell(out, "n", repetitions);
        cell(out, "n", spread.text);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n</div>\n<p class=\"note\">Spread: distance of the quartiles over the median. "
          "Inferred: taken over "
          "from an equivalent thing that was measured.</p>\n</section>\n",
          out);
}
