/* Bandwidth of copies and other loops on this machine, by several PUs at once: those that have
 * their figure go on until the last one has its own. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "probes/native/native.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* Non-temporal stores where there are any: a plain store first fetches the line it overwrites,
 * which counts as traffic but not as copied bytes, and varies more from run to run (PROBING
 * measurements: 7 % against 5 % between rounds). */
typedef void copy_function(void *target, const void *source, size_t bytes);

#if defined(__x86_64__)
/* One body, compiled for both widths of vector registers and chosen at run time. */
#define DEFINE_COPY(name, attributes, vector, load, stream)                                        \
    attributes static void name(void *target, const void *source, size_t bytes)                    \
    {                                                                                              \
        vector *to = target;                                                                       \
        const vector *from = source;                                                               \
        for (size_t i = 0; i < bytes / sizeof *to; i += 4) {                                       \
            vector a = load(from + i), b = load(from + i + 1);                                     \
            vector c = load(from + i + 2), d = load(from + i + 3);                                 \
            stream(to + i, a);                                                                     \
            stream(to + i + 1, b);                                                                 \
            stream(to + i + 2, c);                                                                 \
            stream(to + i + 3, d);                                                                 \
        }                                                                                          \
        _mm_sfence();                                                                              \
    }

DEFINE_COPY(copy_avx2, __attribute__((target("avx2"))), __m256i, _mm256_load_si256,
            _mm256_stream_si256)
DEFINE_COPY(copy_sse2, , __m128i, _mm_load_si128, _mm_stream_si128)
#elif defined(__aarch64__)
bool probe_native_has_long_vectors(void)
{
    uint64_t bytes = 0;
    if (getauxval(AT_HWCAP) & HWCAP_SVE) {
        __asm__(".arch_extension sve\n\tcntb %0" : "=r"(bytes));
    }
    return bytes > 16;
}

/* Vectors as long as this processor's are. */
__attribute__((target("+sve"))) static void copy_sve(void *target, const void *source, size_t bytes)
{
    uint64_t at = 0, words = bytes / 8;
    __asm__ volatile("whilelo p0.d, %0, %3\n"
                     "1:\tld1d {z0.d}, p0/z, [%2, %0, lsl #3]\n\t"
                     "stnt1d {z0.d}, p0, [%1, %0, lsl #3]\n\t"
                     "incd %0\n\t"
                     "whilelo p0.d, %0, %3\n\t"
                     "b.first 1b"
                     : "+r"(at)
                     : "r"(target), "r"(source), "r"(words)
                     : "v0", "p0", "cc", "memory");
}

static void copy_stnp(void *target, const void *source, size_t bytes)
{
    unsigned char *to = target;
    const unsigned char *from = source;
    for (size_t i = 0; i < bytes; i += 32) {
        __asm__ volatile("ldp q0, q1, [%1]\n\tstnp q0, q1, [%0]"
                         :
                         : "r"(to + i), "r"(from + i)
                         : "v0", "v1", "memory");
    }
}
#else
static void copy_plain(void *target, const void *source, size_t bytes)
{
    memcpy(target, source, bytes);
}
#endif

static copy_function *best_copy(const char **name)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        *name = "AVX2 non-temporal stores";
        return copy_avx2;
    }
    *name = "SSE2 non-temporal stores";
    return copy_sse2;
#elif defined(__aarch64__)
    if (probe_native_has_long_vectors()) {
        *name = "SVE non-temporal stores";
        return copy_sve;
    }
    *name = "STNP non-temporal stores";
    return copy_stnp;
#else
    *name = "memcpy";
    return copy_plain;
#endif
}

const char *probe_native_copy_method(void)
{
    const char *name;
    best_copy(&name);
    return name;
}

/* -- what other loops get -- */

/* Whole numbers and not doubles: whatever is in the memory, there are no slow denormal numbers
 * among them, and memory cannot tell. Vectors of 16 bytes, which every compiler makes of loops. */
typedef uint64_t lanes __attribute__((vector_size(16)));
enum { LANES = 4 }; /* at a time */

/* An addition of what the compiler does not know to be zero, or it would call memcpy(), which takes
 * non-temporal stores or the processor's own ways for long copies. */
static void copy_ordinary(void *target, const void *source, size_t bytes)
{
    static volatile uint64_t unknown_zero;
    const lanes zero = {unknown_zero, unknown_zero};
    lanes *to = target;
    const lanes *from = source;
    for (size_t i = 0; i + LANES <= bytes / sizeof *to; i += LANES) {
        to[i] = from[i] + zero;
        to[i + 1] = from[i + 1] + zero;
        to[i + 2] = from[i + 2] + zero;
        to[i + 3] = from[i + 3] + zero;
    }
}

static void read_only(const void *source, size_t bytes)
{
    const lanes *from = source;
    lanes a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t i = 0; i + LANES <= bytes / sizeof *from; i += LANES) {
        a += from[i];
        b += from[i + 1];
        c += from[i + 2];
        d += from[i + 3];
    }
    a += b + c + d;
    __asm__ volatile("" : : "r"(a[0] + a[1])); /* or it would all be left out */
}

/* a = b + 2 c, by two additions: as many operations as STREAM's a = b + s c. */
static void triad(void *target, const void *first, const void *second, size_t bytes)
{
    lanes *a = target;
    const lanes *b = first, *c = second;
    for (size_t i = 0; i + LANES <= bytes / sizeof *a; i += LANES) {
        a[i] = b[i] + c[i] + c[i];
        a[i + 1] = b[i + 1] + c[i + 1] + c[i + 1];
        a[i + 2] = b[i + 2] + c[i + 2] + c[i + 2];
        a[i + 3] = b[i + 3] + c[i + 3] + c[i + 3];
    }
}

/* The memory of a copy, divided into as many arrays as the kernel has. */
struct loop {
    enum profile_kernel kernel;
    copy_function *copy; /* the best one */
    unsigned char *start;
    size_t arrays, bytes; /* of each */
};

static struct loop loop_of(enum profile_kernel kernel, unsigned char *start, size_t copied_bytes)
{
    static const size_t arrays[PROFILE_KERNELS] = {
        [PROFILE_NT_COPY] = 2, [PROFILE_COPY] = 2, [PROFILE_READ] = 1, [PROFILE_TRIAD] = 3};
    const char *name;
    return (struct loop){kernel, best_copy(&name), start, arrays[kernel],
                         2 * copied_bytes / arrays[kernel] & ~(size_t)4095};
}

static void run_loop(const struct loop *loop, size_t at, size_t bytes)
{
    unsigned char *first = loop->start + at, *second = first + loop->bytes;
    switch (loop->kernel) {
    case PROFILE_COPY:
        copy_ordinary(second, first, bytes);
        break;
    case PROFILE_READ:
        read_only(first, bytes);
        break;
    case PROFILE_TRIAD:
        triad(second + loop->bytes, first, second, bytes);
        break;
    default:
        loop->copy(second, first, bytes);
    }
}

/* A figure is of many short bursts, and the upper quartile of their rates: a whole pass takes as
 * long as a time slice of the kernel, and on a busy machine says how much of the PU was had, not
 * what the memory gives (2.5 to 7.2 GB/s for 36.4, where bursts gave 36.9 to 40.1). */

/* The next piece of the arrays, up to `most` bytes of each, and round to their start; how many it
 * were, and how fast. */
static size_t run_next(struct native_worker *worker, const struct loop *loop, size_t most,
                       double *bytes_per_s)
{
    const size_t at = worker->copied_to < loop->bytes ? worker->copied_to : 0,
                 left = loop->bytes - at, bytes = left < most ? left : most;
    uint64_t begin = profile_now_ns();
    run_loop(loop, at, bytes);
    uint64_t taken = profile_now_ns() - begin;
    *bytes_per_s = (double)(loop->arrays * bytes) / ((double)(taken ? taken : 1) * 1e-9);
    worker->copied_to = at + bytes;
    return bytes;
}

/* Frequency and TLB, untimed: what lies before the first bursts, or they would find themselves in
 * the caches, and a copy that is cut short has no others. */
static void warm_loop(const struct native_worker *worker, const struct loop *loop, size_t pass)
{
    const size_t bytes = pass / 8 & ~(size_t)4095,
                 end = worker->copied_to < bytes || worker->copied_to > loop->bytes
                           ? loop->bytes
                           : worker->copied_to;
    run_loop(loop, end - bytes, bytes);
}

static size_t burst_of(const struct machine_copy *what)
{
    return what->burst > 0 ? what->burst : MACHINE_BURST_BYTES;
}

/* Rates that a figure is made of however late it is: 4 are above the upper quartile. */
static const size_t rates_least = 16;

/* A copy that was expected to take a time slice takes many where others want the PU. */
static bool is_late(const struct native_worker *worker, const struct machine_copy *what,
                    size_t rates)
{
    return what->deadline > 0 && rates >= rates_least &&
           probe_machine_elapsed(worker->native->machine) >= what->deadline;
}

/* Bytes of each array that one pass of the loop goes through. */
static size_t pass_of(const struct machine_copy *what, const struct loop *loop)
{
    const size_t pass = machine_copy_pass(what);
    return pass < loop->bytes ? pass : loop->bytes;
}

/* So many of its own bursts may lie between two of the other one's before that one counts as
 * standing still: cores of another kind are four times as slow, and a time slice is a hundred. */
enum { BURSTS_BETWEEN = 8 };

/* How many bursts a worker has made, and whether its rate was had beside the others'; each has a
 * line of its own. */
struct beat {
    _Alignas(NATIVE_LINE_BYTES) atomic_size_t bursts;
    bool together;
};

/* The rates of a worker's bursts, `made`, and of those that count, `count`. `other`: the other of
 * its pair (NULL: it copies alone), which had made `seen` bursts when this one had `since`. */
struct rates {
    double *of;
    size_t count, made;
    struct beat *own, *other;
    size_t seen, since;
};

static void find_other(const struct native_worker *worker, const struct native_job *job,
                       struct rates *rates)
{
    struct beat *all = job->shared;
    const size_t beside = worker->index ^ 1;
    rates->own = &all[worker->index];
    rates->other = job->count < 2 ? NULL : &all[beside < job->count ? beside : 0];
}

static void beat(const struct rates *rates)
{
    atomic_fetch_add_explicit(&rates->own->bursts, 1, memory_order_relaxed);
}

/* Copies made while the other worker stood still are those of one alone, and do not count. */
static void keep_together(struct rates *rates, bool end)
{
    const size_t seen =
        rates->other ? atomic_load_explicit(&rates->other->bursts, memory_order_relaxed) : 0;
    if (rates->other && (seen != rates->seen || end)) {
        const bool apart = rates->count > rates->since + BURSTS_BETWEEN;
        rates->count = apart ? rates->since : rates->count;
        rates->since = rates->count;
        rates->seen = seen;
    }
}

/* One pass, burst by burst, unless it is late. */
static void run_in_bursts(struct native_worker *worker, const struct machine_copy *what,
                          const struct loop *loop, struct rates *rates)
{
    const size_t pass = pass_of(what, loop), burst = burst_of(what);
    for (size_t done = 0; done < pass && !is_late(worker, what, rates->made);) {
        const size_t some = run_next(worker, loop, burst, &rates->of[rates->count]);
        /* The rest at the end is too short for a rate. */
        const bool whole = some == burst || loop->bytes < burst;
        rates->count += whole;
        rates->made += whole;
        beat(rates);
        keep_together(rates, false);
        done += some;
    }
}

/* Are there as many rates as make a figure? Else there is one, of what it got. */
static bool is_together(struct rates *rates)
{
    keep_together(rates, true);
    const bool together = rates->count == rates->made || rates->count >= rates_least;
    rates->count += rates->count == 0;
    return together;
}

static int run_copy(struct native_worker *worker, struct native_job *job)
{
    const struct machine_copy *what = job->what;
    const size_t bytes = what->bytes & ~(size_t)4095;
    struct native_region *region = &worker->regions[NATIVE_COPY];
    TRY(probe_native_region_place(worker, region, what->numa, what->pages, 2 * bytes));
    const struct loop loop = loop_of(what->kernel, region->start, bytes);
    const size_t most = what->passes * (loop.bytes / burst_of(what) + 1) + 1;
    FREED double *of = calloc(most, sizeof *of);
    struct rates rates = {.of = of};
    double rate;
    TRY(of ? 0 : -ENOMEM);
    TRY(probe_native_meet(worker, job) ? 0 : -EINTR);
    find_other(worker, job, &rates);
    warm_loop(worker, &loop, pass_of(what, &loop));
    for (uint32_t i = 0;
         i < what->passes && !probe_native_cancelled(worker) && !is_late(worker, what, rates.made);
         i++) {
        run_in_bursts(worker, what, &loop, &rates);
    }
    rates.own->together = is_together(&rates);
    probe_native_done(job);
    while (probe_native_others_busy(worker, job)) {
        run_next(worker, &loop, burst_of(what), &rate);
        beat(&rates);
    }
    if (!probe_native_cancelled(worker)) {
        job->result[worker->index] = profile_quantile(rates.of, rates.count, 0.75);
    }
    return probe_native_cancelled(worker) ? -EINTR : 0;
}

int probe_native_copy(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                      size_t count, double *bytes_per_s)
{
    if (what->bytes < 4096) {
        return -EINVAL;
    }
    FREED struct beat *beats = aligned_alloc(_Alignof(struct beat), count * sizeof *beats);
    TRY(beats ? 0 : -ENOMEM);
    memset(beats, 0, count * sizeof *beats);
    struct native_job job = {.run = run_copy, .what = what, .result = bytes_per_s, .shared = beats};
    machine->guard.not_concurrent = false;
    TRY(probe_native_run(machine->state, &job, pus, count));
    for (size_t i = 0; i < count; i++) {
        machine->guard.not_concurrent |= !beats[i].together;
    }
    return 0;
}
