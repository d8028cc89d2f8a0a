/* The measuring plan of a latency curve: which sizes, how often, how far apart in time, and what
 * is left out when the time is short. Where the curve ends is decided in end.c, levels are fitted
 * in fit.c; what is asked for afterwards is in geometry.c. */
#include "probes/cache/cache.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The measuring plan; figures from trials on virtual Zen 5 and Cascade Lake machines unless said
 * otherwise. */
enum {
    SWEEPS = 3,
    SPARSE_EACH = 2,  /* from `sparse_from` on */
    LOOK_EACH = 2,    /* of those, where a budget may not leave time for all */
    WARM_PASSES = 16, /* an L3 that is filled by victims keeps only lines that show reuse: 4 passes
                         read 22 ns, 16 and more 15.6 */
    GRID_MAX = 160,
    NODE_SMALL = 256, /* bytes; a node per line would be fetched by the adjacent-line prefetcher and
                         cost four times more */
    NODE_LARGE =
        512, /* from `large_from` on, where building the cycle would cost more than measuring it */
};
static const size_t smallest_bytes = 4u << 10;
static const size_t large_from = 16u << 20;
/* From here on points take most of the time, and half of them will do: where one is near a knee
 * those around it are measured afterwards. */
static const size_t sparse_from = 128u << 20;
/* Places in memory that a point is measured at in each sweep. In a cache of few page colours the
 * misses depend on which pages one happened to get; a small working set costs next to nothing. */
static const struct {
    double up_to_bytes;
    size_t places;
} places[] = {{1 << 20, 6}, {4 << 20, 4}, {16 << 20, 3}, {INFINITY, 1}};
/* Around the knees that the sweeps gave: more samples, and finer steps. */
enum { REFINED_STEPS = 16, REFINED_ROUNDS = 6 };
static const double all_places_up_to = 4 << 20;           /* bytes */
static const double refined_from = 0.5, refined_to = 2.2; /* times the size of the level */
static const double refined_s = 3;       /* that this may take, about, or, where it is more, */
static const double refined_share = 0.5; /* of the time that the sweeps took */
/* Of the processor, for which a budget must leave time: inferring levels, and the finer shapes of
 * the last one. */
static const double fit_s = 0.6, fine_fit_s = 0.8;
static const double geometry_s = 1.5; /* and the TLB */
/* What a sample takes, from times on this project's virtual machines: */
static const double timed_loads = 12288;
static const double operation_s = 150e-6; /* waking the worker, timing */
static const double node_s = 12e-9;       /* building the cycle, per node */
static const double warm_overlap = 8;     /* independent loads of a warm pass at once */

/* Whole nodes. */
static double grid_bytes(int step, int steps_per_octave)
{
    return floor((double)smallest_bytes * exp2((double)step / steps_per_octave) / NODE_LARGE) *
           NODE_LARGE;
}

/* After `step`, the next one of every `each`th size. */
static int next_step(int step, int each)
{
    const bool sparse = grid_bytes(step, CACHE_STEPS_PER_OCTAVE) >= (double)sparse_from;
    return step + (sparse && each < SPARSE_EACH ? SPARSE_EACH : each);
}

/* Every `each`th size. */
static void make_grid(struct cache_samples *samples, size_t end, int each)
{
    for (int step = 0; samples->count < GRID_MAX; step = next_step(step, each)) {
        double bytes = grid_bytes(step, CACHE_STEPS_PER_OCTAVE);
        if (bytes > (double)end) {
            break;
        }
        probe_cache_samples_add(samples, bytes, false);
    }
}

enum machine_pages probe_cache_pages(const struct machine *machine)
{
    return machine->huge_page_bytes ? MACHINE_PAGES_HUGE : MACHINE_PAGES_ORDINARY;
}

static int measure_at(struct probe *probe, uint32_t pu, size_t bytes, uint64_t seed,
                      double *seconds)
{
    const struct machine_traversal what = {
        .bytes = bytes,
        .stride_bytes = bytes >= large_from ? NODE_LARGE : NODE_SMALL,
        .order = MACHINE_CHASE,
        .pages = probe_cache_pages(probe->machine),
        .warm_passes = WARM_PASSES,
        .seed = seed,
    };
    return probe_machine_traverse(probe->machine, &what, &pu, 1, seconds);
}

int probe_cache_point(struct probe *probe, uint32_t pu, size_t bytes, double *seconds)
{
    return measure_at(probe, pu, bytes, ++probe->seed, seconds);
}

static size_t places_of(double bytes)
{
    size_t i = 0;
    while (bytes > places[i].up_to_bytes) {
        i++;
    }
    return places[i].places;
}

/* One curve in the making: what every step of the plan works on. */
struct measurement {
    struct probe *probe;
    uint32_t pu;
    size_t end;          /* bytes: of the largest working set */
    uint32_t line_bytes; /* of the first level, before it is measured; 0: not known */
    struct cache_samples *samples;
    struct probe_cache *result;
    struct servet_error *error;
};

static int take_sample(const struct measurement *m, struct cache_point *point, size_t place,
                       double *seconds)
{
    int rc = measure_at(m->probe, m->pu, (size_t)point->bytes, point->seed + place, seconds);
    if (rc < 0) {
        return probe_error(m->error, rc, "measuring cache sizes");
    }
    probe_cache_point_put(point, place, *seconds);
    return 0;
}

/* Seconds that a sample of `bytes` takes, about, where a load takes `load_s`. By this and not by
 * the clock, so that a run that is resumed asks the same questions. */
static double sample_cost(double bytes, double load_s)
{
    double nodes = bytes / (bytes >= (double)large_from ? NODE_LARGE : NODE_SMALL);
    return operation_s + nodes * (node_s + WARM_PASSES * load_s / warm_overlap) +
           timed_loads * load_s;
}

/* -- what all of it takes, before anything is measured -- */

/* A load's latency where the declared caches are those of most processors. */
static double expected_load(const struct machine *machine, double bytes)
{
    static const double seconds[] = {1.5e-9, 5e-9, 20e-9, 100e-9};
    static const double usual[] = {48 << 10, 1 << 20, 32 << 20};
    const struct profile_class *declared = probe_cache_declared(machine);
    size_t level = 0;
    if (!declared || declared->cache_count == 0) {
        while (level < 3 && bytes > usual[level]) {
            level++;
        }
        return seconds[level];
    }
    while (level < declared->cache_count &&
           bytes > (double)declared->caches[level].declared_size_bytes) {
        level++;
    }
    return seconds[level == declared->cache_count ? 3 : level > 2 ? 2 : level];
}

static double expected_sweep(const struct machine *machine, double end)
{
    double sum = 0;
    for (int step = 0; grid_bytes(step, CACHE_STEPS_PER_OCTAVE) <= end; step = next_step(step, 1)) {
        double bytes = grid_bytes(step, CACHE_STEPS_PER_OCTAVE);
        sum += (double)places_of(bytes) * sample_cost(bytes, expected_load(machine, bytes));
    }
    return sum;
}

static double expected_refining(double sweep_s)
{
    return fmax(refined_s, SWEEPS * refined_share * sweep_s);
}

/* A look beyond the end of the curve. */
static double expected_far(const struct probe *probe, size_t end)
{
    const double far = (double)probe_cache_far(probe, end), near = (double)end;
    const double load_s = expected_load(probe->machine, INFINITY);
    return far > 0 ? CACHE_FAR_LOOKS * (sample_cost(near, load_s) + sample_cost(far, load_s)) : 0;
}

/* Of a curve that ends there. */
static double expected_curve(const struct probe *probe, size_t end)
{
    const double sweep_s = expected_sweep(probe->machine, (double)end);
    return SWEEPS * sweep_s + expected_far(probe, end) + expected_refining(sweep_s) + geometry_s;
}

/* What takes so much time of the processor takes so long beside what else runs. */
static double processor(const struct probe *probe, double seconds)
{
    return seconds * probe_machine_pace(probe->machine);
}

/* For a look at the curve, or one more. */
static size_t few_places(double bytes)
{
    return (places_of(bytes) + 1) / 2;
}

/* A look is held to the budget: on a machine that is thirty times slower than others it ends before
 * the largest working sets, which cost the most, and the curve with it. It has some seconds in any
 * case, or there would be nothing to infer from. */
static bool look_is_over(const struct probe *probe, double begun_s, double next_s)
{
    return probe_would_be_late(probe, next_s + processor(probe, fit_s)) &&
           probe_elapsed(probe) + next_s > begun_s + CACHE_LOOK_LEAST_S;
}

/* Measures the points from `first` on. */
static int sweep(const struct measurement *m, int number, size_t first,
                 size_t (*places_at)(double bytes))
{
    const struct probe *probe = m->probe;
    const struct machine *machine = probe->machine;
    struct cache_samples *samples = m->samples;
    const double all_s = expected_curve(probe, m->end), begun_s = probe_elapsed(probe);
    double done_s = number * expected_sweep(machine, (double)m->end);
    for (size_t i = first; i < samples->count; i++) {
        const double bytes = samples->points[i].bytes;
        const struct cache_point *before = i > 0 ? &samples->points[i - 1] : NULL;
        if (places_at == few_places && before &&
            look_is_over(probe, begun_s,
                         (double)few_places(bytes) * sample_cost(bytes, before->seconds[0][0]))) {
            samples->count = i;
            break;
        }
        for (size_t place = 0; place < places_at(samples->points[i].bytes); place++) {
            double seconds;
            int rc = take_sample(m, &samples->points[i], place, &seconds);
            if (rc < 0) {
                return rc;
            }
        }
        done_s += (double)places_of(bytes) * sample_cost(bytes, expected_load(machine, bytes));
        probe_tell(probe, done_s / all_s, "cache sizes on PU %u", m->pu);
    }
    return 0;
}

static void fill_levels(struct probe_cache *out, const struct cache_level_fit *fits,
                        struct cache_samples *samples)
{
    for (size_t i = 0; i < out->count; i++) {
        out->levels[i] = (struct probe_cache_level){
            .size_bytes = fits[i].shape.bytes,
            .low_bytes = fits[i].low_bytes,
            .high_bytes = fits[i].high_bytes,
            .policy = fits[i].shape.policy,
            .seconds = fits[i].seconds,
            .repetitions = out->sweeps + out->coarse,
            .spread = probe_cache_samples_spread(samples, (double)fits[i].shape.bytes),
        };
    }
}

/* -- around the knees -- */

/* What all samples so far took. */
static double swept_cost(const struct cache_samples *samples)
{
    double sum = 0;
    for (size_t i = 0; i < samples->count; i++) {
        const struct cache_point *point = &samples->points[i];
        for (size_t place = 0; place < CACHE_PLACES_MAX; place++) {
            for (size_t j = 0; j < point->repeats[place]; j++) {
                sum += sample_cost(point->bytes, point->seconds[place][j]);
            }
        }
    }
    return sum;
}

/* Of small working sets as many as in a sweep; of large ones, which take long, fewer. */
static size_t refined_places(double bytes)
{
    return bytes <= all_places_up_to ? places_of(bytes) : few_places(bytes);
}

/* Adds the points between around one knee, if there is time for as many samples of them as the
 * sweeps took of others: fewer would not tell which are disturbed. Returns what is left. */
static double add_points(const struct cache_level_fit *level, double end, double left_s,
                         struct cache_samples *samples)
{
    const double low = refined_from * (double)level->shape.bytes;
    const double high = fmin(refined_to * (double)level->shape.bytes, end);
    double cost = 0;
    for (double bytes = low; bytes < high; bytes *= exp2(1.0 / REFINED_STEPS)) {
        cost += SWEEPS * (double)refined_places(bytes) *
                sample_cost(bytes, level->seconds * level->rise);
    }
    if (cost >= left_s) {
        return left_s;
    }
    for (int step = (int)ceil(log2(low / (double)smallest_bytes) * REFINED_STEPS);
         grid_bytes(step, REFINED_STEPS) < high; step++) {
        probe_cache_samples_add(samples, grid_bytes(step, REFINED_STEPS), true);
    }
    return left_s - cost;
}

/* Seconds that are left of the budget. */
static double granted(const struct probe *probe)
{
    return probe->deadline > 0 ? probe->deadline - probe_elapsed(probe) : INFINITY;
}

static bool near_knee(const struct probe_cache *found, const struct cache_level_fit *fits,
                      double bytes)
{
    for (size_t i = 0; i < found->count; i++) {
        double ratio = bytes / (double)fits[i].shape.bytes;
        if (ratio > refined_from && ratio < refined_to) {
            return true;
        }
    }
    return false;
}

/* Takes further samples around all knees, where the curve is known to bend. Round after round, as
 * long as the time lasts. */
static int refine(const struct measurement *m, const struct cache_level_fit *fits)
{
    const struct probe *probe = m->probe;
    const double swept_s = SWEEPS * expected_sweep(probe->machine, (double)m->end);
    double left_s = fmin(fmax(refined_s, refined_share * swept_cost(m->samples)),
                         granted(probe) - processor(probe, fit_s));
    double unplanned_s = left_s;
    for (size_t i = 0; i < m->result->count; i++) {
        unplanned_s = add_points(&fits[i], (double)m->end, unplanned_s, m->samples);
    }
    for (int round = 0; round < REFINED_ROUNDS; round++) {
        for (size_t i = 0; i < m->samples->count; i++) {
            struct cache_point *point = &m->samples->points[i];
            const bool near = near_knee(m->result, fits, point->bytes);
            const size_t wanted = near ? refined_places(point->bytes) : 0;
            /* other places than the sweeps', two lots in turns: so the samples of each lie as far
               apart as the time allows, and what disturbs for a second leaves some alone */
            const size_t first = wanted * (1 + (size_t)round % (REFINED_ROUNDS / SWEEPS));
            for (size_t place = first; place < first + wanted && left_s > 0; place++) {
                double seconds;
                int rc = take_sample(m, point, place, &seconds);
                if (rc < 0) {
                    return rc;
                }
                left_s -= sample_cost(point->bytes, seconds);
            }
            left_s = fmin(left_s, granted(probe) - processor(probe, fit_s));
        }
        double part = (double)(round + 1) / REFINED_ROUNDS;
        probe_tell(probe,
                   (swept_s + part * expected_refining(swept_s / SWEEPS)) /
                       expected_curve(probe, m->end),
                   "cache sizes on PU %u, around the knees", m->pu);
    }
    return 0;
}

static void set_conditions(const struct probe *probe, const struct probe_cache *result,
                           struct cache_curve *curve)
{
    curve->page_bytes = probe->machine->page_bytes;
    curve->tlb_looked_bytes = result->tlb.looked_bytes;
    for (size_t i = 0; i < result->tlb.count; i++) {
        curve->tlb_seconds[curve->tlb_count] = result->tlb.levels[i].seconds;
        curve->tlb_reach_bytes[curve->tlb_count++] = (double)result->tlb.levels[i].reach_bytes;
    }
}

/* Fits levels to what is measured so far; at the end with the points between, and with the second
 * look at the last level, if there is time for it. */
static int conclude(const struct measurement *m, bool at_end, struct cache_level_fit *fits)
{
    struct probe_cache *result = m->result;
    struct cache_curve fine = {0};
    probe_cache_curve_free(&result->curve);
    int rc = probe_cache_samples_curve(m->samples, false, &result->curve);
    rc = rc < 0 || !at_end ? rc : probe_cache_samples_curve(m->samples, true, &fine);
    if (rc < 0) {
        return probe_error(m->error, rc, "measuring cache sizes");
    }
    set_conditions(m->probe, result, &result->curve);
    set_conditions(m->probe, result, &fine);
    result->curve.fine = at_end ? &fine : NULL;
    result->curve.quick = !at_end || granted(m->probe) < processor(m->probe, fit_s + fine_fit_s);
    rc = probe_cache_fit(&result->curve, fits, &result->count, &result->memory_seconds);
    result->curve.fine = NULL;
    probe_cache_curve_free(&fine);
    return rc == 0 ? 0
                   : profile_error(m->error, rc, "inferring cache sizes: %s",
                                   rc == -EINVAL ? "too little memory for a curve" : strerror(-rc));
}

/* What one sweep of all sizes takes, by the model: that is of this project's machines. */
static double modelled_sweep(const struct cache_samples *look, size_t end)
{
    double sum = 0;
    for (int step = 0; grid_bytes(step, CACHE_STEPS_PER_OCTAVE) <= (double)end;
         step = next_step(step, 1)) {
        double bytes = grid_bytes(step, CACHE_STEPS_PER_OCTAVE);
        size_t at = (size_t)(step / LOOK_EACH);
        const struct cache_point *point = &look->points[at < look->count ? at : look->count - 1];
        sum += (double)places_of(bytes) * sample_cost(bytes, point->seconds[0][0]);
    }
    return sum;
}

/* The curve goes on where a look shows that it should, octave by octave: a level that nobody
 * declared ends somewhere before what was looked at. */
static int extend(struct measurement *m, int each, size_t (*places_at)(double bytes))
{
    struct probe *probe = m->probe;
    const size_t far = probe_cache_far(probe, m->end);
    const double needed_s = processor(probe, fit_s) + expected_far(probe, m->end);
    bool goes_on = far > 0;
    while (goes_on && m->end < far && granted(probe) > needed_s) {
        int rc = probe_cache_goes_on(probe, m->pu, &(struct cache_far){m->end, far, m->line_bytes},
                                     &goes_on);
        if (rc < 0) {
            return probe_error(m->error, rc, "measuring cache sizes");
        }
        const size_t first = m->samples->count;
        m->end = !goes_on ? m->end : 2 * m->end < far ? 2 * m->end : far;
        make_grid(m->samples, m->end, each);
        rc = sweep(m, 0, first, places_at);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* A run that has a budget looks at every other size first, since it may have no time for more: it
 * tells levels, and how long a sweep takes. */
static int look(struct measurement *m, double *sweep_s)
{
    double begun = probe_elapsed(m->probe);
    make_grid(m->samples, m->end, LOOK_EACH);
    int rc = sweep(m, 0, 0, few_places);
    if (rc == 0) {
        m->result->coarse = 1;
        /* what is taken over from an interrupted run takes no time */
        const double pace = fmax(1, (probe_elapsed(m->probe) - begun) / swept_cost(m->samples));
        rc = extend(m, LOOK_EACH, few_places);
        *sweep_s = pace * modelled_sweep(m->samples, m->end);
    }
    return rc;
}

/* Sweeps, and passes over the TLB between them. */
static int measure_curve(struct measurement *m)
{
    struct probe *probe = m->probe;
    struct probe_cache *result = m->result;
    const enum machine_pages pages = probe_cache_pages(probe->machine);
    struct probe_tlb_times times = {.line_bytes = m->line_bytes};
    double sweep_s = 0;
    int rc = probe_tlb_pass(probe, m->pu, pages, &times, m->error);
    if (rc == 0 && probe->deadline > 0) {
        rc = look(m, &sweep_s);
    }
    while (rc == 0 && result->sweeps < SWEEPS &&
           granted(probe) > sweep_s + processor(probe, fit_s)) {
        make_grid(m->samples, m->end, 1);
        rc = sweep(m, (int)result->sweeps, 0, places_of);
        if (rc == 0 && result->sweeps == 0 && result->coarse == 0) {
            rc = extend(m, 1, places_of);
        }
        rc = rc < 0 ? rc : probe_tlb_pass(probe, m->pu, pages, &times, m->error);
        result->sweeps++;
    }
    result->shortened = result->sweeps < SWEEPS;
    if (rc == 0) {
        probe_tlb_conclude(probe, &times, &result->tlb);
    }
    return rc;
}

static int measure(struct measurement *m)
{
    struct probe *probe = m->probe;
    struct probe_cache *result = m->result;
    struct cache_level_fit fits[CACHE_LEVELS_MAX];
    int rc = probe_line_first(probe, m->pu, &m->line_bytes);
    rc = rc < 0 ? probe_error(m->error, rc, "measuring the line size") : measure_curve(m);
    const bool huge = probe_cache_pages(probe->machine) == MACHINE_PAGES_HUGE &&
                      !machine_denies_huge_pages(probe->machine);
    result->page_bytes = huge ? probe->machine->huge_page_bytes : probe->machine->page_bytes;
    rc = rc < 0 ? rc : conclude(m, false, fits);
    if (rc == 0 && result->count > 0 && granted(probe) > processor(probe, fit_s)) {
        rc = refine(m, fits);
        rc = rc < 0 ? rc : conclude(m, true, fits);
    }
    result->shortened |= result->curve.quick && result->count > 0;
    if (rc == 0) {
        fill_levels(result, fits, m->samples);
        if (probe_cache_declared(probe->machine)) {
            probe_cache_prefer_declared(result, probe_cache_declared(probe->machine), m->pu);
            probe_cache_leave_out_between(result, probe_cache_declared(probe->machine), m->pu);
        }
        result->largest_bytes = (uint64_t)result->curve.bytes[result->curve.count - 1];
        rc = probe_cache_geometry(probe, m->pu, result, m->error);
    }
    return rc < 0 ? rc : probe_cache_ordinary_tlb(probe, m->pu, SWEEPS, result, m->error);
}

int probe_cache(struct probe *probe, uint32_t pu, struct probe_cache *out,
                struct servet_error *error)
{
    struct probe_cache result = {.count = 0};
    struct cache_samples *samples = calloc(1, sizeof *samples);
    if (!samples) {
        return probe_error(error, -ENOMEM, "measuring cache sizes");
    }
    samples->seed = probe->seed << 32; /* far from those that count up */
    struct measurement m = {.probe = probe,
                            .pu = pu,
                            .end = probe_cache_end(probe, &result.cut_short),
                            .samples = samples,
                            .result = &result,
                            .error = error};
    int rc = measure(&m);
    free(samples);
    if (rc < 0) {
        probe_cache_free(&result);
        return rc;
    }
    *out = result;
    return 0;
}

void probe_cache_free(struct probe_cache *result)
{
    probe_cache_curve_free(&result->curve);
    memset(result, 0, sizeof *result);
}
