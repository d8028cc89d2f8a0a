/* The truth that a test in the guest checks the shim against: the kernel's own words on the
 * machine, and the answers of servet-map. Anything that cannot be read fails the test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/preload/child.h"

/* Where a CPU is, by /sys. `core` is the lowest CPU of its core. */
struct truth_place {
    uint32_t core, package, node;
};
struct truth_place truth_place_of(uint32_t cpu);

/* Most workers of one test. */
#define TRUTH_WORKERS 64

/* The PUs of every worker in worker order (of rank 0's threads, then rank 1's …), as `servet-map
 * ARGUMENTS` answers. */
struct truth_map {
    uint32_t pus[TRUTH_WORKERS];
    size_t count;
};
void truth_ask_map(struct truth_map *out, const char *const *arguments);

/* Fails unless the `ranks` x `threads` workers that `child` reported each have exactly the one PU
 * that `map` says. */
void truth_expect(const struct run *of, const struct truth_map *map, size_t ranks, size_t threads);

/* How many different cores / NUMA nodes pus[0 … count) are on. */
size_t truth_cores(const uint32_t *pus, size_t count);
size_t truth_nodes(const uint32_t *pus, size_t count);

/* Writes one word to a file of the kernel. */
void truth_write(const char *path, const char *word);
