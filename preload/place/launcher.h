/* The launcher of a parallel program, by what it says in the environment: which of the node's ranks
 * this process is, of which job, and whose the mask is that it was started with. No MPI library is
 * asked, so one shim serves all of them.
 *
 * A mask belongs to the ranks that have it. Where a rank has the mask that all ranks of its job
 * have together, they divide it. Where it has less, it was given that: by the user's option, a
 * batch system, a script with taskset or numactl. It is the rank's own then, shared with those that
 * have the same one, and to these the rank is as to other jobs. By whom plays no part, but
 * for one: a launcher that binds each rank by its own default has made no choice. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/base/mask.h"

struct profile_launcher;

enum pin_mask_of {
    PIN_MASK_OF_JOB,      /* all ranks of the node have it, or there is no rank */
    PIN_MASK_BY_LAUNCHER, /* the launcher's default gave the rank less; it counts as the job's */
    PIN_MASK_OF_RANK,     /* given to this rank, and to `sharers` - 1 other ones */
    PIN_MASK_BY_SERVET,   /* the same, by servet-pin */
};

struct pin_launcher {
    /* "Open MPI", …; NULL: not started by a launcher we know, the rest is then 0 */
    const char *name;
    const struct profile_launcher *row;
    bool contradicts; /* the local rank is beyond the size, or the size is none */
    bool rebind;      /* a binding by Slurm is its default */
    uint32_t local_rank;
    uint32_t local_size; /* ranks that divide the mask, > local_rank; 1: it is this rank's own */
    uint32_t node_rank, node_ranks; /* which of how many on this node, whatever they have */
    enum pin_mask_of mask_of;
    uint32_t sharers; /* ranks that have this rank's own mask, as far as one can tell; else 1 */
    uint64_t job;     /* the same for those on this node that place together, and for no other ones
                         that run; 0: not known */
    pid_t starter;    /* of all ranks: the daemon, or who was started without their variables; 0 */
};

/* Reads the launcher's variables, and who started the ranks. */
void pin_launcher_read(bool rebind, struct pin_launcher *out);

/* The PUs that this process may use, given the mask that it was started with, and whose they are:
 * a rank with a mask of its own is alone afterwards, in a job of its own. All ranks together have
 * the mask of who started them (`taskset -c 1 mpirun …` gives 1); of Slurm, whose daemons may use
 * the whole node, what it gave to the tasks of the step here. */
void pin_launcher_allowed(struct pin_launcher *launcher, const struct profile_mask *start,
                          struct profile_mask *out);

/* Says in the environment that the mask of this process is its own, whatever it is. `gpus`: the
 * rank's, as in profile/base/nearness.h, or "". */
void pin_launcher_mark_own(const struct pin_launcher *launcher, const char *gpus);

/* Writes "JOB RANK/RANKS " of this rank as it was read, its length returned. */
int pin_launcher_format(const struct pin_launcher *launcher, char *out, size_t size);

/* Has this node more ranks of the job than PUs that the job may use here? False where no launcher
 * tells. */
bool pin_launcher_oversubscribed(const struct pin_launcher *launcher,
                                 const struct profile_mask *start);
