#include "sim_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* DRRIP: 2-bit predictions; a line comes in as "long" (2), by the thrash-resistant half as "distant" (3) but for one in
 * 32; one row in 32 always follows the one, one the other policy, and the rest whichever missed less. */
enum { DISTANT = 3, LONG_INTERVAL = 2, AGE_OF_NEW = 1, LEADER_EVERY = 32, BIMODAL = 32, DUEL_LIMIT = 512 };

int sim_ways_init(struct sim_ways *ways, const struct sim_cache *kind, uint32_t seed)
{
    size_t rows = kind->sets * kind->slices, lines = rows * kind->ways;
    *ways = (struct sim_ways){.kind = kind, .seed = seed | 1};
    ways->lines = calloc(lines, sizeof *ways->lines);
    ways->marks = calloc(lines, sizeof *ways->marks);
    ways->trees = calloc(rows, sizeof *ways->trees);
    if (!ways->lines || !ways->marks || !ways->trees) {
        sim_ways_free(ways);
        return -ENOMEM;
    }
    return 0;
}

void sim_ways_free(struct sim_ways *ways)
{
    free(ways->lines);
    free(ways->marks);
    free(ways->trees);
    memset(ways, 0, sizeof *ways);
}

static uint32_t random_bits(struct sim_ways *ways)
{
    ways->seed ^= ways->seed << 13;
    ways->seed ^= ways->seed >> 17;
    ways->seed ^= ways->seed << 5;
    return ways->seed;
}

/* The row of a line: the set by the lower bits of its number, the slice by a hash of all. */
static size_t row_of(const struct sim_ways *ways, uint64_t line)
{
    const struct sim_cache *kind = ways->kind;
    bool even = (kind->sets & (kind->sets - 1)) == 0;
    uint64_t set = even ? (line - 1) & (kind->sets - 1) : (line - 1) % kind->sets;
    if (kind->slices == 1) {
        return set;
    }
    uint64_t hash = (line - 1) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    return (size_t)((hash * UINT64_C(0xbf58476d1ce4e5b9) >> 33) % kind->slices * kind->sets + set);
}

static bool has_tree(const struct sim_ways *ways)
{
    return ways->kind->policy == SIM_TREE_PLRU && (ways->kind->ways & (ways->kind->ways - 1)) == 0;
}

/* Points every node on the way to `way` away from it. */
static void tree_touch(struct sim_ways *ways, size_t row, uint32_t way)
{
    uint32_t node = 1;
    for (uint32_t half = ways->kind->ways / 2; half > 0; half /= 2) {
        bool right = way & half;
        if (right) {
            ways->trees[row] &= ~(UINT64_C(1) << node);
        } else {
            ways->trees[row] |= UINT64_C(1) << node;
        }
        node = 2 * node + right;
    }
}

static uint32_t tree_victim(const struct sim_ways *ways, size_t row)
{
    uint32_t node = 1, way = 0;
    for (uint32_t half = ways->kind->ways / 2; half > 0; half /= 2) {
        bool right = ways->trees[row] >> node & 1;
        way += right ? half : 0;
        node = 2 * node + right;
    }
    return way;
}

static void bits_touch(struct sim_ways *ways, size_t row, uint32_t way)
{
    uint8_t *marks = &ways->marks[row * ways->kind->ways];
    marks[way] = 1;
    for (uint32_t i = 0; i < ways->kind->ways; i++) {
        if (!marks[i]) {
            return;
        }
    }
    memset(marks, 0, ways->kind->ways);
    marks[way] = 1;
}

/* Gives the line its age; when none of the set is of the highest then, all others age until one is. */
static void set_age(struct sim_ways *ways, size_t row, uint32_t way, uint8_t age)
{
    uint8_t *marks = &ways->marks[row * ways->kind->ways], oldest = 0;
    marks[way] = age;
    for (uint32_t i = 0; i < ways->kind->ways; i++) {
        oldest = marks[i] > oldest ? marks[i] : oldest;
    }
    for (uint32_t i = 0; i < ways->kind->ways && oldest < DISTANT; i++) {
        marks[i] = (uint8_t)(marks[i] + (i == way ? 0 : DISTANT - oldest));
    }
}

static void to_front(uint64_t *lines, uint32_t way)
{
    uint64_t line = lines[way];
    memmove(lines + 1, lines, way * sizeof *lines);
    lines[0] = line;
}

static void touch(struct sim_ways *ways, size_t row, uint32_t way)
{
    switch (ways->kind->policy) {
    case SIM_LRU:
        to_front(&ways->lines[row * ways->kind->ways], way);
        return;
    case SIM_TREE_PLRU:
        if (has_tree(ways)) {
            tree_touch(ways, row, way);
        } else {
            bits_touch(ways, row, way);
        }
        return;
    case SIM_AGED:
        set_age(ways, row, way, 0);
        return;
    case SIM_ADAPTIVE:
        ways->marks[row * ways->kind->ways + way] = 0;
        return;
    default:
        return;
    }
}

bool sim_ways_hit(struct sim_ways *ways, uint64_t line)
{
    size_t row = row_of(ways, line);
    const uint64_t *lines = &ways->lines[row * ways->kind->ways];
    for (uint32_t way = 0; way < ways->kind->ways; way++) {
        if (lines[way] == line) {
            touch(ways, row, way);
            return true;
        }
    }
    return false;
}

static uint32_t adaptive_victim(struct sim_ways *ways, size_t row)
{
    uint8_t *marks = &ways->marks[row * ways->kind->ways];
    for (;;) {
        for (uint32_t way = 0; way < ways->kind->ways; way++) {
            if (marks[way] >= DISTANT) {
                return way;
            }
        }
        for (uint32_t way = 0; way < ways->kind->ways; way++) {
            marks[way]++;
        }
    }
}

static uint32_t victim(struct sim_ways *ways, size_t row)
{
    uint32_t count = ways->kind->ways;
    const uint64_t *lines = &ways->lines[row * count];
    for (uint32_t way = 0; way < count; way++) {
        if (lines[way] == 0) {
            return way;
        }
    }
    switch (ways->kind->policy) {
    case SIM_LRU:
        return count - 1;
    case SIM_RANDOM:
        return (uint32_t)((uint64_t)random_bits(ways) * count >> 32);
    case SIM_AGED: /* like SIM_ADAPTIVE, the first of the highest age */
    case SIM_ADAPTIVE:
        return adaptive_victim(ways, row);
    default:
        break;
    }
    if (has_tree(ways)) {
        return tree_victim(ways, row);
    }
    uint32_t way = 0;
    while (way + 1 < count && ways->marks[row * count + way]) {
        way++;
    }
    return way;
}

static void adaptive_insert(struct sim_ways *ways, size_t row, uint32_t way)
{
    bool resist = ways->duel > 0;
    if (row % LEADER_EVERY == 0) { /* this row's misses speak against plain insertion */
        ways->duel += ways->duel < DUEL_LIMIT;
        resist = false;
    } else if (row % LEADER_EVERY == 1) {
        ways->duel -= ways->duel > -DUEL_LIMIT;
        resist = true;
    }
    bool distant = resist && random_bits(ways) % BIMODAL != 0;
    ways->marks[row * ways->kind->ways + way] = distant ? DISTANT : LONG_INTERVAL;
}

uint64_t sim_ways_fill(struct sim_ways *ways, uint64_t line)
{
    size_t row = row_of(ways, line);
    uint32_t way = victim(ways, row);
    uint64_t *slot = &ways->lines[row * ways->kind->ways + way], evicted = *slot;
    *slot = line;
    if (ways->kind->policy == SIM_ADAPTIVE) {
        adaptive_insert(ways, row, way);
    } else if (ways->kind->policy == SIM_AGED) {
        set_age(ways, row, way, AGE_OF_NEW);
    } else {
        touch(ways, row, way);
    }
    return evicted;
}

void sim_ways_remove(struct sim_ways *ways, uint64_t line)
{
    size_t row = row_of(ways, line);
    uint64_t *lines = &ways->lines[row * ways->kind->ways];
    for (uint32_t way = 0; way < ways->kind->ways; way++) {
        if (lines[way] == line) {
            lines[way] = 0;
            return;
        }
    }
}
