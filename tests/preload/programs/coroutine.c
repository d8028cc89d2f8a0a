/* Threads made by a coroutine on a small stack of the program's own:  coroutine WHERE
 *
 * WHERE: "main", in the main thread, or "child", in the child that another thread has forked. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __GLIBC__ /* musl has no coroutines */
#include <ucontext.h>

enum { STACK_BYTES = 16384 };

static ucontext_t caller, coroutine;

static void *nothing(void *unused)
{
    return unused;
}

static void make_threads(void)
{
    pthread_t thread;
    for (int i = 0; i < 3; i++) {
        if (pthread_create(&thread, NULL, nothing, NULL) != 0) {
            _exit(1);
        }
        pthread_join(thread, NULL);
        swapcontext(&coroutine, &caller);
    }
    _exit(2);
}

static void *run(void *unused)
{
    char *stack =
        mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, STACK_BYTES, PROT_NONE) != 0) {
        _exit(5);
    }
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack + STACK_BYTES;
    coroutine.uc_stack.ss_size = STACK_BYTES;
    makecontext(&coroutine, make_threads, 0);
    for (int i = 0; i < 3; i++) {
        swapcontext(&caller, &coroutine);
    }
    return unused;
}

#else
static void *run(void *unused)
{
    return unused;
}
#endif

static void *fork_and_run(void *unused)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        run(NULL);
        _exit(0);
    }
    _exit(waitpid(pid, &status, 0) == pid ? status != 0 : 4);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc < 2 || strcmp(argv[1], "main") == 0) {
        run(NULL);
        return 0;
    }
    if (pthread_create(&thread, NULL, fork_and_run, NULL) != 0) {
        return 3;
    }
    pthread_join(thread, NULL);
    return 0;
}
