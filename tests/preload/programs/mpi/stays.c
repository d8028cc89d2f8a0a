/* Threads that stay until a byte comes:  stays rank|alone TEAM POOL BOUND PU
 *
 * TEAM threads of an OpenMP runtime (the main thread is one more), POOL of the program, BOUND that
 * the program has bound to PU, and a helper. "rank": after MPI_Init. Says of each
 * "main|worker|helper TID" and at last "ready PID". */
#include "../threads.h"

int MPI_Init(void *count, void *values);
int stub_fork(void (*work)(void));
int stub_help_with(void (*work)(void));

static pthread_barrier_t all_here;

static void say(const char *role, int number)
{
    report_line("%s %d\n", role, number);
}

static void stay(const char *role)
{
    say(role, gettid());
    pthread_barrier_wait(&all_here);
    pause();
}

static void work(void)
{
    stay("worker");
}

static void help(void)
{
    stay("helper");
}

static void *work_in_pool(void *unused)
{
    stay("worker");
    return unused;
}

int main(int argc, char **argv)
{
    char byte;
    pthread_t thread;
    pthread_attr_t bound;
    int zero = 0;
    if (argc < 6) {
        return 3;
    }
    const int team = atoi(argv[2]), pool = atoi(argv[3]), own = atoi(argv[4]);
    const cpu_set_t set = only_pu(argv[5]);
    must(pthread_barrier_init(&all_here, NULL, (unsigned)(team + pool + own + 2)));
    if (strcmp(argv[1], "rank") == 0) {
        (void)MPI_Init(&zero, &zero);
    }
    pthread_attr_init(&bound);
    pthread_attr_setaffinity_np(&bound, sizeof set, &set);
    for (int i = 0; i < team; i++) {
        must(stub_fork(work));
    }
    for (int i = 0; i < pool; i++) {
        begin_thread(work_in_pool, NULL);
    }
    for (int i = 0; i < own; i++) {
        must(pthread_create(&thread, &bound, work_in_pool, NULL));
    }
    must(stub_help_with(help));
    pthread_barrier_wait(&all_here);
    say("main", getpid());
    say("ready", getpid());
    return read(STDIN_FILENO, &byte, 1) == 1 ? 0 : 4;
}
