/* Two ordinary programs, where_omp and where_mpi, that know nothing of Servet: each thread or rank
 * runs a triad over arrays of its own, ranks pass a message round their ring, then who ran where.
 * They are what ./quickstart puts behind servet-pin. The place is read from /proc, not from the
 * library under test. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "benchmarks/kernels/par.h"
#include "profile/base/clock.h"

/* Three arrays of 32 MiB: beyond the share of any last-level cache that one thread gets on common
 * machines. */
#define ELEMENTS ((size_t)4 << 20)
enum { PASSES = 10, ROUNDS = 1000 };

struct where {
    char allowed[32];   /* Cpus_allowed_list of the thread */
    int cpu;            /* where it ran last */
    double bytes_per_s; /* read + written */
};

static void *needed(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fputs("where: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static void read_allowed(char *out, size_t size)
{
    char line[256];
    FILE *status = fopen("/proc/thread-self/status", "r");
    snprintf(out, size, "?");
    while (status && fgets(line, sizeof line, status)) {
        if (sscanf(line, "Cpus_allowed_list: %31s", out) == 1) {
            break;
        }
    }
    if (status) {
        fclose(status);
    }
}

/* The arrays are touched by the caller, so that they lie in its memory. */
static struct where triad(void)
{
    struct where seen = {0};
    double *a = needed(3 * ELEMENTS, sizeof *a), *b = a + ELEMENTS, *c = b + ELEMENTS;
    for (size_t i = 0; i < 3 * ELEMENTS; i++) {
        a[i] = (double)(i % 7);
    }
    double start = profile_now_s();
    for (int pass = 0; pass < PASSES; pass++) {
        for (size_t i = 0; i < ELEMENTS; i++) {
            a[i] = b[i] + 0.5 * c[i];
        }
        /* Keeps the compiler from seeing that all passes but the last are in vain. */
        __asm__ volatile("" : : "r"(a) : "memory");
    }
    seen.bytes_per_s =
        3.0 * (double)sizeof *a * (double)ELEMENTS * PASSES / (profile_now_s() - start);
    seen.cpu = sched_getcpu();
    read_allowed(seen.allowed, sizeof seen.allowed);
    free(a);
    return seen;
}

/* Seconds per hop of an 8-byte message that goes round the ring. */
static double ring(void)
{
    double token = 0, next;
    par_barrier();
    double start = profile_now_s();
    for (int i = 0; i < ROUNDS; i++) {
        par_pass(1, &token, &next, sizeof token);
    }
    return par_maximum(profile_now_s() - start) / ROUNDS;
}

static void print(const struct where *all, size_t count, double hop)
{
#ifdef _OPENMP
    const char *worker = "thread";
#else
    const char *worker = "rank";
#endif
    printf("%-8s %-10s %-5s %s\n", worker, "allowed", "ran", "triad");
    for (size_t i = 0; i < count; i++) {
        printf("%-8zu %-10s %-5d %.1f GB/s\n", i, all[i].allowed, all[i].cpu,
               all[i].bytes_per_s / 1e9);
    }
#ifdef _OPENMP
    (void)hop;
    printf("omp_get_num_procs() = %d\n", omp_get_num_procs());
#else
    printf("ring of 8-byte messages: %.2f us a hop\n", hop * 1e6);
#endif
}

int main(int argc, char **argv)
{
    par_start(&argc, &argv);
    const size_t threads = par_threads(), ranks = par_size(), count = ranks * threads;
    struct where *all = needed(count, sizeof *all), *mine = all + par_rank() * threads;
    size_t *parts = needed(ranks + 1, sizeof *parts);
    for (size_t rank = 0; rank <= ranks; rank++) {
        parts[rank] = rank * threads * sizeof *all;
    }
    par_barrier();
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < threads; i++) {
        mine[i] = triad();
    }
    double hop = ring();
    par_gather_parts(all, parts);
    if (par_rank() == 0) {
        print(all, count, hop);
    }
    free(parts);
    free(all);
    par_finish();
    return 0;
}
