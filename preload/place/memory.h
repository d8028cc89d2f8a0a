/* Where a process's memory goes once its threads have places (SERVET_MEMBIND). System calls only,
 * libnuma's meanings.
 *
 *   none         (and not set) nothing: the kernel's default, first touch on the toucher's node
 *   local        the same said explicitly, and pages touched before the threads had places move to
 *                the plan's nodes
 *   interleave   pages are dealt out over the plan's nodes
 *
 * A policy belongs to the thread that sets it and is inherited by the threads it makes; the caller
 * is therefore the main thread in MPI_Init, or whoever makes the first worker.
 */
#ifndef SERVET_PRELOAD_PLACE_MEMORY_H
#define SERVET_PRELOAD_PLACE_MEMORY_H

#include <stddef.h>

#include "preload/place/options.h"

/* MAX_NUMNODES is at most 1 << 10 in every configuration of the kernel. */
#define PIN_NODES 1024u
#define PIN_NODE_WORD_BITS (8u * (unsigned)sizeof(unsigned long))

struct pin_nodes {
    unsigned long word[PIN_NODES / PIN_NODE_WORD_BITS];
};

/* Does what SERVET_MEMBIND asks for, for threads on `nodes`. A kernel or container that refuses is
 * one line on stderr.
 */
void pin_memory_follow(const struct pin_options *options, const struct pin_nodes *nodes);

#endif
