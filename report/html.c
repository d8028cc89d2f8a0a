/* A profile as one page: a summary with what deserves doubt, a section of tables and plots for each
 * thing that was measured, the topology, and every figure with its quality.
 *
 * The page refers to nothing outside of itself, so that it can be mailed and kept; it is written so
 * that it is XML too, because the strictest parser there is then holds it to that. Everything that
 * a profile or a user says goes through profile_xml_text(). */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/text/chart.h"
#include "profile/text/text.h"
#include "report/report.h"

static const char style[] =
#include "report/page.css.h"
    ;

static const struct {
    const char *id, *heading;
} sections[PLOT_SECTIONS] = {
    [PLOT_CORES] = {"cores", "Core to core"},        [PLOT_CACHES] = {"caches", "Caches"},
    [PLOT_SHARING] = {"sharing", "Who shares what"}, [PLOT_MEMORY] = {"memory", "Memory bandwidth"},
    [PLOT_MESSAGES] = {"messages", "Messages"},      [PLOT_BSP] = {"bsp", "BSP parameters"},
};

/* Why there is no plot in a section: the one reason that holds for this profile. NULL: its tables
 * have said it. */
static const char *why_none(const struct servet_profile *profile, enum plot_section section)
{
    bool alone = true, pair = true, copied = false, disturb = false,
         send = profile->network.layer_count > 0;
    for (size_t i = 0; i < profile->class_count; i++) {
        alone &= profile->classes[i].pus.count < 2;
        pair &= profile->classes[i].pus.count < 3;
        copied |= profile->classes[i].memory.reference_bytes_per_s > 0;
        disturb |= profile->classes[i].memory.level_count > 0;
        send |= profile->classes[i].communication.layer_count > 0;
    }
    switch (section) {
    case PLOT_CORES:
        return alone  ? "A node has one PU."
               : send ? "All pairs of PUs are in one layer: see the table of layers."
                      : "No messages between two PUs were measured.";
    case PLOT_CACHES:
        return "This profile keeps no latency curve: run servet-probe to measure one.";
    case PLOT_SHARING:
        return alone  ? "A node has one PU, which shares nothing."
               : pair ? "A node has two PUs: the tables of caches and memory say what they share."
                      : NULL;
    case PLOT_MEMORY:
        return disturb || copied ? NULL
               : alone           ? "A node has one PU, which nobody disturbs."
                                 : "No bandwidth was measured.";
    case PLOT_MESSAGES:
        return send ? NULL
               : alone && profile_node_count(profile) < 2
                   ? "There is one PU, and nobody to send to."
                   : "No messages were measured.";
    default:
        return "No BSP parameters were measured (<code>servet-probe --bsp</code>).";
    }
}

/* -- head -- */

static void put_page_head(struct page *page)
{
    const struct servet_profile *p = page->report->profile;
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n<title>Servet: ",
        page->out);
    profile_xml_text(page->out, p->host_name);
    fprintf(page->out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>", style);
    profile_xml_text(page->out, p->host_name);
    fputs("</h1>\n<p class=\"lead\">", page->out);
    profile_xml_text(page->out,
                     p->cpu_model && *p->cpu_model ? p->cpu_model : "processor not known");
    fputs("</p>\n<nav>\n<a href=\"#summary\">Summary</a>\n", page->out);
    fputs("<a href=\"#workers\">How many workers</a>\n", page->out);
    for (size_t i = 0; i < PLOT_SECTIONS; i++) {
        fprintf(page->out, "<a href=\"#%s\">%s</a>\n", sections[i].id, sections[i].heading);
    }
    fputs("<a href=\"#topology\">Topology</a>\n<a href=\"#figures\">Every figure</a>\n</nav>\n",
          page->out);
}

/* -- what the page begins with: the machine, the conditions of its measurement in words, and what
 * deserves doubt -- */

static void term(FILE *out, const char *name, const char *text)
{
    fputs("<dt>", out);
    profile_xml_text(out, name);
    fputs("</dt><dd>", out);
    profile_xml_text(out, text && *text ? text : "not known");
    fputs("</dd>\n", out);
}

/* Kinds of cores, where a class has several. */
static void put_kinds(FILE *out, const struct servet_profile *p)
{
    for (size_t c = 0; c < p->class_count; c++) {
        for (size_t i = 0; i < p->classes[c].kind_count; i++) {
            const struct profile_kind *kind = &p->classes[c].kinds[i];
            char text[FIGURE_SIZE + 64];
            snprintf(text, sizeof text, "PUs %.*s, efficiency %u", FIGURE_SIZE,
                     profile_figure_group(&kind->pus).text, kind->efficiency);
            term(out, "Kind of cores", text);
        }
    }
}

/* Packages, NUMA nodes and memory: of a node, or of one of each class. */
static void put_parts(FILE *out, const struct servet_profile *p)
{
    for (size_t c = 0; c < p->class_count; c++) {
        const struct profile_class *node_class = &p->classes[c];
        char text[FIGURE_SIZE + 64], of[48] = "";
        uint64_t bytes = 0;
        if (p->class_count > 1) {
            snprintf(of, sizeof of, " in class %zu", c);
        }
        for (size_t i = 0; i < node_class->numa_count; i++) {
            bytes += node_class->numa[i].memory_bytes;
        }
        snprintf(text, sizeof text, "%zu%s", node_class->packages.group_count, of);
        term(out, "Packages", node_class->packages.group_count ? text : NULL);
        snprintf(text, sizeof text, "%zu%s", node_class->numa_count, of);
        term(out, "NUMA nodes", node_class->numa_count ? text : NULL);
        snprintf(text, sizeof text, "%.*s%s", FIGURE_SIZE, profile_figure_bytes(bytes).text, of);
        term(out, "Memory", bytes ? text : NULL);
    }
}

/* Conditions as a reader calls them; of one that is not listed its key, with blanks. */
static const char *const condition_names[][2] = {
    {"budget", "Time granted"},
    {"busy", "Busy with other work"},
    {"devices", "Copies to GPUs"},
    {"governor", "Frequency governor"},
    {"huge_pages", "Huge pages"},
    {"incomplete", "Incomplete"},
    {"largest_working_set", "Largest working set"},
    {"load_average", "Load average before"},
    {"machine", "Measured on"},
    {"memory_limited", "Limited by memory"},
    {"messages_since", "Messages looked at since"},
    {"microcode", "Microcode"},
    {"numa_access", "Memory of NUMA nodes"},
    {"resumed", "Resumed"},
    {"smt", "SMT (hyper-threading)"},
    {"smt_siblings", "Use of SMT siblings by others"},
    {"steal", "Time taken by the hypervisor"},
    {"stood_still", "Time that the machine stood still"},
    {"suspended", "Time suspended"},
    {"transparent_huge_pages", "Transparent huge pages"},
    {"virtual_machine", "Virtual machine"},
    {"warm_up", "Warm-up"},
};

/* The kernel's words that say too little to a reader: key, value, what is shown. */
static const char *const condition_values[][3] = {
    {"machine", "native", "this machine"},
    {"smt", "forceoff", "off for good"},
    {"smt", "notimplemented", "the processor has none"},
    {"smt", "notsupported", "the processor has none"},
};

static void put_condition(FILE *out, const struct profile_condition *condition)
{
    const char *name = NULL, *value = condition->value;
    for (size_t i = 0; !name && i < sizeof condition_names / sizeof *condition_names; i++) {
        name = strcmp(condition->key, condition_names[i][0]) == 0 ? condition_names[i][1] : NULL;
    }
    char text[64];
    snprintf(text, sizeof text, "%s", name ? name : condition->key);
    for (char *c = text; *c; c++) {
        *c = *c == '_' ? ' ' : *c;
    }
    for (size_t i = 0; i < sizeof condition_values / sizeof *condition_values; i++) {
        const char *const *word = condition_values[i];
        if (strcmp(condition->key, word[0]) == 0 && strcmp(condition->value, word[1]) == 0) {
            value = word[2];
        }
    }
    term(out, text, value);
}

static void put_cards(struct page *page)
{
    const struct servet_profile *p = page->report->profile;
    FILE *out = page->out;
    char text[160];
    size_t pus = 0;
    for (size_t i = 0; i < p->class_count; i++) {
        pus += p->classes[i].pus.count;
    }
    fputs("<section id=\"summary\">\n<h2>Summary</h2>\n", out);
    if (!p->measured) {
        fputs("<div class=\"warn\">Nothing was measured: sizes and groups are what the operating "
              "system declares, and "
              "there are no bandwidths and latencies. Run servet-probe.</div>\n",
              out);
    }
    fputs("<div class=\"grid\">\n<div class=\"card\"><h3>Machine</h3><dl>\n", out);
    term(out, "Processor", p->cpu_model);
    term(out, "Architecture", p->architecture);
    term(out, "Kernel", p->kernel);
    snprintf(text, sizeof text, "%u in %zu class%s", profile_node_count(p), p->class_count,
             p->class_count == 1 ? "" : "es");
    term(out, "Nodes", text);
    snprintf(text, sizeof text, "%zu%s", pus,
             p->class_count > 1 ? " in one node of each class" : " in a node");
    term(out, "PUs", text);
    put_parts(out, p);
    put_kinds(out, p);
    fputs("</dl></div>\n<div class=\"card\"><h3>Measurement</h3><dl>\n", out);
    term(out, "Profile",
         page->report->source ? page->report->source : "none: declared by the operating system");
    term(out, "Measured",
         p->measured ? (p->started && *p->started ? p->started : "at a time not known") : "no");
    if (p->measured) {
        term(out, "By", p->tool);
        snprintf(text, sizeof text, "%.3g s", p->seconds);
        term(out, "Took", p->seconds > 0 ? text : NULL);
    }
    for (size_t i = 0; i < p->condition_count; i++) {
        put_condition(out, &p->conditions[i]);
    }
    fputs("</dl></div>\n</div>\n", out);
}

/* -- what a reader should act on -- */

/* More than half a runnable process per PU competes with what is measured. */
#define BUSY_LOAD_PER_PU 0.5
#define DOUBTS_MOST 3

__attribute__((format(printf, 3, 4))) static void doubt(struct page *page, size_t *found,
                                                        const char *format, ...)
{
    char text[320];
    va_list args;
    if (*found == DOUBTS_MOST) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fputs((*found)++ ? ""
                     : "<div class=\"warn\" id=\"suspicious\"><strong>What looked "
                       "suspicious</strong><ul>\n",
          page->out);
    fputs("<li>", page->out);
    profile_xml_text(page->out, text);
    fputs("</li>\n", page->out);
}

static void doubt_conditions(struct page *page, size_t *found)
{
    const struct servet_profile *p = page->report->profile;
    const char *load = profile_condition(p, "load_average");
    const char *governor = profile_condition(p, "governor");
    if (profile_condition(p, "incomplete")) {
        doubt(page, found, "The measurement was interrupted: run servet-probe again.");
    }
    if (load && strtod(load, NULL) > BUSY_LOAD_PER_PU * (double)p->classes[0].pus.count) {
        doubt(page, found,
              "The machine was busy while it was measured (load average %.20s): measure again "
              "when it is idle.",
              load);
    }
    if (governor && strcmp(governor, "performance") != 0) {
        doubt(page, found,
              "The clock frequency may have changed while measuring (governor %.40s): set the "
              "governor to performance and measure again.",
              governor);
    }
}

/* Figures whose repetitions lie far apart, in one line that names the worst. */
static void doubt_spreads(struct page *page, size_t *found)
{
    const struct item *worst = NULL;
    size_t wide = 0;
    for (size_t i = 0; i < page->items.count; i++) {
        const struct item *item = &page->items.items[i];
        if (item->quality && item->quality->spread > SUSPICIOUS_SPREAD) {
            worst = !worst || item->quality->spread > worst->quality->spread ? item : worst;
            wide++;
        }
    }
    if (wide) {
        doubt(page, found,
              "%zu figure%s spread%s over more than %.0f %%, most of all %.80s (%.40s): %.20s. "
              "Measure again with --repetitions %u.",
              wide, wide == 1 ? "" : "s", wide == 1 ? "s" : "", 100 * SUSPICIOUS_SPREAD,
              worst->name, worst->where, profile_figure_spread(worst->quality->spread).text,
              2 * (worst->quality->repetitions ? worst->quality->repetitions : 1));
    }
}

/* Figures that the flags of their quality cast doubt on, in one line for each flag. */
static void doubt_flags(struct page *page, size_t *found)
{
    size_t cut = 0, beside = 0;
    for (size_t i = 0; i < page->items.count; i++) {
        const struct profile_quality *quality = page->items.items[i].quality;
        cut += quality && quality->cut_short;
        beside += quality && quality->beside_others;
    }
    if (cut) {
        doubt(page, found, "The budget cut %zu figure%s short: measure again with a longer budget.",
              cut, cut == 1 ? "" : "s");
    }
    if (beside) {
        doubt(page, found,
              "Other processes ran beside %zu measurement%s: measure again when the machine is "
              "idle.",
              beside, beside == 1 ? "" : "s");
    }
}

static void put_doubts(struct page *page)
{
    size_t found = 0;
    doubt_conditions(page, &found);
    doubt_flags(page, &found);
    doubt_spreads(page, &found);
    if (found) {
        fputs("</ul></div>\n", page->out);
    } else if (page->report->profile->measured) {
        fputs("<p class=\"note\" id=\"suspicious\">Nothing looked suspicious while "
              "measuring.</p>\n",
              page->out);
    }
    fputs("</section>\n", page->out);
}

/* -- sections -- */

void report_figure_open(struct page *page, const char *name, const char *title)
{
    fputs(page->figures++ ? "" : "<div class=\"grid\">\n", page->out);
    fputs("<figure class=\"plot\" id=\"", page->out);
    if (page->report->profile->class_count > 1 && page->node_class != PLOT_NETWORK) {
        fprintf(page->out, "class%zu-", page->node_class);
    }
    fprintf(page->out, "%s\">\n<h3>%s</h3>\n", name, title);
}

void report_figure_close(struct page *page, const char *caption, ...)
{
    char text[512];
    va_list args;
    va_start(args, caption);
    vsnprintf(text, sizeof text, caption, args);
    va_end(args);
    fputs("\n<figcaption>", page->out);
    profile_xml_text(page->out, text);
    fputs("</figcaption>\n</figure>\n", page->out);
}

/* Returns how many there were. */
static size_t put_plots(struct page *page, enum plot_section section)
{
    page->figures = 0;
    report_maps(page, section);
    report_plots(page, section);
    fputs(page->figures ? "</div>\n" : "", page->out);
    return page->figures;
}

static void put_class_name(struct page *page)
{
    const struct profile_class *node_class = &page->report->profile->classes[page->node_class];
    if (page->report->profile->class_count < 2) {
        return;
    }
    fprintf(page->out, "<p><strong>Node class %zu%s", page->node_class,
            node_class->name ? ": " : "");
    profile_xml_text(page->out, node_class->name ? node_class->name : "");
    fputs("</strong></p>\n", page->out);
}

static void put_section(struct page *page, enum plot_section section)
{
    const struct servet_profile *profile = page->report->profile;
    const size_t classes = section == PLOT_BSP ? 0 : profile->class_count;
    size_t shown = 0;
    fprintf(page->out, "<section id=\"%s\">\n<h2>%s</h2>\n", sections[section].id,
            sections[section].heading);
    for (page->node_class = 0; page->node_class < classes; page->node_class++) {
        put_class_name(page);
        report_html_tables(page, section);
        shown += put_plots(page, section);
    }
    page->node_class = PLOT_NETWORK;
    shown += put_plots(page, section);
    report_html_tables(page, section);
    const char *why = shown ? NULL : why_none(profile, section);
    if (why) {
        fprintf(page->out, "<p class=\"note\">%s</p>\n", why);
    }
    fputs("</section>\n", page->out);
}

static void put_page(struct page *page)
{
    put_page_head(page);
    put_cards(page);
    put_doubts(page);
    report_html_advice(page);
    for (unsigned i = 0; i < PLOT_SECTIONS; i++) {
        put_section(page, i);
    }
    report_html_topology(page->report, page->out);
    report_html_figures(page);
    fputs("<footer><p class=\"note\">servet " SERVET_VERSION
          "</p></footer>\n</main>\n</body>\n</html>\n",
          page->out);
}

char *report_html(const struct report *report, size_t *length)
{
    struct page page = {.report = report};
    struct servet_error error;
    char *text = NULL;
    cli_check(map_view_make(report->profile, MAP_MEMORY, 1, &page.view, &error), &error);
    page.items = report_items_collect(report->profile);
    page.out = cli_needed(profile_stream_open(&text, length));
    put_page(&page);
    cli_done(fclose(page.out));
    report_items_free(&page.items);
    map_view_free(&page.view);
    return text;
}
