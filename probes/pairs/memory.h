/* What the files of probes/pairs/ promise one another and the rest of the room. */
#ifndef SERVET_PROBES_PAIRS_MEMORY_H
#define SERVET_PROBES_PAIRS_MEMORY_H

#include "probes/pairs/partition.h"
#include "probes/pairs/sample.h"
#include "probes/probe.h"
#include "profile/model.h"

/* -- memory -- */

/* Memory bandwidth alone, in pairs and by the number of workers (2010 paper, Section III-C, Figure
 * 6).
 *
 * Copies of arrays far larger than every cache. A pair collides when one of them, both copying,
 * gets less than 90 % of what it gets alone ("b < ref" of the paper needs a margin). Colliding
 * bandwidths are clustered (layers.c) to overhead levels, worst first; what a second look at a
 * pair of each level contradicts is measured again; a level's groups are of PUs that collide so or
 * worse, so that groups nest.
 */

/* Of the bandwidth alone; what is less collides. Rounds differ by 4 to 7 % on a shared machine. */
#define PROBE_MEMORY_COLLISION 0.9

/* The result in the profile's own form, to be moved into a class. `array_bytes`: what was copied,
 * per PU. */
struct probe_memory {
    struct profile_memory memory;
    size_t array_bytes;
    bool cut_short; /* by the memory limit: arrays so small that a cache may hold a part of them */
    bool odd;       /* a pair collides, and none of those that are said to be like it */
    bool apart;     /* pairs have no figure, or some sets: their PUs never ran at the same time */
    bool searched;  /* pairs and sets to the end: there are no more levels */
};

/* Overhead levels from the bandwidth of every pair (by probe_pair_index(), of the slower one);
 * `reference` is that of one PU alone, `spread` the relative deviation of one figure (layers.c).
 * Levels come without scaling. 0 or -ENOMEM. */
int probe_memory_levels(const struct profile_set *pus, double reference,
                        const double *pair_bytes_per_s, double spread, struct profile_memory *out);

/* The pages that memory is measured with: huge ones where they are to be had, as what is allocated
 * in large pieces gets; the TLB then adds nothing to what memory takes. */
enum machine_pages probe_memory_pages(const struct machine *machine);

/* "AVX2 non-temporal stores, pages of 2 MiB asked for, arrays of 128 MiB": a new string, or
 * NULL. */
char *probe_memory_method(const struct machine *machine, size_t array_bytes);

/* Of an array that is copied. */
size_t probe_memory_bytes(const struct probe *probe, size_t last_level_bytes);

/* `last_level_bytes`: the largest cache, declared or measured. */
int probe_memory(struct probe *probe, size_t last_level_bytes, struct probe_memory *out,
                 struct servet_error *error);
/* One worker alone, once. 0 or the machine's -errno. */
int probe_memory_alone(struct probe *probe, size_t last_level_bytes, uint32_t pu,
                       double *bytes_per_s);
void probe_memory_free(struct probe_memory *result);

/* -- memory_rounds -- */

/* Rounds of copies, of single PUs and of pairs by turns, until each pair's figure is settled. Only
 * memory.c and scaling.c. */

enum { MEMORY_ALONE_MAX = 64 }; /* measurements of one PU alone; more say nothing new */

/* Alone and in pairs by turns, so that a drift of the machine meets both. The reference is the best
 * of its rounds, a pair is the median of its own: alone nothing can make a copy faster than it
 * is. */
struct memory_rounds {
    struct probe *probe;
    size_t bytes;
    double alone[MEMORY_ALONE_MAX];
    size_t alone_count;
    uint32_t fewest_rounds; /* of any pair */
    /* of both PUs of a pair together, by probe_pair_index(); 0: not measured. Owned */
    double *totals;
    double *slower;  /* what the slower one of a pair got, by probe_pair_index(). Owned */
    double *spreads; /* of a pair's rounds, by probe_pair_index(); < 0: not known. Owned */
    double *scale;   /* by position of the PU: what it is behind the best one alone, by its kind of
                        cores or as it was measured. Owned */
    double *logs;    /* of the ratios of two rounds of one pair. Owned */
    size_t ratios;
    double spread; /* of one figure, from them */
    bool doubted;  /* one round is not enough, however much a pair gets */
    bool apart;    /* the PUs of the last round never ran at the same time */
};

/* 0 or -ENOMEM. */
int probe_memory_rounds_init(struct memory_rounds *rounds, struct probe *probe, size_t bytes);
void probe_memory_rounds_free(struct memory_rounds *rounds);

/* Are there so many PUs that copies have to be few and short, or they would take minutes? */
bool probe_memory_is_large(const struct probe *probe);
/* A copy between arrays of so many bytes, on a NUMA node or (< 0) on each PU's own. */
struct machine_copy probe_memory_what(const struct probe *probe, size_t bytes, int32_t numa);
/* Copies, once, on all of `pus`; -EAGAIN: they never ran at the same time
 * (probe_machine_copy_together()). */
int probe_memory_copy(struct probe *probe, size_t bytes, const uint32_t *pus, size_t count,
                      double *bytes_per_s);
/* Where there are kinds of cores, what one of each copies alone, so that a slow core does not pass
 * for a disturbed one. 0 or -errno. */
int probe_memory_rounds_kinds(struct memory_rounds *rounds);
/* One more figure of a PU alone, up to MEMORY_ALONE_MAX. */
int probe_memory_rounds_alone(struct memory_rounds *rounds, uint32_t pu);
/* A pairs_measure_function: what the slower PU of each pair gets; learns the spread from the first
 * pairs. */
int probe_memory_rounds_ask(void *rounds, const struct pair_position *pairs, size_t count,
                            double *bytes_per_s, double *figures);
/* One pair once more, and the better figure counts: disturbance only takes bandwidth away. */
int probe_memory_rounds_better(struct memory_rounds *rounds, size_t i, size_t j,
                               double *bytes_per_s);
/* The best that any PU got alone so far. */
double probe_memory_rounds_reference(const struct memory_rounds *rounds);
/* Does one of a pair that gets so much collide with the other? */
bool probe_memory_collides(double bytes_per_s, double reference);
/* Collisions are transitive: pairs that one round said not to collide, and both of which collide
 * with one other PU, get all their rounds. 0 or -errno. */
int probe_memory_rounds_doubt(struct memory_rounds *rounds, struct sampling_outcome *outcome);
/* A PU that is far from all memory copies less than the others, alone: what it gets beside another
 * is a collision only where it is less than that. Where some pairs do not collide, those that
 * collide with everybody are asked what they get alone; their pairs were compared with too much. 0
 * or -errno. */
int probe_memory_rounds_slow(struct memory_rounds *rounds, struct sampling_outcome *outcome);

/* -- kernels -- */

/* What each of enum profile_kernel gets, on the first PU alone and on all PUs of its NUMA node
 * together, into found->memory; nothing where it is late or memory has become scarce. 0, or the
 * machine's -errno with one line in `error`; `found` is then as it was. */
int probe_memory_kernels(struct probe *probe, struct probe_memory *found,
                         struct servet_error *error);

/* -- numa -- */

/* What the PUs of one NUMA node get of the memory of every node: latency and bandwidth (2010 paper,
 * Section III-C, for machines on which where the memory is matters as much as who else uses it).
 *
 * Rows are groups of PUs that are local to one node, columns all nodes, those without PUs too. A
 * group's first PU chases through a random cycle far larger than every cache, and copies, on memory
 * bound to the node, while all else is idle: three rounds of both, their medians. A machine of one
 * node gives one row. Of more than 16 cells all are chased in once, and of those that are alike in
 * it and in the topology a sample is measured so; where it agrees the others take its bandwidth
 * over, which their quality says. A node out of reach (a control group's memory nodes, a sandbox)
 * or with too little free memory leaves its rows out, and that is said.
 */

struct probe_numa {
    struct profile_numa_access *rows; /* ordered as the profile wants them; owned */
    size_t count, planned;
    char why[160]; /* of the first row that was left out; "" when none was */
};

/* `array_bytes`: of the working set, as probe_memory() chose it. Needs probe->declared; without
 * declared nodes there are no rows. */
int probe_numa(struct probe *probe, size_t array_bytes, struct probe_numa *out,
               struct servet_error *error);
void probe_numa_free(struct probe_numa *result);

/* What that will be where cells are alike: cells only chased in, and measured in full. */
struct probe_numa_plan {
    size_t looked_at, copied;
};
struct probe_numa_plan probe_numa_planned(const struct probe *probe);

/* -- scaling -- */

/* Bandwidth of a group by the number of its workers (2010 paper, Section III-C, Figure 9b). */

/* Orders positions in the machine's set so that each next one has the fewest before it in its unit
 * of the outermost of `inner` (partitions of the positions), then of the next, the
 * core last: one worker in each inner domain before a second one in any. */
void probe_scaling_order(size_t *positions, size_t count, const struct partition *const *inner,
                         size_t inner_count);

/* Measures the curve of `level` on the first 1, 2, 3 … of `order` (OS indices). Points 1 and 2 are
 * taken from `known` where it has them (bytes_per_s > 0): measured at another time they might
 * contradict what the level comes from. It ends where the workers never ran at the same time;
 * -EAGAIN: before there were two. 0, -ENOMEM or the machine's -errno. */
int probe_scaling_measure(struct probe *probe, size_t bytes, const uint32_t *order, size_t count,
                          const struct profile_scaling_point known[2],
                          struct profile_memory_level *level);

/* -- sets -- */

/* Memory overhead that no pair of PUs can show: domains that only sets of workers fill.
 *
 * On a machine of today one core moves 20 GB/s, the link of a few cores 40 to 60, a socket 100 to
 * 400: no two workers collide (2010 paper, Section III-C), and yet eight on one link get a quarter
 * of what they could. So sets are measured:
 *
 *   candidates   groups that are declared (caches, NUMA nodes, packages), found by shared caches or
 *                by messages. All cores of one group against as many spread over its siblings, in
 *                both with as many workers in each smaller domain: less than 0.9 is an overhead
 *                level. One group and a random second are measured, one of each other size or
 *                kind of cores, and some members of the first against the others; what the other
 *                groups get in all says whether they are alike. Where any is not, all are
 *                measured: one is a domain if its parts lose something together, too, and groups
 *                that are none go, unless a level lies inside of them.
 *   hidden ones  what a unit (a group of cores, a core) adds to others that are at work already,
 *                beside what it gets alone. Units that add less than 0.8 to one another are behind
 *                one link, whatever the topology says; where no two do, a smallest set that leaves
 *                nothing for a further unit is looked for, and every unit is tried beside it.
 *   pruning      a level whose groups lose nothing against others of the same larger domain is only
 *                the larger one's shadow, and goes.
 *
 * The measured EPYC 7402 is the pattern: two L3 caches behind one link of 37 GB/s, which no
 * topology mentions (tests/fixtures/machines/epyc-7402.json).
 */

/* Copies for each core that is searched for domains that nobody declares: 11 to 15 on most
 * simulated machines of 128 to 512 PUs, 4 where groups are large and alike, 60 with four threads a
 * core. */
#define PROBE_MEMORY_SEARCHED_COPIES 12.0

/* Adds the levels that sets show to those of pairs, with their groups and curves (model.h: worst
 * first, each within the next). `candidates`: partitions of the PUs that may be domains; what they
 * say is tried, never taken over. Stops early, with what it has, when the probe is late, and where
 * copies that are to meet never do: those that did not say that nothing is lost.
 * 0, or -errno of the machine with one line in `error`; `found` is as it was then. */
int probe_memory_sets(struct probe *probe, const struct profile_relation *const *candidates,
                      size_t count, struct probe_memory *found, struct servet_error *error);

#endif
