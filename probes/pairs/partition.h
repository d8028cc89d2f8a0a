/* A partition divides the PUs of a machine into units; a relation lists which pairs are related,
 * as groups where that is an equivalence. Relations are the profile's form, partitions are what the
 * probes compute with. */
#pragma once

#include "profile/model.h"

/* -- pairs by number -- */

size_t probe_pair_count(size_t pus);
/* Position of the pair of the i-th and the j-th PU, i != j, in the order (0,1), (0,2) … (1,2) … */
size_t probe_pair_index(size_t pus, size_t i, size_t j);
/* All pairs in that order; k: the position of the pair of the i-th and the j-th PU. */
#define PROBE_EACH_PAIR(pus, i, j, k)                                                              \
    for (size_t i = 0, k = 0; i < (pus); i++)                                                      \
        for (size_t j = i + 1; j < (pus); j++, k++)

/* The figures of pairs that were measured, both by probe_pair_index(), as a profile has them, in
 * the place of the old *list. 0 or -ENOMEM. */
int probe_pair_figures(const struct profile_set *pus, const double *values, const bool *measured,
                       struct profile_pair_figure **list, size_t *count);
/* A figure of a pair without digits that are only noise. */
double probe_pair_rounded(double value);

/* -- relations -- */

/* From a class of every pair, by probe_pair_index(), to groups: the way from Pm and Pl to {0,1,2}
 * and {3,4,5} (2010 paper, III-C). Classes count from 0, the strongest bond first. */
#define PAIR_NONE UINT32_MAX /* the pair has no bond at all */

/* The relation "bond of a class up to `weakest`": its connected components where all members are
 * bound to each other become groups, of at least two; the pairs of other components are listed one
 * by one. 0 or -ENOMEM. */
int probe_relation_from_classes(const struct profile_set *pus, const uint32_t *class_of,
                                uint32_t weakest, struct profile_relation *out);
/* The same of pairs, by probe_pair_index(), that are related or not. */
int probe_relation_of_pairs(const struct profile_set *pus, const bool *related,
                            struct profile_relation *out);

/* -- partitions -- */

struct partition {
    size_t pus;
    uint32_t *unit;  /* by position of the PU; units are numbered by their first PUs. Owned */
    uint32_t *first; /* by unit: position of its first PU. Owned */
    uint32_t count;  /* of units */
};

/* The groups of `relation` (NULL: it has none); PUs in none are units of their own, PUs of a listed
 * pair are in one. 0 or -ENOMEM, as the three below. */
int probe_partition_make(const struct profile_set *pus, const struct profile_relation *relation,
                         struct partition *out);
int probe_partition_copy(const struct partition *from, struct partition *out);
/* All PUs in one unit. */
int probe_partition_one(size_t pus, struct partition *out);
void probe_partition_free(struct partition *partition);

struct partitions {
    struct partition *of; /* owned, with what they hold */
    size_t count;
};
void probe_partitions_free(struct partitions *partitions);

/* Is every unit of `fine` inside of a unit of `coarse`? True of equal ones, too. */
bool probe_partition_refines(const struct partition *fine, const struct partition *coarse);

/* PUs of the unit of the PU at that position, and of the largest unit. */
size_t probe_partition_size(const struct partition *of, size_t pu);
size_t probe_partition_largest(const struct partition *of);

/* The root of the item in a forest of parents, whose paths it shortens. */
uint32_t probe_partition_root(uint32_t *parent, uint32_t item);
/* Puts two trees together: the lower root stays one. */
void probe_partition_unite(uint32_t *parent, uint32_t a, uint32_t b);

/* Makes one unit of two; units are numbered anew. */
void probe_partition_merge(struct partition *partition, uint32_t a, uint32_t b);

/* Divides the units that `keep` does not name into single PUs. 0 or -ENOMEM. */
int probe_partition_dissolve(struct partition *partition, const bool *keep);

/* The units of at least two PUs as groups. 0 or -ENOMEM. */
int probe_partition_groups(const struct partition *partition, const struct profile_set *pus,
                           struct profile_relation *out);
