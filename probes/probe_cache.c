#include "probe_cache.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cache_squares.h"
#include "probe_line.h"
#include "probe_ways.h"

/* The measuring plan; figures from trials on virtual Zen 5 and Cascade Lake machines unless said otherwise. */
enum {
    SWEEPS = 3,
    STEPS_PER_OCTAVE = 8,
    WARM_PASSES = 24, /* an L3 that is filled by victims keeps only lines that show reuse: 4 passes read 22 ns, 16 and
                         more 15.6 */
    GRID_MAX = 192,
    NODE_SMALL =
        256, /* bytes; a node per line would be fetched by the adjacent-line prefetcher and cost four times more */
    NODE_LARGE = 512, /* from `large_from` on, where building the cycle would cost more than measuring it */
};
static const size_t smallest_bytes = 4u << 10;
static const size_t large_from = 16u << 20;
static const size_t largest_bytes =
    (size_t)768 << 20; /* three times the largest L3 slice group built so far (256 MiB of one CCD) */
static const size_t least_span =
    64u << 20; /* measure at least up to here: some L3 is effective at twice its declared size */
static const double beyond_declared = 3; /* times the largest declared cache: the plateau of memory must be seen */
/* Places in memory that a point is measured at in each sweep. In a cache of few page colours the misses depend on which
 * pages one happened to get; a small working set costs next to nothing. */
enum { PLACES_MAX = 6, SAMPLES_MAX = SWEEPS * PLACES_MAX };
static const struct {
    double up_to_bytes;
    size_t places;
} places[] = {{1 << 20, 6}, {4 << 20, 4}, {16 << 20, 3}, {INFINITY, 1}};
/* How many of a point's samples count, fastest first. Disturbance only slows down, so the more is dropped the better,
 * but for one thing: in a physically indexed cache of few page colours misses differ from place to place in memory,
 * very unevenly, and the model that is fitted is of their mean. First levels are indexed virtually: there the fastest
 * third counts. A large shared cache is seldom left alone and has many colours: there the faster half counts but for
 * the fastest, which would make the cache look larger; of three samples the fastest. */
static const double first_level_up_to = 96 << 10; /* bytes; beyond, a point may be of a second level */
static const double shared_from = 4 << 20;        /* bytes; caches that large have many colours */
static const double kept_first = 1.0 / 3, kept_later = 0.9;
static const size_t few_samples = 3;

/* Which of the samples, fastest first, count. */
struct kept {
    size_t from, count;
};

static struct kept kept_samples(double bytes, size_t count)
{
    if (count <= few_samples) {
        return (struct kept){0, 1};
    }
    if (bytes > shared_from) {
        return (struct kept){1, count / 2};
    }
    return (struct kept){0, (size_t)((bytes <= first_level_up_to ? kept_first : kept_later) * (double)count)};
}

static size_t declared_largest(const struct machine *machine)
{
    size_t largest = 0;
    for (size_t c = 0; machine->declared && c < machine->declared->class_count; c++) {
        const struct profile_class *class = &machine->declared->classes[c];
        for (size_t i = 0; i < class->cache_count; i++) {
            size_t bytes = class->caches[i].declared_size_bytes;
            largest = bytes > largest ? bytes : largest;
        }
    }
    return largest;
}

/* Where to stop. The declared sizes only say how far to look; without any, as far as memory lets us. */
static size_t choose_end(const struct probe *probe, bool *cut_short)
{
    const struct machine *machine = probe->machine;
    double declared = beyond_declared * (double)declared_largest(machine);
    size_t wanted = declared > 0 ? (size_t)fmax(declared, (double)least_span) : largest_bytes / 2;
    wanted = wanted < largest_bytes ? wanted : largest_bytes;
    wanted = probe->largest_bytes ? probe->largest_bytes : wanted;
    size_t limit = machine->memory_limit_bytes / 2; /* the pool is larger than the working set */
    *cut_short = limit < wanted;
    return *cut_short ? limit : wanted;
}

static int make_grid(struct cache_curve *curve, size_t end)
{
    curve->bytes = calloc(GRID_MAX, sizeof *curve->bytes);
    curve->seconds = calloc(GRID_MAX, sizeof *curve->seconds);
    curve->error_s = calloc(GRID_MAX, sizeof *curve->error_s);
    curve->spread = calloc(GRID_MAX, sizeof *curve->spread);
    curve->repetitions = calloc(GRID_MAX, sizeof *curve->repetitions);
    if (!curve->bytes || !curve->seconds || !curve->error_s || !curve->spread || !curve->repetitions) {
        return -ENOMEM;
    }
    for (int step = 0; curve->count < GRID_MAX; step++) {
        double bytes = (double)smallest_bytes * exp2((double)step / STEPS_PER_OCTAVE);
        if (bytes > (double)end) {
            break;
        }
        double whole = floor(bytes / NODE_LARGE) * NODE_LARGE;
        if (curve->count == 0 || whole > curve->bytes[curve->count - 1]) {
            curve->bytes[curve->count++] = whole;
        }
    }
    return 0;
}

static enum machine_pages pages_of(const struct machine *machine)
{
    return machine->huge_page_bytes ? MACHINE_PAGES_HUGE : MACHINE_PAGES_ORDINARY;
}

int probe_cache_point(struct probe *probe, uint32_t pu, size_t bytes, double *seconds)
{
    const struct machine_traversal what = {
        .bytes = bytes,
        .stride_bytes = bytes >= large_from ? NODE_LARGE : NODE_SMALL,
        .order = MACHINE_CHASE,
        .pages = pages_of(probe->machine),
        .warm_passes = WARM_PASSES,
        .seed = ++probe->seed,
    };
    return machine_traverse(probe->machine, &what, &pu, 1, seconds);
}

static size_t places_of(double bytes)
{
    size_t i = 0;
    while (bytes > places[i].up_to_bytes) {
        i++;
    }
    return places[i].places;
}

/* samples[point * SAMPLES_MAX + …] */
static int sweep(struct probe *probe, uint32_t pu, int number, const struct cache_curve *curve, double *samples,
                 struct servet_error *error)
{
    for (size_t i = 0; i < curve->count; i++) {
        size_t count = places_of(curve->bytes[i]);
        for (size_t place = 0; place < count; place++) {
            int rc = probe_cache_point(probe, pu, (size_t)curve->bytes[i],
                                       &samples[i * SAMPLES_MAX + (size_t)number * count + place]);
            if (rc < 0) {
                return probe_error(error, rc, "measuring cache sizes");
            }
        }
        double done = ((double)number + (double)(i + 1) / (double)curve->count) / SWEEPS;
        probe_tell(probe, done, "cache sizes on PU %u", pu);
    }
    return 0;
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / (double)count;
}

/* What the mean of a point may be off: its standard error, and what dropping the slowest changed. At the foot of a
 * knee a cache of few page colours is either hit or missed as a whole; few samples say little there. */
static double error_of(const double *values, size_t count, double kept_mean)
{
    double mean = mean_of(values, count), squares = 0;
    for (size_t i = 0; i < count; i++) {
        squares += (values[i] - mean) * (values[i] - mean);
    }
    double standard = count > 1 ? sqrt(squares / (double)(count - 1) / (double)count) : 0;
    return hypot(standard, mean - kept_mean);
}

static void reduce(struct cache_curve *curve, double *samples)
{
    for (size_t i = 0; i < curve->count; i++) {
        double *values = &samples[i * SAMPLES_MAX];
        size_t count = SWEEPS * places_of(curve->bytes[i]);
        probe_median(values, count); /* sorts */
        struct kept kept = kept_samples(curve->bytes[i], count);
        curve->seconds[i] = mean_of(values + kept.from, kept.count);
        curve->error_s[i] = error_of(values, count, curve->seconds[i]);
        curve->spread[i] = probe_spread(values, count);
        curve->repetitions[i] = (uint32_t)count;
    }
}

/* The spread of the samples at the point nearest to the level's size. */
static double spread_at(const struct cache_curve *curve, double *samples, double bytes)
{
    size_t best = 0;
    for (size_t i = 1; i < curve->count; i++) {
        if (fabs(log(curve->bytes[i] / bytes)) < fabs(log(curve->bytes[best] / bytes))) {
            best = i;
        }
    }
    return probe_spread(&samples[best * SAMPLES_MAX], SWEEPS * places_of(curve->bytes[best]));
}

static void fill_levels(struct probe_cache *out, const struct cache_level_fit *fits, double *samples)
{
    for (size_t i = 0; i < out->count; i++) {
        out->levels[i] = (struct probe_cache_level){
            .size_bytes = fits[i].shape.bytes,
            .low_bytes = fits[i].low_bytes,
            .high_bytes = fits[i].high_bytes,
            .seconds = fits[i].seconds,
            .repetitions = SWEEPS,
            .spread = spread_at(&out->curve, samples, (double)fits[i].shape.bytes),
        };
    }
}

/* Of levels beyond the second the ways cannot be told: those that are built spread lines over slices by a hash or hold
 * victims, and their sets are seen through those of the second level. */
static const char beyond_second[] = "beyond the second level lines are hidden by the one before it and by hashes";

static int measure_second_ways(struct probe *probe, uint32_t pu, struct probe_cache *out, struct servet_error *error)
{
    struct probe_ways found;
    if (out->count < 2) {
        return 0;
    }
    for (size_t i = 2; i < out->count; i++) {
        out->levels[i].ways_unknown = beyond_second;
    }
    const struct probe_cache_level *first = &out->levels[0];
    struct probe_cache_level *second = &out->levels[1];
    const struct probe_ways_level level = {
        second->size_bytes, first->seconds,
        second->seconds,    out->count > 2 ? out->levels[2].seconds : out->memory_seconds,
        first->ways,        first->way_bytes};
    int rc = probe_ways(probe, pu, &level, &found, error);
    if (rc == 0) {
        second->ways = found.ways;
        second->way_bytes = found.way_bytes;
        second->ways_unknown = found.reason;
    }
    return rc;
}

/* Line size of the first level, ways of the first two. */
static int measure_geometry(struct probe *probe, uint32_t pu, struct probe_cache *out, struct servet_error *error)
{
    struct probe_line found;
    if (out->count == 0) {
        return 0;
    }
    struct probe_cache_level *first = &out->levels[0];
    const struct probe_line_level level = {first->size_bytes, first->seconds,
                                           out->count > 1 ? out->levels[1].seconds : out->memory_seconds};
    int rc = probe_line(probe, pu, &level, &found, error);
    if (rc == 0) {
        first->ways = found.ways;
        first->way_bytes = found.way_bytes;
        first->line_bytes = found.line_bytes;
    }
    return rc < 0 ? rc : measure_second_ways(probe, pu, out, error);
}

/* What the cache sizes were measured in has its TLB measured already; where that was huge pages, programs may not have
 * them. */
static int measure_ordinary_tlb(struct probe *probe, uint32_t pu, struct probe_cache *out, struct servet_error *error)
{
    struct probe_tlb_times times = {.count = 0};
    for (int pass = 0; pass < SWEEPS && out->page_bytes != probe->machine->page_bytes; pass++) {
        int rc = probe_tlb_pass(probe, pu, MACHINE_PAGES_ORDINARY, &times, error);
        if (rc < 0) {
            return rc;
        }
    }
    if (times.count > 0) {
        probe_tlb_conclude(probe, &times, &out->ordinary_tlb);
    }
    return 0;
}

int probe_cache(struct probe *probe, uint32_t pu, struct probe_cache *out, struct servet_error *error)
{
    struct probe_cache result = {.curve.page_bytes = probe->machine->page_bytes};
    struct cache_level_fit fits[CACHE_LEVELS_MAX];
    size_t end = choose_end(probe, &result.cut_short);
    int rc = make_grid(&result.curve, end);
    double *samples = calloc(GRID_MAX * SAMPLES_MAX, sizeof *samples);
    if (rc < 0 || !samples) {
        free(samples);
        probe_cache_free(&result);
        return probe_error(error, -ENOMEM, "measuring cache sizes");
    }
    const enum machine_pages pages = pages_of(probe->machine);
    struct probe_tlb_times tlb_times = {.count = 0};
    rc = probe_tlb_pass(probe, pu, pages, &tlb_times, error);
    for (int number = 0; number < SWEEPS && rc == 0; number++) {
        rc = sweep(probe, pu, number, &result.curve, samples, error);
        rc = rc < 0 ? rc : probe_tlb_pass(probe, pu, pages, &tlb_times, error);
    }
    bool huge = pages == MACHINE_PAGES_HUGE && !machine_denies_huge_pages(probe->machine);
    result.page_bytes = huge ? probe->machine->huge_page_bytes : probe->machine->page_bytes;
    if (rc == 0) {
        probe_tlb_conclude(probe, &tlb_times, &result.tlb);
        for (size_t i = 0; i < result.tlb.count; i++) {
            result.curve.tlb_seconds[result.curve.tlb_count] = result.tlb.levels[i].seconds;
            result.curve.tlb_reach_bytes[result.curve.tlb_count++] = (double)result.tlb.levels[i].reach_bytes;
        }
        reduce(&result.curve, samples);
        cache_isotonic(result.curve.seconds, result.curve.count);
        rc = cache_fit(&result.curve, fits, &result.count, &result.memory_seconds);
        if (rc < 0) {
            rc = profile_error(error, rc, "inferring cache sizes: %s",
                               rc == -EINVAL ? "too little memory for a curve" : strerror(-rc));
        }
    }
    if (rc == 0) {
        fill_levels(&result, fits, samples);
        rc = measure_geometry(probe, pu, &result, error);
        rc = rc < 0 ? rc : measure_ordinary_tlb(probe, pu, &result, error);
    }
    if (rc == 0) {
        result.largest_bytes = (uint64_t)result.curve.bytes[result.curve.count - 1];
        *out = result;
    } else {
        probe_cache_free(&result);
    }
    free(samples);
    return rc;
}

void probe_cache_free(struct probe_cache *result)
{
    free(result->curve.bytes);
    free(result->curve.seconds);
    free(result->curve.error_s);
    free(result->curve.spread);
    free(result->curve.repetitions);
    memset(result, 0, sizeof *result);
}
