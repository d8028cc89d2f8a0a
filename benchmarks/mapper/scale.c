/* How long does it take to map a whole cluster, and how much memory? One line per size and
 * priority; each is measured in a process of its own, so that the peak is its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "benchmarks/mapper/cluster.h"
#include "mapper/map.h"
#include "profile/base/clock.h"

#define THREADS 8     /* of a rank */
#define REPETITIONS 5 /* the fastest counts: the machine is shared */

/* All PUs: single workers, or ranks of `threads` threads as a hybrid program has them, once. */
static int measure(const struct cluster_shape *shape, enum map_priority priority, uint32_t threads)
{
    size_t pus = (size_t)shape->nodes * shape->packages * shape->l3_groups * shape->cores;
    struct servet_profile *profile = bench_cluster_make(shape);
    uint32_t *out = calloc(pus, sizeof *out);
    const struct map_request workers = {.priority = priority, .workers = pus};
    const struct map_domain_request ranks = {
        .priority = priority, .ranks = pus / threads, .threads_each = threads};
    double best = 0, best_cpu = 0;
    for (int i = 0; i < (threads > 1 ? 1 : REPETITIONS); i++) {
        struct servet_error error;
        double start = profile_clock_s(CLOCK_MONOTONIC),
               start_cpu = profile_clock_s(CLOCK_PROCESS_CPUTIME_ID);
        if ((threads > 1 ? map_domains(profile, &ranks, out, &error)
                         : map_workers(profile, &workers, out, NULL, &error)) < 0) {
            fprintf(stderr, "scale: %s\n", error.text);
            return 1;
        }
        double seconds = profile_clock_s(CLOCK_MONOTONIC) - start;
        double cpu = profile_clock_s(CLOCK_PROCESS_CPUTIME_ID) - start_cpu;
        best_cpu = i == 0 || cpu < best_cpu ? cpu : best_cpu;
        best = i == 0 || seconds < best ? seconds : best;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%9zu %7u %-13s %10.4f %10.4f %9.0f %9.1f", pus, shape->nodes,
           priority == MAP_MEMORY ? "memory" : "communication", best, best_cpu,
           best_cpu / (double)pus * 1e9, (double)usage.ru_maxrss / 1024);
    if (threads > 1) {
        printf("  %zu ranks of %u threads", ranks.ranks, threads);
    }
    putchar('\n');
    free(out);
    profile_free(profile);
    return 0;
}

static int measure_apart(const struct cluster_shape *shape, enum map_priority priority,
                         uint32_t threads)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int status = measure(shape, priority, threads);
        fflush(stdout);
        _exit(status);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status;
}

int main(void)
{
    static const uint32_t nodes[] = {25, 250, 2500, 25000};
    int failed = 0;
    printf("All workers on all PUs; nodes of 2 packages x 5 L3 groups x 4 cores, racks of 25 "
           "nodes; one core, best of "
           "%d\n",
           REPETITIONS);
    printf("%9s %7s %-13s %10s %10s %9s %9s\n", "PUs", "nodes", "priority", "wall, s", "CPU, s",
           "ns/worker", "peak MiB");
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        struct cluster_shape shape = {nodes[i], 25, 2, 5, 4};
        failed |= measure_apart(&shape, MAP_MEMORY, 1);
        failed |= measure_apart(&shape, MAP_COMMUNICATION, 1);
        failed |= measure_apart(&shape, MAP_MEMORY, THREADS);
        failed |= measure_apart(&shape, MAP_COMMUNICATION, THREADS);
    }
    return failed != 0;
}
