/* Interposed: the ways to make a thread.
 *
 *   pthread_create   every OpenMP runtime, std::thread, Python, Java … come through here
 *   thrd_create      C11; glibc makes these threads inside itself, without calling pthread_create
 *                    through the symbol
 *   pthread_join     (see the end)
 *
 * Not seen, because no dynamic symbol is used: SIGEV_THREAD timers and other threads glibc makes
 * for itself, objects loaded with RTLD_DEEPBIND or dlmopen, static programs, clone() (Go). */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <threads.h>
#include <time.h>

#include "preload/interpose/interpose.h"
#include "preload/node/node.h"
#include "preload/place/check.h"
#include "preload/place/look.h"
#include "preload/place/process.h"
#include "preload/place/report.h"
#include "preload/place/why.h"
#include "profile/base/clock.h"
#include "profile/base/syscall.h"
#include "profile/base/thread_role.h"

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

/* The place of a thread that a runtime puts on one of those which servet-pin gave it. */
static size_t place_of_attributes(const struct pin_process *process,
                                  const pthread_attr_t *attributes)
{
    struct profile_mask mask = {0};
    const bool known = process->places_exported && attributes &&
                       attribute_mask(attributes, &mask) && profile_mask_count(&mask) == 1;
    return known ? pin_pools_place_of(&process->pools, profile_mask_next(&mask, 0)) : PIN_NO_PLACE;
}

/* -- the decision, in the creator -- */

/* The thread that is being made. */
struct birth {
    const pthread_attr_t *attributes; /* the program's, or NULL */
    const void *start, *code;
    void *argument;
    enum pin_owner owner;
    const char *dso;
    bool is_c11;
};

static struct pin_thread *new_record(const struct birth *birth, enum profile_role role,
                                     enum profile_decider decider)
{
    struct pin_thread *thread = pin_record_take();
    if (!thread) {
        pin_failure("too many threads at once; this one is not pinned");
        return NULL;
    }
    thread->start = (void *)(uintptr_t)birth->start;
    thread->argument = birth->argument;
    thread->is_c11 = birth->is_c11;
    thread->routine = birth->code;
    thread->dso = birth->dso;
    thread->role = role;
    thread->decider = decider;
    return thread;
}

/* A thread that is not ours to place must not inherit the one PU of a creator that is. */
static struct pin_thread *prepare_free(const struct birth *birth, enum profile_role role,
                                       enum profile_decider decider)
{
    return pin_process_view() ? new_record(birth, role, decider) : NULL;
}

/* Born where its creator's process may run. */
static struct pin_thread *prepare_brief(const struct birth *birth)
{
    const struct pin_options *options = &pin_process_get()->options;
    const bool is_seen = options->verbose || options->report[0] || pin_process_view();
    return is_seen || pin_brief_is_sampled(birth->code)
               ? new_record(birth, PROFILE_ROLE_BRIEF, PROFILE_BY_KERNEL)
               : NULL;
}

/* A thread that keeps the mask which its attributes, or its creator's, were given. */
static void note_kept(struct pin_process *process, const char *dso)
{
    process->pools.pool[pin_pools_find(&process->pools, dso)].cause = PIN_CAUSE_MASK;
    pin_why_say();
}

/* The team is the first OpenMP runtime's whose threads the main thread makes; of any other runtime,
 * and where another thread makes them, they are a library's. */
static bool is_of_team(struct pin_process *process, const struct birth *birth, unsigned pool)
{
    if (birth->owner == PIN_RUNTIME && process->pools.team == PIN_POOLS && pin_process_is_main()) {
        process->pools.team = pool;
        (void)pin_process_plan(PIN_TEAM_COMES);
    }
    return process->pools.team == pool;
}

/* OpenMP threads of a rank that are more than its part of the node, and wait busily because they
 * are no more than the PUs that the runtime counted when the program began: then each that waits
 * takes the PU of the one it waits for. Under servet-pin the runtime has counted that part. */
static bool outgrows_its_part(const struct pin_process *process)
{
    const char *policy = pin_environment("OMP_WAIT_POLICY");
    return process->launcher.local_size > 1 && !process->places_exported &&
           process->pools.count < profile_mask_count(&process->start) &&
           !(policy && strcasecmp(policy, "passive") == 0);
}

static struct pin_thread *prepare_worker(struct pin_process *process, const struct birth *birth,
                                         size_t wanted, bool *gives_up)
{
    const enum profile_role role =
        birth->owner == PIN_APPLICATION ? PROFILE_ROLE_THREAD : PROFILE_ROLE_WORKER;
    const unsigned pool = pin_pools_find(&process->pools, birth->dso);
    const bool team = is_of_team(process, birth, pool);
    const bool fits = !team || wanted != PIN_NO_PLACE || pin_pools_team_fits(&process->pools);
    if (!fits && outgrows_its_part(process)) {
        *gives_up = true;
        pin_pools_note_cause(&process->pools, pool);
        return NULL;
    }
    if ((team && fits) || process->launcher.name) {
        pin_process_pin_main(process);
    }
    struct pin_thread *thread = new_record(birth, role, PROFILE_BY_SERVET);
    if (!thread) {
        return NULL;
    }
    pin_process_put_memory(process);
    pin_process_look_again();
    thread->pool = pool;
    thread->place = pin_pools_admit(&process->pools, pool, wanted, pin_process_leave);
    if (thread->place == PIN_NO_PLACE) {
        thread->decider = PROFILE_BY_KERNEL;
        pin_why_say();
        return thread;
    }
    const struct pin_place *place = &process->pools.places[thread->place];
    atomic_store(&thread->pu, (int)place->pu);
    pin_check_laid(place->pu);
    pin_process_make_room(process, place->pu);
    return thread;
}

static struct pin_thread *prepare_birth(const struct birth *birth, bool *gives_up)
{
    const bool force = pin_process_get()->options.force, chosen = has_affinity(birth->attributes);
    if (birth->owner == PIN_HELPER) {
        return prepare_free(birth, PROFILE_ROLE_HELPER, PROFILE_BY_KERNEL);
    }
    if (birth->owner == PIN_RUNTIME) {
        pin_process_openmp_found();
    }
    if (!chosen && pin_brief(birth->code)) {
        return prepare_brief(birth);
    }
    const bool is_first_of_team = birth->owner == PIN_RUNTIME && pin_process_is_main();
    struct pin_process *process =
        pin_process_plan(is_first_of_team ? PIN_TEAM_COMES : PIN_REST_COMES);
    if (!process) {
        return NULL;
    }
    const size_t wanted = birth->owner == PIN_RUNTIME
                              ? place_of_attributes(process, birth->attributes)
                              : PIN_NO_PLACE;
    if (wanted == PIN_NO_PLACE && !force && chosen) {
        note_kept(process, birth->dso);
        return NULL;
    }
    if (pin_process_left_to_user(process)) {
        pin_process_say_main_stays(process);
        return prepare_free(birth, PROFILE_ROLE_WORKER, PROFILE_BY_USER);
    }
    if (wanted == PIN_NO_PLACE && !force && pin_process_thread_is_bound(process)) {
        pin_process_say_main_stays(process);
        note_kept(process, birth->dso);
        return NULL;
    }
    return prepare_worker(process, birth, wanted, gives_up);
}

static void give_up(const struct birth *birth)
{
    const struct pin_process *process = pin_process_get();
    pin_log(process->options.verbose,
            "rank %u of %u has more threads of %s than PUs: nothing is placed (servet-pin in "
            "front of the program would)",
            process->launcher.local_rank, process->launcher.local_size, birth->dso);
    pin_process_give_up();
}

/* Called in the creating thread, so that places follow the order of creation and not the order in
 * which threads happen to start. NULL: leave this thread alone; else the record of it. errno is
 * left alone. */
static struct pin_thread *prepare_thread(struct birth *birth)
{
    if (!pin_process_active()) {
        return NULL;
    }
    int saved = errno, cancel;
    bool gives_up = false;
    struct pin_thread *thread = NULL;
    birth->owner = pin_owner_of_thread(birth->start, birth->argument, &birth->dso, &birth->code);
    if (pin_process_get()->options.force || !pin_owner_program_is_managed()) {
        /* pthread_create() is no cancellation point. */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        pin_process_lock();
        thread = prepare_birth(birth, &gives_up);
        if (thread) {
            thread->born_ns = profile_now_ns();
        }
        pin_process_unlock();
        if (gives_up) {
            give_up(birth);
        }
        pthread_setcancelstate(cancel, NULL);
    }
    errno = saved;
    return thread;
}

/* -- the life of a thread -- */

/* Also in a sandbox: it takes no other calls than libc's own end of a thread does. */
static void end_thread(struct pin_thread *thread, bool lived)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pin_process_lock();
    const bool brief =
        lived && pin_brief_ended(thread->routine, profile_now_ns() - thread->born_ns);
    pin_pools_end(&((struct pin_process *)pin_process_get())->pools, thread, brief);
    pin_record_give_back(thread);
    pin_process_unlock();
    pthread_setcancelstate(cancel, NULL);
}

static void release(void *argument)
{
    struct pin_thread *thread = argument;
    if (pin_process_active()) {
        pin_report_end(thread->report_line);
    }
    pin_process_forget_thread();
    end_thread(thread, true);
}

static void say_thread(const struct pin_thread *thread)
{
    int tid = (int)profile_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    const char *dso = *thread->dso ? thread->dso : "the program";
    int pu = atomic_load(&thread->pu);
    pin_log(pu >= 0, "thread %d of %s on PU %d", tid, dso, pu);
    pin_log(pu < 0, "thread %d of %s left to the kernel", tid, dso);
}

/* The PU that the thread was made on; PIN_LEFT: that of its creator, or any of the process. */
static void begin_quietly(struct pin_thread *thread, int32_t born)
{
    const struct pin_process *process = pin_process_get();
    int rc = pin_process_begin_thread(thread, born);
    const int32_t pu = atomic_load(&thread->pu);
    if (!pin_process_active()) {
        return; /* a sandbox has come since the thread was made, or all was given up */
    }
    thread->report_line =
        pin_report_begin(&process->options, thread->role, pu < 0 ? -1 : pu, thread->decider);
    if (rc < 0 && rc != -ECANCELED) {
        pin_failure("cannot pin a thread to PU %d: %s", pu, strerrordesc_np(-rc));
    } else if (rc == 0 && process->options.verbose) {
        say_thread(thread);
    }
}

/* A line that is written must not be the end of a thread that has not begun. */
static void begin_thread(struct pin_thread *thread)
{
    const struct pin_options *options = &pin_process_get()->options;
    int cancel;
    if (thread->pool == PIN_POOLS && thread->born == PIN_LEFT && !options->verbose &&
        !options->report[0]) {
        return; /* never moved: most short-lived threads are of this kind */
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    begin_quietly(thread, thread->born);
    pthread_setcancelstate(cancel, NULL);
}

/* From outside a thread's role is known by its record (profile/base/thread_role.c). */
_Static_assert(offsetof(struct pin_thread, routine) == offsetof(struct profile_thread_record, code),
               "the code comes first");
_Static_assert(offsetof(struct pin_thread, pu) == offsetof(struct profile_thread_record, pu),
               "then the PU");

/* The start routine to hand to the library: begin, run the program's, give the place back. C11
 * threads are POSIX threads here and in musl: their result is the number in the pointer. */
static void *thread_main(void *argument)
{
    struct pin_thread *thread = argument;
    void *result;
    begin_thread(thread);
    /* Also runs at pthread_exit() and at cancellation. */
    pthread_cleanup_push(release, thread);
    if (thread->is_c11) {
        result = (void *)(intptr_t)((thrd_start_t)thread->start)(thread->argument);
    } else {
        result = ((void *(*)(void *))thread->start)(thread->argument);
    }
    pthread_cleanup_pop(1);
    return result;
}

/* -- birth -- */

#ifndef NO_ATTRIBUTE_MASKS

/* The mask that a thread is made with; false: that of its creator will do. A pool's thread that is
 * left beside a team is made on the main thread's PU (masks.c, replace_mask()). */
static bool birth_mask(struct pin_thread *thread, struct profile_mask *out)
{
    const int32_t pu = atomic_load(&thread->pu), main_pu = pin_process_main_pu();
    const struct profile_mask *view = pin_process_view();
    *out = (struct profile_mask){0};
    thread->born = pu >= 0 || thread->pool == PIN_POOLS || main_pu < 0 ? pu : main_pu;
    if (thread->born >= 0) {
        profile_mask_add(out, (uint32_t)thread->born);
    } else if (view) {
        *out = *view;
    }
    return thread->born >= 0 || view;
}

static void copy_stack(const pthread_attr_t *from, pthread_attr_t *to)
{
    void *lowest;
    size_t size;
    if (pthread_attr_getstack(from, &lowest, &size) != 0) {
        return;
    }
    if ((uintptr_t)lowest + size != 0) { /* 0: the program has given none */
        pthread_attr_setstack(to, lowest, size);
    } else {
        pthread_attr_setstacksize(to, size);
    }
}

/* glibc 2.32 and later. */
static void copy_signals(const pthread_attr_t *from, pthread_attr_t *to)
{
    static int (*get)(const pthread_attr_t *, sigset_t *);
    static int (*set)(pthread_attr_t *, const sigset_t *);
    sigset_t signals;
    if (PIN_ONCE(get, dlsym(RTLD_NEXT, "pthread_attr_getsigmask_np")) &&
        PIN_ONCE(set, dlsym(RTLD_NEXT, "pthread_attr_setsigmask_np")) && get(from, &signals) == 0) {
        set(to, &signals);
    }
}

/* Attributes have no copy of their own: what is behind their pointers is shared by a copied
 * structure. 0 or an error number. */
static int copy_attributes(const pthread_attr_t *from, pthread_attr_t *to)
{
    struct sched_param parameters;
    int value, rc = from ? pthread_attr_init(to) : pthread_getattr_default_np(to);
    size_t size;
    if (rc != 0 || !from) {
        return rc;
    }
    if (pthread_attr_getdetachstate(from, &value) == 0) {
        pthread_attr_setdetachstate(to, value);
    }
    if (pthread_attr_getguardsize(from, &size) == 0) {
        pthread_attr_setguardsize(to, size);
    }
    if (pthread_attr_getschedpolicy(from, &value) == 0) {
        pthread_attr_setschedpolicy(to, value);
    }
    if (pthread_attr_getschedparam(from, &parameters) == 0) {
        pthread_attr_setschedparam(to, &parameters);
    }
    if (pthread_attr_getinheritsched(from, &value) == 0) {
        pthread_attr_setinheritsched(to, value);
    }
    copy_stack(from, to);
    copy_signals(from, to);
    return 0;
}

/* Attributes by which the thread starts on its mask. False: those of the program serve. */
static bool make_attributes(const struct birth *birth, struct pin_thread *thread,
                            pthread_attr_t *out)
{
    struct profile_mask mask;
    if (!birth_mask(thread, &mask) || copy_attributes(birth->attributes, out) != 0) {
        return false;
    }
    if (pthread_attr_setaffinity_np(out, sizeof mask, (const cpu_set_t *)&mask) == 0) {
        return true;
    }
    pthread_attr_destroy(out);
    return false;
}

#else

static bool make_attributes(const struct birth *birth, struct pin_thread *thread,
                            pthread_attr_t *out)
{
    (void)birth;
    (void)out;
    thread->born = atomic_load(&thread->pu) < 0 && !pin_process_view() ? PIN_LEFT : -1;
    return false;
}

#endif

/* The kernel has refused the mask: the thread is made as without the shim. */
static void lose_place(struct pin_thread *thread, int error)
{
    pin_process_lock();
    pin_pools_lose(&((struct pin_process *)pin_process_get())->pools, thread);
    thread->born = -1;
    pin_process_unlock();
    if (error == EPERM) { /* and refuses all others */
        pin_failure("cannot pin threads: %s", strerrordesc_np(error));
        pin_process_give_up();
    }
}

/* The thread of a birth that is ours. 0 or an error number. */
static int make(pthread_t *thread, const struct birth *birth, struct pin_thread *ours)
{
    pthread_attr_t own;
    const bool has_own = make_attributes(birth, ours, &own);
    int rc =
        PIN_LIBC(pthread_create)(thread, has_own ? &own : birth->attributes, thread_main, ours);
    if (has_own) {
        pthread_attr_destroy(&own);
    }
    if (has_own && rc != 0 && rc != EAGAIN) {
        lose_place(ours, rc);
        rc = PIN_LIBC(pthread_create)(thread, birth->attributes, thread_main, ours);
    }
    if (rc != 0) {
        end_thread(ours, false);
    }
    return rc;
}

PIN_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                              void *(*start)(void *), void *argument)
{
    struct birth birth = {
        .attributes = attributes, .start = (const void *)(uintptr_t)start, .argument = argument};
    pin_libc_find_all();
    if (!PIN_LIBC(pthread_create)) {
        return ENOSYS;
    }
    struct pin_thread *ours = prepare_thread(&birth);
    return ours ? make(thread, &birth, ours)
                : PIN_LIBC(pthread_create)(thread, attributes, start, argument);
}

PIN_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    struct birth birth = {
        .start = (const void *)(uintptr_t)start, .argument = argument, .is_c11 = true};
    pin_libc_find_all();
    if (!PIN_LIBC(thrd_create) || !PIN_LIBC(pthread_create)) {
        return thrd_error;
    }
    struct pin_thread *ours = prepare_thread(&birth);
    if (!ours) {
        return PIN_LIBC(thrd_create)(thread, start, argument);
    }
    return make(thread, &birth, ours) == 0 ? thrd_success : thrd_error;
}

static void look_again(void)
{
    int saved = errno, cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pin_process_lock();
    pin_process_look_again();
    pin_process_unlock();
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
}

/* While the program waits for a thread anyway, a look at what strangers keep busy can end. */
PIN_EXPORT int pthread_join(pthread_t thread, void **result)
{
    int (*real)(pthread_t, void **) = PIN_LIBC(pthread_join);
    int (*until_then)(pthread_t, void **, const struct timespec *) = PIN_LIBC(pthread_timedjoin_np);
    if (!real) {
        return ENOSYS;
    }
    if (until_then && pin_process_active() && pin_look_is_pending()) {
        const uint64_t until_ns = profile_clock_ns(CLOCK_REALTIME) + pin_look_left_ns();
        const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                       .tv_nsec = (long)(until_ns % 1000000000u)};
        int rc = until_then(thread, result, &until);
        if (rc != ETIMEDOUT) {
            return rc;
        }
        look_again();
    }
    return real(thread, result);
}
