/* A search for domains asks what units, parts of a partition of the PUs, get of memory together.
 * One PU of each core of a unit works: threads of a core add little, and where they collide their
 * pair shows it.
 *
 * For the files of domains only: domains.c has the order in which candidates and searches come,
 * domains_loss.c asks whether groups are domains, domains_search.c looks for hidden ones,
 * domains_sets.c measures sets of units, domains_levels.c reads and writes the profile's form. */
#ifndef SERVET_PROBES_MEMORY_SEARCH_H
#define SERVET_PROBES_MEMORY_SEARCH_H

#include "probes/memory/pairs.h"
#include "probes/memory/rates.h"
#include "probes/pairs/partition.h"
#include "profile/base/random.h"

/* The share that a saturated domain leaves to one more core; half is far from both 0 and 1. */
static const double sets_saturated_gain = 0.5;
/* What one of two parts gains beside the other where both get 0.9 of their sum. */
#define SETS_PAIR_GAIN (PROBE_MEMORY_COLLISION * 2 - 1)

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

/* -- measuring (domains_sets.c) -- */

/* The total of the units that work, by a copy `once` or by the best of some, since interference
 * only takes bandwidth away; NAN: they are more workers than a quota allows. 0 or the machine's
 * -errno. */
int probe_sets_total(struct sets *sets, const struct partition *of, const bool *works, bool once,
                     double *bytes_per_s);
/* One unit. */
int probe_sets_alone(struct sets *sets, const struct partition *of, uint32_t unit,
                     double *bytes_per_s);

/* The largest level inside of the partition; the cores when there is none. */
const struct partition *probe_sets_inner_of(const struct sets *sets, const struct partition *of);
/* The smallest level around it, or NULL. */
const struct partition *probe_sets_outer_of(const struct sets *sets, const struct partition *of);
/* The first unit of several units of what lies inside; where there is none, of several PUs. */
uint32_t probe_sets_first_group(const struct sets *sets, const struct partition *of);

/* -- levels (domains.c) -- */

/* The partition becomes a level and is empty then; false: it is one already, or lies across one. */
bool probe_sets_insert(struct sets *sets, struct partition *partition, double share);
void probe_sets_drop(struct sets *sets, size_t index);
/* Two PUs that get together what one gets alone are threads of one core: one of them works from now
 * on. 0 or -ENOMEM. */
int probe_sets_adopt_cores(struct sets *sets, const struct partition *of, double share_of_two);

/* -- candidates (domains_loss.c) -- */

/* The total of the units of `inner` in that unit of `of`, as a share of what they get separately;
 * 1: there are fewer than two. 0 or -errno, as the next. */
int probe_sets_loss(struct sets *sets, const struct partition *inner, const struct partition *of,
                    uint32_t unit, double *share);
/* Some parts of that unit of `of` are put to work, until they leave little to one more. Are random
 * others of it (outer NULL), or of the unit of `outer` around it, all left little, or none? Where
 * nothing leaves less than the limit, both are true. */
int probe_sets_members(struct sets *sets, const struct partition *of, uint32_t unit,
                       const struct partition *outer, bool *all, bool *none);
/* Makes a level of the groups that are domains, if any is. */
int probe_sets_try(struct sets *sets, const struct partition *of);

/* -- hidden domains (domains_search.c) -- */

/* Units among which a domain is looked for. All arrays are by unit. */
struct search {
    struct sets *sets;
    const struct partition *units;
    double limit;   /* of the gain beside others; less is a domain */
    uint32_t *list; /* of the units, in order. Owned, as all below */
    size_t count;
    uint32_t *group; /* one of its domain; at first itself */
    bool *known;     /* its domain was looked for, or found */
    double *alone;   /* 0: not known yet */
    bool *before_of; /* the units whose total is `before` */
    double before;   /* 0: none is */
    double share;    /* of the domain that loses most */
};

/* The units inside of that unit of `outer` (NULL: all). 0 or -ENOMEM. */
int probe_search_start(struct search *search, struct sets *sets, const struct partition *units,
                       const struct partition *outer, uint32_t outer_unit);
void probe_search_stop(struct search *search);
/* A smallest set of units, in `busy` (zeroes), that leaves others of the domain of the unit *gain
 * or about that, less than the limit; from the limit on: there is none. 0 or -errno, as the two
 * below. */
int probe_search_fill(struct search *search, uint32_t unit, bool *busy, double *gain);
/* Is the unit in the domain that `busy` saturates, which leaves `gain` to one of its units? */
int probe_search_ask(struct search *search, bool *busy, double gain, uint32_t unit, bool *member);

/* Looks for what is hidden among the units, then among what they were merged to, until nothing more
 * is found. */
int probe_sets_search(struct sets *sets, const struct partition *units);

/* -- the profile's form (domains_levels.c) -- */

/* Levels that pairs gave. 0 or -ENOMEM. */
int probe_sets_take_levels(struct sets *sets, const struct profile_memory *memory);
/* Levels of pairs move over, those of sets come between them, with their curves. 0 or -errno. */
int probe_sets_assemble(struct sets *sets, struct probe_memory *found);

#endif
