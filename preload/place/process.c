/* The process that the shim lives in.
 *
 * Its life, in one struct:
 *
 *    NEW --start--> IDLE --first thread, MPI_Init--> PLANNED    (or FAILED: no plan can be made)
 *     |              ^ |                                |
 *     | privileged   | +-------------+------------------+
 *     v              |               | sandbox of all threads
 *    RETIRED <-----------------------+
 *                    |
 *                    +-- the child of a fork, from IDLE, PLANNED and FAILED
 *
 * The main thread's place (`main_pu`), which whoever makes the first worker gives to it:
 *
 *    MAIN_FREE --claim--> MAIN_CLAIMED --> its PU (>= 0) --the program binds it--> MAIN_LEFT
 *                              +---------> MAIN_LEFT: the user, the program or the kernel objects
 *
 * And each thread's mask: its own business (MASK_FREE), one PU of ours (MASK_PU) or all PUs of the
 * plan by our doing (MASK_SPREAD); it is free again as soon as somebody else has changed it.
 */
#include "preload/place/place.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "preload/interpose/interpose.h"
#include "preload/node/node.h"
#include "profile/base/raw.h"

static struct pin_process process;

enum { NEW, IDLE, PLANNED, FAILED, RETIRED };
enum { MAIN_FREE = -1, MAIN_CLAIMED = -2, MAIN_LEFT = -3 };

static struct {
    atomic_int state;
    atomic_int main_pu;
    atomic_bool openmp_found;
    atomic_int calls;   /* threads that are changing a mask at this moment */
    atomic_int shut_of; /* the state before the sandbox that is being made, 0: none */
    pid_t pid;          /* not a vfork child's */
    pthread_once_t planning;
    bool forks_seen;
} life = {.main_pu = MAIN_FREE, .planning = PTHREAD_ONCE_INIT};

static __thread struct {
    bool inside;     /* does the shim's own work */
    bool is_main;    /* also in a fork's child, whose one thread is the main thread from then on */
    bool is_first;   /* the thread that the process began with, in a fork's child too */
    bool shut;       /* in a sandbox of its own */
    bool shut_child; /* its vfork child is */
    enum { MASK_FREE, MASK_PU, MASK_SPREAD } mask; /* of a thread that is not main */
    int32_t pu;
} self __attribute__((tls_model("initial-exec")));

static int life_state(void)
{
    return atomic_load_explicit(&life.state, memory_order_acquire);
}

void pin_process_start(void)
{
    if (life_state() != NEW) {
        return;
    }
    /* Only the first caller can be here: no second thread exists before the first interposed call
     * has returned. */
    if (pin_options_privileged()) {
        atomic_store_explicit(&life.state, RETIRED, memory_order_release);
        return;
    }
    self.is_main = self.is_first = true;
    life.pid = getpid();
    int saved = errno;
    pin_note_start();
    errno = saved;
    pin_options_read(&process.options);
    pin_owner_extend(process.options.helpers, process.options.workers);
    bool off = process.options.disable || profile_mask_get(0, &process.start) < 0;
    atomic_store_explicit(&life.state, off ? RETIRED : IDLE, memory_order_release);
}

__attribute__((constructor)) static void constructor(void)
{
    pin_process_start();
}

bool pin_process_active(void)
{
    pin_process_start();
    return !pin_process_retired() && !self.inside && !self.shut;
}

bool pin_process_retired(void)
{
    return atomic_load_explicit(&life.state, memory_order_relaxed) == RETIRED;
}

const struct pin_process *pin_process_get(void)
{
    return &process;
}

/* -- masks -- */

/* Changes a mask, unless a sandbox of all threads has been announced: whoever announces one waits
 * for those who are at it. `mask` NULL: one PU. 0, -ECANCELED, as sched_setaffinity(2). */
static int change_mask(pid_t tid, const struct profile_mask *mask, uint32_t pu)
{
    int rc = -ECANCELED;
    atomic_fetch_add(&life.calls, 1);
    if (atomic_load(&life.state) != RETIRED) {
        rc = mask ? profile_mask_set(tid, mask) : profile_mask_set_pu(tid, pu);
    }
    atomic_fetch_sub(&life.calls, 1);
    return rc;
}

int32_t pin_process_thread_pu(void)
{
    if (self.is_main) {
        int pu = atomic_load_explicit(&life.main_pu, memory_order_relaxed);
        return pu >= 0 ? pu : -1;
    }
    return self.mask == MASK_PU ? self.pu : -1;
}

void pin_process_forget_thread(void)
{
    if (!self.is_main) {
        self.mask = MASK_FREE;
    } else if (atomic_load(&life.main_pu) >= 0) {
        atomic_store(&life.main_pu, MAIN_LEFT);
    }
}

int pin_process_settle_thread(int32_t pu)
{
    int rc = change_mask(0, pu < 0 ? &process.plan.own : NULL, (uint32_t)pu);
    if (rc == 0) {
        self.mask = pu < 0 ? MASK_SPREAD : MASK_PU;
        self.pu = pu;
    }
    return rc;
}

/* The mask that we gave to the calling thread last. */
static bool given_mask(struct profile_mask *out)
{
    int32_t pu = pin_process_thread_pu();
    bool spread = self.is_main
                      ? atomic_load_explicit(&life.main_pu, memory_order_relaxed) == MAIN_CLAIMED
                      : self.mask == MASK_SPREAD;
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
    if (self.shut_child || !given_mask(&given) || profile_mask_get(0, &now) < 0 ||
        !profile_mask_equal(&now, &given)) {
        return false;
    }
    return change_mask(0, &process.children, 0) == 0;
}

void pin_process_repin_thread(void)
{
    struct profile_mask given, now;
    self.shut_child = false; /* only a child that did not become another program is still in it */
    if (!given_mask(&given) || profile_mask_get(0, &now) < 0) {
        return;
    }
    if (profile_mask_equal(&now, &process.children)) {
        change_mask(0, &given, 0);
    } else {
        pin_process_forget_thread();
    }
}

const struct profile_mask *pin_process_view(void)
{
    if (pin_process_thread_pu() < 0) {
        return NULL;
    }
    return process.launcher.name ? &process.plan.own : &process.start;
}

/* -- sandboxes -- */

static struct profile_mask one_pu(int32_t pu)
{
    struct profile_mask mask = {0};
    profile_mask_add(&mask, (uint32_t)pu);
    return mask;
}

/* One thread that we have pinned gets the one mask in place of the other, if it has that. */
static bool exchange_mask(pid_t tid, const struct profile_mask *from, const struct profile_mask *to)
{
    struct profile_mask now;
    return profile_mask_get(tid, &now) == 0 && profile_mask_equal(&now, from) &&
           profile_mask_set(tid, to) == 0;
}

/* The thread that is being looked at. Records do not know their threads by number: asking for it
 * would be one more system call in every thread, for what happens once in few programs. */
static pid_t looked_at;

static void unpin_if_it(struct pin_thread *thread)
{
    if (looked_at == 0 || thread->tid != 0 || thread->pu < 0 || !atomic_load(&thread->runs)) {
        return;
    }
    struct profile_mask given = one_pu(thread->pu);
    if (exchange_mask(looked_at, &given, &process.children)) {
        thread->tid = looked_at;
        looked_at = 0;
    }
}

static void repin(struct pin_thread *thread)
{
    if (thread->tid != 0 && thread->pu >= 0) {
        struct profile_mask given = one_pu(thread->pu);
        (void)exchange_mask(thread->tid, &process.children, &given);
    }
    thread->tid = 0;
}

static void unpin_everybody(void)
{
    struct dirent *entry;
    int32_t main_pu = atomic_load(&life.main_pu);
    if (main_pu >= 0) {
        struct profile_mask given = one_pu(main_pu);
        (void)exchange_mask(life.pid, &given, &process.children);
    }
    DIR *folder = opendir("/proc/self/task");
    while (folder && (entry = readdir(folder))) {
        looked_at = atoi(entry->d_name);
        pin_records_each(unpin_if_it);
    }
    if (folder) {
        closedir(folder);
    }
}

static void shut_everybody(void)
{
    int before = atomic_exchange(&life.state, RETIRED);
    atomic_store(&life.shut_of, before);
    while (atomic_load(&life.calls) > 0) {
        sched_yield();
    }
    if (before == PLANNED) {
        unpin_everybody();
    }
}

bool pin_process_shut_begin(bool everybody)
{
    if (!pin_process_active()) {
        return false;
    }
    int saved = errno;
    bool of_child = getpid() != life.pid; /* a child of vfork() has our memory */
    if (!of_child && life_state() == PLANNED && process.options.verbose) {
        pin_note("process %d: %s in a sandbox; threads are not placed %s", (int)life.pid,
                 everybody ? "shuts itself" : "a thread shuts itself",
                 everybody ? "from now on" : "by it from now on");
    }
    if (of_child) {
        pin_process_unpin_thread();
        self.shut_child = true;
    } else if (everybody) {
        shut_everybody();
    } else {
        pin_process_unpin_thread();
        self.shut = true;
    }
    errno = saved;
    return true;
}

void pin_process_shut_failed(bool everybody)
{
    int saved = errno;
    if (!self.shut && !self.shut_child && everybody) {
        int before = atomic_exchange(&life.shut_of, 0);
        if (before == PLANNED && atomic_load(&life.main_pu) >= 0) {
            struct profile_mask given = one_pu(atomic_load(&life.main_pu));
            (void)exchange_mask(life.pid, &process.children, &given);
        }
        pin_records_each(repin);
        atomic_store(&life.state, before);
    } else {
        self.shut = false;
        pin_process_repin_thread();
    }
    errno = saved;
}

/* -- the plan -- */

static void after_fork_in_child(void);

static int watch_forks(void)
{
    int code = life.forks_seen ? 0 : pthread_atfork(NULL, NULL, after_fork_in_child);
    life.forks_seen = code == 0;
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
    pin_options_say_refused(&process.options);
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
    /* Before the registry is opened: a fork must not keep it. */
    bool made =
        watch_forks() == 0 && pin_plan_make(&process.options, &process.launcher, pin_plan_threads(),
                                            &process.allowed, &process.claims, &process.plan) == 0;
    if (made && pin_slots_make(process.plan.count, &process.slots) < 0) {
        pin_failure("no memory for the plan; threads are not pinned");
        made = false;
    }
    atomic_store_explicit(&life.state, made ? PLANNED : FAILED, memory_order_release);
}

static void make_plan_aside(void)
{
    self.inside = true;
    if (pin_pages_with_stack(self.is_first, make_plan) < 0) {
        pin_failure("no memory for the plan; threads are not pinned");
        atomic_store_explicit(&life.state, FAILED, memory_order_release);
    }
    self.inside = false;
}

size_t pin_process_take_slot(struct pin_process *this, unsigned pool)
{
    size_t slot = pin_slots_take(&this->slots, pool);
    for (size_t i = 1; pin_slots_is_new(&this->slots, slot); i++) {
        if (pin_claims_try(&this->claims, this->plan.pus[slot], i >= this->slots.count) ||
            i >= this->slots.count) {
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
    if (life_state() == IDLE) {
        pthread_once(&life.planning, make_plan_aside);
    }
    return life_state() == PLANNED ? &process : NULL;
}

/* -- who has chosen already -- */

/* Has the program, or a runtime in it, changed the main thread's mask since it started? */
static bool main_is_bound(const struct pin_process *this)
{
    struct profile_mask now, first = {0};
    if (profile_mask_get(life.pid, &now) < 0 || profile_mask_equal(&now, &this->start)) {
        return false;
    }
    /* A runtime that follows servet-pin's places puts the main thread where we would. */
    profile_mask_add(&first, this->plan.pus[0]);
    return !this->places_exported || !profile_mask_equal(&now, &first);
}

bool pin_process_thread_is_bound(const struct pin_process *this)
{
    struct profile_mask given, now;
    if (self.is_main && atomic_load_explicit(&life.main_pu, memory_order_relaxed) == MAIN_FREE) {
        return main_is_bound(this);
    }
    /* Where we have given it one, whoever changes that is seen when it happens (affinity.c), and
     * asking would cost every thread that is made a system call. */
    if (given_mask(&given) || profile_mask_get(0, &now) < 0) {
        return false;
    }
    return !profile_mask_equal(&now, &this->start) && !profile_mask_equal(&now, &this->children) &&
           !profile_mask_equal(&now, &this->plan.own);
}

/* The user's word for OpenMP counts for the whole process once there is a runtime in it that heeds
 * it. */
bool pin_process_left_to_user(const struct pin_process *this)
{
    return this->users_choice && !this->options.force && pin_process_has_openmp();
}

void pin_process_openmp_found(void)
{
    atomic_store_explicit(&life.openmp_found, true, memory_order_relaxed);
}

bool pin_process_has_openmp(void)
{
    return atomic_load_explicit(&life.openmp_found, memory_order_relaxed);
}

/* -- the main thread -- */

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

/* Only one thread gets true. */
static bool claim_main(const struct pin_process *this)
{
    int expected = MAIN_FREE;
    if (!atomic_compare_exchange_strong(&life.main_pu, &expected, MAIN_CLAIMED)) {
        return false;
    }
    const char *winner = NULL;
    if (pin_process_left_to_user(this)) {
        winner = "the environment's OpenMP variables";
    } else if (!this->options.force && main_is_bound(this)) {
        winner = "the program";
    }
    if (!winner) {
        pin_memory_follow(&this->options, &this->plan.nodes);
        return true;
    }
    atomic_store(&life.main_pu, MAIN_LEFT);
    pin_report_main(&this->options, -1, winner);
    if (this->options.verbose) {
        pin_note("process %d: main thread stays where %s wants it", (int)life.pid, winner);
    }
    return false;
}

static void place_main(const struct pin_process *this)
{
    uint32_t pu = this->plan.pus[0];
    int code = change_mask(life.pid, NULL, pu);
    atomic_store(&life.main_pu, code < 0 ? MAIN_LEFT : (int)pu);
    if (code == -ECANCELED) {
        return;
    }
    if (code < 0) {
        pin_failure("cannot pin the main thread to PU %u: %s", pu, strerrordesc_np(-code));
    } else {
        say_main(this, pu);
    }
    pin_report_main(&this->options, code < 0 ? -1 : (int32_t)pu, "servet");
}

void pin_process_pin_main(const struct pin_process *this)
{
    if (atomic_load_explicit(&life.main_pu, memory_order_relaxed) == MAIN_FREE &&
        claim_main(this)) {
        place_main(this);
    }
}

bool pin_process_widen_main(const struct pin_process *this)
{
    if (!claim_main(this)) {
        return false;
    }
    int code = change_mask(life.pid, &this->plan.own, 0);
    if (code < 0 && code != -ECANCELED) {
        pin_failure("cannot give the rank its PUs: %s", strerrordesc_np(-code));
    }
    return true;
}

void pin_process_narrow_main(const struct pin_process *this)
{
    place_main(this);
}

/* -- ends -- */

/* The child of a fork has one thread, on the mask the process was started with, and starts afresh:
 * it is another process, and what others hold has changed. (The old plan's memory is left, for
 * another thread may have been at it.) A sandbox is inherited.
 */
static void after_fork_in_child(void)
{
    static const pthread_once_t again = PTHREAD_ONCE_INIT;
    if (self.shut || pin_process_retired()) {
        atomic_store(&life.state, RETIRED);
        return;
    }
    if (pin_process_unpin_thread()) {
        process.start = process.children;
    }
    self.is_main = true;
    self.mask = MASK_FREE;
    life.pid = getpid();
    life.planning = again;
    atomic_store(&life.calls, 0);
    atomic_store(&life.main_pu, MAIN_FREE);
    pin_claims_forget(&process.claims);
    pin_report_reset();
    pin_records_reset();
    atomic_store(&life.state, IDLE);
}

static void say_goodbye(void)
{
    struct pin_sharing sharing = pin_claims_end(&process.claims);
    pin_report_write(&process.options, &process.launcher,
                     process.recalled_priority ? &process.recalled : NULL, &sharing);
}

/* A process that ends otherwise is dropped from the registry by the next one that looks. */
__attribute__((destructor)) static void destructor(void)
{
    if (life_state() != PLANNED || self.shut) {
        return;
    }
    self.inside = true;
    (void)pin_pages_with_stack(self.is_first, say_goodbye);
}
