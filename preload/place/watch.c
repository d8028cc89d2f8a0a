/* While the program runs (SERVET_WATCH): a thread that waits for its PU beside another process is
 * moved.
 *
 * Twice a second a thread of ours asks how long each pinned thread has waited for its PU
 * (/proc/self/task/TID/schedstat), and which PUs have idled:
 *
 *    on a PU --waits, and a PU idles that none of ours has--> on that PU, as the weights choose it
 *      |  ^
 *      |  |  a PU idles; or no stranger runs any more: back to the PU of its slot
 *      v  |
 *    loose     waits, and none idles: all that the process may use, as the kernel sees fit
 *
 * At most once a second for each thread. The watching thread is in the process because only there
 * is known which thread we have put where, and because so it cannot outlive it: it goes with exec,
 * exit and every signal, of which the caller hears as without it. A process of which nothing else
 * is left (the main thread may end before the others) is not held up by it. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/libc.h"
#include "preload/base/pages.h"
#include "preload/node/node.h"
#include "preload/place/watch.h"
#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/syscall.h"
#include "profile/base/ticks.h"
#include "profile/text/record.h"

/* Linux 5.9's, which older headers do not have. */
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif

#define PERIOD_NS 500000000
#define MOVE_EVERY_NS 1000000000u
/* A thread waits for its PU when it has done so for more than this share of the time: beside one
 * stranger of its own weight it is a half. */
#define WAITING 0.2
/* A PU idles when it has done so for more than this share. */
#define IDLING 0.8
/* The program's static TLS is part of it. */
#define STACK_BYTES (256 * 1024)

static struct {
    struct pin_process *process;
    pthread_t thread;
    atomic_int on;   /* no byte: to exchange one, gcc 12 calls libatomic on riscv64 */
    atomic_int stop; /* a futex */
    atomic_uint moved, loosened, tightened;
} watch;

struct subject;

/* State of the last look. Only the watching thread comes here. */
static struct {
    uint64_t at_ns;
    double passed_ns;
    struct profile_ticks *before, *now; /* of each PU */
    size_t pus;
    uint32_t threads[PROFILE_MASK_PUS]; /* of ours on each PU */
    _Atomic(void *) pages;
    struct subject *subject; /* threads that are ours to move */
    size_t subjects;
    struct profile_mask idle; /* PUs of the plan that idle and are not ours */
    bool anybody_waits;
    struct pin_watched main;
} look;

/* -- the threads that are watched -- */

/* A thread as it was when the look began. Its record may be another thread's by now, so each change
 * names the thread that it is for. */
struct subject {
    struct pin_thread *record; /* NULL: the main thread */
    uint64_t born_ns;
    struct pin_watched watched;
    pid_t tid;
    int32_t pu, home;
};

#define MOST_SUBJECTS (1u + 65535u)

/* False: there is no such thread, or it is not ours to move. The main thread is number 0. The lock
 * is held. */
static bool get_subject(uint32_t number, struct subject *out)
{
    struct subject it = {.record = number > 0 ? pin_record_at(number) : NULL};
    if (number == 0) {
        it.watched = look.main;
        it.tid = getpid();
        it.pu = pin_process_main_pu();
    } else if (it.record->pool < PIN_POOLS && !atomic_load(&it.record->bound)) {
        it.born_ns = it.record->born_ns;
        it.watched = it.record->watched;
        it.tid = atomic_load(&it.record->tid);
        it.pu = atomic_load(&it.record->pu);
    }
    it.home = it.watched.home - 1;
    *out = it;
    return it.tid != 0 && (it.pu >= 0 || (it.pu == PIN_LEFT && it.home >= 0));
}

/* All of them. */
static bool get_subjects(void)
{
    look.subject = pin_pages_map_once(&look.pages, MOST_SUBJECTS * sizeof *look.subject);
    look.subjects = 0;
    if (!look.subject) {
        return false;
    }
    pin_process_lock();
    for (uint32_t number = 0; number <= pin_record_count(); number++) {
        look.subjects += get_subject(number, &look.subject[look.subjects]);
    }
    pin_process_unlock();
    return true;
}

/* The figures go to the records that are still theirs. */
static void keep_figures(void)
{
    pin_process_lock();
    for (const struct subject *it = look.subject; it < look.subject + look.subjects; it++) {
        if (!it->record) {
            look.main = it->watched;
        } else if (it->record->born_ns == it->born_ns) {
            it->record->watched = it->watched;
        }
    }
    pin_process_unlock();
}

static bool read_waited(pid_t tid, uint64_t *out)
{
    char path[64], text[96];
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)tid);
    unsigned long long ran, waited;
    if (!profile_read_small(path, text, sizeof text) ||
        sscanf(text, "%llu %llu", &ran, &waited) != 2) {
        return false;
    }
    *out = waited;
    return true;
}

/* Has it waited for a PU since the last look? Not known, and false, at the first one. */
static bool waits(struct subject *it)
{
    uint64_t waited;
    if (!read_waited(it->tid, &waited)) {
        return false;
    }
    const struct pin_watched before = it->watched;
    it->watched.seen_at_ns = look.at_ns;
    it->watched.waited_ns = waited;
    double passed = (double)(look.at_ns - before.seen_at_ns);
    return before.seen_at_ns != 0 && (double)(waited - before.waited_ns) > WAITING * passed;
}

/* -- moving -- */

static void count_threads(void)
{
    memset(look.threads, 0, sizeof look.threads);
    for (const struct subject *it = look.subject; it < look.subject + look.subjects; it++) {
        look.threads[it->pu >= 0 ? it->pu : 0] += it->pu >= 0;
    }
}

static void move(struct subject *it, int32_t pu, atomic_uint *counted)
{
    if (!pin_process_move(it->record, it->born_ns, it->pu, pu)) {
        return; /* it has been bound meanwhile, or has ended */
    }
    it->watched.moved_at_ns = look.at_ns;
    it->watched.home = 1 + (pu >= 0 ? pu : it->pu);
    atomic_fetch_add(counted, 1);
    if (it->pu >= 0) {
        look.threads[it->pu]--;
    }
    if (pu >= 0) {
        look.threads[pu]++;
        profile_mask_remove(&look.idle, (uint32_t)pu);
    }
    it->pu = pu;
}

/* The first PU of the plan that idles: they are in the order of the weights. */
static bool choose_pu(uint32_t *out)
{
    const struct pin_plan *plan = &watch.process->plan;
    bool found = false;
    pin_process_lock();
    for (size_t i = 0; !found && i < plan->count; i++) {
        *out = plan->pus[i];
        found = profile_mask_has(&look.idle, *out);
    }
    pin_process_unlock();
    return found;
}

static void treat(struct subject *it, bool waiting)
{
    uint32_t pu;
    if (it->watched.moved_at_ns != 0 && look.at_ns - it->watched.moved_at_ns < MOVE_EVERY_NS) {
        return;
    }
    if ((waiting || it->pu == PIN_LEFT) && choose_pu(&pu)) {
        move(it, (int32_t)pu, it->pu == PIN_LEFT ? &watch.tightened : &watch.moved);
    } else if (waiting && it->pu >= 0 && look.threads[it->pu] == 1) {
        /* With another thread of ours there, it is the program that has more threads than PUs. */
        move(it, PIN_LEFT, &watch.loosened);
    }
}

/* -- one look -- */

/* PUs of the plan that have idled since the last look, and that none of our threads has. */
static void find_idle(void)
{
    pin_process_lock();
    const struct profile_mask own = watch.process->plan.own;
    pin_process_unlock();
    look.idle = (struct profile_mask){0};
    for (uint32_t pu = 0; pu < look.pus; pu++) {
        double idle_ns =
            (double)profile_ticks_idled(&look.before[pu], &look.now[pu]) * PROFILE_TICK_NS;
        if (profile_mask_has(&own, pu) && look.threads[pu] == 0 &&
            idle_ns > IDLING * look.passed_ns) {
            profile_mask_add(&look.idle, pu);
        }
    }
}

/* Nobody waits and no more is runnable than our threads and this one: each loose one goes home. */
static void tighten(void)
{
    if (look.anybody_waits || profile_running_tasks() > look.subjects + 1) {
        return;
    }
    for (struct subject *it = look.subject; it < look.subject + look.subjects; it++) {
        if (it->pu == PIN_LEFT && look.at_ns - it->watched.moved_at_ns >= MOVE_EVERY_NS) {
            move(it, it->home, &watch.tightened);
        }
    }
}

static void look_round(void)
{
    uint64_t now_ns = profile_now_ns();
    bool first = look.at_ns == 0;
    struct profile_ticks *before = look.now;
    look.now = look.before;
    look.before = before;
    look.passed_ns = (double)(now_ns - look.at_ns);
    look.at_ns = now_ns;
    if (profile_ticks_get(look.now, look.pus) < 0 || first) {
        return;
    }
    pin_process_look_again();
    if (!get_subjects()) {
        return;
    }
    count_threads();
    find_idle();
    look.anybody_waits = false;
    for (struct subject *it = look.subject; it < look.subject + look.subjects; it++) {
        bool waiting = waits(it);
        look.anybody_waits = look.anybody_waits || waiting;
        treat(it, waiting);
    }
    tighten();
    keep_figures();
}

/* -- the thread -- */

/* Is this thread the last one? A main thread that has ended stays as a zombie. */
static bool is_alone(void)
{
    struct dirent *entry;
    char path[64], text[512];
    size_t others = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    (void)profile_read_small(path, text, sizeof text);
    const char *state = profile_stat_find(text, PROFILE_STAT_STATE);
    if (!state || *state != 'Z') {
        return false;
    }
    DIR *folder = opendir("/proc/self/task");
    while (folder && (entry = readdir(folder))) {
        others += atoi(entry->d_name) > 0;
    }
    if (folder) {
        closedir(folder);
    }
    return others == 2;
}

/* A table of its own, empty: its files take no descriptor that the program would get, and no pipe
 * of the program's is held open. Kernels before 5.9 leave it as it is. */
static void make_file_table(void)
{
    const long first = watch.process->options.verbose ? STDERR_FILENO + 1 : 0;
    profile_syscall(SYS_close_range, first, UINT_MAX, CLOSE_RANGE_UNSHARE, 0, 0, 0);
}

static void *watch_main(void *unused)
{
    const struct timespec period = {.tv_nsec = PERIOD_NS};
    (void)unused;
    make_file_table();
    profile_syscall(SYS_prctl, PR_SET_NAME, (long)PIN_WATCH_NAME, 0, 0, 0, 0);
    while (!atomic_load(&watch.stop) && !is_alone()) {
        look_round();
        profile_syscall(SYS_futex, (long)&watch.stop, FUTEX_WAIT_PRIVATE, 0, (long)&period, 0, 0);
    }
    return NULL;
}

static int start_thread(void)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    int rc = pthread_attr_init(&attributes);
    if (rc != 0) {
        return -rc;
    }
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's signals are for its threads */
    rc = PIN_LIBC(pthread_create)(&watch.thread, &attributes, watch_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return -rc;
}

int pin_watch_start(struct pin_process *process)
{
    PROFILE_MASK_EACH(&process->plan.own, pu)
    {
        look.pus = pu + 1;
    }
    look.before = calloc(2 * look.pus, sizeof *look.before);
    if (!look.before) {
        return -ENOMEM;
    }
    look.now = look.before + look.pus;
    watch.process = process;
    int rc = start_thread();
    atomic_store(&watch.on, rc == 0);
    return rc;
}

void pin_watch_stop(void)
{
    if (atomic_exchange(&watch.on, false)) {
        atomic_store(&watch.stop, 1);
        profile_syscall(SYS_futex, (long)&watch.stop, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
        PIN_LIBC(pthread_join)(watch.thread, NULL);
    }
}

void pin_watch_forget(void)
{
    if (watch.process) {
        memset(&watch, 0, sizeof watch);
        memset(&look, 0, sizeof look);
    }
}

void pin_watch_report(const char *where)
{
    if (atomic_load(&watch.on)) {
        pin_record(where, false,
                   "watch: {moved} moves to idle PUs, {loosened} times left to the kernel, "
                   "{tightened} times back",
                   PROFILE_FACTS(PROFILE_FIGURE("watch", PROFILE_INSIDE, 0),
                                 PROFILE_NUMBER("moved", atomic_load(&watch.moved)),
                                 PROFILE_NUMBER("loosened", atomic_load(&watch.loosened)),
                                 PROFILE_NUMBER("tightened", atomic_load(&watch.tightened))));
    }
}
