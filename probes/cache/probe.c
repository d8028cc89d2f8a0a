/* The measuring plan of a latency curve: which sizes, how often, how far apart in time, and what
 * is left out when the time is short. Levels are fitted in fit.c, the line size is measured in
 * line.c. */
#include "probes/cache/probe.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- one load: what every figure of this folder is made of -- */

/* Nodes are CACHE_NODE_LARGE from here on, where building the cycle would cost more than measuring
 * it. */
static const size_t large_from = 16u << 20;

int probe_cache_load(struct probe *probe, uint32_t pu, struct machine_traversal what,
                     double *seconds)
{
    what.warm_passes = MACHINE_WARM_PASSES;
    what.seed = what.seed ? what.seed : ++probe->seed;
    return probe_machine_traverse(probe->machine, &what, &pu, 1, seconds);
}

int probe_cache_point(struct probe *probe, uint32_t pu, size_t bytes, uint64_t seed,
                      double *seconds)
{
    const struct machine_traversal what = {.bytes = bytes,
                                           .stride_bytes = bytes >= large_from ? CACHE_NODE_LARGE
                                                                               : MACHINE_NODE_BYTES,
                                           .pages = machine_pages(probe->machine),
                                           .seed = seed};
    return probe_cache_load(probe, pu, what, seconds);
}

/* -- where the curve ends -- */

/* A declared size says how far to look at first; what nobody declared, or declared too small,
 * shows in one working set several times larger: where loads take longer there, the curve has not
 * come to memory, and goes on. One look costs less than the curve up to there would on each of the
 * many machines where nothing comes. */
static const size_t largest_bytes =
    (size_t)768
    << 20; /* three times the largest L3 slice group built so far (256 MiB of one CCD) */
static const size_t least_span =
    64u << 20; /* measure at least up to here: some L3 is effective at twice its declared size */
/* Times the largest declared cache: the plateau of memory must be seen. A look goes so much
 * farther: what is declared half as large, or not at all, has its plateau of memory there. */
static const double farther = 3;
/* So many times as long is no plateau yet. A smaller rise than a level's, since a knee of which
 * only the foot is seen is told too small: 71,680 KiB as 61,440 where it was 1.17 times, 53,248 as
 * 44,032 at 1.21. Page walks of 4 KiB pages make up to 1.13 of a virtual Zen 4. */
static const double no_plateau = 1.15;

/* Interference only slows down: of so many samples the fastest counts. */
enum { FAR_SAMPLES = 3 };

/* The pool is larger than the working set. */
static size_t memory_for(const struct machine *machine)
{
    return machine->memory_limit_bytes / 2;
}

/* The declared sizes only say how far to look; without any, as far as memory lets us. */
static size_t largest_set(const struct probe *probe, bool *cut_short)
{
    const struct machine *machine = probe->machine;
    double declared = farther * (double)probe_cache_declared_largest(probe_cache_declared(machine));
    size_t wanted = declared > 0 ? (size_t)fmax(declared, (double)least_span) : largest_bytes / 2;
    wanted = wanted < largest_bytes ? wanted : largest_bytes;
    wanted = probe->largest_bytes ? probe->largest_bytes : wanted;
    *cut_short = memory_for(machine) < wanted;
    return *cut_short ? memory_for(machine) : wanted;
}

static size_t far_beyond(const struct probe *probe, size_t end)
{
    const double most = fmin((double)largest_bytes, (double)memory_for(probe->machine));
    const double far = fmin(farther * (double)end, most);
    return probe->largest_bytes > 0 || far <= (double)end ? 0 : (size_t)far;
}

/* -- the plan -- */

/* The measuring plan; figures from trials on virtual Zen 5 and Cascade Lake machines unless said
 * otherwise. */
static const size_t smallest_bytes = 4u << 10;
/* From here on points take most of the time, and half of them will do: where one is near a knee
 * those around it are measured afterwards. */
static const size_t sparse_from = 128u << 20;
/* Places in memory that a point is measured at in each sweep. In a cache of few page colours the
 * misses depend on which pages one happened to get; a small working set costs next to nothing. */
static const struct {
    double up_to_bytes;
    size_t places;
} places[] = {{1 << 20, 6}, {4 << 20, 4}, {16 << 20, 3}, {INFINITY, 1}};
/* Around the knees that the sweeps gave: more samples, and finer steps where points are not
 * sparse. */
enum { REFINED_STEPS = 16, REFINED_ROUNDS = 6 };
/* Seconds that this may take, or, where it is more, half as long as the sweeps; and that a first
 * look has however late it is. */
static const double refined_s = 3;
/* Time on the processor that a budget must leave: inferring levels. */
static const double fit_s = 0.6;

/* Whole nodes. */
static double grid_bytes(int step, int steps_per_octave)
{
    return floor((double)smallest_bytes * exp2((double)step / steps_per_octave) /
                 CACHE_NODE_LARGE) *
           CACHE_NODE_LARGE;
}

/* After `step`, the next one of every `each`th size. */
static int next_step(int step, int each)
{
    const bool sparse = grid_bytes(step, CACHE_STEPS_PER_OCTAVE) >= (double)sparse_from;
    return step + (sparse ? CACHE_FEW_EACH : each);
}

/* Every `each`th size. */
static void make_grid(struct cache_samples *samples, size_t end, int each)
{
    for (int step = 0; samples->count < CACHE_POINTS_MAX; step = next_step(step, each)) {
        double bytes = grid_bytes(step, CACHE_STEPS_PER_OCTAVE);
        if (bytes > (double)end) {
            break;
        }
        probe_cache_samples_add(samples, bytes, false);
    }
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
    double begun_s;
    size_t end;          /* bytes: of the largest working set */
    uint32_t line_bytes; /* of the first level, before it is measured; 0: not known */
    bool over;           /* the time for sweeps */
    struct cache_samples *samples;
    struct probe_cache *result;
    struct servet_error *error;
};

static int take_sample(const struct measurement *m, struct cache_point *point, size_t place)
{
    double seconds;
    const int rc =
        probe_cache_point(m->probe, m->pu, (size_t)point->bytes, point->seed + place, &seconds);
    TRY(probe_error(m->error, rc, "measuring cache sizes"));
    probe_cache_point_put(point, place, seconds);
    return 0;
}

/* Seconds until the time granted is over, or a part of it for each of the sweeps and not the one
 * for what comes after them, beside what one more sample and the fit take. */
static double seconds_left(const struct measurement *m, bool sweeps)
{
    const struct probe *probe = m->probe;
    struct machine *machine = probe->machine;
    const double share = sweeps ? CACHE_SWEEPS / (CACHE_SWEEPS + 1.0) : 1;
    const double until_s = m->begun_s + share * (probe->deadline - m->begun_s);
    const double needed_s = machine->guard.last_s + fit_s * probe_machine_pace(machine);
    return probe->deadline > 0 ? until_s - needed_s - probe_elapsed(probe) : INFINITY;
}

/* For a look at the curve, or one more. */
static size_t few_places(double bytes)
{
    return (places_of(bytes) + 1) / 2;
}

/* A look ends before the largest working sets, which take the most time, where a machine is thirty
 * times slower than others. It has some seconds in any case, or there would be nothing to infer
 * from. */
static bool is_look_over(const struct measurement *m, bool looks)
{
    const double gone_s = probe_elapsed(m->probe) - m->begun_s;
    return looks ? seconds_left(m, false) < 0 && gone_s > refined_s : seconds_left(m, true) < 0;
}

/* Measures the points from `first` on, as long as there is time. */
static int sweep_curve(struct measurement *m, size_t first, bool looks)
{
    const struct cache_samples *samples = m->samples;
    const double done = m->result->sweeps, parts = CACHE_SWEEPS + 1;
    for (size_t i = first; i < samples->count; i++) {
        struct cache_point *point = &m->samples->points[i];
        const size_t wanted = looks ? few_places(point->bytes) : places_of(point->bytes);
        for (size_t place = 0; place < wanted; place++) {
            if (is_look_over(m, looks)) {
                m->over = true;
                return 0;
            }
            TRY(take_sample(m, point, place));
        }
        probe_tell(m->probe, (done + (double)i / (double)samples->count) / parts,
                   "cache sizes on PU %u", m->pu);
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

/* Adds the points between around one knee. */
static void add_points(const struct cache_level_fit *level, double end,
                       struct cache_samples *samples)
{
    const double low = (double)level->shape.bytes / probe_cache_knee;
    const double high = fmin(probe_cache_knee * (double)level->shape.bytes, end);
    if (level->shape.bytes >= sparse_from) {
        return;
    }
    for (int step = (int)ceil(log2(low / (double)smallest_bytes) * REFINED_STEPS);
         grid_bytes(step, REFINED_STEPS) < high; step++) {
        probe_cache_samples_add(samples, grid_bytes(step, REFINED_STEPS), true);
    }
}

static bool near_knee(const struct probe_cache *found, const struct cache_level_fit *fits,
                      double bytes)
{
    for (size_t i = 0; i < found->count; i++) {
        double ratio = bytes / (double)fits[i].shape.bytes;
        if (ratio > 1 / probe_cache_knee && ratio < probe_cache_knee) {
            return true;
        }
    }
    return false;
}

/* Takes further samples around all knees, where the curve is known to bend. Round after round, as
 * long as the time lasts. */
static int refine_fits(const struct measurement *m, const struct cache_level_fit *fits)
{
    const double begun_s = probe_elapsed(m->probe);
    const double until_s = begun_s + fmax(refined_s, (begun_s - m->begun_s) / 2);
    for (size_t i = 0; i < m->result->count; i++) {
        add_points(&fits[i], (double)m->end, m->samples);
    }
    for (int round = 0; round < REFINED_ROUNDS; round++) {
        for (size_t i = 0; i < m->samples->count; i++) {
            struct cache_point *point = &m->samples->points[i];
            const bool near = near_knee(m->result, fits, point->bytes);
            const size_t wanted = near ? places_of(point->bytes) : 0;
            /* other places than the sweeps', two lots in turns: so the samples of each lie as far
               apart as the time allows, and what disturbs for a second leaves some alone */
            const size_t first = wanted * (1 + (size_t)round % (REFINED_ROUNDS / CACHE_SWEEPS));
            for (size_t place = first; place < first + wanted; place++) {
                if (probe_elapsed(m->probe) > until_s || seconds_left(m, false) < 0) {
                    return 0;
                }
                TRY(take_sample(m, point, place));
            }
        }
        probe_tell(m->probe,
                   (CACHE_SWEEPS + (double)(round + 1) / REFINED_ROUNDS) / (CACHE_SWEEPS + 1),
                   "cache sizes on PU %u, around the knees", m->pu);
    }
    return 0;
}

/* Sizes of a core's own levels, which the fit may take for likely. */
static void set_declared(const struct measurement *m, struct cache_curve *curve)
{
    const struct profile_class *declared = probe_cache_declared(m->probe->machine);
    for (size_t i = 0; declared && i < declared->cache_count; i++) {
        const struct profile_cache *cache = &declared->caches[i];
        const bool here = cache->pus.count == 0 || profile_set_has(&cache->pus, m->pu);
        if (here && cache->level <= CACHE_CORE_LEVELS &&
            curve->declared_count < CACHE_CORE_LEVELS) {
            curve->declared_bytes[curve->declared_count++] = cache->declared_size_bytes;
        }
    }
}

static void set_conditions(const struct measurement *m, struct cache_curve *curve)
{
    const struct probe_tlb *tlb = &m->result->tlb;
    curve->page_bytes = m->probe->machine->page_bytes;
    for (size_t i = 0; i < tlb->count; i++) {
        curve->tlb_seconds[curve->tlb_count] = tlb->levels[i].seconds;
        curve->tlb_reach_bytes[curve->tlb_count++] = (double)tlb->levels[i].reach_bytes;
    }
    set_declared(m, curve);
}

/* Fits levels to all that is measured so far. */
static int conclude_fits(const struct measurement *m, struct cache_level_fit *fits)
{
    struct probe_cache *result = m->result;
    FREED_BY(probe_cache_curve_free) struct cache_curve all = {0};
    probe_cache_curve_free(&result->curve);
    if (probe_cache_samples_curve(m->samples, false, &result->curve) < 0 ||
        probe_cache_samples_curve(m->samples, true, &all) < 0) {
        return probe_error(m->error, -ENOMEM, "measuring cache sizes");
    }
    set_conditions(m, &all);
    int rc = probe_cache_fit(&all, fits, &result->count, &result->memory_seconds);
    return rc == 0 ? 0
                   : profile_error(m->error, rc, "inferring cache sizes: %s",
                                   rc == -EINVAL ? "too little memory for a curve" : strerror(-rc));
}

/* The fastest of some loads in so many bytes, or (`extra`) the least that translation takes
 * there. */
static int least_of(struct probe *probe, const struct measurement *m, size_t bytes, bool extra,
                    double *seconds)
{
    *seconds = INFINITY;
    for (int i = 0; i < FAR_SAMPLES; i++) {
        double one;
        TRY(extra ? probe_tlb_extra(probe, m->pu, bytes, m->line_bytes, &one)
                  : probe_cache_point(probe, m->pu, bytes, 0, &one));
        *seconds = fmin(*seconds, one);
    }
    return 0;
}

/* Does a load take so much longer far out than at the end that memory's plateau is not in sight?
 * Page tables fall out of the caches where much memory is visited, and TLBs reach as far as they
 * do: what translation takes longer than up to the end is no level's. */
static int look_beyond(const struct measurement *m, size_t far, bool *goes_on)
{
    double end_s, far_s, end_tlb_s = 0, far_tlb_s = 0;
    struct probe apart = *m->probe; /* whose seeds are others than those that count up */
    apart.seed = (m->probe->seed << 32) - m->end;
    TRY(least_of(&apart, m, m->end, false, &end_s));
    TRY(least_of(&apart, m, far, false, &far_s));
    if (far_s >= no_plateau * end_s) {
        TRY(least_of(&apart, m, m->end, true, &end_tlb_s));
        TRY(least_of(&apart, m, far, true, &far_tlb_s));
    }
    *goes_on = far_s - fmax(0, far_tlb_s - end_tlb_s) >= no_plateau * end_s;
    return 0;
}

/* The curve goes on where a look shows that it should, octave by octave: a level that nobody
 * declared ends somewhere before what was looked at. */
static int extend(struct measurement *m, bool looks)
{
    const size_t far = far_beyond(m->probe, m->end);
    bool goes_on = far > 0;
    while (goes_on && m->end < far && seconds_left(m, true) > 0) {
        TRY(probe_error(m->error, look_beyond(m, far, &goes_on), "measuring cache sizes"));
        const size_t first = m->samples->count;
        m->end = !goes_on ? m->end : 2 * m->end < far ? 2 * m->end : far;
        make_grid(m->samples, m->end, looks ? CACHE_FEW_EACH : 1);
        TRY(sweep_curve(m, first, looks));
    }
    return 0;
}

/* A run that has a budget looks at every other size first, since it may have no time for more. */
static int look_first(struct measurement *m)
{
    make_grid(m->samples, m->end, CACHE_FEW_EACH);
    m->result->coarse = 1;
    TRY(sweep_curve(m, 0, true));
    return extend(m, true);
}

/* Sweeps, and passes over the TLB between them. */
static int measure_curve(struct measurement *m)
{
    struct probe *probe = m->probe;
    struct probe_cache *result = m->result;
    const enum machine_pages pages = machine_pages(probe->machine);
    struct probe_tlb_times times = {.line_bytes = m->line_bytes};
    TRY(probe_tlb_pass(probe, m->pu, pages, &times, m->error));
    TRY(probe->deadline > 0 ? look_first(m) : 0);
    while (result->sweeps < CACHE_SWEEPS) {
        make_grid(m->samples, m->end, 1);
        TRY(sweep_curve(m, 0, false));
        TRY(result->sweeps == 0 && result->coarse == 0 ? extend(m, false) : 0);
        if (m->over) {
            break;
        }
        TRY(probe_tlb_pass(probe, m->pu, pages, &times, m->error));
        result->sweeps++;
    }
    result->shortened = result->sweeps < CACHE_SWEEPS;
    probe_tlb_conclude(probe, &times, &result->tlb);
    return 0;
}

/* In a quota that runs out, or beside others, their data take the place of the cycle's while it
 * stands still. Then a level counts that stands for a declared one, and of one sweep that which is
 * declared as large: no other sweep shows it. */
static void drop_unconfirmed(const struct measurement *m, size_t throttled)
{
    struct probe_cache *result = m->result;
    const struct machine *machine = m->probe->machine;
    const bool once = result->sweeps + result->coarse < 2;
    struct probe_cache_pairing pairs;
    size_t kept = 0;
    if (!(machine->cpu_quota > 0) ||
        (machine->guard.throttled == throttled && !probe_machine_was_busy(machine))) {
        return;
    }
    probe_cache_pair(result, probe_cache_declared(machine), NULL, &pairs);
    for (size_t i = 0; i < result->count; i++) {
        if (once ? pairs.equal[i] : pairs.declared[i] != NULL) {
            result->levels[kept++] = result->levels[i];
        }
    }
    result->unconfirmed = result->count - kept;
    result->count = kept;
}

/* The TLB of ordinary pages, where the curve is of huge ones: programs may not have those. */
static int measure_ordinary_tlb(const struct measurement *m)
{
    struct probe *probe = m->probe;
    struct probe_cache *out = m->result;
    const uint32_t measured = out->count > 0 ? out->levels[0].line_bytes : 0;
    struct probe_tlb_times times = {.line_bytes = measured ? measured : m->line_bytes};
    for (int pass = 0; pass < CACHE_SWEEPS && out->page_bytes != probe->machine->page_bytes;
         pass++) {
        if (probe_late(probe)) {
            out->shortened = true;
            break;
        }
        TRY(probe_tlb_pass(probe, m->pu, MACHINE_PAGES_ORDINARY, &times, m->error));
    }
    if (times.count > 0) {
        probe_tlb_conclude(probe, &times, &out->ordinary_tlb);
    }
    return 0;
}

static int measure_caches(struct measurement *m)
{
    struct probe *probe = m->probe;
    struct probe_cache *result = m->result;
    struct cache_level_fit fits[CACHE_LEVELS_MAX];
    const size_t throttled = probe->machine->guard.throttled;
    m->line_bytes = probe_line_first(probe->machine, m->pu);
    TRY(measure_curve(m));
    const bool huge = machine_pages(probe->machine) == MACHINE_PAGES_HUGE &&
                      !machine_denies_huge_pages(probe->machine);
    result->page_bytes = huge ? probe->machine->huge_page_bytes : probe->machine->page_bytes;
    TRY(conclude_fits(m, fits));
    if (result->count > 0 && seconds_left(m, false) > 0) {
        TRY(refine_fits(m, fits));
        TRY(conclude_fits(m, fits));
    }
    fill_levels(result, fits, m->samples);
    result->largest_bytes = (uint64_t)result->curve.bytes[result->curve.count - 1];
    TRY(probe_cache_line(probe, m->pu, result, m->error));
    drop_unconfirmed(m, throttled);
    return measure_ordinary_tlb(m);
}

int probe_cache(struct probe *probe, uint32_t pu, struct probe_cache *out,
                struct servet_error *error)
{
    FREED_BY(probe_cache_free) struct probe_cache result = {.count = 0};
    FREED struct cache_samples *samples = calloc(1, sizeof *samples);
    TRY(probe_error(error, samples ? 0 : -ENOMEM, "measuring cache sizes"));
    samples->seed = probe->seed << 32; /* far from those that count up */
    struct measurement m = {.probe = probe,
                            .pu = pu,
                            .begun_s = probe_elapsed(probe),
                            .end = largest_set(probe, &result.cut_short),
                            .samples = samples,
                            .result = &result,
                            .error = error};
    TRY(measure_caches(&m));
    *out = TAKE(result);
    return 0;
}

void probe_cache_free(struct probe_cache *result)
{
    probe_cache_curve_free(&result->curve);
    memset(result, 0, sizeof *result);
}
