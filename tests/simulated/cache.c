/* The contents of a cache, row by row. Rows are made when a traversal first touches them: a cache
 * of 512 MiB has millions, a traversal visits few. */
#include "tests/simulated/simulated.h"

#include <stdlib.h>
#include <string.h>

#include "probes/cache/model.h"
#include "profile/base/cli.h"

/* DRRIP: 2-bit predictions; a line comes in as "long" (2), by the thrash-resistant half as
 * "distant" (3) but for one in 32; one row in 32 always follows the one, one in 32 the other
 * policy, and the rest whichever missed less. */
enum {
    DISTANT = 3,
    LONG_INTERVAL = DISTANT - 1,
    AGE_OF_NEW = 1,
    LEADER_EVERY = 32,
    DUEL_LIMIT = 512
};

/* The line of a row from before the traversal. */
#define STRANGER UINT64_MAX

void probe_sim_ways_clear(struct sim_ways *ways, const struct sim_cache *kind, uint32_t seed)
{
    for (size_t slot = 0; slot < ways->used; slot++) {
        ways->slot_of[ways->row_of[slot]] = 0;
    }
    ways->used = 0;
    ways->duel = 0;
    ways->seed = seed | 1;
    ways->kind = kind;
    if (!ways->slot_of) {
        ways->slot_of = cli_needed(calloc(kind->sets * kind->slices, sizeof *ways->slot_of));
    }
}

void probe_sim_ways_free(struct sim_ways *ways)
{
    free(ways->slot_of);
    free(ways->row_of);
    free(ways->lines);
    free(ways->marks);
    free(ways->trees);
    memset(ways, 0, sizeof *ways);
}

static void add_room(struct sim_ways *ways)
{
    const size_t room = ways->room ? 2 * ways->room : 256, lines = room * ways->kind->ways;
    ways->row_of = cli_needed(realloc(ways->row_of, room * sizeof *ways->row_of));
    ways->lines = cli_needed(realloc(ways->lines, lines * sizeof *ways->lines));
    ways->marks = cli_needed(realloc(ways->marks, lines * sizeof *ways->marks));
    ways->trees = cli_needed(realloc(ways->trees, room * sizeof *ways->trees));
    ways->room = room;
}

static uint32_t random_bits(struct sim_ways *ways)
{
    ways->seed ^= ways->seed << 13;
    ways->seed ^= ways->seed >> 17;
    ways->seed ^= ways->seed << 5;
    return ways->seed;
}

/* The row of a line: the set by the lower bits of its number, the slice by a hash of all. */
static uint32_t row_of(const struct sim_ways *ways, uint64_t line)
{
    const struct sim_cache *kind = ways->kind;
    bool even = (kind->sets & (kind->sets - 1)) == 0;
    uint64_t set = even ? (line - 1) & (kind->sets - 1) : (line - 1) % kind->sets;
    if (kind->slices == 1) {
        return (uint32_t)set;
    }
    uint64_t hash = (line - 1) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    return (uint32_t)((hash * UINT64_C(0xbf58476d1ce4e5b9) >> 33) % kind->slices * kind->sets +
                      set);
}

/* When none but `but` is of the highest age, all others age until one is. */
static void others_age(uint8_t *marks, uint32_t count, uint32_t but)
{
    uint8_t oldest = 0;
    for (uint32_t i = 0; i < count; i++) {
        oldest = i != but && marks[i] > oldest ? marks[i] : oldest;
    }
    for (uint32_t i = 0; i < count; i++) {
        marks[i] = (uint8_t)(marks[i] + (i == but ? 0 : DISTANT - oldest));
    }
}

static void set_age(struct sim_ways *ways, size_t slot, uint32_t way, uint8_t age)
{
    uint8_t *marks = &ways->marks[(size_t)slot * ways->kind->ways];
    marks[way] = age;
    others_age(marks, ways->kind->ways, way);
}

uint32_t probe_sim_ways_slot(const struct sim_ways *ways, uint64_t line)
{
    return ways->slot_of[row_of(ways, line)] - 1; /* 0 - 1: SIM_NO_SLOT */
}

/* The first contents of a row under a policy of ages stay visible: they choose the round that a
 * cycle leads it to (aged_begun() in probes/cache/replacement.c). */
static void begin_with_strangers(struct sim_ways *ways, uint32_t slot)
{
    const uint32_t count = ways->kind->ways;
    uint8_t *marks = &ways->marks[(size_t)slot * count];
    for (uint32_t way = 0; way < count; way++) {
        ways->lines[(size_t)slot * count + way] = STRANGER;
        marks[way] = (uint8_t)(random_bits(ways) >> 30);
    }
    others_age(marks, count, count);
}

uint32_t probe_sim_ways_reserve(struct sim_ways *ways, uint64_t line)
{
    uint32_t row = row_of(ways, line), count = ways->kind->ways;
    if (ways->slot_of[row]) {
        return ways->slot_of[row] - 1;
    }
    if (ways->used == ways->room) {
        add_room(ways);
    }
    uint32_t slot = (uint32_t)ways->used++;
    ways->slot_of[row] = slot + 1;
    ways->row_of[slot] = row;
    ways->trees[slot] = 0;
    memset(&ways->lines[(size_t)slot * count], 0, count * sizeof *ways->lines);
    memset(&ways->marks[(size_t)slot * count], 0, count * sizeof *ways->marks);
    if (ways->kind->policy == SIM_AGED) {
        begin_with_strangers(ways, slot);
    }
    return slot;
}

static void to_front(uint64_t *lines, uint32_t way)
{
    uint64_t line = lines[way];
    memmove(lines + 1, lines, way * sizeof *lines);
    lines[0] = line;
}

static void touch_way(struct sim_ways *ways, size_t slot, uint32_t way)
{
    switch (ways->kind->policy) {
    case SIM_LRU:
        to_front(&ways->lines[(size_t)slot * ways->kind->ways], way);
        return;
    case SIM_TREE_PLRU:
        probe_cache_plru_touch(&ways->trees[slot], ways->kind->ways, way);
        return;
    case SIM_AGED:
        set_age(ways, slot, way, 0);
        return;
    case SIM_ADAPTIVE:
        ways->marks[(size_t)slot * ways->kind->ways + way] = 0;
        return;
    default:
        return;
    }
}

bool probe_sim_ways_hit(struct sim_ways *ways, uint32_t slot, uint64_t line)
{
    const uint64_t *lines = &ways->lines[(size_t)slot * ways->kind->ways];
    for (uint32_t way = 0; way < ways->kind->ways; way++) {
        if (lines[way] == line) {
            touch_way(ways, slot, way);
            return true;
        }
    }
    return false;
}

static uint32_t adaptive_victim(struct sim_ways *ways, size_t slot)
{
    uint8_t *marks = &ways->marks[(size_t)slot * ways->kind->ways];
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

static uint32_t victim(struct sim_ways *ways, size_t slot)
{
    uint32_t count = ways->kind->ways;
    const uint64_t *lines = &ways->lines[(size_t)slot * count];
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
        return adaptive_victim(ways, slot);
    default:
        return probe_cache_plru_victim(ways->trees[slot], count);
    }
}

/* Which rows lead is a matter of a hash: a stride would visit leaders of one kind only. */
static void adaptive_insert(struct sim_ways *ways, size_t slot, uint32_t way)
{
    bool resist = ways->duel > 0;
    uint32_t group = (ways->row_of[slot] * UINT32_C(0x9e3779b1) >> 16) % LEADER_EVERY;
    if (group == 0) { /* this row's misses speak against plain insertion */
        ways->duel += ways->duel < DUEL_LIMIT;
        resist = false;
    } else if (group == 1) {
        ways->duel -= ways->duel > -DUEL_LIMIT;
        resist = true;
    }
    bool distant = resist && random_bits(ways) % LEADER_EVERY != 0;
    ways->marks[(size_t)slot * ways->kind->ways + way] = distant ? DISTANT : LONG_INTERVAL;
}

uint64_t probe_sim_ways_fill(struct sim_ways *ways, uint32_t slot, uint64_t line)
{
    uint32_t way = victim(ways, slot);
    uint64_t *place = &ways->lines[(size_t)slot * ways->kind->ways + way], evicted = *place;
    *place = line;
    if (ways->kind->policy == SIM_ADAPTIVE) {
        adaptive_insert(ways, slot, way);
    } else if (ways->kind->policy == SIM_AGED) {
        set_age(ways, slot, way, AGE_OF_NEW);
    } else {
        touch_way(ways, slot, way);
    }
    return evicted == STRANGER ? 0 : evicted;
}

void probe_sim_ways_remove(struct sim_ways *ways, uint32_t slot, uint64_t line)
{
    uint64_t *lines = &ways->lines[(size_t)slot * ways->kind->ways];
    for (uint32_t way = 0; way < ways->kind->ways; way++) {
        if (lines[way] == line) {
            lines[way] = 0;
            return;
        }
    }
}
