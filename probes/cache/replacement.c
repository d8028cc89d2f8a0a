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

/* -- pseudo-LRU -- */

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

/* -- a set that is played through -- */

enum { OLDEST = 3, AGE_OF_NEW = 1 };

/* In whatever order the lines of a set are visited, it is the same in every turn: they may be
 * numbered by it, from 1. Line 0 is a stranger's, or none. */
struct played {
    enum cache_policy policy;
    uint32_t ways;
    uint16_t held[WAYS_MAX];    /* lines */
    uint8_t way[LINES_MAX + 1]; /* by line: 1 + its way; 0: not here */
    uint64_t bits;              /* of CACHE_PLRU */
    uint32_t
        of_age[OLDEST + 1]; /* of CACHE_AGED, ways, as bits; of the oldest there is always one */
    struct random *random;
};

/* All grow older until one is of the oldest. */
static void grow_older(uint32_t of_age[OLDEST + 1])
{
    while (of_age[OLDEST] == 0) {
        memmove(&of_age[1], &of_age[0], OLDEST * sizeof *of_age);
        of_age[0] = 0;
    }
}

/* Nothing is drawn while ages are played: a set stays in the round that its first contents lead to,
 * and which lines those were, and how old, nobody knows. So it begins with strangers' lines of any
 * age. A random one begins full. */
static struct played begin_set(enum cache_policy policy, uint32_t ways, struct random *random)
{
    struct played set = {.policy = policy, .ways = ways, .random = random};
    for (uint32_t way = 0; way < ways && policy == CACHE_AGED; way++) {
        set.of_age[random_below(random, OLDEST + 1)] |= 1U << way;
    }
    for (uint32_t way = 0; way < ways && policy == CACHE_RANDOM; way++) {
        set.held[way] = (uint16_t)(way + 1);
        set.way[way + 1] = (uint8_t)(way + 1);
    }
    if (policy == CACHE_AGED) {
        grow_older(set.of_age);
    }
    return set;
}

static uint32_t victim_of(const struct played *set)
{
    uint32_t free_way = 0;
    if (set->policy == CACHE_RANDOM) {
        return (uint32_t)random_below(set->random, set->ways);
    }
    if (set->policy == CACHE_AGED) {
        return (uint32_t)__builtin_ctz(set->of_age[OLDEST]);
    }
    while (free_way < set->ways && set->held[free_way] != 0) {
        free_way++;
    }
    return free_way < set->ways ? free_way : probe_cache_plru_victim(set->bits, set->ways);
}

static void use_way(struct played *set, uint32_t way, bool hit)
{
    if (set->policy == CACHE_PLRU) {
        probe_cache_plru_touch(&set->bits, set->ways, way);
    } else if (set->policy == CACHE_AGED) {
        for (int age = 0; age <= OLDEST; age++) {
            set->of_age[age] &= ~(1U << way);
        }
        grow_older(set->of_age);
        set->of_age[hit ? 0 : AGE_OF_NEW] |= 1U << way;
    }
}

static bool visit(struct played *set, uint16_t line)
{
    const bool hit = set->way[line] != 0;
    const uint32_t way = hit ? set->way[line] - 1u : victim_of(set);
    if (!hit) {
        set->way[set->held[way]] = 0;
        set->held[way] = line;
        set->way[line] = (uint8_t)(way + 1);
    }
    use_way(set, way, hit);
    return hit;
}

/* Ages: the mean of many sets, which stays what it is after a dozen turns or so (of 16 ways and
 * 17 lines 0.22 of the visits miss, after two turns 0.73); a set that never hits once the strangers
 * are gone never will. Random ways: as many visits as it takes for a share of 0.1 to be off by 3
 * %. */
static double played_miss(enum cache_policy policy, uint32_t lines, uint32_t ways)
{
    enum { SETS = 48, HOPELESS_FROM = 8, TURNS = 16, RANDOM_WARM_TURNS = 8, RANDOM_VISITS = 24576 };
    const bool is_random = policy == CACHE_RANDOM;
    const uint32_t sets = policy == CACHE_AGED ? SETS : 1,
                   warm = is_random ? RANDOM_WARM_TURNS : TURNS,
                   turns = is_random ? RANDOM_VISITS / lines : TURNS;
    struct random random = {lines * (uint64_t)LINES_MAX + ways};
    uint32_t misses = 0;
    for (uint32_t i = 0; i < sets; i++) {
        struct played set = begin_set(policy, ways, &random);
        uint32_t missed = 0;
        for (uint32_t turn = 0; turn < warm + turns; turn++) {
            if (policy != CACHE_AGED || turn <= HOPELESS_FROM || missed < lines) {
                missed = 0;
                for (uint16_t line = 1; line <= lines; line++) {
                    missed += !visit(&set, line);
                }
            }
            misses += turn < warm ? 0 : missed;
        }
    }
    return (double)misses / ((double)lines * turns * sets);
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

/* Each set is played through once. Near the number of ways the formula of random ones is wrong by
 * up to half (it forgets that of the other lines one more is missing while this one is there): with
 * one line too many 1/K, not 2/(K + 1), which moves a size by a twentieth. */
static double remembered(enum cache_policy policy, uint32_t lines, uint32_t ways)
{
    static double known[CACHE_POLICIES][WAYS_MAX + 1][LINES_MAX + 1]; /* 0: not yet */
    double *miss = &known[policy][ways][lines];
    *miss = *miss > 0 ? *miss : fmax(played_miss(policy, lines, ways), 1e-9);
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
        return lines > LINES_MAX || lines > 4.0 * ways || ways > WAYS_MAX
                   ? random_fixed_point(lines, ways)
                   : remembered(policy, (uint32_t)lines, ways);
    default:
        return adaptive_miss(lines, ways);
    }
}
