/* r, g and l of a BSP computer. Runs are repeated until the best two agree, as Bisseling
 * advises: one run in a drifting machine says little. */
#include "probes/bsp/bsp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/clock.h"
#include "profile/base/random.h"

/* Sweeps of a run: each h is visited in every sweep, in a new order, so that a change meanwhile
 * affects all h. */
enum { SWEEPS = 2 };
/* Batches of a visit: a sweep takes as long for any number of h, and one batch of each visit should
 * be free of interruptions. With the sweeps and the best two runs, the least of eight times
 * counts. */
enum { BATCHES_OF_SWEEP = 1024, BATCHES_MIN = 2, BATCHES_MAX = 8 };
/* Batches of the supersteps that give an estimate of all others. */
enum { BATCHES_OF_GUESS = 4 };
/* A batch this long is far above the clock's step, and short against what interrupts it. */
static const double batch_s = 50e-6;
enum { SUPERSTEPS_MAX = 1000 };
/* Runs made beyond those asked for, until the best two agree; doublings of the interval until g and
 * l are positive. */
enum { MORE_RUNS = 3, ENLARGEMENTS = 3 };

struct study_run {
    double *time;
    double sum; /* over all h: the smaller, the better */
    struct bsp_line line;
};

struct study {
    const struct bsp_backend *backend;
    uint32_t processors;
    enum bsp_packing packing;
    struct random random;
    const struct probe *tell;
    struct servet_error *error;
    struct bsp_curve curve; /* h of the runs; time is scratch */
    double estimate_low_s, estimate_high_s;
    double t0_s;
    uint64_t begun_ns; /* of wall time */
    struct study_run runs[BSP_RUNS_MAX + MORE_RUNS];
    uint32_t run_count;
};

/* -EINVAL and -ENOMEM are not a machine's. */
static int worded(struct servet_error *error, int rc)
{
    return rc < 0 ? profile_error(error, rc, "BSP parameters: %s", strerror(-rc)) : rc;
}

static void free_fit(struct probe_bsp_fit *fit)
{
    free(fit->curve.h);
    free(fit->curve.time);
    *fit = (struct probe_bsp_fit){0};
}

void probe_bsp_free(struct probe_bsp *found)
{
    free_fit(&found->words);
    free_fit(&found->packets);
}

/* -- measuring -- */

static int measure_supersteps(struct study *study, uint32_t h, uint32_t supersteps,
                              uint32_t batches, double *seconds)
{
    struct bsp_superstep what = {h, study->packing, supersteps, batches};
    struct machine *machine = study->backend->supersteps;
    const int rc = machine->ops->superstep
                       ? machine->ops->superstep(machine, study->processors, &what, seconds)
                       : -ENOTSUP;
    if (rc < 0) {
        return profile_error(study->error, rc, "a superstep of %u processors with h = %u (%s): %s",
                             study->processors, h, study->backend->name,
                             probe_machine_strerror(rc));
    }
    if (h == 0) {
        study->t0_s = fmin(study->t0_s, *seconds);
    }
    return 0;
}

/* From `low` to `high`, both among them: every `step`-th, or if it is 0 all, at most BSP_POINTS
 * evenly. */
static int choose_h(struct study *study, uint32_t low, uint32_t high, uint32_t step)
{
    uint32_t span = high - low, points = span + 1 < BSP_POINTS ? span + 1 : BSP_POINTS;
    points = step ? (span + step - 1) / step + 1 : points;
    study->curve.h = malloc(points * sizeof *study->curve.h);
    study->curve.time = malloc(points * sizeof *study->curve.time);
    TRY(worded(study->error, study->curve.h && study->curve.time ? 0 : -ENOMEM));
    for (uint32_t i = 0; i < points; i++) {
        uint32_t far = step ? i * step : (uint32_t)((uint64_t)span * i / (points - 1));
        study->curve.h[i] = low + (far < span ? far : span);
    }
    study->curve.count = points;
    return 0;
}

static uint32_t supersteps_for(const struct study *study, size_t point)
{
    const struct bsp_curve *curve = &study->curve;
    double low = curve->h[0], high = curve->h[curve->count - 1];
    double part = (curve->h[point] - low) / (high - low);
    double seconds =
        study->estimate_low_s + part * (study->estimate_high_s - study->estimate_low_s);
    double steps = batch_s / fmax(seconds, 1e-9);
    return steps < 1 ? 1 : steps > SUPERSTEPS_MAX ? SUPERSTEPS_MAX : (uint32_t)steps;
}

static uint32_t batches_for(const struct study *study)
{
    size_t batches = BATCHES_OF_SWEEP / study->curve.count;
    return batches < BATCHES_MIN   ? BATCHES_MIN
           : batches > BATCHES_MAX ? BATCHES_MAX
                                   : (uint32_t)batches;
}

static int sweep_study(struct study *study, double *time, size_t *order)
{
    for (size_t i = 0; i < study->curve.count; i++) {
        order[i] = i;
    }
    random_shuffle(&study->random, order, study->curve.count, sizeof *order);
    for (size_t i = 0; i < study->curve.count; i++) {
        size_t point = order[i];
        double seconds;
        TRY(measure_supersteps(study, study->curve.h[point], supersteps_for(study, point),
                               batches_for(study), &seconds));
        time[point] = fmin(time[point], seconds);
    }
    return 0;
}

static int make_run(struct study *study)
{
    struct study_run *run = &study->runs[study->run_count++];
    size_t count = study->curve.count;
    FREED size_t *order = malloc(count * sizeof *order);
    run->time = malloc(count * sizeof *run->time);
    TRY(worded(study->error, order && run->time ? 0 : -ENOMEM));
    for (size_t i = 0; i < count; i++) {
        run->time[i] = INFINITY;
    }
    for (int i = 0; i < SWEEPS; i++) {
        TRY(sweep_study(study, run->time, order));
    }
    run->sum = 0;
    for (size_t i = 0; i < count; i++) {
        run->sum += run->time[i];
    }
    struct bsp_curve curve = {study->curve.h, run->time, count};
    return worded(study->error, probe_bsp_least_squares(&curve, &run->line));
}

/* -- judging -- */

/* Where a busy machine makes a superstep a thousand times longer than it is, no number of runs
 * agree, and noise turns g negative over any interval. */
static bool is_patient(const struct study *study, const struct probe_bsp_request *request)
{
    return request->patience_s == 0 ||
           (double)(profile_now_ns() - study->begun_ns) * 1e-9 < request->patience_s;
}

static int by_sum(const void *a, const void *b)
{
    const struct study_run *x = a, *y = b;
    return (x->sum > y->sum) - (x->sum < y->sum);
}

static double best_two_differ(struct study *study)
{
    const struct bsp_curve *curve = &study->curve;
    qsort(study->runs, study->run_count, sizeof *study->runs, by_sum);
    return probe_bsp_difference(&study->runs[0].line, &study->runs[1].line, curve->h[0],
                                curve->h[curve->count - 1]);
}

static int conclude_study(struct study *study, struct probe_bsp_fit *out)
{
    struct probe_bsp_fit fit = {
        .runs = study->run_count, .difference = best_two_differ(study), .curve = study->curve};
    fit.agree = fit.difference <= BSP_AGREEMENT;
    for (size_t i = 0; i < fit.curve.count; i++) {
        fit.curve.time[i] = fmin(study->runs[0].time[i], study->runs[1].time[i]);
    }
    TRY(worded(study->error, probe_bsp_least_squares(&fit.curve, &fit.line)));
    TRY(worded(study->error, probe_bsp_find_bend(&fit.curve, &fit.bend)));
    fit.negative = fit.line.g < 0 || fit.line.l < 0;
    study->curve = (struct bsp_curve){0};
    *out = fit;
    return 0;
}

static int all_runs(struct study *study, const struct probe_bsp_request *request)
{
    bool again = true;
    for (uint32_t i = 0; again; i++) {
        if (study->tell) {
            probe_tell(study->tell, fmin(1, (double)i / request->runs),
                       "BSP %s, p = %u, %s, run %u", study->backend->name, study->processors,
                       study->packing == BSP_WORDS ? "words" : "packets", i + 1);
        }
        TRY(make_run(study));
        again = study->run_count < request->runs ||
                (study->run_count < request->runs + MORE_RUNS &&
                 best_two_differ(study) > BSP_AGREEMENT && is_patient(study, request));
    }
    return 0;
}

static void end_study(struct study *study)
{
    for (uint32_t i = 0; i < study->run_count; i++) {
        free(study->runs[i].time);
    }
    study->run_count = 0;
    free(study->curve.h);
    free(study->curve.time);
    study->curve = (struct bsp_curve){0};
}

/* One interval: runs until the best two agree. The caller ends the study. */
static int examine(struct study *study, const struct probe_bsp_request *request, uint32_t high,
                   struct probe_bsp_fit *out)
{
    double none;
    uint32_t grown = (high - request->h_low) /
                     (request->h_high - request->h_low); /* as many points as asked for */
    TRY(choose_h(study, request->h_low, high, request->h_step * grown));
    /* T(0) is reported for any interval */
    TRY(measure_supersteps(study, 0, 1, BATCHES_OF_GUESS, &none));
    TRY(measure_supersteps(study, request->h_low, 1, BATCHES_OF_GUESS, &study->estimate_low_s));
    TRY(measure_supersteps(study, high, 1, BATCHES_OF_GUESS, &study->estimate_high_s));
    TRY(all_runs(study, request));
    return conclude_study(study, out);
}

static int study_packing(const struct bsp_backend *backend, enum bsp_packing packing,
                         const struct probe_bsp_request *request, const struct probe *tell,
                         struct probe_bsp *found, struct servet_error *error)
{
    struct probe_bsp_fit *out = packing == BSP_WORDS ? &found->words : &found->packets;
    FREED struct study *study = calloc(1, sizeof *study);
    TRY(worded(error, study ? 0 : -ENOMEM));
    *study = (struct study){.backend = backend,
                            .processors = found->processors,
                            .packing = packing,
                            .random = {request->seed + found->processors},
                            .tell = tell,
                            .error = error,
                            .t0_s = INFINITY,
                            .begun_ns = profile_now_ns()};
    uint32_t high = request->h_high;
    int rc = examine(study, request, high, out);
    for (uint32_t i = 1; rc == 0 && out->negative && i <= ENLARGEMENTS && high <= BSP_H_MAX / 2 &&
                         is_patient(study, request);
         i++) {
        high *= 2;
        free_fit(out);
        end_study(study);
        rc = examine(study, request, high, out);
        out->enlargements = i;
    }
    out->patience_ended = rc == 0 && !is_patient(study, request);
    if (packing == BSP_WORDS) {
        found->t0_s = study->t0_s;
    }
    end_study(study);
    return rc;
}

static int measure_rate(const struct bsp_backend *backend, struct probe_bsp *found,
                        struct servet_error *error)
{
    const struct machine_ops *ops = backend->rates->ops;
    for (size_t i = 0; i < BSP_LENGTHS; i++) {
        double rate;
        const int rc = ops->daxpy
                           ? ops->daxpy(backend->rates, found->processors, bsp_length(i), &rate)
                           : -ENOTSUP;
        if (rc < 0) {
            return profile_error(error, rc, "DAXPY on %u processors: %s", found->processors,
                                 probe_machine_strerror(rc));
        }
        found->rate[i] = fmax(found->rate[i], rate);
        if (rate > found->flop_per_s) {
            found->flop_per_s = rate;
            found->length = bsp_length(i);
        }
    }
    return 0;
}

/* r drifts with the clock of the processor: the best of two rates, before and after the
 * supersteps. */
static int both_packings(const struct bsp_backend *backend, const struct probe_bsp_request *request,
                         const struct probe *tell, struct probe_bsp *found,
                         struct servet_error *error)
{
    TRY(measure_rate(backend, found, error));
    TRY(study_packing(backend, BSP_WORDS, request, tell, found, error));
    TRY(study_packing(backend, BSP_PACKETS, request, tell, found, error));
    return measure_rate(backend, found, error);
}

int probe_bsp(const struct bsp_backend *backend, uint32_t processors,
              const struct probe_bsp_request *request, const struct probe *tell,
              struct probe_bsp *out, struct servet_error *error)
{
    FREED_BY(probe_bsp_free) struct probe_bsp found = {.processors = processors};
    TRY(both_packings(backend, request, tell, &found, error));
    *out = TAKE(found);
    return 0;
}
