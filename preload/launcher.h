/* What the launcher of a parallel program says in the environment: which of the node's ranks this process is, and who
 * chose the mask it was started with. No MPI library is asked, so one shim serves all of them.
 */
#ifndef SERVET_PRELOAD_LAUNCHER_H
#define SERVET_PRELOAD_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "mask.h"

enum pin_binding {
    PIN_SHARED_MASK,      /* nobody bound the ranks one by one: all of the node have the same mask */
    PIN_LAUNCHERS_CHOICE, /* the launcher bound this rank by its own default */
    PIN_USERS_CHOICE,     /* bound because the user asked (--bind-to, --cpu-bind), or as far as one can tell */
};

struct pin_launcher {
    const char *name; /* "Open MPI", …; NULL: not started by a launcher we know, the rest is then 0 */
    uint32_t local_rank;
    uint32_t local_size; /* ranks on this node, > local_rank; 1 where a user's binding gives the rank PUs of its own */
    enum pin_binding binding;
    uint64_t job; /* the same for all ranks of a job on this node, and for no other job that runs; 0: not known */
};

/* Reads the launcher's variables. With `rebind`, a binding by Slurm counts as the launcher's choice. */
void pin_launcher_read(bool rebind, struct pin_launcher *out);

/* The PUs that the job may use on this node, given the mask this process was started with.
 *
 * A binding chosen by the launcher on its own is not a user's choice: then it is the mask of the launcher's daemon on
 * this node (the nearest ancestor of that kind: mpirun, orted …), which has what the user, the batch system or the
 * container gave to it
 * (`taskset -c 1 mpirun …` gives 1). Slurm's daemons may use the whole node; there it is what Slurm gave to all tasks
 * of the step on this node. In every other case it is `start` itself. */
void pin_launcher_allowed(const struct pin_launcher *launcher, const struct pin_mask *start, struct pin_mask *out);

#endif
