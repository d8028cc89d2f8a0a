/* Where the pages of a process go (SERVET_MEMBIND).
 *
 *   none         (and not set) nothing: the kernel's default, first touch on the toucher's node
 *   local        the same said explicitly, and pages touched before the threads had places move to
 *                the plan's nodes
 *   interleave   pages are dealt out over the plan's nodes
 *   weighted     the same, in proportion to the nodes' bandwidths
 *   fast         pages come from the fastest tier of memory (profile/tiers.h), from its nodes next
 *   capacity     to the plan's PUs; or from the largest of the other tiers. Where that is full,
 *                from other nodes, so that nothing ends for want of it.
 *
 * A policy belongs to the thread that sets it and is inherited by the threads it makes; the caller
 * is therefore the main thread in MPI_Init, or whoever makes the first worker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/place/options.h"
#include "profile/base/mask.h"
#include "profile/model.h"

/* The kernel's modes that headers older than it lack. */
enum { PIN_PREFERRED_MANY = 5, PIN_WEIGHTED_INTERLEAVE = 6 };

struct pin_memory {
    int mode;                  /* of set_mempolicy(2); MPOL_DEFAULT: none is set */
    bool no_tier;              /* a tier is asked for, and all memory is alike */
    struct profile_mask nodes; /* by the kernel's numbers */
    char text[48];             /* the same: "2-3" */
    const char *instead;       /* why it is not the mode that was asked for; NULL: it is */
    uint64_t share_bytes;      /* each rank's part of the tier that is asked for; 0: none is */
};

struct pin_memory_request {
    const struct profile_class *node_class;
    const struct profile_mask *own; /* the PUs of the plan */
    uint32_t ranks;                 /* of the job on this node; 0: no launcher tells */
    const char *root;               /* of the kernel's weights in /sys; NULL: this system's */
};

/* Why there is no such tier. */
#define PIN_MEMORY_ALIKE                                                                           \
    "the memory of all NUMA nodes is alike; expected local, interleave, weighted or none"

/* The mode and the nodes. 0, -ENOMEM. */
int pin_memory_plan(enum pin_membind membind, const struct pin_memory_request *request,
                    struct pin_memory *out);

/* Sets the policy of the calling thread. A kernel or container that refuses, and a tier that is not
 * there, are one line on stderr where `speaks`. */
void pin_memory_put(const struct pin_options *options, const struct pin_memory *memory,
                    bool speaks);

/* Bytes of memory that the process has had at most. */
uint64_t pin_memory_peak(void);

/* With SERVET_VERBOSE, at the end: the process had more than its share. */
void pin_memory_say_peak(const struct pin_options *options, const struct pin_memory *memory);
