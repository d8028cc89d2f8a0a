/* While the program runs: a thread that waits for its PU beside another process is moved.
 *
 * A thread of ours asks now and then how long each placed thread has run and waited for its PU
 * (/proc/self/task/TID/schedstat). It does nothing more until one waits. Then it asks which PUs
 * idle, too, and so whether other processes run on the program's PUs:
 *
 *    a thread    HOME --waits, and a PU idles that is no job's---> AWAY, on that PU
 *                HOME <--its own PU has been so for some looks---- AWAY
 *
 *    a pool      PLACED --one waits, and no PU idles--> LEFT, whole: as the kernel sees fit
 *                PLACED <--the PUs are our own for some looks, or other jobs give them back-- LEFT
 *
 * A team stays PLACED: its threads wait for one another, and lose more where the kernel moves them.
 *
 * The watching thread is in the process because only there is known which thread we have put where,
 * and because so it cannot outlive it: it goes with exec, exit and every signal, of which the
 * caller hears as without it. It is made before the first thread that gets a place, since a program
 * may never call us again, and sleeps on its stack alone until the first look. The last thread of
 * the pools that ends ends it, so it is never the one that makes a process have threads. */
#include "preload/place/watch.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/libc.h"
#include "preload/base/pages.h"
#include "preload/node/log.h"
#include "preload/node/neighbours.h"
#include "preload/node/registry.h"
#include "preload/place/process.h"
#include "preload/place/report.h"
#include "profile/base/clock.h"
#include "profile/base/syscall.h"
#include "profile/base/ticks.h"
#include "profile/processes/process.h"
#include "profile/text/record.h"

/* Linux 5.9's, which older headers do not have. */
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif

/* Between looks: at first and after a change; at most, while nothing happens, by a part more each
 * time, so that what is seen late has cost a part of the time that has passed; and between two
 * readings of the idle counters, where one tick more or less does not count. */
#define FIRST_NS 60000000u
#define LATER 8u
#define LONGEST_NS 2000000000u
#define SOON_NS (4u * PROFILE_TICK_NS)
/* A watch that ended before it looked is not made again within this time: to make and end one takes
 * some 60 us. */
#define REST_NS 30000000u
/* A thread waits for its PU when it has done so for more than this share of the time: beside one
 * stranger of its own weight it is a half. */
#define WAITING 0.2
/* A PU idles when it has done so for more than this share, but for one tick. */
#define IDLING 0.8
/* So many looks in turn make something last. */
#define LASTING 3u
/* The program's static TLS is part of the stack. One of libc's would later be given to a thread of
 * the program, which may ask for its size. */
struct room {
    struct pin_idling idling;
    _Alignas(64) unsigned char stack[256 * 1024];
};

enum { NO_WATCH, IN_CHANGE, ON, UNABLE };

static struct {
    pthread_t thread;
    atomic_int state;
    atomic_int stop; /* a futex; it also stops by itself */
    _Atomic(uint64_t) not_before_ns;
} watch;

/* State of the last look. Only the watching thread comes here. */
static struct {
    uint64_t at_ns, own_ns; /* when it was; processor time of this process */
    double passed_ns, own_passed_ns;
    struct pin_idling *idling;
    struct profile_mask own, used, held; /* PUs of the plan; of our threads; of other jobs */
    struct profile_mask idle;            /* those that idle, of no job and none of our threads */
    unsigned calm;                       /* looks in turn in which the PUs were our own */
    int kept;                            /* the registry's descriptor, which this thread has, too */
    bool has_looked, any_waits, any_away, any_left, any_gone, changed;
    struct pin_watched main;
} look;

/* -- the threads that are watched -- */

/* A thread as it was at one moment. Its record may be another thread's by now, so each change names
 * the thread that it is for. */
struct subject {
    struct pin_thread *record; /* NULL: the main thread */
    struct pin_watched *watched;
    uint64_t born_ns;
    pid_t tid;
    int32_t pu;
    unsigned pool;
};

/* False: there is no such thread, or it is not ours to move. The main thread is number 0. */
static bool get_subject(uint32_t number, struct subject *out)
{
    struct subject it = {.record = number > 0 ? pin_record_at(number) : NULL,
                         .watched = number > 0 ? &pin_record_at(number)->watched : &look.main};
    pin_process_lock();
    it.pool = it.record ? it.record->pool : pin_here.pools.team;
    if (number == 0) {
        it.tid = pin_life.pid;
        it.pu = atomic_load(&pin_life.main_pu);
    } else if (it.pool < PIN_POOLS && !atomic_load(&it.record->bound)) {
        it.born_ns = it.record->born_ns;
        it.tid = atomic_load(&it.record->tid);
        it.pu = atomic_load(&it.record->pu);
    }
    pin_process_unlock();
    if (it.watched->born_ns != it.born_ns) {
        *it.watched = (struct pin_watched){.born_ns = it.born_ns};
    }
    *out = it;
    return it.tid != 0 && (it.pu >= 0 || (number > 0 && it.pu == PIN_LEFT));
}

/* Has it waited for a PU since the last look? A thread that was there before the watch (main) is
 * taken to have run until its first one. */
static void see(const struct subject *it)
{
    const uint64_t now_ns = profile_now_ns();
    struct pin_watched *its = it->watched;
    uint64_t since_ns = its->seen_at_ns ? its->seen_at_ns : it->born_ns, ran, waited;
    if (!profile_schedstat_read(pin_life.pid, it->tid, &ran, &waited)) {
        look.any_gone = true;
        return;
    }
    if (since_ns == 0) {
        since_ns = look.at_ns;
        its->waited_ns = waited;
        its->ran_ns = ran - (uint64_t)(now_ns - since_ns < ran ? now_ns - since_ns : ran);
    }
    its->lately_ns = ran - its->ran_ns;
    its->waits =
        it->pu >= 0 && (double)(waited - its->waited_ns) > WAITING * (double)(now_ns - since_ns);
    its->seen_at_ns = now_ns;
    its->ran_ns = ran;
    its->waited_ns = waited;
    look.any_waits |= its->waits;
    its->home = its->home == 1 + it->pu ? 0 : its->home;
    look.any_away |= it->pu >= 0 && its->home > 0;
    if (it->pu >= 0) {
        profile_mask_add(&look.used, (uint32_t)it->pu);
    }
}

static void each_thread(void (*act)(const struct subject *it))
{
    struct subject it;
    for (uint32_t number = 0; number <= pin_record_count(); number++) {
        if (get_subject(number, &it)) {
            act(&it);
        }
    }
}

/* -- PUs -- */

/* Since the last look. */
static double busy_ns(uint32_t pu)
{
    const struct profile_ticks *before = &look.idling->before[pu], *now = &look.idling->now[pu];
    const double idled = pin_idled_ns(look.idling, pu),
                 stolen = (double)(now->stolen - before->stolen) * PROFILE_TICK_NS,
                 busy = look.passed_ns - stolen - idled;
    return idled < 0 || busy < 0 ? 0 : busy;
}

/* PUs that have idled and that no other job and none of our threads has; were they our own? */
static void find_idle(void)
{
    double busy = 0;
    look.idle = (struct profile_mask){0};
    profile_mask_unite(&look.used, &look.held);
    PROFILE_MASK_EACH(&look.own, pu)
    {
        busy += busy_ns(pu);
        if (!profile_mask_has(&look.used, pu) &&
            pin_idled_ns(look.idling, pu) + PROFILE_TICK_NS > IDLING * look.passed_ns) {
            profile_mask_add(&look.idle, pu);
        }
    }
    look.calm = busy - look.own_passed_ns < WAITING * look.passed_ns ? look.calm + 1 : 0;
}

/* -- moving -- */

/* Without the descriptor that the process has, what this thread takes from the registry would be
 * free again when it ends. */
static bool may_take(void)
{
    pin_process_lock();
    const bool may =
        !pin_here.registry.on || (look.kept > 0 && pin_here.registry.kept == look.kept);
    pin_process_unlock();
    return may;
}

static bool move(const struct subject *it, uint32_t pu)
{
    const int32_t home = it->watched->home ? it->watched->home : 1 + it->pu;
    const bool goes_home = home == 1 + (int32_t)pu;
    if (!may_take() || !pin_process_move(it->record, it->born_ns, it->pu, (int32_t)pu)) {
        return false; /* it has been bound meanwhile, has ended, or another job has taken that PU */
    }
    it->watched->home = goes_home ? 0 : home;
    it->watched->home_idled = 0;
    profile_mask_remove(&look.idle, pu);
    look.changed = true;
    atomic_fetch_add(goes_home ? &pin_life.tightened : &pin_life.moved, 1);
    return true;
}

/* False: no PU idles, or the one that does was taken meanwhile. */
static bool give_way(const struct subject *it)
{
    pin_process_lock();
    const int32_t pu = pin_pools_nearest(&pin_here.pools, (uint32_t)it->pu, &look.idle);
    pin_process_unlock();
    return pu >= 0 && move(it, (uint32_t)pu);
}

/* Has another process had a part of its PU? */
static bool is_shared(const struct subject *it)
{
    return look.calm == 0 &&
           busy_ns((uint32_t)it->pu) - (double)it->watched->lately_ns > WAITING * look.passed_ns;
}

static void loosen(unsigned pool)
{
    pin_process_lock();
    const bool is_news = pin_pools_loosen(&pin_here.pools, pool);
    pin_process_unlock();
    if (is_news) {
        atomic_fetch_add(&pin_life.loosened, 1);
        look.changed = true;
        look.calm = 0;
        pin_why_say();
    }
}

static void treat(const struct subject *it)
{
    const int32_t home = it->watched->home - 1;
    if (it->pu < 0) {
        return; /* left by now */
    }
    if (it->watched->waits && is_shared(it)) {
        if (!give_way(it)) {
            loosen(it->pool);
        }
    } else if (home >= 0) {
        it->watched->home_idled++;
        it->watched->home_idled *= profile_mask_has(&look.idle, (uint32_t)home);
        if (it->watched->home_idled >= LASTING) {
            move(it, (uint32_t)home);
        }
    }
}

/* Pools that are left, for which other jobs may have made room. */
static void treat_left(void)
{
    if (!may_take()) {
        return;
    }
    pin_process_lock();
    pin_pools_avoid(&pin_here.pools, &look.held);
    const size_t placed = pin_pools_place_rest(&pin_here.pools, look.calm >= LASTING);
    pin_process_unlock();
    look.changed |= placed > 0;
    atomic_fetch_add(&pin_life.tightened, (unsigned)placed);
}

static void treat_all(void)
{
    pin_process_lock();
    look.own = pin_here.plan.own;
    pin_registry_look(&pin_here.registry, &look.own, &look.held);
    pin_process_unlock();
    if (pin_idling_read(look.idling, &look.own)) {
        find_idle();
        each_thread(treat);
        if (look.any_left) {
            treat_left();
        }
    }
}

/* -- one look -- */

/* A table of files of its own: its files take no descriptor that the program would get, and no pipe
 * of the program's is held open. The registry's descriptor is in both. Kernels before 5.9
 * leave it as it is. And it runs where a thread that is left may. */
static void prepare(void)
{
    const int verbose = pin_here.options.verbose ? STDERR_FILENO + 1 : 0;
    look.has_looked = true;
    look.idling->is_known = false;
    look.kept = pin_here.registry.kept;
    profile_syscall(SYS_close_range, look.kept > verbose ? look.kept + 1 : verbose, (long)UINT_MAX,
                    CLOSE_RANGE_UNSHARE, 0, 0, 0);
    if (look.kept > verbose) {
        profile_syscall(SYS_close_range, verbose, look.kept - 1, 0, 0, 0, 0);
    }
    (void)pin_life_change_mask(0, AS_CHILDREN);
}

/* False: there is none any more. */
static bool has_threads(void)
{
    pin_process_lock();
    if (look.any_gone) {
        pin_pools_bury(&pin_here.pools);
    }
    look.any_left = pin_pools_are_left(&pin_here.pools);
    const bool there_are = pin_pools_threads(&pin_here.pools) > 0;
    pin_process_unlock();
    return there_are;
}

static uint64_t look_around(uint64_t period_ns)
{
    const uint64_t at_ns = profile_now_ns(), own_ns = profile_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const bool had_ticks = look.idling->is_known;
    look.passed_ns = (double)(at_ns - look.at_ns);
    look.own_passed_ns = (double)(own_ns - look.own_ns);
    look.changed = false;
    look.any_waits = look.any_away = look.any_gone = false;
    look.used = (struct profile_mask){0};
    each_thread(see);
    const bool needs_ticks = look.any_waits || look.any_away || look.any_left;
    look.at_ns = at_ns;
    look.own_ns = own_ns;
    if (needs_ticks) {
        treat_all();
    } else {
        look.idling->is_known = false;
    }
    const uint64_t longer_ns = period_ns + period_ns / LATER;
    return needs_ticks && !had_ticks ? SOON_NS
           : look.changed            ? FIRST_NS
           : longer_ns < LONGEST_NS  ? longer_ns
                                     : LONGEST_NS;
}

/* -- the thread -- */

/* Its folder and root are its own: setns() is refused to a thread that shares them. */
static void *watch_main(void *unused)
{
    uint64_t period_ns = FIRST_NS;
    profile_syscall(SYS_unshare, CLONE_FS, 0, 0, 0, 0, 0);
    profile_syscall(SYS_chdir, (long)"/", 0, 0, 0, 0, 0);
    profile_syscall(SYS_prctl, PR_SET_NAME, (long)PIN_WATCH_NAME, 0, 0, 0, 0);
    for (;;) {
        const struct timespec period = {.tv_sec = (time_t)(period_ns / 1000000000u),
                                        .tv_nsec = (long)(period_ns % 1000000000u)};
        profile_syscall(SYS_futex, (long)&watch.stop, FUTEX_WAIT_PRIVATE, 0, (long)&period, 0, 0);
        if (atomic_load(&watch.stop)) {
            return unused;
        }
        if (!look.has_looked) {
            prepare();
        }
        period_ns = look_around(period_ns);
        if (!has_threads()) { /* the last one has ended without a word */
            atomic_store(&watch.stop, 1);
        }
    }
}

static int start_thread(void)
{
    static _Atomic(void *) pages;
    struct room *room = pin_pages_map_once(&pages, sizeof *room);
    pthread_attr_t attributes;
    sigset_t all, before;
    int rc = room ? pthread_attr_init(&attributes) : ENOMEM;
    if (rc != 0) {
        return -rc;
    }
    memset(&look, 0, sizeof look);
    look.idling = &room->idling;
    look.at_ns = profile_now_ns();
    look.own_ns = profile_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    atomic_store(&watch.stop, 0);
    pthread_attr_setstack(&attributes, room->stack, sizeof room->stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's signals are for its threads */
    rc = PIN_LIBC(pthread_create)(&watch.thread, &attributes, watch_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return -rc;
}

/* -- its life -- */

/* A thread that is not watched is put where nothing else runs, or where it is a team's. */
static void avoid_busy_pus(void)
{
    struct profile_mask busy;
    pin_process_lock();
    const struct profile_mask own = pin_here.plan.own;
    pin_process_unlock();
    if (!pin_foreign_load_pus(&own, 0, &busy)) {
        busy = own;
    }
    pin_process_lock();
    pin_pools_avoid(&pin_here.pools, &busy);
    pin_process_unlock();
}

static void start_or_avoid(void)
{
    uint64_t ran, waited;
    const bool is_known = profile_schedstat_read(pin_life.pid, pin_life.pid, &ran, &waited);
    const int rc = is_known ? start_thread() : -ENOSYS;
    if (rc < 0) {
        pin_log(pin_here.options.verbose, "threads are not watched: %s",
                is_known ? strerrordesc_np(-rc) : "no /proc/self/task/TID/schedstat");
        avoid_busy_pus();
    }
    atomic_store(&watch.state, rc < 0 ? UNABLE : ON);
}

bool pin_watch_is_due(void)
{
    const int state = atomic_load(&watch.state);
    return (state == NO_WATCH || (state == ON && atomic_load(&watch.stop))) &&
           !pin_here.options.no_watch && profile_now_ns() >= atomic_load(&watch.not_before_ns);
}

void pin_watch_start(void)
{
    int before = NO_WATCH;
    (void)pin_watch_stop(); /* one that has ended by itself */
    if (atomic_compare_exchange_strong(&watch.state, &before, IN_CHANGE)) {
        const bool outside = pin_self.inside;
        PIN_TAKES(HOLDS_WATCH);
        pin_self.inside = true;
        if (pin_pages_with_stack(start_or_avoid) < 0) {
            atomic_store(&watch.state, UNABLE);
        }
        pin_self.inside = outside;
        PIN_GIVES(HOLDS_WATCH);
    }
}

bool pin_watch_stop(void)
{
    int on = ON;
    while (!atomic_compare_exchange_strong(&watch.state, &on, IN_CHANGE)) {
        if (on != IN_CHANGE) {
            return false;
        }
        on = ON;
        pin_life_await(&watch.state, IN_CHANGE);
    }
    struct pin_shield shield;
    PIN_TAKES(HOLDS_WATCH);
    pin_shield_raise(&shield);
    atomic_store(&watch.stop, 1);
    profile_syscall(SYS_futex, (long)&watch.stop, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    PIN_LIBC(pthread_join)(watch.thread, NULL);
    if (!look.has_looked) {
        atomic_store(&watch.not_before_ns, profile_now_ns() + REST_NS);
    }
    PIN_GIVES(HOLDS_WATCH);
    atomic_store(&watch.state, NO_WATCH);
    pin_shield_lower(&shield);
    return true;
}

void pin_watch_forget(void)
{
    memset(&watch, 0, sizeof watch);
}
