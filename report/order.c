#include "report/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct row {
    uint32_t id;
    uint32_t *keys; /* lowest member of its group, per relation */
    size_t key_count;
};

static int compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    for (size_t i = 0; i < x->key_count; i++) {
        if (x->keys[i] != y->keys[i]) {
            return x->keys[i] < y->keys[i] ? -1 : 1;
        }
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Average members per group: coarse relations first. */
static double coarseness(const struct profile_relation *relation)
{
    size_t members = 0;
    for (size_t i = 0; i < relation->group_count; i++) {
        members += relation->groups[i].count;
    }
    return relation->group_count ? (double)members / (double)relation->group_count : 0;
}

static int by_coarseness(const void *a, const void *b)
{
    double x = coarseness(*(const struct profile_relation *const *)a);
    double y = coarseness(*(const struct profile_relation *const *)b);
    return x > y ? -1 : x < y;
}

static size_t position(const struct profile_set *members, uint32_t id)
{
    size_t low = 0, high = members->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (members->ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void fill_keys(const struct profile_set *members, const struct profile_relation *relation,
                      size_t key, struct row *rows)
{
    for (size_t g = 0; g < relation->group_count; g++) {
        const struct profile_set *group = &relation->groups[g];
        for (size_t i = 0; i < group->count; i++) {
            size_t at = position(members, group->ids[i]);
            if (at < members->count && members->ids[at] == group->ids[i]) {
                rows[at].keys[key] = group->ids[0];
            }
        }
    }
}

int report_order_by_groups(const struct profile_set *members,
                           const struct profile_relation *const *relations, size_t count,
                           uint32_t *out)
{
    const struct profile_relation **sorted = calloc(count + 1, sizeof(struct profile_relation *));
    struct row *rows = calloc(members->count + 1, sizeof *rows);
    uint32_t *keys = calloc(members->count * count + 1, sizeof *keys);
    if (!sorted || !rows || !keys) {
        free(sorted);
        free(rows);
        free(keys);
        return -ENOMEM;
    }
    memcpy(sorted, relations, count * sizeof(struct profile_relation *));
    qsort(sorted, count, sizeof(struct profile_relation *), by_coarseness);
    for (size_t i = 0; i < members->count; i++) {
        rows[i] = (struct row){members->ids[i], keys + i * count, count};
        for (size_t k = 0; k < count; k++) {
            rows[i].keys[k] = members->ids[i];
        }
    }
    for (size_t k = 0; k < count; k++) {
        fill_keys(members, sorted[k], k, rows);
    }
    qsort(rows, members->count, sizeof *rows, compare);
    for (size_t i = 0; i < members->count; i++) {
        out[i] = rows[i].id;
    }
    free(sorted);
    free(rows);
    free(keys);
    return 0;
}

int report_order_class(const struct profile_class *node_class, uint32_t *out)
{
    size_t most = 2 + node_class->cache_count + node_class->memory.level_count +
                  node_class->communication.layer_count;
    const struct profile_relation **relations = calloc(most, sizeof(struct profile_relation *));
    if (!relations) {
        return -ENOMEM;
    }
    size_t count = 0;
    relations[count++] = &node_class->packages;
    relations[count++] = &node_class->cores;
    for (size_t i = 0; i < node_class->cache_count; i++) {
        relations[count++] = &node_class->caches[i].sharing;
    }
    for (size_t i = 0; i < node_class->memory.level_count; i++) {
        relations[count++] = &node_class->memory.levels[i].collisions;
    }
    for (size_t i = 0; i < node_class->communication.layer_count; i++) {
        relations[count++] = &node_class->communication.layers[i].members;
    }
    int rc = report_order_by_groups(&node_class->pus, relations, count, out);
    free(relations);
    return rc;
}
