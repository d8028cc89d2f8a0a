/* Memory and stacks of the shim's own: the program's malloc and its threads' stacks may be too
 * small, or not there yet. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* What `*at` points to, mapped by the first of all threads that ask; never given back. NULL: there
 * is no memory. */
void *pin_pages_map_once(_Atomic(void *) *at, size_t bytes);

/* Becomes false in a child that has a copy of this process's memory, however it was made; not in
 * one that shares it (vfork), and not on kernels before 4.14. */
bool pin_pages_are_ours(void);
/* From now on, in this process. */
void pin_pages_claim(void);

/* Called once in the thread that the process began with, on its stack. */
void pin_pages_start(void);

/* Calls `work`, on a stack of our own if the calling thread has little left of its own, or runs on
 * one that the program has made for a coroutine. 0 or -ENOMEM, and it has not been called. Keeps
 * errno. */
int pin_pages_with_stack(void (*work)(void));
