/* Ways of the second level, and its size once more, by group testing (cache.h): the only method
 * that needs neither large pages nor physical addresses, and no model of what evicts; its price is
 * hundreds of short chases, so it gives up rather than take seconds. What is asked of lines is
 * misses.c's. A look may say that lines conflict which hardly do: what was taken away by it comes
 * back where nothing conflicts any more. To see how often it is right: tests/probes/test_ways.c. */
#include "probes/cache/misses.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/random.h"

enum {
    ROUNDS = 3,          /* of such looks, where it is hard to tell */
    TRIES = 8,           /* in other memory each */
    SHOWING_MAX = 5,     /* of those, in which lines conflict; of these */
    AGREEING = 3,        /* must agree: counts that scatter agree by chance */
    TESTS_MAX = 2000,    /* of all tries together, each some 0.4 ms; 100 a try are usual, */
    TRY_TESTS_MAX = 500, /* and one that takes more than these will not end soon */
    LINES_MAX = 4096,    /* of the pool: 16 MiB of 4 KiB pages, time for more is not worth it */
    LINES_ENOUGH = 192,  /* of the pool, where pages are large: of more, most are of other sets */
    WAYS_MAX = 64,       /* the most ever built */
    COUNTED_MAX = 2 * WAYS_MAX, /* lines of a set that none can be spared of */
    LEAST_LINE = 16,            /* bytes: a way holds one at least */
    GROUPS = 32,      /* of lines, a try: three tries tell half as many sets from as many */
    WAY_STEPS = 12,   /* sizes of a way that are thought of, each twice the one before */
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
static const double hard_to_tell = 1; /* lines: as much as noise makes of 50 */
/* A group of so many lines, times the sets that there may be, has one of a set in half of all
 * cases, which says the most. */
static const double group_of_sets = 0.7;
static const double curve_off = 0.35;  /* octaves, that the curve's size is off by at times */
static const double surely = 3;        /* twenty times likelier than any other, as a logarithm */
static const double least_rise = 1.25; /* to the level behind it */
static const double most_bytes = 256 << 20; /* of the pool and what is behind */

struct search {
    struct cache_lines look;
    struct random random;
    uint32_t *set, *trial; /* `pool` of each */
    uint32_t *group;       /* from behind the pool, at random */
    size_t count, tests;
    size_t tests_up_to; /* those that the try may take */
    size_t grain;       /* bytes: a way has a set of its own for each so many */
    double least;       /* lines: fewer that miss are none */
};

/* -- reducing -- */

static int do_conflict(struct search *search, const uint32_t *lines, size_t count, bool *conflict)
{
    double missing = 0;
    int rc = count > 0 ? probe_misses_soon(&search->look, lines, count, &missing) : 0;
    *conflict = missing >= least_missing + accident * (double)(count + search->look.quiet_count);
    search->tests++;
    return rc;
}

static size_t without(const struct search *search, size_t from, size_t to, uint32_t *out)
{
    memcpy(out, search->set, from * sizeof *out);
    memcpy(out + from, search->set + to, (search->count - to) * sizeof *out);
    return search->count - (to - from);
}

/* Takes away every piece of `size` lines without which some still conflict. */
static int take_away(struct search *search, size_t size)
{
    for (size_t start = 0; start < search->count && search->tests < search->tests_up_to;) {
        size_t end = start + size < search->count ? start + size : search->count;
        size_t count = without(search, start, end, search->trial);
        bool conflict;
        int rc = do_conflict(search, search->trial, count, &conflict);
        if (rc < 0) {
            return rc;
        }
        if (conflict) {
            memcpy(search->trial + count, search->set + start, (end - start) * sizeof *search->set);
            memcpy(search->set, search->trial, search->count * sizeof *search->set);
            search->count = count;
        } else {
            start = end;
        }
    }
    return 0;
}

/* Brings back what was taken away last until some conflict: after a look at which more missed than
 * do as a rule, nothing else could be taken away. */
static int bring_back(struct search *search, size_t size, size_t all)
{
    int rc = 0;
    for (bool conflict = false; rc == 0 && !conflict && search->tests < search->tests_up_to;) {
        rc = do_conflict(search, search->set, search->count, &conflict);
        if (search->count == all) {
            break;
        }
        search->count += conflict ? 0 : size < all - search->count ? size : all - search->count;
    }
    return rc;
}

/* To a few lines that conflict. */
static int reduce(struct search *search)
{
    const size_t all = search->count;
    for (size_t size = all / 4; size > 0; size = size > 1 ? (size + 1) / 2 : 0) {
        int rc = bring_back(search, size, all);
        rc = rc < 0 ? rc : take_away(search, size);
        if (rc < 0 || search->tests >= search->tests_up_to) {
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
        int rc = probe_misses(&search->look, lines, count, &missing);
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
    int rc = probe_misses_surely(&search->look, search->set, search->count, &missing);
    search->least = fmax(part * missing, one_too_many);
    return rc;
}

/* What was spared last comes back until some miss again: a disturbed look may have let go a line
 * that was needed. */
static int put_back(struct search *search, size_t most)
{
    int rc = 0;
    for (bool any = false; rc == 0 && !any && search->count < most;) {
        rc = some_miss(search, search->set, search->count, &any);
        search->count += !any;
    }
    return rc;
}

/* Group testing asks for lines enough that miss, and where the policy keeps one too many for a
 * while, more than one too many are left: what can be spared while any misses goes. */
static int spare(struct search *search)
{
    const size_t all = search->count;
    int rc = choose_least(search, few);
    for (size_t i = all; rc == 0 && i-- > 0;) {
        const uint32_t line = search->set[i];
        bool any = false;
        search->set[i] = search->set[--search->count];
        search->set[search->count] = line;
        rc = some_miss(search, search->set, search->count, &any);
        if (!any) {
            search->set[search->count++] = search->set[i];
            search->set[i] = line;
        }
    }
    return rc < 0 ? rc : put_back(search, all);
}

/* Quiet lines without which none misses are of the same set, and join it. */
static int join_quiet(struct search *search)
{
    int rc = choose_least(search, half);
    for (size_t i = 0; rc == 0 && i < search->look.quiet_count;) {
        const uint32_t line = search->look.quiet[i];
        bool any = false;
        search->look.quiet[i] = search->look.quiet[--search->look.quiet_count];
        rc = some_miss(search, search->set, search->count, &any);
        if (!any) {
            search->set[search->count++] = line;
        } else {
            search->look.quiet[search->look.quiet_count++] = search->look.quiet[i];
            search->look.quiet[i++] = line;
        }
    }
    return rc;
}

/* Quiet lines of another set may have conflicted all the while: then they have joined as well, as
 * if none missed without them. Every second line of those that joined conflicts with none: what
 * these take tells how many of all miss, and what can be spared goes. */
static int look_again(struct search *search)
{
    const size_t count = search->count / 2, all = count + search->look.quiet_count;
    double missing = 0;
    for (size_t i = 0; i < count; i++) {
        search->trial[i] = search->set[2 * i];
    }
    int rc = probe_misses_surely(&search->look, search->trial, count, &missing);
    search->look.base_s +=
        missing * (search->look.level->miss_seconds - search->look.level->seconds) / (double)all;
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
        const uint32_t line =
            search->look.pool + (uint32_t)random_below(&search->random, search->look.pool);
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
        (double)search->look.level->bytes / (double)(search->count - 1) / (double)search->grain;
    const size_t lines = (size_t)fmax(1, round(group_of_sets * sets));
    const size_t quiet = search->look.quiet_count;
    int rc = 0;
    search->look.quiet_count -= lines < quiet ? lines : quiet; /* crowded by as many as before */
    const bool enough = 2 * lines < search->look.pool;
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
    search->look.quiet_count = quiet;
    return rc;
}

/* -- one try -- */

static void choose_pool(struct search *search)
{
    search->look.seed = ++search->look.probe->seed;
    search->random.state = search->look.seed;
    search->count = search->look.pool;
    for (uint32_t i = 0; i < search->look.pool; i++) {
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
    search->tests_up_to = search->tests + TRY_TESTS_MAX;
    *told = 0;
    int rc = probe_misses_choose_quiet(&search->look, search->set);
    search->count = search->look.pool - search->look.quiet_count;
    rc = rc < 0 ? rc : do_conflict(search, search->set, search->count, &conflict);
    if (rc < 0 || !conflict) {
        return rc;
    }
    rc = reduce(search);
    if (rc < 0 || search->tests >= search->tests_up_to || search->count < 2 ||
        search->count > COUNTED_MAX) {
        return rc;
    }
    rc = spare(search);
    rc = rc < 0 ? rc : join_quiet(search);
    rc = rc < 0 || search->count < 2 ? rc : look_again(search);
    /* Lines that only crowd the first level cannot be told from those that conflict. */
    const double lines = (double)(search->count + search->look.quiet_count);
    *told = lines < probe_misses_crowd(&search->look) + 1 || search->count > COUNTED_MAX
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
        const double off = log2((double)size / (double)search->look.level->bytes) / curve_off;
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
        const double begun_s = probe_elapsed(search->look.probe);
        double likely_here[WAY_STEPS] = {0};
        int rc = try_once(search, &conflicting, likely_here);
        const double took_s =
            probe_elapsed(search->look.probe) - begun_s; /* the next about as long */
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
            out->bytes = search->look.stride > search->grain
                             ? 0
                             : counted_size(search, conflicting - 1, likely[conflicting]);
            break;
        }
        if (search->tests >= TESTS_MAX || probe_would_be_late(search->look.probe, took_s)) {
            out->reason = search->tests >= TESTS_MAX ? "it would take too long"
                                                     : probe_machine_strerror(-ETIME);
            break;
        }
    }
    const uint32_t ways = probe_ways_of(out->conflicting, search->look.level->bytes);
    if (ways > 0 && ways == out->conflicting - 1) {
        out->ways = ways;
        out->way_bytes = search->look.level->bytes / ways;
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
        .look = {
            .probe = probe, .pu = pu, .level = level, .stride = (size_t)level->first_way_bytes}};
    /* further apart than a way of the first level lines share its set as well */
    while (search.look.stride > 0 && search.look.stride < page &&
           pool_share * (double)level->bytes > LINES_ENOUGH * (double)search.look.stride) {
        search.look.stride *= 2;
    }
    /* Where pages are small, it is they that are spread over the sets. */
    search.grain = search.look.stride < page ? search.look.stride : page;
    double wanted =
        search.grain ? ceil(pool_share * (double)level->bytes / (double)search.grain) : 0;
    double most = fmin(most_bytes, (double)probe->machine->memory_limit_bytes / 2);
    if (!search.grain) {
        result.reason = "those of the first level are not known";
    } else if (level->miss_seconds < least_rise * level->seconds) {
        result.reason = "missing it costs too little";
    } else if (wanted > LINES_MAX || 2 * wanted * (double)search.look.stride > most) {
        result.reason = "it is too large to find lines that conflict";
    }
    if (result.reason) {
        *out = result;
        return 0;
    }
    search.look.pool = (uint32_t)wanted;
    probe_tell(probe, 1, "ways of the second cache on PU %u", pu);
    search.set = calloc(5 * (size_t)search.look.pool, sizeof *search.set);
    if (!search.set) {
        return probe_error(error, -ENOMEM, "measuring ways");
    }
    search.trial = search.set + search.look.pool;
    search.look.visited = search.trial + search.look.pool;
    search.look.quiet = search.look.visited + search.look.pool;
    search.group = search.look.quiet + search.look.pool;
    int rc = run(&search, &result);
    free(search.set);
    if (rc < 0) {
        return probe_error(error, rc, "measuring ways");
    }
    *out = result;
    return 0;
}
