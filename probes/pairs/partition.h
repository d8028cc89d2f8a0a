/* Partitions of a machine's PUs into units: what sets.c divides the machine by. */
#ifndef SERVET_PROBES_PAIRS_PARTITION_H
#define SERVET_PROBES_PAIRS_PARTITION_H

#include "profile/model.h"

struct partition {
    size_t pus;
    uint32_t *unit;  /* by position of the PU; units are numbered by their first PUs. Owned */
    uint32_t *first; /* by unit: position of its first PU. Owned */
    uint32_t count;  /* of units */
};

/* The groups of `relation`; PUs in none are units of their own, PUs of a listed pair are in one.
 * 0 or -ENOMEM, as the three below. */
int probe_partition_make(const struct profile_set *pus, const struct profile_relation *relation,
                         struct partition *out);
int probe_partition_copy(const struct partition *from, struct partition *out);
/* All PUs in one unit. */
int probe_partition_one(size_t pus, struct partition *out);
void probe_partition_free(struct partition *partition);

/* Is every unit of `fine` inside of a unit of `coarse`? True of equal ones, too. */
bool probe_partition_refines(const struct partition *fine, const struct partition *coarse);

/* Makes one unit of two; units are numbered anew. */
void probe_partition_merge(struct partition *partition, uint32_t a, uint32_t b);

/* Divides the units that `keep` does not name into single PUs. 0 or -ENOMEM. */
int probe_partition_dissolve(struct partition *partition, const bool *keep);

/* The units of at least two PUs as groups. 0 or -ENOMEM. */
int probe_partition_groups(const struct partition *partition, const struct profile_set *pus,
                           struct profile_relation *out);

#endif
