/* Caches of several kinds of cores in one class. */
#ifndef SERVET_PROBES_RESULT_KINDS_H
#define SERVET_PROBES_RESULT_KINDS_H

#include "kinds.h"
#include "result.h"

/* What the probes found on one kind. */
struct kind_findings {
    struct probe_cache caches;
    struct probe_sharing sharing; /* empty: the declared groups are kept */
};

/* For the levels of the first kind that were measured: whose caches they are. holders[i] is NULL for a cache that the
 * operating system says others have too: that is asked of all PUs. */
int result_holders(const struct profile_class *node_class, const struct kinds *kinds, const struct probe_cache *caches,
                   const struct profile_set **holders);

/* As result_set_caches(), of each kind; a cache that kinds have in common is the one found by the first. 0 or -ENOMEM.
 */
int result_set_caches_of_kinds(struct profile_class *node_class, const struct kinds *kinds,
                               struct kind_findings *findings, const struct disagreement_machine *machine);

#endif
