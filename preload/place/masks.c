/* Changes of threads' masks: when they begin, make children, lose or get a place. No call of ours
 * follows from a thread in a sandbox. The states are drawn in state.c.
 *
 * A thread may have ended without a word to us (a raw exit, a filter that killed it alone), and the
 * kernel may have given its number to another one. So threads are known by that number, never by
 * libc's handle; the kernel says whether it is a thread of this process, and the mask whether it is
 * where we put it. A later thread of this process with the number of one that is gone passes for it
 * at worst: it stands on a PU that no other thread has. */
#include <errno.h>
#include <unistd.h>

#include "preload/node/log.h"
#include "preload/place/process.h"
#include "preload/place/report.h"
#include "profile/base/syscall.h"

/* -- masks of threads -- */

/* In place of a PU. */
static const struct profile_mask *wide_mask(int32_t pu)
{
    const bool is_own = pu == MAIN_CLAIMED || (pu == PIN_LEFT && pin_here.launcher.name);
    return is_own ? &pin_here.plan.own : &pin_here.children;
}

/* Is it the mask of a thread whose PU is `pu`? */
static bool is_mask_of(const struct profile_mask *mask, int32_t pu)
{
    return pu >= 0 ? profile_mask_has(mask, (uint32_t)pu) && profile_mask_count(mask) == 1
                   : profile_mask_equal(mask, wide_mask(pu));
}

static int set_mask(pid_t tid, int32_t pu)
{
    return pu >= 0 ? profile_mask_set_pu(tid, (uint32_t)pu) : profile_mask_set(tid, wide_mask(pu));
}

int pin_life_change_mask(pid_t tid, int32_t pu)
{
    int rc = -ECANCELED;
    atomic_fetch_add(&pin_life.calls, 1);
    if (atomic_load(&pin_life.state) != RETIRED) {
        rc = set_mask(tid, pu);
    }
    atomic_fetch_sub(&pin_life.calls, 1);
    return rc;
}

bool pin_process_thread_is_gone(const struct pin_thread *thread)
{
    const pid_t tid = atomic_load(&thread->tid);
    return tid != 0 && profile_syscall(SYS_tgkill, pin_life.pid, tid, 0, 0, 0, 0) == -ESRCH;
}

/* Gives a thread of ours, NULL: the main thread, the mask of `to`, if it runs and still has that of
 * `from`. The lock is held. A thread that waits by sched_yield() beside another one is not moved by
 * the kernel when it is set free. Beside the main thread, which mostly waits for it, it does not
 * stand in the way. */
static bool replace_mask(const struct pin_thread *thread, int32_t from, int32_t to)
{
    static struct profile_mask now;
    const int32_t main_pu = atomic_load(&pin_life.main_pu);
    const pid_t tid = thread ? atomic_load(&thread->tid) : pin_life.pid;
    PIN_NEEDS_LOCK();
    if ((thread && pin_process_thread_is_gone(thread)) || profile_mask_get(tid, &now) < 0 ||
        !is_mask_of(&now, from)) {
        return false;
    }
    if (thread && main_pu >= 0 && to < 0 && profile_mask_count(wide_mask(to)) > 1) {
        (void)set_mask(tid, main_pu);
    }
    return set_mask(tid, to) == 0;
}

/* -- the calling thread -- */

int32_t pin_life_given_pu(void)
{
    const int32_t pu = pin_self.is_main  ? atomic_load(&pin_life.main_pu)
                       : pin_self.record ? atomic_load(&pin_self.record->pu)
                                         : MAIN_FREE;
    return pu == MAIN_LEFT ? MAIN_FREE : pu;
}

void pin_process_forget_thread(void)
{
    const int32_t main_pu = atomic_load(&pin_life.main_pu);
    if (!pin_self.is_main) {
        if (pin_self.record) {
            atomic_store(&pin_self.record->bound, true);
        }
        pin_self.record = NULL;
    } else if (main_pu >= 0 || main_pu == MAIN_LOOSE) {
        atomic_store(&pin_life.main_pu, MAIN_LEFT);
    }
}

void pin_process_bound_by_program(const struct profile_mask *mask)
{
    if (pin_life_state() == IDLE && getpid() == pin_life.pid) {
        pin_here.chosen = *mask;
        pin_here.has_chosen = true;
    }
    int pu = pin_self.told - 1, now = pin_life_given_pu(), left = MAIN_LEFT;
    if (pu < 0 || !is_mask_of(mask, pu) || (now >= 0 && now != pu)) {
        pin_process_forget_thread();
    } else if (pin_self.is_main) {
        (void)atomic_compare_exchange_strong(&pin_life.main_pu, &left, pu);
    } else if (!pin_self.record && pin_self.told_record &&
               atomic_load(&pin_self.told_record->pu) == pu) {
        pin_self.record = pin_self.told_record;
        atomic_store(&pin_self.record->bound, false);
    }
}

int pin_process_take_place(struct pin_thread *thread)
{
    const int32_t made_on = thread->made_on;
    const int tid = (int)profile_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    pin_process_lock();
    atomic_store(&thread->tid, tid);
    const int32_t pu = atomic_load(&thread->pu);
    pin_process_unlock();
    pin_self.record = thread;
    if (atomic_load(&pin_life.gave_up)) {
        return made_on >= 0 ? profile_mask_set(0, &pin_here.children) : 0;
    }
    if (pu >= 0) {
        atomic_store_explicit(&pin_life.placed, true, memory_order_relaxed);
    }
    if (pu == made_on) {
        return 0;
    }
    const int32_t main_pu = atomic_load(&pin_life.main_pu);
    if (pu == PIN_LEFT && thread->pool < PIN_POOLS && main_pu >= 0 && main_pu != made_on) {
        (void)pin_life_change_mask(0, main_pu); /* as replace_mask() does */
    }
    return pin_life_change_mask(0, pu);
}

/* Read by any thread that wants to move the calling one. */
static void set_away(bool away)
{
    if (getpid() == pin_life.pid) { /* not the child of a vfork() */
        atomic_store(pin_self.record ? &pin_self.record->away : &pin_life.main_away, away);
    }
}

bool pin_process_unpin_thread(void)
{
    struct profile_mask now;
    const int32_t pu = pin_life_given_pu();
    /* Children of any other thread inherit from it what they do without the shim. */
    if (pin_self.shut_child || pu == MAIN_FREE || is_mask_of(&pin_here.children, pu)) {
        return false;
    }
    set_away(true);
    if (profile_mask_get(0, &now) == 0 && is_mask_of(&now, pu) &&
        pin_life_change_mask(0, AS_CHILDREN) == 0) {
        return true;
    }
    set_away(false);
    return false;
}

void pin_process_repin_thread(void)
{
    struct profile_mask now;
    const int32_t pu = pin_life_given_pu();
    /* Only a child that did not become another program is still in it. */
    pin_self.shut_child = false;
    if (pu != MAIN_FREE && profile_mask_get(0, &now) == 0) {
        if (is_mask_of(&now, AS_CHILDREN)) {
            (void)pin_life_change_mask(0, pu);
        } else {
            pin_process_forget_thread();
        }
    }
    set_away(false);
}

const struct profile_mask *pin_process_view(void)
{
    if (pin_life_given_pu() < 0) {
        return NULL;
    }
    return pin_here.launcher.name ? &pin_here.plan.own : &pin_here.start;
}

bool pin_process_main_is_ours(void)
{
    struct profile_mask now;
    pin_process_note_start();
    const int32_t pu = atomic_load(&pin_life.gave_up) ? MAIN_FREE : atomic_load(&pin_life.main_pu);
    return pu != MAIN_LEFT && profile_mask_get(pin_life.pid, &now) == 0 &&
           (pu >= 0 ? is_mask_of(&now, pu) : profile_mask_equal(&now, &pin_here.start));
}

/* -- all threads -- */

void pin_process_unpin_everybody(void)
{
    const int32_t main_pu = atomic_load(&pin_life.main_pu);
    pin_process_lock();
    if (main_pu >= 0) {
        (void)replace_mask(NULL, main_pu, AS_CHILDREN);
    }
    for (uint32_t number = pin_record_count(); number > 0; number--) {
        const struct pin_thread *thread = pin_record_at(number);
        const int32_t pu = atomic_load(&thread->pu);
        if (atomic_load(&thread->tid) != 0 && pu >= 0) {
            (void)replace_mask(thread, pu, AS_CHILDREN);
        }
    }
    pin_process_unlock();
}

/* -- moving -- */

void pin_process_clear_way(void)
{
    atomic_fetch_add(&pin_life.calls, 1);
    for (uint32_t number = pin_record_count(); number > 0; number--) {
        const struct pin_thread *thread = pin_record_at(number);
        if (atomic_load(&thread->tid) != 0 && thread->pool < PIN_POOLS &&
            atomic_load(&thread->pu) == PIN_LEFT && atomic_load(&pin_life.state) == PLANNED) {
            (void)replace_mask(thread, PIN_LEFT, PIN_LEFT);
        }
    }
    atomic_fetch_sub(&pin_life.calls, 1);
}

/* The number first, then the mask, so that a thread which looks at both at this moment takes its
 * mask for one that has not arrived yet. One that is making a child keeps the mask for it. */
static bool move_mask(struct pin_thread *thread, int32_t pu)
{
    atomic_int *at = thread ? &thread->pu : &pin_life.main_pu;
    atomic_bool *away = thread ? &thread->away : &pin_life.main_away;
    int32_t before = atomic_load(at);
    bool moved = false;
    PIN_NEEDS_LOCK();
    if (before < 0 && before != PIN_LEFT) {
        return false;
    }
    if (thread && atomic_load(&thread->tid) == 0) {
        atomic_store(at, pu); /* it sees it when it begins */
        return true;
    }
    atomic_fetch_add(&pin_life.calls, 1);
    if (atomic_load(&pin_life.state) == PLANNED) {
        moved = atomic_compare_exchange_strong(at, &before, pu);
        if (moved && !atomic_load(away)) {
            moved = replace_mask(thread, before, pu);
            if (!moved) {
                atomic_store(at, before);
            } else if (atomic_load(away)) {
                (void)replace_mask(thread, pu, AS_CHILDREN);
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
    const uint32_t line = thread ? atomic_load(&thread->report_line) : 0;
    if (!thread || line > 0) {
        pin_report_moved(line, pu);
    }
    pin_log(pin_here.options.verbose && pu >= 0, "%s of %s moved to PU %d", which, dso, pu);
    pin_log(pin_here.options.verbose && pu < 0, "%s of %s left to the kernel", which, dso);
}

bool pin_process_move(struct pin_thread *thread, uint64_t born_ns, int32_t from, int32_t pu)
{
    bool moved = false;
    pin_process_lock();
    const bool is_same = thread ? thread->born_ns == born_ns && thread->pool < PIN_POOLS &&
                                      atomic_load(&thread->pu) == from
                                : atomic_load(&pin_life.main_pu) == from;
    if (is_same && pin_pools_move(&pin_here.pools, thread, pu)) {
        moved = move_mask(thread, pu);
        if (moved) {
            say_moved(thread, pu);
        } else {
            (void)pin_pools_move(&pin_here.pools, thread, from);
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
        atomic_store(&thread->decider, PROFILE_BY_KERNEL); /* for one that has not begun */
    }
    pin_process_put(thread, PIN_LEFT);
}
