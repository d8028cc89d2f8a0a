/* spin: a worker computes until stdin ends, and the main thread waits for that; both report where
 * they are. spin bound: the worker binds itself to where it is. spin files: how the shim's watch
 * leaves the files of the process. spin alone: the main thread ends before its worker, which ends
 * by the kernel's call. spin after MS: a worker lives for so long; how many threads there are when
 * it has been joined, by C11's function too, and whether the process may have a namespace then for
 * which it must have one alone. spin root: the main thread has a root of its own beside a worker,
 * and enters a namespace for which it must have; how many threads there are some time later. */
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>

#include "threads.h"

static volatile int ended;

static void *computes(void *argument)
{
    while (!ended) {
    }
    report_worker(0, 1);
    return argument;
}

static void *computes_where_it_is(void *unused)
{
    cpu_set_t here;
    must(sched_getaffinity(0, sizeof here, &here));
    must(sched_setaffinity(0, sizeof here, &here));
    return computes(unused);
}

static void *goes_without_a_word(void *unused)
{
    usleep(1000); /* one that lives briefly has no place */
    syscall(SYS_exit, 0);
    return unused;
}

static int naps(void *argument)
{
    usleep(1000 * (useconds_t)atoi(argument));
    return 0;
}

static void *naps_too(void *argument)
{
    naps(argument);
    return NULL;
}

static void after(char *ms)
{
    thrd_t thread;
    run_thread(naps_too, ms);
    printf("threads %d", count_threads());
    must(thrd_create(&thread, naps, ms) != thrd_success || thrd_join(thread, NULL) != thrd_success);
    printf(" %d", count_threads());
    printf(" alone %s\n", unshare(CLONE_NEWUSER) == 0 ? "yes" : strerror(errno));
}

static pthread_barrier_t apart;

static void *leaves_the_root(void *argument)
{
    must(unshare(CLONE_FS));
    pthread_barrier_wait(&apart);
    return computes(argument);
}

static void root(void)
{
    pthread_barrier_init(&apart, NULL, 2);
    pthread_t worker = begin_thread(leaves_the_root, NULL);
    pthread_barrier_wait(&apart);
    usleep(200000); /* the watch has looked */
    const int entered = setns(open("/proc/self/ns/mnt", O_RDONLY), CLONE_NEWNS);
    printf("entered %s", entered == 0 ? "yes" : strerror(errno));
    usleep(200000);
    printf(" threads %d\n", count_threads());
    ended = 1;
    pthread_join(worker, NULL);
}

/* Is a number that was free taken at any moment? Does a pipe whose end is closed hang up? */
static void files(void)
{
    int ends[2], taken = 0;
    must(pipe(ends));
    const int next = dup(0);
    struct pollfd reader = {.fd = ends[0], .events = POLLIN};
    pthread_t worker = begin_thread(computes, NULL);
    const time_t begun = time(NULL);
    close(next);
    while (time(NULL) < begun + 2) {
        const int now = dup(0);
        taken += now != next;
        close(now);
    }
    close(ends[1]);
    printf("taken %d hangs up %d\n", taken > 0, poll(&reader, 1, 0));
    ended = 1;
    pthread_join(worker, NULL);
}

int main(int argc, char **argv)
{
    char byte;
    if (argc > 1 && strcmp(argv[1], "alone") == 0) {
        begin_thread(goes_without_a_word, NULL);
        pthread_exit(NULL);
    }
    if (argc > 2 && strcmp(argv[1], "after") == 0) {
        after(argv[2]);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "files") == 0) {
        files();
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "root") == 0) {
        root();
        return 0;
    }
    pthread_t worker = begin_thread(argc > 1 ? computes_where_it_is : computes, NULL);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    ended = 1;
    pthread_join(worker, NULL);
    report_worker(0, 0);
    return 0;
}
