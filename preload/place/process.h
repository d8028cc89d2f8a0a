/* The process that the shim lives in: what the environment asks for, what mask it was started with,
 * the plan that is made at its first application thread or MPI_Init, the main thread's place, and
 * what each thread may be told of its mask.
 */
#ifndef SERVET_PRELOAD_PLACE_PROCESS_H
#define SERVET_PRELOAD_PLACE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/node/registry.h"
#include "preload/place/launcher.h"
#include "preload/place/options.h"
#include "preload/place/plan.h"
#include "preload/place/slots.h"
#include "preload/trace/remembered.h"
#include "profile/base/mask.h"

struct pin_process {
    struct profile_mask start; /* what the process was started with */
    struct pin_options options;
    struct profile_mask allowed; /* what its threads may use; valid with the plan */
    struct pin_launcher launcher;
    struct pin_plan plan;
    struct pin_slots slots;
    struct pin_claims claims;
    struct profile_mask children; /* what its children get: `start`, or what was there before
                                     servet-pin exported places; as above */
    bool recalled_priority;       /* SERVET_AUTO has chosen the priority, by `recalled` */
    struct pin_remembered recalled;
    bool places_exported; /* the environment's OpenMP places are servet-pin's, made from the same
                             plan */
    bool users_choice;    /* OMP_PLACES and the like: OpenMP threads are left alone */
};

/* Reads the environment and the mask if that has not been done. Called by the constructor and by
 * every interposer: a library's constructor may create threads before ours runs (a preloaded
 * object's runs last). Opens no file. In a privileged program (AT_SECURE) it does neither, and the
 * shim does nothing for good. */
void pin_process_start(void);

/* False when there is nothing to do: switched off, retired, or inside the shim's own work (a
 * parser's allocation can end in an allocator that creates a thread), or in a thread that has shut
 * itself in. */
bool pin_process_active(void);
bool pin_process_retired(void);

/* The calling thread is about to shut itself in a sandbox (seccomp), with `everybody` all threads
 * of the process. A sandbox kills the program for a call that is not on its list, so no call of
 * ours comes after it from a thread that is in it, not even at exit; whoever is pinned is unpinned
 * before. False: nothing was done. */
bool pin_process_shut_begin(bool everybody);
/* The kernel has refused the sandbox: all is as it was. */
void pin_process_shut_failed(bool everybody);

/* The options and the start mask (always valid after pin_process_start()). */
const struct pin_process *pin_process_get(void);

/* Makes the plan if there is none yet. NULL when it cannot be made (said once on stderr): the
 * program runs unpinned. */
struct pin_process *pin_process_plan(void);

/* A slot for a new thread of `pool`, entered in the registry when its PU is used for the first
 * time. */
size_t pin_process_take_slot(struct pin_process *process, unsigned pool);

/* An OpenMP runtime is at work in this process. */
void pin_process_openmp_found(void);
bool pin_process_has_openmp(void);
/* Has the user placed this process's threads by OMP_PLACES and the like? */
bool pin_process_left_to_user(const struct pin_process *process);
/* Does the calling thread run on a mask that the program, or somebody outside, has given to it?
 * What it makes inherits that mask, as without the shim. */
bool pin_process_thread_is_bound(const struct pin_process *process);

/* Puts the main thread on slot 0 if that has not been done, unless the user or the program has
 * bound it. */
void pin_process_pin_main(const struct pin_process *process);

/* The same in two steps around MPI_Init: first the whole plan, which the MPI library's own threads
 * inherit, then slot 0. False when the main thread has its place already or is left alone: then
 * there is no second step. */
bool pin_process_widen_main(const struct pin_process *process);
void pin_process_narrow_main(const struct pin_process *process);

/* The calling thread, which has just begun, gets its PU, with `pu` < 0 all PUs of the plan. 0,
 * -ECANCELED: a sandbox has come meanwhile; as sched_setaffinity(2). */
int pin_process_settle_thread(int32_t pu);
/* The calling thread's mask is no longer ours: it ends, or the program has bound it. */
void pin_process_forget_thread(void);

/* A thread or process that is about to be made by the calling thread and is not ours to place:
 * gives the calling thread the mask that children get, if its mask is (still) one that we gave it.
 * False: nothing was changed. */
bool pin_process_unpin_thread(void);
/* And its place back, where the calling thread goes on, unless it has been bound meanwhile. */
void pin_process_repin_thread(void);

/* What the calling thread would be told of its mask without the shim if we have pinned it to one
 * PU, else NULL. */
const struct profile_mask *pin_process_view(void);

/* The calling thread's PU if we pinned it, else -1. */
int32_t pin_process_thread_pu(void);

#endif
