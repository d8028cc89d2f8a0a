/* The posterior of one level's size, and what is reported of it.
 *
 * Each candidate counts exp(-misfit / 2) times its prior; the sum over the shapes of a size is the
 * size's.
 *
 * The reported size is the likeliest between the quartiles: the median itself would be the middle
 * of two likely sizes. */
#include "probes/cache/fit.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "profile/base/statistics.h"

/* | constant      | unit     | source, and what breaks without it                                 |
 * | outside,      | share    | of the posterior, on either side of the interval, and of the sizes |
 * | aside         |          | to choose from                                                     |
 * | others_from   | relative | repeats at a knee differ by less than 2 % on an idle machine, by 4 |
 * |               |          | to 20 % where other processes use the cache (virtual Zen 3)        |
 * | others_take   | times    | a core that streams brings in a line in half the time of our hit,  |
 * |               |          | and a third of the cache is ours: 512 KiB measured as 192          |
 */
static const double outside = 0.02, aside = 0.25;
static const double others_from = 0.03, others_take = 3;
enum { SIZES_MAX = 512 };

struct cache_posterior_size {
    uint64_t bytes;
    /* relative to the other sizes */
    double likely;
    /* of all shapes the likeliest */
    struct cache_candidate best;
    double objective;
};

struct cache_posterior {
    struct cache_trial trial;
    struct cache_posterior_size *sizes;
    size_t count;
    /* of the first candidate, which others are likely relative to */
    double first;
};

static struct cache_posterior_size *cache_posterior_of(struct cache_posterior *posterior,
                                                       uint64_t bytes)
{
    size_t i = posterior->count;
    while (i > 0 && posterior->sizes[i - 1].bytes != bytes) {
        i--;
    }
    if (i == 0 && posterior->count < SIZES_MAX) {
        i = ++posterior->count;
        posterior->sizes[i - 1] =
            (struct cache_posterior_size){.bytes = bytes, .objective = INFINITY};
    }
    return i > 0 ? &posterior->sizes[i - 1] : NULL;
}

static void cache_posterior_add(const struct cache_candidate *candidate, void *argument)
{
    struct cache_posterior *posterior = argument;
    struct cache_posterior_size *size = cache_posterior_of(posterior, candidate->shape.bytes);
    if (!size) {
        return;
    }
    const double objective = probe_cache_try(&posterior->trial, candidate) + candidate->price;
    if (posterior->first == INFINITY) {
        posterior->first = objective;
    }
    /* a double holds the sum, however far the first candidate was off */
    size->likely += exp(fmin((posterior->first - objective) / 2, log(DBL_MAX) / 2));
    if (objective < size->objective) {
        size->objective = objective;
        size->best = *candidate;
    }
}

/* The size up to which so much of the posterior lies. */
static size_t cache_posterior_quantile(const struct cache_posterior *posterior, double share)
{
    double all = 0, below = 0;
    size_t i = 0;
    for (size_t k = 0; k < posterior->count; k++) {
        all += posterior->sizes[k].likely;
    }
    while (i + 1 < posterior->count && (below += posterior->sizes[i].likely) < share * all) {
        i++;
    }
    return i;
}

static size_t cache_posterior_choose(const struct cache_posterior *posterior)
{
    size_t chosen = cache_posterior_quantile(posterior, aside);
    const size_t last = cache_posterior_quantile(posterior, 1 - aside);
    for (size_t i = chosen + 1; i <= last; i++) {
        chosen = posterior->sizes[i].likely > posterior->sizes[chosen].likely ? i : chosen;
    }
    return chosen;
}

/* Sizes up to half way to the next that is listed, since not every size is. */
static void cache_posterior_interval(const struct cache_posterior *posterior,
                                     struct cache_level_fit *out)
{
    const struct cache_posterior_size *sizes = posterior->sizes;
    const size_t low = cache_posterior_quantile(posterior, outside),
                 high = cache_posterior_quantile(posterior, 1 - outside);
    out->low_bytes = (sizes[low].bytes + sizes[low > 0 ? low - 1 : low].bytes) / 2;
    out->high_bytes =
        (sizes[high].bytes + sizes[high + 1 < posterior->count ? high + 1 : high].bytes) / 2;
}

/* Other processes only take of a level, and not all the time: where repeats differ at its knee, it
 * may be larger than the part that was ours. */
static void cache_posterior_allow_for_others(const struct cache_curve *curve,
                                             struct cache_level_fit *out)
{
    double spreads[CACHE_POINTS_MAX];
    size_t count = 0;
    const double size = (double)out->shape.bytes;
    for (size_t i = 0; curve->spread && i < curve->count && count < CACHE_POINTS_MAX; i++) {
        if (curve->bytes[i] >= size / probe_cache_knee &&
            curve->bytes[i] <= size * probe_cache_knee) {
            spreads[count++] = curve->spread[i];
        }
    }
    if (count > 0 && profile_median_value(spreads, count) >= others_from) {
        out->high_bytes = (uint64_t)fmax((double)out->high_bytes, others_take * size);
    }
}

static int cache_posterior_by_bytes(const void *a, const void *b)
{
    const struct cache_posterior_size *x = a, *y = b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

int probe_cache_posterior(const struct cache_terms *terms, struct cache_solution *solution,
                          size_t at, struct cache_level_fit *out)
{
    struct cache_posterior posterior = {.trial = probe_cache_trial(terms, solution, at),
                                        .first = INFINITY};
    FREED struct cache_posterior_size *sizes = malloc(SIZES_MAX * sizeof *sizes);
    TRY(sizes ? 0 : -ENOMEM);
    posterior.sizes = sizes;
    probe_cache_candidates(terms, solution, at, false, cache_posterior_add, &posterior);
    if (posterior.count == 0) { /* no candidate between its neighbours: it stays as it is */
        const uint64_t bytes = solution->levels[at].shape.bytes;
        *out = (struct cache_level_fit){
            .shape = solution->levels[at].shape, .low_bytes = bytes, .high_bytes = bytes};
        return 0;
    }
    qsort(sizes, posterior.count, sizeof *sizes, cache_posterior_by_bytes);
    solution->levels[at] = sizes[cache_posterior_choose(&posterior)].best;
    *out = (struct cache_level_fit){.shape = solution->levels[at].shape};
    cache_posterior_interval(&posterior, out);
    if (at > 0) { /* the first level's ways say how large it is */
        cache_posterior_allow_for_others(terms->curve, out);
    }
    return 0;
}
