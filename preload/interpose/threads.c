/* Interposed: the ways to make a thread.
 *
 *   pthread_create   every OpenMP runtime, std::thread, Python, Java … come through here
 *   thrd_create      C11; glibc makes these threads inside itself, without calling pthread_create
 *                    through the symbol
 *
 * Not seen, because no dynamic symbol is used: SIGEV_THREAD timers and other threads glibc makes
 * for itself, objects loaded with RTLD_DEEPBIND or dlmopen, static programs, clone() (Go). */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <threads.h>

#include "preload/interpose/interpose.h"
#include "preload/node/log.h"
#include "preload/place/process.h"
#include "preload/place/report.h"
#include "preload/place/watch.h"
#include "profile/base/clock.h"
#include "profile/base/syscall.h"
#include "profile/processes/roles.h"

/* -- attributes of the program -- */

/* Has the program given this thread a mask of its own? `pu`: the one PU of it, or unchanged. An
 * attribute without one answers with all bits set. In musl attributes have none. */
__attribute__((noinline)) static bool has_mask(const pthread_attr_t *attributes, int32_t *pu)
{
#ifdef NO_ATTRIBUTE_MASKS
    (void)attributes, (void)pu;
    return false;
#else
    struct profile_mask mask;
    if (PIN_LIBC(pthread_attr_getaffinity_np)(attributes, sizeof mask, (cpu_set_t *)&mask) != 0) {
        return true; /* PUs beyond these */
    }
    if (!~mask.word[PROFILE_MASK_WORDS - 1]) {
        return false;
    }
    *pu = profile_mask_count(&mask) == 1 ? (int32_t)profile_mask_next(&mask, 0) : *pu;
    return true;
#endif
}

static bool has_affinity(const pthread_attr_t *attributes, int32_t *pu)
{
    pthread_attr_t defaults;
    int32_t unasked = -1;
    if (attributes) {
        return has_mask(attributes, pu);
    }
    if (PIN_LIBC(pthread_getattr_default_np)(&defaults) != 0) {
        return false;
    }
    const bool has = has_mask(&defaults, &unasked);
    PIN_LIBC(pthread_attr_destroy)(&defaults);
    return has;
}

/* -- the decision, in the creator -- */

/* The call that makes a thread. */
struct creation {
    const pthread_attr_t *attributes; /* the program's, or NULL */
    const void *start, *code;
    void *argument;
    bool chosen;   /* they have a mask */
    int32_t asked; /* the one PU of it, of a runtime's thread; else -1 */
    enum profile_owner owner;
    const char *dso;
    bool is_c11;
};

static struct pin_thread *new_record(const struct creation *call, enum profile_role role,
                                     enum profile_decider decider)
{
    struct pin_thread *thread = pin_record_take();
    if (!thread) {
        pin_failure("too many threads at once; this one is not pinned");
        return NULL;
    }
    thread->start = (void *)(uintptr_t)call->start;
    thread->argument = call->argument;
    thread->is_c11 = call->is_c11;
    thread->routine = call->code;
    thread->dso = call->dso;
    thread->role = role;
    atomic_store(&thread->decider, decider);
    return thread;
}

/* A thread that is not ours to place must not inherit the one PU of a creator that is. */
static struct pin_thread *prepare_free(const struct creation *call, enum profile_role role,
                                       enum profile_decider decider)
{
    return pin_process_view() ? new_record(call, role, decider) : NULL;
}

/* Born where its creator's process may run. */
static struct pin_thread *prepare_brief(const struct creation *call)
{
    const struct pin_options *options = &pin_here.options;
    const bool is_seen = options->verbose || options->report || pin_process_view();
    return is_seen || pin_brief_is_sampled(call->code)
               ? new_record(call, PROFILE_ROLE_BRIEF, PROFILE_BY_KERNEL)
               : NULL;
}

/* A thread that keeps the mask which its attributes, or its creator's, were given. */
static void note_kept(const char *dso)
{
    pin_here.pools.pool[pin_pools_find(&pin_here.pools, dso)].cause = PIN_CAUSE_MASK;
}

/* The team is the first OpenMP runtime's whose threads the main thread makes; of any other runtime,
 * and where another thread makes them, they are a library's. */
static bool is_of_team(const struct creation *call, unsigned pool)
{
    if (call->owner == PROFILE_OWNER_RUNTIME && pin_here.pools.team == PIN_POOLS &&
        pin_self.is_main) {
        pin_here.pools.team = pool;
    }
    return pin_here.pools.team == pool;
}

/* OpenMP threads of a rank that are more than its part of the node, and wait busily because they
 * are no more than the PUs that the runtime counted when the program began: then each that waits
 * takes the PU of the one it waits for. Under servet-pin the runtime has counted that part. */
static bool outgrows_its_part(void)
{
    const char *policy = pin_environment("OMP_WAIT_POLICY");
    return pin_here.launcher.local_size > 1 && !pin_here.places_exported &&
           pin_here.pools.count < profile_mask_count(&pin_here.start) &&
           !(policy && strcasecmp(policy, "passive") == 0);
}

/* To be done before a thread can be made. */
enum wish { NO_WISH, WATCH_STARTS, ALL_ENDS };

static struct pin_thread *prepare_worker(const struct creation *call, size_t wanted,
                                         enum wish *wish)
{
    if (pin_watch_is_due()) {
        *wish = WATCH_STARTS;
        return NULL;
    }
    const enum profile_role role =
        call->owner == PROFILE_OWNER_OTHER ? PROFILE_ROLE_THREAD : PROFILE_ROLE_WORKER;
    const unsigned pool = pin_pools_find(&pin_here.pools, call->dso);
    const bool team = is_of_team(call, pool);
    const bool fits = !team || wanted != PIN_NO_PLACE || pin_pools_team_fits(&pin_here.pools);
    if (!fits && outgrows_its_part()) {
        *wish = ALL_ENDS;
        pin_pools_note_cause(&pin_here.pools, pool);
        return NULL;
    }
    if ((team && fits) || pin_here.launcher.name) {
        pin_process_pin_main();
    }
    struct pin_thread *thread = new_record(call, role, PROFILE_BY_SERVET);
    if (!thread) {
        return NULL;
    }
    pin_process_put_memory();
    thread->pool = pool;
    thread->place = pin_pools_admit(&pin_here.pools, pool, wanted);
    if (thread->place == PIN_NO_PLACE) {
        atomic_store(&thread->decider, PROFILE_BY_KERNEL);
        return thread;
    }
    const struct pin_place *place = &pin_here.pools.places[thread->place];
    atomic_store(&thread->pu, (int)place->pu);
    pin_process_make_room(place->pu);
    return thread;
}

/* Is it a helper, or of a kind that lives briefly? */
static bool is_apart(const struct creation *call)
{
    return call->owner == PROFILE_OWNER_HELPER || (!call->chosen && pin_brief(call->code));
}

static struct pin_thread *prepare_record(const struct creation *call, enum wish *wish)
{
    const bool force = pin_here.options.force;
    if (atomic_load(&pin_life.broken)) {
        *wish = ALL_ENDS;
        return NULL;
    }
    if (is_apart(call)) {
        return call->owner == PROFILE_OWNER_HELPER
                   ? prepare_free(call, PROFILE_ROLE_HELPER, PROFILE_BY_KERNEL)
                   : prepare_brief(call);
    }
    if (pin_life_state() != PLANNED) {
        return NULL;
    }
    const size_t wanted = pin_here.places_exported && call->asked >= 0
                              ? pin_pools_place_of(&pin_here.pools, (uint32_t)call->asked)
                              : PIN_NO_PLACE;
    if (pin_process_left_to_user()) {
        pin_process_say_main_stays();
        return call->chosen ? NULL : prepare_free(call, PROFILE_ROLE_WORKER, PROFILE_BY_USER);
    }
    if (wanted == PIN_NO_PLACE && !force && call->chosen) {
        note_kept(call->dso);
        return NULL;
    }
    if (wanted == PIN_NO_PLACE && !force && pin_process_thread_is_bound()) {
        pin_process_say_main_stays();
        note_kept(call->dso);
        return NULL;
    }
    return prepare_worker(call, wanted, wish);
}

static void give_up(const struct creation *call)
{
    pin_log(pin_here.options.verbose && atomic_load(&pin_life.broken),
            "a thread was killed while it placed another: nothing is placed");
    pin_log(pin_here.options.verbose && !atomic_load(&pin_life.broken),
            "rank %u of %u has more threads of %s than PUs: nothing is placed (servet-pin in "
            "front of the program would)",
            pin_here.launcher.local_rank, pin_here.launcher.local_size, call->dso);
    pin_process_give_up();
}

/* With a plan, where the thread needs one. Apart: tests/preload/under_the_lock reads its code. */
__attribute__((noinline)) static struct pin_thread *prepare_with_plan(const struct creation *call,
                                                                      enum wish *wish)
{
    const enum pin_comes comes =
        call->owner == PROFILE_OWNER_RUNTIME && pin_self.is_main ? PIN_TEAM_COMES : PIN_REST_COMES;
    pin_process_lock();
    if (pin_process_wants_plan(comes) && !is_apart(call)) {
        pin_process_unlock();
        (void)pin_process_plan(comes);
        pin_process_lock();
    }
    struct pin_thread *thread = prepare_record(call, wish);
    if (*wish == WATCH_STARTS) {
        *wish = NO_WISH;
        pin_process_unlock();
        pin_watch_start();
        pin_process_lock();
        thread = prepare_record(call, wish);
    }
    if (thread) {
        thread->born_ns = profile_now_ns();
    }
    const int32_t pu = thread ? atomic_load(&thread->pu) : PIN_LEFT;
    pin_process_unlock();
    pin_check_laid(atomic_load(&pin_life.main_pu));
    pin_check_laid(pu);
    pin_why_say();
    return thread;
}

/* Called in the creating thread, so that places follow the order of creation and not the order in
 * which threads happen to start. NULL: leave this thread alone; else the record of it. errno is
 * left alone. */
static struct pin_thread *prepare_thread(struct creation *call)
{
    int saved = errno;
    enum wish wish = NO_WISH;
    struct pin_shield shield;
    struct pin_thread *thread = NULL;
    if (!pin_process_active()) {
        return NULL;
    }
    pin_shield_raise(&shield); /* pthread_create() is no cancellation point */
    if (pin_process_may_call() && (pin_here.options.force || !pin_owner_program_is_managed())) {
        call->owner = pin_owner_of_thread(call->start, call->argument, &call->dso, &call->code);
        if (call->owner == PROFILE_OWNER_RUNTIME) {
            atomic_store(&pin_life.openmp_found, true);
        }
        int32_t pu = -1;
        call->chosen = has_affinity(call->attributes, &pu);
        call->asked = call->owner == PROFILE_OWNER_RUNTIME ? pu : -1;
        thread = prepare_with_plan(call, &wish);
        if (wish == ALL_ENDS) {
            give_up(call);
        }
    }
    pin_shield_lower(&shield);
    errno = saved;
    return thread;
}

/* -- the life of a thread -- */

/* Also in a sandbox: it takes no other calls than libc's own end of a thread does. */
static void end_thread(struct pin_thread *thread, bool lived)
{
    const uint64_t now_ns = profile_now_ns();
    pin_process_lock();
    const bool brief = lived && pin_brief_ended(thread->routine, now_ns - thread->born_ns);
    pin_pools_end(&pin_here.pools, thread, brief);
    pin_record_give_back(thread);
    const bool was_last = pin_pools_threads(&pin_here.pools) == 0;
    pin_process_unlock();
    if (was_last) {
        (void)pin_watch_stop();
    }
}

static void release(void *argument)
{
    struct pin_thread *thread = argument;
    if (pin_process_active()) {
        pin_report_end(atomic_load(&thread->report_line));
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

/* A line that is written must not be the end of a thread that has not begun. */
static void begin_thread(struct pin_thread *thread)
{
    const struct pin_options *options = &pin_here.options;
    struct pin_shield shield;
    if (thread->pool == PIN_POOLS && thread->made_on == PIN_LEFT && !options->verbose &&
        !options->report) {
        return; /* never moved: most short-lived threads are of this kind */
    }
    pin_shield_raise(&shield);
    const int rc = pin_process_take_place(thread);
    const int32_t pu = atomic_load(&thread->pu);
    if (pin_process_active()) { /* no sandbox has come, and all was not given up */
        atomic_store(&thread->report_line,
                     pin_report_begin(thread->role, pu < 0 ? -1 : pu,
                                      (enum profile_decider)atomic_load(&thread->decider)));
        if (rc < 0 && rc != -ECANCELED && pu >= 0) {
            pin_failure("cannot pin a thread to PU %d: %s", pu, strerrordesc_np(-rc));
        } else if (rc == 0 && options->verbose) {
            say_thread(thread);
        }
    }
    pin_shield_lower(&shield);
}

/* From outside a thread's role is known by its record (profile/processes/roles.c). */
_Static_assert(offsetof(struct pin_thread, routine) == offsetof(struct profile_thread_record, code),
               "the code comes first");
_Static_assert(offsetof(struct pin_thread, pu) == offsetof(struct profile_thread_record, pu),
               "then the PU");

/* The start routine to hand to the library: begin, run the program's, give the place back. C11
 * threads are POSIX threads in glibc and in musl: their result is the number in the pointer. */
static void *thread_main(void *argument)
{
    struct pin_thread *thread = argument;
    struct pin_shield shield;
    void *result;
    begin_thread(thread);
    /* Also runs at pthread_exit() and at cancellation. */
    pthread_cleanup_push(release, thread);
    if (thread->is_c11) {
        result = (void *)(intptr_t)((thrd_start_t)thread->start)(thread->argument);
    } else {
        result = ((void *(*)(void *))thread->start)(thread->argument);
    }
    /* From here on it ends by itself: between the two steps of the next line no one would do it. */
    pin_shield_raise(&shield);
    pthread_cleanup_pop(1);
    pin_shield_lower(&shield);
    return result;
}

static int standard_main(void *argument)
{
    return (int)(intptr_t)thread_main(argument);
}

/* -- creation -- */

#ifndef NO_ATTRIBUTE_MASKS

/* `mask`, NULL: of one PU, on as little stack as that needs. 0 or an error number. */
static int set_attribute_mask(pthread_attr_t *attributes, const struct profile_mask *mask,
                              uint32_t pu)
{
    if (mask) {
        return PIN_LIBC(pthread_attr_setaffinity_np)(attributes, sizeof *mask,
                                                     (const cpu_set_t *)mask);
    }
    const size_t words = pu / PROFILE_MASK_WORD_BITS + 1;
    unsigned long word[words];
    memset(word, 0, words * sizeof *word);
    word[words - 1] = 1ul << (pu % PROFILE_MASK_WORD_BITS);
    return PIN_LIBC(pthread_attr_setaffinity_np)(attributes, words * sizeof *word,
                                                 (cpu_set_t *)word);
}

/* Takes all from the program's attributes but what tells `to`, which have a mask, from new ones:
 * what is not set stays so. False: the program's have something there too (a mask, signals), behind
 * a pointer that must not be shared. */
static bool take_rest(const pthread_attr_t *from, pthread_attr_t *to)
{
    enum { WORDS = sizeof *to / sizeof(size_t) };
    size_t fresh[WORDS], theirs[WORDS], ours[WORDS];
    pthread_attr_t plain;
    if (PIN_LIBC(pthread_attr_init)(&plain) != 0) {
        return false;
    }
    memcpy(fresh, &plain, sizeof fresh);
    memcpy(theirs, from, sizeof theirs);
    memcpy(ours, to, sizeof ours);
    PIN_LIBC(pthread_attr_destroy)(&plain);
    for (size_t i = 0; i < WORDS; i++) {
        if (ours[i] != fresh[i] && theirs[i] != fresh[i]) {
            return false;
        }
        ours[i] = ours[i] == fresh[i] ? theirs[i] : ours[i];
    }
    memcpy(to, ours, sizeof ours);
    return true;
}

/* The program's attributes with a mask. False: there is no such copy. */
static bool copy_attributes(const pthread_attr_t *from, const struct profile_mask *mask,
                            uint32_t pu, pthread_attr_t *out)
{
    if ((from ? PIN_LIBC(pthread_attr_init)(out) : PIN_LIBC(pthread_getattr_default_np)(out)) !=
        0) {
        return false;
    }
    if (set_attribute_mask(out, mask, pu) == 0 && (!from || take_rest(from, out))) {
        return true;
    }
    PIN_LIBC(pthread_attr_destroy)(out);
    return false;
}

#else

static bool copy_attributes(const pthread_attr_t *from, const struct profile_mask *mask,
                            uint32_t pu, pthread_attr_t *out)
{
    (void)from, (void)mask, (void)pu, (void)out;
    return false;
}

#endif

/* Attributes by which the thread starts on its mask. False: it is made by those of the program, and
 * moves itself where these do not do. A pool's thread that is left beside a team is made on the
 * main thread's PU (masks.c, replace_mask()). */
static bool make_attributes(const struct creation *call, struct pin_thread *thread,
                            pthread_attr_t *out)
{
    const int32_t pu = atomic_load(&thread->pu), main_pu = atomic_load(&pin_life.main_pu);
    const struct profile_mask *view = pin_process_view();
    thread->made_on = pu >= 0 || thread->pool == PIN_POOLS || main_pu < 0 ? pu : main_pu;
    if (thread->made_on < 0 && !view) {
        return false;
    }
    if (copy_attributes(call->attributes, thread->made_on < 0 ? view : NULL,
                        (uint32_t)thread->made_on, out)) {
        return true;
    }
    thread->made_on = call->asked >= 0 && call->asked == pu ? pu : -1;
    return false;
}

/* Every mask is refused, by a filter or a kernel. */
static bool is_refusal(int error)
{
    return error == EPERM || error == ENOSYS;
}

/* The thread is made as without the shim, and tries no mask that is refused. Apart:
 * tests/preload/under_the_lock reads its code. */
__attribute__((noinline)) static void lose_place(struct pin_thread *thread, int error)
{
    pin_process_lock();
    pin_pools_lose(&pin_here.pools, thread);
    thread->made_on = is_refusal(error) ? PIN_LEFT : -1;
    pin_process_unlock();
}

/* As libc's. The watch is a thread less that may be made. */
static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                  void *argument)
{
    int rc;
    do {
        rc = PIN_LIBC(pthread_create)(thread, attributes, start, argument);
    } while (rc == EAGAIN && pin_watch_stop());
    return rc;
}

/* By the function that the program called, with its result: musl's C11 threads begin with other
 * signals. */
static int make_plainly(pthread_t *thread, const struct creation *call, struct pin_thread *ours)
{
    return call->is_c11 ? PIN_LIBC(thrd_create)((thrd_t *)thread, standard_main, ours)
                        : create(thread, call->attributes, thread_main, ours);
}

/* The thread that the call makes is ours. As make_plainly(). */
static int make(pthread_t *thread, const struct creation *call, struct pin_thread *ours)
{
    pthread_attr_t own;
    int refused = 0;
    if (make_attributes(call, ours, &own)) {
        refused = create(thread, &own, thread_main, ours);
        PIN_LIBC(pthread_attr_destroy)(&own);
        if (refused == 0) {
            return 0;
        }
        lose_place(ours, refused);
    }
    const int rc = make_plainly(thread, call, ours);
    /* Else it was not the mask. The kernel refuses all other masks, too. */
    if (rc == 0 && is_refusal(refused)) {
        pin_failure("cannot pin threads: %s", strerrordesc_np(refused));
        pin_process_give_up();
    }
    if (rc != 0) {
        end_thread(ours, false);
    }
    return rc;
}

PIN_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                              void *(*start)(void *), void *argument)
{
    struct creation call = {
        .attributes = attributes, .start = (const void *)(uintptr_t)start, .argument = argument};
    pin_libc_find_all();
    struct pin_thread *ours = prepare_thread(&call);
    return ours ? make(thread, &call, ours) : create(thread, attributes, start, argument);
}

PIN_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    struct creation call = {
        .start = (const void *)(uintptr_t)start, .argument = argument, .is_c11 = true};
    pin_libc_find_all();
    struct pin_thread *ours = prepare_thread(&call);
    if (!ours) {
        return PIN_LIBC(thrd_create)(thread, start, argument);
    }
    return make((pthread_t *)thread, &call, ours);
}
