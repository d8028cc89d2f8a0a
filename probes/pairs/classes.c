/* Which pairs of PUs are presumed alike: those that have the same thing in common in the topology,
 * or in the layers of messages, and are of the same two kinds of cores. */
#include "probes/pairs/pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Marks the pairs of the relation's groups as of class `class` unless they are of a closer one. */
static void mark(struct schedule *schedule, const struct profile_relation *relation, int class)
{
    const struct profile_set *pus = schedule->pus;
    for (size_t g = 0; g < relation->group_count; g++) {
        for (size_t i = 0; i < pus->count; i++) {
            if (!profile_set_has(&relation->groups[g], pus->ids[i])) {
                continue;
            }
            for (size_t j = i + 1; j < pus->count; j++) {
                uint8_t *slot = &schedule->class_of[probe_pair_index(pus->count, i, j)];
                if (*slot > class && profile_set_has(&relation->groups[g], pus->ids[j])) {
                    *slot = (uint8_t) class;
                }
            }
        }
    }
}

static void mark_numa(struct schedule *schedule, const struct profile_class *declared, int class)
{
    for (size_t i = 0; i < declared->numa_count; i++) {
        struct profile_set pus = declared->numa[i].pus;
        const struct profile_relation one = {.groups = &pus, .group_count = 1};
        mark(schedule, &one, class);
    }
}

static size_t largest_node(const struct profile_class *declared)
{
    size_t largest = 0;
    for (size_t i = 0; i < declared->numa_count; i++) {
        largest = declared->numa[i].pus.count > largest ? declared->numa[i].pus.count : largest;
    }
    return largest;
}

static size_t largest_group(const struct profile_relation *relation)
{
    size_t largest = 0;
    for (size_t i = 0; i < relation->group_count; i++) {
        largest = relation->groups[i].count > largest ? relation->groups[i].count : largest;
    }
    return largest;
}

/* Renumbers the classes that occur to 0, 1, 2 … */
static void renumber(struct schedule *schedule)
{
    uint8_t number[UINT8_MAX + 1] = {0};
    bool occurs[UINT8_MAX + 1] = {false};
    size_t pairs = probe_pair_count(schedule->pus->count);
    schedule->class_count = 0;
    for (size_t i = 0; i < pairs; i++) {
        occurs[schedule->class_of[i]] = true;
    }
    for (size_t c = 0; c <= UINT8_MAX; c++) {
        number[c] = (uint8_t)schedule->class_count;
        schedule->class_count += occurs[c];
    }
    for (size_t i = 0; i < pairs; i++) {
        schedule->class_of[i] = number[schedule->class_of[i]];
    }
}

/* Two fast cores take the memory from one another where a fast and a slow one do not: classes are
 * divided by the kinds of the two. As they were where that makes too many. */
static void divide_by_kinds(struct schedule *schedule, const struct profile_class *declared)
{
    const struct profile_set *pus = schedule->pus;
    const size_t kinds = declared->kind_count + 1, parts = kinds * (kinds + 1) / 2,
                 whole = schedule->class_count;
    if (kinds == 1 || whole * parts > UINT8_MAX) {
        return;
    }
    for (size_t i = 0, k = 0; i < pus->count; i++) {
        size_t first = probe_kinds_declared(declared, pus->ids[i]);
        for (size_t j = i + 1; j < pus->count; j++, k++) {
            size_t second = probe_kinds_declared(declared, pus->ids[j]),
                   more = first > second ? first : second;
            size_t part = more * (more + 1) / 2 + (first < second ? first : second);
            schedule->class_of[k] = (uint8_t)(schedule->class_of[k] * parts + part);
        }
    }
    renumber(schedule);
}

int probe_schedule_init(struct schedule *schedule, const struct profile_set *pus,
                        const struct profile_class *declared)
{
    size_t pairs = probe_pair_count(pus->count);
    *schedule = (struct schedule){
        .pus = pus, .class_of = malloc(pairs + 1), .agree = probe_schedule_agree_cluster};
    if (!schedule->class_of) {
        return -ENOMEM;
    }
    memset(schedule->class_of, SCHEDULE_CLASSES - 1, pairs);
    if (declared) {
        uint8_t class = 0;
        mark(schedule, &declared->cores, class ++);
        for (size_t i = 0; i < declared->cache_count && class < SCHEDULE_CLASSES - 4; i++) {
            mark(schedule, &declared->caches[i].sharing, class ++);
        }
        /* What is smaller lies within the other: a machine whose memory is interleaved has one node
         * of all packages. */
        bool nodes_inside = largest_node(declared) <= largest_group(&declared->packages);
        mark_numa(schedule, declared, nodes_inside ? class : class + 1);
        mark(schedule, &declared->packages, nodes_inside ? class + 1 : class);
    }
    renumber(schedule);
    if (declared) {
        divide_by_kinds(schedule, declared);
    }
    int rc = probe_together_init(&schedule->together, pus, declared);
    if (rc < 0) {
        probe_schedule_free(schedule);
    }
    return rc;
}

int probe_schedule_divide(struct schedule *schedule, const struct profile_communication *found)
{
    const size_t parts = found ? found->layer_count + 1 : 1, whole = schedule->class_count,
                 pairs = probe_pair_count(schedule->pus->count);
    uint8_t *before = schedule->class_of, *layers = malloc(pairs + 1);
    int rc = layers ? 0 : -ENOMEM;
    if (parts == 1 || parts * whole > SCHEDULE_CLASSES || !layers) {
        free(layers);
        return rc;
    }
    memset(layers, (int)parts - 1, pairs);
    schedule->class_of = layers;
    for (size_t i = 0; i < found->layer_count; i++) {
        mark(schedule, &found->layers[i].members, (int)i);
    }
    for (size_t k = 0; k < pairs; k++) {
        layers[k] = (uint8_t)(layers[k] * whole + before[k]);
    }
    free(before);
    renumber(schedule);
    schedule->by_messages = true;
    for (size_t i = 0; rc == 0 && i < found->layer_count; i++) {
        rc = probe_together_add(&schedule->together, schedule->pus, &found->layers[i].members);
    }
    return rc;
}

void probe_schedule_free(struct schedule *schedule)
{
    free(schedule->class_of);
    schedule->class_of = NULL;
    probe_together_free(&schedule->together);
}
