/* A NUMA access is the latency and the bandwidth that the PUs of one node have to the memory of one
 * node (2010 paper, Section III-C, for machines on which the place of memory matters as much as who
 * else uses it).
 *
 * Rows are groups of PUs that are local to one node, columns all nodes, those without PUs too. A
 * group's first PU chases through a random cycle far larger than every cache, and copies, on memory
 * bound to the node, while all else is idle: three rounds of both, their medians. A machine of one
 * node gives one row. A node out of reach (a control group's memory nodes, a sandbox) or with too
 * little free memory leaves its rows out, with a reason.
 *
 * Then the PUs near each node copy in it together, which alone tells memory of high bandwidth from
 * ordinary: as many for each node as the one with the fewest has, so that nodes differ by their
 * memory and not by their PUs. */
#ifndef SERVET_PROBES_MEMORY_NUMA_H
#define SERVET_PROBES_MEMORY_NUMA_H

#include "probes/probe.h"
#include "profile/model.h"

struct probe_numa {
    struct profile_numa_access *rows; /* ordered as the profile wants them; owned */
    size_t count, planned;
    double *together_bytes_per_s; /* by position of the declared node; 0: not measured; owned */
    char why[160];                /* of the first row that was left out; "" when none was */
};

/* `array_bytes`: of the working set, as probe_memory() chose it. Needs probe->declared; without
 * declared nodes there are no rows. */
int probe_numa(struct probe *probe, size_t array_bytes, struct probe_numa *out,
               struct servet_error *error);
void probe_numa_free(struct probe_numa *result);

#endif
