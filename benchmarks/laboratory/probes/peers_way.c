/* Figures of our loops, measured in the way of well-known programs.
 *
 *     peers_way KERNEL MIB PASSES given|huge PU[,PU...]
 *
 * The loops of probes/native/copy.c over memory as malloc() gives it, or with huge pages asked for,
 * as the probes do. MIB: of all arrays of a PU together. Prints rates of all PUs together in bytes
 * per second, read and written: of the mean pass (likwid-bench), of the median one (lmbench), of
 * the best one (STREAM), and ours, the upper quartile of short bursts. A pass begins at one time on
 * all PUs and lasts until the last of them is done. KERNEL: read, copy, nt_copy, triad; words_read,
 * words_copy: four bytes at a time, as lmbench.
 *
 *     peers_way chase KIB SAMPLES given|huge PU
 *
 * Seconds for a load of a random cycle through every line of the memory, as multichase: of samples
 * of half a second each, after one that does not count, the mean, the median and the best. */
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

/* The loops are static in their file; what is not is the library's. */
#define probe_native_copy bench_copy
#define probe_native_copy_method bench_copy_method
#define probe_native_has_long_vectors bench_has_long_vectors
#include "probes/native/copy.c"
#include "profile/base/cli.h"
#include "profile/base/random.h"
#include "profile/codec/codec.h"

/* -- loops that no probe has -- */

#if defined(__clang__)
#define BY_WORDS __attribute__((noinline))
#define ONE_AT_A_TIME _Pragma("clang loop vectorize(disable) interleave(disable)")
#else
#define BY_WORDS                                                                                   \
    __attribute__((noinline,                                                                       \
                   optimize("no-tree-vectorize", "no-tree-slp-vectorize", "unroll-loops")))
#define ONE_AT_A_TIME
#endif

BY_WORDS static void words_copy(uint32_t *to, const uint32_t *from, size_t count)
{
    ONE_AT_A_TIME
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
    }
}

BY_WORDS static uint32_t words_read(const uint32_t *from, size_t count)
{
    uint32_t sums[4] = {0}; /* or each addition would wait for the one before */
    ONE_AT_A_TIME
    for (size_t i = 0; i + 4 <= count; i += 4) {
        sums[0] += from[i];
        sums[1] += from[i + 1];
        sums[2] += from[i + 2];
        sums[3] += from[i + 3];
    }
    return sums[0] + sums[1] + sums[2] + sums[3];
}

/* -- passes -- */

struct job {
    enum profile_kernel kernel;
    bool by_words, huge;
    size_t bytes; /* of all arrays of a PU */
    uint32_t passes;
    pthread_barrier_t together;
    atomic_bool failed;
};

struct worker {
    struct job *job;
    pthread_t thread;
    uint32_t pu;
    double *seconds; /* of each pass */
    double quartile; /* of the rates of bursts */
};

static void run_pass(const struct job *job, const struct loop *loop, size_t at, size_t bytes)
{
    const void *from = loop->start + at;
    if (!job->by_words) {
        run_loop(loop, at, bytes);
    } else if (job->kernel == PROFILE_READ) {
        uint32_t sum = words_read(from, bytes / sizeof sum);
        __asm__ volatile("" : : "r"(sum)); /* for otherwise it is not needed */
    } else {
        words_copy((void *)(loop->start + loop->bytes + at), from, bytes / sizeof(uint32_t));
    }
}

static double seconds_of(const struct job *job, const struct loop *loop, size_t at, size_t bytes)
{
    uint64_t begin = profile_now_ns();
    run_pass(job, loop, at, bytes);
    return (double)(profile_now_ns() - begin) * 1e-9;
}

/* Memory of a thread that goes to its PU first. */
static int touched(uint32_t pu, size_t bytes, bool huge, unsigned char **out)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(pu, &mask);
    if (sched_setaffinity(0, sizeof mask, &mask) < 0) {
        return -errno;
    }
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return -errno;
    }
    if (huge) {
        madvise(start, bytes, MADV_HUGEPAGE);
    }
    memset(start, 1, bytes);
    *out = start;
    return 0;
}

static int measure(struct worker *worker)
{
    struct job *job = worker->job;
    unsigned char *start = NULL;
    int rc = touched(worker->pu, job->bytes, job->huge, &start);
    const struct loop loop = loop_of(job->kernel, start, job->bytes / 2);
    double *rates = malloc((loop.bytes / MACHINE_BURST_BYTES + 1) * sizeof *rates);
    if (rc < 0 || !rates) {
        job->failed = true;
    }
    pthread_barrier_wait(&job->together);
    for (uint32_t i = 0; i < job->passes && !job->failed; i++) {
        pthread_barrier_wait(&job->together);
        worker->seconds[i] = seconds_of(job, &loop, 0, loop.bytes);
    }
    size_t count = 0;
    for (size_t at = 0; at + MACHINE_BURST_BYTES <= loop.bytes && !job->failed;
         at += MACHINE_BURST_BYTES) {
        rates[count++] = (double)(loop.arrays * MACHINE_BURST_BYTES) /
                         seconds_of(job, &loop, at, MACHINE_BURST_BYTES);
    }
    worker->quartile = count ? profile_quantile(rates, count, 0.75) : 0;
    free(rates);
    return rc;
}

static void *work(void *argument)
{
    measure(argument);
    return NULL;
}

/* -- the chase -- */

enum { LINE = 64, LOADS_BETWEEN_LOOKS = 1 << 14, HUGE_PAGE = 2 << 20 };
static const double sample_s = 0.5;

/* A random cycle through all lines: the first of it; NULL: no memory. */
static void **cycle_of(unsigned char *start, size_t bytes)
{
    const size_t count = bytes / LINE;
    struct random random = {1};
    uint32_t *lines = calloc(count, sizeof *lines);
    for (size_t i = 0; lines && i < count; i++) {
        lines[i] = (uint32_t)i;
    }
    if (lines) {
        random_shuffle(&random, lines, count, sizeof *lines);
    }
    void **first = lines ? (void **)(void *)(start + (size_t)lines[0] * LINE) : NULL;
    for (size_t i = 0; lines && i < count; i++) {
        *(void **)(void *)(start + (size_t)lines[i] * LINE) =
            start + (size_t)lines[(i + 1) % count] * LINE;
    }
    free(lines);
    return first;
}

/* Goes on from `at` for half a second: seconds for a load. */
static double sample(void ***at)
{
    const uint64_t begin = profile_now_ns();
    double seconds = 0;
    size_t loads = 0;
    while (seconds < sample_s) {
        void **next = *at;
        for (size_t i = 0; i < LOADS_BETWEEN_LOOKS; i++) {
            next = *next;
        }
        __asm__ volatile("" : "+r"(next));
        *at = next;
        loads += LOADS_BETWEEN_LOOKS;
        seconds = (double)(profile_now_ns() - begin) * 1e-9;
    }
    return seconds / (double)loads;
}

/* Begins at a huge page, if there are any. */
static int chase(const struct job *job, uint32_t pu)
{
    unsigned char *start = NULL;
    int rc = touched(pu, job->bytes + 2 * HUGE_PAGE, job->huge, &start);
    void **at = rc == 0 ? cycle_of(start + -(uintptr_t)start % HUGE_PAGE, job->bytes) : NULL;
    double *samples = malloc(job->passes * sizeof *samples), all = 0, least = INFINITY;
    if (!at || !samples) {
        cli_fail("expected a PU to run on, and memory");
    }
    sample(&at);
    for (uint32_t i = 0; i < job->passes; i++) {
        samples[i] = sample(&at);
        all += samples[i];
        least = fmin(least, samples[i]);
    }
    printf("mean %.6g median %.6g best %.6g\n", all / job->passes,
           profile_median_value(samples, job->passes), least);
    free(samples);
    return cli_finish(CLI_OK);
}

/* -- rates -- */

static void print(const struct job *job, const struct worker *workers, size_t count)
{
    const struct loop loop = loop_of(job->kernel, NULL, job->bytes / 2);
    const double bytes = (double)(count * loop.arrays * loop.bytes);
    double *longest = workers[0].seconds, all = 0, least = INFINITY, quartiles = 0;
    for (uint32_t i = 0; i < job->passes; i++) {
        for (size_t k = 0; k < count; k++) {
            longest[i] = fmax(longest[i], workers[k].seconds[i]);
        }
        all += longest[i];
        least = fmin(least, longest[i]);
    }
    for (size_t k = 0; k < count; k++) {
        quartiles += workers[k].quartile;
    }
    printf("mean %.6g median %.6g best %.6g bursts %.6g\n", bytes * job->passes / all,
           bytes / profile_median_value(longest, job->passes), bytes / least, quartiles);
}

static int run(struct job *job, const struct profile_set *pus)
{
    struct worker *workers = calloc(pus->count, sizeof *workers);
    double *seconds = calloc(pus->count * job->passes, sizeof *seconds);
    if (!workers || !seconds ||
        pthread_barrier_init(&job->together, NULL, (unsigned)pus->count) != 0) {
        cli_fail("not enough memory");
    }
    for (size_t i = 0; i < pus->count; i++) {
        workers[i] = (struct worker){.job = job, .pu = pus->ids[i], .seconds = seconds};
        workers[i].seconds += i * job->passes;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            cli_fail("cannot start a thread");
        }
    }
    for (size_t i = 0; i < pus->count; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    if (job->failed) {
        cli_fail("expected PUs to run on, and memory");
    }
    print(job, workers, pus->count);
    free(seconds);
    free(workers);
    return cli_finish(CLI_OK);
}

static bool kernel_of(const char *word, struct job *job)
{
    static const char prefix[] = "words_";
    job->by_words = strncmp(word, prefix, strlen(prefix)) == 0;
    word += job->by_words ? strlen(prefix) : 0;
    for (size_t i = 0; profile_kernel_names[i]; i++) {
        if (strcmp(word, profile_kernel_names[i]) == 0) {
            job->kernel = (enum profile_kernel)i;
            return !job->by_words || i == PROFILE_READ || i == PROFILE_COPY;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    struct job job = {0};
    const bool chases = argc > 1 && strcmp(argv[1], "chase") == 0;
    if (argc != 6 || !(chases || kernel_of(argv[1], &job)) ||
        (strcmp(argv[4], "huge") != 0 && strcmp(argv[4], "given") != 0)) {
        cli_usage("expected KERNEL MIB PASSES given|huge PU[,PU...], such as triad 480 10 given 0, "
                  "or chase KIB SAMPLES given|huge PU");
    }
    job.bytes = chases ? (size_t)cli_integer("KIB", argv[2], 1, INT_MAX) << 10
                       : (size_t)cli_integer("MIB", argv[2], 3, INT_MAX) << 20;
    job.passes = (uint32_t)cli_integer("PASSES", argv[3], 1, 10000);
    job.huge = argv[4][0] == 'h';
    struct profile_set pus = cli_set("PU", argv[5]);
    int status = chases ? chase(&job, pus.ids[0]) : run(&job, &pus);
    profile_set_free(&pus);
    return status;
}
