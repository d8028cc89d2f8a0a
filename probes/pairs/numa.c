/* What the PUs of one NUMA node get of the memory of every node. Rows that are alike in the
 * topology are measured once and checked on a second. */
#include "probes/pairs/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/pairs.h"

enum { PASSES = 3, NODE_BYTES = 256, WARM_PASSES = 1 };

struct question {
    struct probe *probe;
    size_t bytes;
    int32_t numa; /* < 0: there is only one, where memory falls by itself */
};

/* Warmed once in the order of the chase: what the caches can hold of so large a cycle, they
 * hold. */
static int measure_latency(const struct question *question, uint32_t pu, double *seconds)
{
    const struct machine_traversal what = {.bytes = question->bytes / NODE_BYTES * NODE_BYTES,
                                           .stride_bytes = NODE_BYTES,
                                           .order = MACHINE_CHASE,
                                           .pages = probe_memory_pages(question->probe->machine),
                                           .on_node = true,
                                           .numa = question->numa,
                                           .warm_passes = WARM_PASSES,
                                           .seed = ++question->probe->seed};
    return probe_machine_traverse(question->probe->machine, &what, &pu, 1, seconds);
}

static int measure_copy(const struct question *question, uint32_t pu, double *bytes_per_s)
{
    const struct machine_copy what = {.bytes = question->bytes,
                                      .passes = PASSES,
                                      .numa = question->numa,
                                      .pages = probe_memory_pages(question->probe->machine)};
    return probe_machine_copy(question->probe->machine, &what, &pu, 1, bytes_per_s);
}

static int measure_row(const struct question *question, struct profile_numa_access *row)
{
    double seconds[REPEAT_MEDIAN_MOST], rates[REPEAT_MEDIAN_MOST];
    size_t rounds = 0;
    while (!(probe_repeat_median_settled(seconds, rounds) &&
             probe_repeat_median_settled(rates, rounds)) &&
           !(rounds > 0 && probe_late(question->probe))) {
        int rc = measure_copy(question, row->pus.ids[0], &rates[rounds]);
        rc = rc < 0 ? rc : measure_latency(question, row->pus.ids[0], &seconds[rounds]);
        if (rc < 0) {
            return rc;
        }
        rounds++;
    }
    row->seconds_per_access = profile_median_value(seconds, rounds);
    row->bytes_per_s = profile_median_value(rates, rounds);
    row->quality = (struct profile_quality){
        .origin = PROFILE_MEASURED,
        .repetitions = (uint32_t)rounds,
        .spread = fmax(probe_spread(seconds, rounds), probe_spread(rates, rounds)),
    };
    return 0;
}

/* Faults of one node's memory, that say nothing of the others. */
static bool concerns_the_node(int rc)
{
    return rc == -EACCES || rc == -ENOMEM;
}

static int measure_pair(struct probe *probe, size_t bytes, const struct profile_set *pus,
                        size_t node, struct probe_numa *result)
{
    const struct profile_class *declared = probe->declared;
    uint32_t number = declared->numa[node].os_index;
    const struct question question = {probe, bytes,
                                      declared->numa_count > 1 ? (int32_t)number : -1};
    struct profile_numa_access row = {.node = number};
    int rc = profile_set_copy(pus, &row.pus);
    if (rc < 0) {
        return rc;
    }
    probe_tell(probe, 0.97, "memory of node %u from PU %u", number, pus->ids[0]);
    result->planned++;
    /* The first is looked at in any case: that memory may not be had is worth knowing. */
    if (probe_late(probe) && result->planned > 1) {
        if (!result->why[0]) {
            snprintf(result->why, sizeof result->why, "node %u from PU %u: the budget was used up",
                     number, pus->ids[0]);
        }
        profile_set_free(&row.pus);
        return 0;
    }
    rc = measure_row(&question, &row);
    if (rc == 0) {
        result->rows[result->count++] = row;
        return 0;
    }
    if (concerns_the_node(rc) && !result->why[0]) {
        snprintf(result->why, sizeof result->why, "node %u from PU %u: %s", number, pus->ids[0],
                 probe_machine_strerror(rc));
    }
    profile_set_free(&row.pus);
    return concerns_the_node(rc) ? 0 : rc;
}

static int by_place(const void *a, const void *b)
{
    const struct profile_numa_access *x = a, *y = b;
    if (x->pus.ids[0] != y->pus.ids[0]) {
        return x->pus.ids[0] < y->pus.ids[0] ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

static bool overlap(const struct profile_set *a, const struct profile_set *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (profile_set_has(b, a->ids[i])) {
            return true;
        }
    }
    return false;
}

/* Are the node's PUs a group? High-bandwidth memory is a node beside the ordinary one with the same
 * PUs, and memory behind an expander may be near to all PUs: then the smallest sets are the
 * groups. */
static bool is_group(const struct profile_class *declared, size_t node)
{
    const struct profile_set *mine = &declared->numa[node].pus;
    for (size_t i = 0; i < declared->numa_count; i++) {
        const struct profile_set *other = &declared->numa[i].pus;
        bool before = other->count < mine->count || (other->count == mine->count && i < node);
        if (i != node && before && overlap(other, mine)) {
            return false;
        }
    }
    return mine->count > 0;
}

/* The node's PUs, of one kind of cores at a time: they do not get the same. */
static int measure_group(struct probe *probe, size_t bytes, const struct profile_set *group,
                         struct probe_numa *result)
{
    const struct profile_class *declared = probe->declared;
    size_t kinds = probe->kinds ? probe->kinds->count : 1;
    int rc = 0;
    for (size_t kind = 0; rc == 0 && kind < kinds; kind++) {
        struct profile_set alike = {0};
        rc = probe->kinds ? profile_set_intersect(group, &probe->kinds->pus[kind], &alike)
                          : profile_set_copy(group, &alike);
        for (size_t node = 0; rc == 0 && alike.count > 0 && node < declared->numa_count; node++) {
            rc = measure_pair(probe, bytes, &alike, node, result);
        }
        profile_set_free(&alike);
    }
    return rc;
}

static int measure_all(struct probe *probe, size_t bytes, struct probe_numa *result)
{
    const struct profile_class *declared = probe->declared;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < declared->numa_count; i++) {
        struct profile_set group = {0};
        if (!is_group(declared, i)) {
            continue;
        }
        rc = profile_set_intersect(&declared->numa[i].pus, &probe->machine->pus, &group);
        rc = rc == 0 && group.count > 0 ? measure_group(probe, bytes, &group, result) : rc;
        profile_set_free(&group);
    }
    return rc;
}

int probe_numa(struct probe *probe, size_t array_bytes, struct probe_numa *out,
               struct servet_error *error)
{
    size_t nodes = probe->declared ? probe->declared->numa_count : 0;
    size_t kinds = probe->kinds ? probe->kinds->count : 1;
    struct probe_numa result = {.rows = calloc(kinds * nodes * nodes + 1, sizeof *result.rows)};
    int rc = result.rows ? measure_all(probe, array_bytes, &result) : -ENOMEM;
    if (rc < 0) {
        probe_numa_free(&result);
        return probe_error(error, rc, "measuring the memory of each NUMA node");
    }
    if (result.count > 0) {
        qsort(result.rows, result.count, sizeof *result.rows, by_place);
    }
    *out = result;
    return 0;
}

void probe_numa_free(struct probe_numa *result)
{
    for (size_t i = 0; i < result->count; i++) {
        profile_set_free(&result->rows[i].pus);
        free(result->rows[i].quality.note);
    }
    free(result->rows);
    memset(result, 0, sizeof *result);
}
