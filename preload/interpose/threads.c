/* Interposed: the ways to make a thread.
 *
 *   pthread_create   every OpenMP runtime, std::thread, Python, Java … come through here
 *   thrd_create      C11; glibc makes these threads inside itself, without calling pthread_create
 *                    through the symbol
 *
 * Not seen, because no dynamic symbol is used: SIGEV_THREAD timers and other threads glibc makes
 * for itself, objects loaded with RTLD_DEEPBIND or dlmopen, static programs, clone() (Go).
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <threads.h>

#include "preload/interpose/interpose.h"
#include "preload/interpose/real.h"
#include "preload/place/creation.h"

PIN_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                              void *(*start)(void *), void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!PIN_REAL(real, "pthread_create")) {
        return ENOSYS;
    }
    struct pin_thread *ours =
        pin_thread_prepare(attributes, (const void *)(uintptr_t)start, argument);
    if (!ours) {
        return real(thread, attributes, start, argument);
    }
    int code = real(thread, attributes, pin_thread_main, ours);
    if (code != 0) {
        pin_thread_forget(ours);
    }
    return code;
}

PIN_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    static int (*real)(thrd_t *, thrd_start_t, void *);
    if (!PIN_REAL(real, "thrd_create")) {
        return thrd_error;
    }
    struct pin_thread *ours = pin_thread_prepare(NULL, (const void *)(uintptr_t)start, argument);
    if (!ours) {
        return real(thread, start, argument);
    }
    int code = real(thread, pin_thread_main_c11, ours);
    if (code != thrd_success) {
        pin_thread_forget(ours);
    }
    return code;
}
