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
#include <string.h>
#include <unistd.h>

#include "preload/base/filter.h"
#include "preload/base/owner.h"
#include "preload/base/pages.h"
#include "preload/node/log.h"
#include "preload/place/places.h"
#include "preload/place/report.h"
#include "preload/place/watch.h"
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
__attribute__((constructor)) static void start_process(void)
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

bool pin_process_active(void)
{
    start_process();
    if (!pin_pages_are_ours()) {
        begin_anew(getpid()); /* of a fork that pthread_atfork() does not see */
    }
    return pin_life_state() != RETIRED && !pin_self.inside && !pin_self.shut;
}

void pin_process_ends_here(void)
{
    if (pin_life_state() == IDLE && pin_here.has_chosen && getpid() == pin_life.pid) {
        pin_places_drop(&pin_here.chosen);
    }
}

/* -- the plan -- */

/* The shim's own work, which no other thread does meanwhile. False: another one is at it. */
static bool begin_planning(bool *outside)
{
    if (atomic_exchange(&pin_life.planning, true)) {
        return false;
    }
    PIN_TAKES(HOLDS_PLANNING);
    *outside = pin_self.inside;
    pin_self.inside = true;
    return true;
}

static void end_planning(bool outside)
{
    pin_self.inside = outside;
    PIN_GIVES(HOLDS_PLANNING);
    atomic_store(&pin_life.planning, false);
}

void pin_process_note_start(void)
{
    const int saved = errno;
    bool outside;
    if (pin_life_state() != IDLE || !pin_self.is_main || pin_here.start_is_known ||
        pin_here.start_is_lost || getpid() != pin_life.pid || !begin_planning(&outside)) {
        return;
    }
    pin_here.start_is_lost = pin_filter_is_there();
    pin_here.start_is_known = !pin_here.start_is_lost && profile_mask_get(0, &pin_here.start) == 0;
    end_planning(outside);
    errno = saved;
}

/* Has the program, or a runtime in it, changed the main thread's mask since it started? */
static bool main_is_bound(void)
{
    static struct profile_mask now;
    PIN_NEEDS_LOCK();
    if (pin_here.start_is_lost) {
        return true;
    }
    if (profile_mask_get(pin_life.pid, &now) < 0 || profile_mask_equal(&now, &pin_here.start)) {
        return false;
    }
    /* A runtime that follows servet-pin's places puts the main thread where we would. */
    return !pin_here.places_exported || !profile_mask_has(&now, pin_here.plan.pus[0]) ||
           profile_mask_count(&now) != 1;
}

/* Neither an earlier plan, with what is placed by it, nor a sandbox that has come is undone. */
static void leave_idle(int to)
{
    int before = IDLE;
    (void)atomic_compare_exchange_strong(&pin_life.state, &before, to);
}

/* Other threads see the plan and its places at once. */
static void install_plan(const struct pin_plan *plan, uint32_t team_size)
{
    pin_process_lock();
    struct pin_plan before = pin_here.plan;
    pin_here.plan = *plan;
    if (pin_here.launcher.name && pin_here.launcher.row->workers) {
        pin_here.children = plan->own; /* data loaders live in their worker's part */
    }
    pin_pools_plan(&pin_here.pools, plan);
    pin_here.pools.team_size = team_size;
    leave_idle(PLANNED);
    pin_process_unlock();
    pin_plan_free(&before);
}

static bool make_plan(enum pin_comes comes)
{
    const uint32_t threads =
        comes == PIN_REST_COMES && !pin_here.launcher.name ? 0 : pin_plan_threads();
    const bool fit = pin_here.pools.rank || threads <= profile_mask_count(&pin_here.allowed);
    const struct pin_plan_request request = {
        .options = &pin_here.options,
        .launcher = &pin_here.launcher,
        .threads = fit ? threads : 0,
        .is_team = comes != PIN_REST_COMES || pin_here.launcher.name,
        .exported = pin_here.places_exported,
        .allowed = &pin_here.allowed,
        .registry = &pin_here.registry,
    };
    struct pin_plan plan;
    if (pin_plan_make(&request, &plan) < 0) {
        return false;
    }
    if (atomic_load(&pin_life.main_pu) == MAIN_FREE) {
        (void)pin_report_begin(PROFILE_ROLE_MAIN, -1, PROFILE_BY_KERNEL);
    }
    install_plan(&plan, comes == PIN_TEAM_COMES ? threads : 0);
    return true;
}

static enum pin_comes planning_for;

static void make_plan_aside(void)
{
    if (pin_life_state() == IDLE) {
        pin_process_look_around();
    }
    if (!make_plan(planning_for)) {
        leave_idle(FAILED);
        return;
    }
    pin_log(planning_for == PIN_REST_COMES && pin_here.options.verbose, "plan made (%s)",
            pin_here.plan.source);
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
    bool outside;
    if (pin_life_state() != IDLE || atomic_load(&pin_life.calls_known)) {
        return pin_life_state() != RETIRED;
    }
    if (!begin_planning(&outside)) {
        return false;
    }
    if (!try_calls()) {
        atomic_store_explicit(&pin_life.state, RETIRED, memory_order_release);
    }
    atomic_store(&pin_life.calls_known, true);
    end_planning(outside);
    return pin_life_state() != RETIRED;
}

bool pin_process_plan(enum pin_comes comes)
{
    bool outside;
    pin_life.called_mpi |= comes == PIN_RANK_COMES;
    if (!pin_process_may_call() || !pin_process_wants_plan(comes) || !begin_planning(&outside)) {
        return pin_life_state() == PLANNED;
    }
    if (pin_process_wants_plan(comes)) {
        pin_life.planned_for_team = comes != PIN_REST_COMES;
        planning_for = comes;
        if (pin_pages_with_stack(make_plan_aside) < 0) {
            pin_failure("no memory for the plan; threads are not pinned");
            leave_idle(FAILED);
        }
    }
    end_planning(outside);
    return pin_life_state() == PLANNED;
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

bool pin_process_thread_is_bound(void)
{
    static struct profile_mask now;
    PIN_NEEDS_LOCK();
    if (pin_self.is_main && atomic_load(&pin_life.main_pu) == MAIN_FREE) {
        return main_is_bound();
    }
    if (pin_life_given_pu() != MAIN_FREE || profile_mask_get(0, &now) < 0) {
        return false;
    }
    return !profile_mask_equal(&now, &pin_here.start) &&
           !profile_mask_equal(&now, &pin_here.children) &&
           !profile_mask_equal(&now, &pin_here.plan.own);
}

/* The user's word for OpenMP counts for the whole process once there is a runtime in it that heeds
 * it. */
bool pin_process_left_to_user(void)
{
    return pin_here.users_choice && !pin_here.options.force && atomic_load(&pin_life.openmp_found);
}

void pin_process_put_memory(void)
{
    if (!pin_life.memory_is_put) {
        pin_life.memory_is_put = true;
        pin_memory_put(&pin_here.options, &pin_here.plan.memory, pin_here.launcher.node_rank == 0);
    }
}

/* -- the main thread -- */

static void say_main(uint32_t pu)
{
    const struct pin_launcher *launcher = &pin_here.launcher;
    char rank[96] = "";
    if (launcher->name) {
        snprintf(rank, sizeof rank, "rank %u of %u on this node (%s): ", launcher->node_rank,
                 launcher->node_ranks, launcher->name);
    }
    pin_log(pin_here.options.verbose, "%smain thread on PU %u (%s)", rank, pu,
            pin_here.plan.source);
}

/* The choice of the program or user that keeps the main thread where it is; NULL: none. */
static const char *main_stays_for(void)
{
    if (pin_process_left_to_user()) {
        return pin_here.users_choice;
    }
    return !pin_here.options.force && main_is_bound() ? "the program" : NULL;
}

/* False: the main thread has its place already, or is left alone. */
static bool claim_main(void)
{
    PIN_NEEDS_LOCK();
    if (atomic_load(&pin_life.main_pu) != MAIN_FREE) {
        return false;
    }
    const char *winner = main_stays_for();
    if (!winner) {
        atomic_store(&pin_life.main_pu, MAIN_CLAIMED);
        pin_process_put_memory();
        return true;
    }
    atomic_store(&pin_life.main_pu, MAIN_LEFT);
    (void)pin_report_begin(PROFILE_ROLE_MAIN, -1,
                           pin_process_left_to_user() ? PROFILE_BY_USER : PROFILE_BY_PROGRAM);
    pin_log(pin_here.options.verbose, "main thread stays where %s wants it", winner);
    return false;
}

void pin_process_say_main_stays(void)
{
    if (atomic_load(&pin_life.main_pu) == MAIN_FREE && main_stays_for()) {
        (void)claim_main();
    }
}

static void place_main(void)
{
    PIN_NEEDS_LOCK();
    const size_t place = pin_pools_place_main(&pin_here.pools);
    if (place == PIN_NO_PLACE) {
        atomic_store(&pin_life.main_pu, MAIN_FREE);
        return;
    }
    const uint32_t pu = pin_here.pools.places[place].pu;
    int rc = pin_life_change_mask(pin_life.pid, (int32_t)pu);
    atomic_store(&pin_life.main_pu, rc < 0 ? MAIN_LEFT : (int)pu);
    if (rc == -ECANCELED) {
        return;
    }
    if (rc < 0) {
        pin_failure("cannot pin the main thread to PU %u: %s", pu, strerrordesc_np(-rc));
    } else {
        atomic_store_explicit(&pin_life.placed, true, memory_order_relaxed);
        say_main(pu);
    }
    (void)pin_report_begin(PROFILE_ROLE_MAIN, rc < 0 ? -1 : (int32_t)pu, PROFILE_BY_SERVET);
}

void pin_process_pin_main(void)
{
    if (claim_main()) {
        place_main();
        pin_process_clear_way();
    }
}

void pin_process_make_room(uint32_t pu)
{
    const struct pin_place *first = &pin_here.pools.places[0];
    PIN_NEEDS_LOCK();
    if (pin_self.is_main && atomic_load(&pin_life.main_pu) == MAIN_FREE && first->pu != pu &&
        first->threads == 0 && !first->avoided && (uint32_t)sched_getcpu() == pu &&
        pin_life_change_mask(0, (int32_t)first->pu) == 0) {
        (void)pin_life_change_mask(0, AS_CHILDREN);
    }
}

bool pin_process_widen_main(void)
{
    if (!claim_main()) {
        return false;
    }
    int rc = pin_life_change_mask(pin_life.pid, MAIN_CLAIMED);
    if (rc < 0 && rc != -ECANCELED) {
        pin_failure("cannot give the rank its PUs: %s", strerrordesc_np(-rc));
    }
    return true;
}

void pin_process_narrow_main(void)
{
    if (atomic_load(&pin_life.main_pu) == MAIN_CLAIMED) {
        place_main();
    }
}

/* -- ends -- */

/* The child of a fork has one thread, on the mask the process was started with, and starts afresh:
 * it is another process, and what others hold has changed. (The old plan's memory is left, for
 * another thread may have been at it.) A sandbox is inherited. */
static void begin_anew(pid_t pid)
{
    if (pin_self.shut || pin_life_state() == RETIRED) {
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

static void say_goodbye(void)
{
    static struct pin_process last; /* other threads go on */
    pin_process_lock();
    last = pin_here;
    pin_why_take_over();
    pin_process_unlock();
    const bool is_placed = atomic_load_explicit(&pin_life.placed, memory_order_relaxed);
    const char *why = pin_why_report() || is_placed ? NULL : pin_why_nothing();
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
