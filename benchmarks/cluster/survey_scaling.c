/* How many measurements, and how much time, a cluster's network takes: a simulated fat tree of 2 to
 * 10,000 nodes (24 nodes a switch, 16 switches a pod, 2 % noise, 3 % outliers), any number of pairs
 * at the same time and one at a time. And of the largest: how large its profile is, and how long a
 * process takes to load it.
 *
 *     survey_scaling [FILE]          keeps the profile of the largest in FILE
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/cluster/fat_tree.h"
#include "probes/network/network.h"
#include "probes/pairs/pairs.h"
#include "profile/base/clock.h"
#include "profile/base/statistics.h"
#include "profile/query.h"

enum { LOADS = 101 };

static void give_up(const char *what)
{
    fprintf(stderr, "survey_scaling: %s\n", what);
    exit(1);
}

/* Of random pairs: how many are in another layer than they are. */
static double share_wrong(const struct fat_tree *tree, const struct profile_communication *network)
{
    struct random random = {3};
    size_t tries = 20000, wrong = 0, asked = 0;
    for (size_t i = 0; i < tries; i++) {
        uint32_t a = (uint32_t)random_below(&random, tree->nodes),
                 b = (uint32_t)random_below(&random, tree->nodes);
        size_t layer = SIZE_MAX;
        if (a != b) {
            const struct profile_layer *found = profile_layer_of(network, a, b, &layer);
            asked++;
            wrong +=
                !found ||
                fabs(found->seconds / tree->seconds[bench_fat_tree_layer(tree, a, b)] - 1) > 0.1;
        }
    }
    return asked ? (double)wrong / (double)asked : 0;
}

static void load_it(const struct profile_communication *network, uint32_t nodes, const char *path)
{
    struct servet_profile *profile, *loaded;
    struct servet_error error;
    double times[LOADS];
    if (profile_from_hwloc("package:2 l3:1 core:32 pu:1", &profile, &error) < 0) {
        give_up(error.text);
    }
    free(profile->nodes[0].names);
    if (asprintf(&profile->nodes[0].names, "node[00001-%05u]", nodes) < 0) {
        give_up("not enough memory");
    }
    profile->nodes[0].count = nodes;
    profile->network = *network;
    profile->measured = true;
    if (profile_save(profile, path, &error) < 0) {
        give_up(error.text);
    }
    FILE *file = fopen(path, "r");
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    fclose(file);
    for (int i = 0; i < LOADS; i++) {
        double start = profile_now_s();
        if (profile_load_node(path, &loaded, &error) < 0) {
            give_up(error.text);
        }
        if (!profile_class_of_host(loaded, "node07777")) {
            give_up("node07777 is not in the profile");
        }
        times[i] = profile_now_s() - start;
        profile_free(loaded);
    }
    profile_sort(times, LOADS);
    printf("\nprofile of %u nodes: %ld bytes; loaded and asked for one node in %.2f ms (median of "
           "%d, least %.2f)\n",
           nodes, bytes, times[LOADS / 2] * 1e3, LOADS, times[0] * 1e3);
    profile->network = (struct profile_communication){0};
    profile_free(profile);
}

static void survey_nodes(uint32_t nodes, const char *path)
{
    double seconds[2];
    struct survey_result result = {0};
    size_t measurements = 0, rounds = 0;
    double wrong = 0;
    for (int alone = 0; alone < 2; alone++) {
        struct fat_tree tree = {.nodes = nodes,
                                .per_switch = 24,
                                .per_pod = 16,
                                .seconds = {8e-6, 12e-6, 19e-6}, /* 32 KiB over a fast network */
                                .noise = 0.02,
                                .outliers = 0.03,
                                .most_pairs = alone ? 1 : 0,
                                .slow = UINT32_MAX,
                                .random = {nodes}};
        struct machine machine;
        struct survey survey;
        const struct survey_options options = {32768, false, 0};
        if (bench_fat_tree_open(&tree, &machine) < 0) {
            give_up("not enough memory");
        }
        struct probe probe = {.machine = &machine, .seed = 1};
        const struct survey_layout layout = bench_fat_tree_layout(&tree);
        probe_survey_open(&survey, &probe, &layout, &options);
        if (probe_survey_run(&survey, &result) < 0) {
            give_up("the survey failed");
        }
        seconds[alone] = tree.elapsed_s;
        measurements = alone ? measurements : survey.measurements;
        rounds = alone ? rounds : survey.rounds;
        wrong = fmax(wrong, share_wrong(&tree, &result.network));
        probe_survey_close(&survey);
        bench_fat_tree_close(&tree, &machine);
        if (!alone) {
            probe_message_free(&result.network);
        }
    }
    printf("| %u | %zu | %zu | %zu | %.1f | %zu | %.3f | %.2f | %zu | %.2f %% |\n", nodes,
           result.all_pairs, result.measured_pairs, measurements,
           (double)measurements / ((double)nodes * fmax(1, log2((double)nodes))), rounds,
           seconds[0], seconds[1], result.network.layer_count, 100 * wrong);
    if (path) {
        load_it(&result.network, nodes, path);
    }
    probe_message_free(&result.network);
}

int main(int argc, char **argv)
{
    const uint32_t sizes[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 10000};
    const size_t count = sizeof sizes / sizeof *sizes;
    printf("| nodes | pairs | pairs measured | measurements | per n log2 n | exchanges | s, "
           "together | s, one at a time "
           "| layers | wrong |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    char path[] = "/tmp/survey_scaling.XXXXXX";
    int fd = argc > 1 ? -1 : mkstemp(path);
    for (size_t i = 0; i < count; i++) {
        survey_nodes(sizes[i], i + 1 < count ? NULL : argc > 1 ? argv[1] : path);
    }
    if (fd >= 0) {
        unlink(path);
        close(fd);
    }
    return 0;
}
