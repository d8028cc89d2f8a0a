/* What the files of probes/cache/ promise one another and the rest of the room. */
#ifndef SERVET_PROBES_CACHE_CACHE_H
#define SERVET_PROBES_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/probe.h"

/* -- model -- */

/* How large a share of the loads of a repeated cycle misses a cache: the shapes that a measured
 * curve is made of.
 *
 * A cycle of `bytes` is visited over and over, every line once in each turn. What counts is how
 * many of its lines, X, fall into one set of K ways, and what the replacement policy makes of X
 * lines in K ways. Where pages (or a hash over slices) put lines into sets at random, X follows
 * B(NP, K * PS / C) (2010 paper, Section III-A2); seen from one *access* it is size-biased, that is
 * 1 + B(NP - 1, K * PS / C), which the paper's P(X > K) leaves out.
 */

struct cache_curve;

enum cache_policy {
    CACHE_LRU,    /* all X lines miss once X > K */
    CACHE_PLRU,   /* a tree of bits (ways a power of two) or one reference bit per way */
    CACHE_LEAKY,  /* something between LRU and random */
    CACHE_RANDOM, /* a random way is evicted */
    CACHE_AGED, /* four ages per line: a line comes in at age 1, a hit makes it 0, the first of age
                   3 is evicted, and when none is left all others age (Intel's quad-age LRU,
                   QLRU_H00_M1_R0_U1 in the naming of Abel and Reineke, nanoBench, ISPASS 2020) */
    CACHE_ADAPTIVE, /* resists thrashing: keeps nearly K of the X lines whatever happens (DRRIP) */
    CACHE_POLICIES,
};

struct cache_shape {
    uint64_t bytes;
    uint32_t ways;
    enum cache_policy policy;
    bool scattered;  /* lines fall into sets at random: pages at random places, or a hash */
    uint32_t slices; /* > 1, then `scattered` does not count: lines side by side, of which a hash
                        gives each to one of so many slices. A set's share of lines is B(NP, 1 /
                        slices): narrower than that of random pages */
    uint64_t behind_bytes; /* > 0: the cache holds what a level of so many bytes evicted, and not
                              what that one holds */
};

/* What it takes to believe in a policy (0: LRU and pseudo-LRU); to be weighed together with a
 * size's. */
double probe_cache_policy_prior(enum cache_policy policy);

/* Misses per access, in [0, 1], of a cycle through `working_set` bytes; `page_bytes` is the
 * contiguous piece. Of a cache of victims the level before holds the lines visited last; a set has
 * the fewer to hold. */
double probe_cache_miss_share(const struct cache_shape *shape, uint64_t working_set,
                              size_t page_bytes);

/* Misses per visit, in [0, 1], of one set in which `lines` (a whole number) are visited over and
 * over in the same order. */
double probe_cache_set_miss(enum cache_policy policy, uint32_t ways, double lines);

/* The same of a cache that holds what the level before it evicted; that one holds a share `held` of
 * the working set, the lines visited last. CACHE_PLRU and CACHE_RANDOM. */
double probe_cache_set_victims_miss(enum cache_policy policy, uint32_t ways, double lines,
                                    double held);

/* P(1 + X > K), X ~ B(pages - 1, K * PS / CS): the share of pages whose set is too full, by which
 * --method paper predicts misses (Section III-A2). A page shares its set with X others: seen from
 * the page that is loaded, X + 1 are there. With the X of the formula as printed, that of a set
 * which nobody asked for, sizes come out a part in K too small, and not as the paper has them. */
double probe_cache_page_conflicts(uint64_t pages, uint32_t ways, size_t page_bytes,
                                  uint64_t cache_bytes);

/* Sizes that are tried, with what it takes to believe in them (0: power of two). */
struct cache_size {
    uint64_t bytes;
    double prior;
};
extern const double probe_cache_free_prior; /* of large sizes without a meaning of their own */
/* Ascending sizes from 4 KiB to 512 MiB. The array is static; *count is set. */
const struct cache_size *probe_cache_sizes(size_t *count);

/* The samples of a latency curve, and what of them counts. */

enum { CACHE_STEPS_PER_OCTAVE = 8 }; /* of the even grid */

enum { CACHE_POINTS_MAX = 256, CACHE_PLACES_MAX = 24, CACHE_REPEATS_MAX = 12 };

struct cache_point {
    double bytes;  /* working set */
    uint64_t seed; /* of its first place in memory; the others follow */
    bool between;  /* not of the even grid: measured around a knee */
    double seconds[CACHE_PLACES_MAX][CACHE_REPEATS_MAX]; /* by place in memory */
    uint8_t repeats[CACHE_PLACES_MAX];
};

struct cache_samples {
    struct cache_point points[CACHE_POINTS_MAX]; /* ascending sizes */
    size_t count;
    uint64_t seed;
};

/* Puts a point without samples in its place. False: it is there, or there is no room. */
bool probe_cache_samples_add(struct cache_samples *samples, double bytes, bool between);

/* One more sample at a place; what is too much is left out. */
void probe_cache_point_put(struct cache_point *point, size_t place, double seconds);

/* The curve of the even grid, or of all points: for each the mean of the samples that count, made
 * non-decreasing. Its other fields are 0. Owned: probe_cache_curve_free(). 0 or -ENOMEM. */
int probe_cache_samples_curve(struct cache_samples *samples, bool all, struct cache_curve *out);
void probe_cache_curve_free(struct cache_curve *curve);

/* The spread of the samples at the point nearest to `bytes`. */
double probe_cache_samples_spread(struct cache_samples *samples, double bytes);

/* -- fit -- */

/* Regressions: least squares with coefficients >= 0 over a few columns, from their products, and
 * the isotonic one. */

/* The constant, four levels, two TLBs that were measured and two that were not. */
#define CACHE_COLUMNS_MAX 9

double probe_cache_dot(const double *a, const double *b, size_t count);

/* gram[i][j] = column i * column j, right[i] = column i * right side, total = right side squared;
 * the first n count. The coefficients go to `x`. Not always the exact optimum, but columns of
 * misses are all non-negative and rising, for which it is. Returns the residual sum of squares. */
double probe_cache_solve_positive(const double gram[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX],
                                  const double *right, double total, size_t n, double *x);

/* Makes `values` non-decreasing: the isotonic regression (pool adjacent violators) of their
 * logarithms, by `weights` (NULL: all alike). */
void probe_cache_isotonic(double *values, const double *weights, size_t count);

/* Cache levels out of a latency curve.
 *
 * The curve is fitted, with relative errors, by  y(S) = base + sum_i rise_i * miss_i(S), rises >=
 * 0, where miss_i is one of the shapes of model.h, and a point counts the less the less sure
 * it is. Levels are added greedily as long as each pays for itself, and every level is then tried
 * at every other size, number of ways, policy and page mapping until nothing improves; so that a
 * first choice does not stand in the way of a better whole, a level that does not pay for itself is
 * tried together with the moves that it allows, every level at its next best size, one level in
 * place of two and two in place of one. Sizes are weighed by how often caches of that size are
 * built, which decides only between sizes the curve cannot tell apart. The last of three levels or
 * more is then looked at again, in the shapes of
 * caches that many share (last.c).
 */

#define CACHE_LEVELS_MAX 4

/* Latency by working set size; ascending sizes. */
struct cache_curve {
    double *bytes;
    double *seconds;
    double *error_s;       /* what each may be off, beside what holds for all; NULL: nothing */
    double *spread;        /* relative, of the samples of each; < 0: not known; NULL: of none */
    uint32_t *repetitions; /* samples of each; NULL: one of each */
    size_t count;
    size_t page_bytes;         /* the contiguous piece of memory */
    double tlb_reach_bytes[2]; /* known reaches of TLB levels: they bend the curve, too */
    double tlb_seconds[2];     /* what a miss of each costs; 0: not known */
    size_t tlb_count;
    double tlb_looked_bytes; /* up to which reach others were looked for; 0: they were not */
    bool quick;              /* leave out that second look, most of the time that a fit takes */
    /* the same curve with more points around the last knee, for the second look at the last level
     * (last.c); NULL: this one is all there is */
    const struct cache_curve *fine;
};

struct cache_level_fit {
    struct cache_shape shape;
    double seconds; /* of a load that misses all levels before this one and hits here */
    double rise;    /* latency beyond this level / latency in it */
    uint64_t low_bytes, high_bytes; /* sizes that explain the curve about as well */
};

/* 0 and the levels (ascending; at most CACHE_LEVELS_MAX), or -EINVAL (fewer than eight points),
 * -ENOMEM. `beyond_s` (may be NULL): the latency beyond the last level. */
int probe_cache_fit(const struct cache_curve *curve,
                    struct cache_level_fit levels[CACHE_LEVELS_MAX], size_t *count,
                    double *beyond_s);

/* -- candidates -- */

/* What a latency curve may be made of: every cache of the catalogue in every shape, and TLBs, as
 * weighted columns of least squares (see fit.c). */

extern const double probe_cache_relative_floor; /* errors below 2 % of a latency are no evidence */

/* What a rise of the curve may come from: a cache, or a TLB (then `reach_bytes` is not 0). */
struct cache_candidate {
    struct cache_shape shape;
    double reach_bytes; /* of a TLB; 0: a cache */
    double miss_s;      /* of a TLB that was measured: what a miss costs; 0: not known */
    double price;
    double size_price; /* what of it is the size's: not counted where a range is told */
    double *column;    /* miss share * weight, by point */
};

struct cache_terms {
    size_t points; /* of the curve, and one for what each TLB that was measured costs */
    uint64_t near[CACHE_LEVELS_MAX]; /* only sizes near one of these are candidates */
    size_t near_count;               /* 0: all sizes are */
    double count;                    /* of the points, by what they count */
    double *base;  /* the constant's column: a point's weight, 1 / its error in units of
                      `relative_floor`; 0 of what a TLB costs */
    double *right; /* latency * weight */
    double total;  /* sum of the squares of `right` */
    struct cache_candidate *candidates;
    size_t candidate_count;
    size_t known; /* the first candidates: TLBs that were measured, part of every solution */
    double *columns;
};

/* What a point counts: the steps of the even grid that it stands for, at most one. What a shape is
 * off, it is off all along a knee, so that points that lie closer together are not so many more. */
double probe_cache_point_share(const struct cache_curve *curve, size_t i);

/* 0 or -ENOMEM; `near` is set before, all else 0. To be freed either way. */
int probe_cache_candidates_make(struct cache_terms *fit, const struct cache_curve *curve);
/* Misses per access, in [0, 1], of a cycle through so many bytes; `page_bytes` is the contiguous
 * piece. */
double probe_cache_candidate_miss_share(const struct cache_candidate *candidate, double bytes,
                                        size_t page_bytes);
void probe_cache_candidates_free(struct cache_terms *fit);

/* -- last -- */

/* A second look at the last level: shapes that only large shared caches have.
 *
 * The search of fit.c knows caches whose lines fall into sets side by side or by random
 * pages. The last level of most processors is hashed over slices, or holds the victims of the level
 * before it: shapes that depend on more than the catalogue lists. Beside the other terms, which
 * stay, the last level is tried in every shape whose sets, ways and slices give a size near the one
 * that was found.
 */

struct cache_last {
    const struct cache_curve *curve;
    const double *fixed[CACHE_COLUMNS_MAX]; /* the terms that stay, by point: the constant first,
                                               then miss shares */
    size_t fixed_count;
    uint64_t found_bytes;  /* the level's size so far */
    uint64_t joined_bytes; /* the larger of two levels that may be this one; 0: it is one */
    uint64_t before_bytes; /* the level before it */
    double earlier_bytes;  /* points of smaller working sets say little of this level; 0: to be
                              told from the two sizes */
    double later_bytes;    /* nor do points of larger ones; 0: there is no later level */
    double margin; /* of the objective, for the sizes that explain the curve about as well */
};

struct cache_last_found {
    struct cache_shape shape;
    double coefficients[CACHE_COLUMNS_MAX]; /* of the terms that stay, then of the last level */
    double objective; /* the less the better; to be compared where `earlier_bytes` is the same */
    uint64_t low_bytes, high_bytes;
};

/* False: no memory, or the level is too small to be one of these; then `out` is not set. */
bool probe_cache_last_refine(const struct cache_last *last, struct cache_last_found *out);

/* -- what the search for levels (fit.c) and what is told of them (told.c) have in common -- */

#define CACHE_TERMS_MAX (CACHE_COLUMNS_MAX - 1) /* beside the constant */

/* The curve as a sum of candidates: TLBs that were measured, then what was found. */
struct cache_solution {
    size_t terms[CACHE_TERMS_MAX]; /* candidate numbers */
    size_t count;
    double coefficients[CACHE_COLUMNS_MAX]; /* base, then rises, in seconds */
    double objective;                       /* the less the better */
};

/* The relative error below which nothing is evidence. */
double probe_cache_floor_of(const struct cache_terms *fit);

typedef void cache_visit(const struct cache_candidate *candidate, double objective, void *argument);

/* Tries every candidate at `position` of the solution (== count: one more level). True when
 * something better than what `solution` holds was found; then it holds that. `visit` (may be NULL)
 * sees every objective. */
bool probe_cache_best_at(const struct cache_terms *fit, struct cache_solution *solution,
                         size_t position, cache_visit *visit, void *argument);

/* Coefficients and objective of the terms as they stand. */
void probe_cache_solve_terms(const struct cache_terms *fit, struct cache_solution *solution);

/* The levels of a solution, ascending (at most CACHE_LEVELS_MAX), and how many; `beyond_s` (may be
 * NULL): the latency beyond the last, in seconds. `solution` is what is told afterwards. */
size_t probe_cache_tell(const struct cache_terms *fit, const struct cache_curve *curve,
                        struct cache_solution *solution, struct cache_level_fit *levels,
                        double *beyond_s);

/* -- line -- */

/* The geometry of the first level cache: line size, ways and size of a way, without looking at a
 * declared figure.
 *
 * ways  A cycle of k lines that lie s bytes apart stays in the cache as long as no set gets more
 * lines than it has ways. The largest such k halves from stride to stride until s is the size of a
 * way (sets * line); from there on it is the number of ways. Whatever disturbs takes ways away, so
 * the largest of several trials counts, and ways that do not make up the size are not told.
 *
 * line  In a working set 4/3 as large as the cache lines miss. Nodes closer together than a line
 * share one, so the latency rises with their distance until that is the line size.
 */

/* What is known of the first level from its latency curve. */
struct probe_line_level {
    uint64_t bytes;
    double seconds;                 /* of a hit */
    double miss_seconds;            /* of a hit in the level behind it */
    uint32_t declared_line_bytes;   /* 0: not known */
    uint64_t low_bytes, high_bytes; /* sizes that explain the curve about as well; 0: no others */
};

struct probe_line {
    uint32_t line_bytes; /* 0: not to be told */
    uint32_t ways;       /* 0: not to be told; then way_bytes is 0, too */
    uint64_t way_bytes;  /* times the ways: the level's size, or where all strides say so another
                            that the curve leaves room for, or up to twice as much */
};

/* A figure that cannot be told is 0; that is no error. */
int probe_line(struct probe *probe, uint32_t pu, const struct probe_line_level *level,
               struct probe_line *out, struct servet_error *error);

/* Latencies by distance of the nodes (ascending, doubling). */
struct probe_line_curve {
    const uint32_t *distances; /* bytes */
    const double *seconds;
    size_t count;
};

/* The line size of the first level before its size is known: the declared one, or where none is
 * declared what the first working set that does not fit tells. 0 in `line_bytes` where that tells
 * nothing. */
int probe_line_first(const struct probe *probe, uint32_t pu, uint32_t *line_bytes);

/* Line size out of latencies; 0 where they reach no plateau before the last two. The declared one
 * (0: not known) where it is next to that and the latencies hardly tell the two apart. */
uint32_t probe_line_infer(const struct probe_line_curve *curve, double hit_s, uint32_t declared);

/* Ways and size of a way out of the largest k by stride (ascending, doubling); both 0 where k goes
 * on halving. */
void probe_line_ways(const uint64_t *strides, const uint32_t *largest, size_t count, uint32_t *ways,
                     uint64_t *way_bytes);

/* -- tlb -- */

/* How much memory the TLB levels reach.
 *
 * One line in each page is visited in random order, the line within the page moving on so that the
 * lines fill the caches evenly; the same number of lines side by side is the reference. What the
 * first takes longer is address translation. The reach is given in bytes: it is what bends a
 * latency curve on memory of the same kind, whatever the size of the pages behind it (in a guest,
 * huge pages may be backed by small ones).
 */

#define TLB_LEVELS_MAX 2

struct probe_tlb {
    struct {
        uint64_t reach_bytes;
        double seconds; /* that a miss adds */
        double spread; /* of the reach between passes, each looked at alone; < 0: seen in fewer than
                          two */
    } levels[TLB_LEVELS_MAX]; /* smallest reach first */
    size_t count;
    double looked_bytes;  /* reaches up to here would have been seen */
    uint32_t repetitions; /* passes of which the least times were taken */
};

/* Knees of the extra time by number of pages: reaches as numbers of pages, smallest first. Returns
 * how many. */
size_t probe_tlb_infer(const double *pages, const double *extra_s, const double *reference_s,
                       size_t count, double reach_pages[TLB_LEVELS_MAX],
                       double seconds[TLB_LEVELS_MAX]);

#define TLB_POINTS_MAX 89 /* 11 octaves */
#define TLB_PASSES_MAX 8

/* Times of all passes so far, by pass and number of pages. All but the line zero before the first
 * pass. */
struct probe_tlb_times {
    uint32_t line_bytes; /* of the first level; 0: not known, then it is the usual one */
    double pages[TLB_POINTS_MAX];
    double spread_s[TLB_PASSES_MAX][TLB_POINTS_MAX], reference_s[TLB_PASSES_MAX][TLB_POINTS_MAX];
    size_t count; /* of points that every pass has */
    uint32_t passes;
};

/* Goes once through all numbers of pages. A busy neighbour only ever makes a TLB look smaller, for
 * a second or so at a time: call it several times, with other measurements between. 0 or what
 * probe_machine_traverse() returns; -ENOSPC after TLB_PASSES_MAX. */
int probe_tlb_pass(struct probe *probe, uint32_t pu, enum machine_pages pages,
                   struct probe_tlb_times *times, struct servet_error *error);

/* What a load takes longer where so many bytes are visited a line in each page, on pages as the
 * curve's. */
int probe_tlb_extra(struct probe *probe, uint32_t pu, size_t bytes, uint32_t line_bytes,
                    double *seconds);

/* Out of the least times of all passes. */
void probe_tlb_conclude(const struct probe *probe, const struct probe_tlb_times *times,
                        struct probe_tlb *out);

/* -- probe -- */

/* Cache levels and effective sizes of one PU (2010 paper, Section III-A; the method is ours, see
 * fit.c).
 *
 * The latency of a random cycle is measured on a grid of eight sizes an octave, from 4 KiB until
 * well beyond the last knee, in several sweeps that lie apart in time and go to the same places in
 * memory. Around the knees that a first fit gives, further samples are taken within a few seconds,
 * at other places and at sizes in between as well; then the levels are fitted again. What disturbs
 * a measurement (a neighbour in the L3, a busy sibling) only ever makes caches look smaller and
 * slower, so the slowest samples of a place are dropped (samples.c).
 *
 * Where there is a deadline, every other size is measured first, and then as many sweeps of all as
 * there is time for; what comes after them is left out when it is past. The least that a curve
 * takes is that first look.
 */

struct probe_cache_level {
    uint64_t size_bytes;            /* effective */
    uint64_t low_bytes, high_bytes; /* sizes that explain the measurement about as well; both 0:
                                       the paper's method does not tell them */
    uint64_t alone_bytes; /* what the curve alone tells, where a declared size in the interval is
                             told instead; 0: `size_bytes` */
    enum cache_policy policy; /* of the shape that explains the curve best */
    uint32_t ways;            /* measured; 0: not known */
    uint64_t way_bytes;       /* sets * line, measured; 0: not known */
    const char *ways_unknown; /* why they are not known, if it was tried; static text or NULL */
    uint32_t line_bytes;      /* measured; 0: not known */
    double seconds;           /* latency of a load that hits in this level */
    uint32_t repetitions;
    double spread; /* of the latency around the knee between sweeps; < 0: not known */
};

struct probe_cache {
    struct probe_cache_level levels[CACHE_LEVELS_MAX]; /* L1 first */
    size_t count;
    size_t page_bytes; /* of the memory that the sizes and `tlb` were measured in: huge pages where
                          they are to be had */
    struct probe_tlb tlb;          /* part of the fit: reaches bend the curve */
    struct probe_tlb ordinary_tlb; /* on ordinary pages, if `tlb` is not */
    double memory_seconds;         /* latency beyond the last level */
    uint64_t largest_bytes;        /* working set that was measured */
    bool cut_short;                /* by the memory limit */
    bool shortened;           /* by the budget: fewer sweeps than usual, or something left out */
    uint32_t sweeps, coarse;  /* how often all sizes were measured, and every other size alone */
    struct cache_curve curve; /* what was measured (mean of the undisturbed samples). Owned */
};

int probe_cache(struct probe *probe, uint32_t pu, struct probe_cache *out,
                struct servet_error *error);
/* What the curve is measured in. */
enum machine_pages probe_cache_pages(const struct machine *machine);
/* One point of the curve: a working set in memory of its own, once. 0 or the machine's -errno. */
int probe_cache_point(struct probe *probe, uint32_t pu, size_t bytes, double *seconds);
void probe_cache_free(struct probe_cache *result);

/* Where the curve ends by what is declared, or by the user's limit, in bytes; `cut_short`: memory
 * does not allow it. */
size_t probe_cache_end(const struct probe *probe, bool *cut_short);
/* What disturbs only slows down: of so many samples of each working set the fastest. */
enum { CACHE_FAR_LOOKS = 3 };
/* Seconds that a first look has however late it is, or there would be nothing to infer from. */
#define CACHE_LOOK_LEAST_S 2.5

/* The working set that tells whether a curve that ends there should go on; 0: there is none. */
size_t probe_cache_far(const struct probe *probe, size_t end);
struct cache_far {
    size_t end, far;     /* bytes */
    uint32_t line_bytes; /* of the first level; 0: not known */
};
/* Does a load take so much longer far out than at the end that memory's plateau is not in sight,
 * beside what translation takes? 0 or the machine's -errno. */
int probe_cache_goes_on(const struct probe *probe, uint32_t pu, const struct cache_far *far,
                        bool *goes_on);

/* What the system declares; NULL: nothing. */
const struct profile_class *probe_cache_declared(const struct machine *machine);

/* The declared cache of the PU that a size comes next to; NULL: none. */
const struct profile_cache *probe_cache_declared_near(const struct machine *machine, uint32_t pu,
                                                      uint64_t bytes);

/* Of the first two levels, the size that the system declares for the PU where it lies in the
 * level's interval: sizes in there explain the curve about as well, and between these what is
 * declared is evidence of its own. A declared size that the curve speaks against changes nothing,
 * nor does that of a level further out, of which neighbours leave what they leave. */
void probe_cache_prefer_declared(struct probe_cache *caches, const struct profile_class *declared,
                                 uint32_t pu);

/* Which declared cache each level is taken for, and which number the profile gives it. */
struct probe_cache_pairing {
    const struct profile_cache *declared[CACHE_LEVELS_MAX]; /* NULL: none */
    bool equal[CACHE_LEVELS_MAX];       /* the level's interval holds what is declared */
    uint32_t numbers[CACHE_LEVELS_MAX]; /* ascending; the declared one's where that is free */
};

/* A level is taken for the declared cache (of that PU; NULL: of any) that it equals, whatever lies
 * before it, and otherwise for the next in size of those that are left between. `declared` may be
 * NULL. */
void probe_cache_pair(const struct probe_cache *caches, const struct profile_class *declared,
                      const uint32_t *pu, struct probe_cache_pairing *out);

/* Leaves out a level between two that equal declared ones of which one follows on the other: there
 * is no room for it. The curve bends there for another reason (a TLB; neighbours in the cache
 * behind it): on a virtual Zen 4, once in 26 idle runs, at 4 MiB between 1 and 32. */
void probe_cache_leave_out_between(struct probe_cache *caches, const struct profile_class *declared,
                                   uint32_t pu);

/* What belongs to cache levels whose sizes and latencies are known: line size, ways, and the TLB of
 * ordinary pages. */

/* Line size of the first level, ways of the first two; what is not told has its reason. What the
 * ways of the first make up is its size; where that is more than the curve gave, what it gave up to
 * there is no level. 0 or the machine's -errno. */
int probe_cache_geometry(struct probe *probe, uint32_t pu, struct probe_cache *out,
                         struct servet_error *error);

/* What the cache sizes were measured in has its TLB measured already; where that was huge pages,
 * programs may not have them. So many passes, or fewer when late. 0 or the machine's -errno. */
int probe_cache_ordinary_tlb(struct probe *probe, uint32_t pu, int passes, struct probe_cache *out,
                             struct servet_error *error);

/* -- paper -- */

/* The cache benchmark as the 2010 paper gives it (Section III-A, Figures 1, 3 and 4), for --method
 * paper.
 *
 * mcalibrator's loads, 1 KiB apart, on sizes that double up to 2 MiB and grow by 1 MiB from there;
 * the L1 is the first peak of the gradients; a later peak of a single size is a level of that size
 * (page colouring); a wider one, and a rise up to the largest size, is a level whose size the
 * binomial model of random pages gives. Kept as a comparison: where a prefetcher follows the
 * stride, or sizes lie between powers of two, it is wrong, and the paper says so itself of the
 * latter.
 *
 * What the paper leaves open: MIN_CACHE is 4 KiB, MAX_CACHE 64 MiB or twice the largest declared
 * cache; one pass warms up what the paper's filling of the array does. A gradient counts as larger
 * than 1 from 1.05 on; the first peak is the first local maximum from 1.2 on, and ends where the
 * gradients rise again; from there on gradients larger than 1 side by side are one peak if one of
 * them is 1.2 or more. Hit time and miss overhead are of the points around the peak, the one before
 * it included. Tentative sizes are the powers of two from 64 KiB and the multiples of 1 MiB up to
 * twice the last of those points, with 1, 2, 4, 6, 8, 10, 11, 12, 16, 18, 20 and 24 ways; of
 * several modes that of the least divergence counts.
 */

int probe_cache_paper(struct probe *probe, uint32_t pu, struct probe_cache *out,
                      struct servet_error *error);

/* Figure 4 on a curve that is there already: sizes of the levels found. Returns how many. */
size_t probe_cache_paper_infer(const struct cache_curve *curve, uint64_t sizes[CACHE_LEVELS_MAX]);

/* -- ways -- */

/* The ways of the second level cache, without knowing where its memory lies physically and without
 * looking at a declared figure.
 *
 * Lines at the same place of many pages share one set of the first level, and as many sets of the
 * second as its ways are pages large; which pages meet in a set is not known (random page frames,
 * guests, hashes). So it is found out: of more lines than the cache holds at that place, piece by
 * piece is taken away as long as some still miss (group testing for minimal eviction sets: Vila,
 * Koepf, Morales, "Theory and Practice of Finding Eviction Sets", IEEE S&P 2019). Some lines that
 * miss nothing are visited with them all the time, so that the first level, whatever it evicts,
 * holds none, or, where it evicts at random, no more than is allowed for. What is left are the
 * lines of one set, one more than it has ways: one of them less, and all hit, by whatever policy.
 * Then groups of other lines are visited with one less than conflict: how many of the groups
 * conflict tells how many sets there are. Ways by sets is the size.
 *
 * A figure is given only where most of several tries, each in other memory, agree. Where the index
 * is a hash of further bits, no place of a page belongs to few sets, and nothing is told (Zen 4:
 * 1,024 lines at one place of as many pages stay in 1 MiB).
 */

/* What is known of the level from the latency curve, and of the first level. */
struct probe_ways_level {
    uint64_t bytes;
    double first_seconds, seconds,
        miss_seconds;         /* of a hit in the first level, in this one, in the one behind it */
    uint32_t first_ways;      /* of the first level; 0: not known */
    uint64_t first_way_bytes; /* sets * line; 0: not known */
};

struct probe_ways {
    uint32_t ways;      /* 0: not to be told; then way_bytes is 0, too, and `reason` says why */
    uint64_t way_bytes; /* size / ways */
    const char *reason; /* static text or NULL */
    /* lines that conflict while one less does not, by most tries, whatever the size is; 0: they
       do not agree. One more than the ways */
    uint32_t conflicting;
    uint64_t bytes; /* one less, times the size of a way by the sets that there are; 0: not sure */
};

/* A figure that cannot be told is 0; that is no error. */
int probe_ways(struct probe *probe, uint32_t pu, const struct probe_ways_level *level,
               struct probe_ways *out, struct servet_error *error);

/* Gives the second level the size that the conflicting lines tell. All sizes of its interval
 * explain the curve about as well, and the number of lines is evidence of its own: one less is the
 * ways, and of those times a power of two an interval seldom holds more than one. Where a wide one
 * holds none, the size is what the lines and their sets make, if that is sure. A size that is
 * `declared` stays if it agrees with somewhat fewer ways. */
void probe_cache_settle_second(struct probe_cache *caches, const struct probe_ways *found,
                               bool declared);

/* The number of ways that `conflicting` lines stand for, which conflict while one less does not:
 * one less, or somewhat fewer where a policy keeps a line too many for a while; the size must be
 * ways of a power of two bytes. 0: none. */
uint32_t probe_ways_of(size_t conflicting, uint64_t bytes);

#endif
