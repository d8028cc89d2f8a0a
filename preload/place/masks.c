/* Changes of threads' masks: when they begin, make children, lose or get a place. No call of ours
 * follows from a thread in a sandbox. The states are drawn in process.c. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "preload/base/libc.h"
#include "preload/node/node.h"
#include "preload/place/life.h"
#include "preload/place/report.h"
#include "preload/place/watch.h"
#include "profile/base/clock.h"
#include "profile/base/syscall.h"

/* -- masks of threads -- */

static struct profile_mask one_pu(int32_t pu)
{
    struct profile_mask mask = {0};
    profile_mask_add(&mask, (uint32_t)pu);
    return mask;
}

static const struct profile_mask *left_mask(void)
{
    return pin_here.launcher.name ? &pin_here.plan.own : &pin_here.children;
}

/* The mask of a thread whose PU is `pu`. */
static struct profile_mask mask_of(int32_t pu)
{
    return pu == PIN_LEFT ? *left_mask() : one_pu(pu);
}

int pin_life_change_mask(pid_t tid, const struct profile_mask *mask, uint32_t pu)
{
    int rc = -ECANCELED;
    atomic_fetch_add(&pin_life.calls, 1);
    if (atomic_load(&pin_life.state) != RETIRED) {
        rc = mask ? profile_mask_set(tid, mask) : profile_mask_set_pu(tid, pu);
    }
    atomic_fetch_sub(&pin_life.calls, 1);
    return rc;
}

/* The mask of a thread of ours that runs (the lock is held); NULL: the main thread. Libc's handle
 * is used: the thread's number would cost one more system call in each. */
static bool get_mask(const struct pin_thread *thread, struct profile_mask *out)
{
    *out = (struct profile_mask){0};
    return thread
               ? PIN_LIBC(pthread_getaffinity_np)(thread->self, sizeof *out, (cpu_set_t *)out) == 0
               : profile_mask_get(pin_life.pid, out) == 0;
}

static bool set_mask(const struct pin_thread *thread, const struct profile_mask *mask)
{
    return thread ? PIN_LIBC(pthread_setaffinity_np)(thread->self, sizeof *mask,
                                                     (const cpu_set_t *)mask) == 0
                  : profile_mask_set(pin_life.pid, mask) == 0;
}

/* Gives it `to`, if it still has `from`. A thread that waits by sched_yield() beside another one is
 * not moved by the kernel when it is set free. Beside the main thread, which mostly waits for it,
 * it does not stand in the way. */
static bool replace_mask(const struct pin_thread *thread, const struct profile_mask *from,
                         const struct profile_mask *to)
{
    const int32_t main_pu = pin_process_main_pu();
    struct profile_mask now;
    if (!get_mask(thread, &now) || !profile_mask_equal(&now, from)) {
        return false;
    }
    if (thread && main_pu >= 0 && profile_mask_count(to) > 1) {
        now = one_pu(main_pu);
        (void)set_mask(thread, &now);
    }
    return set_mask(thread, to);
}

/* A thread that is on its PU gets the mask of children. */
static void unpin_thread(const struct pin_thread *thread, int32_t pu)
{
    const struct profile_mask given = one_pu(pu);
    (void)replace_mask(thread, &given, &pin_here.children);
}

/* -- the calling thread -- */

int32_t pin_process_main_pu(void)
{
    return atomic_load_explicit(&pin_life.main_pu, memory_order_relaxed);
}

int32_t pin_process_thread_pu(void)
{
    int32_t pu = pin_self.is_main  ? pin_process_main_pu()
                 : pin_self.record ? atomic_load(&pin_self.record->pu)
                                   : -1;
    return pu >= 0 ? pu : -1;
}

void pin_process_forget_thread(void)
{
    if (!pin_self.is_main) {
        if (pin_self.record) {
            atomic_store(&pin_self.record->watched.tid, 0);
        }
        pin_self.record = NULL;
    } else if (pin_process_main_pu() >= 0 || pin_process_main_pu() == MAIN_LOOSE) {
        atomic_store(&pin_life.main_pu, MAIN_LEFT);
    }
}

void pin_process_told_pu(void)
{
    pin_self.told = pin_process_thread_pu() + 1;
    pin_self.told_record = pin_self.record;
}

void pin_process_bound_by_program(const struct profile_mask *mask)
{
    struct profile_mask told = {0};
    int pu = pin_self.told - 1, now = pin_process_thread_pu(), left = MAIN_LEFT;
    if (pu >= 0) {
        profile_mask_add(&told, (uint32_t)pu);
    }
    if (pu < 0 || !profile_mask_equal(mask, &told) || (now >= 0 && now != pu)) {
        pin_process_forget_thread();
    } else if (pin_self.is_main) {
        (void)atomic_compare_exchange_strong(&pin_life.main_pu, &left, pu);
    } else if (!pin_self.record && pin_self.told_record &&
               atomic_load(&pin_self.told_record->pu) == pu) {
        pin_self.record = pin_self.told_record;
    }
}

int pin_process_begin_thread(struct pin_thread *thread, int32_t born)
{
    pin_process_lock();
    thread->self = pthread_self();
    thread->runs = true;
    const int32_t pu = atomic_load(&thread->pu);
    pin_process_unlock();
    pin_self.record = thread;
    if (pin_here.options.watch) {
        atomic_store(&thread->watched.tid, (int)profile_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0));
    }
    if (atomic_load(&pin_life.gave_up)) {
        return born >= 0 ? profile_mask_set(0, &pin_here.children) : 0;
    }
    if (pu >= 0) {
        atomic_store_explicit(&pin_life.placed, true, memory_order_relaxed);
    }
    if (pu == born) {
        return 0;
    }
    const struct profile_mask mask = mask_of(pu);
    const int32_t main_pu = pin_process_main_pu();
    if (pu == PIN_LEFT && thread->pool < PIN_POOLS && main_pu >= 0 && main_pu != born) {
        (void)pin_life_change_mask(0, NULL, (uint32_t)main_pu); /* as replace_mask() does */
    }
    return pin_life_change_mask(0, &mask, 0);
}

int pin_process_keep_pu(void)
{
    int32_t pu = pin_process_thread_pu();
    return pu < 0 ? -EINVAL : pin_life_change_mask(0, NULL, (uint32_t)pu);
}

bool pin_life_given_mask(struct profile_mask *out)
{
    int32_t pu = pin_self.is_main  ? pin_process_main_pu()
                 : pin_self.record ? atomic_load(&pin_self.record->pu)
                                   : MAIN_FREE;
    *out = (struct profile_mask){0};
    if (pu == MAIN_CLAIMED) {
        *out = pin_here.plan.own;
    } else if (pu >= 0 || pu == PIN_LEFT) {
        *out = mask_of(pu);
    }
    return pu >= 0 || pu == PIN_LEFT || pu == MAIN_CLAIMED;
}

/* Read by any thread that wants to move the calling one. */
static void set_away(bool away)
{
    if (getpid() == pin_life.pid) { /* not the child of a vfork() */
        atomic_store(pin_self.record ? &pin_self.record->watched.away : &pin_life.main_away, away);
    }
}

bool pin_process_unpin_thread(void)
{
    struct profile_mask given, now;
    /* Children of any other thread inherit from it what they do without the shim. */
    if (pin_self.shut_child || !pin_life_given_mask(&given) ||
        profile_mask_equal(&given, &pin_here.children)) {
        return false;
    }
    set_away(true);
    if (profile_mask_get(0, &now) == 0 && profile_mask_equal(&now, &given) &&
        pin_life_change_mask(0, &pin_here.children, 0) == 0) {
        return true;
    }
    set_away(false);
    return false;
}

void pin_process_repin_thread(void)
{
    struct profile_mask given, now;
    /* Only a child that did not become another program is still in it. */
    pin_self.shut_child = false;
    if (pin_life_given_mask(&given) && profile_mask_get(0, &now) == 0) {
        if (profile_mask_equal(&now, &pin_here.children)) {
            pin_life_change_mask(0, &given, 0);
        } else {
            pin_process_forget_thread();
        }
    }
    set_away(false);
}

const struct profile_mask *pin_process_view(void)
{
    if (pin_process_thread_pu() < 0) {
        return NULL;
    }
    return pin_here.launcher.name ? &pin_here.plan.own : &pin_here.start;
}

/* -- sandboxes -- */

/* A thread that has been made and has not begun is not known to libc by a name of ours yet. */
#define LONGEST_BIRTH_NS 1000000000u

static bool somebody_is_being_born(void)
{
    bool born = false;
    pin_process_lock();
    for (uint32_t number = pin_record_count(); number > 0; number--) {
        const struct pin_thread *thread = pin_record_at(number);
        born |= thread->place != PIN_NO_PLACE && !thread->runs;
    }
    pin_process_unlock();
    return born;
}

/* All threads that are pinned get the mask of children. */
static void unpin_everybody(void)
{
    const int32_t main_pu = pin_process_main_pu();
    if (main_pu >= 0) {
        unpin_thread(NULL, main_pu);
    }
    pin_process_lock();
    for (uint32_t number = pin_record_count(); number > 0; number--) {
        const struct pin_thread *thread = pin_record_at(number);
        const int32_t pu = atomic_load(&thread->pu);
        if (thread->runs && pu >= 0) {
            unpin_thread(thread, pu);
        }
    }
    pin_process_unlock();
}

static void shut_everybody(void)
{
    pin_watch_stop();
    const int before = atomic_exchange(&pin_life.state, RETIRED);
    const uint64_t begun_ns = profile_now_ns();
    while (atomic_load(&pin_life.calls) > 0 || (before == PLANNED && somebody_is_being_born() &&
                                                profile_now_ns() - begun_ns < LONGEST_BIRTH_NS)) {
        sched_yield();
    }
    if (before == PLANNED) {
        unpin_everybody();
    }
}

void pin_process_give_up(void)
{
    atomic_store(&pin_life.gave_up, true);
    shut_everybody();
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

/* -- moving -- */

void pin_process_clear_way(void)
{
    const struct profile_mask *left = left_mask();
    atomic_fetch_add(&pin_life.calls, 1);
    for (uint32_t number = pin_record_count(); number > 0; number--) {
        const struct pin_thread *thread = pin_record_at(number);
        if (thread->runs && thread->pool < PIN_POOLS && atomic_load(&thread->pu) == PIN_LEFT &&
            atomic_load(&pin_life.state) == PLANNED) {
            (void)replace_mask(thread, left, left);
        }
    }
    atomic_fetch_sub(&pin_life.calls, 1);
}

/* The number first, then the mask, so that a thread which looks at both at this moment takes its
 * mask for one that has not arrived yet. One that is making a child keeps the mask for it. */
static bool move_mask(struct pin_thread *thread, int32_t pu)
{
    atomic_int *at = thread ? &thread->pu : &pin_life.main_pu;
    atomic_bool *away = thread ? &thread->watched.away : &pin_life.main_away;
    int32_t before = atomic_load(at);
    bool moved = false;
    if (before < 0 && before != PIN_LEFT) {
        return false;
    }
    if (thread && !thread->runs) {
        atomic_store(at, pu); /* it sees it when it begins */
        return true;
    }
    struct profile_mask from = mask_of(before), to = mask_of(pu);
    atomic_fetch_add(&pin_life.calls, 1);
    if (atomic_load(&pin_life.state) == PLANNED) {
        moved = atomic_compare_exchange_strong(at, &before, pu);
        if (moved && !atomic_load(away)) {
            moved = replace_mask(thread, &from, &to);
            if (!moved) {
                atomic_store(at, before);
            } else if (atomic_load(away)) {
                (void)set_mask(thread, &pin_here.children);
            }
        }
    }
    atomic_fetch_sub(&pin_life.calls, 1);
    return moved;
}

static void say_moved(const struct pin_thread *thread, int32_t pu)
{
    const char *which = thread ? "a thread" : "the main thread",
               *dso = thread && thread->dso && *thread->dso ? thread->dso : "the program";
    if (!thread || thread->report_line > 0) {
        pin_report_moved(thread ? thread->report_line : 0, pu);
    }
    pin_log(pin_here.options.verbose && pu >= 0, "%s of %s moved to PU %d", which, dso, pu);
    pin_log(pin_here.options.verbose && pu < 0, "%s of %s left to the kernel", which, dso);
}

bool pin_process_move(struct pin_thread *thread, int32_t pu)
{
    bool moved = false;
    pin_process_lock();
    const int32_t before = thread ? atomic_load(&thread->pu) : pin_process_main_pu();
    if (pin_pools_move(&pin_here.pools, thread, pu)) {
        moved = move_mask(thread, pu);
        if (moved) {
            say_moved(thread, pu);
        } else {
            (void)pin_pools_move(&pin_here.pools, thread, before);
        }
    }
    pin_process_unlock();
    return moved;
}

void pin_process_put(struct pin_thread *thread, int32_t pu)
{
    if (move_mask(thread, pu)) {
        say_moved(thread, pu);
    }
}

void pin_process_leave(struct pin_thread *thread)
{
    if (thread) {
        thread->decider = PROFILE_BY_KERNEL; /* for one that has not begun */
    }
    pin_process_put(thread, PIN_LEFT);
}
