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
#include <string.h>
#include <strings.h>
#include <threads.h>
#include <unistd.h>

#include "preload/interpose/interpose.h"
#include "preload/node/node.h"
#include "preload/place/place.h"
#include "profile/base/raw.h"

#define NO_SLOT SIZE_MAX

/* The mask of an attribute; false: it cannot be had. In musl attributes have none. */
static bool attribute_mask(const pthread_attr_t *attributes, struct profile_mask *mask)
{
#ifdef NO_ATTRIBUTE_MASKS
    (void)attributes;
    (void)mask;
    return false;
#else
    return pthread_attr_getaffinity_np(attributes, sizeof *mask, (cpu_set_t *)mask) == 0;
#endif
}

/* Has the program given this thread a mask of its own? An attribute without one answers with all
 * bits set. */
static bool has_affinity(const pthread_attr_t *attributes)
{
    struct profile_mask mask, all;
    pthread_attr_t defaults;
    profile_mask_all(&all);
    mask = all;
    if (attributes) {
        return attribute_mask(attributes, &mask) && !profile_mask_equal(&mask, &all);
    }
    if (pthread_getattr_default_np(&defaults) != 0) {
        return false;
    }
    bool known = attribute_mask(&defaults, &mask);
    pthread_attr_destroy(&defaults);
    return known && !profile_mask_equal(&mask, &all);
}

/* The slot of a thread that a runtime puts on one of the places which servet-pin gave it: those are
 * the plan's own. */
static size_t slot_of_place(const struct pin_process *process, const pthread_attr_t *attributes)
{
    struct profile_mask mask = {0};
    if (!process->places_exported || !attributes || !attribute_mask(attributes, &mask) ||
        profile_mask_count(&mask) != 1) {
        return NO_SLOT;
    }
    for (size_t slot = 0; slot < process->plan.count; slot++) {
        if (profile_mask_has(&mask, process->plan.pus[slot])) {
            return slot;
        }
    }
    return NO_SLOT;
}

static struct pin_thread *new_record(const void *start, void *argument, const char *dso,
                                     const char *role, const char *decided_by)
{
    struct pin_thread *thread = pin_record_take();
    if (!thread) {
        pin_failure("too many threads at once; this one is not pinned");
        return NULL;
    }
    thread->start = (void *)(uintptr_t)start;
    thread->argument = argument;
    thread->dso = dso;
    thread->role = role;
    thread->decided_by = decided_by;
    atomic_store(&thread->pu, -1);
    thread->has_slot = false;
    thread->watched = (struct pin_watched){0};
    return thread;
}

/* A thread that is not ours to place must not inherit the one PU of a creator that is. */
static struct pin_thread *prepare_free(const void *start, void *argument, const char *dso,
                                       const char *role, const char *decided_by)
{
    return pin_process_view() ? new_record(start, argument, dso, role, decided_by) : NULL;
}

/* `wanted`: the slot it must have, or NO_SLOT. */
static struct pin_thread *prepare_worker(struct pin_process *process, const void *start,
                                         void *argument, const char *dso, const char *role,
                                         size_t wanted)
{
    pin_process_pin_main(process);
    struct pin_thread *thread = new_record(start, argument, dso, role, "servet");
    if (!thread) {
        return NULL;
    }
    thread->pool = pin_slots_pool(&process->slots, dso);
    if (wanted != NO_SLOT) {
        pin_slots_take_this(&process->slots, thread->pool, wanted);
    } else {
        wanted =
            pin_slots_take_free(&process->slots, thread->pool, &process->claims, process->plan.pus);
    }
    thread->slot = (uint32_t)wanted;
    thread->has_slot = true;
    int pu = (int)process->plan.pus[thread->slot];
    atomic_store(&thread->pu, pu);
    if (process->options.report[0] && pin_slots_threads(&process->slots, thread->slot) > 1) {
        pin_report_shared((uint32_t)pu);
    }
    return thread;
}

static void say_kept(const struct pin_process *process, const char *dso, const char *why)
{
    if (process->options.verbose) {
        pin_note("process %d: a thread of %s keeps the mask its creator %s", (int)getpid(),
                 *dso ? dso : "the program", why);
    }
}

/* An OpenMP runtime whose threads are no more than the PUs that it counted when the program began
 * waits busily. A rank's part of the node may be fewer PUs than that: then who waits takes the PU
 * of whom it waits for, at every barrier for a slice of the scheduler's (multi-zone NPB in
 * docs/MEASUREMENTS.md). Under servet-pin it has counted that part. With one more thread, would it
 * be so? */
static bool outgrows_its_part(struct pin_process *process, const char *dso)
{
    if (process->launcher.local_size <= 1 || process->places_exported) {
        return false;
    }
    size_t part = profile_mask_count(&process->plan.own);
    if (part >= profile_mask_count(&process->start) ||
        pin_slots_of_pool(&process->slots, pin_slots_pool(&process->slots, dso)) < part) {
        return false;
    }
    const char *policy = pin_environment("OMP_WAIT_POLICY");
    return !policy || strcasecmp(policy, "passive") != 0;
}

static void give_up(const struct pin_process *process, const char *dso)
{
    if (process->options.verbose) {
        pin_note("process %d: rank %u of %u has more threads of %s than PUs: nothing is placed "
                 "(servet-pin in front of the program would)",
                 (int)getpid(), process->launcher.local_rank, process->launcher.local_size, dso);
    }
    pin_process_give_up();
}

static struct pin_thread *prepare(const pthread_attr_t *attributes, const void *start,
                                  void *argument)
{
    const char *dso;
    enum pin_owner owner = pin_owner_of_thread(start, argument, &dso);
    bool force = pin_process_get()->options.force;
    if (!force && pin_owner_program_is_managed()) {
        return NULL;
    }
    if (owner == PIN_HELPER) {
        return prepare_free(start, argument, dso, "helper", "servet");
    }
    if (owner == PIN_RUNTIME) {
        pin_process_openmp_found();
    }
    bool chosen = has_affinity(attributes);
    struct pin_process *process = pin_process_plan(force || !chosen);
    if (!process) {
        return NULL;
    }
    size_t placed = owner == PIN_RUNTIME ? slot_of_place(process, attributes) : NO_SLOT;
    if (placed == NO_SLOT && !force && chosen) {
        say_kept(process, dso, "chose");
        return NULL;
    }
    if (pin_process_left_to_user(process)) {
        pin_process_pin_main(process); /* says that it stays */
        return prepare_free(start, argument, dso, "worker", "user");
    }
    if (placed == NO_SLOT && !force && pin_process_thread_is_bound(process)) {
        pin_process_pin_main(process); /* says that it stays, if it is the one that is bound */
        say_kept(process, dso, "has been given");
        return NULL;
    }
    if (owner == PIN_RUNTIME && placed == NO_SLOT && !force && outgrows_its_part(process, dso)) {
        give_up(process, dso);
        return NULL;
    }
    return prepare_worker(process, start, argument, dso,
                          owner == PIN_APPLICATION ? "thread" : "worker", placed);
}

/* Called in the creating thread, so that places follow the order of creation and not the order in
 * which threads happen to start. NULL: leave this thread alone; else what thread_main() is to be
 * started with. Makes the plan and pins the main thread at the first worker. errno is left
 * alone. */
static struct pin_thread *prepare_thread(const pthread_attr_t *attributes, const void *start,
                                         void *argument)
{
    if (!pin_process_active()) {
        return NULL;
    }
    int saved = errno, cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* pthread_create() is no such point */
    struct pin_thread *thread = prepare(attributes, start, argument);
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
    return thread;
}

static void release(void *argument)
{
    struct pin_thread *thread = argument;
    const struct pin_process *process = pin_process_get();
    atomic_store_explicit(&thread->runs, false, memory_order_release);
    if (pin_process_active()) {
        pin_report_end(thread->report_line);
    }
    pin_process_forget_thread();
    if (thread->has_slot) {
        pin_slots_give_back((struct pin_slots *)&process->slots, thread->pool, thread->slot);
    }
    pin_record_give_back(thread);
}

/* The thread could not be created: gives its slot back. */
static void forget_thread(struct pin_thread *thread)
{
    const struct pin_process *process = pin_process_get();
    if (thread->has_slot) {
        pin_slots_give_back((struct pin_slots *)&process->slots, thread->pool, thread->slot);
    }
    pin_record_give_back(thread);
}

static void say_thread(const struct pin_thread *thread)
{
    int tid = (int)profile_raw(SYS_gettid, 0, 0, 0, 0, 0, 0);
    const char *dso = *thread->dso ? thread->dso : "the program";
    if (thread->pu < 0) {
        pin_note("process %d: thread %d of %s on all PUs of the process", (int)getpid(), tid, dso);
    } else {
        pin_note("process %d: thread %d of %s on PU %d", (int)getpid(), tid, dso, thread->pu);
    }
}

static void settle_quietly(struct pin_thread *thread)
{
    const struct pin_process *process = pin_process_get();
    if (!pin_process_active()) {
        pin_process_settle_late();
        return; /* a sandbox has come since the thread was made, or all was given up */
    }
    thread->report_line =
        pin_report_begin(&process->options, thread->role, thread->pu, thread->decided_by);
    atomic_store_explicit(&thread->runs, true, memory_order_release);
    int code = pin_process_settle_thread(thread);
    if (code == -ECANCELED) {
        return;
    }
    if (code < 0) {
        pin_failure("cannot pin a thread to PU %d: %s", thread->pu, strerrordesc_np(-code));
    } else if (process->options.verbose) {
        say_thread(thread);
    }
}

/* What is said and opened on the way must not be the end of a thread that has not begun. */
static void settle(struct pin_thread *thread)
{
    const struct pin_options *options = &pin_process_get()->options;
    int cancel;
    if (!options->verbose && !options->report[0]) {
        settle_quietly(thread);
        return;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    settle_quietly(thread);
    pthread_setcancelstate(cancel, NULL);
}

/* Start routines to hand to the library: pin, run the program's, give the slot back. */
static void *thread_main(void *argument)
{
    struct pin_thread *thread = argument;
    void *result;
    settle(thread);
    /* Also runs at pthread_exit() and at cancellation. */
    pthread_cleanup_push(release, thread);
    result = ((void *(*)(void *))thread->start)(thread->argument);
    pthread_cleanup_pop(1);
    return result;
}

static int thread_main_c11(void *argument)
{
    struct pin_thread *thread = argument;
    int result;
    settle(thread);
    pthread_cleanup_push(release, thread);
    result = ((int (*)(void *))thread->start)(thread->argument);
    pthread_cleanup_pop(1);
    return result;
}

PIN_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                              void *(*start)(void *), void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!PIN_REAL(real, "pthread_create")) {
        return ENOSYS;
    }
    struct pin_thread *ours = prepare_thread(attributes, (const void *)(uintptr_t)start, argument);
    if (!ours) {
        return real(thread, attributes, start, argument);
    }
    int code = real(thread, attributes, thread_main, ours);
    if (code != 0) {
        forget_thread(ours);
    }
    return code;
}

PIN_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    static int (*real)(thrd_t *, thrd_start_t, void *);
    if (!PIN_REAL(real, "thrd_create")) {
        return thrd_error;
    }
    struct pin_thread *ours = prepare_thread(NULL, (const void *)(uintptr_t)start, argument);
    if (!ours) {
        return real(thread, start, argument);
    }
    int code = real(thread, thread_main_c11, ours);
    if (code != thrd_success) {
        forget_thread(ours);
    }
    return code;
}
