/* The parts of servet-show: a profile as a page, its pictures and maps, the difference of two
 * profiles, and the threads of a running program. Its output in words is in profile/text. Where
 * memory is short, each ends the command (cli_needed()). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "mapper/map.h"
#include "mapper/weights/weights.h"
#include "profile/model.h"
#include "profile/text/text.h"

/* -- a page, pictures -- */

struct report {
    const struct servet_profile *profile;
    const char *source; /* file it is from, or NULL: what the operating system declares */
    size_t workers;     /* show where so many workers would go; 0: no mapping */
};

/* The profile as one page that needs nothing else: no network, no script. A new string. */
char *report_html(const struct report *report, size_t *length);

/* The topology that hwloc reads (of this machine, or as HWLOC_XMLFILE and HWLOC_SYNTHETIC say) as
 * hwloc's XML, with bandwidth and latency of NUMA nodes as the profile's first class has them. A
 * new string. Ends the command where there are none, that topology is another machine's, or hwloc
 * fails. */
char *report_hwloc(const struct servet_profile *profile, size_t *length);

/* -- every figure as one row: where it belongs, what it is called, what it says, how sure it is;
 * the page's table and the comparison of two profiles walk the same rows -- */

struct item {
    char *where;   /* "machine", "node class 0", "network" */
    char *name;    /* "L1 effective size"; unique within `where` */
    char *shown;   /* short enough for a table */
    char *exact;   /* what equal texts mean; of a number the same as `shown` */
    double number; /* NAN: no number; compare `exact` */
    const struct profile_quality *quality; /* NULL: not a measured figure */
};

struct item_list {
    struct item *items;
    size_t count, room;
    const char *where; /* of the next item */
};

/* Borrows from the profile. */
struct item_list report_items_collect(const struct servet_profile *profile);
void report_items_free(struct item_list *list);

/* Quartiles a quarter of the median apart: two neighbouring layers or levels differ by less than
 * that on some machines. */
#define SUSPICIOUS_SPREAD 0.25

/* Differences of two profiles, and whether they change the mapping. */

/* Numbers that lie closer than this, or than the spread of either of them, count as the same:
 * repeated measurements of one idle machine differ by less. */
#define DIFF_TOLERANCE 0.1

/* Compares the figures, and whether the weight algorithm would choose other PUs, for every number
 * of workers up to DIFF_WORKERS_ALL and by powers of two beyond. A new object: "same" (how many
 * figures), "changed" (list of where, figure, old, new, and for numbers ratio = new / old), "gone"
 * and "new" (where, figure, value), "tolerance", "most_workers", "mappings" (those that differ:
 * workers, priority, old and new PUs). */
json_t *report_diff_profiles(const struct servet_profile *old, const struct servet_profile *new);
#define DIFF_WORKERS_ALL 16

/* The same in words, one line each. */
void report_diff_print(const json_t *diff, FILE *stream);

/* -- a program that runs -- */

/* One line for every thread of process `pid` (see profile_affinity_print()). From outside a thread
 * on one PU is a worker and any other one is not; whether the shim decided is known only as far
 * as that it is loaded. Ends with the check that no two threads that have one PU have the same. No
 * such process is bad usage. */
void report_live_print(FILE *out, bool json, pid_t pid);

/* A process, and where lines on it go. */
struct report_place {
    FILE *out;
    bool json;
    const char *root; /* of /proc and /sys */
    pid_t pid;
};
/* Prints the GPUs that it has, and whether its main thread is near. `beside`: its SERVET_BESIDE, or
 * NULL. */
void report_live_gpus(const struct report_place *place, const char *beside);

/* -- the page -- */

enum plot_section {
    PLOT_CORES,
    PLOT_CACHES,
    PLOT_SHARING,
    PLOT_MEMORY,
    PLOT_MESSAGES,
    PLOT_BSP,
    PLOT_SECTIONS
};

struct page {
    const struct report *report;
    FILE *out;
    struct item_list items;
    struct map_view view; /* for maps */
    size_t node_class;    /* that figures are of; PLOT_NETWORK: between nodes, or the machine */
    size_t figures;       /* in the grid at hand */
};
#define PLOT_NETWORK SIZE_MAX

/* A figure of the class at hand: its body is written between the two. `name` is the id in the page,
 * with the class in front where there are several. */
void report_figure_open(struct page *page, const char *name, const char *title);
void report_figure_close(struct page *page, const char *caption, ...)
    __attribute__((format(printf, 2, 3)));

/* The curves and heat maps that belong to a section, for the class at hand. */
void report_plots(struct page *page, enum plot_section section);
void report_maps(struct page *page, enum plot_section section);

/* The tables that belong to a section, for the class at hand. */
void report_html_tables(struct page *page, enum plot_section section);
/* Every figure and its quality. */
void report_html_figures(struct page *page);
/* How many workers, ranks and threads are worth having. */
void report_html_advice(struct page *page);
/* Writes a table and empties it; `caption` NULL: inside a figure, without a card of its own. False:
 * it is empty. */
bool report_table(FILE *out, const char *id, const char *caption, struct table *table);

/* The part that shows the machine as boxes, and where workers would go. */
void report_html_topology(const struct report *report, FILE *out);
