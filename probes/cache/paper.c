/* The cache benchmark as the 2010 paper gives it (Section III-A, Figures 1, 3 and 4), for --method
 * paper.
 *
 * mcalibrator's loads, 1 KiB apart, on sizes that double up to 2 MiB and grow by 1 MiB from there;
 * the L1 is the first peak of the gradients; a later peak of a single size is a level of that size
 * (page colouring); a wider one, and a rise up to the largest size, is a level whose size the
 * binomial model of random pages gives. Kept as a comparison, by which its own machines come
 * out as it has them (tests/probes/test_paper_method.c): where a prefetcher follows the
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
 * several modes that of the least divergence counts. */
#include "probes/cache/probe.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double flat = 1.005, rising = 1.05, peak = 1.2;
static const size_t stride_bytes = 1024, first_bytes = 4u << 10, doubling_up_to = 2u << 20,
                    step_bytes = 1u << 20;
static const size_t last_bytes = (size_t)64
                                 << 20; /* MAX_CACHE; more where a larger cache is declared */
enum { POINTS_MAX = 1024, BEST = 5, WAYS = 12 };

/* -- Figure 3 -- */

struct tentative {
    uint64_t bytes;
    double divergence;
};

/* Keeps the BEST lowest divergences, lowest first. */
static void keep_tentative(struct tentative *best, size_t *count, struct tentative candidate)
{
    size_t at = *count;
    while (at > 0 && best[at - 1].divergence > candidate.divergence) {
        at--;
    }
    if (at >= BEST) {
        return;
    }
    size_t tail = (*count < BEST ? *count : BEST - 1) - at;
    memmove(&best[at + 1], &best[at], tail * sizeof *best);
    best[at] = candidate;
    *count += *count < BEST;
}

static uint64_t mode_of(const struct tentative *best, size_t count)
{
    size_t winner = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        for (size_t j = 0; j < count; j++) {
            same += best[j].bytes == best[i].bytes;
        }
        if (same > most) {
            most = same;
            winner = i;
        }
    }
    return count ? best[winner].bytes : 0;
}

/* The size whose binomial miss rates are nearest to those of points [first, last]. */
static uint64_t probabilistic(const struct cache_curve *curve, size_t first, size_t last)
{
    static const uint32_t ways[WAYS] = {1, 2, 4, 6, 8, 10, 11, 12, 16, 18, 20, 24};
    struct tentative best[BEST];
    size_t count = 0;
    double hit = curve->seconds[first], slowest = hit;
    for (size_t i = first; i <= last; i++) {
        hit = fmin(hit, curve->seconds[i]);
        slowest = fmax(slowest, curve->seconds[i]);
    }
    const double overhead = slowest - hit;
    for (uint64_t bytes = 64u << 10; bytes <= (uint64_t)(2 * curve->bytes[last]);
         bytes += bytes < step_bytes ? bytes : step_bytes) {
        for (size_t w = 0; w < WAYS; w++) {
            double divergence = 0;
            for (size_t i = first; i <= last; i++) {
                double miss = overhead > 0 ? (curve->seconds[i] - hit) / overhead : 0;
                uint64_t pages = (uint64_t)curve->bytes[i] / curve->page_bytes;
                divergence += fabs(
                    miss - probe_cache_page_conflicts(pages, ways[w], curve->page_bytes, bytes));
            }
            keep_tentative(best, &count, (struct tentative){bytes, divergence});
        }
    }
    return mode_of(best, count);
}

/* -- Figure 4 -- */

static double gradient(const struct cache_curve *curve, size_t k)
{
    return curve->seconds[k + 1] / curve->seconds[k];
}

/* Of the gradients; the number of points if there is none. */
static size_t first_peak(const struct cache_curve *curve)
{
    for (size_t k = 0; k + 1 < curve->count; k++) {
        bool falls = k + 2 == curve->count || gradient(curve, k + 1) <= gradient(curve, k);
        if (gradient(curve, k) >= peak && falls) {
            return k;
        }
    }
    return curve->count;
}

/* Where the gradients have come down from the peak at k: not above 1 any more, or about to rise to
 * the next one. */
static size_t foot(const struct cache_curve *curve, size_t k)
{
    do {
        k++;
    } while (k + 1 < curve->count && gradient(curve, k) > rising &&
             gradient(curve, k) <= gradient(curve, k - 1));
    return k;
}

/* Where the one gradient that is no noise is. */
static uint64_t steepest(const struct cache_curve *curve, size_t first, size_t end)
{
    size_t best = first;
    for (size_t k = first; k < end; k++) {
        best = gradient(curve, k) > gradient(curve, best) ? k : best;
    }
    return (uint64_t)curve->bytes[best];
}

struct rise {
    size_t end; /* the last point: one beyond the last gradient */
    double highest;
    size_t steep; /* gradients that are no noise */
};

/* Behind a peak a curve falls where a larger array has no more pages than the one before whose set
 * is full: their share is smaller, and the rise goes on with the next of them. It would not fall at
 * rest. */
static bool thins_out(const struct rise *rise, double gradient)
{
    return rise->highest >= peak && gradient < 1 / flat;
}

/* The gradients larger than 1 from k on, as far as they belong together: two peaks are two levels
 * where the curve is all but flat between them, even if it never comes to rest. */
static struct rise rise_from(const struct cache_curve *curve, size_t k)
{
    struct rise rise = {.end = k}, before = rise;
    double lowest = INFINITY;
    for (; rise.end + 1 < curve->count; rise.end++) {
        const double now = gradient(curve, rise.end);
        if (thins_out(&rise, now)) {
            continue;
        }
        if (now <= flat) {
            break;
        }
        if (rise.highest >= peak && now < rising && now < lowest) {
            lowest = now;
            before = rise;
        } else if (now >= peak && lowest < INFINITY) {
            return before;
        }
        rise.highest = fmax(rise.highest, now);
        rise.steep += now > rising;
    }
    return rise;
}

size_t probe_cache_paper_infer(const struct cache_curve *curve, uint64_t sizes[CACHE_LEVELS_MAX])
{
    size_t count = 0, k = first_peak(curve);
    if (k == curve->count) {
        return 0;
    }
    sizes[count++] = (uint64_t)curve->bytes[k];
    for (k = foot(curve, k); k + 1 < curve->count && count < CACHE_LEVELS_MAX;) {
        const struct rise rise = rise_from(curve, k);
        const bool at_the_end =
            rise.end + 1 == curve->count && rise.end > k && gradient(curve, rise.end - 1) > rising;
        if (rise.highest >= peak || at_the_end) {
            bool single = rise.highest >= peak && rise.steep == 1;
            sizes[count++] =
                single ? steepest(curve, k, rise.end) : probabilistic(curve, k, rise.end);
        }
        k = rise.end > k ? rise.end : k + 1;
    }
    return count;
}

/* -- Figure 1 -- */

/* Every working set is the beginning of the same array: a page that finds its set full is in all
 * larger ones, too, and the curve does not fall where a larger one was luckier. */
static int measure_paper(struct probe *probe, uint32_t pu, size_t end, struct cache_curve *curve)
{
    const uint64_t seed = ++probe->seed;
    for (size_t bytes = first_bytes; bytes <= end && curve->count < POINTS_MAX;
         bytes = bytes < doubling_up_to ? 2 * bytes : bytes + step_bytes) {
        const struct machine_traversal what = {.bytes = bytes,
                                               .stride_bytes = stride_bytes,
                                               .order = MACHINE_STRIDE,
                                               .warm_passes = 1,
                                               .seed = seed};
        TRY(probe_machine_traverse(probe->machine, &what, &pu, 1, &curve->seconds[curve->count]));
        curve->bytes[curve->count++] = (double)bytes;
        probe_tell(probe, (double)bytes / (double)end, "cache sizes on PU %u, the paper's way", pu);
    }
    return 0;
}

static size_t choose_end(const struct machine *machine)
{
    const size_t twice = 2 * probe_cache_declared_largest(probe_cache_declared(machine)),
                 end = twice > last_bytes ? twice : last_bytes;
    return end < machine->memory_limit_bytes / 2 ? end : machine->memory_limit_bytes / 2;
}

int probe_cache_paper(struct probe *probe, uint32_t pu, struct probe_cache *out,
                      struct servet_error *error)
{
    FREED_BY(probe_cache_free)
    struct probe_cache result = {.curve.page_bytes = probe->machine->page_bytes};
    uint64_t sizes[CACHE_LEVELS_MAX];
    result.curve.bytes = calloc(POINTS_MAX, sizeof *result.curve.bytes);
    result.curve.seconds = calloc(POINTS_MAX, sizeof *result.curve.seconds);
    const int rc = result.curve.bytes && result.curve.seconds
                       ? measure_paper(probe, pu, choose_end(probe->machine), &result.curve)
                       : -ENOMEM;
    TRY(probe_error(error, rc, "measuring cache sizes"));
    result.count = probe_cache_paper_infer(&result.curve, sizes);
    for (size_t i = 0; i < result.count; i++) {
        result.levels[i] =
            (struct probe_cache_level){.size_bytes = sizes[i], .repetitions = 1, .spread = -1};
    }
    result.largest_bytes = (uint64_t)result.curve.bytes[result.curve.count - 1];
    result.memory_seconds = result.curve.seconds[result.curve.count - 1];
    *out = TAKE(result);
    return 0;
}
