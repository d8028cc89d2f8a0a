/* A search for domains has units, parts of a partition of the PUs, of which sets work. One PU per
 * core of a unit works: siblings of a core add little, and where they collide their pair shows it.
 *
 * For the files of domains only: domains.c decides, domains_sets.c chooses workers and compares
 * them, domains_declared.c tries candidates, domains_hidden.c searches for others, domains_filled.c
 * finds who is in a domain, domains_levels.c reads and writes the profile's form. */
#ifndef SERVET_PROBES_MEMORY_SEARCH_H
#define SERVET_PROBES_MEMORY_SEARCH_H

#include "probes/memory/domains.h"
#include "probes/memory/rates.h"
#include "probes/pairs/partition.h"
#include "profile/base/random.h"

/* Two units that fill one link get together 0.9 of what they get apart: the papers' margin, of a
 * pair. */
static const double sets_overhead_share = PROBE_MEMORY_COLLISION;
/* The share that a saturated domain leaves to one more unit; half is far from both 0 and 1. */
static const double sets_saturated_gain = 0.5;
/* A unit that adds so little is in the domain, whatever the others got at another time; half of
 * the saturated gain. */
static const double sets_surely_full = sets_saturated_gain / 2;

struct domain {
    struct partition partition;
    ptrdiff_t of_pairs; /* position among the levels that pairs gave; < 0: found by sets */
    double share;       /* of one group's packed workers, of what as many get that are spread */
    double spread;      /* of that, between rounds */
    uint32_t workers;   /* that it was measured with */
    uint32_t looked_at; /* groups that were measured; the others are taken over */
    uint32_t rounds;
    bool loose;   /* pairs that are no groups: nothing can be put inside */
    bool doubted; /* a domain inside was found later, which may be all that it showed */
};

/* Positions in the machine's set. */
struct workers {
    size_t *at, count;
};

struct sets {
    struct probe *probe;
    const struct profile_set *pus;
    size_t bytes, most_levels, count;
    size_t copies;     /* that were made */
    double ahead;      /* copies that are expected after those of what goes on */
    double ahead_here; /* and of the search that goes on */
    size_t at_once;    /* workers that a quota allows */
    bool odd;          /* probe_memory's: what is declared is not all there is */
    struct partition cores;
    bool adopted;          /* the cores are what a measurement showed */
    struct domain *levels; /* inner ones first */
    struct random random;
    struct workers first, second, both; /* room for all PUs each */
    uint32_t *ids;
    double *rates;
};

/* -- measuring -- */

/* The total of the workers, copying at once. 0 or the machine's -errno, as the two below. */
int probe_sets_total(struct sets *sets, const struct workers *workers, double *bytes_per_s);
/* What sets->first gets in all, of what sets->second (as many) gets. */
int probe_sets_compare(struct sets *sets, struct domain *out);
/* What sets->second adds to sets->first at work, of what it gets alone. */
int probe_sets_gain(struct sets *sets, double *gain);
/* The same where the totals of the two sets alone are known (> 0): a look at both together that
 * shows that nothing is lost is all, three that show that nearly nothing is added are, and
 * otherwise it is measured by turns. */
int probe_sets_gain_known(struct sets *sets, double before, double alone, double *gain);

/* -- choosing workers -- */

/* Adds one PU of each core of the unit, up to `most` workers in all. */
void probe_sets_add_unit(const struct sets *sets, const struct partition *of, uint32_t unit,
                         size_t most, struct workers *out);
/* How many that would be. */
size_t probe_sets_cores_of(struct sets *sets, const struct partition *of, uint32_t unit);
/* Does the unit of `of` lie in a larger one of `outer`? */
bool probe_sets_is_part(const struct partition *of, uint32_t unit, const struct partition *outer);
/* The largest level inside of the partition; the cores when there is none. */
const struct partition *probe_sets_inner_of(const struct sets *sets, const struct partition *of);
/* The smallest level around it, or NULL. */
const struct partition *probe_sets_outer_of(const struct sets *sets, const struct partition *of);
/* The smallest level of which the unit is a part, or NULL. */
const struct partition *probe_sets_around(const struct sets *sets, const struct partition *of,
                                          uint32_t unit);
/* Units of `inner` in that unit of `of`, by their first PUs; how many. */
size_t probe_sets_units_in(const struct partition *inner, const struct partition *of, uint32_t unit,
                           uint32_t *out);
/* Which kind of cores the unit's first PU is of. */
size_t probe_sets_kind_of(const struct sets *sets, const struct partition *of, uint32_t unit);
/* sets->second: as many workers as sets->first has, in whole units of the next smaller domain taken
 * from units of `of` that lie far apart, of the unit's kind of cores (each fast core is a sibling
 * of a cluster of slow ones, and says nothing of it) and in the same unit of `outer`, the next
 * always from that with the fewest workers. False: there are not so many. `scratch`: room for two
 * numbers a PU. */
bool probe_sets_spread(struct sets *sets, const struct partition *of, uint32_t unit,
                       const struct partition *outer, uint32_t *scratch);
/* Kinds of cores do not copy equally fast: sets of other kinds cannot be compared. */
bool probe_sets_same_kinds(const struct sets *sets);
/* The first group of at least two units of what lies inside, from `from` on, round to the
 * beginning. */
uint32_t probe_sets_group_from(const struct sets *sets, const struct partition *of, uint32_t from);

/* -- levels -- */

/* 1: it is a level now and belongs to `sets`; 0: it is one already, or lies across one. */
int probe_sets_insert(struct sets *sets, const struct domain *domain);
void probe_sets_drop(struct sets *sets, size_t index);
/* Two PUs that get together what one gets alone are hardware threads of one core, or as good as
 * that: from now on one of them works. 0 or -ENOMEM. */
int probe_sets_adopt_cores(struct sets *sets, const struct partition *of, double share_of_two);

/* Looks for what is hidden among the units, then among what they were merged to, until nothing more
 * is found. 0 or -errno. */
int probe_sets_search(struct sets *sets, const struct partition *units);

/* -- candidates -- */

/* One group against its siblings. share 1: they cannot be compared. 0 or -errno. */
int probe_sets_look_at_group(struct sets *sets, const struct partition *of, uint32_t unit,
                             struct domain *out);
/* 1: the partition, or those of its groups that lose something, is a level now; 0: it is none; or
 * -errno. */
int probe_sets_try(struct sets *sets, const struct partition *of);

/* -- searching for what is hidden -- */

/* Units of one outer domain, and which of them were found to belong together. */
struct sets_search {
    struct sets *sets;
    const struct partition *units;
    uint32_t *members; /* unit numbers */
    size_t count;
    size_t workers;  /* of each unit */
    uint32_t *group; /* by position in `members`: one of its group; at first itself */
    bool *known;
    double *alone;      /* by position: what the unit gets; 0: not known yet */
    double before;      /* what the busy units of a domain get together; 0: they change */
    size_t fill;        /* units that filled the last domain that was found; 0: none was */
    double limit;       /* of the gain of a pair; less is a collision */
    double worst, best; /* gains that groups came of */
};

/* The best of some looks at what the workers get. 0 or the machine's -errno, as the two below. */
int probe_sets_total_of(struct sets *sets, const struct workers *workers, double *bytes_per_s);
/* What the one adds to the busy units, of what it gets alone; less than the limit is made sure
 * of. */
int probe_sets_gain_beside(struct sets_search *search, const bool *busy, size_t one, double limit,
                           double *gain);
/* Makes one group of the two units' groups. */
void probe_sets_join(struct sets_search *search, size_t first, size_t other, double gain);
/* Groups units by the domains of three units and more that they are in. 0 or -errno. */
int probe_sets_search_domains(struct sets_search *search);

/* -- the profile's form -- */

/* Levels that pairs gave. 0 or -ENOMEM. */
int probe_sets_take_levels(struct sets *sets, const struct profile_memory *memory);
/* Levels of pairs move over, those of sets come between them, with their curves. 0 or -errno. */
int probe_sets_assemble(struct sets *sets, struct probe_memory *found);

#endif
