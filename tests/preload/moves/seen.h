/* Threads of this program, which has all of the shim in it, as a look of the watch finds them. */
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include "preload/place/process.h"
#include "tests/base/runner.h"

/* A thread as a look has found it. */
struct seen {
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

static inline struct seen start(pthread_t *thread, void *(*routine)(void *))
{
    struct seen seen = {0};
    ck_assert_int_eq(pthread_create(thread, NULL, routine, NULL), 0);
    sem_wait(&begun);
    for (uint32_t number = 1; number <= pin_record_count(); number++) {
        struct pin_thread *record = pin_record_at(number);
        if (record->pool < PIN_POOLS && atomic_load(&record->tid) != 0) {
            seen = (struct seen){record, record->born_ns, atomic_load(&record->pu)};
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

static inline int32_t another_pu(int32_t pu)
{
    const struct pin_pools *pools = &pin_here.pools;
    return (int32_t)pools->places[pools->places[0].pu == (uint32_t)pu ? 1 : 0].pu;
}
