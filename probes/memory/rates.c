/* Rates of memory: arrays, bursts and pages of a copy, and curves by the number of workers
 * (rates.h). */
#include "probes/memory/rates.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Constant         unit     source                                      without it
 * caches_beyond    caches   PROBING: 4 last levels, 128 MiB there       a cache holds a part
 * caches_hurried   caches   source and target are twice the cache       budgets of seconds fail
 * array_least,     bytes    -                                           noise; gigabytes
 * array_most
 * LARGE_FROM       PUs      64 cores of 6 GB/s took 95 s                large machines take minutes
 * BURSTS, _LARGE   bursts   the upper quartile of so many is a figure;  a disturbed burst is one
 *                           beside ten tasks 24 spread by 25 %, 192 no
 *                           more than 256
 * PASSES_MOST      passes   the rounds do the rest                      seconds beside large caches
 * burst_seconds    s        half a MiB at 40 GB/s                       slow memory takes long */
static const size_t caches_beyond = 4, caches_hurried = 1;
static const size_t array_least = 32u << 20, array_most = (size_t)512 << 20;
enum { LARGE_FROM = 64, BURSTS = 192, BURSTS_LARGE = 32, PASSES_MOST = 3 };
static const double burst_seconds = 25e-6;

bool probe_memory_collides(double bytes_per_s, double alone_bytes_per_s)
{
    return bytes_per_s < PROBE_MEMORY_COLLISION * alone_bytes_per_s;
}

bool probe_memory_is_clear(double bytes_per_s, double alone_bytes_per_s)
{
    return bytes_per_s >= (1 + PROBE_MEMORY_COLLISION) / 2 * alone_bytes_per_s;
}

bool probe_memory_is_large(const struct probe *probe)
{
    return probe->machine->pus.count >= LARGE_FROM;
}

size_t probe_memory_wanted_bytes(const struct probe *probe, size_t last_level_bytes)
{
    size_t bytes = (probe->hurried ? caches_hurried : caches_beyond) * last_level_bytes;
    bytes = bytes < array_least ? array_least : bytes;
    return bytes > array_most ? array_most : bytes;
}

size_t probe_memory_bytes(const struct probe *probe, size_t last_level_bytes)
{
    const size_t bytes = probe_memory_wanted_bytes(probe, last_level_bytes),
                 limit = probe->machine->memory_limit_bytes / MEMORY_SHARES;
    return bytes < limit ? bytes : limit;
}

char *probe_memory_method(const struct machine *machine, size_t array_bytes)
{
    char *text = NULL;
    size_t page = machine->huge_page_bytes ? machine->huge_page_bytes : machine->page_bytes;
    bool large = page >= 1u << 20;
    int length = asprintf(&text, "%s, pages of %zu %s%s, arrays of %zu MiB",
                          machine->copy_method ? machine->copy_method : "copies",
                          page >> (large ? 20 : 10), large ? "MiB" : "KiB",
                          machine->huge_page_bytes ? " asked for" : "", array_bytes >> 20);
    return length < 0 ? NULL : text;
}

static size_t whole_bursts(double bytes, size_t burst)
{
    return (size_t)ceil(bytes / (double)burst) * burst;
}

struct machine_copy probe_memory_what(const struct probe *probe, size_t bytes, int32_t numa)
{
    const double usual_bytes = burst_seconds * probe->alone_bytes_per_s / 2,
                 in_time =
                     usual_bytes > 0 ? fmin(usual_bytes, MACHINE_BURST_BYTES) : MACHINE_BURST_BYTES;
    const size_t burst = whole_bursts(in_time, MACHINE_BURST_BYTES /
                                                   8 /* small pages: an odd one is no burst */),
                 least = BURSTS_LARGE * burst, usual = whole_bursts(BURSTS * in_time, burst),
                 wanted = probe_memory_is_large(probe) || usual < least ? least : usual,
                 passes = bytes > 0 ? wanted / bytes : 1;
    return (struct machine_copy){
        .bytes = bytes,
        .passes = passes < 1             ? 1
                  : passes > PASSES_MOST ? PASSES_MOST
                                         : (uint32_t)passes,
        .part = wanted,
        .burst = burst,
        .numa = numa,
        .pages = machine_pages(probe->machine),
        .deadline = probe->deadline,
    };
}

int probe_memory_copy(struct probe *probe, size_t bytes, uint32_t pu, double *bytes_per_s)
{
    const struct machine_copy what = probe_memory_what(probe, bytes, -1);
    TRY(probe_machine_copy_together(probe->machine, &what, &pu, 1, bytes_per_s));
    probe->alone_bytes_per_s = fmax(probe->alone_bytes_per_s, *bytes_per_s);
    return 0;
}

size_t probe_memory_room(const struct probe *probe, size_t bytes, size_t workers)
{
    const size_t room = probe->machine->memory_limit_bytes / (3 * workers);
    return bytes < room ? bytes : room;
}

int probe_memory_total(struct probe *probe, const struct machine_copy *what, const uint32_t *pus,
                       size_t count, double *bytes_per_s)
{
    FREED double *each = malloc(count * sizeof *each);
    *bytes_per_s = 0;
    TRY(each ? probe_machine_copy_together(probe->machine, what, pus, count, each) : -ENOMEM);
    for (size_t i = 0; i < count; i++) {
        *bytes_per_s += each[i];
    }
    return 0;
}

int probe_memory_settled(struct probe *probe, const struct machine_copy *what, const uint32_t *pus,
                         struct profile_scaling_point *point)
{
    double totals[REPEAT_MEDIAN_MOST];
    size_t done = 0;
    for (; !probe_repeat_median_settled(totals, done) && !(done > 0 && probe_late(probe)); done++) {
        int rc = probe_memory_total(probe, what, pus, point->workers, &totals[done]);
        if (done > 0 && (rc == -ETIME || rc == -EAGAIN)) {
            break;
        }
        TRY(rc);
    }
    point->bytes_per_s = profile_median_value(totals, done);
    point->repetitions = (uint32_t)done;
    point->spread = probe_spread(totals, done);
    return 0;
}

/* -- curves: workers are added to a group one per inner domain first. Filled from one end, the
 * curve of a cell would show the bus inside it twice (3.4, 4.2, 4.2, 5.6 GB/s), and a prediction
 * from it would be of that bus. -- */

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

/* Orders positions in the machine's set so that each next one has the fewest before it in its unit
 * of the outermost of `inner` (partitions of the positions), then of the next, the core last. */
static void order_evenly(size_t *positions, size_t count, const struct partitions *inner)
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
static uint32_t append_capable(const struct probe *probe, const struct profile_set *group,
                               uint32_t limit, size_t *at, size_t *count)
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
        limit = append_capable(probe, group, limit, at, &count);
        order_evenly(at + from, count - from, inner);
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = pus->ids[at[i]];
    }
    return measure_curve(probe, bytes, order, count < most ? count : most, memory, level);
}
