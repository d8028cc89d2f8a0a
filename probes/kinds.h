/* Kinds of cores (performance and efficiency cores) have caches and a share of the memory of their own: each is
 * measured on its own first PU. */
#ifndef SERVET_PROBES_KINDS_H
#define SERVET_PROBES_KINDS_H

#include "model.h"

enum { KINDS_MAX = 8 };

/* Of the measured PUs, by lowest PU. */
struct kinds {
    struct profile_set pus[KINDS_MAX]; /* disjoint, never empty, all PUs together. Owned */
    size_t count;                      /* 1: all are alike, or nobody says that they are not */
};

/* 0 or -ENOMEM. PUs in no declared kind are one more; more than KINDS_MAX kinds are none. */
int kinds_of(const struct profile_class *declared, const struct profile_set *pus, struct kinds *out);
void kinds_free(struct kinds *kinds);

/* Which kind a PU is of. */
size_t kinds_find(const struct kinds *kinds, uint32_t pu);

#endif
