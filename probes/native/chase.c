/* Latency of a traversal on this machine. The cycle is warmed with independent loads in the order
 * of the chase: the same lines end up in the caches ten times faster than by chasing. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "probes/native/native.h"
#include "profile/base/random.h"

/* How much is timed per figure. A chunk is a batch of loads between two readings of the clock; the
 * figure is the lower quartile of the chunks, since whatever disturbs (interrupts, neighbours, a
 * busy sibling) only ever adds time. */
enum {
    /* doubled until a chunk lasts as long as the clock asks for; the lines that reading the clock
     * takes of a small cache weigh little (of 512 loads: a level made up in 3 of 24 layouts) */
    CHUNK_LOADS = 2048,
    UNROLL = 16,     /* loads per turn of the loop, so that its counter costs nothing */
    CHUNKS_MIN = 24, /* for the quartile to mean something */
    /* at least, if the cycle is that long: a whole turn of an L3-sized one, since what the others
     * evict shows only on the next visit */
    LOADS_TOGETHER = 65536,
    CHUNKS_MAX = LOADS_TOGETHER / CHUNK_LOADS,
};
/* Passes that warm are made as long as they help: a cache that keeps only lines which it sees again
 * gets faster for a dozen of them (one of 90 MiB from 12 to 6 ns a line), a set far beyond every
 * cache for none, and those take the longest. For 10 ms of the processor all are made; then until
 * of so many none was the fastest. */
static const uint64_t warm_least_ns = 10u * 1000u * 1000u;
enum { STEADY_PASSES = 4 };
/* Nodes that are fetched before their link is written, so that many come from memory at a time. */
enum { LINKED_AHEAD = 24 };
static const size_t slack_bytes =
    4u << 20; /* of the pool beyond the working set, to place it elsewhere each time */

/* A cycle through memory: the byte offsets of its nodes / 8 in visiting order. Kept beside the
 * chain, so that warming can visit the nodes with independent loads (some ten times faster than
 * chasing) in exactly the same order. */
struct cycle {
    unsigned char *base;
    uint32_t *places;
    size_t count;
};

static inline void *node_at(const struct cycle *cycle, size_t i)
{
    return cycle->base + (size_t)cycle->places[i] * 8;
}

static int build_cycle(struct native_worker *worker, const struct machine_traversal *what,
                       struct cycle *cycle)
{
    const enum native_kind_of_region kind = what->on_node                       ? NATIVE_COPY
                                            : what->pages == MACHINE_PAGES_HUGE ? NATIVE_HUGE_POOL
                                                                                : NATIVE_POOL;
    struct native_region *region = &worker->regions[kind];
    size_t page = what->pages == MACHINE_PAGES_HUGE && worker->native->machine->huge_page_bytes
                      ? worker->native->machine->huge_page_bytes
                      : worker->native->machine->page_bytes;
    struct random random = {what->seed + worker->pu};
    int rc = what->on_node ? probe_native_region_place(worker, region, what->numa, what->pages,
                                                       what->bytes + page)
                           : probe_native_region_grow(worker, region, what->bytes + slack_bytes);
    if (rc == -ENOMEM && !what->on_node) { /* as little as it can be */
        rc = probe_native_region_grow(worker, region, what->bytes + page);
    }
    TRY(rc);
    size_t wanted = (what->bytes + page - 1) / page;
    const size_t first = random_below(&random, region->touched / page - wanted + 1) * page;
    cycle->base = region->start;
    cycle->count = what->bytes / what->stride_bytes;
    cycle->places = malloc(cycle->count * sizeof *cycle->places);
    TRY(cycle->places ? 0 : -ENOMEM);
    for (size_t i = 0; i < cycle->count; i++) {
        size_t at = first + i * what->stride_bytes;
        if (what->order == MACHINE_SPREAD) {
            at += machine_spread_offset(i, what->stride_bytes);
        }
        cycle->places[i] = (uint32_t)(at / 8);
    }
    random_shuffle(&random, cycle->places, cycle->count, sizeof *cycle->places);
    for (size_t i = 0; i < cycle->count; i++) {
        if (i + LINKED_AHEAD < cycle->count) {
            __builtin_prefetch(node_at(cycle, i + LINKED_AHEAD), 1);
        }
        *(void **)node_at(cycle, i) = node_at(cycle, i + 1 < cycle->count ? i + 1 : 0);
    }
    return 0;
}

static void warm_cycle(const struct cycle *cycle)
{
    uintptr_t sum = 0;
    for (size_t i = 0; i < cycle->count; i++) {
        sum += *(volatile uintptr_t *)node_at(cycle, i);
    }
    __asm__ volatile("" : : "r"(sum));
}

static void warm_up(const struct native_worker *worker, const struct cycle *cycle, uint32_t passes)
{
    const uint64_t begin = profile_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t before = begin, fastest = UINT64_MAX;
    uint32_t since = 0; /* the last one that was faster */
    for (uint32_t i = 0; i < passes && !probe_native_cancelled(worker); i++) {
        warm_cycle(cycle);
        uint64_t now = profile_clock_ns(CLOCK_THREAD_CPUTIME_ID), taken = now - before;
        before = now;
        since++;
        if (taken < fastest) {
            fastest = taken;
            since = 0;
        }
        if (since >= STEADY_PASSES && now - begin > warm_least_ns) {
            return;
        }
    }
}

/* The result is handed to the compiler as used: an unused chase is deleted from -O1 on. */
static void *chase(void *start, size_t loads)
{
    void **at = start;
    for (size_t i = 0; i < loads; i += UNROLL) {
#pragma GCC unroll 16
        for (int j = 0; j < UNROLL; j++) {
            at = *at;
        }
        __asm__ volatile("" : "+r"(at));
    }
    return at;
}

static double time_chunk(const struct native *native, void **at, size_t loads)
{
    uint64_t start = profile_now_ns();
    *at = chase(*at, loads);
    double seconds = (double)(profile_now_ns() - start) * 1e-9 - native->clock_cost_s;
    return seconds > 0 ? seconds : 0;
}

/* The chase goes on where the last chunk ended, so that every load is as far from its last use as
 * the cycle is long. */
static double time_cycle(struct native_worker *worker, const struct cycle *cycle,
                         size_t least_loads)
{
    double seconds[CHUNKS_MAX];
    void *at = node_at(cycle, 0);
    size_t loads = CHUNK_LOADS, chunks = 0, done = 0;
    while (time_chunk(worker->native, &at, loads) < worker->native->batch_s) {
        loads *= 2;
    }
    while (chunks < CHUNKS_MAX && (chunks < CHUNKS_MIN || done < least_loads)) {
        seconds[chunks++] = time_chunk(worker->native, &at, loads) / (double)loads;
        done += loads;
        if (probe_native_cancelled(worker)) {
            break;
        }
    }
    return profile_quantile(seconds, chunks, 0.25);
}

static void free_cycle(struct cycle *cycle)
{
    free(cycle->places);
}

static int run_chase(struct native_worker *worker, struct native_job *job)
{
    const struct machine_traversal *what = job->what;
    FREED_BY(free_cycle) struct cycle cycle = {0};
    TRY(build_cycle(worker, what, &cycle));
    TRY(probe_native_meet(worker, job) ? 0 : -EINTR);
    warm_up(worker, &cycle, what->warm_passes);
    /* A worker that is ready keeps its set warm until all are: shared caches must be contended for,
     * not handed over. */
    atomic_fetch_add(&job->warm, 1);
    while (atomic_load(&job->warm) < job->count && !atomic_load(&job->failed) &&
           !probe_native_cancelled(worker)) {
        warm_cycle(&cycle);
    }
    const size_t turn = cycle.count < LOADS_TOGETHER ? cycle.count : LOADS_TOGETHER;
    job->result[worker->index] = time_cycle(worker, &cycle, job->count > 1 ? turn : 0);
    probe_native_done(job);
    void *at = node_at(&cycle, 0);
    while (probe_native_others_busy(worker, job)) {
        at = chase(at, CHUNK_LOADS);
    }
    return probe_native_cancelled(worker) ? -EINTR : 0;
}

/* mcalibrator (2010 paper, Figure 1): every visited element holds the stride, each pass starts at
 * the first again. */
static double stride_pass(const struct native *native, const int *array, size_t size, size_t passes)
{
    size_t visits = 0;
    uint64_t start = profile_now_ns();
    for (size_t pass = 0; pass < passes; pass++) {
        for (size_t j = 0; j < size; j += (size_t)((const volatile int *)array)[j]) {
            visits++;
        }
    }
    double seconds = (double)(profile_now_ns() - start) * 1e-9 - native->clock_cost_s;
    return seconds < native->batch_s ? -1 : seconds / (double)visits;
}

static int run_stride(struct native_worker *worker, struct native_job *job)
{
    enum { BEST_OF = 9 };
    const struct machine_traversal *what = job->what;
    struct native_region *pool = &worker->regions[NATIVE_POOL];
    TRY(probe_native_region_grow(worker, pool, what->bytes));
    int *array = (int *)(void *)pool->start;
    size_t size = what->bytes / sizeof *array, step = what->stride_bytes / sizeof *array;
    for (size_t j = 0; j < size; j += step) {
        array[j] = (int)step;
    }
    TRY(probe_native_meet(worker, job) ? 0 : -EINTR);
    double best = 0, seconds;
    size_t passes = 1;
    while (stride_pass(worker->native, array, size, passes) < 0) {
        passes *= 2;
    }
    for (int i = 0; i < BEST_OF; i++) {
        seconds = stride_pass(worker->native, array, size, passes);
        best = seconds > 0 && (best == 0 || seconds < best) ? seconds : best;
    }
    job->result[worker->index] = best;
    probe_native_done(job);
    while (probe_native_others_busy(worker, job)) {
        stride_pass(worker->native, array, size, passes);
    }
    return probe_native_cancelled(worker) ? -EINTR : 0;
}

int probe_native_traverse(struct machine *machine, const struct machine_traversal *what,
                          const uint32_t *pus, size_t count, double *seconds_per_access)
{
    struct native_job job = {.run = what->order == MACHINE_STRIDE ? run_stride : run_chase,
                             .what = what,
                             .result = seconds_per_access};
    return probe_native_run(machine->state, &job, pus, count);
}
