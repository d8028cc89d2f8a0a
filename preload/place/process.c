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
 *                              |              |   ^ the watch (SERVET_WATCH)
 *                              |              v   |
 *                              |           MAIN_LOOSE
 *                              +---------> MAIN_LEFT: the user, the program or the kernel objects
 *
 * And each thread's mask: its own business (MASK_FREE), one PU of ours (MASK_PU) or all PUs of the
 * plan by our doing (MASK_SPREAD); it is free again as soon as somebody else has changed it.
 */
#include "preload/place/place.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/interpose/interpose.h"
#include "preload/node/node.h"
#include "preload/place/life.h"
#include "profile/base/raw.h"

struct pin_process pin_here;
struct pin_life pin_life = {.main_pu = MAIN_FREE, .planning = PTHREAD_ONCE_INIT};
__thread struct pin_self pin_self __attribute__((tls_model("initial-exec")));

static void after_fork_in_child(void);

static bool is_retired(void)
{
    return atomic_load_explicit(&pin_life.state, memory_order_relaxed) == RETIRED;
}

/* Reads the environment and the mask if that has not been done. Called by the constructor and by
 * every interposer: a library's constructor may create threads before ours runs (a preloaded
 * object's runs last). Opens no file. In a privileged program (AT_SECURE) it does neither, and the
 * shim does nothing for good. */
static void start(void)
{
    if (pin_life_state() != NEW) {
        return;
    }
    /* Only the first caller can be here: no second thread exists before the first interposed call
     * has returned. */
    if (pin_options_privileged()) {
        atomic_store_explicit(&pin_life.state, RETIRED, memory_order_release);
        return;
    }
    pin_self.is_main = pin_self.is_first = true;
    pin_pages_start();
    pin_life.pid = getpid();
    int saved = errno;
    pin_note_start();
    errno = saved;
    pin_options_read(&pin_here.options);
    pin_owner_extend(pin_here.options.helpers, pin_here.options.workers);
    /* Of forks before the plan, too: the child must not take its parent for its main thread. */
    bool off = pin_here.options.disable || profile_mask_get(0, &pin_here.start) < 0 ||
               pthread_atfork(NULL, NULL, after_fork_in_child) != 0;
    atomic_store_explicit(&pin_life.state, off ? RETIRED : IDLE, memory_order_release);
}

__attribute__((constructor)) static void constructor(void)
{
    start();
}

bool pin_process_active(void)
{
    start();
    return !is_retired() && !pin_self.inside && !pin_self.shut;
}

const struct pin_process *pin_process_get(void)
{
    return &pin_here;
}

/* -- the plan -- */

static void recall_priority(void)
{
    pin_here.recalled_priority = pin_remembered_apply(&pin_here.options, NULL, &pin_here.recalled);
    if (pin_here.recalled_priority && pin_here.options.verbose) {
        pin_note("process %d: %s priority, for the run before was in MPI for %.0f %% of its time",
                 (int)getpid(), pin_here.recalled.communication ? "communication" : "memory",
                 100 * pin_here.recalled.share);
    }
}

/* Has the program, or a runtime in it, changed the main thread's mask since it started? */
static bool main_is_bound(const struct pin_process *this)
{
    struct profile_mask now, first = {0};
    if (profile_mask_get(pin_life.pid, &now) < 0 || profile_mask_equal(&now, &this->start)) {
        return false;
    }
    if (!this->plan.pus) {
        return true; /* not planned yet: it may be */
    }
    /* A runtime that follows servet-pin's places puts the main thread where we would. */
    profile_mask_add(&first, this->plan.pus[0]);
    return !this->places_exported || !profile_mask_equal(&now, &first);
}

static void make_plan(void)
{
    pin_resolve_process_calls();
    pin_options_say_refused(&pin_here.options);
    pin_launcher_read(pin_here.options.rebind, &pin_here.launcher);
    pin_here.places_exported = pin_places_read(&pin_here.launcher, &pin_here.children);
    if (!pin_here.places_exported) {
        pin_here.children = pin_here.start;
    }
    pin_launcher_allowed(&pin_here.launcher, &pin_here.children, &pin_here.allowed);
    pin_here.users_choice = !pin_here.places_exported && pin_users_places_set();
    if (pin_here.users_choice && pin_owner_runtime_loaded()) {
        pin_process_openmp_found();
    }
    recall_priority();
    pin_here.claims.worker_comes =
        pin_here.worker_comes && !pin_here.users_choice && !main_is_bound(&pin_here);
    bool made = pin_plan_make(&pin_here.options, &pin_here.launcher, pin_plan_threads(),
                              &pin_here.allowed, &pin_here.claims, &pin_here.plan) == 0;
    if (made && pin_slots_make(pin_here.plan.count, &pin_here.slots) < 0) {
        pin_failure("no memory for the plan; threads are not pinned");
        made = false;
    }
    if (made && pin_here.options.watch) {
        int rc = pin_watch_start(&pin_here);
        if (rc < 0) {
            pin_failure("SERVET_WATCH: no thread to watch with: %s", strerrordesc_np(-rc));
        }
    }
    atomic_store_explicit(&pin_life.state, made ? PLANNED : FAILED, memory_order_release);
}

static void make_plan_aside(void)
{
    pin_self.inside = true;
    if (pin_pages_with_stack(pin_self.is_first, make_plan) < 0) {
        pin_failure("no memory for the plan; threads are not pinned");
        atomic_store_explicit(&pin_life.state, FAILED, memory_order_release);
    }
    pin_self.inside = false;
}

struct pin_process *pin_process_plan(bool worker_comes)
{
    if (pin_life_state() == IDLE) {
        atomic_store_explicit(&pin_here.worker_comes, worker_comes, memory_order_relaxed);
        pthread_once(&pin_life.planning, make_plan_aside);
    }
    return pin_life_state() == PLANNED ? &pin_here : NULL;
}

/* -- who has chosen already -- */

bool pin_process_thread_is_bound(const struct pin_process *this)
{
    struct profile_mask given, now;
    if (pin_self.is_main &&
        atomic_load_explicit(&pin_life.main_pu, memory_order_relaxed) == MAIN_FREE) {
        return main_is_bound(this);
    }
    /* Where we have given it one, whoever changes that is seen when it happens (affinity.c), and
     * asking would cost every thread that is made a system call. */
    if (pin_life_given_mask(&given) || profile_mask_get(0, &now) < 0) {
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
    atomic_store_explicit(&pin_life.openmp_found, true, memory_order_relaxed);
}

bool pin_process_has_openmp(void)
{
    return atomic_load_explicit(&pin_life.openmp_found, memory_order_relaxed);
}

/* -- where its memory goes -- */

/* Where a process's memory goes once its threads have places (SERVET_MEMBIND). System calls only,
 * libnuma's meanings.
 *
 *   none         (and not set) nothing: the kernel's default, first touch on the toucher's node
 *   local        the same said explicitly, and pages touched before the threads had places move to
 *                the plan's nodes
 *   interleave   pages are dealt out over the plan's nodes
 *
 * A policy belongs to the thread that sets it and is inherited by the threads it makes; the caller
 * is therefore the main thread in MPI_Init, or whoever makes the first worker.
 */

static bool is_empty(const struct pin_nodes *nodes)
{
    for (size_t i = 0; i < sizeof nodes->word / sizeof *nodes->word; i++) {
        if (nodes->word[i]) {
            return false;
        }
    }
    return true;
}

/* The number of bits that the kernel reads: it takes one off. */
#define NODE_BITS (PIN_NODES + 1)

static void follow_locally(const struct pin_nodes *nodes)
{
    struct pin_nodes all;
    long code = profile_raw(SYS_set_mempolicy, MPOL_LOCAL, 0, 0, 0, 0, 0);
    if (code < 0) {
        pin_failure("SERVET_MEMBIND=local: set_mempolicy: %s", strerrordesc_np((int)-code));
        return;
    }
    /* From everywhere, which the kernel reads as "from nodes that exist", to the plan's; pages
     * there already stay. */
    memset(&all, 0xff, sizeof all);
    code = is_empty(nodes)
               ? 0
               : profile_raw(SYS_migrate_pages, 0, NODE_BITS, (long)&all, (long)nodes, 0, 0);
    if (code < 0) {
        pin_failure("SERVET_MEMBIND=local: migrate_pages: %s", strerrordesc_np((int)-code));
    }
}

/* Does what SERVET_MEMBIND asks for, for threads on `nodes`. A kernel or container that refuses is
 * one line on stderr.
 */
static void put_memory(const struct pin_options *options, const struct pin_nodes *nodes)
{
    switch (options->membind) {
    case PIN_MEMBIND_NONE:
        return;
    case PIN_MEMBIND_LOCAL:
        follow_locally(nodes);
        return;
    case PIN_MEMBIND_INTERLEAVE:
        break;
    case PIN_MEMBIND_UNKNOWN:
        pin_failure("SERVET_MEMBIND: expected local, interleave or none");
        return;
    }
    if (is_empty(nodes)) {
        return;
    }
    long code = profile_raw(SYS_set_mempolicy, MPOL_INTERLEAVE, (long)nodes, NODE_BITS, 0, 0, 0);
    if (code < 0) {
        pin_failure("SERVET_MEMBIND=interleave: set_mempolicy: %s", strerrordesc_np((int)-code));
    }
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
    if (!atomic_compare_exchange_strong(&pin_life.main_pu, &expected, MAIN_CLAIMED)) {
        return false;
    }
    const char *winner = NULL;
    if (pin_process_left_to_user(this)) {
        winner = "the environment's OpenMP variables";
    } else if (!this->options.force && main_is_bound(this)) {
        winner = "the program";
    }
    if (!winner) {
        put_memory(&this->options, &this->plan.nodes);
        return true;
    }
    atomic_store(&pin_life.main_pu, MAIN_LEFT);
    pin_report_main(&this->options, -1, winner);
    if (this->options.verbose) {
        pin_note("process %d: main thread stays where %s wants it", (int)pin_life.pid, winner);
    }
    return false;
}

static void place_main(const struct pin_process *this)
{
    uint32_t pu = this->plan.pus[0];
    int code = pin_life_change_mask(pin_life.pid, NULL, pu);
    atomic_store(&pin_life.main_pu, code < 0 ? MAIN_LEFT : (int)pu);
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
    if (atomic_load_explicit(&pin_life.main_pu, memory_order_relaxed) == MAIN_FREE &&
        claim_main(this)) {
        place_main(this);
    }
}

bool pin_process_widen_main(const struct pin_process *this)
{
    if (!claim_main(this)) {
        return false;
    }
    int code = pin_life_change_mask(pin_life.pid, &this->plan.own, 0);
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
    if (pin_self.shut || is_retired()) {
        atomic_store(&pin_life.state, RETIRED);
        return;
    }
    if (pin_process_unpin_thread()) {
        pin_here.start = pin_here.children;
    }
    pin_self.is_main = true;
    pin_self.mask = MASK_FREE;
    pin_self.told = 0;
    pin_life.pid = getpid();
    pin_life.planning = again;
    atomic_store(&pin_life.main_away, false);
    atomic_store(&pin_life.calls, 0);
    atomic_store(&pin_life.main_pu, MAIN_FREE);
    pin_claims_forget(&pin_here.claims);
    pin_watch_forget();
    pin_report_reset();
    pin_records_reset();
    atomic_store(&pin_life.state, IDLE);
}

static void say_goodbye(void)
{
    struct pin_sharing sharing = pin_claims_end(&pin_here.claims);
    pin_report_write(&pin_here.options, &pin_here.launcher,
                     pin_here.recalled_priority ? &pin_here.recalled : NULL, &sharing);
}

/* A process that ends otherwise is dropped from the registry by the next one that looks. */
__attribute__((destructor)) static void destructor(void)
{
    if (pin_life_state() != PLANNED || pin_self.shut) {
        return;
    }
    pin_self.inside = true;
    (void)pin_pages_with_stack(pin_self.is_first, say_goodbye);
}
