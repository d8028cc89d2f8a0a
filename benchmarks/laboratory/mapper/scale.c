/* How long does it take to map a whole cluster, and how much memory? One line per size and
 * priority; each is measured in a process of its own, so that the peak is its own. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mapper/map.h"
#include "profile/base/clock.h"

#define THREADS 8     /* of a rank */
#define REPETITIONS 5 /* the fastest counts: the machine is shared */

/* One-way latencies of the size of those on the clusters of the 2010 and 2012 papers. */
static const double rack_seconds = 2.0e-6, network_seconds = 3.5e-6;
enum { RACK = 25 }; /* nodes */

static void *needed(void *memory)
{
    if (!memory) {
        fputs("scale: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* A layer of the network: nodes in groups of `size`. */
static struct profile_layer layer_of(double seconds, uint32_t nodes, uint32_t size)
{
    struct profile_relation members = {.group_count = (nodes + size - 1) / size};
    members.groups = needed(calloc(members.group_count, sizeof *members.groups));
    for (size_t i = 0; i < members.group_count; i++) {
        struct profile_set *group = &members.groups[i];
        group->ids = needed(malloc(size * sizeof *group->ids));
        for (uint32_t node = (uint32_t)i * size; node < nodes && group->count < size; node++) {
            group->ids[group->count++] = node;
        }
    }
    return (struct profile_layer){.seconds = seconds, .members = members};
}

/* Nodes of 2 packages of 5 L3 groups of 4 cores, in racks. */
static struct servet_profile *cluster_of(uint32_t nodes)
{
    struct servet_profile *cluster;
    struct servet_error error;
    if (profile_from_hwloc("package:2 l3:5 core:4 pu:1", &cluster, &error) < 0) {
        fprintf(stderr, "scale: %s\n", error.text);
        exit(1);
    }
    cluster->nodes[0].count = nodes;
    cluster->network.message_bytes = 8192;
    cluster->network.layers = needed(calloc(2, sizeof *cluster->network.layers));
    cluster->network.layer_count = 2;
    cluster->network.layers[0] = layer_of(rack_seconds, nodes, RACK);
    cluster->network.layers[1] = layer_of(network_seconds, nodes, nodes);
    return cluster;
}

/* All PUs: single workers, or ranks of `threads` threads as a hybrid program has them, once. */
static int measure(uint32_t nodes, enum map_priority priority, uint32_t threads)
{
    struct servet_profile *profile = cluster_of(nodes);
    size_t pus = nodes * profile->classes[0].pus.count;
    uint32_t *out = needed(calloc(pus, sizeof *out));
    const struct map_request workers = {.priority = priority, .workers = pus};
    const struct map_request ranks = {
        .priority = priority, .workers = pus / threads, .threads_each = threads};
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
    printf("%9zu %7u %-13s %10.4f %10.4f %9.0f %9.1f", pus, nodes,
           priority == MAP_MEMORY ? "memory" : "communication", best, best_cpu,
           best_cpu / (double)pus * 1e9, (double)usage.ru_maxrss / 1024);
    if (threads > 1) {
        printf("  %zu ranks of %u threads", ranks.workers, threads);
    }
    putchar('\n');
    free(out);
    profile_free(profile);
    return 0;
}

static int measure_apart(uint32_t nodes, enum map_priority priority, uint32_t threads)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int status = measure(nodes, priority, threads);
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
        failed |= measure_apart(nodes[i], MAP_MEMORY, 1);
        failed |= measure_apart(nodes[i], MAP_COMMUNICATION, 1);
        failed |= measure_apart(nodes[i], MAP_MEMORY, THREADS);
        failed |= measure_apart(nodes[i], MAP_COMMUNICATION, THREADS);
    }
    return failed != 0;
}
