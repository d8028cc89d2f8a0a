/* Protects a piece of work from the cancellation of its thread. */
#ifndef SERVET_PRELOAD_BASE_SHIELD_H
#define SERVET_PRELOAD_BASE_SHIELD_H

#include <pthread.h>

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

#endif
