/* Copies between each GPU and the memory of each NUMA node: bandwidth either way, and the time of
 * the smallest copy, by which a rank's node is near its GPU or far from it.
 *
 * Memory is pinned, and a PU near it asks for the copies (one of all where the node has none).
 * Five rounds, their medians. A node whose PUs are none of the run's has no row, and a GPU that no
 * library of its maker answers for has none at all, with a reason. */
#ifndef SERVET_PROBES_MEMORY_DEVICES_H
#define SERVET_PROBES_MEMORY_DEVICES_H

#include "probes/probe.h"

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

#endif
