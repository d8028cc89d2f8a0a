/* Work on a stack of our own: a thread that makes another one may have 16 KiB (PTHREAD_STACK_MIN),
 * which a path and a parser use up.
 */
#ifndef SERVET_PRELOAD_PLACE_OWN_STACK_H
#define SERVET_PRELOAD_PLACE_OWN_STACK_H

#include <stdbool.h>

/* Calls `work`, on a stack of our own if the calling thread has little left of its own. `is_first`
 * is for the thread that the process began with, whose stack grows. 0 or -ENOMEM, and it has not
 * been called. Keeps errno. */
int pin_with_enough_stack(bool is_first, void (*work)(void));

#endif
