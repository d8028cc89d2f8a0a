/* Curves of memory bandwidth. Workers are added to a group one per inner domain first: filled from
 * one end, the curve of a cell would show the bus inside it twice (3.4, 4.2, 4.2, 5.6 GB/s), and a
 * prediction from it would be of that bus. */
#include "probes/memory/rates.h"

#include <errno.h>
#include <stdlib.h>

enum { ALL_UP_TO = 8 }; /* every number of workers; then a quarter more each time */

/* Members of `unit` among the first `count`. */
static size_t before_in(const uint32_t *unit_of, const size_t *positions, size_t count,
                        uint32_t unit)
{
    size_t before = 0;
    for (size_t k = 0; k < count; k++) {
        before += unit_of[positions[k]] == unit;
    }
    return before;
}

void probe_scaling_order(size_t *positions, size_t count, const struct partitions *inner)
{
    for (size_t done = 0; done + 1 < count; done++) {
        size_t best = done;
        for (size_t k = done + 1; k < count; k++) {
            size_t here = 0, there = 0;
            for (size_t i = inner->count; i > 0 && here == there; i--) {
                const uint32_t *of = inner->of[i - 1].unit;
                here = before_in(of, positions, done, of[positions[k]]);
                there = before_in(of, positions, done, of[positions[best]]);
            }
            best = here < there ? k : best;
        }
        size_t chosen = positions[best];
        for (size_t k = best; k > done; k--) { /* the others keep their order */
            positions[k] = positions[k - 1];
        }
        positions[done] = chosen;
    }
}

/* How capable a core of the PU is, as declared; 0 where nothing is said. */
static uint32_t efficiency_of(const struct profile_class *declared, uint32_t pu)
{
    const size_t kind = declared ? probe_kinds_declared(declared, pu) : 0;
    return declared && kind < declared->kind_count ? declared->kinds[kind].efficiency : 0;
}

/* Appends the most capable of the members that are below `limit`, and returns how capable these
 * are. */
static uint32_t add_kind(const struct probe *probe, const struct profile_set *group, uint32_t limit,
                         size_t *at, size_t *count)
{
    uint32_t most = 0;
    for (size_t i = 0; i < group->count; i++) {
        const uint32_t mine = efficiency_of(probe->declared, group->ids[i]);
        most = mine < limit && mine > most ? mine : most;
    }
    for (size_t i = 0; i < group->count; i++) {
        if (efficiency_of(probe->declared, group->ids[i]) == most) {
            at[(*count)++] = profile_set_position(&probe->machine->pus, group->ids[i]);
        }
    }
    return most;
}

/* More workers than before that get less suffered from interference: they are asked again once, and
 * the better figure counts. */
static int measure_point(struct probe *probe, size_t bytes, const uint32_t *pus, double before,
                         struct profile_scaling_point *point)
{
    const struct machine_copy what =
        probe_memory_what(probe, probe_memory_room(probe, bytes, point->workers), -1);
    int rc = probe_memory_settled(probe, &what, pus, point);
    if (rc < 0 || !probe_memory_collides(point->bytes_per_s, before)) {
        return rc;
    }
    struct profile_scaling_point again = *point;
    rc = probe_memory_settled(probe, &what, pus, &again);
    *point = rc == 0 && again.bytes_per_s > point->bytes_per_s ? again : *point;
    return rc;
}

/* On the first 1, 2, 3 … of `order`, OS indices. */
static int measure_curve(struct probe *probe, size_t bytes, const uint32_t *order, size_t count,
                         const struct profile_memory *memory, struct profile_memory_level *level)
{
    level->scaling = calloc(count, sizeof *level->scaling);
    double before = 0;
    int rc = level->scaling ? 0 : -ENOMEM;
    for (uint32_t workers = 1; rc == 0 && workers <= count;) {
        if (workers > 2 && probe_late(probe)) {
            break; /* the curve ends here */
        }
        struct profile_scaling_point point = {.workers = workers};
        probe_tell(probe, 0.95, "memory with %u workers", workers);
        if (workers == 1) {
            point.bytes_per_s = memory->reference_bytes_per_s;
            point.repetitions = memory->quality.repetitions;
            point.spread = memory->quality.spread;
        } else {
            rc = measure_point(probe, bytes, order, before, &point);
        }
        if (rc == 0) {
            level->scaling[level->scaling_count++] = point;
            before = point.bytes_per_s;
        }
        uint32_t next = workers < ALL_UP_TO ? workers + 1 : workers + workers / 4;
        workers = next > count && workers < count ? (uint32_t)count : next;
    }
    /* the curve ends here, too */
    return rc == -ETIME || (rc == -EAGAIN && level->scaling_count > 1) ? 0 : rc;
}

int probe_scaling_measure(struct probe *probe, size_t bytes, const struct profile_set *group,
                          const struct partitions *inner, const struct profile_memory *memory,
                          struct profile_memory_level *level)
{
    const struct profile_set *pus = &probe->machine->pus;
    const size_t most = probe_machine_at_once(probe->machine);
    FREED size_t *at = malloc(pus->count * sizeof *at);
    FREED uint32_t *order = malloc(pus->count * sizeof *order);
    size_t count = 0;
    TRY(at && order ? 0 : -ENOMEM);
    for (uint32_t limit = UINT32_MAX; limit > 0;) {
        const size_t from = count;
        limit = add_kind(probe, group, limit, at, &count);
        probe_scaling_order(at + from, count - from, inner);
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = pus->ids[at[i]];
    }
    return measure_curve(probe, bytes, order, count < most ? count : most, memory, level);
}
