/* Shared by the parts of `calls`: the seed's numbers, what is said of the calling thread and its
 * process, and threads. */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

/* STACK_BYTES: of a stack that the program brings. */
enum { KEPT_ERRNO = 77, STACK_BYTES = 256 << 10 };

/* -- seen.c -- */

/* The seed's next number, below `below`. */
extern uint64_t draw_state;
uint32_t draw(uint32_t below);

/* All of them go on with the call's line. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_mask(const char *whose, pid_t tid);
void say_status(const char *field);
void say_files(bool is_child);
void say_alive(int expected);
void say_self(void);
void say_stack(void);

/* -- calls.c -- */

enum { RETURN, EXIT, WAIT, SPIN, PAUSE, NEST, LEAVE };

struct task {
    int how;
    pthread_t thread;
    sem_t may_say, begun, go;
};

/* Makes a thread that says what it sees, and does as it is to; false: there is none. */
bool start(struct task *task, int how, const pthread_attr_t *attributes);
void finish(const struct task *task);
/* One and then the other. */
void start_and_finish(int how);

/* -- processes.c -- */

/* All that a child sees; returns its exit status. */
int child_life(const char *kind, bool makes_threads);
void forked(void);
void forked_by_a_thread(void);
void executed(void);
void executed_by_a_thread(void);
void limited(void);
