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
 *   odd vfork             the same by a child of vfork(); then a thread that reports as thread 1
 *   odd file PATH         closes stderr and opens a file instead, then makes a thread
 *   odd bound PU          binds its main thread, then makes a thread; they report as threads 0 and
 *                         1
 *   odd refusing COMMAND… COMMAND in a container that refuses to change masks
 *   odd older COMMAND…    COMMAND on a kernel of 4.18 and in a sandbox older than statx()
 *   odd broken COMMAND…   COMMAND with a stderr whose reader has gone
 *   odd full COMMAND…     COMMAND with a stderr that takes nothing any more
 *   odd prefork           forks before it has a thread; the child makes one, and they report as
 *                         threads 0 and 1, the parent then as thread 2
 *   odd find NAME…        "count 0 N": how many of these names dlsym() finds
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "report.h"

/* More than there is memory for, on 32 bits more than there are addresses for. */
#define LARGEST_STACK (SIZE_MAX > UINT32_MAX ? (size_t)(UINT64_C(1) << 50) : SIZE_MAX / 4 * 3)

static void *nothing(void *argument)
{
    return argument;
}

static void must(int failed)
{
    if (failed) {
        exit(4);
    }
}

static void one_thread(const pthread_attr_t *attributes)
{
    pthread_t thread;
    must(pthread_create(&thread, attributes, nothing, NULL));
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
    one_thread(argument ? &attributes : NULL);
    if (pid == 0) {
        exit(0);
    }
    must(waitpid(pid, &status, 0) != pid || status != 0);
    return NULL;
}

static int small(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    small_stack(&attributes);
    must(pthread_create(&thread, &attributes, forks, "small"));
    pthread_join(thread, NULL);
    return 0;
}

static void *waits(void *barrier)
{
    pthread_barrier_wait(barrier);
    return NULL;
}

static int many(unsigned count)
{
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

static void *reports(void *argument)
{
    report_worker(0, (int)(long)argument);
    return NULL;
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
    must(pthread_create(&thread, NULL, reports, (void *)1));
    pthread_join(thread, NULL);
    return 0;
}

/* Kills for the calls that place threads and read profiles; the rest is free. */
static int shut_in(int by_prctl)
{
    static const unsigned forbidden[] = {
        SYS_sched_setaffinity,
        SYS_openat,
        SYS_flock,
        SYS_getcpu,
        SYS_prctl,
        SYS_set_mempolicy,
#ifdef SYS_open /* newer architectures have openat() only */
        SYS_open,
#endif
    };
    enum { COUNT = sizeof forbidden / sizeof forbidden[0] };
    struct sock_filter code[COUNT + 3];
    code[0] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < COUNT; i++) {
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i],
                                                   (unsigned char)(COUNT - i), 0);
    }
    code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {.len = COUNT + 3, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    return by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
                    : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int sandbox(const char *how)
{
    cpu_set_t set;
    one_thread(NULL);
    if (shut_in(strcmp(how, "prctl") == 0) != 0) {
        return 77;
    }
    must(sched_getaffinity(0, sizeof set, &set));
    report_count(0, CPU_COUNT(&set));
    return forks(NULL) != NULL;
}

static int by_vfork(void)
{
    pthread_t thread;
    int status;
    pid_t pid = vfork();
    if (pid == 0) {
        (void)!shut_in(0);
        _exit(0);
    }
    must(waitpid(pid, &status, 0) != pid);
    must(pthread_create(&thread, NULL, reports, (void *)1));
    pthread_join(thread, NULL);
    return 0;
}

static int bound(size_t pu)
{
    pthread_t thread;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(pu, &set);
    must(sched_setaffinity(0, sizeof set, &set));
    must(pthread_create(&thread, NULL, reports, (void *)1));
    pthread_join(thread, NULL);
    report_worker(0, 0);
    return 0;
}

/* Ends only where that cannot be. */
static int run_filtered(const struct sock_fprog *filter, char **command)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter) != 0) {
        return 77;
    }
    execv(command[0], command);
    return 5;
}

static int refusing(char **command)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    return run_filtered(&program, command);
}

/* All architectures number alike the calls that came with Linux 5.1 and later, from this one on. */
#define FIRST_CALL_OF_LINUX_5_1 424

static int older(char **command)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_CALL_OF_LINUX_5_1, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    return run_filtered(&program, command);
}

static int other_file(const char *path)
{
    close(STDERR_FILENO);
    must(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) != STDERR_FILENO);
    one_thread(NULL);
    return 0;
}

static int behind_pipe(int full, char **command)
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
    execv(command[0], command);
    return 5;
}

static int prefork(void)
{
    int status;
    pid_t child = fork();
    must(child < 0);
    if (child == 0) {
        pthread_t thread;
        must(pthread_create(&thread, NULL, reports, (void *)1));
        pthread_join(thread, NULL);
        report_worker(0, 0);
        _exit(0);
    }
    must(waitpid(child, &status, 0) != child || status != 0);
    report_worker(0, 2);
    return 0;
}

/* In the ways in which a program asks whether a library is there. */
static int find(char **names)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    int found = 0;
    for (; *names; names++) {
        found += dlsym(RTLD_DEFAULT, *names) || dlsym(program, *names);
    }
    report_count(0, found);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "small") == 0) {
        return small();
    }
    if (strcmp(what, "refused") == 0) {
        return refused();
    }
    if (strcmp(what, "vfork") == 0) {
        return by_vfork();
    }
    if (strcmp(what, "prefork") == 0) {
        return prefork();
    }
    if (argc < 3) {
        return 2;
    }
    if (strcmp(what, "many") == 0) {
        return many((unsigned)atoi(argv[2]));
    }
    if (strcmp(what, "sandbox") == 0) {
        return sandbox(argv[2]);
    }
    if (strcmp(what, "file") == 0) {
        return other_file(argv[2]);
    }
    if (strcmp(what, "bound") == 0) {
        return bound((size_t)atoi(argv[2]));
    }
    if (strcmp(what, "refusing") == 0) {
        return refusing(argv + 2);
    }
    if (strcmp(what, "older") == 0) {
        return older(argv + 2);
    }
    if (strcmp(what, "find") == 0) {
        return find(argv + 2);
    }
    return behind_pipe(strcmp(what, "full") == 0, argv + 2);
}
