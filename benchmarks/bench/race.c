/* Successive halving, then a play-off of those that it could not tell apart. */
#include "benchmarks/bench/race.h"

#include <stdint.h>

/* After so many rounds, one of so many stays. Three rounds are the fewest of which a median lets
 * one bad run pass; with each step about as many runs are made as with the one before. */
static const struct {
    size_t round, of;
} rungs[] = {{1, 2}, {3, 4}};

/* A run that takes so many times as long as any of the best so far is stopped: it would take time
 * from those that are near. Other work on the machine seldom costs a run as much. */
#define FAR 2.0
/* In less than that, seconds, little is saved, and a busy machine doubles the start of a
 * program. */
#define LEAST_LIMIT 1.0

/* Rounds from which on intervals that lie apart decide. */
#define LEAST_FOR_INTERVAL 3

/* As many of `count` as stay at that rung: two, for one bad round not to decide. */
static size_t places(size_t rung, size_t count)
{
    size_t stay = (count + rungs[rung].of - 1) / rungs[rung].of;
    return stay > 2 ? stay : 2;
}

/* Of those that run the lowest median, of others whoever stayed longer; then those without. */
int bench_race_order(const struct racer *a, const struct racer *b)
{
    if (!a->rounds || !b->rounds) {
        return !a->rounds - !b->rounds;
    }
    if (a->state != b->state) {
        return a->state < b->state ? -1 : 1;
    }
    if (a->state != RACE_RUNS && a->rounds != b->rounds) {
        return a->rounds > b->rounds ? -1 : 1;
    }
    return (a->median > b->median) - (a->median < b->median);
}

size_t bench_race_best(const struct race *race)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < race->count; i++) {
        const struct racer *one = &race->racers[i];
        if (one->rounds && one->state <= RACE_BEHIND &&
            (best == SIZE_MAX || bench_race_order(one, &race->racers[best]) < 0)) {
            best = i;
        }
    }
    return best;
}

static size_t running(const struct race *race)
{
    size_t count = 0;
    for (size_t i = 0; i < race->count; i++) {
        count += race->racers[i].state == RACE_RUNS;
    }
    return count;
}

/* The best is not judged by itself, and without a figure of the first there is no ratio. */
static double limit_of(const struct race *race, size_t candidate)
{
    size_t best = bench_race_best(race);
    if (best == SIZE_MAX || best == candidate || candidate == 0) {
        return 0;
    }
    double limit_s = FAR * race->racers[best].longest_s;
    return limit_s > LEAST_LIMIT ? limit_s : LEAST_LIMIT;
}

static void take(struct racer *racer, size_t round, const struct race_run *run)
{
    racer->values[round] = run->value;
    racer->rounds = round + 1;
    racer->median = bench_statistics_median(racer->values, racer->rounds, &racer->interval);
    racer->longest_s = run->seconds > racer->longest_s ? run->seconds : racer->longest_s;
}

/* False: the race is over. */
static bool run_one(struct race *race, size_t candidate, size_t round)
{
    struct race_run run;
    struct racer *racer = &race->racers[candidate];
    enum race_state state = race->run(race->context, candidate, limit_of(race, candidate), &run);
    if (state == RACE_OVER) {
        return false;
    }
    if (state == RACE_RUNS) {
        take(racer, round, &run);
    }
    racer->state = state;
    race->runs++;
    return true;
}

/* The first run of all found nothing in the machine's page cache: it is made again, and the better
 * of both counts. */
static bool again(struct race *race)
{
    struct racer *first = &race->racers[0];
    const struct racer before = *first;
    if (race->count < 2 || first->state != RACE_RUNS) {
        return true;
    }
    bool goes_on = run_one(race, 0, 0);
    if (first->state == RACE_RUNS && first->values[0] > before.values[0]) {
        *first = before;
    }
    return goes_on;
}

static bool run_round(struct race *race, size_t round)
{
    for (size_t i = 0; i < race->count; i++) {
        if (race->racers[i].state == RACE_RUNS && !run_one(race, i, round)) {
            return false;
        }
    }
    return round > 0 || again(race);
}

/* Of three values the interval reaches from the least to the most, which is less than 95 %; but
 * then no run of the one was as fast as any of the other. */
static void drop_by_interval(struct race *race)
{
    size_t best = bench_race_best(race);
    for (size_t i = 1; i < race->count; i++) {
        struct racer *one = &race->racers[i];
        if (one->state == RACE_RUNS && i != best &&
            one->interval.low > race->racers[best].interval.high) {
            one->state = RACE_BEHIND;
        }
    }
}

static void drop_last(struct race *race)
{
    size_t last = SIZE_MAX;
    for (size_t i = 1; i < race->count; i++) {
        if (race->racers[i].state == RACE_RUNS &&
            (last == SIZE_MAX || race->racers[i].median >= race->racers[last].median)) {
            last = i;
        }
    }
    race->racers[last].state = RACE_BEHIND;
}

/* False: the race is over. */
static bool halve(struct race *race)
{
    for (size_t round = 0; round < BENCH_LEAST_ROUNDS && running(race); round++) {
        if (!run_round(race, round)) {
            return false;
        }
        if (round + 1 >= LEAST_FOR_INTERVAL) {
            drop_by_interval(race);
        }
        for (size_t rung = 0; rung < sizeof rungs / sizeof *rungs; rung++) {
            while (rungs[rung].round == round + 1 && running(race) > places(rung, race->count)) {
                drop_last(race);
            }
        }
    }
    return true;
}

bool bench_race_equal(const struct race *race, size_t candidate)
{
    const size_t first = bench_race_best(race);
    const struct racer *best = &race->racers[first], *one = &race->racers[candidate];
    return candidate == first ||
           (one->rounds >= BENCH_LEAST_ROUNDS && best->rounds >= BENCH_LEAST_ROUNDS &&
            one->state <= RACE_BEHIND && one->interval.low <= best->interval.high &&
            best->interval.low <= one->interval.high);
}

/* Is the first, which ran before, no worse than that one, as far as intervals show? */
static bool first_stays(const struct race *race, size_t other)
{
    const struct racer *first = &race->racers[0], *one = &race->racers[other];
    return first->rounds && first->state <= RACE_BEHIND &&
           (first->rounds < BENCH_LEAST_ROUNDS || one->rounds < BENCH_LEAST_ROUNDS ||
            first->interval.low <= one->interval.high);
}

size_t bench_race_choice(const struct race *race)
{
    const size_t best = bench_race_best(race);
    size_t choice = best;
    if (best != SIZE_MAX && first_stays(race, best)) {
        return 0;
    }
    for (size_t i = 0; best != SIZE_MAX && i < race->count; i++) {
        if (bench_race_equal(race, i) && !first_stays(race, i) &&
            race->simpler(race->context, i, choice)) {
            choice = i;
        }
    }
    return choice;
}

/* Where its median may lie at best: of fewer runs than decide, as far below as the best's do. */
static double low_of(const struct racer *one, const struct racer *best)
{
    return one->rounds < LEAST_FOR_INTERVAL ? one->median * best->interval.low / best->interval.high
                                            : one->interval.low;
}

/* All that may be as good as the best are in again, the others are behind. The one of them with the
 * fewest rounds; SIZE_MAX: the best stands alone, or all have RACE_ROUNDS. */
static size_t next_of_play_off(struct race *race)
{
    size_t best = bench_race_best(race), next = SIZE_MAX;
    for (size_t i = 0; best != SIZE_MAX && i < race->count; i++) {
        struct racer *one = &race->racers[i];
        if (!one->rounds || one->state > RACE_BEHIND) {
            continue;
        }
        const struct racer *first = &race->racers[best];
        one->state =
            i == best || low_of(one, first) <= first->interval.high ? RACE_RUNS : RACE_BEHIND;
        if (one->state == RACE_RUNS && one->rounds < RACE_ROUNDS &&
            (next == SIZE_MAX || one->rounds < race->racers[next].rounds)) {
            next = i;
        }
    }
    return running(race) > 1 ? next : SIZE_MAX;
}

void bench_race(struct race *race)
{
    if (!halve(race)) {
        return;
    }
    for (size_t next; (next = next_of_play_off(race)) != SIZE_MAX;) {
        if (!run_one(race, next, race->racers[next].rounds)) {
            return;
        }
    }
}
