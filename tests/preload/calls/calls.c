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
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

extern pid_t _Fork(void) __attribute__((weak));
extern int pthread_attr_setaffinity_np(pthread_attr_t *, size_t, const cpu_set_t *)
    __attribute__((weak));
extern int pthread_clockjoin_np(pthread_t, void **, clockid_t, const struct timespec *)
    __attribute__((weak));

enum { KEPT_ERRNO = 77, STACK_BYTES = 256 << 10, FILES_MOST = 64 };

static uint64_t state;
static char *program;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

static void say(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    (void)!write(STDOUT_FILENO, line, (size_t)length);
}

/* -- what is seen -- */

static void say_mask(const char *whose, pid_t tid)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    const int rc = sched_getaffinity(tid, sizeof mask, &mask);
    say(" %s=", whose);
    for (size_t pu = 0; rc == 0 && pu < CPU_SETSIZE; pu++) {
        if (CPU_ISSET(pu, &mask)) {
            say("%zu,", pu);
        }
    }
}

/* As the kernel has it: nothing stands in for a file. */
static void say_status(const char *field)
{
    char line[4096];
    FILE *file = fopen("/proc/thread-self/status", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, field, strlen(field)) == 0) {
            line[strcspn(line, "\n")] = '\0';
            say(" %s", line);
        }
    }
    if (file) {
        fclose(file);
    }
}

/* The one that keeps the locks of this process (servet_pin(7)). */
static bool is_registry(int file)
{
    struct stat here, there;
    return fstat(file, &here) == 0 && stat("/proc/self/ns/time", &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

static void say_files(bool is_child)
{
    say(" files=");
    for (int file = 3; file < FILES_MOST; file++) {
        if (fcntl(file, F_GETFD) >= 0 && (is_child || !is_registry(file))) {
            say("%d,", file);
        }
    }
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    say(" next=%d", next);
    close(next);
}

/* Threads of this process by the kernel, but for the one that watches (servet_pin(7)). */
static int threads_alive(void)
{
    struct dirent *entry;
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    while (folder && (entry = readdir(folder))) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (file) {
            count += fgets(name, sizeof name, file) && strcmp(name, "servet-watch\n") != 0;
            fclose(file);
        }
    }
    if (folder) {
        closedir(folder);
    }
    return count;
}

/* Those that end take a moment, and the one that watches has no name when it begins. */
static void say_alive(int expected)
{
    for (int i = 0; i < 20000 && threads_alive() != expected; i++) {
        usleep(500);
    }
    say(" alive=%d", threads_alive());
}

static void say_self(void)
{
    struct sched_param parameter = {0};
    int policy = -1;
    sigset_t blocked;
    unsigned long signals = 0;
    pthread_getschedparam(pthread_self(), &policy, &parameter);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int signal = 1; signal < 32; signal++) {
        signals |= sigismember(&blocked, signal) == 1 ? 1ul << signal : 0;
    }
    say(" policy=%d/%d blocked=%lx", policy, parameter.sched_priority, signals);
}

static void say_stack(void)
{
    pthread_attr_t own;
    size_t stack = 0, guard = 0;
    void *address;
    int detached = -1;
    if (pthread_getattr_np(pthread_self(), &own) == 0) {
        pthread_attr_getstack(&own, &address, &stack);
        pthread_attr_getguardsize(&own, &guard);
        pthread_attr_getdetachstate(&own, &detached);
        pthread_attr_destroy(&own);
        const bool is_there =
            (char *)&own > (char *)address && (char *)&own < (char *)address + stack;
#ifndef __GLIBC__
        stack &=
            ~(size_t)4095; /* above it musl has the TLS of all objects, the shim's 56 bytes too */
#endif
        say(" stack=%zu/%zu/%d/%d", stack, guard, detached, is_there);
    }
}

/* -- threads -- */

enum { RETURN, EXIT, WAIT, SPIN, PAUSE, NEST, LEAVE, ENDS };

struct task {
    int how;
    sem_t may_say, begun, go;
};

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

static int start(pthread_t *thread, const pthread_attr_t *attributes, struct task *task)
{
    errno = KEPT_ERRNO;
    const int rc = pthread_create(thread, attributes, body, task);
    say(" create=%d errno=%d", rc, errno);
    if (rc == 0) {
        sem_post(&task->may_say);
    }
    return rc;
}

static void finish(pthread_t thread)
{
    void *result = NULL;
    errno = KEPT_ERRNO;
    const int rc = pthread_join(thread, &result);
    say(" join=%d/%d errno=%d", rc, (int)(intptr_t)result, errno);
}

static void plain(void)
{
    static const int ways[] = {RETURN, EXIT, NEST};
    struct task task;
    pthread_t thread;
    prepare(&task, ways[draw(3)]);
    if (start(&thread, NULL, &task) == 0) {
        finish(thread);
    }
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
    pthread_t threads[MOST];
    int made = 0;
    const int count = 2 + (int)draw(MOST - 1);
    for (; made < count; made++) {
        prepare(&tasks[made], WAIT);
        if (start(&threads[made], NULL, &tasks[made]) != 0) {
            break;
        }
        wait_for(&tasks[made].begun);
    }
    say_alive(1 + made);
    for (int i = made; i-- > 0;) {
        sem_post(&tasks[i].go);
        finish(threads[i]);
    }
}

static void tried(void)
{
    struct task task;
    pthread_t thread;
    void *result = NULL;
    const struct timespec past = {.tv_sec = 1};
    struct timespec later;
    const uint32_t how = draw(3);
    prepare(&task, WAIT);
    if (start(&thread, NULL, &task) != 0) {
        return;
    }
    wait_for(&task.begun);
    const int tried = pthread_tryjoin_np(thread, &result),
              timed = pthread_timedjoin_np(thread, &result, &past);
    say(" try=%d timed=%d", tried, timed);
    if (pthread_clockjoin_np) {
        say(" clock=%d", pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &past));
    }
    sem_post(&task.go);
    clock_gettime(CLOCK_REALTIME, &later);
    later.tv_sec += 600;
    int rc = EBUSY;
    if (how == 0) {
        while ((rc = pthread_tryjoin_np(thread, &result)) == EBUSY) {
            sched_yield();
        }
    } else {
        rc = how == 1 ? pthread_timedjoin_np(thread, &result, &later)
                      : pthread_join(thread, &result);
    }
    say(" joined=%d/%d", rc, (int)(intptr_t)result);
}

static void detached(void)
{
    struct task task;
    pthread_t thread;
    prepare(&task, draw(2) ? LEAVE : WAIT);
    if (start(&thread, NULL, &task) != 0) {
        return;
    }
    wait_for(&task.begun);
    const int rc = pthread_detach(thread);
    sem_post(&task.go);
    say_alive(1);
    say(" detach=%d", rc);
}

static void cancelled(void)
{
    static const int ways[] = {WAIT, SPIN, PAUSE};
    struct task task;
    pthread_t thread;
    prepare(&task, ways[draw(3)]);
    if (start(&thread, NULL, &task) != 0) {
        return;
    }
    wait_for(&task.begun);
    const int rc = pthread_cancel(thread);
    finish(thread);
    say(" cancel=%d", rc);
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
    pthread_t thread;
    const bool as_detached = draw(4) == 0;
    void *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    set_some(&attributes, stack);
    if (as_detached) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    }
    prepare(&task, as_detached ? LEAVE : RETURN);
    const int rc = start(&thread, &attributes, &task);
    if (rc == 0 && as_detached) {
        wait_for(&task.begun);
        say_alive(1);
    } else if (rc == 0) {
        finish(thread);
    }
    pthread_attr_destroy(&attributes);
    munmap(stack, STACK_BYTES);
}

/* -- processes -- */

static void end_child(pid_t child)
{
    int status = -1;
    if (child > 0) {
        const pid_t ended = waitpid(child, &status, 0);
        say(" ended=%d status=%x", ended == child, status);
    } else {
        say(" fork=%d errno=%d", (int)child, errno);
    }
    say(" none=%d/%d", (int)waitpid(-1, &status, WNOHANG), errno);
}

/* A child says all that it sees, and may make a thread. */
static int child_life(const char *kind, bool makes_threads)
{
    struct task task;
    pthread_t thread;
    say(" {%s errno=%d", kind, errno);
    say_mask("mask", 0);
    say_status("Cpus_allowed_list:");
    say_self();
    say_files(true);
    if (makes_threads) {
        prepare(&task, RETURN);
        if (start(&thread, NULL, &task) == 0) {
            finish(thread);
        }
    }
    say_alive(1);
    say("}");
    return 40;
}

static int cloned_life(void *makes_threads)
{
    return child_life("clone", makes_threads != NULL);
}

static void forked(void)
{
    static char stack[STACK_BYTES] __attribute__((aligned(64)));
    const bool makes_threads = draw(2);
    pid_t child = -1;
    errno = KEPT_ERRNO;
    switch (draw(5)) {
    case 0:
        child = fork();
        if (child == 0) {
            exit(child_life("fork", makes_threads));
        }
        break;
    case 1:
        child = vfork();
        if (child == 0) {
            _exit(41);
        }
        break;
    case 2:
        child = _Fork ? _Fork() : fork();
        if (child == 0) {
            _exit(child_life("_Fork", false));
        }
        break;
    case 3:
        child = clone(cloned_life, stack + sizeof stack, SIGCHLD, NULL);
        break;
    default:
        child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (child == 0) {
            _exit(child_life("raw", false));
        }
    }
    end_child(child);
}

static void *forking_body(void *unused)
{
    (void)unused;
    forked();
    return NULL;
}

/* From a thread that may have a PU of its own. */
static void forked_by_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, forking_body, NULL) == 0) {
        finish(thread);
    }
}

static void executed(void)
{
    char *const words[] = {program, "child", NULL};
    const bool by_vfork = draw(2);
    const pid_t child = by_vfork ? vfork() : fork();
    if (child == 0) {
        execv("/proc/self/exe", words);
        _exit(1);
    }
    end_child(child);
}

static void *executing_body(void *unused)
{
    (void)unused;
    executed();
    return NULL;
}

static void executed_by_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, executing_body, NULL) == 0) {
        finish(thread);
    }
}

static void limited(void)
{
    const rlim_t files = 4 + draw(12);
    const bool makes_first = draw(2);
    const pid_t child = fork();
    if (child == 0) {
        struct task task;
        pthread_t thread;
        const struct rlimit limit = {files, files};
        prepare(&task, RETURN);
        if (makes_first && start(&thread, NULL, &task) == 0) {
            finish(thread);
        }
        say(" limit=%d", setrlimit(RLIMIT_NOFILE, &limit));
        if (!makes_first && start(&thread, NULL, &task) == 0) {
            finish(thread);
        }
        int opened = 0;
        while (open("/dev/null", O_RDONLY) >= 0) {
            opened++;
        }
        say(" opened=%d errno=%d", opened, errno);
        _exit(0);
    }
    end_child(child);
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
    pthread_t thread;
    struct sigaction action = {.sa_handler = on_signal}, before;
    const int number = draw(2) ? SIGUSR1 : SIGRTMIN + 3;
    action.sa_flags = draw(2) ? SA_RESTART : 0;
    sigaction(number, &action, &before);
    prepare(&task, WAIT);
    caught = 0;
    if (start(&thread, NULL, &task) == 0) {
        wait_for(&task.begun);
        const int rc = pthread_kill(thread, number);
        while (caught == 0) {
            sched_yield();
        }
        say(" kill=%d caught=%d", rc, caught != 0);
        sem_post(&task.go);
        finish(thread);
    }
    sigaction(number, &before, NULL);
}

static void blocked(void)
{
    sigset_t set, before;
    struct task task;
    pthread_t thread;
    sigemptyset(&set);
    sigaddset(&set, 1 + (int)draw(30));
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    prepare(&task, RETURN);
    if (start(&thread, NULL, &task) == 0) {
        finish(thread);
    }
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
    pthread_t thread;
    const size_t pu = draw(4);
    CPU_ZERO(&one);
    CPU_SET(pu, &one);
    prepare(&task, WAIT);
    if (start(&thread, NULL, &task) != 0) {
        return;
    }
    wait_for(&task.begun);
    CPU_ZERO(&now);
    int rc = pthread_setaffinity_np(thread, sizeof one, &one);
    say(" set=%d", rc);
    if (rc == 0) {
        rc = pthread_getaffinity_np(thread, sizeof now, &now);
        say(" get=%d/%d/%d", rc, CPU_COUNT(&now), CPU_ISSET(pu, &now) != 0);
    }
    sem_post(&task.go);
    finish(thread);
}

static void wrong(void)
{
    pthread_attr_t attributes;
    struct task task;
    pthread_t thread;
    prepare(&task, WAIT);
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
    if (start(&thread, NULL, &task) == 0) {
        wait_for(&task.begun);
        say(" none=%d", pthread_setaffinity_np(thread, sizeof none, &none));
        sem_post(&task.go);
        finish(thread);
    }
}

static void scheduled(void)
{
    const struct sched_param fifo = {.sched_priority = 1}, other = {0};
    struct task task;
    pthread_t thread;
    say(" fifo=%d", pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo));
    prepare(&task, RETURN);
    if (start(&thread, NULL, &task) == 0) {
        finish(thread);
    }
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
    program = words[0];
    if (count == 2) {
        pthread_key_create(&key, end_of_key);
        return child_life("exec", true);
    }
    if (count != 3) {
        return 2;
    }
    state = strtoull(words[1], NULL, 10) * 2654435761u + 88172645463325252u;
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
