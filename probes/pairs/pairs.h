/* What the files of probes/pairs/ promise one another and the rest of the room. */
#ifndef SERVET_PROBES_PAIRS_PAIRS_H
#define SERVET_PROBES_PAIRS_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "probes/cache/cache.h"
#include "probes/machine.h"
#include "probes/probe.h"
#include "profile/base/random.h"
#include "profile/model.h"

/* -- layers -- */

/* Which of many measured values are "similar": the rule that the papers leave open (2010 paper,
 * Figures 6 and 7).
 *
 * The threshold is the noise of the measurement, not a number of ours. `spread` is the relative
 * deviation of one figure, from measurements of the same pair that were repeated
 * (probe_layers_spread()); below 2 % it counts as 2 %: pairs of one layer differ by 1 to 5 %
 * themselves. On the logarithm of the values a Gaussian kernel density with a bandwidth of 1.5
 * spreads is cut at every valley that is lower than half of the lower of its two peaks. (Two single
 * values are cut apart from 5 spreads on.) Then pieces are joined again.
 *
 * Of values alone (probe_layers_cluster()):
 *
 *   - neighbours whose medians lie less than four of their own deviations apart: Ashman's D, which
 *     is 2.65 for the halves of a Gaussian and 3.46 for those of a flat distribution. A deviation
 *     counts as one spread at least;
 *   - clusters of fewer than 1.5 % of the values, and of fewer than two, when there are more than
 *     eight values: those are outliers, not layers.
 *
 * Of pairs (probe_layers_of_pairs()) a layer is more than a range of values: it divides the PUs
 * into groups that explain the pairs. A cut between two pieces "makes groups" when the pairs below
 * it connect PUs to groups inside of which nearly all pairs are below it. So the siblings of 256
 * cores are a layer, though they are 0.2 % of the pairs, and one odd pair is none.
 *
 *   - A cut that makes groups stays where the medians are four deviations or a factor of 1.4 apart,
 *     unless the groups of both sides are of one kind: of like sizes, and none within another, such
 *     as siblings of which a clock of 5 ns steps says 5 or 10, or of which one is disturbed. One
 *     group, or groups of less than a fourth of the PUs, count where both is so.
 *   - A cut that makes none stays where the medians are four deviations and a factor of 1.4 apart
 *     and both sides have as many pairs as there are PUs, two of four PUs: distances in a mesh.
 *
 * How often that errs on simulated pairs is printed by benchmarks/probes/layer_errors, whose limits
 * are a test, and on measured machines by benchmarks/probes/real_layers.
 */

#define CLUSTERS_MAX 16

/* Where nothing was measured twice: that of latencies between virtual machines of one host. */
#define CLUSTER_USUAL_SPREAD 0.027

struct clusters {
    size_t count;
    double centre[CLUSTERS_MAX]; /* median of the cluster, ascending */
    size_t size[CLUSTERS_MAX];
};

/* `values` > 0. cluster_of[i] is set for each. 0, -EINVAL (no values, or one that is not positive)
 * or -ENOMEM. */
int probe_layers_cluster(const double *values, size_t count, double spread, uint32_t *cluster_of,
                         struct clusters *out);

/* The same for the figures of all pairs of `pus` PUs, by probe_pair_index(). 0, -EINVAL or
 * -ENOMEM. */
int probe_layers_of_pairs(size_t pus, const double *seconds, double spread, uint32_t *layer_of,
                          struct clusters *out);

/* Relative deviation of one figure from pairs of figures of the same thing: logs[i] is the
 * logarithm of the ratio of the two (reordered). By the median, so that outliers do not count; 0
 * without any. */
double probe_layers_spread(double *logs, size_t count);

/* Agreement of pairs' times (schedule.agree): one cluster, and none is clearly faster.
 * Disturbance only lengthens, so such a pair is structure, of however many pairs: siblings are one
 * pair of each core among all. Clearly: by the factor of layers, or by six deviations. */
bool probe_layers_agree(double *values, size_t count, double spread);

/* -- relation -- */

/* From what was found for every pair to groups: the way from Pm and Pl to {0,1,2} and {3,4,5} (2010
 * paper, III-C). */

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

/* The relation "bond of a class up to `weakest`": its connected components where all members
 * are bound to each other become groups, of at least two; the pairs of other components are listed
 * one by one. 0 or -ENOMEM. */
int probe_relation_from_classes(const struct pair_classes *classes, uint8_t weakest,
                                struct profile_relation *out);

/* The figures of pairs that were measured, both by probe_pair_index(), as a profile has them, in
 * the place of what *list was. 0 or -ENOMEM. */
int probe_pair_figures(const struct profile_set *pus, const double *values, const bool *measured,
                       struct profile_pair_figure **list, size_t *count);
/* A figure of a pair without the digits that say nothing. */
double probe_pair_rounded(double value);

/* -- messages -- */

/* Latency of messages between PUs: layers, the point-to-point curve and concurrency (2010 paper,
 * Section III-D).
 *
 * Messages of the size of the L1 cache, every pair, two sweeps apart in time of which the smaller
 * figure counts, and more of them for a pair until its two smallest figures agree (schedule.c).
 * Latencies are clustered (layers.c) to layers, fastest first; a layer's groups are of PUs that
 * are that near or nearer where that is transitive, single pairs otherwise. The curve by message
 * size and the concurrency curve are measured on one representative of each layer.
 */

/* The size of messages where none is asked for: that of the class' first level. */
size_t probe_message_usual_bytes(const struct profile_class *node_class);

/* On `probe->machine`, which need only exchange. Result in the profile's own form. */
int probe_message(struct probe *probe, size_t message_bytes, struct profile_communication *out,
                  struct servet_error *error);
/* Looks once more, later, at the representative of each layer and its curve
 * (probe_repeat_look_again()): within one burst, or one start of an MPI library, figures agree that
 * differ twofold from run to run. 0, or the machine's -errno with one line in `error`. */
enum {
    PROBE_MESSAGE_LOOKS = 4
}; /* the first one among them: nine runs of ten are then covered
                                     (tests/probes/test_looks.c) */
int probe_message_look_again(struct probe *probe, struct profile_communication *result,
                             struct servet_error *error);
/* One pair, once, one way. 0 or the machine's -errno. */
int probe_message_pair(struct probe *probe, size_t bytes, const struct profile_pair *pair,
                       double *seconds);
void probe_message_free(struct profile_communication *result);

/* -- repeat -- */

/* How often is a figure measured? Until it is known well enough, or the patience is over: the quiet
 * figures of a quiet machine cost little, and those that are not get the time. */

/* Measurements of one figure that is a median, and of one that is a minimum. */
enum {
    REPEAT_MEDIAN_LEAST = 3,
    REPEAT_MEDIAN_MOST = 9,
    REPEAT_MINIMUM_LEAST = 2,
    REPEAT_MINIMUM_MOST = 5
};

/* Half of the interval that holds the median with a probability of 95 %, as a share of the median:
 * between order statistics, whatever the distribution. Fewer than six values say that of no
 * interval: then all they span, which is 75 % for three and 94 % for five. INFINITY for none. */
double probe_repeat_half_width(const double *values, size_t count);

/* Is the half-width below 5 %, or the figure measured REPEAT_MEDIAN_MOST times? Never before
 * REPEAT_MEDIAN_LEAST. */
bool probe_repeat_median_settled(const double *values, size_t count);
/* The same of a median that is above a bar or below: within 5 % of it few values may say either. */
bool probe_repeat_side_settled(const double *values, size_t count, double bar);

/* The same of a time that disturbance can only lengthen: do the two smallest agree within 5 %? */
bool probe_repeat_minimum_settled(const double *values, size_t count);

/* A time that is the least of several batches, and how far those lay apart. */
struct probe_settled {
    double seconds, spread;
    uint32_t repetitions;
};

/* A figure is looked at again, apart in time: the smaller one counts, and its spread reaches to the
 * end of that of the other one, so that it covers what a second run would say. Within one burst
 * figures agree that differ twofold from run to run. Of one whose spread is not known (< 0) others
 * may have made all that was seen: a shorter one takes its place. */
void probe_repeat_look_again(double *seconds, double *spread, uint32_t *repetitions,
                             const struct probe_settled *again);

/* -- lines -- */

/* One way of one cache line between PUs: of up to eight pairs of each layer of `communication`,
 * and with probe->exhaustive of all. Sets line_seconds and line_quality of the layers, and
 * line_times. Called once more, later, it looks again at the same pairs
 * (probe_repeat_look_again()). On `probe->machine`, which hands over lines and not messages of a
 * library. 0, or the machine's -errno with one line in `error`. */
int probe_lines(struct probe *probe, struct profile_communication *communication,
                struct servet_error *error);
/* Moves the lines of pairs to other layers of the same PUs, found by other messages: a layer of
 * `to` gets the median of its own pairs, with the least repetitions and the widest spread of the
 * layers that they were measured for; one of which no pair was measured gets none. 0 or -ENOMEM. */
int probe_lines_move(struct profile_communication *from, struct profile_communication *to);

/* -- together -- */

/* Disjoint pairs of PUs measured at the same time, where a check shows that they do not disturb one
 * another.
 *
 * Before a class of pairs is measured, and only where that saves more than it costs, a batch of its
 * pairs is measured together and, by turns, a few of them alone: those that have the most others
 * beside them. If the median of the ratios is 1 within what two figures of one pair differ by,
 * further pairs of the class are measured in batches that are no larger and nowhere more crowded
 * than the one that was checked; a pair whose figure is then unlike those alone is measured alone
 * after all. The first batch has one pair in each of the machine's largest units (packages, NUMA
 * nodes …); if that passes, the next smaller units are tried, down to single PUs. If it does not,
 * batches of half the pairs are.
 */

enum { TOGETHER_PARTITIONS = 12, TOGETHER_MOST = 64 };

/* The i-th and the j-th PU. */
struct pair_position {
    size_t i, j;
};

/* Measures disjoint pairs at the same time. values[k] is what is asked of pairs[k]; figures[k] is a
 * time or a rate of it that shows whether it was disturbed. 0 or -errno. */
typedef int pairs_measure_function(void *argument, const struct pair_position *pairs, size_t count,
                                   double *values, double *figures);

/* Ways to divide the PUs into units, the largest units first, single PUs last. */
struct together {
    size_t pu_count, count;
    uint32_t *unit_of[TOGETHER_PARTITIONS]; /* by position of the PU. Owned */
};

/* What a batch may be. */
struct together_limit {
    size_t pairs;     /* up to 1: one by one */
    size_t partition; /* no two pairs touch the same unit of it */
    size_t crowd;     /* pairs that may touch one of the largest units; 0: any number */
    double figure;    /* of pairs alone */
    double band;      /* logarithm of the ratio to it that noise explains */
};

/* Pairs at a time, at most: `room` for them, unless the user or a quota allows fewer. */
size_t probe_together_most(const struct probe *probe, size_t room);

/* `declared` may be NULL: then nothing is known but the PUs. 0 or -ENOMEM. */
int probe_together_init(struct together *together, const struct profile_set *pus,
                        const struct profile_class *declared);
/* Keeps the largest units first; one unit of all says nothing, nor does a partition that is there
 * already. 0 or -ENOMEM. */
int probe_together_add(struct together *together, const struct profile_set *pus,
                       const struct profile_relation *relation);
void probe_together_free(struct together *together);

/* The unit of each PU, by position, when the groups of `relation` divide them: numbered by their
 * first PU; a PU in none of the groups is a unit of its own. To be freed; NULL: no memory. */
uint32_t *probe_together_units(const struct profile_set *pus,
                               const struct profile_relation *relation);

/* Moves the pairs of one batch to the front of `pairs`, which are in random order; how many: at
 * least 1. */
size_t probe_together_compose(const struct together *together, const struct together_limit *limit,
                              struct pair_position *pairs, size_t count);

/* Who is asked, and how many pairs at a time at most. */
struct together_question {
    const struct together *together;
    pairs_measure_function *measure;
    void *argument;
    size_t most;
};

/* What was found. Pairs that were measured alone on the way count: they come to the front, `done`
 * of them. */
struct together_found {
    struct together_limit limit;
    size_t done, tried; /* `tried`: batches */
};

/* Looks for the largest batches that do not disturb, among `pairs` of which all are to be measured;
 * `values` are those of the pairs that are done. 0 or the first -errno of `measure`. */
int probe_together_find(const struct together_question *question, struct pair_position *pairs,
                        size_t count, double *values, struct together_found *out);

/* Is a figure measured beside others like those that were measured alone? One that is not may be of
 * another kind of pair than the topology says, for which the check says nothing: it is to be
 * measured alone. */
bool probe_together_as_expected(const struct together_limit *limit, double figure);

/* Do figures of pairs together differ from those alone no more than repeated ones do? `ratios` are
 * logarithms, of together to alone; `repeats` of two figures of one pair, taken alike. Reorders
 * both. */
bool probe_together_undisturbed(double *ratios, size_t ratio_count, double *repeats,
                                size_t repeat_count);

/* -- schedule -- */

/* Which pairs of PUs are measured, and which take over what was measured on a pair like them.
 *
 * All pairs of 256 PUs are 32,640. Pairs that have the same thing in common in the declared
 * topology (a core, a cache of a level, a NUMA node, a package, the node), and are of the same two
 * kinds of cores, are presumed alike: of each such class a random sample of 4 log2(n) pairs is
 * measured, of memory those of one PU as well, and where they agree the others take their median
 * over. Where they do not, the topology says too little, and all pairs of the class are measured,
 * or, where they are many, of messages the groups that their times show (blocks.c), of yes or no as
 * many as tell the others (equivalence.c). The number of measurements so grows with n and log n
 * times the number of classes on regular machines. Where a check allows it,
 * disjoint pairs are measured at the same time (together.c).
 */

enum { SCHEDULE_CLASSES = 255 };

/* Are these values of one class, whose deviation is `spread`, alike? May reorder them. */
typedef bool schedule_agree_function(double *values, size_t count, double spread);

struct schedule {
    const struct profile_set *pus; /* not owned */
    uint8_t *class_of;             /* by probe_pair_index(): 0 is the closest */
    size_t class_count;
    struct together together;
    size_t at_once; /* pairs at a time, at most; up to 1: one by one */
    /* of the values of a class */
    schedule_agree_function *agree;
    bool exhaustive; /* every pair */
    bool search; /* that pairs are alike is doubted: 10.2 n of each class, not 4 log2(n), among them
                    all of one PU */
    bool row; /* all pairs of one PU come beside the sample: of a group of few it may have none */
    /* Values are yes (above 0) or no, whoever belongs to one belongs to all of its group, and this
     * says whether the measured answer of a pair says something (equivalence.c). NULL: figures */
    bool (*says)(const void *argument, size_t pair);
    const void *says_argument;
    bool by_messages;     /* pairs are presumed alike, not by the topology */
    const double *spread; /* of one figure so far, which may grow as more are measured; NULL: yes or
                             no. Not owned */
    /* told how many pairs are done, asked whether it is late; may be NULL. Not owned */
    struct probe *probe;
};

/* Classes from a declared topology; without one (NULL) all pairs are of one class. They agree when
 * they are one cluster, unless `agree` is set to something else. 0 or -ENOMEM. */
int probe_schedule_init(struct schedule *schedule, const struct profile_set *pus,
                        const struct profile_class *declared);
/* Pairs of one layer of messages are presumed alike, where they were of one class. `found` may be
 * NULL. 0 or -ENOMEM. */
int probe_schedule_divide(struct schedule *schedule, const struct profile_communication *found);
void probe_schedule_free(struct schedule *schedule);

struct schedule_outcome {
    double *values; /* by probe_pair_index(); of pairs that were left out as given */
    bool *measured; /* by probe_pair_index() */
    size_t measured_count, pair_count; /* of the pairs that were to be looked at */
    size_t planned_count;              /* pairs to be measured, as far as known */
    size_t fallbacks;                  /* classes whose sample did not agree */
    /* The largest batches of each class that a check allowed, for who looks at pairs again and
     * holds each against what it was before: where pairs of a class are not alike, the first look
     * cannot tell an odd pair from a disturbed one, and takes smaller ones. */
    struct together_limit limits[SCHEDULE_CLASSES];
    size_t tried, most_at_once; /* batches checked; pairs at a time, at most */
    bool cut_short;             /* the probe was late: a class was left after its first pairs */
    bool searched;              /* answers of other pairs told some (equivalence.c) */
    /* by probe_pair_index(), what divides a class; 0: nothing. NULL: no class was. To be freed */
    uint32_t *part_of;
    uint32_t parts;
};

/* `wanted` (by probe_pair_index(), NULL: all) says which pairs to look at; `values` and `measured`
 * are the caller's arrays. 0, or the first -errno of `measure`. */
int probe_schedule_run(const struct schedule *schedule, const bool *wanted, uint64_t seed,
                       pairs_measure_function *measure, void *argument,
                       struct schedule_outcome *outcome);

/* Of a class whose pairs do not agree, and are very many: groups of PUs that are near one another
 * are looked for, and pairs of the same two groups are presumed alike and tested (blocks.c). Only
 * of times of messages. 1: all pairs of the class have a value now; 0: no groups were found; or
 * the first -errno. */
struct blocks_question {
    const struct schedule *schedule;
    pairs_measure_function *measure;
    void *argument;
    struct schedule_outcome *outcome;
    size_t class;
    struct random *random;
};
int probe_blocks_measure(const struct blocks_question *question, size_t pairs);

/* Does the measured answer of the pair say something? */
bool probe_schedule_says(const struct schedule *schedule, size_t pair);

/* Of a class of answers that do not agree, and are many, brings those that are asked next to the
 * front of the rest of `pairs`, of which the first `asked` were. None: all answers are known, and
 * outcome->values[] has them; a pair whose own says nothing was not measured. 0 or -ENOMEM. */
struct equivalence_question {
    const struct schedule *schedule;
    struct schedule_outcome *outcome;
    size_t class;
};
int probe_equivalence_next(const struct equivalence_question *question, struct pair_position *pairs,
                           size_t count, size_t asked, size_t *chosen);

/* Calls `measure` once more for all measured pairs, as many at a time as before but beside others.
 * Its values are its own business. 0 or the first -errno. */
int probe_schedule_again(const struct schedule *schedule, const struct schedule_outcome *outcome,
                         uint64_t seed, pairs_measure_function *measure, void *argument);

/* Pairs that are measured where samples agree; of `wanted` as above. */
size_t probe_schedule_planned(const struct schedule *schedule, const bool *wanted);

/* Agreement of latencies and bandwidths: one cluster (layers.c). */
bool probe_schedule_agree_cluster(double *values, size_t count, double spread);
/* Agreement of yes or no. */
bool probe_schedule_agree_equal(double *values, size_t count, double spread);

/* "12 of 276 pairs measured, the others taken over …; up to 6 pairs at a time, which did not
 * disturb one another", or NULL when all were measured one by one. To be freed. 0 or -ENOMEM. */
int probe_schedule_note(const struct schedule_outcome *outcome, char **note);

/* -- sharing_trials -- */

/* A second witness of whether two PUs share a cache: how long one line takes from one to the other.
 *
 * PUs that share a cache hand a line over through it, others through the next outer one or through
 * memory, so sharing pairs are nearer than the others that share the same outer level. That tells
 * distance, not capacity: it is asked only where the ratio alone/together (sharing.c) leaves
 * doubt, and held against pairs of the same level on which the ratio left none. Noise only slows
 * down, so the smallest of three exchanges counts for each pair.
 */

enum sharing_opinion { OPINION_NONE, OPINION_SHARED, OPINION_PRIVATE };

enum { SHARING_REFERENCES = 16 }; /* pairs of each kind that are looked at */

struct sharing_witness {
    double near[SHARING_REFERENCES],
        far[SHARING_REFERENCES]; /* seconds, of pairs that share and that do not */
    size_t near_count, far_count;
};

/* What `seconds` of a pair say. With both kinds decided: the nearer of near's upper and far's lower
 * quartile (in the logarithm), none if those are less than 10 % apart. With one kind only: a pair a
 * fourth nearer than the pairs that do not share shares, one a fourth farther than those that share
 * does not. A pair like the only kind known says nothing: where all latencies are alike, as those
 * of threads of one core and of one package on some machines, the others may be just as far. */
enum sharing_opinion probe_sharing_witness_rule(const struct sharing_witness *witness,
                                                double seconds);

/* Latency of one line between two PUs. 0 or the machine's -errno (-ENOTSUP: it exchanges no
 * messages). */
int probe_sharing_witness_measure(struct probe *probe, const struct profile_pair *pair,
                                  double *seconds);

/* Trials of whether two PUs share a cache, and what is made of them.
 *
 * A trial is the ratio of the time of a working set together to that alone. It says nothing where
 * already the set alone did not stay in the cache, because another program at work took its place:
 * together cannot be much slower than that, and a shared cache would look private. Such a trial is
 * void: it is taken again, up to SHARING_VOIDS times a pair.
 */

enum { SHARING_TRIALS = 5, SHARING_VOIDS = 5 };

#define PROBE_SHARING_RATIO 2.0 /* the threshold of the 2010 paper */

/* The threshold, where a pair that shares the cache is expected to take so much longer together. */
double probe_sharing_threshold(double expected);

/* Decides from the ratios of one pair (sorts them). */
enum probe_sharing_verdict { SHARING_NO, SHARING_UNCERTAIN, SHARING_YES };
enum probe_sharing_verdict probe_sharing_decide(double *ratios, size_t count, double threshold);
enum probe_sharing_verdict probe_sharing_verdict_of(double decisive, double threshold);
/* The second smallest (sorts them); 0 of fewer than two. */
double probe_sharing_decisive(double *ratios, size_t count);
/* As far above the threshold as the later paper's ratio is below it. */
bool probe_sharing_is_clear(double decisive, double threshold);
bool probe_sharing_is_doubtful(double decisive, double threshold);

/* Two thirds of the cache, in whole nodes of the cycle, or `most` if that is less. */
size_t probe_sharing_set_bytes(const struct probe_cache_level *cache, size_t most);

/* How one level is tried. */
struct sharing_bar {
    size_t bytes;     /* working set of a PU */
    double threshold; /* of the ratio */
    /* seconds of a load alone from which on a trial is void; INFINITY: not known */
    double alone_most;
};

/* `bytes` is the set's size. */
struct sharing_bar probe_sharing_bar_of(const struct probe_cache *caches, size_t level,
                                        size_t bytes);

/* Of one pair. */
struct sharing_trials {
    double ratios[SHARING_TRIALS]; /* of those that count */
    size_t count, low, voids;
    double seconds; /* of all trials, void ones too: of each alone, and of the slower together */
};

/* Says the trials nothing? */
bool probe_sharing_is_void(const struct sharing_trials *trials);
/* Tries all pairs at the same time, each until it is decided. 0 or the machine's -errno. */
int probe_sharing_try(struct probe *probe, const struct sharing_bar *bar,
                      const struct pair_position *pairs, size_t count,
                      struct sharing_trials *trials);

/* -- sharing -- */

/* What is declared of who shares a measured cache level: for pairs of which a measurement says
 * nothing. */

enum sharing_declaration { NOTHING_DECLARED, DECLARED_PRIVATE, DECLARED_SHARED };

/* Which PUs share a cache level (2010 paper, Section III-B).
 *
 * Two PUs traverse 2/3 of the cache each; if it is one cache, both sets do not fit and at least one
 * of them slows down. Modern shared caches are winner-takes-all (one thread keeps its set, the
 * other loses everything), so the slower of the two counts. Disturbance only slows down, so a pair
 * is called sharing when the second smallest of five ratios, each of a run together against a run
 * alone beside it in time, exceeds a threshold: 2, the papers' ratio, where the next outer level is
 * slow enough for that. Two sets of 2/3 in one cache are as one of 4/3, whose time is on the
 * latency curve: where it is less than four times that of 2/3 (an L2 of efficiency cores before a
 * near L3), the threshold is in the middle between that ratio and 1, at least the later paper's
 * 1.5. Down to 3/4 of it we say "uncertain".
 *
 * Sharing nests, so only pairs that share the next outer level are asked about an inner one; of
 * pairs alike in the topology a sample is measured (schedule.c). It is an equivalence, too: pairs
 * that contradict that are asked again, and where nothing says which are alike, only as many are as
 * tell the others (equivalence.c).
 *
 * Where the decisive ratio lies near the threshold (1.5 to 2.67 about 2, as far above as below),
 * and where pairs contradict the equivalence also when asked again, a second witness is heard: the
 * latency of one cache line between the two, against that of pairs of the same level that the ratio
 * is sure of (sharing_trials.c). With an opinion it decides; on contradicting pairs only if that
 * ends the contradiction. How often it did is counted.
 */

struct probe_sharing_level {
    struct profile_relation sharing; /* owned */
    /* the ratio that decided, of pairs whose trials say something (2010 paper, Figure 8). Owned */
    struct profile_pair_figure *ratios;
    size_t ratio_count;
    uint32_t repetitions;
    double spread;        /* largest of the pairs' */
    uint32_t uncertain;   /* pairs whose ratio lay just below the threshold, and on which no witness
                             was of use */
    uint32_t witnessed;   /* pairs that the latency of a line decided */
    uint32_t tipped;      /* of those: against what the ratio alone would have said */
    uint32_t as_declared; /* pairs of which no trial says anything, taken as declared
                             (sharing_trials.c) */
    uint32_t unknown;     /* such pairs of which nothing is declared, and no witness was of use */
    size_t measured, pairs; /* pairs measured, of those that might share it */
    size_t at_once;         /* pairs measured at the same time, at most */
    bool cut_short;         /* by the budget */
    bool by_messages;       /* pairs are alike that way, not by the topology */
    bool searched;          /* answers of other pairs told some: who shares it is an equivalence */
    size_t limited_bytes;  /* working set of a PU, if the memory limit made it less than two thirds;
                              0: it did not */
    size_t contradictions; /* pairs that share it without their common partners doing so, also when
                              asked again */
};

struct probe_sharing {
    struct probe_sharing_level levels[CACHE_LEVELS_MAX]; /* as in the cache result */
    size_t count;
};

int probe_sharing(struct probe *probe, const struct probe_cache *caches, struct probe_sharing *out,
                  struct servet_error *error);
void probe_sharing_free(struct probe_sharing *result);

#endif
