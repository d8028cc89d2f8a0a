/* The process that the shim lives in. */
#include "preload/place/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "preload/interpose/interpose.h"
#include "preload/node/note.h"
#include "preload/place/launcher.h"
#include "preload/place/owner.h"
#include "preload/place/report.h"
#include "profile/base/raw.h"

static struct pin_process process;
static atomic_bool started;
static atomic_bool openmp_found;
static atomic_bool retired;
static pid_t own_pid;

enum { MAIN_FREE = -1, MAIN_CLAIMED = -2, MAIN_LEFT = -3 };
static atomic_int main_pu = MAIN_FREE; /* where the main thread has been put, or one of those */
static pthread_once_t plan_once = PTHREAD_ONCE_INIT;
static bool planned;

/* Set while this thread does the shim's own work. */
static __thread bool inside __attribute__((tls_model("initial-exec")));
static __thread bool own_spread __attribute__((tls_model("initial-exec")));
static __thread bool on_main __attribute__((tls_model("initial-exec")));
/* The thread that the process began with, in a fork's child too: not `on_main`. */
static __thread bool first_stack __attribute__((tls_model("initial-exec")));
/* PU + 1 of this thread if it is another one, 0: not pinned by us. */
static __thread int32_t own_pu __attribute__((tls_model("initial-exec")));

/* Work on a stack of our own: a thread that makes another one may have 16 KiB (PTHREAD_STACK_MIN),
 * which a path and a parser use up. */

/* Reading a profile and making its plan takes 20 KiB. Only what is touched is real. */
#define STACK_BYTES (256 * 1024)

static bool has_little_left(void)
{
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    char here;
#ifdef __SANITIZE_ADDRESS__
    return false; /* it makes small stacks bigger itself */
#endif
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return false;
    }
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    return (uintptr_t)&here - (uintptr_t)lowest < STACK_BYTES;
}

/* Not for every thread: AddressSanitizer, in a program that was built with it, warns of
 * swapcontext(). */
static int on_own_stack(void (*work)(void))
{
    ucontext_t here, there;
    long stack = profile_raw(SYS_mmap, 0, STACK_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack < 0 && stack > -4096) {
        return -ENOMEM;
    }
    getcontext(&there);
    there.uc_stack.ss_sp = (void *)stack;
    there.uc_stack.ss_size = STACK_BYTES;
    there.uc_link = &here;
    makecontext(&there, work, 0);
    swapcontext(&here, &there);
    profile_raw(SYS_munmap, stack, STACK_BYTES, 0, 0, 0, 0);
    return 0;
}

/* Calls `work`, on a stack of our own if the calling thread has little left of its own. `is_first`
 * is for the thread that the process began with, whose stack grows. 0 or -ENOMEM, and it has not
 * been called. Keeps errno. */
static int with_enough_stack(bool is_first, void (*work)(void))
{
    int saved = errno, code = 0;
    if (!is_first && has_little_left()) {
        code = on_own_stack(work);
    } else {
        work();
    }
    errno = saved;
    return code;
}

void pin_process_start(void)
{
    if (atomic_load_explicit(&started, memory_order_acquire)) {
        return;
    }
    /* Only the first caller can be here: no second thread exists before the first interposed call
     * has returned. */
    on_main = first_stack = true;
    own_pid = getpid();
    int saved = errno;
    pin_note_start();
    errno = saved;
    pin_options_read(&process.options);
    pin_owner_extend(process.options.helpers, process.options.workers);
    if (!process.options.disable && profile_mask_get(0, &process.start) < 0) {
        process.options.disable = true;
    }
    atomic_store_explicit(&started, true, memory_order_release);
}

__attribute__((constructor)) static void constructor(void)
{
    pin_process_start();
}

bool pin_process_active(void)
{
    pin_process_start();
    return !process.options.disable && !inside && !pin_process_retired();
}

bool pin_process_retired(void)
{
    return atomic_load_explicit(&retired, memory_order_relaxed);
}

void pin_process_retire(void)
{
    /* A child of vfork() has our memory, but it is not this process that is shut in. */
    if (!pin_process_active() || getpid() != own_pid) {
        return;
    }
    int saved = errno;
    pin_process_unpin_thread();
    if (planned && process.options.verbose) {
        pin_note("process %d: shuts itself in a sandbox; threads are not placed from now on",
                 (int)getpid());
    }
    atomic_store(&retired, true);
    errno = saved;
}

const struct pin_process *pin_process_get(void)
{
    return &process;
}

static void after_fork_in_child(void);

static int watch_forks(void)
{
    static bool watched;
    int code = watched ? 0 : pthread_atfork(NULL, NULL, after_fork_in_child);
    watched = code == 0;
    return code;
}

static void recall_priority(void)
{
    process.recalled_priority = pin_remembered_apply(&process.options, NULL, &process.recalled);
    if (process.recalled_priority && process.options.verbose) {
        pin_note("process %d: %s priority, for the run before was in MPI for %.0f %% of its time",
                 (int)getpid(), process.recalled.communication ? "communication" : "memory",
                 100 * process.recalled.share);
    }
}

static void make_plan(void)
{
    pin_resolve_process_calls();
    pin_launcher_read(process.options.rebind, &process.launcher);
    process.places_exported = pin_places_read(&process.launcher, &process.children);
    if (!process.places_exported) {
        process.children = process.start;
    }
    pin_launcher_allowed(&process.launcher, &process.children, &process.allowed);
    process.users_choice = !process.places_exported && pin_users_places_set();
    if (process.users_choice && pin_owner_runtime_loaded()) {
        pin_process_openmp_found();
    }
    recall_priority();
    struct profile_mask taken;
    pin_claims_begin(&process.claims, &process.options, &process.launcher, &process.allowed,
                     &taken);
    if (pin_plan_make(&process.options, &process.launcher, pin_plan_threads(), &process.allowed,
                      &taken, &process.plan) == 0) {
        if (pin_slots_make(process.plan.count, &process.slots) == 0) {
            planned = watch_forks() == 0;
        }
        if (!planned) {
            pin_failure("no memory for the plan; threads are not pinned");
        }
    }
    pin_claims_commit(&process.claims, planned ? &process.plan.held : NULL);
}

static void make_plan_aside(void)
{
    inside = true;
    if (with_enough_stack(first_stack, make_plan) < 0) {
        pin_failure("no memory for the plan; threads are not pinned");
    }
    inside = false;
}

size_t pin_process_take_slot(struct pin_process *this, unsigned pool)
{
    size_t slot = pin_slots_take(&this->slots, pool);
    for (size_t i = 1; i < this->slots.count && pin_slots_is_new(&this->slots, slot); i++) {
        if (pin_claims_try(&this->claims, this->plan.pus[slot])) {
            break;
        }
        /* Another program has come to that PU since the plan was made. */
        pin_slots_avoid(&this->slots, slot);
        pin_slots_give_back(&this->slots, pool, slot);
        slot = pin_slots_take(&this->slots, pool);
    }
    return slot;
}

struct pin_process *pin_process_plan(void)
{
    pthread_once(&plan_once, make_plan_aside);
    return planned ? &process : NULL;
}

/* Has the program, or a runtime in it, changed the main thread's mask since it started? */
static bool bound_by_program(const struct pin_process *this)
{
    struct profile_mask now, first = {0};
    if (profile_mask_get(getpid(), &now) < 0 || profile_mask_equal(&now, &this->start)) {
        return false;
    }
    /* A runtime that follows servet-pin's places puts the main thread where we would. */
    profile_mask_add(&first, this->plan.pus[0]);
    return !this->places_exported || !profile_mask_equal(&now, &first);
}

/* The user's word for OpenMP counts for the whole process once there is a runtime in it that heeds
 * it. */
bool pin_process_left_to_user(const struct pin_process *this)
{
    return this->users_choice && !this->options.force &&
           atomic_load_explicit(&openmp_found, memory_order_relaxed);
}

void pin_process_openmp_found(void)
{
    atomic_store_explicit(&openmp_found, true, memory_order_relaxed);
}

static void say_main(const struct pin_process *this, uint32_t pu)
{
    const struct pin_launcher *launcher = &this->launcher;
    if (!this->options.verbose) {
        return;
    }
    if (launcher->name) {
        pin_note("process %d: rank %u of %u on this node (%s): main thread on PU %u (%s)",
                 (int)getpid(), launcher->local_rank, launcher->local_size, launcher->name, pu,
                 this->plan.source);
    } else {
        pin_note("process %d: main thread on PU %u (%s)", (int)getpid(), pu, this->plan.source);
    }
}

/* MAIN_FREE -> MAIN_CLAIMED by the one thread that places the main thread -> its PU, or MAIN_LEFT
 * for good. */
static bool claim_main(const struct pin_process *this)
{
    int expected = MAIN_FREE;
    if (!atomic_compare_exchange_strong(&main_pu, &expected, MAIN_CLAIMED)) {
        return false;
    }
    const char *winner = NULL;
    if (pin_process_left_to_user(this)) {
        winner = "the environment's OpenMP variables";
    } else if (!this->options.force && bound_by_program(this)) {
        winner = "the program";
    }
    if (!winner) {
        pin_memory_follow(&this->options, &this->plan.nodes);
        return true;
    }
    atomic_store(&main_pu, MAIN_LEFT);
    pin_report_main(&this->options, -1, winner);
    if (this->options.verbose) {
        pin_note("process %d: main thread stays where %s wants it", (int)getpid(), winner);
    }
    return false;
}

static void place_main(const struct pin_process *this)
{
    uint32_t pu = this->plan.pus[0];
    int code = profile_mask_set_pu(getpid(), pu);
    atomic_store(&main_pu, code < 0 ? MAIN_LEFT : (int)pu);
    if (code < 0) {
        pin_failure("cannot pin the main thread to PU %u: %s", pu, strerrordesc_np(-code));
    } else {
        say_main(this, pu);
    }
    pin_report_main(&this->options, code < 0 ? -1 : (int32_t)pu, "servet");
}

void pin_process_pin_main(const struct pin_process *this)
{
    if (atomic_load_explicit(&main_pu, memory_order_relaxed) == MAIN_FREE && claim_main(this)) {
        place_main(this);
    }
}

bool pin_process_widen_main(const struct pin_process *this)
{
    if (!claim_main(this)) {
        return false;
    }
    int code = profile_mask_set(getpid(), &this->plan.own);
    if (code < 0) {
        pin_failure("cannot give the rank its PUs: %s", strerrordesc_np(-code));
    }
    return true;
}

void pin_process_narrow_main(const struct pin_process *this)
{
    place_main(this);
}

int32_t pin_process_thread_pu(void)
{
    int32_t pu = on_main ? atomic_load_explicit(&main_pu, memory_order_relaxed) : own_pu - 1;
    return pu >= 0 ? pu : -1;
}

void pin_process_set_thread_pu(int32_t pu)
{
    own_pu = pu + 1;
    own_spread = false;
}

void pin_process_set_thread_spread(void)
{
    own_spread = true;
}

/* The mask that we gave to the calling thread last. */
static bool given_mask(struct profile_mask *out)
{
    int32_t pu = pin_process_thread_pu();
    bool spread =
        on_main ? atomic_load_explicit(&main_pu, memory_order_relaxed) == MAIN_CLAIMED : own_spread;
    *out = (struct profile_mask){0};
    if (pu >= 0) {
        profile_mask_add(out, (uint32_t)pu);
    } else if (spread) {
        *out = process.plan.own;
    }
    return pu >= 0 || spread;
}

bool pin_process_unpin_thread(void)
{
    struct profile_mask given, now;
    if (!given_mask(&given) || profile_mask_get(0, &now) < 0 || !profile_mask_equal(&now, &given)) {
        return false;
    }
    return profile_mask_set(0, &process.children) == 0;
}

void pin_process_repin_thread(void)
{
    struct profile_mask given;
    if (given_mask(&given)) {
        profile_mask_set(0, &given);
    }
}

/* The child of a fork has one thread, on the mask the process was started with, and starts afresh:
 * it is another process, and what others hold has changed. (The old plan's memory is left, for
 * another thread may have been at it.)
 */
static void after_fork_in_child(void)
{
    static const pthread_once_t again = PTHREAD_ONCE_INIT;
    if (!pin_process_retired() && pin_process_unpin_thread()) {
        process.start = process.children;
    }
    on_main = true;
    own_pid = getpid();
    own_pu = 0;
    own_spread = false;
    atomic_store(&main_pu, MAIN_FREE);
    planned = false;
    process.claims = (struct pin_claims){0};
    pin_report_reset();
    plan_once = again;
}

static void say_goodbye(void)
{
    pin_claims_end(&process.claims);
    pin_report_write(&process.options, &process.launcher,
                     process.recalled_priority ? &process.recalled : NULL);
}

/* A process that ends otherwise is dropped from the registry by the next one that looks. */
__attribute__((destructor)) static void destructor(void)
{
    if (!planned || pin_process_retired()) {
        return;
    }
    inside = true;
    (void)with_enough_stack(first_stack, say_goodbye);
}

const struct profile_mask *pin_process_view(void)
{
    return pin_process_thread_pu() >= 0 ? &process.plan.own : NULL;
}
