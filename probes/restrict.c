#include "restrict.h"

#include <stdlib.h>

#include "relation.h"

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
        if (profile_set_has(pus, relation->pairs[i].a) && profile_set_has(pus, relation->pairs[i].b)) {
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
            relation_free(&level.collisions);
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
            relation_free(&layer.members);
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

int restrict_class(struct profile_class *node_class, const struct profile_set *pus)
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
