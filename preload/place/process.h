/* The process that the shim lives in: what the environment asks for, what mask it was started with,
 * the plan that is made at its first application thread or MPI_Init, and the main thread's place.
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
                                 servet-pin; as above */
    bool recalled_priority;       /* SERVET_AUTO has chosen the priority, by `recalled` */
    struct pin_remembered recalled;
    bool
        places_exported; /* the environment's OpenMP places are servet-pin's, made from the same plan */
    bool users_choice; /* OMP_PLACES and the like: OpenMP threads are left alone */
};

/* Reads the environment and the mask if that has not been done. Called by the constructor and by
 * every interposer: a library's constructor may create threads before ours runs (a preloaded
 * object's runs last). Opens no file. */
void pin_process_start(void);

/* False when there is nothing to do: switched off, or inside the shim's own work (a parser's
 * allocation can end in an allocator that creates a thread). */
bool pin_process_active(void);

/* The program is about to shut itself in a sandbox: gives the calling thread the start mask back,
 * if its own is ours, and makes the shim do nothing from now on, not even at exit. */
void pin_process_retire(void);
bool pin_process_retired(void);

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
/* Has the user placed this process's threads by OMP_PLACES and the like? */
bool pin_process_left_to_user(const struct pin_process *process);

/* Puts the main thread on slot 0 if that has not been done, unless the user or the program has
 * bound it. */
void pin_process_pin_main(const struct pin_process *process);

/* The same in two steps around MPI_Init: first the whole plan, which the MPI library's own threads
 * inherit, then slot 0. False when the main thread has its place already or is left alone: then
 * there is no second step. */
bool pin_process_widen_main(const struct pin_process *process);
void pin_process_narrow_main(const struct pin_process *process);

/* A thread or process that is about to be made by the calling thread and is not ours to place:
 * gives the calling thread the mask the process was started with, if its mask is (still) one that
 * we gave it. False: nothing was changed. */
bool pin_process_unpin_thread(void);
/* And the place it had back, where the calling thread goes on. */
void pin_process_repin_thread(void);

/* The calling thread runs on the whole plan by our doing. */
void pin_process_set_thread_spread(void);

/* The plan's PUs if the calling thread has been pinned to one of them by us, else NULL: the answer
 * for callers that mean to count what the process has. */
const struct profile_mask *pin_process_view(void);

/* The calling thread's PU if we pinned it, else -1. */
int32_t pin_process_thread_pu(void);
void pin_process_set_thread_pu(int32_t pu);

#endif
