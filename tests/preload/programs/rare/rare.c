/* Rare uses of threads and processes: rare WAY. The output is the same without the shim, but for
 * the PUs. */
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "../threads.h"

pid_t _Fork(void) __attribute__((weak)); /* glibc 2.34 and later */

#define MOST 8

static void *nap(void *argument)
{
    usleep(20000);
    return argument;
}

static void make_and_join(int threads, const pthread_attr_t *attributes, void *(*start)(void *))
{
    pthread_t thread[MOST];
    for (int i = 0; i < threads; i++) {
        must(pthread_create(&thread[i], attributes, start, (void *)(long)(i + 1)));
    }
    for (int i = 0; i < threads; i++) {
        must(pthread_join(thread[i], NULL));
    }
}

/* -- a library whose constructor makes a thread, opened while others make threads -- */

int rare_constructor_runs;

static void *open_library(void *path)
{
    return dlopen(path, RTLD_NOW) ? path : NULL;
}

static void constructor(const char *program)
{
    char path[4096];
    pthread_t opener;
    void *opened;
    snprintf(path, sizeof path, "%.*s/librare.so", (int)(strrchr(program, '/') - program), program);
    make_and_join(1, NULL, nap);
    must(pthread_create(&opener, NULL, open_library, path));
    while (!__atomic_load_n(&rare_constructor_runs, __ATOMIC_ACQUIRE)) {
        usleep(1000);
    }
    make_and_join(MOST, NULL, nap);
    must(pthread_join(opener, &opened));
    puts(opened ? "opened" : dlerror());
}

/* -- threads that end without a word, before as many as there are PUs -- */

static void *end_by_kernel(void *argument)
{
    usleep(2000);
    syscall(SYS_exit, 0);
    return argument;
}

static void *show(void *argument)
{
    usleep(20000);
    report_worker(0, (int)(long)argument);
    return argument;
}

static void gone(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 20); /* given back to the kernel by libc */
    make_and_join(1, &attributes, end_by_kernel);
    make_and_join(1, &attributes, end_by_kernel);
    make_and_join(2, NULL, show);
    make_and_join(MOST, NULL, nap);
}

/* -- children that pthread_atfork() does not see -- */

static int child(void *argument)
{
    make_and_join(1, NULL, nap);
    report_worker(0, 0);
    _exit(0);
    return argument != NULL;
}

static void forked(const char *way)
{
    static char stack[1 << 20];
    pid_t pid = strcmp(way, "_Fork") == 0   ? (_Fork ? _Fork() : fork())
                : strcmp(way, "clone") == 0 ? clone(child, stack + sizeof stack, SIGCHLD, NULL)
                                            : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        child(NULL);
    }
    must(waitpid(pid, NULL, 0) != pid);
    report_worker(0, 1);
}

/* -- attributes -- */

static void *policy(void *argument)
{
    struct sched_param parameters;
    sched_getparam(0, &parameters);
    printf("policy %d, priority %d\n", sched_getscheduler(0), parameters.sched_priority);
    return argument;
}

static void attributes(void)
{
    const struct sched_param none = {0};
    pthread_attr_t it;
    pthread_t thread;
    must(pthread_setschedparam(pthread_self(), SCHED_BATCH, &none));
    pthread_attr_init(&it);
    pthread_attr_setinheritsched(&it, PTHREAD_EXPLICIT_SCHED);
    for (int set = 0; set < 3; set++) {
        int rc = pthread_create(&thread, &it, policy, NULL);
        if (rc == 0) {
            pthread_join(thread, NULL);
        }
        printf("%s\n", strerror(rc));
        if (set == 0) {
            pthread_attr_setschedparam(&it, &none);
        } else {
            pthread_attr_setschedpolicy(&it, SCHED_OTHER);
        }
    }
}

static char *lowest;
#define STACK (1 << 20)

static void *where(void *argument)
{
    char here;
    puts(&here >= lowest && &here < lowest + STACK ? "on the given stack" : "elsewhere");
    return argument;
}

static void stack_address(void)
{
    pthread_attr_t it;
    /* Twice: libc takes the size from its default, and so the address from below. */
    char *mapped = mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    lowest = mapped + (32 << 20) - STACK;
    pthread_attr_init(&it);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    pthread_attr_setstackaddr(&it, lowest + STACK);
    make_and_join(1, &it, where);
}

/* A set of signals is behind a pointer in them. */
static void *signals(void *argument)
{
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    printf("blocked: %d%d\n", sigismember(&set, SIGUSR1), sigismember(&set, SIGUSR2));
    fflush(stdout);
    usleep(20000);
    report_worker(0, 1);
    return argument;
}

static void signal_attribute(void)
{
    pthread_attr_t it;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_attr_init(&it);
    must(pthread_attr_setsigmask_np(&it, &set));
    make_and_join(1, &it, signals);
    pthread_attr_destroy(&it);
}

/* A policy that is refused is no mask that is refused. */
static void refused(void)
{
    const struct sched_param first = {.sched_priority = 10};
    pthread_attr_t it;
    pthread_t thread;
    must(geteuid() == 0 && setresuid(65534, 65534, 65534));
    pthread_attr_init(&it);
    pthread_attr_setinheritsched(&it, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&it, SCHED_FIFO);
    pthread_attr_setschedparam(&it, &first);
    printf("%s\n", strerror(pthread_create(&thread, &it, nap, NULL)));
    fflush(stdout);
    make_and_join(2, NULL, show);
}

/* -- little stack -- */

#define LITTLE 2000

static void *on_little(void *argument)
{
    char here, *low;
    size_t size;
    pthread_attr_t it;
    pthread_t thread;
    pthread_getattr_np(pthread_self(), &it);
    pthread_attr_getstack(&it, (void **)&low, &size);
    pthread_attr_destroy(&it);
    const size_t used_up = (size_t)(&here - low) - LITTLE;
    volatile char *rest = __builtin_alloca(used_up);
    rest[0] = 1;
    *(pthread_t *)argument = pthread_create(&thread, NULL, nap, NULL) == 0 ? thread : 0;
    return NULL;
}

static void little(void)
{
    pthread_attr_t it;
    pthread_t maker, made;
    pthread_attr_init(&it);
    pthread_attr_setstacksize(&it, 65536);
    must(pthread_create(&maker, &it, on_little, &made));
    must(pthread_join(maker, NULL));
    must(pthread_join(made, NULL));
}

/* -- threads that are cancelled as they return -- */

#define TURNS 200000
#define LONGEST_S 5 /* on a busy machine fewer threads must do */

static int goes;

static void *turn(void *argument)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    __atomic_store_n(&goes, 1, __ATOMIC_RELEASE);
    for (volatile int i = 0; i < TURNS; i++) {
        ;
    }
    return argument;
}

static void cancelled(int threads)
{
    const time_t until = time(NULL) + LONGEST_S;
    unsigned seed = 1;
    for (int i = 0; i < threads && time(NULL) < until; i++) {
        pthread_t thread;
        goes = 0;
        seed = seed * 1103515245u + 12345u;
        must(pthread_create(&thread, NULL, turn, NULL));
        while (!__atomic_load_n(&goes, __ATOMIC_ACQUIRE)) {
            ;
        }
        for (volatile int k = 0; k < TURNS - 2000 + (int)(seed >> 16) % 4000; k++) {
            ;
        }
        pthread_cancel(thread);
        must(pthread_join(thread, NULL));
    }
    make_and_join(2, NULL, show);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IONBF, 0);
    alarm(100); /* a test that hangs has failed */
    if (strcmp(way, "constructor") == 0) {
        constructor(argv[0]);
    } else if (strcmp(way, "gone") == 0) {
        gone();
    } else if (strcmp(way, "attributes") == 0) {
        attributes();
    } else if (strcmp(way, "stack") == 0) {
        stack_address();
    } else if (strcmp(way, "signals") == 0) {
        signal_attribute();
    } else if (strcmp(way, "refused") == 0) {
        refused();
    } else if (strcmp(way, "little") == 0) {
        little();
    } else if (strcmp(way, "cancelled") == 0) {
        cancelled(1000);
    } else {
        forked(way);
    }
    puts("done");
    return 0;
}
