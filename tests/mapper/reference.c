#include "tests/mapper/reference.h"

#include <string.h>

struct pu {
    const struct profile_class *of;
    uint32_t node, os, number;
    bool allowed;
    unsigned kind;
    uint64_t workers, core_workers;
    int64_t weight;
};

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

/* What the choice of c adds to x, times (Max - Min). */
static int64_t added(const struct servet_profile *profile, enum map_priority priority,
                     struct range range, const struct pu *c, const struct pu *x)
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
    return range.high > range.low ? sum - b * (range.high - latency) : sum;
}

static void choose(const struct servet_profile *profile, enum map_priority priority,
                   struct range range, struct pu *pus, size_t count, struct pu *chosen)
{
    for (struct pu *x = pus; x < pus + count; x++) {
        bool core_mate = x->node == chosen->node && related(&chosen->of->cores, chosen->os, x->os);
        x->core_workers += x == chosen || core_mate;
        x->weight += x == chosen ? 0 : added(profile, priority, range, chosen, x);
    }
    chosen->workers++;
}

static bool better(const struct pu *x, const struct pu *y)
{
    if (x->workers != y->workers) {
        return x->workers < y->workers;
    }
    if (x->core_workers != y->core_workers) {
        return x->core_workers < y->core_workers;
    }
    return x->kind != y->kind ? x->kind < y->kind : x->weight < y->weight;
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
            pus[count++] = pu;
        }
    }
    return count;
}

/* Only the first kind whose free cores suffice stays allowed. */
static void keep_one_kind(struct pu *pus, size_t count, size_t workers)
{
    for (unsigned kind = 0; kind < 8; kind++) {
        size_t cores = 0;
        for (size_t i = 0; i < count; i++) {
            bool counts = pus[i].allowed && !pus[i].core_workers && pus[i].kind == kind;
            for (size_t j = 0; j < i; j++) {
                bool mate =
                    pus[j].node == pus[i].node && related(&pus[i].of->cores, pus[i].os, pus[j].os);
                counts = counts && !(mate && pus[j].allowed);
            }
            cores += counts;
        }
        if (cores >= workers) {
            for (size_t i = 0; i < count; i++) {
                pus[i].allowed = pus[i].allowed && pus[i].kind == kind;
            }
            return;
        }
    }
}

void reference_map(const struct servet_profile *profile, const struct map_request *request,
                   uint32_t *out)
{
    struct pu pus[REFERENCE_MOST_PUS];
    size_t count = list_pus(profile, request->allowed, pus);
    struct range range = latencies(profile);
    for (size_t i = 0; request->taken && i < count; i++) {
        if (profile_set_has(request->taken, pus[i].number)) {
            choose(profile, request->priority, range, pus, count, &pus[i]);
        }
    }
    keep_one_kind(pus, count, request->workers);
    for (size_t w = 0; w < request->workers; w++) {
        struct pu *best = NULL;
        for (size_t i = 0; i < count; i++) {
            if (pus[i].allowed && (!best || better(&pus[i], best))) {
                best = &pus[i];
            }
        }
        out[w] = best->number;
        choose(profile, request->priority, range, pus, count, best);
    }
}
