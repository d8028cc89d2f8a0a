/* Memory: pairs and sets of PUs that collide on it, loops over it, its nodes, and copies between it
 * and devices. */
#pragma once

#include "probes/probe.h"
#include "profile/model.h"

/* -- pairs and sets -- */

/* Pairs that collide on memory, as overhead levels (2010 paper, Section III-C, Figure 6).
 *
 * A pair collides when one of them, both copying, gets less than 90 % of what it gets alone. Every
 * PU is measured alone first, then pairs (sampling.c). One pass verifies: all pairs that collide
 * and 16 others are measured once more. Then colliding bandwidths are clustered (layers.h) to
 * overhead levels, worst first; a level's groups are of PUs that collide so or worse, so that
 * groups nest. */

/* The result in the profile's own form, to be moved into a class. `array_bytes`: of an array that
 * was copied. */
struct probe_memory {
    struct profile_memory memory;
    size_t array_bytes;
    bool cut_short; /* by the memory limit: arrays so small that a cache may hold a part of them */
    bool outliers;  /* a few pairs collide of a class whose others do not */
    bool not_concurrent; /* some pairs or sets have no figure: their PUs never ran together */
    bool searched;       /* pairs and sets to the end: there are no more levels */
};

/* `last_level_bytes`: the largest cache, declared or measured. */
int probe_memory(struct probe *probe, size_t last_level_bytes, struct probe_memory *out,
                 struct servet_error *error);
/* Adds the levels that sets show to those of pairs, with their groups and curves (domains.c;
 * model.h: worst first, each within the next). `candidates`: partitions of the PUs that may be
 * domains; what they say is tried, never taken over. Stops early, with what it has, when the probe
 * is late, and where copies that are to meet never do: those that did not say that nothing is lost.
 * 0, or -errno of the machine with one line in `error`; `found` is as it was then. */
int probe_memory_sets(struct probe *probe, const struct profile_relation *const *candidates,
                      size_t count, struct probe_memory *found, struct servet_error *error);
void probe_memory_free(struct probe_memory *result);

/* A loop reads and writes memory as programs do: reads, a triad, an ordinary copy. The rate of each
 * of enum profile_kernel, on the first PU alone and on all PUs of its NUMA node together, into
 * found->memory; nothing where it is late or memory has become scarce. 0, or the machine's -errno
 * with one line in `error`; `found` is then as it was. */
int probe_memory_kernels(struct probe *probe, struct probe_memory *found,
                         struct servet_error *error);

/* -- nodes -- */

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

struct probe_numa {
    struct profile_numa_access *rows; /* ordered as the profile wants them; owned */
    size_t count;
    double *together_bytes_per_s; /* by position of the declared node; 0: not measured; owned */
    char why[160];                /* of the first row that was left out; "" when none was */
};

/* `array_bytes`: of the working set, as probe_memory() chose it. Needs probe->declared; without
 * declared nodes there are no rows. */
int probe_numa(struct probe *probe, size_t array_bytes, struct probe_numa *out,
               struct servet_error *error);
void probe_numa_free(struct probe_numa *result);

/* -- devices -- */

/* Copies between each GPU and the memory of each NUMA node: bandwidth either way, and the time of
 * the smallest copy, by which a rank's node is near its GPU or far from it.
 *
 * Memory is pinned, and a PU near it asks for the copies (one of all where the node has none).
 * Five rounds, their medians. A node whose PUs are none of the run's has no row, and a GPU that no
 * library of its maker answers for has none at all, with a reason. */

struct probe_devices {
    struct probe_device {
        struct profile_transfer *transfers; /* by ascending node; owned */
        size_t count;
    } * of;         /* by position of the declared device; owned */
    size_t count;   /* of declared devices */
    size_t rows;    /* of all of them */
    bool cut_short; /* the budget left no time for some */
    char why[160];  /* the first copies that were left out; "" when none were */
};

/* Has the machine a GPU to be asked for? */
bool probe_devices_are(const struct machine *machine);

/* Needs probe->declared; without declared nodes there are no rows. */
int probe_devices(struct probe *probe, struct probe_devices *out, struct servet_error *error);
void probe_devices_free(struct probe_devices *result);
