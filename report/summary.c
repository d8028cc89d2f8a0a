/* What the page begins with: the machine, the conditions of its measurement in words, and what
 * deserves doubt. */
#include <stdlib.h>
#include <string.h>

#include "profile/text/text.h"
#include "report/report.h"

static void term(FILE *out, const char *name, const char *text)
{
    fprintf(out, "<dt>%s</dt><dd>", name);
    report_html_text(out, text && *text ? text : "not known");
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
    {"governor", "Frequency governor"},
    {"huge_pages", "Huge pages"},
    {"incomplete", "Incomplete"},
    {"largest_working_set", "Largest working set"},
    {"load_average", "Load average before"},
    {"machine", "Measured on"},
    {"memory_limited", "Limited by memory"},
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
    fputs("<dt>", out);
    report_html_text(out, text);
    fputs("</dt><dd>", out);
    report_html_text(out, value);
    fputs("</dd>\n", out);
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

static void doubt(struct page *page, size_t *found, const char *name, const char *where,
                  const char *why)
{
    fputs((*found)++ ? "<li>"
                     : "<div class=\"warn\" id=\"suspicious\"><strong>What looked "
                       "suspicious</strong><ul>\n<li>",
          page->out);
    report_html_text(page->out, name);
    fputs(" (", page->out);
    report_html_text(page->out, where);
    fputs("): ", page->out);
    report_html_text(page->out, why);
    fputs("</li>\n", page->out);
}

/* Conditions under which figures deserve less trust. More than half a runnable process per PU
 * competes with what is measured. */
#define BUSY_LOAD_PER_PU 0.5

static size_t put_conditions(struct page *page)
{
    const struct servet_profile *p = page->report->profile;
    size_t found = 0;
    for (size_t i = 0; i < p->condition_count; i++) {
        const char *key = p->conditions[i].key, *value = p->conditions[i].value;
        bool busy = strcmp(key, "load_average") == 0 &&
                    strtod(value, NULL) > BUSY_LOAD_PER_PU * (double)p->classes[0].pus.count;
        if (busy) {
            doubt(page, &found, "load average", "conditions",
                  "the machine was busy while it was measured");
        } else if (strcmp(key, "governor") == 0 && strcmp(value, "performance") != 0) {
            doubt(page, &found, "governor", "conditions",
                  "the clock frequency may have changed while measuring");
        }
    }
    return found;
}

static void put_doubts(struct page *page)
{
    size_t found = put_conditions(page);
    for (size_t i = 0; i < page->items.count; i++) {
        char *why = report_item_doubt(&page->items.items[i]);
        if (why) {
            doubt(page, &found, page->items.items[i].name, page->items.items[i].where, why);
        }
        free(why);
    }
    if (found) {
        fputs("</ul></div>\n", page->out);
    } else if (page->report->profile->measured) {
        fputs("<p class=\"note\" id=\"suspicious\">Nothing looked suspicious while "
              "measuring.</p>\n",
              page->out);
    }
    fputs("</section>\n", page->out);
}

void report_html_summary(struct page *page)
{
    put_cards(page);
    put_doubts(page);
}
