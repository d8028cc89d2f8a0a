/* The process that the shim lives in: what the environment asks for, the mask it was started with,
 * its plan and its pools, the main thread's place, and the mask that each thread's queries
 * return. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "preload/base/order.h"
#include "preload/base/owner.h"
#include "preload/node/registry.h"
#include "preload/place/launcher.h"
#include "preload/place/options.h"
#include "preload/place/plan.h"
#include "preload/place/pools.h"
#include "preload/place/priority_cache.h"
#include "profile/base/mask.h"

struct pin_process {
    struct profile_mask allowed; /* its threads may use these; valid with the plan */
    struct pin_options options;
    struct profile_mask start;
    bool start_is_known, start_is_lost; /* lost: the program changed it in a filter's process */
    bool has_chosen; /* the program has given itself a mask, `chosen`, before any plan */
    struct profile_mask chosen;
    struct pin_launcher launcher;
    struct profile_mask children; /* the mask of its children: `start`, or what was there before
                                     servet-pin exported places; valid with the plan */
    bool recalled_priority;       /* SERVET_AUTO has chosen the priority, by `recalled` */
    struct pin_priority_cache recalled;
    bool places_exported; /* the environment's OpenMP places are servet-pin's, made from the same
                             plan */
    const char *users_choice; /* OMP_PLACES or the like is set, so OpenMP threads are left alone */
    struct pin_plan plan;
    struct pin_pools pools;
    struct pin_registry registry; /* at the end: most of its pages are never touched */
};
/* The options are there when an interposer has been called, the start mask with the plan. */
extern struct pin_process pin_here;

/* -- a piece of work that the cancellation of its thread must not end -- */

/* Both, since glibc looks at the type alone when the signal of an asynchronous cancellation arrives
 * that was under way. No system call is made. */
struct pin_shield {
    int type, state;
};

static inline void pin_shield_raise(struct pin_shield *before)
{
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before->type);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->state);
}

/* An asynchronous cancellation that has come meanwhile ends the thread here. */
static inline void pin_shield_lower(const struct pin_shield *before)
{
    int ignored;
    pthread_setcancelstate(before->state, &ignored);
    pthread_setcanceltype(before->type, &ignored);
}

/* -- its life -- */

/* The states are drawn in state.c. In place of a thread's PU: the main thread's states, and the
 * mask of children. */
enum { NEW, IDLE, PLANNED, FAILED, RETIRED };
enum {
    MAIN_FREE = -1,
    MAIN_LOOSE = PIN_LEFT,
    MAIN_CLAIMED = -3,
    MAIN_LEFT = -4,
    AS_CHILDREN = -5,
};

struct pin_life {
    atomic_int state;
    atomic_int main_pu;
    atomic_bool openmp_found; /* a runtime of it is at work in this process */
    atomic_bool main_away;    /* as pin_thread.away */
    atomic_bool placed;       /* some thread has ever been put on a PU */
    atomic_int calls;         /* threads that are changing a mask at this moment */
    atomic_bool gave_up;      /* no sandbox: calls may still be made */
    atomic_bool calls_known;  /* it is known whether calls may be made */
    atomic_bool broken;       /* a thread was killed while it had the lock: all is to be given up,
                                 and what the lock guards may count what is no more */
    atomic_bool planning;     /* some thread finds that out, or makes a plan */
    atomic_bool planned_for_team;
    atomic_uint moved, loosened, tightened; /* by the watch: moves, pools, threads put back */
    bool memory_is_put, called_mpi;
    pid_t pid; /* not a vfork child's */
};
extern struct pin_life pin_life;

/* The calling thread. */
struct pin_self {
    bool inside;  /* does the shim's own work */
    bool outside; /* what `inside` was before it took the lock */
    bool has_lock;
    bool is_main;    /* also in a fork's child, whose one thread is the main thread from then on */
    bool shut;       /* in a sandbox of its own */
    bool shut_child; /* its vfork child is */
    struct pin_thread *record; /* of a thread that is not main and whose mask is ours; else NULL */
    struct pin_shield shield;  /* while it has the lock */
    int told;                  /* 1 + the PU of ours that it was last told to be on, 0: none */
    struct pin_thread *told_record; /* its record then */
};
extern __thread struct pin_self pin_self __attribute__((tls_model("initial-exec")));

static inline int pin_life_state(void)
{
    return atomic_load_explicit(&pin_life.state, memory_order_acquire);
}

/* A lock that nobody has: at the start, and in the child of a fork. */
void pin_life_make_lock(void);
/* The shim's own work, which no other thread does meanwhile. False: another one is at it. */
bool pin_life_begin_planning(bool *outside);
void pin_life_end_planning(bool outside);
/* Sleeps for a moment, while `value` is there, for another thread that is at it: a thread of real
 * time that spins would keep that one from its PU. */
void pin_life_await(atomic_int *word, int value);
/* Gives a thread (0: the calling one) the mask of `pu`, or of what stands for one, unless a sandbox
 * of all threads has been announced: the announcement waits for calls in progress. 0, -ECANCELED,
 * as sched_setaffinity(2). */
int pin_life_change_mask(pid_t tid, int32_t pu);
/* The calling thread's PU, or what stands for it, if its mask is ours; else MAIN_FREE. */
int32_t pin_life_given_pu(void);

/* False when there is nothing to do: switched off, retired, or inside the shim's own work (a
 * parser's allocation can end in an allocator that creates a thread), or in a thread that has shut
 * itself in. */
bool pin_process_active(void);

/* The calling thread is about to shut itself in a sandbox (seccomp), with `everybody` all threads
 * of the process. A sandbox kills the program for a call that is not on its list, so no call of
 * ours follows from a thread in it, not even at exit; pinned threads are unpinned before. */
void pin_process_shut(bool everybody);

/* Nothing is placed from now on, and every thread gets the mask of children: as without the shim.
 * The lock is not held. */
void pin_process_give_up(void);
/* Is the main thread where we, or its start, put it? */
bool pin_process_main_is_ours(void);
/* The process is from now on one that was started on `mask`; what was placed is given up. */
void pin_process_start_on(const struct profile_mask *mask);

/* The program is about to change the calling thread's mask: that of the main thread is the start
 * mask until then. errno is left alone. */
void pin_process_note_start(void);

/* Guards the plan and the pools. A thread that has it does the shim's own work
 * (pin_process_active()), is not cancelled, and calls nothing that looks a function up, allocates
 * or waits (tests/preload/under_the_lock has the list). */
void pin_process_lock(void);
void pin_process_unlock(void);

/* The worker for which a plan is made. */
enum pin_comes {
    PIN_REST_COMES, /* a thread of a pool */
    PIN_TEAM_COMES, /* the first thread of an OpenMP team */
    PIN_RANK_COMES, /* the main thread, as a rank */
};

/* Finds out, once, whether the shim may make calls (base/filter.h). False: it may not, or another
 * thread is at it: nothing is placed. */
bool pin_process_may_call(void);
/* Reads the environment, the launcher and the user's choices; once in each process. */
void pin_process_look_around(void);
/* Is a plan to be made, or made anew for a team whose number of threads is known? */
bool pin_process_wants_plan(enum pin_comes comes);
/* Makes it. The lock is not held, and no other thread waits meanwhile: a plan reads files and takes
 * memory, and the program's malloc may wait for a thread that makes a thread. False: it cannot be
 * made (said once on stderr), or another thread makes it; the program runs unpinned. */
bool pin_process_plan(enum pin_comes comes);

/* Has the user placed this process's threads by OMP_PLACES and the like? */
bool pin_process_left_to_user(void);
/* Does the calling thread run on a mask that the program, or another process, has given to it? The
 * threads that it makes inherit that mask, as without the shim. */
bool pin_process_thread_is_bound(void);

/* Puts the main thread, which is a worker, on its place if that has not been done, unless the user
 * or the program has bound it. The lock is held. */
void pin_process_pin_main(void);
/* Does what SERVET_MEMBIND asks for, once, before the first worker is made. */
void pin_process_put_memory(void);
/* A thread that the calling thread makes gets `pu`: a main thread that is not placed and happens to
 * run there, goes to the first place of the plan, if that is free, and stays free to go
 * elsewhere. The lock is held. */
void pin_process_make_room(uint32_t pu);
/* Threads that are left to the kernel go to the main thread's PU, and are free there. The lock is
 * held. */
void pin_process_clear_way(void);
/* The main thread stays where it is: said where the user asks. */
void pin_process_say_main_stays(void);

/* A rank's main thread is pinned in two steps around MPI_Init: first to the whole plan, which the
 * MPI library's own threads inherit, then to its place. False when it has its place already or is
 * left alone: then there is no second step. The lock is held. */
bool pin_process_widen_main(void);
void pin_process_narrow_main(void);

/* A thread of ours, NULL: the main thread, has lost its place: it gets the mask of threads that are
 * left to the kernel. The lock is held. */
void pin_process_leave(struct pin_thread *thread);

/* The calling thread has just begun and takes its place. 0; -ECANCELED: a sandbox has come
 * meanwhile, or all was given up; as sched_setaffinity(2). */
int pin_process_take_place(struct pin_thread *thread);

/* A thread of this process, NULL: the main thread, gets `pu`, or is left to the kernel (PIN_LEFT),
 * if its record is still that of the thread which was made at `born_ns`, and it is still where we
 * put it (`from`). False: nothing was changed. */
bool pin_process_move(struct pin_thread *thread, uint64_t born_ns, int32_t from, int32_t pu);
/* Has the thread ended without a word to us? */
bool pin_process_thread_is_gone(const struct pin_thread *thread);
/* Its mask and its record alone; the lock is held. */
void pin_process_put(struct pin_thread *thread, int32_t pu);
/* The calling thread's mask is no longer ours: it ends, or the program has bound it. */
void pin_process_forget_thread(void);
/* The program has given the calling thread this mask, which is its own choice, unless it is the one
 * that a query returned before: then the thread stays ours. */
void pin_process_bound_by_program(const struct profile_mask *mask);

/* The process is about to become another program: what servet-pin exported for another mask than it
 * has given itself (taskset, numactl) goes. */
void pin_process_ends_here(void);

/* A thread or process that is about to be made by the calling thread and is not ours to place:
 * gives the calling thread the mask of children, if its mask is (still) one that we gave it.
 * False: nothing was changed. */
bool pin_process_unpin_thread(void);
/* All threads that are pinned get the mask of children. The lock is not held. */
void pin_process_unpin_everybody(void);
/* And its place back, where the calling thread goes on, unless it has been bound meanwhile. */
void pin_process_repin_thread(void);

/* The mask of the calling thread as it would be without the shim, if we have pinned it to one PU,
 * else NULL. */
const struct profile_mask *pin_process_view(void);
