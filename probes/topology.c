/* What the operating system declares of the machine that is measured, narrowed to the PUs of
 * this run, and its kinds of cores: each is measured on its own first PU. */
#include "probes/topology.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int probe_topology_own(struct servet_profile **out, struct servet_error *error)
{
    static const char *const others[] = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT"};
    const char *this_system = getenv("HWLOC_THISSYSTEM");
    bool meant = this_system && strcmp(this_system, "") != 0 && strcmp(this_system, "0") != 0;
    for (size_t i = 0; !meant && i < sizeof others / sizeof *others; i++) {
        unsetenv(others[i]);
    }
    return profile_from_hwloc(NULL, out, error);
}

static int narrow_set(struct profile_set *set, const struct profile_set *pus)
{
    struct profile_set narrow;
    int rc = profile_set_intersect(set, pus, &narrow);
    if (rc == 0) {
        profile_set_free(set);
        *set = narrow;
    }
    return rc;
}

static int narrow_relation(struct profile_relation *relation, const struct profile_set *pus)
{
    size_t groups = 0, pairs = 0;
    for (size_t i = 0; i < relation->group_count; i++) {
        int rc = narrow_set(&relation->groups[i], pus);
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < relation->group_count; i++) {
        struct profile_set set = relation->groups[i];
        if (set.count >= 2) {
            relation->groups[groups++] = set;
        } else {
            profile_set_free(&set);
        }
    }
    for (size_t i = 0; i < relation->pair_count; i++) {
        if (profile_set_has(pus, relation->pairs[i].a) &&
            profile_set_has(pus, relation->pairs[i].b)) {
            relation->pairs[pairs++] = relation->pairs[i];
        }
    }
    relation->group_count = groups;
    relation->pair_count = pairs;
    return 0;
}

static bool empty(const struct profile_relation *relation)
{
    return relation->group_count == 0 && relation->pair_count == 0;
}

static int narrow_memory(struct profile_memory *memory, const struct profile_set *pus)
{
    size_t kept = 0;
    for (size_t i = 0; i < memory->level_count; i++) {
        int rc = narrow_relation(&memory->levels[i].collisions, pus);
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < memory->level_count; i++) {
        struct profile_memory_level level = memory->levels[i];
        if (empty(&level.collisions)) {
            probe_relation_free(&level.collisions);
            free(level.scaling);
            free(level.quality.note);
        } else {
            memory->levels[kept++] = level;
        }
    }
    memory->level_count = kept;
    return 0;
}

static int narrow_layers(struct profile_communication *communication, const struct profile_set *pus)
{
    size_t kept = 0;
    for (size_t i = 0; i < communication->layer_count; i++) {
        int rc = narrow_relation(&communication->layers[i].members, pus);
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < communication->layer_count; i++) {
        struct profile_layer layer = communication->layers[i];
        if (empty(&layer.members)) {
            probe_relation_free(&layer.members);
            free(layer.name);
            free(layer.curve);
            free(layer.concurrency);
            free(layer.quality.note);
        } else {
            communication->layers[kept++] = layer;
        }
    }
    communication->layer_count = kept;
    return 0;
}

static int narrow_kinds(struct profile_class *node_class, const struct profile_set *pus)
{
    size_t kept = 0;
    for (size_t i = 0; i < node_class->kind_count; i++) {
        int rc = narrow_set(&node_class->kinds[i].pus, pus);
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < node_class->kind_count; i++) {
        if (node_class->kinds[i].pus.count > 0) {
            node_class->kinds[kept++] = node_class->kinds[i];
        } else {
            profile_set_free(&node_class->kinds[i].pus);
        }
    }
    node_class->kind_count = kept;
    return 0;
}

int probe_topology_restrict(struct profile_class *node_class, const struct profile_set *pus)
{
    int rc = narrow_set(&node_class->pus, pus);
    rc = rc < 0 ? rc : narrow_relation(&node_class->cores, pus);
    rc = rc < 0 ? rc : narrow_relation(&node_class->packages, pus);
    for (size_t i = 0; i < node_class->numa_count && rc == 0; i++) {
        rc = narrow_set(&node_class->numa[i].pus, pus);
    }
    for (size_t i = 0; i < node_class->cache_count && rc == 0; i++) {
        rc = narrow_relation(&node_class->caches[i].sharing, pus);
    }
    rc = rc < 0 ? rc : narrow_kinds(node_class, pus);
    rc = rc < 0 ? rc : narrow_memory(&node_class->memory, pus);
    return rc < 0 ? rc : narrow_layers(&node_class->communication, pus);
}

void probe_kinds_free(struct kinds *kinds)
{
    for (size_t i = 0; i < kinds->count; i++) {
        profile_set_free(&kinds->pus[i]);
    }
    memset(kinds, 0, sizeof *kinds);
}

size_t probe_kinds_find(const struct kinds *kinds, uint32_t pu)
{
    size_t kind = 0;
    while (kind + 1 < kinds->count && !profile_set_has(&kinds->pus[kind], pu)) {
        kind++;
    }
    return kind;
}

/* Which declared kind; their number: none. */
static size_t declared_kind(const struct profile_class *declared, uint32_t pu)
{
    size_t kind = 0;
    while (kind < declared->kind_count && !profile_set_has(&declared->kinds[kind].pus, pu)) {
        kind++;
    }
    return kind;
}

/* All PUs of the kind that the i-th PU is of. */
static int add(const struct profile_class *declared, const struct profile_set *pus, size_t i,
               struct kinds *kinds)
{
    size_t kind = declared_kind(declared, pus->ids[i]), count = 0;
    uint32_t *ids = malloc(pus->count * sizeof *ids);
    int rc = ids ? 0 : -ENOMEM;
    for (size_t other = 0; rc == 0 && other < pus->count; other++) {
        if (declared_kind(declared, pus->ids[other]) == kind) {
            ids[count++] = pus->ids[other];
        }
    }
    rc = rc < 0 ? rc : profile_set_from_array(ids, count, &kinds->pus[kinds->count]);
    kinds->count += rc == 0;
    free(ids);
    return rc;
}

static bool is_known(const struct kinds *kinds, uint32_t pu)
{
    for (size_t kind = 0; kind < kinds->count; kind++) {
        if (profile_set_has(&kinds->pus[kind], pu)) {
            return true;
        }
    }
    return false;
}

int probe_kinds_of(const struct profile_class *declared, const struct profile_set *pus,
                   struct kinds *out)
{
    struct kinds kinds = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < pus->count && declared && declared->kind_count < KINDS_MAX;
         i++) {
        rc = is_known(&kinds, pus->ids[i]) ? 0 : add(declared, pus, i, &kinds);
    }
    if (rc == 0 && kinds.count == 0) {
        rc = profile_set_copy(pus, &kinds.pus[0]);
        kinds.count = rc == 0;
    }
    if (rc < 0) {
        probe_kinds_free(&kinds);
        return rc;
    }
    *out = kinds;
    return 0;
}

/* A measured level is taken for a declared one of another size as long as they are no further apart
 * than this;
 * an L3 in a virtual machine was seen at a fifth of its declared size. */
static const double furthest = 8;

const struct profile_cache *probe_topology_find_cache(const struct profile_class *node_class,
                                                      const uint32_t *pu, uint64_t bytes,
                                                      uint32_t above_level)
{
    const struct profile_cache *best = NULL;
    double distance = log(furthest);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        double d = fabs(log((double)cache->declared_size_bytes / (double)bytes));
        bool there = !pu || cache->pus.count == 0 || profile_set_has(&cache->pus, *pu);
        if (there && cache->level > above_level && d < distance) {
            distance = d;
            best = cache;
        }
    }
    return best;
}

void probe_relation_free(struct profile_relation *relation)
{
    for (size_t i = 0; i < relation->group_count; i++) {
        profile_set_free(&relation->groups[i]);
    }
    free(relation->groups);
    free(relation->pairs);
    memset(relation, 0, sizeof *relation);
}
