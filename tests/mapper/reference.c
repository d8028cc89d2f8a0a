/* The weight algorithm written down as map.h says it, pair by pair and without any structure:
 * what the engines are held against. */
#include "tests/mapper/reference.h"

#include <string.h>

#include "profile/query.h"

struct pu {
    const struct profile_class *of;
    uint32_t node, os, number;
    bool allowed;
    bool far; /* no memory of its own */
    unsigned kind;
    uint64_t workers, core_workers;
    int64_t sharing, approach; /* rules 1 and 2; rule 3: both over Max - Min */
    unsigned cache_rank;       /* caches of the last level that are larger than its own */
    uint64_t package_workers;  /* others; 0 where packages have no say */
};

/* Also of itself, as a node is of its layer: profile_related() says no there. */
static bool related(const struct profile_relation *relation, uint32_t a, uint32_t b)
{
    for (size_t g = 0; g < relation->group_count; g++) {
        if (profile_set_has(&relation->groups[g], a) && profile_set_has(&relation->groups[g], b)) {
            return true;
        }
    }
    for (size_t p = 0; p < relation->pair_count; p++) {
        const struct profile_pair *pair = &relation->pairs[p];
        if ((pair->a == a && pair->b == b) || (pair->a == b && pair->b == a)) {
            return true;
        }
    }
    return false;
}

static int64_t quanta(double seconds)
{
    return (int64_t)(seconds / MAP_LATENCY_QUANTUM_SECONDS + 0.5);
}

static bool first_layer(const struct profile_communication *c, uint32_t a, uint32_t b,
                        int64_t *latency)
{
    for (size_t i = 0; i < c->layer_count; i++) {
        if (related(&c->layers[i].members, a, b)) {
            *latency = quanta(c->layers[i].seconds);
            return true;
        }
    }
    return false;
}

static void extremes(const struct profile_communication *c, int64_t *low, int64_t *high)
{
    for (size_t i = 0; i < c->layer_count; i++) {
        int64_t latency = quanta(c->layers[i].seconds);
        *low = latency < *low ? latency : *low;
        *high = latency > *high ? latency : *high;
    }
}

struct range {
    int64_t low, high;
};

static struct range latencies(const struct servet_profile *profile)
{
    struct range range = {INT64_MAX, 0};
    for (size_t i = 0; i < profile->class_count; i++) {
        extremes(&profile->classes[i].communication, &range.low, &range.high);
    }
    extremes(&profile->network, &range.low, &range.high);
    return range;
}

/* Weight that the choice of c adds to x, times (Max - Min). */
static void add(const struct servet_profile *profile, enum map_priority priority,
                struct range range, const struct pu *c, struct pu *x)
{
    int64_t a = priority == MAP_MEMORY ? 10 : 1, b = 11 - a, sum = 0;
    int64_t scale = range.high > range.low ? range.high - range.low : 1, latency = range.high;
    if (c->node == x->node) {
        for (size_t i = 0; i < c->of->cache_count; i++) {
            sum += related(&c->of->caches[i].sharing, c->os, x->os) ? a * scale : 0;
        }
        for (size_t i = 0; i < c->of->memory.level_count; i++) {
            sum += related(&c->of->memory.levels[i].collisions, c->os, x->os) ? a * scale : 0;
        }
    }
    if (c->node != x->node || !first_layer(&c->of->communication, c->os, x->os, &latency)) {
        first_layer(&profile->network, c->node, x->node, &latency);
    }
    x->sharing += sum;
    x->approach -= range.high > range.low ? b * (range.high - latency) : 0;
}

static void choose(const struct servet_profile *profile, enum map_priority priority,
                   struct range range, struct pu *pus, size_t count, struct pu *chosen)
{
    for (struct pu *x = pus; x < pus + count; x++) {
        bool core_mate = x->node == chosen->node && related(&chosen->of->cores, chosen->os, x->os);
        x->core_workers += x == chosen || core_mate;
        x->package_workers += x != chosen && x->node == chosen->node &&
                              related(&chosen->of->packages, chosen->os, x->os);
        if (x != chosen) {
            add(profile, priority, range, chosen, x);
        }
    }
    chosen->workers++;
}

/* Workers of a node until one more would get less than 9/10 of what one alone gets. */
static size_t room(const struct profile_class *of)
{
    size_t least = of->pus.count;
    for (size_t l = 0; l < of->memory.level_count; l++) {
        const struct profile_memory_level *level = &of->memory.levels[l];
        size_t sum = 0, in_groups = 0;
        for (size_t g = 0; g < level->collisions.group_count; g++) {
            uint32_t size = (uint32_t)level->collisions.groups[g].count, fit = 1;
            while (fit < size && level->scaling_count &&
                   profile_memory_bandwidth(&of->memory, level, fit + 1) / (fit + 1) >=
                       0.9 * of->memory.reference_bytes_per_s) {
                fit++;
            }
            sum += fit;
            in_groups += size;
        }
        sum += of->pus.count - in_groups;
        sum = level->collisions.pair_count ? 1 : sum;
        least = sum < least ? sum : least;
    }
    return of->memory.reference_bytes_per_s > 0 ? least : 1;
}

static bool better(const struct map_request *request, const size_t *in_node, const struct pu *x,
                   const struct pu *y)
{
    if (x->workers != y->workers) {
        return x->workers < y->workers;
    }
    if (x->core_workers != y->core_workers) {
        return x->core_workers < y->core_workers;
    }
    if (request->priority == MAP_MEMORY && !request->paper) {
        bool x_goes_on = in_node[x->node] && in_node[x->node] < room(x->of);
        bool y_goes_on = in_node[y->node] && in_node[y->node] < room(y->of);
        if (x_goes_on != y_goes_on) {
            return x_goes_on;
        }
    }
    if (x->far != y->far) {
        return y->far;
    }
    if (x->kind != y->kind) {
        return x->kind < y->kind;
    }
    if (request->paper) {
        return x->sharing + x->approach < y->sharing + y->approach;
    }
    bool sharing = x->sharing != y->sharing, approach = x->approach != y->approach;
    if (sharing && (request->priority == MAP_MEMORY || !approach)) {
        return x->sharing < y->sharing;
    }
    if (approach) {
        return x->approach < y->approach;
    }
    return x->cache_rank != y->cache_rank ? x->cache_rank < y->cache_rank
                                          : x->package_workers < y->package_workers;
}

static unsigned cache_rank(const struct profile_class *of, uint32_t os)
{
    uint32_t last = of->cache_count ? of->caches[of->cache_count - 1].level : 0;
    uint64_t bytes = 0;
    unsigned rank = 0;
    for (size_t i = 0; i < of->cache_count; i++) {
        const struct profile_cache *cache = &of->caches[i];
        bool own = cache->level == last && (!cache->pus.count || profile_set_has(&cache->pus, os));
        if (own) {
            bytes = cache->size_bytes;
            break;
        }
    }
    for (size_t i = 0; i < of->cache_count; i++) {
        rank += of->caches[i].level == last && of->caches[i].size_bytes > bytes;
    }
    return rank;
}

static unsigned kind_rank(const struct profile_class *of, uint32_t os)
{
    for (size_t k = 0; k < of->kind_count; k++) {
        unsigned rank = 0;
        for (size_t o = 0; o < of->kind_count; o++) {
            bool equal = of->kinds[o].efficiency == of->kinds[k].efficiency;
            rank += of->kinds[o].efficiency > of->kinds[k].efficiency || (equal && o < k);
        }
        if (profile_set_has(&of->kinds[k].pus, os)) {
            return rank;
        }
    }
    return (unsigned)of->kind_count;
}

/* Some node's memory is known and this PU is local to none with any. */
static bool is_far(const struct profile_class *of, uint32_t os)
{
    bool known = false, near = false;
    for (size_t n = 0; n < of->numa_count; n++) {
        bool memory = of->numa[n].memory_bytes > 0;
        known = known || (memory && of->numa[n].pus.count);
        near = near || (memory && profile_set_has(&of->numa[n].pus, os));
    }
    return known && !near;
}

static size_t list_pus(const struct servet_profile *profile, const struct profile_set *allowed,
                       struct pu *pus)
{
    size_t count = 0;
    for (uint32_t n = 0; n < profile_node_count(profile); n++) {
        const struct profile_class *of = profile_node_class(profile, n);
        for (size_t i = 0; i < of->pus.count; i++) {
            struct pu pu = {.of = of, .node = n, .os = of->pus.ids[i]};
            pu.number = profile_node_first_pu(profile, n) + pu.os;
            pu.allowed = !allowed || profile_set_has(allowed, pu.number);
            pu.kind = kind_rank(of, pu.os);
            pu.far = is_far(of, pu.os);
            pu.cache_rank = cache_rank(of, pu.os);
            pus[count++] = pu;
        }
    }
    return count;
}

void reference_map(const struct servet_profile *profile, const struct map_request *request,
                   uint32_t *out)
{
    struct pu pus[REFERENCE_MOST_PUS];
    size_t in_node[REFERENCE_MOST_PUS] = {0};
    size_t count = list_pus(profile, request->allowed, pus);
    struct range range = latencies(profile);
    for (size_t i = 0; request->taken && i < count; i++) {
        if (profile_set_has(request->taken, pus[i].number)) {
            choose(profile, request->priority, range, pus, count, &pus[i]);
        }
    }
    for (size_t w = 0; w < request->workers; w++) {
        struct pu *best = NULL;
        for (size_t i = 0; i < count; i++) {
            if (pus[i].allowed && (!best || better(request, in_node, &pus[i], best))) {
                best = &pus[i];
            }
        }
        out[w] = best->number;
        in_node[best->node]++;
        choose(profile, request->priority, range, pus, count, best);
    }
}
