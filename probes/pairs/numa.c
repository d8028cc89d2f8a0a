/* What the PUs of one NUMA node get of the memory of every node: cells of a matrix, groups of PUs
 * by nodes.
 *
 * A copy takes ten times as long as a chase, so copying in every cell of 16 x 16 nodes takes
 * minutes. Where there are many cells a chase is made in each; cells of one sort (near or not,
 * with PUs or without, one kind of cores, latencies that are one cluster) are presumed to have one
 * bandwidth. A random sample of them, over as many groups and nodes as there are cells in it, tests
 * that: where it agrees the others take its median over, where it does not all are copied in. */
#include "probes/pairs/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/layers.h"
#include "probes/pairs/stopping.h"
#include "profile/base/random.h"

enum { NODE_BYTES = 256, WARM_PASSES = 1 };
/* Up to so many cells all are measured: looking first would save nothing. */
enum { ALL_UP_TO = 16 };
/* Cells of a sort of n that are copied in: a bandwidth that a quarter of 240 cells have is missed
 * by 1 % with 16 of them. */
static const double sample_factor = 2; /* times log2(n) */
enum { SAMPLE_LEAST = 4 };
/* A latency so much off the middle of its sort is looked at again, and then measured for itself; a
 * bandwidth so much off says that the sort is none. Those of one kind were seen to differ by 5 %.
 */
static const double odd_factor = 1.15;
/* Sorts by latency that remote nodes are expected to come in: within a package, and outside. */
enum { REMOTE_SORTS = 2 };

/* Where a cell lies, as declared. */
enum place { NEAR, FAR, MEMORY_ONLY, PLACES };

struct cell {
    const struct profile_set *pus; /* of one kind of cores */
    size_t group, node;            /* positions */
    uint32_t kind, sort;           /* of one kind: declared alike; of one sort: the latency, too */
    double look_s;                 /* the smaller of two looks at the latency; 0: left out */
    bool done;
    struct profile_numa_access row; /* its PUs are copied when it goes out */
};

struct matrix {
    struct probe *probe;
    size_t bytes;
    struct profile_set *groups; /* owned */
    size_t group_count;
    struct cell *cells; /* owned; by group, then by node */
    size_t cell_count, started;
    struct random random;
    struct probe_numa *result;
};

/* -- one cell -- */

static int32_t numa_of(const struct matrix *matrix, const struct cell *cell)
{
    const struct profile_class *declared = matrix->probe->declared;
    /* the only one is where memory falls by itself */
    return declared->numa_count > 1 ? (int32_t)declared->numa[cell->node].os_index : -1;
}

/* Warmed once in the order of the chase: what the caches can hold of so large a cycle, they
 * hold. */
static int measure_latency(const struct matrix *matrix, const struct cell *cell, double *seconds)
{
    const struct machine_traversal what = {.bytes = matrix->bytes / NODE_BYTES * NODE_BYTES,
                                           .stride_bytes = NODE_BYTES,
                                           .order = MACHINE_CHASE,
                                           .pages = probe_memory_pages(matrix->probe->machine),
                                           .on_node = true,
                                           .numa = numa_of(matrix, cell),
                                           .warm_passes = WARM_PASSES,
                                           .seed = ++matrix->probe->seed};
    return probe_machine_traverse(matrix->probe->machine, &what, cell->pus->ids, 1, seconds);
}

static int measure_copy(const struct matrix *matrix, const struct cell *cell, double *bytes_per_s)
{
    const struct machine_copy what =
        probe_memory_what(matrix->probe, matrix->bytes, numa_of(matrix, cell));
    return probe_machine_copy(matrix->probe->machine, &what, cell->pus->ids, 1, bytes_per_s);
}

static int measure_row(struct matrix *matrix, struct cell *cell)
{
    double seconds[REPEAT_MEDIAN_MOST], rates[REPEAT_MEDIAN_MOST];
    size_t rounds = 0;
    while (!(probe_repeat_median_settled(seconds, rounds) &&
             probe_repeat_median_settled(rates, rounds)) &&
           !(rounds > 0 && probe_late(matrix->probe))) {
        int rc = measure_copy(matrix, cell, &rates[rounds]);
        rc = rc < 0 ? rc : measure_latency(matrix, cell, &seconds[rounds]);
        if (rc < 0) {
            return rc;
        }
        rounds++;
    }
    cell->row.seconds_per_access = profile_median_value(seconds, rounds);
    cell->row.bytes_per_s = profile_median_value(rates, rounds);
    cell->row.quality = (struct profile_quality){
        .origin = PROFILE_MEASURED,
        .repetitions = (uint32_t)rounds,
        .spread = fmax(probe_spread(seconds, rounds), probe_spread(rates, rounds)),
    };
    cell->done = true;
    return 0;
}

/* The first cell that is left out is named. */
static void leave_out(struct matrix *matrix, const struct cell *cell, const char *why)
{
    struct probe_numa *result = matrix->result;
    if (!result->why[0]) {
        snprintf(result->why, sizeof result->why, "node %u from PU %u: %s", cell->row.node,
                 cell->pus->ids[0], why);
    }
}

typedef int cell_function(struct matrix *matrix, struct cell *cell);

/* Faults of one node's memory say nothing of the others. The first cell is looked at in any case:
 * that memory may not be had is worth knowing. Memory that is all of one node was had before. */
static int try_cell(struct matrix *matrix, struct cell *cell, cell_function *measure)
{
    probe_tell(matrix->probe, 0.97, "memory of node %u from PU %u", cell->row.node,
               cell->pus->ids[0]);
    const bool named = matrix->probe->declared->numa_count > 1;
    bool first = matrix->started++ == 0 && named, late = probe_late(matrix->probe) && !first;
    int rc = late ? 0 : measure(matrix, cell);
    bool fault = rc == -EACCES || rc == -ENOMEM || rc == -ETIME;
    if (late || fault) {
        leave_out(matrix, cell, probe_machine_strerror(late ? -ETIME : rc));
        cell->look_s = 0;
    }
    return fault ? 0 : rc;
}

/* -- many cells -- */

static int look(struct matrix *matrix, struct cell *cell)
{
    double seconds;
    int rc = measure_latency(matrix, cell, &seconds);
    cell->look_s = rc < 0 ? cell->look_s : cell->look_s > 0 ? fmin(cell->look_s, seconds) : seconds;
    return rc;
}

static bool is_odd(double value, double middle)
{
    return value > odd_factor * middle || middle > odd_factor * value;
}

static bool is_of(const struct cell *cell, bool by_sort, uint32_t number)
{
    return cell->look_s > 0 && (by_sort ? cell->sort : cell->kind) == number;
}

/* The latencies of the cells of that kind; how many. */
static size_t looks_of(const struct matrix *matrix, uint32_t kind, double *out)
{
    size_t count = 0;
    for (size_t i = 0; i < matrix->cell_count; i++) {
        if (is_of(&matrix->cells[i], false, kind)) {
            out[count++] = matrix->cells[i].look_s;
        }
    }
    return count;
}

/* Looks at all, and a second time at what lies off the middle of its kind: it was disturbed, or is
 * of another sort. */
static int look_at_all(struct matrix *matrix, uint32_t kinds, double *scratch)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < matrix->cell_count; i++) {
        rc = try_cell(matrix, &matrix->cells[i], look);
    }
    for (uint32_t kind = 0; rc == 0 && kind < kinds; kind++) {
        double middle = profile_median_value(scratch, looks_of(matrix, kind, scratch));
        for (size_t i = 0; rc == 0 && i < matrix->cell_count; i++) {
            struct cell *cell = &matrix->cells[i];
            bool again = is_of(cell, false, kind) && is_odd(cell->look_s, middle);
            rc = again && !probe_late(matrix->probe) ? look(matrix, cell) : 0;
        }
    }
    return rc;
}

/* Divides the cells of a kind by their latencies. How many sorts that gives: the next number. */
static int divide(struct matrix *matrix, uint32_t kind, uint32_t *sorts, double *scratch)
{
    uint32_t *cluster_of = malloc((matrix->cell_count + 1) * sizeof *cluster_of);
    struct clusters clusters = {0};
    size_t count = looks_of(matrix, kind, scratch);
    int rc = !cluster_of ? -ENOMEM
             : count > 0
                 ? probe_layers_cluster(scratch, count, CLUSTER_USUAL_SPREAD, cluster_of, &clusters)
                 : 0;
    for (size_t i = 0, k = 0; rc == 0 && i < matrix->cell_count; i++) {
        if (is_of(&matrix->cells[i], false, kind)) {
            matrix->cells[i].sort = *sorts + cluster_of[k++];
        }
    }
    *sorts += (uint32_t)clusters.count;
    free(cluster_of);
    return rc;
}

static size_t sample_of(size_t cells)
{
    size_t sample = cells > 1 ? (size_t)ceil(sample_factor * log2((double)cells)) : cells;
    sample = sample < SAMPLE_LEAST ? SAMPLE_LEAST : sample;
    return sample < cells ? sample : cells;
}

/* Cells of that group or that node before it. */
static size_t met(struct cell *const *cells, size_t count, const struct cell *cell)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += cells[i]->group == cell->group;
        sum += cells[i]->node == cell->node;
    }
    return sum;
}

/* A random order in which the first cells are of as many groups and nodes as there are. */
static void order_sample(struct matrix *matrix, struct cell **cells, size_t count, size_t sample)
{
    random_shuffle(&matrix->random, cells, count, sizeof *cells);
    for (size_t done = 0; done < sample; done++) {
        size_t best = done;
        for (size_t i = done + 1; i < count; i++) {
            best = met(cells, done, cells[i]) < met(cells, done, cells[best]) ? i : best;
        }
        struct cell *swap = cells[done];
        cells[done] = cells[best];
        cells[best] = swap;
    }
}

/* What so many of the cells copy; how many of them were measured. */
static size_t rates_of(struct cell *const *cells, size_t count, double *out)
{
    size_t measured = 0;
    for (size_t i = 0; i < count; i++) {
        if (cells[i]->done) {
            out[measured++] = cells[i]->row.bytes_per_s;
        }
    }
    return measured;
}

/* One node behind a slow link is one cell of a sample: none may be odd. */
static bool agree(double *rates, size_t count)
{
    const double middle = profile_median_value(rates, count);
    bool agree = count > 0;
    for (size_t i = 0; i < count; i++) {
        agree = agree && !is_odd(rates[i], middle);
    }
    return agree;
}

static int take_over(struct cell *cell, double bytes_per_s, size_t measured, size_t of)
{
    cell->row.seconds_per_access = cell->look_s;
    cell->row.bytes_per_s = bytes_per_s;
    cell->row.quality =
        (struct profile_quality){.origin = PROFILE_INFERRED, .repetitions = 1, .spread = -1};
    cell->done = asprintf(&cell->row.quality.note,
                          "latency measured; bandwidth taken over from %zu of %zu nodes of "
                          "that latency, which agreed",
                          measured, of) >= 0;
    return cell->done ? 0 : -ENOMEM;
}

/* The sample, and all where it does not agree or a cell is odd; the others take over. */
static int measure_sort(struct matrix *matrix, struct cell **cells, size_t count, double *scratch)
{
    const size_t sample = sample_of(count);
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        scratch[i] = cells[i]->look_s;
    }
    const double middle = profile_median_value(scratch, count);
    order_sample(matrix, cells, count, sample);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        bool needed = (i < sample || is_odd(cells[i]->look_s, middle)) && !cells[i]->done;
        rc = needed ? try_cell(matrix, cells[i], measure_row) : 0;
    }
    size_t measured = rates_of(cells, sample, scratch);
    const bool alike = agree(scratch, measured);
    const double rate = alike ? profile_median_value(scratch, measured) : 0;
    for (size_t i = sample; rc == 0 && i < count; i++) {
        bool open = !cells[i]->done && cells[i]->look_s > 0;
        rc = !open   ? 0
             : alike ? take_over(cells[i], rate, measured, count)
                     : try_cell(matrix, cells[i], measure_row);
    }
    return rc;
}

static int measure_sorts(struct matrix *matrix, uint32_t sorts, double *scratch)
{
    struct cell **cells = calloc(matrix->cell_count + 1, sizeof *cells);
    int rc = cells ? 0 : -ENOMEM;
    for (uint32_t sort = 0; rc == 0 && sort < sorts; sort++) {
        size_t count = 0;
        for (size_t i = 0; i < matrix->cell_count; i++) {
            if (is_of(&matrix->cells[i], true, sort)) {
                cells[count++] = &matrix->cells[i];
            }
        }
        rc = count > 0 ? measure_sort(matrix, cells, count, scratch) : 0;
    }
    free(cells);
    return rc;
}

static int measure_many(struct matrix *matrix, uint32_t kinds)
{
    double *scratch = malloc((matrix->cell_count + 1) * sizeof *scratch);
    uint32_t sorts = 0;
    int rc = scratch ? try_cell(matrix, &matrix->cells[0], measure_row) : -ENOMEM;
    rc = rc < 0 ? rc : look_at_all(matrix, kinds, scratch);
    for (uint32_t kind = 0; rc == 0 && kind < kinds; kind++) {
        rc = divide(matrix, kind, &sorts, scratch);
    }
    rc = rc < 0 ? rc : measure_sorts(matrix, sorts, scratch);
    free(scratch);
    return rc;
}

/* -- the matrix -- */

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

/* The node's PUs that are measured, of one kind of cores at a time: they do not get the same. */
static int add_groups(struct matrix *matrix, const struct profile_set *pus)
{
    const struct probe *probe = matrix->probe;
    struct profile_set here = {0};
    int rc = profile_set_intersect(pus, &probe->machine->pus, &here);
    for (size_t kind = 0; rc == 0 && kind < (probe->kinds ? probe->kinds->count : 1); kind++) {
        struct profile_set *group = &matrix->groups[matrix->group_count];
        rc = probe->kinds ? profile_set_intersect(&here, &probe->kinds->pus[kind], group)
                          : profile_set_copy(&here, group);
        bool any = rc == 0 && group->count > 0;
        if (rc == 0 && !any) {
            profile_set_free(group);
        }
        matrix->group_count += any;
    }
    profile_set_free(&here);
    return rc;
}

static void add_cell(struct matrix *matrix, size_t group, size_t node)
{
    const struct probe *probe = matrix->probe;
    const struct profile_numa *numa = &probe->declared->numa[node];
    const struct profile_set *pus = &matrix->groups[group];
    enum place place = numa->pus.count == 0 ? MEMORY_ONLY : overlap(&numa->pus, pus) ? NEAR : FAR;
    size_t cores = probe->kinds ? probe_kinds_find(probe->kinds, pus->ids[0]) : 0;
    matrix->cells[matrix->cell_count++] = (struct cell){.pus = pus,
                                                        .group = group,
                                                        .node = node,
                                                        .kind = (uint32_t)(cores * PLACES + place),
                                                        .row = {.node = numa->os_index}};
}

static int make_cells(struct matrix *matrix)
{
    const struct profile_class *declared = matrix->probe->declared;
    const size_t nodes = declared ? declared->numa_count : 0;
    const size_t kinds = matrix->probe->kinds ? matrix->probe->kinds->count : 1;
    int rc = 0;
    matrix->groups = calloc(kinds * nodes + 1, sizeof *matrix->groups);
    matrix->cells = calloc(kinds * nodes * nodes + 1, sizeof *matrix->cells);
    if (!matrix->groups || !matrix->cells) {
        return -ENOMEM;
    }
    for (size_t node = 0; rc == 0 && node < nodes; node++) {
        rc = is_group(declared, node) ? add_groups(matrix, &declared->numa[node].pus) : 0;
    }
    for (size_t group = 0; rc == 0 && group < matrix->group_count; group++) {
        for (size_t node = 0; node < nodes; node++) {
            add_cell(matrix, group, node);
        }
    }
    return rc;
}

static int measure_all(struct matrix *matrix)
{
    const size_t kinds = matrix->probe->kinds ? matrix->probe->kinds->count : 1;
    int rc = 0;
    if (matrix->cell_count > ALL_UP_TO && !matrix->probe->exhaustive) {
        return measure_many(matrix, (uint32_t)kinds * PLACES);
    }
    for (size_t i = 0; rc == 0 && i < matrix->cell_count; i++) {
        rc = try_cell(matrix, &matrix->cells[i], measure_row);
    }
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const struct profile_numa_access *x = a, *y = b;
    if (x->pus.ids[0] != y->pus.ids[0]) {
        return x->pus.ids[0] < y->pus.ids[0] ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

/* The rows that are done. */
static int hand_out(struct matrix *matrix)
{
    struct probe_numa *result = matrix->result;
    int rc = 0;
    result->planned = matrix->cell_count;
    result->rows = calloc(matrix->cell_count + 1, sizeof *result->rows);
    if (!result->rows) {
        return -ENOMEM;
    }
    for (size_t i = 0; rc == 0 && i < matrix->cell_count; i++) {
        struct cell *cell = &matrix->cells[i];
        rc = cell->done ? profile_set_copy(cell->pus, &cell->row.pus) : 0;
        if (rc == 0 && cell->done) {
            result->rows[result->count++] = cell->row;
            cell->row = (struct profile_numa_access){0};
        }
    }
    if (result->count > 0) {
        qsort(result->rows, result->count, sizeof *result->rows, by_place);
    }
    return rc;
}

static void release(struct matrix *matrix)
{
    for (size_t i = 0; i < matrix->cell_count; i++) {
        free(matrix->cells[i].row.quality.note);
    }
    for (size_t i = 0; i < matrix->group_count; i++) {
        profile_set_free(&matrix->groups[i]);
    }
    free(matrix->groups);
    free(matrix->cells);
}

int probe_numa(struct probe *probe, size_t array_bytes, struct probe_numa *out,
               struct servet_error *error)
{
    struct probe_numa result = {0};
    struct matrix matrix = {.probe = probe, .bytes = array_bytes, .result = &result};
    int rc = make_cells(&matrix);
    matrix.random.state = probe->seed;
    rc = rc < 0 ? rc : measure_all(&matrix);
    rc = rc < 0 ? rc : hand_out(&matrix);
    release(&matrix);
    if (rc < 0) {
        probe_numa_free(&result);
        return probe_error(error, rc, "measuring the memory of each NUMA node");
    }
    *out = result;
    return 0;
}

struct probe_numa_plan probe_numa_planned(const struct probe *probe)
{
    const struct profile_class *declared = probe->declared;
    const size_t kinds = probe->kinds ? probe->kinds->count : 1;
    size_t nodes = declared ? declared->numa_count : 0, groups = 0, sampled = 0;
    for (size_t i = 0; i < nodes; i++) {
        groups += is_group(declared, i) ? kinds : 0;
    }
    const size_t cells = groups * nodes;
    if (cells <= ALL_UP_TO || probe->exhaustive) {
        return (struct probe_numa_plan){.copied = cells};
    }
    const size_t far = (cells - groups) / REMOTE_SORTS;
    sampled = sample_of(groups) + REMOTE_SORTS * sample_of(far);
    return (struct probe_numa_plan){.looked_at = cells, .copied = sampled};
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
