/* The registry of this test and other processes that take PUs in it. */
#pragma once

#include <sys/types.h>

#include "preload/node/registry_file.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

extern const char *path;
extern struct pin_registry here;
extern const struct profile_mask few; /* the first eight PUs */

/* A process that has done its part, and waits until it is ended. */
struct other {
    pid_t pid;
    int said; /* the answer of `what` */
};

struct other start(int (*what)(void));
void end(const struct other *other);

/* For start(): opens the registry; and takes `wanted` in it: 1, 0: it is another's; -1. */
int come(void);
int take(void);
extern uint32_t wanted;

struct other start_holder(uint32_t pu);
/* What one more process would get; it is gone again. */
int others_take(uint32_t pu);

/* The PUs of `few` that others hold. */
unsigned long held_here(void);
