/* What replacement makes of X lines in K ways. Some policies have formulas; for the others a set is
 * played through once for each (K, X) and remembered, because the fit asks for the same few again
 * and again. */
#include "probes/cache/model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "profile/base/random.h"

enum { WAYS_MAX = 32, LINES_MAX = 512 };

/* Random replacement, cyclic visits: a line survives the m * (X - 1) evictions until its next visit
 * with (1 - 1/K)^(m (X - 1)), and m = 1 - that. The fixed point, by iteration from above. */
static double random_fixed_point(double lines, uint32_t ways)
{
    double miss = 1, before = 0;
    for (int i = 0; i < 200 && fabs(miss - before) > 1e-6; i++) {
        before = miss;
        miss = 1 - pow(1 - 1.0 / ways, miss * (lines - 1));
    }
    return miss;
}

/* Near the number of ways the formula is wrong by up to half (it forgets that of the other lines
 * one more is missing while this one is there): with one line too many 1/K, not 2/(K + 1), which
 * moves a size by a twentieth. There the set is played through. */
static double random_played(uint32_t lines, uint32_t ways)
{
    enum { WARM_TURNS = 8, VISITS = 24576 }; /* a share of 0.1 is then off by 3 % */
    if (lines > 4 * ways) {
        return random_fixed_point(lines, ways);
    }
    struct random random = {lines * (uint64_t)LINES_MAX + ways};
    uint32_t held[WAYS_MAX], misses = 0;
    bool here[LINES_MAX + 1] = {false};
    const uint32_t turns = WARM_TURNS + VISITS / lines;
    for (uint32_t way = 0; way < ways; way++) {
        held[way] = way;
        here[way] = true;
    }
    for (uint32_t turn = 0; turn < turns; turn++) {
        for (uint32_t line = 0; line < lines; line++) {
            if (here[line]) {
                continue;
            }
            uint32_t way = (uint32_t)random_below(&random, ways);
            here[held[way]] = false;
            here[line] = true;
            held[way] = line;
            misses += turn >= WARM_TURNS;
        }
    }
    return (double)misses / ((double)lines * (turns - WARM_TURNS));
}

/* -- pseudo-LRU: no formula is known, so one set is played through -- */

static bool is_tree(uint32_t ways)
{
    return (ways & (ways - 1)) == 0;
}

void probe_cache_plru_touch(uint64_t *bits, uint32_t ways, uint32_t way)
{
    if (!is_tree(ways)) {
        const uint64_t mine = UINT64_C(1) << way;
        *bits |= mine;
        *bits = *bits == (UINT64_C(1) << ways) - 1 ? mine : *bits;
        return;
    }
    uint64_t node = 1;
    for (uint32_t half = ways / 2; half > 0; half /= 2) {
        bool right = way & half;
        *bits = right ? *bits & ~(UINT64_C(1) << node) : *bits | UINT64_C(1) << node;
        node = 2 * node + right;
    }
}

uint32_t probe_cache_plru_victim(uint64_t bits, uint32_t ways)
{
    uint32_t way = 0;
    if (!is_tree(ways)) {
        while (way + 1 < ways && bits >> way & 1) {
            way++;
        }
        return way;
    }
    uint64_t node = 1;
    for (uint32_t half = ways / 2; half > 0; half /= 2) {
        bool right = bits >> node & 1;
        way += right ? half : 0;
        node = 2 * node + right;
    }
    return way;
}

struct plru {
    uint32_t ways;
    uint64_t lines[WAYS_MAX]; /* number + 1; 0: empty */
    uint64_t bits;
};

static bool plru_visit(struct plru *set, uint64_t line)
{
    uint32_t way = 0;
    while (way < set->ways && set->lines[way] != line) {
        way++;
    }
    bool hit = way < set->ways;
    if (!hit) {
        for (way = 0; way < set->ways && set->lines[way] != 0; way++) {
        }
        way = way < set->ways ? way : probe_cache_plru_victim(set->bits, set->ways);
        set->lines[way] = line;
    }
    probe_cache_plru_touch(&set->bits, set->ways, way);
    return hit;
}

/* In whatever order the lines of a set are visited, it is the same in every turn: they may be
 * numbered by it. */
static double plru_played(uint32_t lines, uint32_t ways)
{
    enum { WARM_TURNS = 16, TURNS = 16 };
    struct plru set = {.ways = ways};
    uint32_t misses = 0;
    for (uint32_t turn = 0; turn < WARM_TURNS + TURNS; turn++) {
        for (uint64_t line = 1; line <= lines; line++) {
            misses += !plru_visit(&set, line) && turn >= WARM_TURNS;
        }
    }
    return (double)misses / ((double)lines * TURNS);
}

/* -- ages: played through as well -- */

enum { OLDEST = 3, AGE_OF_NEW = 1 };

/* Ways, as bits, by age: all grow older until one is of the oldest. */
static void grow_older(uint32_t of_age[OLDEST + 1])
{
    while (of_age[OLDEST] == 0) {
        memmove(&of_age[1], &of_age[0], OLDEST * sizeof *of_age);
        of_age[0] = 0;
    }
}

/* Two ways or more. Line 0 is a stranger's. */
struct aged {
    uint32_t of_age[OLDEST + 1]; /* ways, as bits; of the oldest there is always one */
    uint16_t held[WAYS_MAX];     /* lines */
    uint8_t way[LINES_MAX + 1];  /* by line: 1 + its way; 0: not here */
};

static bool aged_visit(struct aged *set, uint16_t line)
{
    const bool hit = set->way[line] != 0;
    const int way = hit ? set->way[line] - 1 : __builtin_ctz(set->of_age[OLDEST]);
    if (!hit) {
        set->way[set->held[way]] = 0;
        set->held[way] = line;
        set->way[line] = (uint8_t)(way + 1);
    }
    for (int age = 0; age <= OLDEST; age++) {
        set->of_age[age] &= ~(1U << way);
    }
    grow_older(set->of_age);
    set->of_age[hit ? 0 : AGE_OF_NEW] |= 1U << way;
    return hit;
}

/* Nothing is drawn while it is played: a set stays in the round that its first contents lead to,
 * and which lines those were, and how old, nobody knows. So a set begins with strangers' lines of
 * any age; what is told is the mean of many. */
static struct aged aged_begun(uint32_t ways, struct random *random)
{
    struct aged set = {0};
    for (uint32_t way = 0; way < ways; way++) {
        set.of_age[random_below(random, OLDEST + 1)] |= 1U << way;
    }
    grow_older(set.of_age);
    return set;
}

/* After a dozen turns or so the mean of all sets stays what it is (of 16 ways and 17 lines 0.22 of
 * the visits miss, after two turns 0.73). A set that never hits once the strangers are gone never
 * will. */
static double aged_played(uint32_t lines, uint32_t ways)
{
    enum { SETS = 48, HOPELESS_FROM = 8, WARM_TURNS = 16, TURNS = 16 };
    struct random random = {lines * (uint64_t)LINES_MAX + ways};
    uint32_t misses = 0;
    for (int i = 0; i < SETS; i++) {
        struct aged set = aged_begun(ways, &random);
        uint32_t missed = 0;
        for (uint32_t turn = 0; turn < WARM_TURNS + TURNS; turn++) {
            if (turn > HOPELESS_FROM && missed == lines) {
                misses += turn < WARM_TURNS ? 0 : lines;
                continue;
            }
            missed = 0;
            for (uint16_t line = 1; line <= lines; line++) {
                missed += !aged_visit(&set, line);
            }
            misses += turn < WARM_TURNS ? 0 : missed;
        }
    }
    return (double)misses / ((double)lines * TURNS * SETS);
}

/* -- predictions -- */

/* Dynamic re-reference interval prediction (Jaleel et al., ISCA 2010): where more is visited than
 * fits, all but one line stay, in all sets but one in 32: those never resist thrashing, so that the
 * cache knows what is better. Played through, misses are the same to a hundredth. */
static double adaptive_miss(double lines, uint32_t ways)
{
    enum { ONE_IN = 32 };
    return 1 - (1 - 1.0 / ONE_IN) * (ways - 1.0) / lines;
}

/* Each set is played through once. */
static double remembered(enum cache_policy policy, uint32_t lines, uint32_t ways)
{
    static double (*const play[CACHE_POLICIES])(uint32_t lines, uint32_t ways) = {
        [CACHE_PLRU] = plru_played, [CACHE_RANDOM] = random_played, [CACHE_AGED] = aged_played};
    static double known[CACHE_POLICIES][WAYS_MAX + 1][LINES_MAX + 1]; /* 0: not yet */
    double *miss = &known[policy][ways][lines];
    *miss = *miss > 0 ? *miss : fmax(play[policy](lines, ways), 1e-9);
    return *miss;
}

double probe_cache_set_miss(enum cache_policy policy, uint32_t ways, double lines)
{
    if (lines <= ways) {
        return 0;
    }
    switch (policy) {
    case CACHE_LRU:
        return 1;
    case CACHE_PLRU:
    case CACHE_AGED:
        /* none of twice as many lines as ways is ever there again: so it came out of all ways up to
         * WAYS_MAX, by a tree, by bits and by ages */
        return lines >= 2.0 * ways || ways > WAYS_MAX ? 1
                                                      : remembered(policy, (uint32_t)lines, ways);
    case CACHE_RANDOM:
        return lines > LINES_MAX || ways > WAYS_MAX ? random_fixed_point(lines, ways)
                                                    : remembered(policy, (uint32_t)lines, ways);
    default:
        return adaptive_miss(lines, ways);
    }
}
