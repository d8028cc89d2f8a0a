/* The threads of a region are placed by the same engine as workers; which of several ways to cut
 * regions shares less. */
#include "mapper/domains/domains.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/scope.h"

void map_region_open(struct map_machine *m, const struct map_region *region)
{
    memset(m->slots.key, 0xff, m->view.leaf_count * sizeof *m->slots.key); /* MAP_KEY_NEVER */
    for (uint32_t i = 0; i < region->count; i++) {
        m->slots.key[region->items[i]] = region->slots->key[region->first_leaf + region->items[i]];
    }
}

void map_region_choose(struct map_machine *m, const struct map_region *region, size_t threads,
                       uint32_t *chosen)
{
    const struct map_slots *slots = region->slots;
    map_region_open(m, region);
    map_engine_restart(m->engine, &m->slots);
    for (size_t i = 0; i < slots->taken_count; i++) {
        uint32_t item = slots->taken[i] - region->first_leaf;
        if (item < m->view.leaf_count) { /* of this node */
            map_engine_raise(m->engine, item);
        }
    }
    for (size_t t = 0; t < threads; t++) {
        chosen[t] = map_engine_take(m->engine);
    }
}

/* Layers at which two items are in different groups. */
static uint64_t parting(const struct map_order *layers, uint32_t a, uint32_t b)
{
    const uint32_t *x = layers->group + (size_t)a * layers->depth;
    const uint32_t *y = layers->group + (size_t)b * layers->depth;
    uint64_t levels = 0;
    for (uint32_t level = 0; level < layers->depth; level++) {
        levels += x[level] != y[level];
    }
    return levels;
}

bool map_region_parted(const struct map_machine *m, enum map_relation by,
                       const struct map_units *units)
{
    for (size_t f = 0; f < m->view.classes[0].family_count; f++) {
        const struct map_family *family = &m->view.classes[0].families[f];
        bool joins = false, parts = false;
        if ((family->rule == MAP_RULE_LATENCY) != (by == MAP_LAYERS)) {
            continue;
        }
        for (uint32_t i = 1; i < units->count; i++) {
            bool related = map_groups_related(&family->groups, units->item[i - 1], units->item[i]);
            joins = joins || related;
            parts = parts || !related;
        }
        if (joins && parts) {
            return true;
        }
    }
    return false;
}

uint64_t map_region_parting(const struct map_order *layers, const uint32_t *items,
                            const struct map_share *ranks, size_t rank_count)
{
    uint64_t sum = 0;
    for (size_t r = 0; r < rank_count; items += ranks[r++].threads) {
        for (uint32_t t = 1; t < ranks[r].threads; t++) {
            sum += parting(layers, items[t - 1], items[t]);
        }
    }
    return sum;
}

/* Ranks times spare items that are looked at: 4 bytes each; of more, the first spare items. */
#define MOST_ALIGNMENTS ((size_t)1 << 20)

struct alignment {
    uint64_t *parted; /* by place in the items: layers between them up to here */
    uint64_t *least;  /* by items left out: within the ranks so far */
    uint32_t *before; /* by rank, and by items left out: how many of them before the last rank */
    size_t spare;
};

/* The least partings of all ranks for every number of items left out, one rank after the other. */
static void align_ranks(struct alignment *a, const struct map_share *ranks, size_t rank_count)
{
    for (size_t r = 0, first = 0; r < rank_count; first += ranks[r++].threads) {
        uint64_t best = a->least[0];
        uint32_t best_at = 0, *before = a->before + r * (a->spare + 1);
        for (uint32_t out = 0; out <= a->spare; out++) {
            if (a->least[out] < best) {
                best = a->least[out];
                best_at = out;
            }
            before[out] = best_at;
            uint64_t last = a->parted[first + out + ranks[r].threads - 1];
            a->least[out] = best + last - a->parted[first + out];
        }
    }
}

/* Takes the items of that, from the last rank on: the fewest are left out, and each as late as it
 * helps. */
static void take_aligned(const struct alignment *a, const uint32_t *items,
                         const struct map_share *ranks, size_t rank_count, uint32_t *taken)
{
    size_t out = 0, first = 0;
    for (size_t i = 1; i <= a->spare; i++) {
        out = a->least[i] < a->least[out] ? i : out;
    }
    for (size_t r = 0; r < rank_count; r++) {
        first += ranks[r].threads;
    }
    for (size_t r = rank_count; r-- > 0;) {
        first -= ranks[r].threads;
        memcpy(taken + first, items + first + out, ranks[r].threads * sizeof *taken);
        out = a->before[r * (a->spare + 1) + out];
    }
}

int map_region_align(const struct map_order *layers, const uint32_t *items, size_t count,
                     const struct map_share *ranks, size_t rank_count, uint32_t *out)
{
    size_t threads = 0, most = MOST_ALIGNMENTS / rank_count;
    for (size_t r = 0; r < rank_count; r++) {
        threads += ranks[r].threads;
    }
    struct alignment a = {.spare = count - threads < most ? count - threads : most};
    FREED uint64_t *parted = calloc(count, sizeof *parted);
    FREED uint64_t *least = calloc(a.spare + 1, sizeof *least);
    FREED uint32_t *before = calloc((a.spare + 1) * rank_count, sizeof *before);
    if (!parted || !least || !before) {
        return -ENOMEM;
    }
    for (size_t i = 1; i < count; i++) {
        parted[i] = parted[i - 1] + parting(layers, items[i - 1], items[i]);
    }
    a.parted = parted;
    a.least = least;
    a.before = before;
    align_ranks(&a, ranks, rank_count);
    take_aligned(&a, items, ranks, rank_count, out);
    return 0;
}

static uint64_t load_of(const struct map_machine *m, const struct map_groups *groups, uint32_t g)
{
    uint64_t load = 0;
    for (uint32_t at = groups->start[g]; at < groups->start[g + 1]; at++) {
        load += m->load[groups->members[at]];
    }
    return load;
}

/* Pairs that share a group of the family, or are listed as sharing, twice each; and the most
 * threads of a group. */
static uint64_t share_family(const struct map_machine *m, const struct map_groups *groups,
                             uint32_t *most)
{
    uint64_t sum = 0, highest = 0;
    for (uint32_t g = 0; g < groups->group_count; g++) {
        uint64_t load = load_of(m, groups, g);
        sum += load * load;
        highest = load > highest ? load : highest;
    }
    for (uint32_t item = 0; groups->pair_start && item < groups->item_count; item++) {
        for (uint32_t at = groups->pair_start[item]; at < groups->pair_start[item + 1]; at++) {
            sum += (uint64_t)m->load[item] * m->load[groups->pair_with[at]];
        }
    }
    *most = (uint32_t)highest;
    return sum;
}

void map_machine_sharing(const struct map_machine *m, struct map_sharing *out)
{
    out->all = 0;
    for (size_t i = 0; i < m->view.classes[0].family_count; i++) {
        const struct map_family *family = &m->view.classes[0].families[i];
        uint32_t most = 0;
        if (family->rule != MAP_RULE_LATENCY) {
            out->all += share_family(m, &family->groups, &most);
        }
        if (out->most) {
            out->most[i] = most;
        }
    }
}

/* Overhead that was not measured is believed of the narrowest domains alone. */
static bool is_believed(const struct map_machine *m, size_t family)
{
    const struct profile_class *of = m->view.classes[0].of;
    const enum map_rule rule = m->view.classes[0].families[family].rule;
    const size_t level = family - of->cache_count;
    return rule == MAP_RULE_CACHE ||
           (rule == MAP_RULE_MEMORY && (level == 0 || of->memory.levels[level].bytes_per_s > 0 ||
                                        of->memory.levels[level].scaling_count));
}

uint64_t map_machine_crowd(const struct map_machine *m, const uint32_t *items, const size_t *first,
                           const struct map_share *ranks, size_t rank_count)
{
    uint64_t most = 0;
    for (size_t r = 0; r < rank_count; r++) {
        const uint32_t *own = items + first[ranks[r].rank];
        uint64_t sum = 0;
        for (size_t f = 0; f < m->view.classes[0].family_count; f++) {
            const struct map_family *family = &m->view.classes[0].families[f];
            for (uint32_t t = 0; family->rule == MAP_RULE_MEMORY && t < ranks[r].threads; t++) {
                uint32_t group = family->groups.group_of[own[t]];
                sum +=
                    group != MAP_NONE && is_believed(m, f) ? load_of(m, &family->groups, group) : 0;
            }
        }
        sum = 1000 * sum / ranks[r].threads;
        most = sum > most ? sum : most;
    }
    return most;
}

/* A rank may share a tenth more: less cannot be separated from noise where bandwidth is measured.
 */
#define NOTICED_PERCENT 110

bool map_sharing_no_worse(const struct map_machine *m, const struct map_sharing *with,
                          const struct map_sharing *least)
{
    bool worse = 100 * with->crowd > NOTICED_PERCENT * least->crowd;
    for (size_t i = 0; i < m->view.classes[0].family_count; i++) {
        worse = worse || (is_believed(m, i) && with->most[i] > least->most[i]);
    }
    return !worse;
}
