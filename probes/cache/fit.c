/* The regression behind the fit, and the selection of a model (fit.h). `accuracy --list --method
 * default MACHINE.json` (benchmarks/laboratory/probes) shows what it finds. */
#include "probes/cache/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* | constant           | unit     | source, and what breaks without it                            |
 * | dispersion         | times    | knees of Cascade Lake's second level: 2 to 4; one: intervals  |
 * |                    |          | that miss the truth, and two levels of a broad one            |
 * | knee_price         | -2 log p | 1.5 times BIC's price of one coefficient at 190 points; none: |
 * |                    |          | knees of noise                                                |
 * | knee               | times    | the stretch of a curve that a level bends: samples are added  |
 * |                    |          | there; narrower: its foot and its shoulder have few           |
 * | least_rise         | times    | page walks raise memory's plateau by up to 1.13 (virtual      |
 * |                    |          | Zen 4, 4 KiB pages)                                           |
 * | tlb_error          | relative | a miss in the curve costs 0.6 to 1.4 times a measured one     |
 * |                    |          | (virtual Zen 5); none: a TLB takes the rise of a cache        |
 */
static const double dispersion = 2;
static const double knee_price = 8;
const double probe_cache_knee = 2.2;
const double probe_cache_least_rise = 1.25;
static const double tlb_error = 0.4;
enum { POINTS_MIN = 8, ROUNDS_MAX = 4 };

/* -- least squares with coefficients >= 0 -- */

static double cache_fit_dot(const double *a, const double *b, size_t count)
{
    double even = 0, odd = 0;
    size_t i = 0;
    for (; i + 2 <= count; i += 2) {
        even += a[i] * b[i];
        odd += a[i + 1] * b[i + 1];
    }
    return i < count ? even + odd + a[i] * b[i] : even + odd;
}

/* Solves the symmetric system over the columns in `use` (Gaussian elimination; the diagonal is made
 * a little heavier, since two shapes may be all but equal). */
static void cache_fit_eliminate(struct cache_trial *trial, const bool *use)
{
    double a[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX + 1];
    size_t at[CACHE_COLUMNS_MAX], m = 0;
    for (size_t i = 0; i < trial->count; i++) {
        trial->x[i] = 0;
        if (use[i]) {
            at[m++] = i;
        }
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < m; j++) {
            a[i][j] = trial->gram[at[i]][at[j]] * (i == j ? 1 + 1e-9 : 1);
        }
        a[i][m] = trial->right[at[i]];
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t k = i + 1; k < m; k++) {
            const double factor = a[i][i] > 0 ? a[k][i] / a[i][i] : 0;
            for (size_t j = i; j <= m; j++) {
                a[k][j] -= factor * a[i][j];
            }
        }
    }
    for (size_t i = m; i-- > 0;) {
        double sum = a[i][m];
        for (size_t j = i + 1; j < m; j++) {
            sum -= a[i][j] * trial->x[at[j]];
        }
        trial->x[at[i]] = a[i][i] > 0 ? sum / a[i][i] : 0;
    }
}

/* The most negative coefficient is left out until none is: the optimum for columns that are all
 * non-negative and rising. Returns the residual sum of squares. */
static double cache_fit_solve(struct cache_trial *trial)
{
    bool use[CACHE_COLUMNS_MAX];
    memset(use, 1, sizeof use);
    for (;;) {
        size_t worst = trial->count;
        cache_fit_eliminate(trial, use);
        for (size_t i = 0; i < trial->count; i++) {
            if (trial->x[i] < 0 && (worst == trial->count || trial->x[i] < trial->x[worst])) {
                worst = i;
            }
        }
        if (worst == trial->count) {
            break;
        }
        use[worst] = false;
    }
    double residual = trial->total;
    for (size_t i = 0; i < trial->count; i++) {
        residual -= trial->x[i] * trial->right[i];
    }
    return residual > 0 ? residual : 0;
}

/* -- one level beside the others -- */

static void cache_fit_weigh(const struct cache_terms *terms, const struct cache_shape *shape,
                            double *column)
{
    int rc = probe_cache_miss_shares(shape, terms->curve->bytes, terms->points, column);
    if (rc < 0) {
        *terms->rc = rc;
        memset(column, 0, terms->points * sizeof *column);
    }
    for (size_t i = 0; i < terms->points; i++) {
        column[i] *= terms->weight[i];
    }
}

/* A TLB costs what was measured, within `tlb_error`: one observation more for each. */
static void cache_fit_add_tlbs(struct cache_trial *trial)
{
    const struct cache_terms *terms = trial->terms;
    const double sure = probe_cache_model_error / tlb_error;
    for (size_t i = 0; i < terms->tlbs; i++) {
        const double cost = terms->curve->tlb_seconds[i];
        if (cost > 0) {
            trial->gram[1 + i][1 + i] += sure * sure / (cost * cost);
            trial->right[1 + i] += sure * sure / cost;
            trial->total += sure * sure;
        }
    }
}

struct cache_trial probe_cache_trial(const struct cache_terms *terms,
                                     const struct cache_solution *solution, size_t at)
{
    struct cache_trial trial = {
        .terms = terms, .count = 1 + terms->tlbs + solution->count, .column = 1 + terms->tlbs + at};
    for (size_t i = 0; i < solution->count; i++) {
        cache_fit_weigh(terms, &solution->levels[i].shape, terms->columns[1 + terms->tlbs + i]);
    }
    trial.total = cache_fit_dot(terms->right, terms->right, terms->points);
    for (size_t i = 0; i < trial.count; i++) {
        for (size_t j = 0; j <= i; j++) {
            trial.gram[i][j] = trial.gram[j][i] =
                cache_fit_dot(terms->columns[i], terms->columns[j], terms->points);
        }
        trial.right[i] = cache_fit_dot(terms->right, terms->columns[i], terms->points);
    }
    cache_fit_add_tlbs(&trial);
    return trial;
}

static double cache_fit_misfit(struct cache_trial *trial)
{
    const double n = trial->terms->count;
    const double floor = probe_cache_model_error * probe_cache_model_error;
    return n * log(cache_fit_solve(trial) / n + floor) / dispersion;
}

double probe_cache_try(struct cache_trial *trial, const struct cache_candidate *candidate)
{
    const struct cache_terms *terms = trial->terms;
    const size_t at = trial->column;
    cache_fit_weigh(terms, &candidate->shape, terms->column);
    for (size_t i = 0; i < trial->count; i++) {
        const double *other = i == at ? terms->column : terms->columns[i];
        trial->gram[i][at] = trial->gram[at][i] =
            cache_fit_dot(other, terms->column, terms->points);
    }
    trial->right[at] = cache_fit_dot(terms->right, terms->column, terms->points);
    return cache_fit_misfit(trial);
}

/* -- selection -- */

static void cache_fit_settle(const struct cache_terms *terms, struct cache_solution *solution)
{
    struct cache_trial trial = probe_cache_trial(terms, solution, 0);
    solution->objective = cache_fit_misfit(&trial) + knee_price * (double)solution->count;
    for (size_t i = 0; i < solution->count; i++) {
        solution->objective += solution->levels[i].price;
    }
    memcpy(solution->coefficients, trial.x, sizeof trial.x);
}

struct cache_fit_best {
    struct cache_trial trial;
    struct cache_candidate candidate;
    double objective;
};

static void cache_fit_keep_best(const struct cache_candidate *candidate, void *argument)
{
    struct cache_fit_best *best = argument;
    const double objective = probe_cache_try(&best->trial, candidate) + candidate->price;
    if (objective < best->objective) {
        best->objective = objective;
        best->candidate = *candidate;
    }
}

static bool cache_fit_improve(const struct cache_terms *terms, struct cache_solution *solution,
                              size_t at)
{
    struct cache_fit_best best = {.trial = probe_cache_trial(terms, solution, at),
                                  .objective = INFINITY};
    struct cache_solution other = *solution;
    probe_cache_candidates(terms, solution, at, true, cache_fit_keep_best, &best);
    if (best.objective == INFINITY) {
        return false;
    }
    other.levels[at] = best.candidate;
    cache_fit_settle(terms, &other);
    if (other.objective >= solution->objective - 1e-9) {
        return false;
    }
    *solution = other;
    return true;
}

/* Each level in turn takes its best candidate beside the others, until none improves. */
static void cache_fit_descend(const struct cache_terms *terms, struct cache_solution *solution)
{
    bool better = true;
    solution->objective = INFINITY;
    for (int round = 0; round < ROUNDS_MAX && better; round++) {
        better = false;
        for (size_t i = solution->count; i-- > 0;) {
            better |= cache_fit_improve(terms, solution, i);
        }
    }
}

static int cache_fit_select(const struct cache_terms *terms, struct cache_solution *out)
{
    struct cache_solution starts[CACHE_KNEES_MAX];
    *out = (struct cache_solution){.count = 0};
    TRY(probe_cache_knees(terms, starts));
    cache_fit_settle(terms, out);
    for (size_t i = 0; i < CACHE_KNEES_MAX; i++) {
        if (starts[i].count > 0) {
            cache_fit_descend(terms, &starts[i]);
            *out = starts[i].objective < out->objective ? starts[i] : *out;
        }
    }
    return 0;
}

/* -- the answer -- */

/* A knee of which the next stands in another's light is looked at twice. */
enum { REPORT_ROUNDS = 2 };

static int cache_fit_report(const struct cache_terms *terms, struct cache_solution *solution,
                            struct cache_level_fit *levels, size_t *count, double *beyond_s)
{
    struct cache_level_fit all[CACHE_KNEES_MAX];
    for (size_t i = 0; i < REPORT_ROUNDS * solution->count; i++) {
        const size_t at = i % solution->count;
        TRY(probe_cache_posterior(terms, solution, at, &all[at]));
    }
    cache_fit_settle(terms, solution);
    TRY(*terms->rc);
    double latency = solution->coefficients[0];
    size_t found = 0;
    for (size_t i = 0; i < solution->count; i++) {
        const double next = latency + solution->coefficients[1 + terms->tlbs + i];
        if (latency > 0 && next / latency >= probe_cache_least_rise && found < CACHE_LEVELS_MAX) {
            levels[found] = all[i];
            levels[found++].seconds = latency;
        }
        latency = next;
    }
    *count = found;
    if (beyond_s) {
        *beyond_s = latency;
    }
    return 0;
}

/* Visits of a chase go to pages in random order, several to each: the share that finds its page is
 * that of the entries in the pages. */
static double cache_fit_tlb_share(double reach_bytes, double bytes)
{
    return bytes > reach_bytes ? 1 - reach_bytes / bytes : 0;
}

static void cache_fit_set_terms(struct cache_terms *terms)
{
    const struct cache_curve *curve = terms->curve;
    for (size_t i = 0; i < terms->points; i++) {
        const double share = probe_cache_point_share(curve, i);
        const double own = curve->error_s ? curve->error_s[i] / probe_cache_model_error : 0;
        terms->weight[i] = sqrt(share) / hypot(curve->seconds[i], own);
        terms->right[i] = terms->weight[i] * curve->seconds[i];
        terms->columns[0][i] = terms->weight[i];
        terms->count += share;
        for (size_t t = 0; t < terms->tlbs; t++) {
            terms->columns[1 + t][i] =
                terms->weight[i] * cache_fit_tlb_share(curve->tlb_reach_bytes[t], curve->bytes[i]);
        }
    }
}

int probe_cache_fit(const struct cache_curve *curve,
                    struct cache_level_fit levels[CACHE_LEVELS_MAX], size_t *count,
                    double *beyond_s)
{
    int failed = 0;
    struct cache_terms terms = {
        .curve = curve, .points = curve->count, .tlbs = curve->tlb_count, .rc = &failed};
    struct cache_solution solution;
    if (curve->count < POINTS_MIN) {
        return -EINVAL;
    }
    FREED double *memory = malloc((3 + CACHE_COLUMNS_MAX) * terms.points * sizeof *memory);
    TRY(memory ? 0 : -ENOMEM);
    terms.weight = memory;
    terms.right = memory + terms.points;
    terms.column = terms.right + terms.points;
    for (size_t i = 0; i < CACHE_COLUMNS_MAX; i++) {
        terms.columns[i] = terms.column + (1 + i) * terms.points;
    }
    cache_fit_set_terms(&terms);
    TRY(cache_fit_select(&terms, &solution));
    return cache_fit_report(&terms, &solution, levels, count, beyond_s);
}
