/* spin: a worker computes until stdin ends, and the main thread waits for that; both report where
 * they are. spin join: the main thread waits for the worker. spin alone: the main thread ends
 * before its worker, which ends at once. */
#include <poll.h>
#include <stdbool.h>

#include "threads.h"

static volatile int ended;

static void *computes(void *argument)
{
    while (!ended) {
    }
    report_worker(0, 1);
    return argument;
}

static void *computes_until_stdin_ends(void *argument)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (poll(&input, 1, 0) == 0) {
    }
    report_worker(0, 1);
    return argument;
}

int main(int argc, char **argv)
{
    char byte;
    if (argc > 1 && strcmp(argv[1], "alone") == 0) {
        begin_thread(nothing, NULL);
        pthread_exit(NULL);
    }
    bool joins = argc > 1 && strcmp(argv[1], "join") == 0;
    pthread_t worker = begin_thread(joins ? computes_until_stdin_ends : computes, NULL);
    while (!joins && read(STDIN_FILENO, &byte, 1) > 0) {
    }
    ended = 1;
    pthread_join(worker, NULL);
    report_worker(0, 0);
    return 0;
}
