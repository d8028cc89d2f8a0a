/* Who changes which thread's mask, and when nobody may: threads that begin, that make children,
 * that the watch moves, and sandboxes, after whose beginning no call of ours comes from those who
 * are in it. The states are drawn in process.c. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload/node/node.h"
#include "preload/place/life.h"
#include "profile/base/raw.h"

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

int32_t pin_process_thread_pu(void)
{
    if (pin_self.is_main) {
        int pu = atomic_load_explicit(&pin_life.main_pu, memory_order_relaxed);
        return pu >= 0 ? pu : -1;
    }
    int pu = pin_self.mask == MASK_PU ? atomic_load(&pin_self.record->pu) : -1;
    return pu >= 0 ? pu : -1;
}

static bool is_loose(void)
{
    return pin_self.is_main
               ? atomic_load(&pin_life.main_pu) == MAIN_LOOSE
               : pin_self.mask == MASK_PU && atomic_load(&pin_self.record->pu) == PIN_LOOSE;
}

void pin_process_forget_thread(void)
{
    if (!pin_self.is_main) {
        if (pin_self.mask != MASK_FREE) {
            atomic_store(&pin_self.record->watched.tid, 0);
        }
        pin_self.mask = MASK_FREE;
    } else if (atomic_load(&pin_life.main_pu) >= 0 || is_loose()) {
        atomic_store(&pin_life.main_pu, MAIN_LEFT);
    }
}

static void be_on_pu(struct pin_thread *record)
{
    pin_self.mask = MASK_PU;
    pin_self.record = record;
    if (pin_here.options.watch) {
        atomic_store(&record->watched.tid, (int)profile_raw(SYS_gettid, 0, 0, 0, 0, 0, 0));
    }
}

void pin_process_told_pu(void)
{
    pin_self.told = pin_process_thread_pu() + 1;
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
    } else if (pin_self.mask == MASK_FREE && atomic_load(&pin_self.record->pu) == pu) {
        be_on_pu(pin_self.record);
    }
}

int pin_process_settle_thread(struct pin_thread *record)
{
    int pu = atomic_load(&record->pu);
    int rc = pin_life_change_mask(0, pu < 0 ? &pin_here.plan.own : NULL, (uint32_t)pu);
    if (rc == 0 && pu >= 0) {
        be_on_pu(record);
    } else if (rc == 0) {
        pin_self.mask = MASK_SPREAD;
        pin_self.record = record;
    }
    return rc;
}

int pin_process_keep_pu(void)
{
    int32_t pu = pin_process_thread_pu();
    return pu < 0 ? -EINVAL : pin_life_change_mask(0, NULL, (uint32_t)pu);
}

bool pin_life_given_mask(struct profile_mask *out)
{
    int32_t pu = pin_process_thread_pu();
    bool spread = pin_self.is_main ? atomic_load_explicit(&pin_life.main_pu,
                                                          memory_order_relaxed) == MAIN_CLAIMED
                                   : pin_self.mask == MASK_SPREAD;
    *out = (struct profile_mask){0};
    if (pu >= 0) {
        profile_mask_add(out, (uint32_t)pu);
    } else if (is_loose()) {
        *out = pin_here.allowed;
    } else if (spread) {
        *out = pin_here.plan.own;
    }
    return pu >= 0 || spread || is_loose();
}

/* Where the watch looks whether it may move the calling thread. */
static void set_away(bool away)
{
    if (pin_here.options.watch && getpid() == pin_life.pid) { /* not the child of a vfork() */
        atomic_store(pin_self.is_main || pin_self.mask == MASK_FREE
                         ? &pin_life.main_away
                         : &pin_self.record->watched.away,
                     away);
    }
}

bool pin_process_unpin_thread(void)
{
    struct profile_mask given, now;
    set_away(true);
    if (!pin_self.shut_child && pin_life_given_mask(&given) && profile_mask_get(0, &now) == 0 &&
        profile_mask_equal(&now, &given) && pin_life_change_mask(0, &pin_here.children, 0) == 0) {
        return true;
    }
    set_away(false);
    return false;
}

void pin_process_repin_thread(void)
{
    struct profile_mask given, now;
    pin_self.shut_child =
        false; /* only a child that did not become another program is still in it */
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
    if (exchange_mask(looked_at, &given, &pin_here.children)) {
        thread->tid = looked_at;
        looked_at = 0;
    }
}

static void repin(struct pin_thread *thread)
{
    if (thread->tid != 0 && thread->pu >= 0) {
        struct profile_mask given = one_pu(thread->pu);
        (void)exchange_mask(thread->tid, &pin_here.children, &given);
    }
    thread->tid = 0;
}

static void unpin_everybody(void)
{
    struct dirent *entry;
    int32_t main_pu = atomic_load(&pin_life.main_pu);
    if (main_pu >= 0) {
        struct profile_mask given = one_pu(main_pu);
        (void)exchange_mask(pin_life.pid, &given, &pin_here.children);
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

/* What it was before. */
static int shut_everybody(void)
{
    pin_watch_stop();
    int before = atomic_exchange(&pin_life.state, RETIRED);
    while (atomic_load(&pin_life.calls) > 0) {
        sched_yield();
    }
    if (before == PLANNED) {
        unpin_everybody();
    }
    return before;
}

void pin_process_give_up(void)
{
    atomic_store(&pin_life.gave_up, true);
    shut_everybody();
}

void pin_process_settle_late(void)
{
    if (atomic_load(&pin_life.gave_up)) {
        profile_mask_set(0, &pin_here.children);
    }
}

bool pin_process_shut_begin(bool everybody)
{
    if (!pin_process_active()) {
        return false;
    }
    int saved = errno;
    bool of_child = getpid() != pin_life.pid; /* a child of vfork() has our memory */
    if (!of_child && pin_life_state() == PLANNED && pin_here.options.verbose) {
        pin_note("process %d: %s in a sandbox; threads are not placed %s", (int)pin_life.pid,
                 everybody ? "shuts itself" : "a thread shuts itself",
                 everybody ? "from now on" : "by it from now on");
    }
    if (of_child) {
        pin_process_unpin_thread();
        pin_self.shut_child = true;
    } else if (everybody) {
        atomic_store(&pin_life.shut_of, shut_everybody());
    } else {
        pin_process_unpin_thread();
        pin_self.shut = true;
    }
    errno = saved;
    return true;
}

void pin_process_shut_failed(bool everybody)
{
    int saved = errno;
    if (!pin_self.shut && !pin_self.shut_child && everybody) {
        int before = atomic_exchange(&pin_life.shut_of, 0);
        if (before == PLANNED && atomic_load(&pin_life.main_pu) >= 0) {
            struct profile_mask given = one_pu(atomic_load(&pin_life.main_pu));
            (void)exchange_mask(pin_life.pid, &pin_here.children, &given);
        }
        pin_records_each(repin);
        atomic_store(&pin_life.state, before);
    } else {
        pin_self.shut = false;
        pin_process_repin_thread();
    }
    errno = saved;
}

/* -- moving -- */

int32_t pin_process_main_pu(void)
{
    return atomic_load(&pin_life.main_pu);
}

/* The mask of a thread whose PU is `pu`. */
static struct profile_mask mask_of(int32_t pu)
{
    return pu == PIN_LOOSE ? pin_here.allowed : one_pu(pu);
}

/* The number first, then the mask, so that a thread which looks at both at this moment takes its
 * mask for one that has not arrived yet. One that is making a child keeps the mask for it. */
bool pin_process_move(struct pin_thread *record, int32_t pu)
{
    atomic_int *at = record ? &record->pu : &pin_life.main_pu;
    atomic_bool *away = record ? &record->watched.away : &pin_life.main_away;
    pid_t tid = record ? atomic_load(&record->watched.tid) : pin_life.pid;
    int before = atomic_load(at);
    bool moved = false;
    if (before < 0 && before != PIN_LOOSE) {
        return false;
    }
    struct profile_mask from = mask_of(before), to = mask_of(pu);
    atomic_fetch_add(&pin_life.calls, 1);
    if (atomic_load(&pin_life.state) == PLANNED && !atomic_load(away)) {
        moved = tid != 0 && atomic_compare_exchange_strong(at, &before, pu) &&
                exchange_mask(tid, &from, &to);
        if (!moved && atomic_load(at) == pu) {
            atomic_store(at, before);
        } else if (moved && atomic_load(away)) {
            (void)profile_mask_set(tid, &pin_here.children);
        }
    }
    atomic_fetch_sub(&pin_life.calls, 1);
    return moved;
}
