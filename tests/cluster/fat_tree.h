/* A simulated network of nodes as a machine: switches of `per_switch` nodes, pods of `per_pod`
 * switches, and pods. */
#pragma once

#include "probes/machine.h"
#include "probes/network/network.h"
#include "profile/base/random.h"

struct fat_tree {
    uint32_t nodes, per_switch, per_pod;
    double seconds[3]; /* one way: same switch, same pod, else */
    double noise;      /* relative deviation of a measurement */
    double outliers;   /* share of measurements that take up to three times as long */
    /* that do not disturb each other; more take twice as long. 0: any number */
    uint32_t most_pairs;
    uint32_t slow; /* a node whose messages take twice as long; UINT32_MAX: none */
    struct random random;
    double elapsed_s;      /* simulated */
    uint32_t *first, *pus; /* the layout: one rank on each node */
};

int bench_fat_tree_open(struct fat_tree *tree, struct machine *machine);
void bench_fat_tree_close(struct fat_tree *tree, struct machine *machine);
struct survey_layout bench_fat_tree_layout(const struct fat_tree *tree);

/* 0: same switch, 1: same pod, 2: else. */
size_t bench_fat_tree_layer(const struct fat_tree *tree, uint32_t a, uint32_t b);
