/* The state of the process that the shim lives in, shared by process.c, which draws it, and
 * masks.c, which changes masks. */
#ifndef SERVET_PRELOAD_PLACE_LIFE_H
#define SERVET_PRELOAD_PLACE_LIFE_H

#include <pthread.h>

#include "preload/base/order.h"
#include "preload/base/shield.h"
#include "preload/place/process.h"

enum { NEW, IDLE, PLANNED, FAILED, RETIRED };
enum { MAIN_FREE = -1, MAIN_LOOSE = PIN_LEFT, MAIN_CLAIMED = -3, MAIN_LEFT = -4 };

struct pin_life {
    atomic_int state;
    atomic_int main_pu;
    atomic_bool openmp_found;
    atomic_bool main_away;   /* as pin_thread.away */
    atomic_bool placed;      /* some thread has ever been put on a PU */
    atomic_int calls;        /* threads that are changing a mask at this moment */
    atomic_bool gave_up;     /* no sandbox: calls may still be made */
    atomic_bool calls_known; /* it is known whether calls may be made */
    atomic_bool broken;      /* a thread was killed while it had the lock */
    atomic_bool planning;    /* some thread finds that out, or makes a plan */
    atomic_bool planned_for_team;
    bool memory_is_put, called_mpi;
    pid_t pid; /* not a vfork child's */
};
extern struct pin_life pin_life;

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

/* Sleeps for a moment, while `value` is there, for another thread that is at it: a thread of real
 * time that spins would keep that one from its PU. */
void pin_life_await(atomic_int *word, int value);
/* Changes a mask, unless a sandbox of all threads has been announced: the announcement waits for
 * calls in progress. `mask` NULL: one PU. 0, -ECANCELED, as sched_setaffinity(2). */
int pin_life_change_mask(pid_t tid, const struct profile_mask *mask, uint32_t pu);
/* Have we given the calling thread a mask? */
bool pin_life_has_given_mask(void);

#endif
