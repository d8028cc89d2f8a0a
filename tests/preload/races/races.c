/* Threads that make threads, at once and for a while: races SECONDS. Some last as long as the watch
 * takes to look at them twice, some end before; a child is forked meanwhile. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAKERS = 3, NAP_US = 2000 };

static atomic_bool ends;

static void *brief(void *unused)
{
    return unused;
}

static void *lasting(void *unused)
{
    while (!atomic_load(&ends)) {
        usleep(NAP_US);
    }
    return unused;
}

static void run(void *(*routine)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, routine, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}

static void *other(void *unused)
{
    usleep(NAP_US);
    return unused;
}

static void *maker(void *unused)
{
    while (!atomic_load(&ends)) {
        run(brief);
        run(other);
    }
    return unused;
}

int main(int count, char **words)
{
    pthread_t thread[2 * MAKERS];
    const time_t end = time(NULL) + (count > 1 ? atoi(words[1]) : 1);
    for (int i = 0; i < 2 * MAKERS; i++) {
        if (pthread_create(&thread[i], NULL, i % 2 ? maker : lasting, NULL) != 0) {
            return 1;
        }
    }
    while (time(NULL) < end) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        waitpid(child, NULL, 0);
        usleep(10 * NAP_US);
    }
    atomic_store(&ends, true);
    for (int i = 0; i < 2 * MAKERS; i++) {
        pthread_join(thread[i], NULL);
    }
    return 0;
}
