/* BSP supersteps of threads, and the DAXPY whose rate is r. Written out here because the
 * compiler's own vectorisation is of the least processor of the architecture. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/bsp/bsp.h"
#include "probes/native/native.h"

/* y := a x + y. Lengths are multiples of the block; vectors are aligned to its 128 bytes. */
enum { DAXPY_BLOCK = 16 };

/* One body, compiled for each width of vector registers and chosen at run time: the project is
 * built for any processor of its architecture, but r is that of this one. */
#define DEFINE_DAXPY(name, lanes, attributes)                                                      \
    attributes static void name(double a, const double *x, double *y, size_t length, size_t times) \
    {                                                                                              \
        typedef double vector __attribute__((vector_size(8 * (lanes))));                           \
        const vector *from = (const vector *)x;                                                    \
        vector *to = (vector *)y;                                                                  \
        for (size_t t = 0; t < times; t++) {                                                       \
            for (size_t i = 0; i < length / (lanes); i += DAXPY_BLOCK / 2 / (lanes)) {             \
                for (size_t j = 0; j < DAXPY_BLOCK / 2 / (lanes); j++) {                           \
                    to[i + j] += a * from[i + j];                                                  \
                }                                                                                  \
            }                                                                                      \
            __asm__ volatile("" : : : "memory"); /* every pass is done */                          \
        }                                                                                          \
    }

DEFINE_DAXPY(daxpy_2, 2, )
#if defined(__x86_64__)
DEFINE_DAXPY(daxpy_4, 4, __attribute__((target("avx2,fma"))))
DEFINE_DAXPY(daxpy_8, 8, __attribute__((target("avx512f"))))
#endif

#if defined(__aarch64__)
/* The same for vectors as long as this processor's are. */
__attribute__((target("+sve"))) static void daxpy_sve(double a, const double *x, double *y,
                                                      size_t length, size_t times)
{
    for (size_t t = 0; t < times; t++) {
        uint64_t at = 0;
        __asm__ volatile("mov z2.d, %d[a]\n\t"
                         "whilelo p0.d, %[at], %[length]\n"
                         "1:\tld1d {z0.d}, p0/z, [%[x], %[at], lsl #3]\n\t"
                         "ld1d {z1.d}, p0/z, [%[y], %[at], lsl #3]\n\t"
                         "fmla z1.d, p0/m, z0.d, z2.d\n\t"
                         "st1d {z1.d}, p0, [%[y], %[at], lsl #3]\n\t"
                         "incd %[at]\n\t"
                         "whilelo p0.d, %[at], %[length]\n\t"
                         "b.first 1b"
                         : [at] "+r"(at)
                         : [a] "w"(a), [x] "r"(x), [y] "r"(y), [length] "r"((uint64_t)length)
                         : "v0", "v1", "v2", "p0", "cc", "memory");
    }
}
#endif

/* Runs it `times` times on vectors of `length` words. */
static void daxpy(double a, const double *x, double *y, size_t length, size_t times)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        daxpy_8(a, x, y, length, times);
        return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        daxpy_4(a, x, y, length, times);
        return;
    }
#elif defined(__aarch64__)
    if (probe_native_has_long_vectors()) {
        daxpy_sve(a, x, y, length, times);
        return;
    }
#endif
    daxpy_2(a, x, y, length, times);
}

/* Supersteps of threads. Single words are put the way a BSP library must: bsp_put takes the value
 * at once and delivers it in the synchronisation, so words wait in a queue for each destination,
 * and the destination empties the queues between two barriers. A packet is copied straight to where
 * it belongs; one barrier says that it is there. */

struct put {
    uint64_t index;
    double value;
};

struct queue {
    _Alignas(NATIVE_LINE_BYTES) size_t count;
    struct put *puts;
};

struct board {
    uint32_t processors;
    const struct bsp_superstep *what;
    struct queue *queues; /* [source * processors + destination] */
    struct put *puts;
    double **targets; /* of every processor, on its own lines */
    double **sources;
    _Alignas(NATIVE_LINE_BYTES) atomic_uint waiting;
    _Alignas(NATIVE_LINE_BYTES) atomic_uint generation;
    _Alignas(NATIVE_LINE_BYTES) double best;
};

/* False: a worker failed or was interrupted. */
static bool synchronise(struct native_worker *worker, struct native_job *job, struct board *board)
{
    uint32_t generation = atomic_load_explicit(&board->generation, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&board->waiting, 1, memory_order_acq_rel) + 1 ==
        board->processors) {
        atomic_store_explicit(&board->waiting, 0, memory_order_relaxed);
        atomic_store_explicit(&board->generation, generation + 1, memory_order_release);
        return true;
    }
    for (uint32_t spins = 1;
         atomic_load_explicit(&board->generation, memory_order_acquire) == generation; spins++) {
        if (!native_wait_on(worker, job, spins)) {
            return false;
        }
    }
    return true;
}

struct pattern {
    uint32_t *destination, *index;
};

static bool words(struct native_worker *worker, struct native_job *job, struct board *board,
                  const struct pattern *pattern)
{
    uint32_t me = (uint32_t)worker->index, p = board->processors;
    struct queue *out = board->queues + (size_t)me * p;
    const double *source = board->sources[me];
    double *target = board->targets[me];
    for (uint32_t i = 0; i < board->what->h; i++) {
        struct queue *queue = &out[pattern->destination[i]];
        queue->puts[queue->count++] = (struct put){pattern->index[i], source[i]};
    }
    if (!synchronise(worker, job, board)) {
        return false;
    }
    for (uint32_t k = 0; k < p; k++) {
        struct queue *in = &board->queues[(size_t)((me + k) % p) * p + me];
        for (size_t i = 0; i < in->count; i++) {
            target[in->puts[i].index] = in->puts[i].value;
        }
        in->count = 0;
    }
    return synchronise(worker, job, board);
}

static bool packets(struct native_worker *worker, struct native_job *job, struct board *board)
{
    uint32_t me = (uint32_t)worker->index, next = (me + 1) % board->processors;
    memcpy(board->targets[next], board->sources[me], board->what->h * sizeof(double));
    return synchronise(worker, job, board);
}

static bool run_batch(struct native_worker *worker, struct native_job *job, struct board *board,
                      const struct pattern *pattern)
{
    bool alive = true;
    for (uint32_t i = 0; alive && i < board->what->supersteps; i++) {
        alive = board->what->packing == BSP_WORDS ? words(worker, job, board, pattern)
                                                  : packets(worker, job, board);
    }
    return alive;
}

static int timed_job(struct native_worker *worker, struct native_job *job, struct board *board,
                     const struct pattern *pattern)
{
    double best = INFINITY;
    bool alive =
        run_batch(worker, job, board, pattern); /* untimed: all run, all lines are theirs */
    for (uint32_t i = 0; alive && i < board->what->batches; i++) {
        alive = synchronise(worker, job, board);
        uint64_t start = profile_now_ns();
        alive = alive && run_batch(worker, job, board, pattern);
        best = fmin(best, (double)(profile_now_ns() - start) * 1e-9);
    }
    if (worker->index == 0) {
        board->best = best / board->what->supersteps;
    }
    return alive ? 0 : -EINTR;
}

/* Each processor makes its own memory, so that it lies where the processor is. */
static int run_superstep(struct native_worker *worker, struct native_job *job)
{
    struct board *board = job->shared;
    uint32_t me = (uint32_t)worker->index, h = board->what->h, p = board->processors;
    size_t slots = bsp_target_words(h > p ? h : p, p) + h + 1;
    FREED uint32_t *destination = calloc(h + 1, sizeof *destination),
                   *index = calloc(h + 1, sizeof *index);
    double *target = calloc(slots, sizeof *target), *source = calloc(h + 1, sizeof *source);
    board->targets[me] = target;
    board->sources[me] = source;
    TRY(destination && index && target && source ? 0 : -ENOMEM);
    for (uint32_t i = 0; i < h; i++) {
        destination[i] = bsp_destination(me, i, p);
        index[i] = bsp_destination_index(me, i, p);
        source[i] = i;
    }
    TRY(probe_native_meet(worker, job) ? 0 : -EINTR);
    return timed_job(worker, job, board, &(struct pattern){destination, index});
}

static int make_board(struct board *board, const struct bsp_superstep *what, uint32_t p)
{
    /* Words of one processor for one other: h / (p - 1), rounded up. */
    size_t room = p == 1 ? what->h + 1u : what->h / (p - 1) + 1u,
           lines = NATIVE_LINE_BYTES / sizeof(struct put);
    room = (room + lines) / lines * lines;
    memset(board, 0, sizeof *board);
    board->processors = p;
    board->what = what;
    board->queues = aligned_alloc(NATIVE_LINE_BYTES, (size_t)p * p * sizeof *board->queues);
    board->puts = aligned_alloc(NATIVE_LINE_BYTES, (size_t)p * p * room * sizeof *board->puts);
    board->targets = calloc(p, sizeof *board->targets);
    board->sources = calloc(p, sizeof *board->sources);
    TRY(board->queues && board->puts && board->targets && board->sources ? 0 : -ENOMEM);
    for (size_t i = 0; i < (size_t)p * p; i++) {
        board->queues[i] = (struct queue){0, board->puts + i * room};
    }
    return 0;
}

static void free_board(struct board *board)
{
    for (uint32_t i = 0; i < board->processors; i++) {
        free(board->targets ? board->targets[i] : NULL);
        free(board->sources ? board->sources[i] : NULL);
    }
    free(board->targets);
    free(board->sources);
    free(board->queues);
    free(board->puts);
}

int probe_native_superstep(struct machine *machine, uint32_t processors,
                           const struct bsp_superstep *what, double *seconds)
{
    FREED_BY(free_board) struct board board;
    TRY(make_board(&board, what, processors));
    struct native_job job = {.run = run_superstep, .what = what, .shared = &board};
    TRY(probe_native_run(machine->state, &job, machine->pus.ids, processors));
    *seconds = board.best;
    return 0;
}

/* -- r -- */

/* A batch of this many flops takes some 0.1 ms. */
static const double batch_flops = 2e6;
enum { DAXPY_BATCHES = 9 };

static int run_daxpy(struct native_worker *worker, struct native_job *job)
{
    uint32_t length = *(const uint32_t *)job->what;
    FREED double *x = aligned_alloc(NATIVE_LINE_BYTES, length * sizeof *x),
                 *y = aligned_alloc(NATIVE_LINE_BYTES, length * sizeof *y);
    size_t times = (size_t)(batch_flops / (2.0 * length)) + 1;
    uint64_t best = UINT64_MAX;
    TRY(x && y ? 0 : -ENOMEM);
    for (uint32_t i = 0; i < length; i++) {
        x[i] = y[i] = i;
    }
    TRY(probe_native_meet(worker, job) ? 0 : -EINTR);
    for (int i = 0; i < DAXPY_BATCHES; i++) {
        uint64_t start = profile_now_ns();
        daxpy(1.0 / 3, x, y, length, times);
        uint64_t taken = profile_now_ns() - start;
        best = taken < best ? taken : best;
    }
    job->result[worker->index] = 2.0 * length * (double)times / ((double)best * 1e-9);
    probe_native_done(job);
    while (probe_native_others_busy(worker, job)) {
        daxpy(1.0 / 3, x, y, length, 1);
    }
    return probe_native_cancelled(worker) ? -EINTR : 0;
}

int probe_native_daxpy(struct machine *machine, uint32_t processors, uint32_t length,
                       double *flop_per_s)
{
    FREED double *rates = calloc(processors, sizeof *rates);
    double sum = 0;
    TRY(rates ? 0 : -ENOMEM);
    struct native_job job = {.run = run_daxpy, .what = &length, .result = rates};
    TRY(length % DAXPY_BLOCK
            ? -EINVAL
            : probe_native_run(machine->state, &job, machine->pus.ids, processors));
    for (uint32_t i = 0; i < processors; i++) {
        sum += rates[i];
    }
    *flop_per_s = sum / processors;
    return 0;
}
