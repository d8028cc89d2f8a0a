/* From what was found for every pair to groups: the way from Pm and Pl to {0,1,2} and {3,4,5} (2010
 * paper, III-C). */
#ifndef SERVET_PROBES_PAIRS_RELATION_H
#define SERVET_PROBES_PAIRS_RELATION_H

#include "profile/model.h"

/* Which class every pair of `pus` is in: classes count from 0, the strongest bond first. */
struct pair_classes {
    const struct profile_set *pus; /* not owned */
    uint8_t *of;                   /* by probe_pair_index() */
};
#define PAIR_NONE UINT8_MAX /* the pair has no bond at all */

size_t probe_pair_count(size_t pus);
/* Position of the pair of the i-th and the j-th PU, i != j, in the order (0,1), (0,2) … (1,2) … */
size_t probe_pair_index(size_t pus, size_t i, size_t j);

int probe_pair_classes_init(struct pair_classes *classes,
                            const struct profile_set *pus); /* all PAIR_NONE; 0 or -ENOMEM */
void probe_pair_classes_free(struct pair_classes *classes);

/* The relation "bond of class `strongest` .. `weakest`": its connected components where all members
 * are bound to each other become groups, of at least two; the pairs of other components are listed
 * one by one. 0 or -ENOMEM. */
int probe_relation_from_classes(const struct pair_classes *classes, uint8_t strongest,
                                uint8_t weakest, struct profile_relation *out);

void probe_relation_free(struct profile_relation *relation);

#endif
