/* The search for levels in a latency curve, and where a cache size is decided. Greedy, because the
 * columns (shape by size by ways by policy) are thousands and exact subset search is not to be
 * had; with detours, because greedy alone lets a wrong first level stand (search(),
 * exchange_sizes()). The objective is n log(squared relative error) with a price for each level,
 * what it takes to believe in a size, and a floor of 2 %: models of replacement are no better. To
 * see it: `accuracy --list --method default MACHINE.json` (benchmarks/probes). */
#include "probes/cache/cache.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

double probe_cache_dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* Solves the n x n symmetric system over the columns in `use` (Gaussian elimination; the diagonal
 * is made a little heavier, since two shapes may be all but equal). */
static void solve(const double gram[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX], const double *right,
                  const bool *use, size_t n, double *x)
{
    double a[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX + 1];
    size_t at[CACHE_COLUMNS_MAX], m = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = 0;
        if (use[i]) {
            at[m++] = i;
        }
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < m; j++) {
            a[i][j] = gram[at[i]][at[j]] * (i == j ? 1 + 1e-9 : 1);
        }
        a[i][m] = right[at[i]];
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t k = i + 1; k < m; k++) {
            double factor = a[i][i] > 0 ? a[k][i] / a[i][i] : 0;
            for (size_t j = i; j <= m; j++) {
                a[k][j] -= factor * a[i][j];
            }
        }
    }
    for (size_t i = m; i-- > 0;) {
        double sum = a[i][m];
        for (size_t j = i + 1; j < m; j++) {
            sum -= a[i][j] * x[at[j]];
        }
        x[at[i]] = a[i][i] > 0 ? sum / a[i][i] : 0;
    }
}

/* The most negative coefficient is left out until none is. */
double probe_cache_solve_positive(const double gram[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX],
                                  const double *right, double total, size_t n, double *x)
{
    bool use[CACHE_COLUMNS_MAX];
    memset(use, 1, sizeof use);
    for (;;) {
        size_t worst = n;
        solve(gram, right, use, n, x);
        for (size_t i = 0; i < n; i++) {
            if (x[i] < 0 && (worst == n || x[i] < x[worst])) {
                worst = i;
            }
        }
        if (worst == n) {
            break;
        }
        use[worst] = false;
    }
    double rss = total;
    for (size_t i = 0; i < n; i++) {
        rss -= x[i] * right[i];
    }
    return rss > 0 ? rss : 0;
}

void probe_cache_isotonic(double *values, const double *weights, size_t count)
{
    double *mean = malloc(count * sizeof *mean), *weight = malloc(count * sizeof *weight);
    size_t *size = malloc(count * sizeof *size), blocks = 0;
    if (mean && weight && size) {
        for (size_t i = 0; i < count; i++) {
            mean[blocks] = log(values[i]);
            weight[blocks] = weights ? weights[i] : 1;
            size[blocks++] = 1;
            while (blocks > 1 && mean[blocks - 2] > mean[blocks - 1]) {
                double all = weight[blocks - 2] + weight[blocks - 1];
                mean[blocks - 2] = (mean[blocks - 2] * weight[blocks - 2] +
                                    mean[blocks - 1] * weight[blocks - 1]) /
                                   all;
                weight[blocks - 2] = all;
                size[blocks - 2] += size[blocks - 1];
                blocks--;
            }
        }
        for (size_t b = 0, i = 0; b < blocks; b++) {
            for (size_t j = 0; j < size[b]; j++) {
                values[i++] = exp(mean[b]);
            }
        }
    }
    free(mean);
    free(weight);
    free(size);
}

/* Chosen on measured and simulated curves: */
static const double level_price = 8; /* what one more level must gain */
static const double rival_margin =
    16; /* sizes within this of the best objective may do better with others */
static const double detour_gain = 24;   /* the same if it gains only once all levels have moved */
static const double least_rise = 1.25;  /* a smaller step in latency is not a level */
static const double least_distance = 2; /* between the sizes of two levels */
static const size_t refined_levels = 3; /* of fewer levels the last is hardly a shared cache */
static const double alternative_margin =
    12; /* sizes within this of the best objective, how often they are built aside, are its range */

/* The same of the last level. Its shapes are off by more than what samples scatter by, and what a
 * shape is off, it is off at neighbouring points alike: two points say as much as one. */
static const double last_margin = 24;
/* Two last levels may be one where the second is at most so many times larger. */
static const double joined_up_to = 4;

static const double least_tlb_distance = 4; /* between the entries of two TLB levels */
static const double mistaken_up_to =
    1.25; /* times what a miss of a TLB costs: such a rise may be the TLB's */
static const double near_reach_low = 0.7,
                    near_reach_high = 2.8; /* where the bend of a TLB may pass for a cache's */
/* The same behind another cache: on a busy machine, whose other programs use the TLB, it begins to
 * miss at half its reach. First levels as small as that are built. */
static const double behind_reach_low = 0.45;

enum {
    POINTS_MIN = 8,
    TLBS_MAX = 2,
    TERMS_MAX = CACHE_COLUMNS_MAX - 1, /* beside the constant */
    COLUMNS_MAX = CACHE_COLUMNS_MAX,
    ROUNDS_MAX = 4
};

struct solution {
    size_t terms[TERMS_MAX]; /* candidate numbers */
    size_t count;
    double coefficients[COLUMNS_MAX]; /* base, then rises in seconds */
    double objective;
};

static const double near_relative_floor = 0.01; /* instead of probe_cache_relative_floor */

/* -- search -- */

static double relative_floor(const struct cache_terms *fit)
{
    return fit->near_count > 0 ? near_relative_floor : probe_cache_relative_floor;
}

static double objective_of(const struct cache_terms *fit, double rss, double price, size_t levels)
{
    double n = fit->count, floor = relative_floor(fit);
    return n * log(rss / n + floor * floor) + price + level_price * (double)levels;
}

/* The columns of `fixed` stay; the one called `free` (a position in it) is tried with every
 * candidate. */
struct trial {
    const double *columns[COLUMNS_MAX];
    double gram[COLUMNS_MAX][COLUMNS_MAX], right[COLUMNS_MAX];
    size_t count;
};

static void set_column(const struct cache_terms *fit, struct trial *trial, size_t position,
                       const double *column)
{
    trial->columns[position] = column;
    for (size_t i = 0; i < trial->count; i++) {
        if (trial->columns[i]) {
            trial->gram[i][position] = trial->gram[position][i] =
                probe_cache_dot(trial->columns[i], column, fit->points);
        }
    }
    trial->right[position] = probe_cache_dot(fit->right, column, fit->points);
}

/* Whether the candidate may stand at `position` beside the other terms. */
static bool fits_in(const struct cache_terms *fit, const struct solution *solution, size_t position,
                    const struct cache_candidate *candidate)
{
    bool tlb = candidate->reach_bytes > 0;
    size_t same_kind = 0;
    for (size_t i = 0; i < solution->count; i++) {
        const struct cache_candidate *other = &fit->candidates[solution->terms[i]];
        if (i == position || (other->reach_bytes > 0) != tlb) {
            continue;
        }
        double ratio = tlb ? candidate->reach_bytes / other->reach_bytes
                           : (double)candidate->shape.bytes / (double)other->shape.bytes;
        double least = tlb ? least_tlb_distance : least_distance;
        if (ratio < least && ratio > 1 / least) {
            return false;
        }
        same_kind++;
    }
    return same_kind < (tlb ? TLBS_MAX : CACHE_LEVELS_MAX);
}

/* Bytes of the smallest cache among the other terms; UINT64_MAX: none. */
static uint64_t smallest_other(const struct cache_terms *fit, const struct solution *solution,
                               size_t position)
{
    uint64_t smallest = UINT64_MAX;
    for (size_t i = 0; i < solution->count; i++) {
        const struct cache_candidate *other = &fit->candidates[solution->terms[i]];
        if (i != position && other->reach_bytes == 0 && other->shape.bytes < smallest) {
            smallest = other->shape.bytes;
        }
    }
    return smallest;
}

/* A rise at the reach of a TLB that was measured, and by hardly more than its misses cost, is the
 * TLB's: a cache in its place fits a little better whenever noise bends the curve. */
static bool mistaken_for_cache(const struct cache_terms *fit,
                               const struct cache_candidate *candidate, bool behind, double rise_s)
{
    for (size_t i = 0; i < fit->known && candidate->reach_bytes == 0; i++) {
        double ratio = (double)candidate->shape.bytes / fit->candidates[i].reach_bytes;
        if (ratio > (behind ? behind_reach_low : near_reach_low) && ratio < near_reach_high &&
            rise_s < mistaken_up_to * fit->candidates[i].miss_s) {
            return true;
        }
    }
    return false;
}

/* Tries every candidate at `position` of the solution (== count: one more level). True when
 * something better than what `solution` holds was found; then it holds that. `visit` sees every
 * objective. */
typedef void visit_function(const struct cache_candidate *candidate, double objective,
                            void *argument);

static bool best_at(const struct cache_terms *fit, struct solution *solution, size_t position,
                    visit_function *visit, void *argument)
{
    struct trial trial = {.count = 1 + solution->count + (position == solution->count)};
    double price = 0, before = solution->objective;
    size_t best = SIZE_MAX;
    const uint64_t smallest = smallest_other(fit, solution, position);
    set_column(fit, &trial, 0, fit->base);
    for (size_t i = 0; i < solution->count; i++) {
        if (i != position) {
            set_column(fit, &trial, 1 + i, fit->candidates[solution->terms[i]].column);
            price += fit->candidates[solution->terms[i]].price;
        }
    }
    double best_x[COLUMNS_MAX], x[COLUMNS_MAX];
    for (size_t c = fit->known; c < fit->candidate_count; c++) {
        if (!fits_in(fit, solution, position, &fit->candidates[c])) {
            continue;
        }
        set_column(fit, &trial, 1 + position, fit->candidates[c].column);
        double rss =
            probe_cache_solve_positive(trial.gram, trial.right, fit->total, trial.count, x);
        double objective =
            objective_of(fit, rss, price + fit->candidates[c].price, trial.count - 1);
        const bool behind = fit->candidates[c].shape.bytes > smallest;
        if (mistaken_for_cache(fit, &fit->candidates[c], behind, x[1 + position])) {
            continue;
        }
        if (visit) {
            visit(&fit->candidates[c], objective, argument);
        }
        if (objective < solution->objective) {
            solution->objective = objective;
            best = c;
            memcpy(best_x, x, sizeof x);
        }
    }
    if (best == SIZE_MAX) {
        return false;
    }
    solution->terms[position] = best;
    solution->count = trial.count - 1;
    memcpy(solution->coefficients, best_x, sizeof best_x);
    return solution->objective < before - 1e-9;
}

/* Coefficients and objective of the terms as they stand. */
static void solve_as_they_stand(const struct cache_terms *fit, struct solution *solution)
{
    struct trial trial = {.count = 1 + solution->count};
    double price = 0;
    set_column(fit, &trial, 0, fit->base);
    for (size_t i = 0; i < solution->count; i++) {
        set_column(fit, &trial, 1 + i, fit->candidates[solution->terms[i]].column);
        price += fit->candidates[solution->terms[i]].price;
    }
    double rss = probe_cache_solve_positive(trial.gram, trial.right, fit->total, trial.count,
                                            solution->coefficients);
    solution->objective = objective_of(fit, rss, price, solution->count);
}

static void start(const struct cache_terms *fit, struct solution *solution)
{
    *solution = (struct solution){.count = fit->known};
    for (size_t i = 0; i < fit->known; i++) {
        solution->terms[i] = i;
    }
    solve_as_they_stand(fit, solution);
}

/* Tries every term at every candidate until nothing improves. */
static void improve(const struct cache_terms *fit, struct solution *solution)
{
    bool better = true;
    for (int round = 0; round < ROUNDS_MAX && better; round++) {
        better = false;
        for (size_t i = fit->known; i < solution->count; i++) {
            better |= best_at(fit, solution, i, NULL, NULL);
        }
    }
}

struct rival {
    uint64_t not_bytes; /* the size that the level has */
    const struct cache_candidate *candidate;
    double objective;
};

static void note_rival(const struct cache_candidate *candidate, double objective, void *argument)
{
    struct rival *rival = argument;
    if (candidate->reach_bytes == 0 && candidate->shape.bytes != rival->not_bytes &&
        objective < rival->objective) {
        rival->candidate = candidate;
        rival->objective = objective;
    }
}

/* Gives each level in turn the size that explains the curve next best, and the other levels the
 * occasion to follow: a wrong size may hold a neighbour's shape in its place, and the other way
 * round. True: something better was found. */
static bool exchange_sizes(const struct cache_terms *fit, struct solution *solution)
{
    for (size_t i = fit->known; i < solution->count; i++) {
        struct solution other = *solution;
        struct rival rival = {fit->candidates[other.terms[i]].shape.bytes, NULL, INFINITY};
        best_at(fit, &other, i, note_rival, &rival);
        if (!rival.candidate || rival.objective > solution->objective + rival_margin) {
            continue;
        }
        other.terms[i] = (size_t)(rival.candidate - fit->candidates);
        other.objective = rival.objective;
        for (size_t j = fit->known; j < other.count; j++) {
            if (j != i) {
                best_at(fit, &other, j, NULL, NULL);
            }
        }
        improve(fit, &other);
        if (other.objective < solution->objective - 1e-9) {
            *solution = other;
            return true;
        }
    }
    return false;
}

/* One more level need not pay for itself at once: a level of too few ways, which rises slowly, may
 * stand for two, and gives way only when the second is there. That is worth it if the gain is
 * large. */
static void search(const struct cache_terms *fit, struct solution *solution)
{
    start(fit, solution);
    while (solution->count < TERMS_MAX) {
        struct solution more = *solution;
        more.objective = INFINITY;
        if (!best_at(fit, &more, more.count, NULL, NULL)) {
            break;
        }
        bool paid = more.objective < solution->objective - 1e-9;
        improve(fit, &more);
        if (!paid && more.objective >= solution->objective - detour_gain) {
            break;
        }
        *solution = more;
    }
    for (int round = 0; round < ROUNDS_MAX && exchange_sizes(fit, solution); round++) {
    }
}

/* -- report -- */

/* What a shape is off the curve, it is off at neighbouring points alike, and each of them says less
 * than one that is off by chance: the share of what is off that goes on to the next point tells how
 * many points say what one would (the variance of the mean of a series with such a share). Where
 * all that is off is less than the errors that count anyway, it does not matter. Knees of Cascade
 * Lake's second level, whose policy is none of ours, make 2 to 4. */
static const double knee_from = 1 / 2.2, knee_to = 2.2; /* times the level's size */
static const double share_most = 0.67;                  /* more cannot be told from so few points */

static double off_by(const struct cache_terms *fit, const struct solution *solution, size_t point)
{
    double off = fit->right[point] - solution->coefficients[0] * fit->base[point];
    for (size_t j = 0; j < solution->count; j++) {
        off -= solution->coefficients[1 + j] * fit->candidates[solution->terms[j]].column[point];
    }
    return off;
}

static double doubt_of(const struct cache_terms *fit, const struct cache_curve *curve,
                       const struct solution *solution, size_t at)
{
    const double size = (double)fit->candidates[solution->terms[at]].shape.bytes;
    const double floor = relative_floor(fit);
    double before = 0, along = 0, here = 0, count = 0, all = 0;
    for (size_t i = 0; i < fit->points; i++) {
        const double off = off_by(fit, solution, i);
        all += off * off;
        if (curve->bytes[i] >= knee_from * size && curve->bytes[i] <= knee_to * size) {
            along += off * before;
            here += off * off;
            count += fit->near_count > 0 ? probe_cache_point_share(curve, i) : 1;
            before = off;
        }
    }
    if (here <= 0) {
        return 1;
    }
    const double share = fmin(fmax(along / here, 0), share_most);
    const double matters = fmin(1, here / count / (all / fit->count + floor * floor));
    return 1 + matters * ((1 + share) / (1 - share) - 1);
}

/* One level's sizes, looked at beside the others: what the curve says of each counts 1 / `doubt`,
 * how often it is built in full. */
struct outlook {
    double doubt;
    double least; /* objective, how often sizes are built aside */
    double best;  /* the two together */
    const struct cache_candidate *chosen;
    double limit; /* of the range */
    uint64_t low, high;
};

static void choose(const struct cache_candidate *candidate, double objective, void *argument)
{
    struct outlook *outlook = argument;
    const double data = objective - candidate->size_price;
    const double all = data / outlook->doubt + candidate->size_price;
    if (candidate->reach_bytes > 0) {
        return;
    }
    outlook->least = fmin(outlook->least, data);
    if (all < outlook->best) {
        outlook->best = all;
        outlook->chosen = candidate;
    }
}

static void widen(const struct cache_candidate *candidate, double objective, void *argument)
{
    struct outlook *outlook = argument;
    if (objective - candidate->size_price > outlook->limit || candidate->reach_bytes > 0) {
        return;
    }
    if (candidate->shape.bytes < outlook->low) {
        outlook->low = candidate->shape.bytes;
    }
    if (candidate->shape.bytes > outlook->high) {
        outlook->high = candidate->shape.bytes;
    }
}

/* Where lines fall into sets by random pages, a policy that is none of ours passes for another size
 * and all samples in the world do not tell: a hundred places of Cascade Lake's second level of 1
 * MiB were explained as well by 1,200 KiB (LRU) as by 1,008 (quad-age). */
static const double policy_leaves = 1.19; /* times larger or smaller */

static void allow_for_policy(struct outlook *outlook)
{
    const double bytes = (double)outlook->chosen->shape.bytes, whole = 1024;
    if (outlook->chosen->shape.scattered) {
        outlook->low =
            (uint64_t)fmin((double)outlook->low, floor(bytes / policy_leaves / whole) * whole);
        outlook->high =
            (uint64_t)fmax((double)outlook->high, ceil(bytes * policy_leaves / whole) * whole);
    }
}

/* Gives the level at `at` the size that is told, and finds those that explain the curve about as
 * well. */
static struct outlook look_at_sizes(const struct cache_terms *fit, const struct cache_curve *curve,
                                    struct solution *solution, size_t at)
{
    struct outlook outlook = {.doubt = doubt_of(fit, curve, solution, at),
                              .least = INFINITY,
                              .best = INFINITY,
                              .chosen = &fit->candidates[solution->terms[at]]};
    struct solution copy = *solution;
    best_at(fit, &copy, at, choose, &outlook);
    outlook.limit = outlook.least + alternative_margin * outlook.doubt;
    outlook.low = outlook.high = outlook.chosen->shape.bytes;
    copy = *solution;
    best_at(fit, &copy, at, widen, &outlook);
    allow_for_policy(&outlook);
    solution->terms[at] = (size_t)(outlook.chosen - fit->candidates);
    solve_as_they_stand(fit, solution);
    return outlook;
}

/* Caches by size; TLBs first. */
static void sort_terms(const struct cache_terms *fit, struct solution *solution)
{
    for (size_t i = 1; i < solution->count; i++) {
        for (size_t j = i; j > 0; j--) {
            size_t a = solution->terms[j - 1], b = solution->terms[j];
            if (fit->candidates[a].shape.bytes <= fit->candidates[b].shape.bytes) {
                break;
            }
            solution->terms[j - 1] = b;
            solution->terms[j] = a;
            double swap = solution->coefficients[j];
            solution->coefficients[j] = solution->coefficients[j + 1];
            solution->coefficients[j + 1] = swap;
        }
    }
}

/* The position of the last level that shows, if there are two before it; SIZE_MAX: none. */
static size_t last_level(const struct cache_terms *fit, const struct solution *solution)
{
    size_t levels = 0, at = SIZE_MAX;
    double latency = solution->coefficients[0];
    for (size_t i = 0; i < solution->count; i++) {
        double rise = solution->coefficients[1 + i];
        if (fit->candidates[solution->terms[i]].reach_bytes > 0) {
            continue;
        }
        if (latency > 0 && (latency + rise) / latency >= least_rise) {
            levels++;
            at = i;
        }
        latency += rise;
    }
    return levels < refined_levels ? SIZE_MAX : at;
}

/* The constant and the miss shares of the first `count` terms at every point of the curve. Owned;
 * NULL: no memory. */
static double *raw_columns(const struct cache_terms *fit, const struct cache_curve *curve,
                           const struct solution *solution, size_t count)
{
    double *columns = malloc((1 + count) * curve->count * sizeof *columns);
    for (size_t i = 0; columns && i < curve->count; i++) {
        columns[i] = 1;
        for (size_t j = 0; j < count; j++) {
            const struct cache_candidate *term = &fit->candidates[solution->terms[j]];
            columns[(1 + j) * curve->count + i] =
                probe_cache_candidate_miss_share(term, curve->bytes[i], curve->page_bytes);
        }
    }
    return columns;
}

/* The term at `at` in the finer shapes of last.c, beside those before it; false: it stays as it is.
 * Of `last` the curve, the sizes and the margin are set. */
static bool in_finer_shapes(const struct cache_terms *fit, const struct solution *solution,
                            size_t at, struct cache_last *last, struct cache_last_found *found)
{
    double *columns = raw_columns(fit, last->curve, solution, at);
    if (!columns) {
        return false;
    }
    for (last->fixed_count = 0; last->fixed_count < 1 + at; last->fixed_count++) {
        last->fixed[last->fixed_count] = columns + last->fixed_count * last->curve->count;
    }
    bool refined = probe_cache_last_refine(last, found);
    free(columns);
    return refined;
}

static double bytes_at(const struct cache_terms *fit, const struct solution *solution, size_t at)
{
    return (double)fit->candidates[solution->terms[at]].shape.bytes;
}

/* The rise of one cache of a shape that only last.c knows may pass for those of two levels side by
 * side (8 ways in 37 slices: 64 and 128 MiB for 74). If it explains the curve about as well, two
 * become one, and the levels before them stay. True: `solution` has a term less, and `at` is that
 * of the last. */
static bool join_last(const struct cache_terms *fit, const struct cache_curve *curve,
                      struct solution *solution, size_t *at)
{
    if (*at < fit->known + 3 || bytes_at(fit, solution, *at - 3) == 0 ||
        bytes_at(fit, solution, *at) > joined_up_to * bytes_at(fit, solution, *at - 1)) {
        return false;
    }
    const double before = bytes_at(fit, solution, *at - 2);
    const double both = sqrt(bytes_at(fit, solution, *at - 1) * bytes_at(fit, solution, *at));
    struct cache_last one = {.curve = curve,
                             .before_bytes = (uint64_t)before,
                             .found_bytes = (uint64_t)both,
                             .earlier_bytes = sqrt(before * both)};
    struct cache_last two = one;
    two.before_bytes = (uint64_t)bytes_at(fit, solution, *at - 1);
    two.found_bytes = (uint64_t)bytes_at(fit, solution, *at);
    struct solution joined = *solution;
    joined.terms[*at - 1] = joined.terms[*at];
    struct cache_last_found as_one, as_two;
    if (!in_finer_shapes(fit, &joined, *at - 1, &one, &as_one) ||
        (in_finer_shapes(fit, solution, *at, &two, &as_two) &&
         as_two.objective + last_margin < as_one.objective)) {
        return false;
    }
    joined.count = *at; /* what came after the last goes in any case */
    *solution = joined;
    *at -= 1;
    return true;
}

/* The last of three levels or more in the finer shapes of last.c; its term's position or, if
 * it stays as it is, SIZE_MAX. What came after it, too small a rise to be a level, made up for its
 * shape: it goes. */
static size_t refine_last(const struct cache_terms *fit, const struct cache_curve *curve,
                          struct solution *solution, struct cache_last_found *found)
{
    size_t at = last_level(fit, solution);
    if (at == SIZE_MAX) {
        return at;
    }
    struct cache_last last = {.curve = curve->fine ? curve->fine : curve,
                              .found_bytes = (uint64_t)bytes_at(fit, solution, at),
                              .margin = last_margin};
    const double both = sqrt(bytes_at(fit, solution, at - 1) * bytes_at(fit, solution, at));
    if (join_last(fit, last.curve, solution, &at)) {
        last.found_bytes = (uint64_t)both;
    }
    last.before_bytes = (uint64_t)bytes_at(fit, solution, at - 1);
    if (!in_finer_shapes(fit, solution, at, &last, found)) {
        return SIZE_MAX;
    }
    solution->count = 1 + at;
    memcpy(solution->coefficients, found->coefficients, sizeof found->coefficients);
    return at;
}

/* Looks at the sizes of every cache but the one at `later`, and but those that were looked at. */
static void look_at_levels(const struct cache_terms *fit, const struct cache_curve *curve,
                           struct solution *solution, size_t later, struct outlook *outlooks)
{
    const struct cache_curve *looked_at = fit->near_count > 0 ? curve->fine : curve;
    for (size_t i = fit->known; i < solution->count; i++) {
        const struct cache_candidate *term = &fit->candidates[solution->terms[i]];
        if (i != later && term->reach_bytes == 0 && outlooks[i].chosen != term) {
            outlooks[i] = look_at_sizes(fit, looked_at, solution, i);
        }
    }
}

static size_t report(const struct cache_terms *fit, const struct cache_curve *curve,
                     struct solution *solution, struct cache_level_fit *levels, double *beyond_s)
{
    size_t count = 0;
    struct cache_last_found last;
    struct outlook outlooks[TERMS_MAX] = {0};
    sort_terms(fit, solution);
    /* the last level of several is looked at in last.c, after those before it */
    const size_t later = curve->quick ? SIZE_MAX : last_level(fit, solution);
    look_at_levels(fit, curve, solution, later, outlooks);
    size_t refined = later == SIZE_MAX ? later : refine_last(fit, curve, solution, &last);
    if (later != SIZE_MAX && refined == SIZE_MAX) { /* it stays as it is */
        look_at_levels(fit, curve, solution, SIZE_MAX, outlooks);
    }
    double latency = solution->coefficients[0];
    for (size_t i = 0; i < solution->count; i++) {
        const struct cache_candidate *chosen = &fit->candidates[solution->terms[i]];
        double next = latency + solution->coefficients[1 + i];
        if (chosen->reach_bytes > 0) {
            continue;
        }
        if (i == refined) {
            levels[count++] = (struct cache_level_fit){last.shape, latency, next / latency,
                                                       last.low_bytes, last.high_bytes};
        } else if (latency > 0 && next / latency >= least_rise) {
            levels[count++] = (struct cache_level_fit){chosen->shape, latency, next / latency,
                                                       outlooks[i].low, outlooks[i].high};
        }
        latency = next;
    }
    if (beyond_s) {
        *beyond_s = latency;
    }
    return count;
}

/* The term of `terms` that is the same as one of other terms; SIZE_MAX: none. */
static size_t same_term(const struct cache_terms *terms, const struct cache_candidate *wanted)
{
    for (size_t i = 0; i < terms->candidate_count; i++) {
        const struct cache_candidate *c = &terms->candidates[i];
        if (c->reach_bytes == wanted->reach_bytes && c->shape.bytes == wanted->shape.bytes &&
            c->shape.ways == wanted->shape.ways && c->shape.policy == wanted->shape.policy &&
            c->shape.scattered == wanted->shape.scattered) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* The same solution with other terms, and on another curve; false: one is not there. */
static bool carry_over(const struct cache_terms *from, const struct solution *solution,
                       const struct cache_terms *to, struct solution *out)
{
    *out = *solution;
    for (size_t i = 0; i < solution->count; i++) {
        out->terms[i] = same_term(to, &from->candidates[solution->terms[i]]);
        if (out->terms[i] == SIZE_MAX) {
            return false;
        }
    }
    out->objective = INFINITY;
    return out->count > to->known;
}

/* What is decided on the even grid, levels and about their sizes, once more with the points around
 * the knees: sizes near those that were found. */
static int fit_finely(const struct cache_terms *coarse, const struct cache_curve *curve,
                      const struct solution *solution, struct cache_terms *fine,
                      struct solution *out)
{
    *fine = (struct cache_terms){.points = curve->count};
    for (size_t i = 0; i < solution->count && fine->near_count < CACHE_LEVELS_MAX; i++) {
        const struct cache_candidate *c = &coarse->candidates[solution->terms[i]];
        if (c->reach_bytes == 0) {
            fine->near[fine->near_count++] = c->shape.bytes;
        }
    }
    if (fine->near_count == 0) {
        return 0;
    }
    int rc = probe_cache_candidates_make(fine, curve);
    if (rc < 0 || !carry_over(coarse, solution, fine, out)) {
        fine->near_count = 0;
        return rc;
    }
    improve(fine, out);
    for (int round = 0; round < ROUNDS_MAX && exchange_sizes(fine, out); round++) {
    }
    return 0;
}

int probe_cache_fit(const struct cache_curve *curve,
                    struct cache_level_fit levels[CACHE_LEVELS_MAX], size_t *count,
                    double *beyond_s)
{
    if (curve->count < POINTS_MIN) {
        return -EINVAL;
    }
    struct cache_terms coarse = {.points = curve->count}, fine = {0};
    struct solution solution, better;
    int rc = probe_cache_candidates_make(&coarse, curve);
    if (rc == 0) {
        search(&coarse, &solution);
    }
    if (rc == 0 && curve->fine) {
        rc = fit_finely(&coarse, curve->fine, &solution, &fine, &better);
    }
    if (rc == 0) {
        const bool finely = fine.near_count > 0;
        *count =
            report(finely ? &fine : &coarse, curve, finely ? &better : &solution, levels, beyond_s);
    }
    probe_cache_candidates_free(&coarse);
    probe_cache_candidates_free(&fine);
    return rc;
}
