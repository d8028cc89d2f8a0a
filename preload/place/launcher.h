/* The launcher of a parallel program, by what it says in the environment: which of the node's ranks
 * this process is, and who chose the mask it was started with. No MPI library is asked, so one shim
 * serves all of them. */
#ifndef SERVET_PRELOAD_PLACE_LAUNCHER_H
#define SERVET_PRELOAD_PLACE_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/base/mask.h"

struct profile_launcher;

/* Ranks of one node at most; a variable that says more is not believed. */
#define PIN_MOST_RANKS PROFILE_MASK_PUS

enum pin_binding {
    PIN_SHARED_MASK,      /* ranks are not bound one by one: all of the node have one mask */
    PIN_LAUNCHERS_CHOICE, /* the launcher bound this rank by its own default */
    PIN_USERS_CHOICE, /* bound because the user asked (--bind-to, --cpu-bind), or as far as one can
                         tell */
};

struct pin_launcher {
    /* "Open MPI", …; NULL: not started by a launcher we know, the rest is then 0 */
    const char *name;
    const struct profile_launcher *row;
    bool contradicts; /* the local rank is beyond the size, or the size is none */
    uint32_t local_rank;
    uint32_t local_size; /* ranks on this node, > local_rank; 1 where a user's binding gives the
                            rank PUs of its own */
    uint32_t node_rank, node_ranks; /* which of how many on this node, independent of the binding */
    enum pin_binding binding;
    uint64_t job; /* the same for all ranks of a job on this node, and for no other job that runs;
                     0: not known */
};

/* Reads the launcher's variables. With `rebind`, a binding by Slurm counts as the launcher's
 * choice. */
void pin_launcher_read(bool rebind, struct pin_launcher *out);

/* Says in the environment that the mask of this process is the rank's own: whoever reads the
 * launcher's variables after that finds a user's binding. `gpus`: the rank's, as in
 * profile/base/nearness.h, or "". */
void pin_launcher_mark_own(const struct pin_launcher *launcher, const char *gpus);

/* The PUs that the job may use on this node, given the mask this process was started with.
 *
 * A binding chosen by the launcher on its own is not a user's choice: then it is the mask of the
 * launcher's daemon on this node (the nearest ancestor of that kind: mpirun, orted …), which has
 * what the user, the batch system or the container gave to it (`taskset -c 1 mpirun …` gives 1).
 * Slurm's daemons may use the whole node; there it is what Slurm gave to all tasks of the step on
 * this node. Open MPI also binds ranks beyond the daemon's mask: then each keeps what it was given,
 * and plans for itself (`launcher` says so afterwards). In every other case it is `start`
 * itself. */
void pin_launcher_allowed(struct pin_launcher *launcher, const struct profile_mask *start,
                          struct profile_mask *out);

/* Writes "JOB RANK/SIZE " of this rank, its length returned: job 0 stands for a rank that the user
 * has bound. */
int pin_launcher_format(const struct pin_launcher *launcher, char *out, size_t size);

/* The nearest ancestor that is a launcher or its daemon; 0: none is near. */
pid_t pin_launcher_process(void);

/* Has this node more ranks of the job than PUs that the job may use here? False where no launcher
 * tells. */
bool pin_launcher_oversubscribed(const struct pin_launcher *launcher,
                                 const struct profile_mask *start);

#endif
