/* Ways of the second level, and its size once more, by group testing (cache.h): the only method
 * that needs neither large pages nor physical addresses, and no model of what evicts; its price is
 * hundreds of short chases, so it gives up rather than take seconds. To see how often it is right:
 * tests/probes/test_ways.c. */
#include "probes/cache/cache.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/random.h"
#include "profile/base/statistics.h"

enum {
    WARM_PASSES = 16,
    LOOKS = 2,          /* that agree, */
    LOOKS_MAX = 4,      /* of so many at most */
    COUNT_LOOKS = 9,    /* where lines are counted: of a look in twelve that is disturbed */
    COUNT_KEPT = 7,     /* hardly ever more than two are among so many; the fastest count */
    ROUNDS = 3,         /* of such looks, where it is hard to tell */
    TRIES = 8,          /* in other memory each */
    SHOWING_MAX = 5,    /* of those, in which lines conflict; of these */
    AGREEING = 3,       /* must agree: counts that scatter agree by chance */
    TESTS_MAX = 1600,   /* of all tries together, each some 0.4 ms; 100 a try are usual */
    LINES_MAX = 4096,   /* of the pool: 16 MiB of 4 KiB pages, time for more is not worth it */
    LINES_ENOUGH = 192, /* of the pool, where pages are large: of more, most are of other sets */
    WAYS_MAX = 64,      /* the most ever built */
    COUNTED_MAX = 2 * WAYS_MAX, /* lines of a set that none can be spared of */
    LEAST_LINE = 16,            /* bytes: a way holds one at least */
    GROUPS = 32,      /* of lines, a try: three tries tell half as many sets from as many */
    WAY_STEPS = 12,   /* sizes of a way that are thought of, each twice the one before */
    CROWD = 3,        /* times the ways of the first level: of random replacement 6 % hit then */
    USUAL_WAYS = 12,  /* of a first level whose ways are not known */
    TOLERANCE_OF = 4, /* a quarter of the ways: at random, a line too many hardly ever misses */
};
static const double pool_share = 1.5; /* of the lines that fill the cache */
/* Missing lines that are no accident: three, and 2 % of those visited, as much as latencies are
 * off. */
static const double least_missing = 3, accident = 0.02;
/* Lines of one set that miss in each turn: one line too many makes two of a random policy, and more
 * of others. */
static const double one_too_many = 0.8;
/* Of the lines that miss: what is left when one of the last that conflict goes is less than half.
 * Before, when more than one too many are there, a line less makes them fewer, but not so few. */
static const double few = 0.125, half = 0.5;
static const double hard_to_tell = 1;   /* lines: as much as noise makes of 50 */
static const double most_quiet = 1.5;   /* lines that miss of those that are to miss none */
static const double least_crowd = 1.25; /* times the ways of the first level: LRU keeps none then */
static const double alike = 1.1;        /* times slower: a look is not disturbed */
/* A group of so many lines, times the sets that there may be, has one of a set in half of all
 * cases, which says the most. */
static const double group_of_sets = 0.7;
static const double curve_off = 0.35;  /* octaves, that the curve's size is off by at times */
static const double surely = 3;        /* twenty times likelier than any other, as a logarithm */
static const double least_rise = 1.25; /* to the level behind it */
static const double most_bytes = 256 << 20; /* of the pool and what is behind */

struct search {
    struct probe *probe;
    uint32_t pu;
    const struct probe_ways_level *level;
    size_t stride; /* of lines that share a set of the first level */
    uint32_t pool; /* lines, a stride apart; behind them as many others */
    uint64_t seed; /* of the memory */
    struct random random;
    double base_s; /* of a hit in the level over one in the first, measured here */
    uint32_t *set, *trial, *visited; /* `pool` of each, as of those below */
    uint32_t *quiet; /* visited with all others: they crowd the first level and miss not this one */
    uint32_t *group; /* from behind the pool, at random */
    size_t count, quiet_count, tests;
    size_t grain; /* bytes: a way has a set of its own for each so many */
    double least; /* lines: fewer that miss are none */
};

/* -- looking -- */

static int measure(struct search *search, const uint32_t *lines, size_t count,
                   enum machine_order order, double *seconds)
{
    const struct machine_traversal what = {
        .bytes = 2 * (size_t)search->pool * search->stride,
        .stride_bytes = search->stride,
        .nodes = lines,
        .node_count = count,
        .order = order,
        .pages = MACHINE_PAGES_ORDINARY,
        .warm_passes = WARM_PASSES,
        .seed = search->seed,
    };
    return probe_machine_traverse(search->probe->machine, &what, &search->pu, 1, seconds);
}

/* The least of several looks: what disturbs only ever slows down. As long as no other is as fast as
 * the fastest, one more is taken: two are both disturbed often enough beside a load to spoil a try,
 * which asks hundreds of times. */
static int fastest(struct search *search, const uint32_t *lines, size_t count,
                   enum machine_order order, double *seconds)
{
    double least = INFINITY;
    for (int look = 0, agreeing = 0; agreeing < LOOKS && look < LOOKS_MAX; look++) {
        double once;
        int rc = measure(search, lines, count, order, &once);
        if (rc < 0) {
            return rc;
        }
        agreeing = once * alike < least ? 1 : agreeing + (once < least * alike);
        least = fmin(least, once);
    }
    *seconds = least;
    return 0;
}

/* What the lines take longer than as many of the same pages that lie in different sets: misses of
 * the TLB are in both. */
static int measure_extra(struct search *search, const uint32_t *lines, size_t count,
                         double *seconds)
{
    double together, apart;
    int rc = fastest(search, lines, count, MACHINE_CHASE, &together);
    rc = rc < 0 ? rc : fastest(search, lines, count, MACHINE_SPREAD, &apart);
    if (rc == 0) {
        *seconds = together - apart;
    }
    return rc;
}

/* The same by many looks: a policy that draws, or that stays in the round in which it was begun,
 * makes now more lines miss and now fewer. What is slowest may be disturbed. */
static int mean_extra(struct search *search, const uint32_t *lines, size_t count, double *seconds)
{
    double together[COUNT_LOOKS], apart[COUNT_LOOKS], sum = 0;
    for (int look = 0; look < COUNT_LOOKS; look++) {
        int rc = measure(search, lines, count, MACHINE_CHASE, &together[look]);
        rc = rc < 0 ? rc : measure(search, lines, count, MACHINE_SPREAD, &apart[look]);
        if (rc < 0) {
            return rc;
        }
    }
    profile_sort(together, COUNT_LOOKS);
    profile_sort(apart, COUNT_LOOKS);
    for (int look = 0; look < COUNT_KEPT; look++) {
        sum += together[look] - apart[look];
    }
    *seconds = sum / COUNT_KEPT;
    return 0;
}

typedef int extra_function(struct search *search, const uint32_t *lines, size_t count,
                           double *seconds);

/* How many of these and the quiet lines miss in a turn. -ETIME: there is no time left to ask. */
static int missing_of(struct search *search, const uint32_t *lines, size_t count,
                      extra_function *extra_of, double *missing)
{
    const size_t all = count + search->quiet_count;
    double extra = 0;
    if (probe_late(search->probe)) {
        return -ETIME;
    }
    memcpy(search->visited, lines, count * sizeof *lines);
    memcpy(search->visited + count, search->quiet, search->quiet_count * sizeof *lines);
    int rc = extra_of(search, search->visited, all, &extra);
    *missing = (double)all * (extra - search->base_s) /
               (search->level->miss_seconds - search->level->seconds);
    return rc;
}

static int do_conflict(struct search *search, const uint32_t *lines, size_t count, bool *conflict)
{
    double missing = 0;
    int rc = count > 0 ? missing_of(search, lines, count, measure_extra, &missing) : 0;
    *conflict = missing >= least_missing + accident * (double)(count + search->quiet_count);
    search->tests++;
    return rc;
}

static double crowded_by(const struct search *search)
{
    return search->level->first_ways > 0 ? search->level->first_ways : USUAL_WAYS;
}

/* Lines of the pool that miss the first level and not the second. They leave the set. Where there
 * are not as many as crowd the first level, because they conflict, there are none: too few would
 * hit, and what misses the first level would pass for a miss of the second. */
static int choose_quiet(struct search *search)
{
    const double expected = search->level->seconds - search->level->first_seconds;
    const double miss = search->level->miss_seconds - search->level->seconds;
    const double least = least_crowd * crowded_by(search);
    size_t count = (size_t)(CROWD * crowded_by(search));
    count = count < search->pool / 2 ? count : search->pool / 2;
    double missing = INFINITY;
    search->quiet_count = 0;
    while ((double)count > least) {
        search->base_s = expected; /* the lines that are looked at are all of these */
        int rc =
            missing_of(search, search->set + search->pool - count, count, mean_extra, &missing);
        if (rc < 0) {
            return rc;
        }
        if (missing < most_quiet) {
            break;
        }
        count /= 2;
    }
    search->quiet_count = (double)count > least ? count : 0;
    search->base_s = expected;
    if (search->quiet_count > 0) {
        search->base_s = fmax(expected + missing * miss / (double)count, 0);
    }
    search->count = search->pool - search->quiet_count;
    memcpy(search->quiet, search->set + search->count, search->quiet_count * sizeof *search->quiet);
    return 0;
}

/* -- reducing -- */

static size_t without(const struct search *search, size_t from, size_t to, uint32_t *out)
{
    memcpy(out, search->set, from * sizeof *out);
    memcpy(out + from, search->set + to, (search->count - to) * sizeof *out);
    return search->count - (to - from);
}

/* Takes away every piece of `size` lines without which some still conflict. */
static int take_away(struct search *search, size_t size)
{
    for (size_t start = 0; start < search->count && search->tests < TESTS_MAX;) {
        size_t end = start + size < search->count ? start + size : search->count;
        size_t count = without(search, start, end, search->trial);
        bool conflict;
        int rc = do_conflict(search, search->trial, count, &conflict);
        if (rc < 0) {
            return rc;
        }
        if (conflict) {
            memcpy(search->set, search->trial, count * sizeof *search->set);
            search->count = count;
        } else {
            start = end;
        }
    }
    return 0;
}

/* To a few lines that conflict. */
static int reduce(struct search *search)
{
    for (size_t size = search->count / 4; size > 0; size = size > 1 ? (size + 1) / 2 : 0) {
        int rc = take_away(search, size);
        if (rc < 0 || search->tests >= TESTS_MAX) {
            return rc;
        }
    }
    return 0;
}

/* -- counting -- */

/* Whether at least `search->least` of these and the quiet lines miss. Where it is hard to tell,
 * they are looked at again. */
static int some_miss(struct search *search, const uint32_t *lines, size_t count, bool *some)
{
    double sum = 0, mean = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        double missing;
        int rc = missing_of(search, lines, count, mean_extra, &missing);
        if (rc < 0) {
            return rc;
        }
        sum += missing;
        mean = sum / round;
        if (fabs(mean - search->least) > hard_to_tell) {
            break;
        }
    }
    *some = mean >= search->least;
    return 0;
}

/* Between what misses now and nothing. */
static int choose_least(struct search *search, double part)
{
    double missing = 0;
    int rc = missing_of(search, search->set, search->count, mean_extra, &missing);
    search->least = fmax(part * missing, one_too_many);
    return rc;
}

/* Group testing asks for lines enough that miss, and where the policy keeps one too many for a
 * while, more than one too many are left: what can be spared while any misses goes. */
static int spare(struct search *search)
{
    int rc = choose_least(search, few);
    for (size_t i = search->count; rc == 0 && i-- > 0;) {
        const uint32_t line = search->set[i];
        bool any = false;
        search->set[i] = search->set[--search->count];
        rc = some_miss(search, search->set, search->count, &any);
        if (!any) {
            search->set[search->count++] = search->set[i];
            search->set[i] = line;
        }
    }
    return rc;
}

/* Quiet lines without which none misses are of the same set, and join it. */
static int join_quiet(struct search *search)
{
    int rc = choose_least(search, half);
    for (size_t i = 0; rc == 0 && i < search->quiet_count;) {
        const uint32_t line = search->quiet[i];
        bool any = false;
        search->quiet[i] = search->quiet[--search->quiet_count];
        rc = some_miss(search, search->set, search->count, &any);
        if (!any) {
            search->set[search->count++] = line;
        } else {
            search->quiet[search->quiet_count++] = search->quiet[i];
            search->quiet[i++] = line;
        }
    }
    return rc;
}

/* Quiet lines of another set may have conflicted all the while: then they have joined as well, as
 * if none missed without them. Every second line of those that joined conflicts with none: what
 * these take tells how many of all miss, and what can be spared goes. */
static int look_again(struct search *search)
{
    const size_t count = search->count / 2, all = count + search->quiet_count;
    double missing = 0;
    for (size_t i = 0; i < count; i++) {
        search->trial[i] = search->set[2 * i];
    }
    int rc = missing_of(search, search->trial, count, mean_extra, &missing);
    search->base_s +=
        missing * (search->level->miss_seconds - search->level->seconds) / (double)all;
    return rc < 0 ? rc : spare(search);
}

/* -- how large a way is -- */

static bool is_among(const uint32_t *lines, size_t count, uint32_t line)
{
    for (size_t i = 0; i < count; i++) {
        if (lines[i] == line) {
            return true;
        }
    }
    return false;
}

/* Lines behind the pool: of those in it, the set holds what was there of its own. */
static void choose_group(struct search *search, size_t lines)
{
    for (size_t i = 0; i < lines;) {
        const uint32_t line = search->pool + (uint32_t)random_below(&search->random, search->pool);
        if (!is_among(search->group, i, line)) {
            search->group[i++] = line;
        }
    }
}

/* The first lines of the set with so many of the pool at random: whether any misses. */
static int group_misses(struct search *search, size_t from_set, size_t lines, bool *any)
{
    memcpy(search->trial, search->set, from_set * sizeof *search->trial);
    memcpy(search->trial + from_set, search->group, lines * sizeof *search->trial);
    return some_miss(search, search->trial, from_set + lines, any);
}

/* One line less than conflict, and some of the pool: they conflict if one of these is of the same
 * set. How often tells how many sets there are, and so how large a way is. */
static int count_sets(struct search *search, double likely[WAY_STEPS])
{
    const double sets =
        (double)search->level->bytes / (double)(search->count - 1) / (double)search->grain;
    const size_t lines = (size_t)fmax(1, round(group_of_sets * sets));
    const size_t quiet = search->quiet_count;
    int rc = 0;
    search->quiet_count -= lines < quiet ? lines : quiet; /* crowded by as many as before */
    const bool enough = 2 * lines < search->pool;
    for (int test = 0; rc == 0 && test < GROUPS && enough; test++) {
        bool any = false, of_others = false;
        choose_group(search, lines);
        rc = group_misses(search, search->count - 1, lines, &any);
        if (rc == 0 && any) { /* by themselves, perhaps */
            rc = group_misses(search, search->count / 2, lines, &of_others);
        }
        for (int step = 0; !of_others && step < WAY_STEPS; step++) {
            const double none = pow(1 - fmin(exp2(-step), 0.99), (double)lines);
            likely[step] += log(any ? 1 - none : none);
        }
    }
    search->quiet_count = quiet;
    return rc;
}

/* -- one try -- */

static void choose_pool(struct search *search)
{
    search->seed = ++search->probe->seed;
    search->random.state = search->seed;
    search->count = search->pool;
    for (uint32_t i = 0; i < search->pool; i++) {
        uint32_t j = (uint32_t)random_below(&search->random, i + 1);
        search->set[i] = search->set[j];
        search->set[j] = i;
    }
}

uint32_t probe_ways_of(size_t conflicting, uint64_t bytes)
{
    uint32_t best = 0;
    for (uint64_t way = LEAST_LINE; way <= bytes && bytes % way == 0; way *= 2) {
        uint64_t ways = bytes / way, most = ways + ways / TOLERANCE_OF;
        if (ways <= WAYS_MAX && ways > best && conflicting > ways && conflicting - 1 <= most) {
            best = (uint32_t)ways;
        }
    }
    return best;
}

/* `*told`: how many lines conflict, of which one less do not; 0: that was not to be seen. */
static int try_once(struct search *search, size_t *told, double likely[WAY_STEPS])
{
    bool conflict;
    choose_pool(search);
    *told = 0;
    int rc = choose_quiet(search);
    rc = rc < 0 ? rc : do_conflict(search, search->set, search->count, &conflict);
    if (rc < 0 || !conflict) {
        return rc;
    }
    rc = reduce(search);
    if (rc < 0 || search->tests >= TESTS_MAX || search->count < 2 || search->count > COUNTED_MAX) {
        return rc;
    }
    rc = spare(search);
    rc = rc < 0 ? rc : join_quiet(search);
    rc = rc < 0 || search->count < 2 ? rc : look_again(search);
    /* Lines that only crowd the first level cannot be told from those that conflict. */
    const double lines = (double)(search->count + search->quiet_count);
    *told = lines < least_crowd * crowded_by(search) + 1 || search->count > COUNTED_MAX
                ? 0
                : search->count;
    return rc < 0 || *told < 2 ? rc : count_sets(search, likely);
}

/* The size that the lines tell: their number and how many sets there are, and what the curve says;
 * 0: more than one is likely. */
static uint64_t counted_size(const struct search *search, uint64_t ways, const double *likely)
{
    double best = -INFINITY, next = -INFINITY;
    uint64_t bytes = 0;
    for (int step = 0; step < WAY_STEPS; step++) {
        const uint64_t size = ways * (uint64_t)search->grain << step;
        const double off = log2((double)size / (double)search->level->bytes) / curve_off;
        const double all = likely[step] - off * off / 2;
        next = fmax(next, fmin(best, all));
        bytes = all > best ? size : bytes;
        best = fmax(best, all);
    }
    return best - next > surely ? bytes : 0;
}

static const char no_number[] =
    "the lines that conflict are no number of ways that the size agrees with";

static int run(struct search *search, struct probe_ways *out)
{
    uint32_t counts[COUNTED_MAX + 1] = {0};
    double likely[COUNTED_MAX + 1][WAY_STEPS] = {{0}};
    for (uint32_t tried = 0; counts[0] <= TRIES - AGREEING && tried - counts[0] < SHOWING_MAX;
         tried++) {
        size_t conflicting;
        const double begun_s = probe_elapsed(search->probe);
        double likely_here[WAY_STEPS] = {0};
        int rc = try_once(search, &conflicting, likely_here);
        const double took_s = probe_elapsed(search->probe) - begun_s; /* the next about as long */
        if (rc == -ETIME) {
            out->reason = probe_machine_strerror(-ETIME);
            break;
        }
        if (rc < 0) {
            return rc;
        }
        for (int step = 0; step < WAY_STEPS; step++) {
            likely[conflicting][step] += likely_here[step];
        }
        if (++counts[conflicting] == AGREEING && conflicting > 0) {
            out->conflicting = (uint32_t)conflicting;
            /* lines further apart than a page are of fewer sets where pages lie side by side */
            out->bytes = search->stride > search->grain
                             ? 0
                             : counted_size(search, conflicting - 1, likely[conflicting]);
            break;
        }
        if (search->tests >= TESTS_MAX || probe_would_be_late(search->probe, took_s)) {
            out->reason = search->tests >= TESTS_MAX ? "it would take too long"
                                                     : probe_machine_strerror(-ETIME);
            break;
        }
    }
    const uint32_t ways = probe_ways_of(out->conflicting, search->level->bytes);
    if (ways > 0 && ways == out->conflicting - 1) {
        out->ways = ways;
        out->way_bytes = search->level->bytes / ways;
    }
    out->reason = out->ways ? NULL : out->reason ? out->reason : no_number;
    return 0;
}

int probe_ways(struct probe *probe, uint32_t pu, const struct probe_ways_level *level,
               struct probe_ways *out, struct servet_error *error)
{
    struct probe_ways result = {0};
    const size_t page = probe->machine->page_bytes;
    struct search search = {
        .probe = probe, .pu = pu, .level = level, .stride = (size_t)level->first_way_bytes};
    /* further apart than a way of the first level lines share its set as well */
    while (search.stride > 0 && search.stride < page &&
           pool_share * (double)level->bytes > LINES_ENOUGH * (double)search.stride) {
        search.stride *= 2;
    }
    /* Where pages are small, it is they that are spread over the sets. */
    search.grain = search.stride < page ? search.stride : page;
    double wanted =
        search.grain ? ceil(pool_share * (double)level->bytes / (double)search.grain) : 0;
    double most = fmin(most_bytes, (double)probe->machine->memory_limit_bytes / 2);
    if (!search.grain) {
        result.reason = "those of the first level are not known";
    } else if (level->miss_seconds < least_rise * level->seconds) {
        result.reason = "missing it costs too little";
    } else if (wanted > LINES_MAX || 2 * wanted * (double)search.stride > most) {
        result.reason = "it is too large to find lines that conflict";
    }
    if (result.reason) {
        *out = result;
        return 0;
    }
    search.pool = (uint32_t)wanted;
    probe_tell(probe, 1, "ways of the second cache on PU %u", pu);
    search.set = calloc(5 * (size_t)search.pool, sizeof *search.set);
    if (!search.set) {
        return probe_error(error, -ENOMEM, "measuring ways");
    }
    search.trial = search.set + search.pool;
    search.visited = search.trial + search.pool;
    search.quiet = search.visited + search.pool;
    search.group = search.quiet + search.pool;
    int rc = run(&search, &result);
    free(search.set);
    if (rc < 0) {
        return probe_error(error, rc, "measuring ways");
    }
    *out = result;
    return 0;
}
