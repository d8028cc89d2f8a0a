/* From the start of the process to its end: the start, forks, the plan, the main thread, sandboxes.
 * The states are drawn in state.c. */
#include "preload/place/process.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
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
#include "profile/base/clock.h"
#include "profile/base/launchers.h"
#include "profile/base/syscall.h"
#include "profile/text/record.h"

static void after_fork_in_child(void);
static void begin_anew(pid_t pid);

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
    pin_life_make_lock();
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

bool pin_process_plan(enum pin_comes comes)
{
    bool outside;
    pin_life.called_mpi |= comes == PIN_RANK_COMES;
    if (!pin_process_may_call() || !pin_process_wants_plan(comes) ||
        !pin_life_begin_planning(&outside)) {
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
    pin_life_end_planning(outside);
    return pin_life_state() == PLANNED;
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

/* -- sandboxes -- */

/* For threads that have been made and are not known by their number yet, or are changing a mask.
 * One that was killed there never ends it. */
#define LONGEST_WAIT_NS 1000000000u

static bool is_any_being_made(void)
{
    bool any = false;
    pin_process_lock();
    for (uint32_t number = pin_record_count(); number > 0; number--) {
        const struct pin_thread *thread = pin_record_at(number);
        any |= thread->place != PIN_NO_PLACE && atomic_load(&thread->tid) == 0;
    }
    pin_process_unlock();
    return any;
}

static void shut_everybody(void)
{
    const int before = atomic_exchange(&pin_life.state, RETIRED);
    (void)pin_watch_stop();
    const uint64_t begun_ns = profile_now_ns();
    while ((atomic_load(&pin_life.calls) > 0 || (before == PLANNED && is_any_being_made())) &&
           profile_now_ns() - begun_ns < LONGEST_WAIT_NS) {
        pin_life_await(&pin_life.calls, atomic_load(&pin_life.calls));
    }
    if (before == PLANNED) {
        pin_process_unpin_everybody();
    }
}

void pin_process_give_up(void)
{
    atomic_store(&pin_life.gave_up, true);
    shut_everybody();
}

void pin_process_start_on(const struct profile_mask *mask)
{
    const bool planned = pin_life_state() == PLANNED;
    pin_process_lock();
    pin_here.start = pin_here.children = *mask;
    pin_process_unlock();
    if (planned) {
        pin_process_give_up();
    }
    (void)profile_mask_set(pin_life.pid, mask);
}

void pin_process_shut(bool everybody)
{
    if (!pin_process_active()) {
        return;
    }
    int saved = errno;
    bool of_child = getpid() != pin_life.pid; /* a child of vfork() has our memory */
    pin_log(!of_child && pin_life_state() == PLANNED && pin_here.options.verbose,
            "%s in a sandbox; threads are not placed %s",
            everybody ? "shuts itself" : "a thread shuts itself",
            everybody ? "from now on" : "by it from now on");
    if (of_child) {
        pin_process_unpin_thread();
        pin_self.shut_child = true;
    } else if (everybody) {
        shut_everybody();
    } else {
        pin_process_unpin_thread();
        pin_self.shut = true;
    }
    errno = saved;
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
    pin_life_make_lock();
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
