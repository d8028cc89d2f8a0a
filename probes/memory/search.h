/* A search for domains asks what units, parts of a partition of the PUs, get of memory together.
 * One PU of each core of a unit works: threads of a core add little, and where they collide their
 * pair shows it.
 *
 * For the files of domains only: domains.c has the levels, and the order in which candidates and
 * searches come; domains_search.c asks whether groups are domains, and looks for hidden ones. */
#pragma once

#include "probes/memory/memory.h"
#include "probes/memory/rates.h"
#include "probes/pairs/partition.h"
#include "profile/base/random.h"

struct domain {
    struct partition partition;
    ptrdiff_t of_pairs; /* position among the levels that pairs gave; < 0: found by sets */
    double share;       /* of what the parts of a group get separately, together; the least group */
    bool loose;         /* pairs that are no groups: nothing can be put inside */
    bool doubted;       /* a domain inside was found later, which may be all that it showed */
};

struct sets {
    struct probe *probe;
    const struct profile_set *pus;
    size_t bytes, most_levels, count;
    size_t copies;  /* made so far */
    size_t at_once; /* workers that a quota allows */
    bool outliers;  /* probe_memory's: what is declared is not all there is */
    struct partition cores;
    bool adopted;          /* the cores are what a measurement showed */
    struct domain *levels; /* inner ones first */
    double *alone;         /* by position: what a PU gets alone; 0: not known yet */
    struct random random;
};

/* -- levels (domains.c) -- */

/* The largest level inside of the partition; the cores when there is none. */
const struct partition *probe_sets_inner_of(const struct sets *sets, const struct partition *of);
/* The smallest level around it, or NULL. */
const struct partition *probe_sets_outer_of(const struct sets *sets, const struct partition *of);
/* The partition becomes a level and is empty then; false: it is one already, or lies across one. */
bool probe_sets_insert(struct sets *sets, struct partition *partition, double share);
/* Levels inside of that one with groups as large as its own go: some of its groups, which pairs
 * showed. */
void probe_sets_drop_parts(struct sets *sets, const struct partition *of);
/* Two PUs that get together what one gets alone are threads of one core: one of them works from now
 * on. 0 or -ENOMEM. */
int probe_sets_adopt_cores(struct sets *sets, const struct partition *of, double share_of_two);

/* -- candidates and hidden domains (domains_search.c); 0 or -errno -- */

/* The total of the units of `inner` in that unit of `of`, as a share of what they get separately;
 * 1: there are fewer than two. */
int probe_sets_loss(struct sets *sets, const struct partition *inner, const struct partition *of,
                    uint32_t unit, double *share);
/* Some parts of that unit of `of` are put to work, until they leave little to one more. Are random
 * others of it (outer NULL), or of the unit of `outer` around it, all left little, or none? Where
 * nothing leaves less than the limit, both are true. */
int probe_sets_members(struct sets *sets, const struct partition *of, uint32_t unit,
                       const struct partition *outer, bool *all, bool *none);
/* Makes a level of the groups that are domains, if any is. */
int probe_sets_try(struct sets *sets, const struct partition *of);
/* Looks for what is hidden among the units, then among what they were merged to, until nothing more
 * is found. */
int probe_sets_search(struct sets *sets, const struct partition *units);
