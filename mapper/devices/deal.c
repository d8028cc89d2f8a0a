/* Which rank gets which GPU, when the ranks have their PUs; how good such a placement is. */
#include <errno.h>
#include <string.h>

#include "mapper/devices/choice.h"
#include "profile/scope.h"

/* -- dealing -- */

/* Ranks and GPUs: the larger number is dealt out over the smaller one, so that each gets some, most
 * are near, and then as evenly as that goes. An assignment of least cost, by shortest augmenting
 * paths (Edmonds and Karp, "Theoretical improvements in algorithmic efficiency for network flow
 * problems", Journal of the ACM 19, 1972): a bin costs more with each item, so each path is one of
 * the best of all. */
struct dealing {
    size_t items, bins;
    int64_t *cost;      /* of item i in bin b: cost[i * bins + b] */
    size_t *bin, *load; /* by item; by bin */
    int64_t *least;     /* by bin: of a path that ends there */
    size_t *moved;      /* by bin: the item that such a path moves there */
};

/* One step further away weighs more than any load; to be without weighs more than all distances. */
#define DISTANCE_WEIGHT ((int64_t)1 << 24)
#define FAR_WEIGHT (16 * DISTANCE_WEIGHT)
#define FIRST_WEIGHT ((int64_t)1 << 48)

static int64_t load_cost(size_t load)
{
    return load ? (int64_t)load : -FIRST_WEIGHT;
}

static void find_paths(struct dealing *d, size_t item)
{
    bool changed = true;
    for (size_t b = 0; b < d->bins; b++) {
        d->least[b] = d->cost[item * d->bins + b];
        d->moved[b] = item;
    }
    while (changed) {
        changed = false;
        for (size_t i = 0; i < item; i++) {
            const int64_t *cost = d->cost + i * d->bins;
            for (size_t b = 0; b < d->bins; b++) {
                int64_t path = d->least[d->bin[i]] + cost[b] - cost[d->bin[i]];
                if (path < d->least[b]) {
                    d->least[b] = path;
                    d->moved[b] = i;
                    changed = true;
                }
            }
        }
    }
}

static void deal_item(struct dealing *d, size_t item)
{
    size_t end = 0, moved;
    find_paths(d, item);
    for (size_t b = 1; b < d->bins; b++) {
        end =
            d->least[b] + load_cost(d->load[b]) < d->least[end] + load_cost(d->load[end]) ? b : end;
    }
    d->load[end]++;
    do {
        size_t before = d->bin[moved = d->moved[end]];
        d->bin[moved] = end;
        end = before;
    } while (moved != item);
}

/* Items that are alike go to bins in order: neighbouring dies stay together. */
static void sort_alike(struct dealing *d)
{
    for (size_t i = 0; i < d->items; i++) {
        for (size_t k = i + 1; k < d->items; k++) {
            size_t bin = d->bin[i];
            if (bin > d->bin[k] && memcmp(d->cost + i * d->bins, d->cost + k * d->bins,
                                          d->bins * sizeof *d->cost) == 0) {
                d->bin[i] = d->bin[k];
                d->bin[k] = bin;
            }
        }
    }
}

int map_choice_deal(struct map_choice *c, const struct profile_device *const *gpus,
                    size_t gpu_count, size_t begin, size_t end)
{
    const size_t ranks = end - begin;
    const bool by_gpu = ranks <= gpu_count;
    struct dealing d = {.items = by_gpu ? gpu_count : ranks, .bins = by_gpu ? ranks : gpu_count};
    d.cost = map_arena_get(c->arena, d.items * d.bins, sizeof *d.cost);
    d.bin = map_arena_get(c->arena, d.items, sizeof *d.bin);
    d.load = map_arena_get(c->arena, d.bins, sizeof *d.load);
    d.least = map_arena_get(c->arena, d.bins, sizeof *d.least);
    d.moved = map_arena_get(c->arena, d.bins, sizeof *d.moved);
    TRY(map_arena_check(c->arena));
    for (size_t i = 0; i < d.items * d.bins; i++) {
        size_t item = i / d.bins, bin = i % d.bins;
        enum map_distance distance =
            map_choice_distance(c, gpus[by_gpu ? item : bin], begin + (by_gpu ? bin : item));
        d.cost[i] = distance ? FAR_WEIGHT + distance * DISTANCE_WEIGHT : 0;
    }
    for (size_t i = 0; i < d.items; i++) {
        deal_item(&d, i);
    }
    sort_alike(&d);
    for (size_t i = 0; i < d.items; i++) {
        TRY(map_choice_hold(c, begin + (by_gpu ? d.bin[i] : i), gpus[by_gpu ? i : d.bin[i]]));
    }
    return 0;
}

/* -- what a placement is worth -- */

/* Groups that some of these PUs are in; NUMA nodes of the same PUs are tiers of memory. */
static size_t count_groups_of(const struct map_choice *c, bool packages,
                              const struct profile_set *pus)
{
    const struct profile_class *of = c->node->of;
    size_t count = 0;
    for (size_t g = 0; packages && g < of->packages.group_count; g++) {
        count += profile_set_overlaps(&of->packages.groups[g], pus);
    }
    for (size_t n = 0, m; !packages && n < of->numa_count; n++) {
        for (m = 0; !profile_set_equal(&of->numa[m].pus, &of->numa[n].pus); m++) {
        }
        count += m == n && profile_set_overlaps(&of->numa[n].pus, pus);
    }
    return count;
}

/* Groups that a rank is in beyond one, or beyond those that its GPUs are near to. */
static size_t count_crossed(const struct map_choice *c, bool packages, size_t rank,
                            const struct profile_set *pus)
{
    size_t own = count_groups_of(c, packages, pus), needed = 1, gpus = 0;
    for (const struct map_hold *hold = c->holds[rank]; hold; hold = hold->before) {
        size_t near = count_groups_of(c, packages, &hold->device->pus);
        bool again = false;
        for (const struct map_hold *other = c->holds[rank]; other != hold; other = other->before) {
            again = again || profile_set_overlaps(&other->device->pus, &hold->device->pus);
        }
        gpus += near == 1 && !again;
    }
    needed = gpus > needed ? gpus : needed;
    return own > needed ? own - needed : 0;
}

/* A crossing weighs more than all that comes behind it on a node. */
#define CROSSED_NODE ((uint64_t)1 << 20)
#define CROSSED_PACKAGE ((uint64_t)1 << 40)

int map_choice_weigh(const struct map_choice *c, size_t begin, size_t end, uint64_t *out)
{
    *out = 0;
    for (size_t rank = begin; rank < end; rank++) {
        struct profile_set pus;
        size_t threads = c->first[rank + 1] - c->first[rank];
        uint32_t *ids = map_arena_get(c->arena, threads, sizeof *ids);
        for (size_t t = 0; ids && t < threads; t++) {
            ids[t] = c->pus[c->first[rank] + t] - c->node->first_pu;
        }
        if (!ids || profile_set_from_array(ids, threads, &pus) < 0) {
            return -ENOMEM;
        }
        *out += CROSSED_PACKAGE * count_crossed(c, true, rank, &pus);
        *out += CROSSED_NODE * count_crossed(c, false, rank, &pus);
        for (const struct map_hold *hold = c->holds[rank]; hold; hold = hold->before) {
            *out += !profile_set_overlaps(&hold->device->pus, &pus);
        }
        profile_set_free(&pus);
    }
    return 0;
}
