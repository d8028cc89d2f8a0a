/* Every figure of a profile as one row: where it belongs, what it is called, what it says, how sure
 * it is. The report's table and the comparison of two profiles walk the same rows. */
#ifndef SERVET_REPORT_DIFF_H
#define SERVET_REPORT_DIFF_H

#include <jansson.h>
#include <stdio.h>

#include "profile/model.h"

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

#endif
