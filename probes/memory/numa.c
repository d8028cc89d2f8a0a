/* NUMA access: cells of a matrix, groups of PUs by nodes (memory.h). */
#include "probes/memory/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/memory/rates.h"
#include "profile/codec/codec.h"

struct matrix {
    struct probe *probe;
    size_t bytes;
    struct profile_relation groups; /* each of one kind of cores. Owned */
    size_t started;                 /* cells that were tried */
    struct probe_numa *result;
};

/* A group and the position of a node. */
struct cell {
    const struct profile_set *pus;
    size_t node;
};

/* -- one cell -- */

static uint32_t numa_number(const struct matrix *matrix, size_t node)
{
    return matrix->probe->declared->numa[node].os_index;
}

static int32_t numa_of(const struct matrix *matrix, const struct cell *cell)
{
    /* the only one is where memory falls by itself */
    return matrix->probe->declared->numa_count > 1 ? (int32_t)numa_number(matrix, cell->node) : -1;
}

static int measure_latency(const struct matrix *matrix, const struct cell *cell, double *seconds)
{
    const struct machine_traversal what = {
        .bytes = matrix->bytes / MACHINE_NODE_BYTES * MACHINE_NODE_BYTES,
        .stride_bytes = MACHINE_NODE_BYTES,
        .order = MACHINE_CHASE,
        .pages = machine_pages(matrix->probe->machine),
        .on_node = true,
        .numa = numa_of(matrix, cell),
        .warm_passes = 1 /* what caches hold of it, they do then */,
        .seed = ++matrix->probe->seed};
    return probe_machine_traverse(matrix->probe->machine, &what, cell->pus->ids, 1, seconds);
}

static int measure_row(const struct matrix *matrix, const struct cell *cell)
{
    const struct machine_copy copy =
        probe_memory_what(matrix->probe, matrix->bytes, numa_of(matrix, cell));
    double seconds[REPEAT_MEDIAN_MOST], rates[REPEAT_MEDIAN_MOST];
    size_t rounds = 0;
    while (!(probe_repeat_median_settled(seconds, rounds) &&
             probe_repeat_median_settled(rates, rounds)) &&
           !(rounds > 0 && probe_late(matrix->probe))) {
        TRY(probe_machine_copy(matrix->probe->machine, &copy, cell->pus->ids, 1, &rates[rounds]));
        TRY(measure_latency(matrix, cell, &seconds[rounds]));
        rounds++;
    }
    struct profile_numa_access row = {
        .node = numa_number(matrix, cell->node),
        .seconds_per_access = profile_median_value(seconds, rounds),
        .bytes_per_s = profile_median_value(rates, rounds),
        .quality = {.origin = PROFILE_MEASURED,
                    .repetitions = (uint32_t)rounds,
                    .spread = fmax(probe_spread(seconds, rounds), probe_spread(rates, rounds))}};
    TRY(profile_set_copy(cell->pus, &row.pus));
    matrix->result->rows[matrix->result->count++] = row;
    return 0;
}

/* The first cell that is left out is named. */
static void leave_out(const struct matrix *matrix, const struct cell *cell, const char *why)
{
    struct probe_numa *result = matrix->result;
    if (!result->why[0]) {
        snprintf(result->why, sizeof result->why, "node %u from PU %u: %s",
                 numa_number(matrix, cell->node), cell->pus->ids[0], why);
    }
}

/* A fault of one node's memory leaves the others. */
static bool is_fault(int rc)
{
    return rc == -EACCES || rc == -ENOMEM || rc == -ETIME || rc == -EAGAIN;
}

/* The first cell is tried in any case: that memory
 * is out of reach is worth knowing. Memory that is all of one node was reached before. */
static int try_cell(struct matrix *matrix, const struct cell *cell)
{
    probe_tell(matrix->probe, 0.97, "memory of node %u from PU %u", numa_number(matrix, cell->node),
               cell->pus->ids[0]);
    const bool named = matrix->probe->declared->numa_count > 1;
    bool first = matrix->started++ == 0 && named, late = probe_late(matrix->probe) && !first;
    int rc = late ? 0 : measure_row(matrix, cell);
    if (late || is_fault(rc)) {
        leave_out(matrix, cell, probe_machine_strerror(late ? -ETIME : rc));
    }
    return is_fault(rc) ? 0 : rc;
}

/* -- nodes, by the PUs near them together -- */

static const struct profile_numa_access *nearest_row(const struct matrix *matrix, size_t node)
{
    const struct profile_numa_access *found = NULL;
    for (size_t i = 0; i < matrix->result->count; i++) {
        const struct profile_numa_access *row = &matrix->result->rows[i];
        bool nearer = !found || row->seconds_per_access < found->seconds_per_access;
        found = row->node == numa_number(matrix, node) && nearer ? row : found;
    }
    return found;
}

/* Its own, else the group with the least latency to it; none where it was out of reach. */
static int pus_near_numa(const struct matrix *matrix, size_t node, struct profile_set *out)
{
    const struct probe *probe = matrix->probe;
    const struct profile_numa_access *nearest = nearest_row(matrix, node);
    if (!nearest) {
        *out = (struct profile_set){0};
        return 0;
    }
    TRY(profile_set_intersect(&probe->declared->numa[node].pus, &probe->machine->pus, out));
    if (out->count > 0) {
        return 0;
    }
    profile_set_free(out);
    return profile_set_copy(&nearest->pus, out);
}

/* Spread over those near. */
static int measure_together(const struct matrix *matrix, size_t node,
                            const struct profile_set *near, size_t count)
{
    struct probe *probe = matrix->probe;
    const struct machine_copy what =
        probe_memory_what(probe, matrix->bytes, (int32_t)probe->declared->numa[node].os_index);
    FREED uint32_t *pus = calloc(count + 1, sizeof *pus);
    struct profile_scaling_point point = {.workers = (uint32_t)count};
    TRY(pus ? 0 : -ENOMEM);
    for (size_t i = 0; i < count; i++) {
        pus[i] = near->ids[i * near->count / count];
    }
    if (probe_late(probe)) {
        return 0;
    }
    int rc = probe_memory_settled(probe, &what, pus, &point);
    matrix->result->together_bytes_per_s[node] = point.bytes_per_s;
    return is_fault(rc) ? 0 : rc;
}

/* Where there is one node, its PUs together are the memory probe's. */
static int measure_nodes(struct matrix *matrix)
{
    const size_t nodes = matrix->probe->declared ? matrix->probe->declared->numa_count : 0;
    FREED_BY(profile_relation_free)
    struct profile_relation near = {.groups = calloc(nodes + 1, sizeof *near.groups)};
    size_t fewest = SIZE_MAX;
    matrix->result->together_bytes_per_s = calloc(nodes + 1, sizeof(double));
    TRY(near.groups && matrix->result->together_bytes_per_s ? 0 : -ENOMEM);
    for (; nodes > 1 && near.group_count < nodes; near.group_count++) {
        const struct profile_set *pus = &near.groups[near.group_count];
        TRY(pus_near_numa(matrix, near.group_count, &near.groups[near.group_count]));
        fewest = pus->count && pus->count < fewest ? pus->count : fewest;
    }
    for (size_t node = 0; node < near.group_count; node++) {
        if (near.groups[node].count) {
            probe_tell(matrix->probe, 0.98, "memory of node %u from %zu PUs near it",
                       matrix->probe->declared->numa[node].os_index, fewest);
            TRY(measure_together(matrix, node, &near.groups[node], fewest));
        }
    }
    return 0;
}

/* -- the matrix -- */

/* Are the node's PUs a group? High-bandwidth memory is a node beside the ordinary one with the same
 * PUs, and memory behind an expander may be near to all PUs: then the smallest sets are the
 * groups. */
static bool is_group(const struct profile_class *declared, size_t node)
{
    const struct profile_set *mine = &declared->numa[node].pus;
    for (size_t i = 0; i < declared->numa_count; i++) {
        const struct profile_set *other = &declared->numa[i].pus;
        bool before = other->count < mine->count || (other->count == mine->count && i < node);
        if (i != node && before && profile_set_overlaps(other, mine)) {
            return false;
        }
    }
    return mine->count > 0;
}

/* The node's PUs that are measured, of one kind of cores at a time: they do not get the same. */
static int add_groups(struct matrix *matrix, const struct profile_set *pus)
{
    const struct probe *probe = matrix->probe;
    FREED_BY(profile_set_free) struct profile_set here = {0};
    TRY(profile_set_intersect(pus, &probe->machine->pus, &here));
    for (size_t kind = 0; kind < (probe->kinds ? probe->kinds->count : 1); kind++) {
        struct profile_set *group = &matrix->groups.groups[matrix->groups.group_count];
        TRY(probe->kinds ? profile_set_intersect(&here, &probe->kinds->pus[kind], group)
                         : profile_set_copy(&here, group));
        if (group->count > 0) {
            matrix->groups.group_count++;
        } else {
            profile_set_free(group);
        }
    }
    return 0;
}

static int make_groups(struct matrix *matrix)
{
    const struct profile_class *declared = matrix->probe->declared;
    const size_t nodes = declared ? declared->numa_count : 0;
    const size_t most = nodes * (matrix->probe->kinds ? matrix->probe->kinds->count : 1);
    matrix->groups.groups = calloc(most + 1, sizeof *matrix->groups.groups);
    matrix->result->rows = calloc(most * nodes + 1, sizeof *matrix->result->rows);
    TRY(matrix->groups.groups && matrix->result->rows ? 0 : -ENOMEM);
    for (size_t node = 0; node < nodes; node++) {
        TRY(is_group(declared, node) ? add_groups(matrix, &declared->numa[node].pus) : 0);
    }
    return 0;
}

static int measure_cells(struct matrix *matrix)
{
    TRY(make_groups(matrix));
    for (size_t group = 0; group < matrix->groups.group_count; group++) {
        for (size_t node = 0; node < matrix->probe->declared->numa_count; node++) {
            TRY(try_cell(matrix, &(struct cell){&matrix->groups.groups[group], node}));
        }
    }
    return measure_nodes(matrix);
}

static void free_groups(struct matrix *matrix)
{
    profile_relation_free(&matrix->groups);
}

static int by_place(const void *a, const void *b)
{
    const struct profile_numa_access *x = a, *y = b;
    if (x->pus.ids[0] != y->pus.ids[0]) {
        return x->pus.ids[0] < y->pus.ids[0] ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

int probe_numa(struct probe *probe, size_t array_bytes, struct probe_numa *out,
               struct servet_error *error)
{
    FREED_BY(probe_numa_free) struct probe_numa result = {0};
    FREED_BY(free_groups)
    struct matrix matrix = {.probe = probe, .bytes = array_bytes, .result = &result};
    const int rc = measure_cells(&matrix);
    if (rc < 0) {
        return probe_error(error, rc, "measuring the memory of each NUMA node");
    }
    qsort(result.rows, result.count, sizeof *result.rows, by_place);
    *out = TAKE(result);
    return 0;
}

void probe_numa_free(struct probe_numa *result)
{
    for (size_t i = 0; i < result->count; i++) {
        profile_set_free(&result->rows[i].pus);
        free(result->rows[i].quality.note);
    }
    free(result->rows);
    free(result->together_bytes_per_s);
    memset(result, 0, sizeof *result);
}
