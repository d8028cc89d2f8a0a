/* What people look at: a profile as a page, as pictures, beside another profile, and the threads of a
 * program that runs. What servet-show prints in words is profile/text. */
#ifndef SERVET_REPORT_REPORT_H
#define SERVET_REPORT_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "profile/model.h"

/* -- a page, pictures -- */

struct report {
    const struct servet_profile *profile;
    const char *source; /* file it is from, or NULL: what the operating system declares */
    size_t workers;     /* show where so many workers would go; 0: no mapping */
};

/* The profile as one page that needs nothing else: no network, no script. A new string. 0; -ENOENT:
 * no gnuplot; -EIO: it failed; -EINVAL: more workers than can be mapped; -ENOMEM. */
int report_html(const struct report *report, char **out, size_t *length,
                struct servet_error *error);

/* The plots and the pictures of the topology as PNG files in `folder`, which is made if need be.
 * All of them are drawn before the first is written. 0 and how many, and in left_out->text, which
 * is empty otherwise, what is too large to be drawn; errors as above, or the -errno of writing. */
int report_png(const struct report *report, const char *folder, size_t *count,
               struct servet_error *left_out, struct servet_error *error);

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
    int rc; /* -ENOMEM: the list is incomplete */
};

/* 0 or -ENOMEM. Borrows from the profile. */
int report_items_collect(const struct servet_profile *profile, struct item_list *out);
void report_items_free(struct item_list *list);

/* All groups and pairs of a relation, a new string or NULL. */
char *report_relation_text(const struct profile_relation *relation);

/* What a reader should doubt, in one sentence, or NULL: a spread above SUSPICIOUS_SPREAD, a note.
 * free() it. */
char *report_item_doubt(const struct item *item);
/* Quartiles a quarter of the median apart: two neighbouring layers or levels differ by less than
 * that on some machines.
 */
#define SUSPICIOUS_SPREAD 0.25

/* What changed between two profiles, and whether the mapping would. */

/* Numbers that lie closer than this, or than the spread of either of them, count as the same:
 * repeated measurements of one idle machine differ by less. */
#define DIFF_TOLERANCE 0.1

/* Compares the figures, and whether the weight algorithm would choose other PUs, for every number
 * of workers up to DIFF_WORKERS_ALL and by powers of two beyond. A new object: "same" (how many
 * figures), "changed" (list of where, figure, old, new, and for numbers ratio = new / old), "gone"
 * and "new" (where, figure, value), "tolerance", "most_workers", "mappings" (those that differ:
 * workers, priority, old and new PUs). 0 or -ENOMEM. */
int report_diff_profiles(const struct servet_profile *old, const struct servet_profile *new,
                         json_t **out, struct servet_error *error);
#define DIFF_WORKERS_ALL 16

/* The same in words, one line each. */
void report_diff_print(const json_t *diff, FILE *stream);

/* -- a program that runs -- */

/* One line for every thread of process `pid` (see profile_where_print()). From outside a thread on one
 * PU is a worker and any other one is not; whether the shim decided is known only as far as that it
 * is loaded. Ends with the check that no two threads that have one PU have the same. 0; -ESRCH when
 * there is no such process; -EACCES when it is another user's. */
int report_live_print(FILE *out, bool json, pid_t pid);

#endif
