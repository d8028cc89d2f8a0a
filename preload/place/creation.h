/* New threads: who owns them, which slot they take, and the few instructions they run before the
 * program's own. */
#ifndef SERVET_PRELOAD_PLACE_CREATION_H
#define SERVET_PRELOAD_PLACE_CREATION_H

#include <pthread.h>
#include <stdbool.h>

struct pin_thread;

/* Called in the creating thread, so that places follow the order of creation and not the order in
 * which threads happen to start. NULL: leave this thread alone; else what pin_thread_main() is to
 * be started with. Makes the plan and pins the main thread at the first worker. errno is left
 * alone. */
struct pin_thread *pin_thread_prepare(const pthread_attr_t *attributes, const void *start,
                                      void *argument);

/* The thread could not be created: gives its slot back. */
void pin_thread_forget(struct pin_thread *thread);

/* Start routines to hand to pthread_create() and thrd_create(): pin, run the program's, give the
 * slot back. */
void *pin_thread_main(void *thread);
int pin_thread_main_c11(void *thread);

#endif
