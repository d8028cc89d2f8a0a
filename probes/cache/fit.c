/* The search for levels in a latency curve, and where a cache size is decided. Greedy, because the
 * columns (shape by size by ways by policy) are thousands and exact subset search is not to be
 * had; with detours, because greedy alone lets a wrong first level stand (search(),
 * exchange_sizes()). The objective is n log(squared relative error) with a price for each level,
 * what it takes to believe in a size, and a floor of 2 %: models of replacement are no better. What
 * is told of the levels found is decided in told.c. To see it: `accuracy --list --method default
 * MACHINE.json` (benchmarks/probes). */
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
static const double detour_gain = 24; /* the same if it gains only once all levels have moved */
/* What points of a knee are off together says two to four times less than it counts (doubt_of() in
 * told.c): where two levels are better than one by less than so many prices more, one is told. Busy
 * first levels of random replacement passed for two, 64 and 128 KiB, by 2. */
static const double hardly_better = 2 * 8;
static const double least_distance = 2;     /* between the sizes of two levels */
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
    ROUNDS_MAX = 4,
    SPLIT_OCTAVES = 6 /* around a level that may stand for two */
};

static const double near_relative_floor = 0.01; /* instead of probe_cache_relative_floor */

/* -- search -- */

double probe_cache_floor_of(const struct cache_terms *fit)
{
    return fit->near_count > 0 ? near_relative_floor : probe_cache_relative_floor;
}

static double objective_of(const struct cache_terms *fit, double rss, double price, size_t levels)
{
    double n = fit->count, floor = probe_cache_floor_of(fit);
    return n * log(rss / n + floor * floor) + price + level_price * (double)levels;
}

/* The columns of `fixed` stay; the one called `free` (a position in it) is tried with every
 * candidate. */
struct trial {
    const double *columns[CACHE_COLUMNS_MAX];
    double gram[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX], right[CACHE_COLUMNS_MAX];
    size_t count;
};

enum { TOGETHER = 4 };

/* Products of `column` with that many others, since one sum alone waits for itself: this is where a
 * fit spends its time. */
static void dots(const double *const others[TOGETHER], const double *column, size_t count,
                 double sums[TOGETHER])
{
    const double *a = others[0], *b = others[1], *c = others[2], *d = others[3];
    double of_a = 0, of_b = 0, of_c = 0, of_d = 0;
    for (size_t i = 0; i < count; i++) {
        of_a += a[i] * column[i];
        of_b += b[i] * column[i];
        of_c += c[i] * column[i];
        of_d += d[i] * column[i];
    }
    sums[0] = of_a;
    sums[1] = of_b;
    sums[2] = of_c;
    sums[3] = of_d;
}

static void set_column(const struct cache_terms *fit, struct trial *trial, size_t position,
                       const double *column)
{
    const double *others[1 + CACHE_COLUMNS_MAX + TOGETHER] = {fit->right};
    double *sums[1 + CACHE_COLUMNS_MAX] = {&trial->right[position]};
    size_t count = 1;
    trial->columns[position] = column;
    for (size_t i = 0; i < trial->count; i++) {
        if (trial->columns[i]) {
            others[count] = trial->columns[i];
            sums[count++] = &trial->gram[position][i];
        }
    }
    for (size_t i = count; i % TOGETHER != 0; i++) {
        others[i] = column;
    }
    for (size_t i = 0; i < count; i += TOGETHER) {
        double of[TOGETHER];
        dots(others + i, column, fit->points, of);
        for (size_t j = 0; j < TOGETHER && i + j < count; j++) {
            *sums[i + j] = of[j];
        }
    }
    for (size_t i = 0; i < trial->count; i++) {
        trial->gram[i][position] = trial->gram[position][i];
    }
}

/* Whether the candidate may stand at `position` beside the other terms. */
static bool fits_in(const struct cache_terms *fit, const struct cache_solution *solution,
                    size_t position, const struct cache_candidate *candidate)
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
static uint64_t smallest_other(const struct cache_terms *fit, const struct cache_solution *solution,
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

bool probe_cache_best_at(const struct cache_terms *fit, struct cache_solution *solution,
                         size_t position, cache_visit *visit, void *argument)
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
    double best_x[CACHE_COLUMNS_MAX], x[CACHE_COLUMNS_MAX];
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

void probe_cache_solve_terms(const struct cache_terms *fit, struct cache_solution *solution)
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

static void start(const struct cache_terms *fit, struct cache_solution *solution)
{
    *solution = (struct cache_solution){.count = fit->known};
    for (size_t i = 0; i < fit->known; i++) {
        solution->terms[i] = i;
    }
    probe_cache_solve_terms(fit, solution);
}

/* Tries every term at every candidate until nothing improves. */
static void improve(const struct cache_terms *fit, struct cache_solution *solution)
{
    bool better = true;
    for (int round = 0; round < ROUNDS_MAX && better; round++) {
        better = false;
        for (size_t i = fit->known; i < solution->count; i++) {
            better |= probe_cache_best_at(fit, solution, i, NULL, NULL);
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
static bool exchange_sizes(const struct cache_terms *fit, struct cache_solution *solution)
{
    for (size_t i = fit->known; i < solution->count; i++) {
        struct cache_solution other = *solution;
        struct rival rival = {fit->candidates[other.terms[i]].shape.bytes, NULL, INFINITY};
        probe_cache_best_at(fit, &other, i, note_rival, &rival);
        if (!rival.candidate || rival.objective > solution->objective + rival_margin) {
            continue;
        }
        other.terms[i] = (size_t)(rival.candidate - fit->candidates);
        other.objective = rival.objective;
        for (size_t j = fit->known; j < other.count; j++) {
            if (j != i) {
                probe_cache_best_at(fit, &other, j, NULL, NULL);
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

/* -- one level in place of two, two in place of one -- */

/* Tries every term at every candidate and, while the objective is below the limit, at its next best
 * as well. */
static void settle(const struct cache_terms *fit, struct cache_solution *solution, double limit)
{
    improve(fit, solution);
    for (int round = 0; round < ROUNDS_MAX && solution->objective < limit; round++) {
        if (!exchange_sizes(fit, solution)) {
            break;
        }
    }
}

static size_t caches_in(const struct cache_terms *fit, const struct cache_solution *solution)
{
    size_t count = 0;
    for (size_t i = 0; i < solution->count; i++) {
        count += fit->candidates[solution->terms[i]].reach_bytes == 0;
    }
    return count;
}

/* What the curve says, and not how often such sizes are built. */
static double without_sizes(const struct cache_terms *fit, const struct cache_solution *solution)
{
    double objective = solution->objective;
    for (size_t i = 0; i < solution->count; i++) {
        objective -= fit->candidates[solution->terms[i]].size_price;
    }
    return objective;
}

/* Two caches that one cache explains all but as well. That two sizes are built more often than one
 * is no reason to tell a level more (512 KiB and 1 MiB for 480), where the points around the knees
 * say which. */
static bool is_one(const struct cache_terms *fit, const struct cache_solution *two,
                   const struct cache_solution *one)
{
    const double more = without_sizes(fit, one) - without_sizes(fit, two);
    return fit->near_count > 0 &&
           (more < 0 || (more < hardly_better && caches_in(fit, two) == caches_in(fit, one) + 1));
}

/* The rise of one level may pass for those of two, neither of which is given up alone. */
static bool join_two(const struct cache_terms *fit, struct cache_solution *solution)
{
    for (size_t i = fit->known; i < solution->count; i++) {
        for (size_t j = i + 1; j < solution->count; j++) {
            struct cache_solution joined = *solution;
            joined.terms[j] = joined.terms[--joined.count];
            joined.objective = INFINITY;
            if (probe_cache_best_at(fit, &joined, i, NULL, NULL)) {
                settle(fit, &joined, solution->objective + detour_gain);
            }
            if (joined.objective < solution->objective - 1e-9 || is_one(fit, solution, &joined)) {
                *solution = joined;
                return true;
            }
        }
    }
    return false;
}

/* The best in each octave. */
struct octaves {
    double from_bytes;
    const struct cache_candidate *best[SPLIT_OCTAVES];
    double objective[SPLIT_OCTAVES];
};

static void note_octave(const struct cache_candidate *candidate, double objective, void *argument)
{
    struct octaves *octaves = argument;
    const double at = floor(log2((double)candidate->shape.bytes / octaves->from_bytes));
    if (candidate->reach_bytes > 0 || at < 0 || at >= SPLIT_OCTAVES) {
        return;
    }
    const size_t octave = (size_t)at;
    if (!octaves->best[octave] || objective < octaves->objective[octave]) {
        octaves->best[octave] = candidate;
        octaves->objective[octave] = objective;
    }
}

/* A level that rises slowly may stand for two, neither of which gains anything beside it (8 MiB of
 * four ways for 2.25 and 8 MiB of nine and twenty). So in its place the best of each octave around
 * it is tried, together with the best second level beside that. */
static bool split_one(const struct cache_terms *fit, struct cache_solution *solution)
{
    for (size_t i = fit->known; i < solution->count && solution->count < CACHE_TERMS_MAX; i++) {
        struct octaves octaves = {.from_bytes =
                                      (double)fit->candidates[solution->terms[i]].shape.bytes *
                                      exp2(-SPLIT_OCTAVES / 2.0)};
        struct cache_solution split = *solution;
        probe_cache_best_at(fit, &split, i, note_octave, &octaves);
        for (int octave = 0; octave < SPLIT_OCTAVES; octave++) {
            split = *solution;
            if (!octaves.best[octave]) {
                continue;
            }
            split.terms[i] = (size_t)(octaves.best[octave] - fit->candidates);
            if (probe_cache_best_at(fit, &split, split.count, NULL, NULL)) {
                improve(fit, &split);
                *solution = split;
                return true;
            }
        }
    }
    return false;
}

static bool find_other(const struct cache_terms *fit, struct cache_solution *solution)
{
    return exchange_sizes(fit, solution) || join_two(fit, solution) || split_one(fit, solution);
}

/* One more level need not pay for itself at once: a level of too few ways, which rises slowly, may
 * stand for two, and gives way only when the second is there. That is worth it if the gain is
 * large. */
static void search(const struct cache_terms *fit, struct cache_solution *solution)
{
    start(fit, solution);
    while (solution->count < CACHE_TERMS_MAX) {
        struct cache_solution more = *solution;
        more.objective = INFINITY;
        if (!probe_cache_best_at(fit, &more, more.count, NULL, NULL)) {
            break;
        }
        bool paid = more.objective < solution->objective - 1e-9;
        improve(fit, &more);
        if (!paid && more.objective >= solution->objective - detour_gain) {
            break;
        }
        *solution = more;
    }
    for (int round = 0; round < ROUNDS_MAX && find_other(fit, solution); round++) {
    }
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
static bool carry_over(const struct cache_terms *from, const struct cache_solution *solution,
                       const struct cache_terms *to, struct cache_solution *out)
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
 * the knees: sizes near those that were found. Where two usual ones were cheaper than one that is
 * seldom built, the points between speak for the one. */
static int fit_finely(const struct cache_terms *coarse, const struct cache_curve *curve,
                      const struct cache_solution *solution, struct cache_terms *fine,
                      struct cache_solution *out)
{
    *fine = (struct cache_terms){0};
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
    settle(fine, out, INFINITY);
    while (join_two(fine, out)) {
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
    struct cache_terms coarse = {0}, fine = {0};
    struct cache_solution solution, better;
    int rc = probe_cache_candidates_make(&coarse, curve);
    if (rc == 0) {
        search(&coarse, &solution);
    }
    if (rc == 0 && curve->fine) {
        rc = fit_finely(&coarse, curve->fine, &solution, &fine, &better);
    }
    if (rc == 0) {
        const bool finely = fine.near_count > 0;
        *count = probe_cache_tell(finely ? &fine : &coarse, curve, finely ? &better : &solution,
                                  levels, beyond_s);
    }
    probe_cache_candidates_free(&coarse);
    probe_cache_candidates_free(&fine);
    return rc;
}
