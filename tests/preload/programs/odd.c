/* Programs of the kind that trips over a preloaded library:
 *
 *   odd small             a thread with the smallest stack forks and makes threads, here and in the
 *                         child
 *   odd many N            N threads at once
 *   odd refused           101 threads with a stack that does not exist, then one that reports as
 *                         thread 1
 *   odd sandbox HOW       after a thread, shuts itself in by HOW (prctl or syscall), where the
 *                         calls of a placing library kill it; "count 0 N": its PUs then; makes
 *                         a thread, forks, ends
 *   odd file PATH         closes stderr and opens a file instead, then makes a thread
 *   odd bound PU          binds its main thread, then makes a thread; they report as threads 0 and
 *                         1
 *   odd filtered HOW CALL COMMAND…  COMMAND where this call, a name or number, kills (kill), traps
 *                         (trap), or answers ENOSYS (lack) or EPERM (refuse)
 *   odd allowed [PU]      binds its main thread, where asked; the PUs of a thread and the main
 *                         thread by /proc, and the children and SIGCHLDs that it did not ask for
 *   odd broken COMMAND…   COMMAND with a stderr whose reader has gone
 *   odd full COMMAND…     COMMAND with a stderr that takes nothing any more
 *   odd prefork           forks before it has a thread; the child makes one, and they report as
 *                         threads 0 and 1, the parent then as thread 2
 *   odd killed lock|call  a thread is killed alone in the shim's work: it makes a thread, or a
 *                         child; then the main thread makes a thread, and shuts all in
 *   odd find NAME…        "count 0 N": how many of these names dlsym() finds
 *   odd coroutine main|child  threads made by a coroutine on a small stack of the program's own, in
 *                         the main thread, or in the child that another thread has forked
 *   odd late OBJECT…      makes a thread, and only then loads the OpenMP objects that it is given,
 *                         one runtime after the other
 *   odd policy            the memory policy of the main thread after the first thread
 *   odd privileged        after a thread: is the program one with another user's rights?
 *   odd two               makes two threads, and says how many there were: "made N"; it takes no
 *                         memory itself
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#ifdef __GLIBC__
#include <ucontext.h>
#endif

#include "filter.h"
#include "threads.h"

/* More than there is memory for, on 32 bits more than there are addresses for. */
#define LARGEST_STACK (SIZE_MAX > UINT32_MAX ? (size_t)(UINT64_C(1) << 50) : SIZE_MAX / 4 * 3)

static char **arguments; /* behind the first, ended by NULL */

static void one_thread(const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
    pthread_t thread;
    must(pthread_create(&thread, attributes, routine, argument));
    pthread_join(thread, NULL);
}

static void small_stack(pthread_attr_t *attributes)
{
    pthread_attr_init(attributes);
    must(pthread_attr_setstacksize(attributes, (size_t)PTHREAD_STACK_MIN));
}

/* With the smallest stacks if there is an argument. */
static void *forks(void *argument)
{
    pthread_attr_t attributes;
    if (argument) {
        small_stack(&attributes);
    }
    int status;
    pid_t pid = fork();
    one_thread(argument ? &attributes : NULL, nothing, NULL);
    if (pid == 0) {
        exit(0);
    }
    must(waitpid(pid, &status, 0) != pid || status != 0);
    return NULL;
}

static int small(void)
{
    pthread_attr_t attributes;
    small_stack(&attributes);
    one_thread(&attributes, forks, "small");
    return 0;
}

static void *waits(void *barrier)
{
    pthread_barrier_wait(barrier);
    return NULL;
}

static int many(void)
{
    const unsigned count = (unsigned)atoi(arguments[0]);
    static pthread_barrier_t all_here; /* threads may still be at it when main has returned */
    pthread_attr_t attributes;
    pthread_t thread;
    small_stack(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_barrier_init(&all_here, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        must(pthread_create(&thread, &attributes, waits, &all_here));
    }
    pthread_barrier_wait(&all_here);
    return 0;
}

static int refused(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    must(pthread_attr_setstacksize(&attributes, LARGEST_STACK));
    for (int i = 0; i < 101; i++) {
        must(pthread_create(&thread, &attributes, nothing, NULL) != EAGAIN);
    }
    run_reporter(1);
    return 0;
}

/* Kills for the calls that place threads and read profiles; the rest is free. */
static int shut_in(int flags)
{
#ifndef SYS_open /* newer architectures have openat() only */
#define SYS_open SYS_openat
#endif
    return REFUSE(SECCOMP_RET_KILL_PROCESS, flags, SYS_sched_setaffinity, SYS_openat, SYS_open,
                  SYS_flock, SYS_getcpu, SYS_prctl, SYS_set_mempolicy);
}

static int sandbox(void)
{
    cpu_set_t set;
    run_thread(nothing, NULL);
    if (shut_in(strcmp(arguments[0], "prctl") == 0 ? BY_PRCTL : 0) != 0) {
        return 77;
    }
    must(sched_getaffinity(0, sizeof set, &set));
    report_count(0, CPU_COUNT(&set));
    return forks(NULL) != NULL;
}

static int bound(void)
{
    const cpu_set_t set = only_pu(arguments[0]);
    must(sched_setaffinity(0, sizeof set, &set));
    run_reporter(1);
    report_worker(0, 0);
    return 0;
}

/* Ends only where that cannot be. */
static int become(void)
{
    execv(arguments[0], arguments);
    return 5;
}

static int filtered(void)
{
    static const struct {
        const char *name;
        unsigned number;
    } calls[] = {
        {"none", SYS_acct},
        {"sched_getaffinity", SYS_sched_getaffinity},
        {"sched_setaffinity", SYS_sched_setaffinity},
#ifdef SYS_fcntl64
        {"fcntl", SYS_fcntl64},
#else
        {"fcntl", SYS_fcntl},
#endif
    };
    const unsigned how = strcmp(arguments[0], "kill") == 0   ? SECCOMP_RET_KILL_PROCESS
                         : strcmp(arguments[0], "trap") == 0 ? SECCOMP_RET_TRAP
                         : strcmp(arguments[0], "lack") == 0 ? SECCOMP_RET_ERRNO | ENOSYS
                                                             : SECCOMP_RET_ERRNO | EPERM;
    unsigned number = (unsigned)atoi(arguments[1]);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        number = strcmp(calls[i].name, arguments[1]) == 0 ? calls[i].number : number;
    }
    if (REFUSE(how, BY_PRCTL, number)) {
        return 77;
    }
    arguments += 2;
    return become();
}

static volatile sig_atomic_t children_ended;

static void count_child(int signal)
{
    children_ended += signal == SIGCHLD;
}

static void *say_allowed(void *whose)
{
    char pus[256];
    report_allowed("/proc/thread-self/status", pus, sizeof pus);
    printf("%s %s\n", (const char *)whose, pus);
    return NULL;
}

static int allowed(void)
{
    signal(SIGCHLD, count_child);
    if (arguments[0]) {
        const cpu_set_t set = only_pu(arguments[0]);
        must(sched_setaffinity(0, sizeof set, &set));
    }
    run_thread(say_allowed, "thread");
    say_allowed("main");
    must(waitpid(-1, NULL, __WALL) != -1 || errno != ECHILD);
    printf("%d\n", (int)children_ended);
    return 0;
}

static int other_file(void)
{
    close(STDERR_FILENO);
    must(open(arguments[0], O_WRONLY | O_CREAT | O_TRUNC, 0600) != STDERR_FILENO);
    run_thread(nothing, NULL);
    return 0;
}

static int behind_pipe(bool full)
{
    int end[2];
    char byte = 0;
    must(pipe(end));
    fcntl(end[1], F_SETFL, O_NONBLOCK);
    while (full && write(end[1], &byte, 1) == 1) {
        ;
    }
    fcntl(end[1], F_SETFL, 0);
    if (!full) {
        close(end[0]);
    }
    dup2(end[1], STDERR_FILENO);
    return become();
}

static int broken(void)
{
    return behind_pipe(false);
}

static int full(void)
{
    return behind_pipe(true);
}

static int prefork(void)
{
    int status;
    pid_t child = fork();
    must(child < 0);
    if (child == 0) {
        run_reporter(1);
        report_worker(0, 0);
        _exit(0);
    }
    must(waitpid(child, &status, 0) != child || status != 0);
    report_worker(0, 2);
    return 0;
}

static void *is_killed(void *how)
{
    if (strcmp(how, "lock") == 0) {
        must(REFUSE(SECCOMP_RET_KILL_THREAD, UNSEEN, SYS_fcntl, SYS_sched_setaffinity));
        run_thread(nothing, NULL);
    } else {
        must(REFUSE(SECCOMP_RET_KILL_THREAD, UNSEEN, SYS_sched_setaffinity));
        must(system("true"));
    }
    return NULL;
}

static int killed(void)
{
    run_thread(is_killed, arguments[0]);
    run_thread(nothing, NULL);
    must(REFUSE(SECCOMP_RET_ERRNO | EPERM, SECCOMP_FILTER_FLAG_TSYNC, SYS_acct));
    report_count(0, 1);
    return 0;
}

/* In the ways in which a program asks whether a library is there. */
static int find(void)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    int found = 0;
    for (char **name = arguments; *name; name++) {
        found += dlsym(RTLD_DEFAULT, *name) || dlsym(program, *name);
    }
    report_count(0, found);
    return 0;
}

/* -- a coroutine -- */

#ifdef __GLIBC__ /* musl has no coroutines */
enum { STACK_BYTES = 16384 };

static ucontext_t caller, called;

static void make_threads(void)
{
    for (int i = 0; i < 3; i++) {
        run_thread(nothing, NULL);
        swapcontext(&called, &caller);
    }
    _exit(2);
}

static void *run_coroutine(void *unused)
{
    char *stack =
        mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(stack == MAP_FAILED || mprotect(stack, STACK_BYTES, PROT_NONE) != 0);
    getcontext(&called);
    called.uc_stack.ss_sp = stack + STACK_BYTES;
    called.uc_stack.ss_size = STACK_BYTES;
    makecontext(&called, make_threads, 0);
    for (int i = 0; i < 3; i++) {
        swapcontext(&caller, &called);
    }
    return unused;
}

#else
static void *run_coroutine(void *unused)
{
    return unused;
}
#endif

static void *fork_and_run(void *unused)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        run_coroutine(NULL);
        _exit(0);
    }
    _exit(waitpid(pid, &status, 0) == pid ? status != 0 : 4);
    return unused;
}

static int coroutine(void)
{
    if (strcmp(arguments[0], "main") == 0) {
        run_coroutine(NULL);
    } else {
        run_thread(fork_and_run, NULL);
    }
    return 0;
}

static void *comes_first(void *argument)
{
    report_worker(9, 1);
    return argument;
}

static int late(void)
{
    run_thread(comes_first, NULL);
    report_worker(9, 0);
    for (int i = 0; arguments[i]; i++) {
        void *object = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
        void (*run)(int) = object ? (void (*)(int))dlsym(object, "run_team") : NULL;
        if (!run) {
            fprintf(stderr, "%s\n", dlerror());
            return 5;
        }
        run(i);
    }
    return 0;
}

static int policy(void)
{
    int mode = -1;
    run_thread(nothing, NULL);
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) != 0) {
        return 77;
    }
    printf("policy %d\n", mode);
    return 0;
}

/* A thread is what wakes the shim. */
static int privileged(void)
{
    run_thread(nothing, NULL);
    report_line("%s\n", getauxval(AT_SECURE) ? "privileged" : "ordinary");
    return 0;
}

static int two(void)
{
    int made = 0;
    pthread_t thread;
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&thread, NULL, nothing, NULL) == 0) {
            pthread_join(thread, NULL);
            made++;
        }
    }
    report_line("made %d\n", made);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} ways[] = {
    {"small", small},
    {"many", many},
    {"refused", refused},
    {"sandbox", sandbox},
    {"file", other_file},
    {"bound", bound},
    {"broken", broken},
    {"full", full},
    {"prefork", prefork},
    {"find", find},
    {"filtered", filtered},
    {"allowed", allowed},
    {"killed", killed},
    {"coroutine", coroutine},
    {"late", late},
    {"policy", policy},
    {"privileged", privileged},
    {"two", two},
};

int main(int argc, char **argv)
{
    arguments = argv + 2;
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].name, argv[1]) == 0) {
            return ways[i].run();
        }
    }
    return 2;
}
