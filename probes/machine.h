/* The seam between what is inferred and what is measured.
 *
 * A probe never reads a clock, pins a thread or allocates a working set itself: it asks a *machine* for the time of one of three things,
 * so that every inference is tested against machines that we do not have, with the truth known. Backends:
 *   native     pinned threads of this process, memory placed with libnuma
 *   mpi        one rank per PU (the message exchange of a node, and clusters)
 *   simulated  a machine described in a JSON file
 *
 * All operations: 0 and every output set, or -errno and none (-ENOTSUP: this backend cannot; -EPERM: not allowed to pin
 * to one of the PUs; -ENODEV: a PU went offline; -ENOMEM: working set not to be had). PUs are OS indices.
 */
#ifndef SERVET_PROBES_MACHINE_H
#define SERVET_PROBES_MACHINE_H

#include "model.h"

enum machine_order {
    MACHINE_CHASE,  /* dependent loads along one random cycle through the whole working set */
    MACHINE_STRIDE, /* mcalibrator's: independent loads, `stride_bytes` apart (2010 paper, Figure 1) */
};

struct machine_traversal {
    size_t bytes;        /* working set of each PU */
    size_t stride_bytes; /* distance of two loads (order STRIDE) or size of one node (order CHASE) */
    enum machine_order order;
    uint32_t warm_passes; /* passes over the whole set before the clock starts */
    uint64_t seed;        /* of the random cycle */
};

struct machine_copy {
    size_t bytes;    /* of the source and of the target, each, per PU */
    int32_t numa;    /* OS index of the NUMA node to place both on; < 0: local to each PU */
};

struct machine_exchange {
    size_t bytes;         /* message size */
    uint32_t round_trips; /* per sample */
};

struct machine;

struct machine_ops {
    /* Each PU of `pus` traverses its own working set, all at the same time. seconds_per_access[i] for pus[i]. */
    int (*traverse)(struct machine *machine, const struct machine_traversal *what, const uint32_t *pus, size_t count,
                    double *seconds_per_access);
    /* Each PU copies its own source to its own target, all at the same time. bytes_per_s[i], read + written. */
    int (*copy)(struct machine *machine, const struct machine_copy *what, const uint32_t *pus, size_t count,
                double *bytes_per_s);
    /* Every pair exchanges messages, all pairs at the same time; pairs are disjoint. seconds[i]: one way. */
    int (*exchange)(struct machine *machine, const struct machine_exchange *what, const struct profile_pair *pairs,
                    size_t count, double *seconds);
    void (*close)(struct machine *machine);
};

struct machine {
    const struct machine_ops *ops;
    /* What is declared of it (a topology profile): PU set, declared caches. Never used as a measurement. Owned. */
    struct servet_profile *declared;
    void *state;
};

#endif
