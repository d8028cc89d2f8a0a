/* The state of the process that the shim lives in, and what guards it.
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
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>

#include "preload/base/filter.h"
#include "preload/base/pages.h"
#include "preload/node/log.h"
#include "preload/place/process.h"
#include "profile/base/syscall.h"

struct pin_process pin_here;
struct pin_life pin_life = {.main_pu = MAIN_FREE};
__thread struct pin_self pin_self __attribute__((tls_model("initial-exec")));

/* -- the lock -- */

static pthread_mutex_t lock;

/* A filter may kill a thread alone (SECCOMP_RET_KILL_THREAD), at any call. */
void pin_life_make_lock(void)
{
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&lock, &robust);
    pthread_mutexattr_destroy(&robust);
}

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

/* -- one thread at a time, without the lock -- */

bool pin_life_begin_planning(bool *outside)
{
    if (atomic_exchange(&pin_life.planning, true)) {
        return false;
    }
    PIN_TAKES(HOLDS_PLANNING);
    *outside = pin_self.inside;
    pin_self.inside = true;
    return true;
}

void pin_life_end_planning(bool outside)
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
        pin_here.start_is_lost || getpid() != pin_life.pid || !pin_life_begin_planning(&outside)) {
        return;
    }
    pin_here.start_is_lost = pin_filter_is_there();
    pin_here.start_is_known = !pin_here.start_is_lost && profile_mask_get(0, &pin_here.start) == 0;
    pin_life_end_planning(outside);
    errno = saved;
}

void pin_life_await(atomic_int *word, int value)
{
    static const struct timespec moment = {.tv_nsec = 200000};
    profile_syscall(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, value, (long)&moment, 0, 0);
}

/* -- what is known -- */

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
    if (!pin_life_begin_planning(&outside)) {
        return false;
    }
    if (!try_calls()) {
        atomic_store_explicit(&pin_life.state, RETIRED, memory_order_release);
    }
    atomic_store(&pin_life.calls_known, true);
    pin_life_end_planning(outside);
    return pin_life_state() != RETIRED;
}

bool pin_process_wants_plan(enum pin_comes comes)
{
    return pin_life_state() == IDLE || (pin_life_state() == PLANNED && comes == PIN_TEAM_COMES &&
                                        !pin_life.planned_for_team && !pin_here.launcher.name);
}

/* The user's word for OpenMP counts for the whole process once there is a runtime in it that heeds
 * it. */
bool pin_process_left_to_user(void)
{
    return pin_here.users_choice && !pin_here.options.force && atomic_load(&pin_life.openmp_found);
}
