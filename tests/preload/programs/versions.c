/* Answers of libc's functions in the versions that old programs were linked against, before and
 * after a thread was made. Needs a script without `#!` as its argument.
 *
 *     WHEN sched, pthread RESULT PUS     the old questions for the mask
 *     WHEN spawn, spawnp RESULT STATUS   the script's own lines come before
 *     WHEN timer RESULT WHOLE            0: nothing beyond the int was written
 *     set RESULT RESULT                  the old ways to change the mask
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __i386__
#define FIRST_SPAWN "2.2"
#else
#define FIRST_SPAWN "2.2.5"
#endif

#define OLD(name, version) __asm__(".symver old_" #name ", " #name "@GLIBC_" version)
OLD(sched_getaffinity, "2.3.3");
OLD(sched_setaffinity, "2.3.3");
OLD(pthread_getaffinity_np, "2.3.3");
OLD(pthread_setaffinity_np, "2.3.3");
OLD(posix_spawn, FIRST_SPAWN);
OLD(posix_spawnp, FIRST_SPAWN);

int old_sched_getaffinity(pid_t tid, cpu_set_t *set);
int old_sched_setaffinity(pid_t tid, const cpu_set_t *set);
int old_pthread_getaffinity_np(pthread_t thread, cpu_set_t *set);
int old_pthread_setaffinity_np(pthread_t thread, const cpu_set_t *set);
extern __typeof(posix_spawn) old_posix_spawn;
extern __typeof(posix_spawnp) old_posix_spawnp;

#ifdef __x86_64__
OLD(timer_create, "2.2.5");
int old_timer_create(clockid_t clock, struct sigevent *event, int *timer);

static void make_timer(const char *when)
{
    int timer[2] = {-1, 0x55555555};
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    int result = old_timer_create(CLOCK_MONOTONIC, &event, timer);
    printf("%s timer %d %d\n", when, result, timer[1] != 0x55555555);
}
#else
OLD(popen, "2.0");
OLD(pclose, "2.0");
OLD(pthread_create, "2.0");
void *old_popen(const char *command, const char *mode);
int old_pclose(void *file);
/* Its attributes are 36 bytes, whichever follow. */
int old_pthread_create(pthread_t *thread, const void *attributes, void *(*start)(void *),
                       void *argument);

static void *nothing_else(void *unused)
{
    return unused;
}

static void make_timer(const char *when)
{
    unsigned char attributes[36 + 64];
    pthread_t thread;
    void *file = old_popen("exit 5", "r");
    int status = old_pclose(file);
    pthread_attr_init((pthread_attr_t *)attributes);
    memset(attributes + 32, 0x55, sizeof attributes - 32);
    int result = old_pthread_create(&thread, attributes, nothing_else, NULL);
    if (result == 0) {
        pthread_join(thread, NULL);
    }
    printf("%s popen %d thread %d\n", when, WEXITSTATUS(status), result);
}
#endif

static void print_set(const char *when, const char *how, int result, const cpu_set_t *set)
{
    printf("%s %s %d", when, how, result);
    for (size_t pu = 0; result >= 0 && pu < CPU_SETSIZE; pu++) {
        if (CPU_ISSET(pu, set)) {
            printf(" %zu", pu);
        }
    }
    printf("\n");
}

static void spawn(const char *when, const char *how, __typeof(posix_spawn) *function, char *script)
{
    extern char **environ;
    char *arguments[] = {script, NULL};
    int status = -1;
    pid_t child;
    fflush(stdout);
    int result = function(&child, script, NULL, NULL, arguments, environ);
    if (result == 0) {
        waitpid(child, &status, 0);
    }
    printf("%s %s %d %d\n", when, how, result, WEXITSTATUS(status));
}

static void ask_all(const char *when, char *script)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    print_set(when, "sched", old_sched_getaffinity(0, &set), &set);
    CPU_ZERO(&set);
    print_set(when, "pthread", old_pthread_getaffinity_np(pthread_self(), &set), &set);
    spawn(when, "spawn", old_posix_spawn, script);
    spawn(when, "spawnp", old_posix_spawnp, script);
    make_timer(when);
}

static void *nothing(void *unused)
{
    return unused;
}

int main(int count, char **values)
{
    pthread_t thread;
    cpu_set_t set;
    if (count != 2) {
        return 2;
    }
    ask_all("first", values[1]);
    if (pthread_create(&thread, NULL, nothing, NULL) != 0) {
        return 3;
    }
    pthread_join(thread, NULL);
    ask_all("then", values[1]);
    CPU_ZERO(&set);
    old_sched_getaffinity(0, &set);
    int result = old_sched_setaffinity(0, &set);
    printf("set %d %d\n", result, old_pthread_setaffinity_np(pthread_self(), &set));
    return 0;
}
