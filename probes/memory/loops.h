/* A loop reads and writes memory as programs do: reads, a triad, an ordinary copy. Each has a rate,
 * of one PU alone and of all PUs of its NUMA node together. */
#ifndef SERVET_PROBES_MEMORY_LOOPS_H
#define SERVET_PROBES_MEMORY_LOOPS_H

#include "probes/memory/pairs.h"

/* The rate of each of enum profile_kernel, on the first PU alone and on all PUs of its NUMA node
 * together, into found->memory; nothing where it is late or memory has become scarce. 0, or the
 * machine's -errno with one line in `error`; `found` is then as it was. */
int probe_memory_kernels(struct probe *probe, struct probe_memory *found,
                         struct servet_error *error);

#endif
