/* The program that the benchmarks run:
 *   child nothing | first | loop N by | burst N by | million N | latency N by | crowd A B [NUMBER]
 *
 *   nothing   returns at once
 *   first     prints the nanoseconds of the first pthread_create and join
 *   loop      creates and joins N threads one after the other, prints nanoseconds for each
 *   burst     8 threads create 8 each, N times, prints nanoseconds for each thread
 *   million   as loop, and prints the growth of the resident memory in kB and where the last thread
 *             ran
 *   latency   prints the microseconds from pthread_create() to the thread's first instruction while
 *             its creator goes on computing: median, 90th percentile and longest of N
 *   crowd     says that it is there, waits until the other end of pipe A is closed, prints what
 *             `first` does, and stays until the other end of pipe B is closed. With its NUMBER it
 *             pins main and thread by hand, to the PUs in turn, main first and the thread before it
 *             begins
 *
 * `by` is "hand" (the thread calls sched_setaffinity for PU 1 itself, as the fastest program that
 * knows where it belongs would, or has it by its attribute for `latency`; main does for PU 0) or
 * any other word: not at all. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/clock.h"
#include "profile/base/statistics.h"

enum { EIGHT = 8 }; /* creators, each of as many threads */

static bool by_hand;
static atomic_int next_pu;
static int pus[2];

static double now_ns(void)
{
    return (double)profile_now_ns();
}

static void pin(int pu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)pu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void *brief(void *unused)
{
    if (by_hand) {
        pin(pus[1]);
    }
    return unused;
}

static void *brief_in_turn(void *unused)
{
    if (by_hand) {
        pin(pus[next_pu++ % 2]);
    }
    return unused;
}

/* On that PU from its first instruction on; -1: wherever the kernel, or the shim, places it. */
static pthread_t create(void *(*start)(void *), int pu)
{
    pthread_t thread;
    pthread_attr_t attributes;
    cpu_set_t set;
    if (pu >= 0) {
        CPU_ZERO(&set);
        CPU_SET((size_t)pu, &set);
        if (pthread_attr_init(&attributes) != 0 ||
            pthread_attr_setaffinity_np(&attributes, sizeof set, &set) != 0) {
            exit(1);
        }
    }
    if (pthread_create(&thread, pu >= 0 ? &attributes : NULL, start, NULL) != 0) {
        exit(1);
    }
    return thread;
}

static void one(void *(*start)(void *))
{
    pthread_join(create(start, -1), NULL);
}

static void eight(void *(*start)(void *))
{
    pthread_t thread[EIGHT];
    for (int i = 0; i < EIGHT; i++) {
        thread[i] = create(start, -1);
    }
    for (int i = 0; i < EIGHT; i++) {
        pthread_join(thread[i], NULL);
    }
}

static void *creator(void *unused)
{
    eight(brief_in_turn);
    return unused;
}

static long resident_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "VmRSS: %ld", &kb);
    }
    if (file) {
        fclose(file);
    }
    return kb;
}

static void find_pus(void)
{
    cpu_set_t set;
    int count = 0;
    sched_getaffinity(0, sizeof set, &set);
    for (int pu = 0; pu < CPU_SETSIZE && count < 2; pu++) {
        if (CPU_ISSET((size_t)pu, &set)) {
            pus[count++] = pu;
        }
    }
    if (count == 1) {
        pus[1] = pus[0];
    }
}

static void measure_loop(long count)
{
    one(brief);
    double start = now_ns();
    for (long i = 0; i < count; i++) {
        one(brief);
    }
    printf("%.0f\n", (now_ns() - start) / (double)count);
}

static void measure_burst(long count)
{
    eight(creator);
    double start = now_ns();
    for (long i = 0; i < count; i++) {
        eight(creator);
    }
    printf("%.0f\n", (now_ns() - start) / (double)(count * (EIGHT * EIGHT + EIGHT)));
}

static atomic_int started;
static double started_ns;

static void *note_start(void *unused)
{
    started_ns = now_ns();
    atomic_store(&started, 1);
    return unused;
}

static void measure_latency(long count)
{
    double *took_us = calloc((size_t)count, sizeof *took_us);
    for (long i = -1; took_us && i < count; i++) { /* the first is not counted */
        atomic_store(&started, 0);
        double start = now_ns();
        pthread_t thread = create(note_start, by_hand ? pus[1] : -1);
        while (!atomic_load(&started)) {
        }
        if (i >= 0) {
            took_us[i] = (started_ns - start) / 1000;
        }
        pthread_join(thread, NULL);
    }
    if (took_us) {
        printf("median %.0f p90 %.0f max %.0f us\n", profile_quantile(took_us, (size_t)count, 0.5),
               profile_quantile(took_us, (size_t)count, 0.9),
               profile_quantile(took_us, (size_t)count, 1));
    }
    free(took_us);
}

static void measure_million(long count)
{
    for (int i = 0; i < 1000; i++) {
        one(brief);
    }
    long before = resident_kb();
    for (long i = 0; i < count; i++) {
        one(brief);
    }
    printf("%ld\n", resident_kb() - before);
}

static void wait_for_end(int pipe)
{
    char byte;
    while (read(pipe, &byte, 1) > 0) {
        ;
    }
}

/* `number` -1: the kernel, or the shim, places. */
static void measure_crowd(int go, int end, int number)
{
    printf("here\n");
    fflush(stdout);
    wait_for_end(go);
    double start = now_ns();
    if (number >= 0) {
        pin(pus[number % 2]);
    }
    pthread_join(create(brief, number < 0 ? -1 : pus[(number + 1) % 2]), NULL);
    printf("%.0f\n", now_ns() - start);
    fflush(stdout);
    wait_for_end(end);
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "nothing") == 0) {
        return 0;
    }
    long count = argc > 2 ? atol(argv[2]) : 1;
    by_hand = argc > 3 && strcmp(argv[3], "hand") == 0;
    find_pus();
    if (by_hand) {
        pin(pus[0]);
    }
    double start = now_ns();
    if (strcmp(argv[1], "first") == 0) {
        one(brief);
        printf("%.0f\n", now_ns() - start);
    } else if (strcmp(argv[1], "crowd") == 0 && argc > 3) {
        measure_crowd((int)count, atoi(argv[3]), argc > 4 ? atoi(argv[4]) : -1);
    } else if (strcmp(argv[1], "loop") == 0) {
        measure_loop(count);
    } else if (strcmp(argv[1], "burst") == 0) {
        measure_burst(count);
    } else if (strcmp(argv[1], "latency") == 0) {
        measure_latency(count);
    } else {
        measure_million(count);
    }
    return 0;
}
