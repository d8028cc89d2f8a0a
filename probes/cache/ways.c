/* Ways of the second level by group testing (cache.h): the only method that needs neither large
 * pages nor physical addresses; its price is hundreds of short chases, so it gives up rather than
 * take seconds. */
#include "probes/cache/cache.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/random.h"

enum {
    WARM_PASSES = 16,
    LOOKS = 2,
    TRIES = 5,        /* in other memory each */
    AGREEING = 3,     /* of those */
    TESTS_MAX = 1600, /* of all tries together, each some 0.7 ms; 200 a try are usual */
    REPLACEMENTS =
        8, /* of a line: each falls into the same set once in as many as a way has pages, or twos */
    LINES_MAX = 4096,   /* of the pool: 16 MiB of 4 KiB pages, time for more is not worth it */
    LINES_ENOUGH = 192, /* of the pool, where pages are large: of more, most are of other sets */
    WAYS_MAX = 64,      /* the most ever built */
    COUNTED_MAX = 2 * WAYS_MAX, /* lines of a set that none can be spared of */
    LEAST_LINE = 16,            /* bytes: a way holds one at least */
    QUIET_LINES = 24,           /* too few to fill a set, if they are of different ones */
    TOLERANCE_OF = 4, /* a quarter of the ways: at random, a line too many hardly ever misses */
};
static const double pool_share = 1.5; /* of the lines that fill the cache */
/* Missing lines that are no accident: two, and 2 % of those visited, as much as latencies are
 * off. */
static const double least_missing = 2, accident = 0.02;
static const double least_rise = 1.25;      /* to the level behind it */
static const double most_bytes = 128 << 20; /* of the pool */

struct search {
    struct probe *probe;
    uint32_t pu;
    const struct probe_ways_level *level;
    size_t stride; /* of lines that share a set of the first level */
    uint32_t pool; /* lines, a stride apart */
    uint64_t seed; /* of the memory */
    struct random random;
    double base_s;         /* of a hit in the level over one in the first, measured here */
    uint32_t *set, *trial; /* `pool` of each */
    size_t count, tests;
};

/* -- looking -- */

static int measure(struct search *search, const uint32_t *lines, size_t count,
                   enum machine_order order, double *seconds)
{
    const struct machine_traversal what = {
        .bytes = search->pool * search->stride,
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

/* What the lines take longer than as many of the same pages that lie in different sets: misses of
 * the TLB are in both. What disturbs only ever slows down. */
static int measure_extra(struct search *search, const uint32_t *lines, size_t count,
                         double *seconds)
{
    double together = INFINITY, apart = INFINITY, once;
    for (int look = 0; look < LOOKS; look++) {
        int rc = measure(search, lines, count, MACHINE_CHASE, &once);
        together = rc < 0 ? together : fmin(together, once);
        rc = rc < 0 ? rc : measure(search, lines, count, MACHINE_SPREAD, &once);
        if (rc < 0) {
            return rc;
        }
        apart = fmin(apart, once);
    }
    *seconds = together - apart;
    return 0;
}

static int do_conflict(struct search *search, const uint32_t *lines, size_t count, bool *conflict)
{
    double extra = 0, miss = search->level->miss_seconds - search->level->seconds;
    int rc = count > 0 ? measure_extra(search, lines, count, &extra) : 0;
    double missing = (double)count * (extra - search->base_s) / miss;
    *conflict = count > 0 && missing >= least_missing + accident * (double)count;
    search->tests++;
    return rc;
}

/* Lines of different sets that miss the first level. Where all pages meet in one set they miss the
 * second, too: then what the curve says is nearer. */
static int measure_base(struct search *search)
{
    double expected = search->level->seconds - search->level->first_seconds, extra;
    size_t count = search->pool < QUIET_LINES ? search->pool : QUIET_LINES;
    int rc = measure_extra(search, search->set, count, &extra);
    if (rc == 0) {
        bool missed = extra > expected + (search->level->miss_seconds - search->level->seconds) / 4;
        search->base_s = missed || extra < 0 ? expected : extra;
    }
    return rc;
}

/* -- reducing -- */

static size_t without(const struct search *search, size_t from, size_t to, uint32_t *out)
{
    memcpy(out, search->set, from * sizeof *out);
    memcpy(out + from, search->set + to, (search->count - to) * sizeof *out);
    return search->count - (to - from);
}

/* Takes away every piece of `size` lines without which some still conflict. */
static int take_away(struct search *search, size_t size, bool *removed)
{
    *removed = false;
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
            *removed = true;
        } else {
            start = end;
        }
    }
    return 0;
}

/* To a set of conflicting lines of which none can be spared. */
static int reduce(struct search *search)
{
    bool removed = true;
    for (size_t size = search->count / 4; size > 1 || removed;
         size = size > 1 ? (size + 1) / 2 : 1) {
        int rc = take_away(search, size > 0 ? size : 1, &removed);
        if (rc < 0 || search->tests >= TESTS_MAX) {
            return rc;
        }
    }
    return 0;
}

static bool in_set(const struct search *search, uint32_t line)
{
    for (size_t i = 0; i < search->count; i++) {
        if (search->set[i] == line) {
            return true;
        }
    }
    return false;
}

static int can_be_replaced(struct search *search, size_t place, bool *can)
{
    *can = true;
    for (int i = 0; i < REPLACEMENTS && *can; i++) {
        uint32_t other = search->set[place];
        while (in_set(search, other)) {
            other = (uint32_t)random_below(&search->random, search->pool);
        }
        memcpy(search->trial, search->set, search->count * sizeof *search->trial);
        search->trial[place] = other;
        int rc = do_conflict(search, search->trial, search->count, can);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* How many lines of the set conflict in the second level; the others are there because they crowd
 * the first. */
static int count_conflicting(struct search *search, size_t *conflicting)
{
    *conflicting = 0;
    for (size_t i = 0; i < search->count; i++) {
        bool can;
        int rc = can_be_replaced(search, i, &can);
        if (rc < 0) {
            return rc;
        }
        *conflicting += !can;
    }
    /* All of them alike: every line of the pool is of one set. They are as many as that has ways
     * and one, if it is not the first level's set that asked for so many. */
    const uint32_t first = search->level->first_ways;
    *conflicting =
        *conflicting == 0 && search->count > first + first / 4 + 1 ? search->count : *conflicting;
    return 0;
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
static int try_once(struct search *search, size_t *told)
{
    bool conflict;
    choose_pool(search);
    *told = 0;
    int rc = measure_base(search);
    rc = rc < 0 ? rc : do_conflict(search, search->set, search->count, &conflict);
    if (rc < 0 || !conflict) {
        return rc;
    }
    rc = reduce(search);
    size_t conflicting = search->count;
    /* Nor is anything told where all of the pool are needed: none is left to replace one by. */
    if (rc < 0 || search->tests >= TESTS_MAX || search->count < 2 || search->count > COUNTED_MAX ||
        search->count == search->pool) {
        return rc;
    }
    rc = count_conflicting(search, &conflicting);
    rc = rc < 0 ? rc : do_conflict(search, search->set, search->count, &conflict);
    *told = rc < 0 || !conflict || conflicting > COUNTED_MAX ? 0 : conflicting;
    return rc;
}

static const char no_number[] =
    "the lines that conflict are no number of ways that the size agrees with";

static int run(struct search *search, struct probe_ways *out)
{
    uint32_t votes[WAYS_MAX + 1] = {0}, counts[COUNTED_MAX + 1] = {0};
    for (int tried = 0; tried < TRIES; tried++) {
        size_t conflicting;
        const double begun_s = probe_elapsed(search->probe);
        int rc = try_once(search, &conflicting);
        const double took_s = probe_elapsed(search->probe) - begun_s; /* the next about as long */
        if (rc < 0) {
            return rc;
        }
        const uint32_t ways = probe_ways_of(conflicting, search->level->bytes);
        if (ways > 0 && ++votes[ways] == AGREEING) {
            out->ways = ways;
            out->way_bytes = search->level->bytes / ways;
        }
        if (++counts[conflicting] == AGREEING && conflicting > 0) {
            out->conflicting = (uint32_t)conflicting;
            break;
        }
        if (search->tests >= TESTS_MAX || probe_would_be_late(search->probe, took_s)) {
            out->reason =
                search->tests >= TESTS_MAX ? "it would take too long" : "the budget was used up";
            break;
        }
        if (counts[0] > TRIES - AGREEING) {
            break;
        }
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
    size_t grain = search.stride < page ? search.stride : page;
    double wanted = grain ? ceil(pool_share * (double)level->bytes / (double)grain) : 0;
    double most = fmin(most_bytes, (double)probe->machine->memory_limit_bytes / 2);
    if (!grain) {
        result.reason = "those of the first level are not known";
    } else if (level->miss_seconds < least_rise * level->seconds) {
        result.reason = "missing it costs too little";
    } else if (wanted > LINES_MAX || wanted * (double)search.stride > most) {
        result.reason = "it is too large to find lines that conflict";
    }
    if (result.reason) {
        *out = result;
        return 0;
    }
    search.pool = (uint32_t)wanted;
    probe_tell(probe, 1, "ways of the second cache on PU %u", pu);
    search.set = calloc(2 * (size_t)search.pool, sizeof *search.set);
    if (!search.set) {
        return probe_error(error, -ENOMEM, "measuring ways");
    }
    search.trial = search.set + search.pool;
    int rc = run(&search, &result);
    free(search.set);
    if (rc < 0) {
        return probe_error(error, rc, "measuring ways");
    }
    *out = result;
    return 0;
}
