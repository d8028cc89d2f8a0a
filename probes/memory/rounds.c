/* Rounds of copies, of single PUs and of pairs by turns, until each pair's figure is settled
 * (rounds.h). */
#include "probes/memory/rounds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/layers.h"
#include "probes/pairs/stopping.h"

/* LEARN_FROM: pairs; the first idea of the spread comes from so many. Without it classes are judged
 * by no noise. */
enum { LEARN_FROM = 16 };

int probe_memory_rounds_init(struct memory_rounds *rounds, struct probe *probe, size_t bytes)
{
    const size_t pus = probe->machine->pus.count, pairs = probe_pair_count(pus);
    *rounds = (struct memory_rounds){.probe = probe,
                                     .bytes = bytes,
                                     .fewest_rounds = REPEAT_MEDIAN_MOST,
                                     .slower = calloc(pairs + 1, sizeof *rounds->slower),
                                     .spreads = calloc(pairs + 1, sizeof *rounds->spreads),
                                     .scale = calloc(pus, sizeof *rounds->scale),
                                     .logs = calloc(pairs + 1, sizeof *rounds->logs)};
    TRY(rounds->slower && rounds->spreads && rounds->logs && rounds->scale ? 0 : -ENOMEM);
    for (size_t i = 0; i < pus; i++) {
        rounds->scale[i] = 1;
    }
    return 0;
}

void probe_memory_rounds_free(struct memory_rounds *rounds)
{
    free(rounds->slower);
    free(rounds->spreads);
    free(rounds->logs);
    free(rounds->scale);
}

/* -- alone -- */

static void keep_alone(struct memory_rounds *rounds, double bytes_per_s)
{
    if (rounds->alone_count < MEMORY_ALONE_MAX) {
        rounds->alone[rounds->alone_count++] = bytes_per_s;
    }
}

double probe_memory_rounds_reference(const struct memory_rounds *rounds)
{
    double best = 0;
    for (size_t i = 0; i < rounds->alone_count; i++) {
        best = fmax(best, rounds->alone[i]);
    }
    return best;
}

int probe_memory_rounds_one(struct memory_rounds *rounds, uint32_t pu)
{
    while (!probe_repeat_median_settled(rounds->alone, rounds->alone_count)) {
        double alone;
        TRY(probe_memory_copy(rounds->probe, rounds->bytes, pu, &alone));
        keep_alone(rounds, alone);
    }
    return 0;
}

/* PUs that get less than the best one are measured until that is settled, and scaled. */
static int scale_slow(struct memory_rounds *rounds, const double *alone, size_t count)
{
    const uint32_t *ids = rounds->probe->machine->pus.ids;
    const struct machine_copy what = probe_memory_what(rounds->probe, rounds->bytes, -1);
    double best = probe_memory_rounds_reference(rounds);
    for (size_t i = 0; i < count; i++) {
        best = fmax(best, alone[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (probe_memory_collides(alone[i], best) && !probe_late(rounds->probe)) {
            struct profile_scaling_point settled = {.workers = 1};
            TRY(probe_memory_settled(rounds->probe, &what, &ids[i], &settled));
            rounds->scale[i] =
                probe_memory_collides(settled.bytes_per_s, best) ? best / settled.bytes_per_s : 1;
        }
    }
    return 0;
}

int probe_memory_rounds_alone(struct memory_rounds *rounds)
{
    const struct profile_set *pus = &rounds->probe->machine->pus;
    FREED double *alone = malloc((pus->count + 1) * sizeof *alone);
    size_t done = 0;
    int rc = alone ? 0 : -ENOMEM;
    while (rc == 0 && done < pus->count && !(done > 0 && probe_late(rounds->probe))) {
        probe_tell(rounds->probe, 0, "memory of PU %u", pus->ids[done]);
        rc = probe_memory_copy(rounds->probe, rounds->bytes, pus->ids[done], &alone[done]);
        done += rc == 0;
    }
    if (rc == 0 || (rc == -ETIME && done > 0)) {
        rc = scale_slow(rounds, alone, done);
    }
    for (size_t i = 0; i < done; i++) {
        keep_alone(rounds, alone[i] * rounds->scale[i]);
    }
    return rc == -ETIME && done > 0 ? 0 : rc;
}

/* -- pairs -- */

/* One pair's rounds. */
struct pair_rounds {
    double slower[REPEAT_MEDIAN_MOST];
    double as_they_are[REPEAT_MEDIAN_MOST]; /* `slower` is scaled */
};

static double scale_of(const struct memory_rounds *rounds, uint32_t pu)
{
    return rounds->scale[profile_set_position(&rounds->probe->machine->pus, pu)];
}

/* One PU alone, as long as that adds something, then all pairs at the same time. Where the rest of
 * the budget is another probe's, that is all there is. */
static int one_round(struct memory_rounds *rounds, const uint32_t *pus, size_t pairs, size_t round,
                     struct pair_rounds *out)
{
    struct probe *probe = rounds->probe;
    double rates[2 * CONCURRENT_MOST], alone;
    rounds->not_concurrent = false;
    if (rounds->alone_count < MEMORY_ALONE_MAX) {
        TRY(probe_memory_copy(probe, rounds->bytes, pus[0], &alone));
        keep_alone(rounds, alone * scale_of(rounds, pus[0]));
    }
    if (probe->machine->until_s > 0 && probe_late(probe)) {
        return -ETIME;
    }
    const struct machine_copy what = probe_memory_what(probe, rounds->bytes, -1);
    int rc = probe_machine_copy_together(probe->machine, &what, pus, 2 * pairs, rates);
    rounds->not_concurrent = rc == -EAGAIN;
    /* pairs that never met have no figure, as those there was no time for */
    TRY(rounds->not_concurrent ? -ETIME : rc);
    for (size_t k = 0; k < pairs; k++) {
        out[k].slower[round] = fmin(rates[2 * k] * scale_of(rounds, pus[2 * k]),
                                    rates[2 * k + 1] * scale_of(rounds, pus[2 * k + 1]));
        out[k].as_they_are[round] = fmin(rates[2 * k], rates[2 * k + 1]);
    }
    return 0;
}

/* Interference only takes bandwidth away, so a pair that once got the middle between colliding and
 * all that one gets alone does not collide, and most pairs are asked no more. Not of the first
 * ones, of which the spread is learned, nor where every pair's figure is asked for. */
static bool is_clear(const struct memory_rounds *rounds, const struct pair_rounds *pair,
                     size_t done)
{
    return done == 1 && !rounds->thorough && !rounds->probe->exhaustive &&
           rounds->ratios >= LEARN_FROM &&
           probe_memory_is_clear(pair->slower[0], probe_memory_rounds_reference(rounds));
}

/* A run that is late does with one round. */
static bool is_settled(const struct memory_rounds *rounds, const struct pair_rounds *pairs,
                       size_t count, size_t done)
{
    bool settled = true;
    for (size_t k = 0; k < count && settled; k++) {
        settled =
            is_clear(rounds, &pairs[k], done) || probe_repeat_median_settled(pairs[k].slower, done);
    }
    return settled || (done > 0 && probe_late(rounds->probe));
}

static void learn(struct memory_rounds *rounds, const struct pair_rounds *pairs, size_t count,
                  size_t done)
{
    double sorted[LEARN_FROM];
    for (size_t k = 0; k < count && done > 1; k++) {
        if (rounds->ratios < probe_pair_count(rounds->probe->machine->pus.count)) {
            rounds->logs[rounds->ratios++] = log(pairs[k].slower[1] / pairs[k].slower[0]);
        }
    }
    /* whether a class's pairs agree is asked while it is measured */
    if (rounds->ratios <= LEARN_FROM) {
        memcpy(sorted, rounds->logs, rounds->ratios * sizeof *sorted);
        rounds->spread = probe_layers_spread(sorted, rounds->ratios);
    }
}

static void keep_pairs(struct memory_rounds *rounds, const struct pair_position *pairs,
                       size_t count, struct pair_rounds *found, size_t done)
{
    for (size_t k = 0; k < count; k++) {
        const size_t pair =
            probe_pair_index(rounds->probe->machine->pus.count, pairs[k].i, pairs[k].j);
        rounds->slower[pair] = profile_median_value(found[k].as_they_are, done);
        rounds->spreads[pair] = probe_spread(found[k].slower, done);
    }
}

int probe_memory_rounds_ask(void *argument, const struct pair_position *pairs, size_t count,
                            double *bytes_per_s, double *figures)
{
    struct memory_rounds *rounds = argument;
    const struct profile_set *set = &rounds->probe->machine->pus;
    const struct probe_pairs *all = &rounds->probe->pairs;
    const double part = all->planned > 0 ? (double)all->done / (double)all->planned : 1;
    struct pair_rounds found[CONCURRENT_MOST];
    uint32_t pus[2 * CONCURRENT_MOST] = {0};
    size_t done = 0;
    for (size_t k = 0; k < count; k++) {
        pus[2 * k] = set->ids[pairs[k].i];
        pus[2 * k + 1] = set->ids[pairs[k].j];
    }
    probe_tell(rounds->probe, part, "memory of PUs %u and %u", pus[0], pus[1]);
    for (; !is_settled(rounds, found, count, done); done++) {
        int rc = one_round(rounds, pus, count, done, found);
        if (done > 0 && rounds->not_concurrent) {
            break;
        }
        TRY(rc);
    }
    learn(rounds, found, count, done);
    keep_pairs(rounds, pairs, count, found, done);
    for (size_t k = 0; k < count; k++) {
        figures[k] = bytes_per_s[k] = profile_median_value(found[k].slower, done);
    }
    if (done < rounds->fewest_rounds && !is_clear(rounds, found, done)) {
        rounds->fewest_rounds = (uint32_t)done;
    }
    return 0;
}

int probe_memory_rounds_again(struct memory_rounds *rounds, const struct pair_position *pair,
                              double *bytes_per_s)
{
    const size_t at = probe_pair_index(rounds->probe->machine->pus.count, pair->i, pair->j);
    const double slower = rounds->slower[at];
    const bool collided =
        probe_memory_collides(*bytes_per_s, probe_memory_rounds_reference(rounds));
    double again, figure;
    rounds->thorough = true;
    int rc = probe_memory_rounds_ask(rounds, pair, 1, &again, &figure);
    rounds->thorough = false;
    if (rc < 0 || (collided && again <= *bytes_per_s)) {
        rounds->slower[at] = slower;
        return rc == -ETIME ? 0 : rc;
    }
    *bytes_per_s = again;
    return 0;
}
