/* Thousands of calls that make, end and question threads and processes, in an order that a seed
 * decides, and what each of them answered. `same_answers` compares the answers with and without the
 * shim.
 *
 *   calls SEED CALLS        a line for each call on stdout, which is a file
 *   calls child             what a program sees that another has started
 *
 * One thread at a time writes, so that the lines' order is the seed's. No line has an address, a
 * time or a process's number. It needs libc alone, of any kind: functions that not all have are
 * weak. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "tests/preload/calls/calls.h"

extern int pthread_attr_setaffinity_np(pthread_attr_t *, size_t, const cpu_set_t *)
    __attribute__((weak));
extern int pthread_clockjoin_np(pthread_t, void **, clockid_t, const struct timespec *)
    __attribute__((weak));

/* -- threads -- */

/* musl calls them on a stack that is not aligned where a thread is cancelled. */
#if defined(__x86_64__) || defined(__i386__)
#define ALIGNED __attribute__((force_align_arg_pointer))
#else
#define ALIGNED
#endif

static pthread_key_t key;

ALIGNED static void end_of_key(void *value)
{
    say(" key=%d", (int)(intptr_t)value);
}

ALIGNED static void cleanup(void *unused)
{
    (void)unused;
    say(" cleaned");
}

static void *body(void *argument);

static void prepare(struct task *task, int how)
{
    *task = (struct task){.how = how};
    sem_init(&task->may_say, 0, 0);
    sem_init(&task->begun, 0, 0);
    sem_init(&task->go, 0, 0);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) {
    }
}

static void *body_inside(struct task *task)
{
    int type;
    switch (task->how) {
    case EXIT:
        pthread_exit((void *)(intptr_t)7);
    case WAIT:
        sem_post(&task->begun);
        wait_for(&task->go);
        return (void *)(intptr_t)3;
    case SPIN:
        /* In this order: sem_post() may not be left half-way. */
        sem_post(&task->begun);
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
        for (;;) {
        }
    case PAUSE:
        sem_post(&task->begun);
        for (;;) {
            pause();
        }
    case NEST: {
        struct task inner;
        prepare(&inner, RETURN);
        sem_post(&inner.may_say);
        pthread_t thread;
        void *result = NULL;
        int rc = pthread_create(&thread, NULL, body, &inner);
        rc = rc ? rc : pthread_join(thread, &result);
        say(" inner=%d/%d", rc, (int)(intptr_t)result);
        return NULL;
    }
    default:
        return (void *)(intptr_t)5;
    }
}

static void *body(void *argument)
{
    struct task *task = argument;
    void *result;
    const int first = errno;
    wait_for(&task->may_say);
    say(" [errno=%d", first);
    say_self();
    say_stack();
    say_mask("mask", 0);
    say("]");
    pthread_setspecific(key, (void *)(intptr_t)9);
    pthread_cleanup_push(cleanup, NULL);
    result = body_inside(task);
    pthread_cleanup_pop(1);
    if (task->how == LEAVE) {
        sem_post(&task->begun);
    }
    return result;
}

bool start(struct task *task, int how, const pthread_attr_t *attributes)
{
    prepare(task, how);
    errno = KEPT_ERRNO;
    const int rc = pthread_create(&task->thread, attributes, body, task);
    say(" create=%d errno=%d", rc, errno);
    if (rc == 0) {
        sem_post(&task->may_say);
    }
    return rc == 0;
}

/* The same; the thread waits, or has left. */
static bool start_and_meet(struct task *task, int how)
{
    const bool is_there = start(task, how, NULL);
    if (is_there) {
        wait_for(&task->begun);
    }
    return is_there;
}

void finish(const struct task *task)
{
    void *result = NULL;
    errno = KEPT_ERRNO;
    const int rc = pthread_join(task->thread, &result);
    say(" join=%d/%d errno=%d", rc, (int)(intptr_t)result, errno);
}

void start_and_finish(int how)
{
    struct task task;
    if (start(&task, how, NULL)) {
        finish(&task);
    }
}

static void let_go(struct task *task)
{
    sem_post(&task->go);
    finish(task);
}

static void plain(void)
{
    static const int ways[] = {RETURN, EXIT, NEST};
    start_and_finish(ways[draw(3)]);
}

static int standard_body(void *argument)
{
    say(" in=%d", *(int *)argument);
    say_self();
    say_mask("mask", 0);
    if (*(int *)argument % 2) {
        thrd_exit(11);
    }
    return 12;
}

static void standard(void)
{
    thrd_t thread;
    int number = (int)draw(10), result = -1;
    const bool detaches = draw(4) == 0;
    const int rc = thrd_create(&thread, standard_body, &number);
    if (rc == thrd_success && detaches) {
        const int detached = thrd_detach(thread);
        say_alive(1);
        say(" thrd=%d detach=%d", rc, detached);
        return;
    }
    const int joined = rc == thrd_success ? thrd_join(thread, &result) : -1;
    say(" thrd=%d/%d/%d", rc, joined, result);
}

/* A few at once, which are joined in another order. */
static void several(void)
{
    enum { MOST = 6 };
    struct task tasks[MOST];
    int made = 0;
    const int count = 2 + (int)draw(MOST - 1);
    while (made < count && start_and_meet(&tasks[made], WAIT)) {
        made++;
    }
    say_alive(1 + made);
    for (int i = made; i-- > 0;) {
        let_go(&tasks[i]);
    }
}

static void tried(void)
{
    struct task task;
    void *result = NULL;
    const struct timespec past = {.tv_sec = 1};
    struct timespec later;
    const uint32_t how = draw(3);
    if (!start_and_meet(&task, WAIT)) {
        return;
    }
    const int tried = pthread_tryjoin_np(task.thread, &result),
              timed = pthread_timedjoin_np(task.thread, &result, &past);
    say(" try=%d timed=%d", tried, timed);
    if (pthread_clockjoin_np) {
        say(" clock=%d", pthread_clockjoin_np(task.thread, &result, CLOCK_MONOTONIC, &past));
    }
    sem_post(&task.go);
    clock_gettime(CLOCK_REALTIME, &later);
    later.tv_sec += 600;
    int rc = EBUSY;
    if (how == 0) {
        while ((rc = pthread_tryjoin_np(task.thread, &result)) == EBUSY) {
            sched_yield();
        }
    } else {
        rc = how == 1 ? pthread_timedjoin_np(task.thread, &result, &later)
                      : pthread_join(task.thread, &result);
    }
    say(" joined=%d/%d", rc, (int)(intptr_t)result);
}

static void detached(void)
{
    struct task task;
    if (!start_and_meet(&task, draw(2) ? LEAVE : WAIT)) {
        return;
    }
    const int rc = pthread_detach(task.thread);
    sem_post(&task.go);
    say_alive(1);
    say(" detach=%d", rc);
}

static void cancelled(void)
{
    static const int ways[] = {WAIT, SPIN, PAUSE};
    struct task task;
    if (start_and_meet(&task, ways[draw(3)])) {
        const int rc = pthread_cancel(task.thread);
        finish(&task);
        say(" cancel=%d", rc);
    }
}

/* -- attributes -- */

static void set_some(pthread_attr_t *attributes, void *stack)
{
    cpu_set_t one;
    if (draw(3) == 0) {
        say(" size=%d", pthread_attr_setstacksize(attributes, (size_t)(1 + draw(8)) << 17));
    }
    if (draw(4) == 0) {
        say(" guard=%d", pthread_attr_setguardsize(attributes, (size_t)draw(5) * 4096));
    }
    if (draw(5) == 0) {
        say(" stack=%d", pthread_attr_setstack(attributes, stack, STACK_BYTES));
    }
    if (draw(3) == 0) {
        say(" explicit=%d",
            pthread_attr_setinheritsched(attributes,
                                         draw(2) ? PTHREAD_EXPLICIT_SCHED : PTHREAD_INHERIT_SCHED));
    }
    if (draw(3) == 0) {
        static const int policies[] = {SCHED_OTHER, SCHED_FIFO, SCHED_RR, SCHED_BATCH};
        say(" policy=%d", pthread_attr_setschedpolicy(attributes, policies[draw(4)]));
    }
    if (draw(3) == 0) {
        const struct sched_param parameter = {.sched_priority = (int)draw(4)};
        say(" parameter=%d", pthread_attr_setschedparam(attributes, &parameter));
    }
    if (draw(6) == 0) {
        say(" scope=%d", pthread_attr_setscope(attributes, draw(2) ? PTHREAD_SCOPE_SYSTEM
                                                                   : PTHREAD_SCOPE_PROCESS));
    }
    if (pthread_attr_setaffinity_np && draw(4) == 0) {
        CPU_ZERO(&one);
        CPU_SET(draw(3) ? draw(4) : CPU_SETSIZE - 1, &one);
        say(" affinity=%d", pthread_attr_setaffinity_np(attributes, sizeof one, &one));
    }
}

static void with_attributes(void)
{
    pthread_attr_t attributes;
    struct task task;
    const bool as_detached = draw(4) == 0;
    void *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    set_some(&attributes, stack);
    if (as_detached) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    }
    const bool is_there = start(&task, as_detached ? LEAVE : RETURN, &attributes);
    if (is_there && as_detached) {
        wait_for(&task.begun);
        say_alive(1);
    } else if (is_there) {
        finish(&task);
    }
    pthread_attr_destroy(&attributes);
    munmap(stack, STACK_BYTES);
}

/* -- signals -- */

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught += number;
}

static void signalled(void)
{
    struct task task;
    struct sigaction action = {.sa_handler = on_signal}, before;
    const int number = draw(2) ? SIGUSR1 : SIGRTMIN + 3;
    action.sa_flags = draw(2) ? SA_RESTART : 0;
    sigaction(number, &action, &before);
    caught = 0;
    if (start_and_meet(&task, WAIT)) {
        const int rc = pthread_kill(task.thread, number);
        while (caught == 0) {
            sched_yield();
        }
        say(" kill=%d caught=%d", rc, caught != 0);
        let_go(&task);
    }
    sigaction(number, &before, NULL);
}

static void blocked(void)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, 1 + (int)draw(30));
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    start_and_finish(RETURN);
    raise(SIGUSR2);
    int number = 0;
    sigpending(&set);
    say(" pending=%d", sigismember(&set, SIGUSR2));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    say(" wait=%d/%d", sigwait(&set, &number), number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* -- masks and policies -- */

static void bound(void)
{
    cpu_set_t one, now;
    struct task task;
    const size_t pu = draw(4);
    CPU_ZERO(&one);
    CPU_SET(pu, &one);
    if (!start_and_meet(&task, WAIT)) {
        return;
    }
    CPU_ZERO(&now);
    int rc = pthread_setaffinity_np(task.thread, sizeof one, &one);
    say(" set=%d", rc);
    if (rc == 0) {
        rc = pthread_getaffinity_np(task.thread, sizeof now, &now);
        say(" get=%d/%d/%d", rc, CPU_COUNT(&now), CPU_ISSET(pu, &now) != 0);
    }
    let_go(&task);
}

static void wrong(void)
{
    pthread_attr_t attributes;
    struct task task;
#ifdef __GLIBC__ /* musl waits for itself */
    say(" self=%d", pthread_join(pthread_self(), NULL));
#endif
    pthread_attr_init(&attributes);
    say(" small=%d", pthread_attr_setstacksize(&attributes, 1));
    say(" detach=%d", pthread_attr_setdetachstate(&attributes, 17));
    pthread_attr_destroy(&attributes);
    errno = KEPT_ERRNO;
    cpu_set_t none;
    CPU_ZERO(&none);
    say(" none=%d errno=%d", sched_setaffinity(0, sizeof none, &none), errno);
    say(" getaffinity=%d errno=%d", sched_getaffinity(0, 1, &none), errno);
    if (start_and_meet(&task, WAIT)) {
        say(" none=%d", pthread_setaffinity_np(task.thread, sizeof none, &none));
        let_go(&task);
    }
}

static void scheduled(void)
{
    const struct sched_param fifo = {.sched_priority = 1}, other = {0};
    say(" fifo=%d", pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo));
    start_and_finish(RETURN);
    say(" other=%d", pthread_setschedparam(pthread_self(), SCHED_OTHER, &other));
}

/* -- the order -- */

static const struct {
    const char *name;
    void (*make)(void);
} kinds[] = {
    {"plain", plain},
    {"standard", standard},
    {"several", several},
    {"tried", tried},
    {"detached", detached},
    {"cancelled", cancelled},
    {"attributes", with_attributes},
    {"forked", forked},
    {"forked-by-thread", forked_by_a_thread},
    {"executed", executed},
    {"executed-by-thread", executed_by_a_thread},
    {"limited", limited},
    {"signalled", signalled},
    {"blocked", blocked},
    {"bound", bound},
    {"wrong", wrong},
    {"scheduled", scheduled},
};

int main(int count, char **words)
{
    if (count == 2) {
        pthread_key_create(&key, end_of_key);
        return child_life("exec", true);
    }
    if (count != 3) {
        return 2;
    }
    draw_state = strtoull(words[1], NULL, 10) * 2654435761u + 88172645463325252u;
    const unsigned long calls = strtoul(words[2], NULL, 10);
    pthread_key_create(&key, end_of_key);
    for (unsigned long i = 0; i < calls; i++) {
        const size_t kind = draw(sizeof kinds / sizeof *kinds);
        say("%lu %s:", i, kinds[kind].name);
        kinds[kind].make();
        say_mask("main", 0);
        say_self();
        say_files(false);
        say_alive(1);
        say("\n");
    }
    return 0;
}
