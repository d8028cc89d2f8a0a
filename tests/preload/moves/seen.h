/* Threads of this program, which has all of the shim in it, as a look of the watch finds them. */
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include "preload/place/process.h"
#include "tests/base/runner.h"

/* A thread as a look has found it. */
struct seen {
    pthread_t thread;
    struct pin_thread *record;
    uint64_t born_ns;
    int32_t pu;
};

extern sem_t begun, go;

static inline void *wait_to_go(void *unused)
{
    sem_post(&begun);
    while (sem_wait(&go) != 0) {
    }
    return unused;
}

/* Its threads do not live briefly, however quickly the first of another routine ended. */
static inline void *wait_too(void *unused)
{
    return wait_to_go(unused);
}

static inline pthread_t make(void *(*routine)(void *))
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, routine, NULL), 0);
    sem_wait(&begun);
    return thread;
}

static inline struct seen start(void *(*routine)(void *))
{
    struct seen seen = {.thread = make(routine)};
    for (uint32_t number = 1; number <= pin_record_count(); number++) {
        struct pin_thread *record = pin_record_at(number);
        if (record->pool < PIN_POOLS && atomic_load(&record->tid) != 0) {
            seen = (struct seen){seen.thread, record, record->born_ns, atomic_load(&record->pu)};
        }
    }
    ck_assert_ptr_nonnull(seen.record);
    ck_assert_int_ge(seen.pu, 0);
    return seen;
}

static inline void end(pthread_t thread)
{
    sem_post(&go);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* One that has ended, by which PUs are planned. */
static inline struct seen start_and_end(void *(*routine)(void *))
{
    const struct seen seen = start(routine);
    end(seen.thread);
    return seen;
}

/* The main thread to its place. */
static inline void pin_main(void)
{
    pin_process_lock();
    pin_process_pin_main();
    pin_process_unlock();
}

static inline int32_t another_pu(int32_t pu)
{
    const struct pin_pools *pools = &pin_here.pools;
    return (int32_t)pools->places[pools->places[0].pu == (uint32_t)pu ? 1 : 0].pu;
}
