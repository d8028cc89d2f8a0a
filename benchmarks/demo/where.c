/* Work of each thread or rank of both demonstration programs: a triad, and a look at where it ran.
 * The place is read from /proc, not from the library under test. */
#include "benchmarks/demo/where.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Three arrays of 32 MiB: beyond the share of any last-level cache that one thread gets on common
 * machines. */
#define ELEMENTS ((size_t)4 << 20)
#define PASSES 10

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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

double *where_arrays(void)
{
    double *arrays = malloc(3 * ELEMENTS * sizeof *arrays);
    if (!arrays) {
        fputs("where: out of memory\n", stderr);
        exit(1);
    }
    for (size_t i = 0; i < 3 * ELEMENTS; i++) {
        arrays[i] = (double)(i % 7);
    }
    return arrays;
}

struct where where_triad(double *arrays)
{
    struct where seen = {0};
    double *a = arrays, *b = arrays + ELEMENTS, *c = arrays + 2 * ELEMENTS;
    double start = now();
    for (int pass = 0; pass < PASSES; pass++) {
        for (size_t i = 0; i < ELEMENTS; i++) {
            a[i] = b[i] + 0.5 * c[i];
        }
        /* Keeps the compiler from seeing that all passes but the last are in vain. */
        __asm__ volatile("" : : "r"(a) : "memory");
    }
    seen.bytes_per_s = 3.0 * (double)sizeof(double) * (double)ELEMENTS * PASSES / (now() - start);
    seen.cpu = sched_getcpu();
    read_allowed(seen.allowed, sizeof seen.allowed);
    return seen;
}
