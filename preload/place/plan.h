/* The plan of this process: the PUs that it may use, in the order in which its threads get them.
 *
 * It is the mapper's answer for the profile of this machine. A process by itself has every PU that
 * it may use, in the order of `servet-map -n N`, and last those that other jobs hold or strangers
 * keep busy. The ranks of one node deal the PUs out among themselves: with OMP_NUM_THREADS = T > 1
 * each rank has its region of T PUs (map_domains); otherwise rank r of L has each L-th PU of the
 * order from the r-th on, so that the first L are the ranks' main threads as `servet-map -n L`
 * orders them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/node/registry.h"
#include "preload/place/launcher.h"
#include "preload/place/memory.h"
#include "preload/place/options.h"
#include "profile/base/mask.h"
#include "profile/model.h"

#define PIN_SOURCE_SIZE 256u

/* One PU of the process. The memory domain is a number of the profile; the rest is the pools'. */
struct pin_place {
    uint32_t pu, domain;
    unsigned threads; /* of this process: 0 or 1 */
    unsigned pool;    /* theirs; PIN_POOLS: the main thread's */
    bool ours;        /* the registry knows that this job has it */
    bool avoided;     /* another job has it, or other programs kept it busy */
};

struct pin_plan {
    uint32_t *pus; /* in order; the first is the main thread's where that is a worker */
    size_t count;  /* at least 1 */
    struct pin_place *places;
    /* PUs that the process, and all ranks of its job on this node, are sure to use */
    struct profile_mask held;
    struct profile_mask mains;    /* their main threads, as far as this process places them */
    struct profile_mask avoid;    /* other jobs hold these, or strangers keep them busy */
    struct profile_mask ours;     /* the registry knows that this process has them */
    struct pin_memory memory;     /* where its pages go */
    struct profile_mask own;      /* those of `pus` that OpenMP runtimes see as theirs */
    char source[PIN_SOURCE_SIZE]; /* the last, which stays while plans are tried */
};

/* The request for a plan. */
struct pin_plan_request {
    const struct pin_options *options;
    const struct pin_launcher *launcher;
    /* Threads of a team or of each rank, the main thread included; 0: they come one by one, any
     * number. */
    uint32_t threads;
    bool is_team;  /* of an OpenMP team or of a rank, which is placed beside strangers too */
    bool exported; /* the order is that of the places in the environment */
    const struct profile_mask *allowed;
    struct pin_registry *registry;
};

/* First number of OMP_NUM_THREADS ("4,2" has one for each level of nesting), 0 without one. */
uint32_t pin_plan_threads(void);

/* Cores that have some of the PUs, and the PUs with all others of their cores. */
uint32_t pin_plan_cores(const struct profile_class *node_class, const struct profile_set *pus);
void pin_plan_add_cores(const struct profile_class *node_class, const uint32_t *pus, size_t count,
                        struct profile_mask *out);

/* Programs of other containers are not seen, and may be anywhere but on the PUs of a cpuset that is
 * this one's. */
bool pin_plan_meets_unseen(const struct pin_options *options, const struct pin_registry *registry,
                           const struct profile_mask *allowed);

/* The profile that the options name, or that is found, if it is of these PUs of this machine; else
 * the topology. `source`: the file, or that it is the topology. A profile that cannot be used is
 * one line on stderr, said by the first of a node's ranks. */
int pin_profile_read(const struct pin_options *options, const struct pin_launcher *launcher,
                     const struct profile_set *allowed, struct servet_profile **out,
                     char source[PIN_SOURCE_SIZE]);

/* Makes the plan around the PUs that other jobs hold, and takes from the registry those that it is
 * sure to use. A profile that cannot be used is one line on stderr, said by the first of a node's
 * ranks, and the plan is made from the declared topology. 0; -EXDEV (not said): it would meet
 * unseen ones; -errno (said on stderr). */
int pin_plan_make(const struct pin_plan_request *request, struct pin_plan *out);

void pin_plan_free(struct pin_plan *plan);
