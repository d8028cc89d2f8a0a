/* The order in which one thread may take the locks and try-flags of the shim, the tracer and
 * libservet_follow.so: a later one while it has an earlier one, never the other way round. Debug
 * builds, builds with sanitizers and some tests check it, and that the lock is had where it is
 * needed; each library checks its own. */
#pragma once

#include <pthread.h>

enum pin_order {
    HOLDS_TRACE,    /* the tracer's beginning */
    HOLDS_REQUESTS, /* of MPI, that are under way */
    HOLDS_GROUPS,   /* of communicators and windows */
    HOLDS_GPU,      /* that the process has taken: follow asks the shim to move it */
    HOLDS_PLANNING, /* a flag: another thread goes on without a plan */
    HOLDS_WATCH,    /* to make or end it, which is waited for */
    HOLDS_SAYING,   /* a flag: why a pool is left */
    HOLDS_LOCK      /* pin_process_lock() */
};

#ifdef PIN_CHECK_LOCK
extern __thread unsigned pin_has __attribute__((tls_model("initial-exec"))); /* bits of pin_order */
#define PIN_TAKES(it) (pin_has >> (it) ? __builtin_trap() : (void)(pin_has |= 1u << (it)))
#define PIN_GIVES(it) ((void)(pin_has &= ~(1u << (it))))
#define PIN_HAS_NOTHING() ((void)(pin_has = 0))
#define PIN_NEEDS_LOCK() (pin_has >> HOLDS_LOCK ? (void)0 : __builtin_trap())
#else
#define PIN_TAKES(it) ((void)0)
#define PIN_GIVES(it) ((void)0)
#define PIN_HAS_NOTHING() ((void)0)
#define PIN_NEEDS_LOCK() ((void)0)
#endif

static inline void pin_order_lock(enum pin_order it, pthread_mutex_t *lock)
{
    (void)it;
    PIN_TAKES(it);
    pthread_mutex_lock(lock);
}

static inline void pin_order_unlock(enum pin_order it, pthread_mutex_t *lock)
{
    (void)it;
    pthread_mutex_unlock(lock);
    PIN_GIVES(it);
}
