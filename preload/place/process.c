/* The process that the shim lives in.
 *
 * Its life, in one struct:
 *
 *    NEW --start--> IDLE --first thread, MPI_Init--> PLANNED --a plan for the team---> PLANNED
 *     |              | \                                |   \
 *     |              |  +--no plan can be made--+       |    +--none can be made: the first stays
 *     |              |                          v       |
 *     |              |                       FAILED     |
 *     v              v                          v       v
 *    RETIRED <-------+--------------------------+-------+
 *
 *    to RETIRED   NEW: privileged, SERVET_DISABLE; IDLE: a filter kills for calls of ours;
 *                 any: a sandbox of all threads; PLANNED: all is given up (a rank outgrows its
 *                 part, masks are refused, a thread was killed with the lock): threads are unpinned
 *    to IDLE      the child of a fork, from IDLE, PLANNED and FAILED; in RETIRED, and in a thread
 *                 that is in a sandbox, it is RETIRED
 *
 * The main thread's place (`main_pu`), where it is a worker: thread 0 of an OpenMP team, or a rank.
 * Else it stays MAIN_FREE.
 *
 *    MAIN_FREE --claim--> MAIN_CLAIMED --> its PU (>= 0) --the program binds it--> MAIN_LEFT
 *                              |              |   ^ the watch
 *                              |              v   |
 *                              |           MAIN_LOOSE: left to the kernel
 *                              +---------> MAIN_LEFT: the user, the program or the kernel objects
 *
 * The mask of any other thread of ours is that of its record's PU, or of threads that are left to
 * the kernel; it is the thread's own as soon as another caller has changed it. */
#include "preload/place/process.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/base/filter.h"
#include "preload/base/owner.h"
#include "preload/base/pages.h"
#include "preload/node/log.h"
#include "preload/node/registry.h"
#include "preload/place/life.h"
#include "preload/place/places.h"
#include "preload/place/report.h"
#include "preload/place/watch.h"
#include "preload/place/why.h"
#include "profile/base/launchers.h"
#include "profile/base/syscall.h"
#include "profile/text/record.h"

struct pin_process pin_here;
struct pin_life pin_life = {.main_pu = MAIN_FREE};
__thread struct pin_self pin_self __attribute__((tls_model("initial-exec")));

static void after_fork_in_child(void);
static void begin_anew(pid_t pid);

static pthread_mutex_t lock;

/* A filter may kill a thread alone (SECCOMP_RET_KILL_THREAD), at any call. */
static void make_lock(void)
{
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&lock, &robust);
    pthread_mutexattr_destroy(&robust);
}

static bool is_retired(void)
{
    return atomic_load_explicit(&pin_life.state, memory_order_relaxed) == RETIRED;
}

/* The calling thread's number as libc has it: no call asks the kernel. In the child of a vfork() it
 * is its parent's, whose memory it is. */
static pid_t known_number(void)
{
    clockid_t clock;
    return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? ~(clock >> 3) : getpid();
}

/* Reads the environment if that has not been done. Called by the constructor and by
 * every interposer: a library's constructor may create threads before ours runs (a preloaded
 * object's runs last). No call of the kernel is made but one of the loader's (fstat), where a line
 * may come of the variables, and getcwd() for a file's name without a folder. In a privileged
 * program (AT_SECURE) the shim does nothing for good. */
static void start_process(void)
{
    if (pin_life_state() != NEW) {
        return;
    }
    make_lock();
    /* Only the first caller can be here: no second thread exists before the first interposed call
     * has returned. */
    if (pin_options_privileged()) {
        atomic_store_explicit(&pin_life.state, RETIRED, memory_order_release);
        return;
    }
    pin_self.is_main = true;
    pin_pages_start();
    pin_life.pid = known_number();
    int saved = errno;
    pin_options_read(&pin_here.options);
    if (pin_here.options.verbose || pin_here.options.report || pin_here.options.profile) {
        pin_log_start();
    }
    errno = saved;
    pin_owner_extend(pin_here.options.helpers, pin_here.options.workers);
    /* Needed for forks before the plan, too: the child must not take its parent for its main
     * thread. */
    bool off = pin_here.options.disable || pthread_atfork(NULL, NULL, after_fork_in_child) != 0;
    atomic_store_explicit(&pin_life.state, off ? RETIRED : IDLE, memory_order_release);
}

__attribute__((constructor)) static void constructor(void)
{
    start_process();
}

bool pin_process_active(void)
{
    start_process();
    if (!pin_pages_are_ours()) {
        begin_anew(getpid()); /* of a fork that pthread_atfork() does not see */
    }
    return !is_retired() && !pin_self.inside && !pin_self.shut;
}

bool pin_process_is_main(void)
{
    return pin_self.is_main;
}

struct pin_process *pin_process_get(void)
{
    return &pin_here;
}

void pin_process_ends_here(void)
{
    if (pin_life_state() == IDLE && pin_here.has_chosen && getpid() == pin_life.pid) {
        pin_places_drop(&pin_here.chosen);
    }
}

/* -- the plan -- */

static void recall_priority(void)
{
    pin_here.recalled_priority =
        pin_priority_cache_apply(&pin_here.options, NULL, &pin_here.recalled);
    if (pin_here.recalled_priority) {
        pin_report_choice(NULL, pin_here.options.verbose, &pin_here.recalled);
    }
}

static void end_planning(void)
{
    PIN_GIVES(HOLDS_PLANNING);
    atomic_store(&pin_life.planning, false);
}

void pin_process_note_start(void)
{
    const int saved = errno;
    if (pin_life_state() != IDLE || !pin_self.is_main || pin_here.start_is_known ||
        pin_here.start_is_lost || getpid() != pin_life.pid ||
        atomic_exchange(&pin_life.planning, true)) {
        return;
    }
    PIN_TAKES(HOLDS_PLANNING);
    pin_here.start_is_lost = pin_filter_is_there();
    pin_here.start_is_known = !pin_here.start_is_lost && profile_mask_get(0, &pin_here.start) == 0;
    end_planning();
    errno = saved;
}

/* Has the program, or a runtime in it, changed the main thread's mask since it started? */
static bool main_is_bound(const struct pin_process *this)
{
    static struct profile_mask now;
    PIN_NEEDS_LOCK();
    if (this->start_is_lost) {
        return true;
    }
    if (profile_mask_get(pin_life.pid, &now) < 0 || profile_mask_equal(&now, &this->start)) {
        return false;
    }
    /* A runtime that follows servet-pin's places puts the main thread where we would. */
    return !this->places_exported || !profile_mask_has(&now, this->plan.pus[0]) ||
           profile_mask_count(&now) != 1;
}

static const char *why_alone(void)
{
    return pin_here.registry.on ? "alone in a container: other programs are not seen"
                                : "without locks on this node: other programs are not seen";
}

/* Reads the environment, the launcher and the user's choices; once in each process. */
static void look_around(void)
{
    pin_launcher_read(pin_here.options.rebind, &pin_here.launcher);
    if (pin_here.launcher.node_rank == 0) {
        pin_options_say_refused(&pin_here.options);
    }
    pin_here.children = pin_here.start;
    pin_here.places_exported =
        pin_places_read(&pin_here.launcher, pin_owner_runtime_loaded(), &pin_here.children);
    pin_launcher_allowed(&pin_here.launcher, &pin_here.children, &pin_here.allowed);
    pin_here.users_choice = pin_here.places_exported ? NULL : pin_users_places();
    if (pin_here.users_choice && pin_owner_runtime_loaded()) {
        pin_process_openmp_found();
    }
    recall_priority();
    pin_here.pools =
        (struct pin_pools){.team = PIN_POOLS,
                           .main_place = PIN_NO_PLACE,
                           .rank = pin_here.launcher.local_size > 1 || pin_here.places_exported,
                           .registry = &pin_here.registry,
                           .is_gone = pin_process_thread_is_gone};
    if (!pin_here.options.no_registry) {
        int rc =
            pin_registry_open(&pin_here.registry, pin_here.options.registry, pin_here.launcher.job);
        if (rc == 0 && !pin_here.places_exported) {
            pin_registry_release(&pin_here.registry);
        }
        pin_log(rc < 0 && pin_here.options.verbose, "%s: %s; other jobs on this node are not seen",
                pin_here.registry.path, rc < 0 ? strerrordesc_np(-rc) : "");
        pin_log(rc == 0 && pin_here.registry.alone && pin_here.options.verbose, "%s", why_alone());
    }
}

/* The threads that the plan is made for; 0: any number. */
static uint32_t threads_of(uint32_t threads)
{
    bool fits = pin_here.pools.rank || threads <= profile_mask_count(&pin_here.allowed);
    return fits ? threads : 0;
}

/* Neither an earlier plan, with what is placed by it, nor a sandbox that has come is undone. */
static void leave_idle(int to)
{
    int before = IDLE;
    (void)atomic_compare_exchange_strong(&pin_life.state, &before, to);
}

/* The plan, and its places (zeros), are there; other threads see both at once. */
static void install_plan(const struct pin_plan *plan, struct pin_place *places, uint32_t team_size)
{
    pin_process_lock();
    struct pin_plan before = pin_here.plan;
    pin_here.plan = *plan;
    if (pin_here.launcher.name && pin_here.launcher.row->workers) {
        pin_here.children = plan->own; /* data loaders live in their worker's part */
    }
    struct pin_place *places_before = pin_pools_plan(&pin_here.pools, plan, places);
    pin_here.pools.team_size = team_size;
    leave_idle(PLANNED);
    pin_process_unlock();
    pin_plan_free(&before);
    free(places_before);
}

static bool make_plan(enum pin_comes comes)
{
    const uint32_t threads =
        comes == PIN_REST_COMES && !pin_here.launcher.name ? 0 : pin_plan_threads();
    const struct pin_plan_request request = {
        .options = &pin_here.options,
        .launcher = &pin_here.launcher,
        .threads = threads_of(threads),
        .is_team = comes != PIN_REST_COMES || pin_here.launcher.name,
        .exported = pin_here.places_exported,
        .allowed = &pin_here.allowed,
    };
    struct pin_plan plan;
    if (pin_plan_make(&request, &pin_here.registry, &plan) < 0) {
        return false;
    }
    struct pin_place *places = calloc(plan.count, sizeof *places);
    if (!places) {
        pin_failure("no memory for the plan; threads are not pinned");
        pin_plan_free(&plan);
        return false;
    }
    if (atomic_load(&pin_life.main_pu) == MAIN_FREE) {
        (void)pin_report_begin(&pin_here.options, PROFILE_ROLE_MAIN, -1, PROFILE_BY_KERNEL);
    }
    install_plan(&plan, places, comes == PIN_TEAM_COMES ? threads : 0);
    return true;
}

static enum pin_comes planning_for;

static void make_plan_aside(void)
{
    if (pin_life_state() == IDLE) {
        look_around();
    }
    if (!make_plan(planning_for)) {
        leave_idle(FAILED);
        return;
    }
    pin_log(planning_for == PIN_REST_COMES && pin_here.options.verbose, "plan made (%s)",
            pin_here.plan.source);
}

bool pin_process_is_planned(void)
{
    return pin_life_state() == PLANNED;
}

bool pin_process_wants_plan(enum pin_comes comes)
{
    return pin_life_state() == IDLE || (pin_life_state() == PLANNED && comes == PIN_TEAM_COMES &&
                                        !pin_life.planned_for_team && !pin_here.launcher.name);
}

/* This may be a child that the kernel made since the start, without a word to us. */
static bool try_calls(void)
{
    bool line;
    pin_log_start();
    if (!pin_filter_spares_us(&line)) {
        if (line && pin_here.options.verbose) { /* without the process's number: another call */
            pin_failure("a filter (seccomp) kills for calls that placing takes: nothing is placed");
        }
        return false;
    }
    pin_life.pid = getpid();
    pin_self.is_main |= profile_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0) == pin_life.pid;
    pin_pages_claim();
    return pin_here.start_is_known || profile_mask_get(pin_life.pid, &pin_here.start) == 0;
}

bool pin_process_may_call(void)
{
    const bool outside = pin_self.inside;
    if (pin_life_state() != IDLE || atomic_load(&pin_life.calls_known)) {
        return !is_retired();
    }
    if (atomic_exchange(&pin_life.planning, true)) {
        return false;
    }
    PIN_TAKES(HOLDS_PLANNING);
    pin_self.inside = true;
    if (!try_calls()) {
        atomic_store_explicit(&pin_life.state, RETIRED, memory_order_release);
    }
    pin_self.inside = outside;
    atomic_store(&pin_life.calls_known, true);
    end_planning();
    return !is_retired();
}

struct pin_process *pin_process_plan(enum pin_comes comes)
{
    const bool outside = pin_self.inside;
    pin_life.called_mpi |= comes == PIN_RANK_COMES;
    if (!pin_process_may_call() || !pin_process_wants_plan(comes) ||
        atomic_exchange(&pin_life.planning, true)) {
        return pin_life_state() == PLANNED ? &pin_here : NULL;
    }
    PIN_TAKES(HOLDS_PLANNING);
    pin_self.inside = true;
    if (pin_process_wants_plan(comes)) {
        pin_life.planned_for_team = comes != PIN_REST_COMES;
        planning_for = comes;
        if (pin_pages_with_stack(make_plan_aside) < 0) {
            pin_failure("no memory for the plan; threads are not pinned");
            leave_idle(FAILED);
        }
    }
    pin_self.inside = outside;
    end_planning();
    return pin_life_state() == PLANNED ? &pin_here : NULL;
}

/* -- the lock -- */

void pin_process_lock(void)
{
    struct pin_shield shield;
    pin_shield_raise(&shield);
    PIN_TAKES(HOLDS_LOCK);
    pin_self.has_lock = true; /* first: a handler may end the program in between */
    if (pthread_mutex_lock(&lock) == EOWNERDEAD) {
        pthread_mutex_consistent(&lock);
        atomic_store(&pin_life.broken, true);
    }
    pin_self.shield = shield;
    pin_self.outside = pin_self.inside;
    pin_self.inside = true;
}

bool pin_process_is_broken(void)
{
    return atomic_load(&pin_life.broken);
}

void pin_process_unlock(void)
{
    const struct pin_shield shield = pin_self.shield;
    pin_self.inside = pin_self.outside;
    pthread_mutex_unlock(&lock);
    pin_self.has_lock = false;
    PIN_GIVES(HOLDS_LOCK);
    pin_shield_lower(&shield);
}

/* -- who has chosen already -- */

bool pin_process_thread_is_bound(const struct pin_process *this)
{
    static struct profile_mask now;
    PIN_NEEDS_LOCK();
    if (pin_self.is_main && pin_process_main_pu() == MAIN_FREE) {
        return main_is_bound(this);
    }
    if (pin_life_has_given_mask() || profile_mask_get(0, &now) < 0) {
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

void pin_process_put_memory(const struct pin_process *this)
{
    if (!pin_life.memory_is_put) {
        pin_life.memory_is_put = true;
        pin_memory_put(&this->options, &this->plan.memory, this->launcher.node_rank == 0);
    }
}

/* -- the main thread -- */

static void say_main(const struct pin_process *this, uint32_t pu)
{
    const struct pin_launcher *launcher = &this->launcher;
    if (launcher->name) {
        pin_log(this->options.verbose, "rank %u of %u on this node (%s): main thread on PU %u (%s)",
                launcher->node_rank, launcher->node_ranks, launcher->name, pu, this->plan.source);
    } else {
        pin_log(this->options.verbose, "main thread on PU %u (%s)", pu, this->plan.source);
    }
}

/* The choice of the program or user that keeps the main thread where it is; NULL: none. */
static const char *main_stays_for(const struct pin_process *this)
{
    if (pin_process_left_to_user(this)) {
        return this->users_choice;
    }
    return !this->options.force && main_is_bound(this) ? "the program" : NULL;
}

/* False: the main thread has its place already, or is left alone. */
static bool claim_main(struct pin_process *this)
{
    PIN_NEEDS_LOCK();
    if (atomic_load(&pin_life.main_pu) != MAIN_FREE) {
        return false;
    }
    const char *winner = main_stays_for(this);
    if (!winner) {
        atomic_store(&pin_life.main_pu, MAIN_CLAIMED);
        pin_process_put_memory(this);
        return true;
    }
    atomic_store(&pin_life.main_pu, MAIN_LEFT);
    (void)pin_report_begin(&this->options, PROFILE_ROLE_MAIN, -1,
                           pin_process_left_to_user(this) ? PROFILE_BY_USER : PROFILE_BY_PROGRAM);
    pin_log(this->options.verbose, "main thread stays where %s wants it", winner);
    return false;
}

void pin_process_say_main_stays(struct pin_process *this)
{
    if (atomic_load(&pin_life.main_pu) == MAIN_FREE && main_stays_for(this)) {
        (void)claim_main(this);
    }
}

static void place_main(struct pin_process *this)
{
    PIN_NEEDS_LOCK();
    const size_t place = pin_pools_place_main(&this->pools);
    if (place == PIN_NO_PLACE) {
        atomic_store(&pin_life.main_pu, MAIN_FREE);
        return;
    }
    const uint32_t pu = this->pools.places[place].pu;
    int rc = pin_life_change_mask(pin_life.pid, NULL, pu);
    atomic_store(&pin_life.main_pu, rc < 0 ? MAIN_LEFT : (int)pu);
    if (rc == -ECANCELED) {
        return;
    }
    if (rc < 0) {
        pin_failure("cannot pin the main thread to PU %u: %s", pu, strerrordesc_np(-rc));
    } else {
        atomic_store_explicit(&pin_life.placed, true, memory_order_relaxed);
        say_main(this, pu);
    }
    (void)pin_report_begin(&this->options, PROFILE_ROLE_MAIN, rc < 0 ? -1 : (int32_t)pu,
                           PROFILE_BY_SERVET);
}

void pin_process_pin_main(struct pin_process *this)
{
    if (claim_main(this)) {
        place_main(this);
        pin_process_clear_way();
    }
}

/* The PU of the calling thread. */
static uint32_t pu_here(void)
{
    int pu = sched_getcpu();
    return pu < 0 ? PROFILE_MASK_PUS : (uint32_t)pu;
}

void pin_process_make_room(struct pin_process *this, uint32_t pu)
{
    const struct pin_place *first = &this->pools.places[0];
    PIN_NEEDS_LOCK();
    if (pin_self.is_main && atomic_load(&pin_life.main_pu) == MAIN_FREE && first->pu != pu &&
        first->threads == 0 && !first->avoided && pu_here() == pu &&
        pin_life_change_mask(0, NULL, first->pu) == 0) {
        (void)pin_life_change_mask(0, &this->children, 0);
    }
}

bool pin_process_widen_main(struct pin_process *this)
{
    if (!claim_main(this)) {
        return false;
    }
    int rc = pin_life_change_mask(pin_life.pid, &this->plan.own, 0);
    if (rc < 0 && rc != -ECANCELED) {
        pin_failure("cannot give the rank its PUs: %s", strerrordesc_np(-rc));
    }
    return true;
}

void pin_process_narrow_main(struct pin_process *this)
{
    if (atomic_load(&pin_life.main_pu) == MAIN_CLAIMED) {
        place_main(this);
    }
}

/* -- ends -- */

/* The child of a fork has one thread, on the mask the process was started with, and starts afresh:
 * it is another process, and what others hold has changed. (The old plan's memory is left, for
 * another thread may have been at it.) A sandbox is inherited. */
static void begin_anew(pid_t pid)
{
    if (pin_self.shut || is_retired()) {
        atomic_store(&pin_life.state, RETIRED);
        return;
    }
    struct profile_mask now;
    if (pin_process_unpin_thread() ||
        (pin_life_state() == PLANNED && profile_mask_get(0, &now) == 0 &&
         profile_mask_equal(&now, &pin_here.children))) {
        pin_here.start = pin_here.children;
        pin_here.start_is_lost = false;
    }
    pin_here.options.verbose &= !(pin_here.launcher.name && pin_here.launcher.row->workers);
    pin_here.has_chosen = pin_here.has_chosen && pin_life_state() == IDLE;
    pin_self.is_main = true;
    pin_self.record = NULL;
    pin_self.told = 0;
    pin_self.inside = false;
    pin_life = (struct pin_life){.main_pu = MAIN_FREE, .pid = pid, .state = NEW};
    if (!pin_pages_are_ours()) {
        pin_pages_claim();
    }
    pin_self.has_lock = false;
    PIN_HAS_NOTHING();
    make_lock();
    pin_watch_forget();
    pin_registry_forget(&pin_here.registry);
    pin_report_reset();
    pin_records_reset();
    atomic_store(&pin_life.state, IDLE);
}

/* Another library's handler may have made a thread before. */
static void after_fork_in_child(void)
{
    const pid_t pid = known_number();
    if (pid != pin_life.pid || !pin_pages_are_ours()) {
        begin_anew(pid);
    }
}

/* Why no thread has been placed; NULL: some were, or a line has said it. */
static const char *why_nothing(void)
{
    static char text[128];
    if (atomic_load_explicit(&pin_life.placed, memory_order_relaxed)) {
        return NULL;
    }
    switch (pin_life_state()) {
    case IDLE:
        if (pin_owner_program_is_managed() && !pin_here.options.force) {
            return "its runtime places its own threads (--force overrides it)";
        }
        return "the program made no thread and called no MPI_Init";
    case RETIRED:
        return pin_here.options.disable ? "SERVET_DISABLE is set" : NULL;
    case PLANNED:
        break;
    default:
        return pin_plan_meets_unseen(&pin_here.options, &pin_here.registry, &pin_here.allowed)
                   ? why_alone()
                   : NULL;
    }
    if (!pin_process_left_to_user(&pin_here)) {
        return "its threads live briefly, or are helpers";
    }
    snprintf(text, sizeof text, "%s is set%s (--force overrides it)", pin_here.users_choice,
             pin_here.launcher.node_ranks > 1 ? ", the same for all ranks of this node" : "");
    return text;
}

static void say_goodbye(void)
{
    static struct pin_process last; /* other threads go on */
    pin_process_lock();
    last = pin_here;
    pin_why_take_over();
    pin_process_unlock();
    const char *why = pin_why_report() ? NULL : why_nothing();
    if (why && !(pin_life_state() == IDLE && pin_report_rank())) {
        pin_report_once("nothing was placed: {nothing_placed}",
                        PROFILE_FACTS(PROFILE_WORD("nothing_placed", why)));
    }
    if (pin_here.options.trace && !pin_life.called_mpi && !pin_here.options.disable) {
        pin_report_once(
            "nothing was traced: {nothing_traced}",
            PROFILE_FACTS(PROFILE_WORD("nothing_traced", "the program called no MPI_Init")));
    }
    if (pin_life_state() == PLANNED || atomic_load(&pin_life.gave_up)) {
        pin_report_write(&last);
        pin_memory_say_peak(&last.options, &last.plan.memory);
    }
}

/* Its locks end with the process. */
__attribute__((destructor)) static void destructor(void)
{
    bool is_asked = pin_here.options.report || pin_here.options.verbose, line;
    /* A handler may end the program in a thread that has the lock. */
    if (!is_asked || pin_life_state() == NEW || pin_self.shut || pin_self.has_lock) {
        return;
    }
    (void)pin_process_active(); /* a child's copy begins anew */
    pin_self.inside = true;
    if (pin_here.options.disable ? pin_filter_spares_us(&line)
                                 : pin_process_may_call() || atomic_load(&pin_life.gave_up)) {
        (void)pin_pages_with_stack(say_goodbye);
    }
}
