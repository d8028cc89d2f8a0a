/* Every figure of a profile as one row: where it belongs, what it is called, what it says, how sure it is. The report's
 * table and the comparison of two profiles walk the same rows. */
#ifndef SERVET_REPORT_ITEMS_H
#define SERVET_REPORT_ITEMS_H

#include "model.h"

struct item {
    char *where;                           /* "machine", "node class 0", "network" */
    char *name;                            /* "L1 effective size"; unique within `where` */
    char *shown;                           /* short enough for a table */
    char *exact;                           /* what equal texts mean; of a number the same as `shown` */
    double number;                         /* NAN: no number; compare `exact` */
    const struct profile_quality *quality; /* NULL: not a measured figure */
};

struct item_list {
    struct item *items;
    size_t count, room;
    int rc; /* -ENOMEM: the list is incomplete */
};

/* 0 or -ENOMEM. Borrows from the profile. */
int items_collect(const struct servet_profile *profile, struct item_list *out);
void items_free(struct item_list *list);

/* What a reader should doubt, in one sentence, or NULL: a spread above SUSPICIOUS_SPREAD, a note. free() it. */
char *item_doubt(const struct item *item);
/* Quartiles a quarter of the median apart: two neighbouring layers or levels differ by less than that on some machines.
 */
#define SUSPICIOUS_SPREAD 0.25

#endif
