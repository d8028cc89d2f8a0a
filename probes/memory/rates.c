/* Rates of memory: arrays, bursts and pages of a copy (rates.h). */
#include "probes/memory/rates.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "probes/pairs/stopping.h"

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
