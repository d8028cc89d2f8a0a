/* The registry of this test and other processes that take PUs in it. */
#pragma once

#include "preload/node/registry_file.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

extern const char *path;
extern struct pin_registry here;
extern const struct profile_mask few; /* the first eight PUs */

/* For start_process(): opens the registry; and takes `wanted` in it: 1, 0: it is another's; -1. */
int come(void);
int take(void);
extern uint32_t wanted;

struct other start_holder(uint32_t pu);
/* What one more process would get; it is gone again. */
int others_take(uint32_t pu);

/* The PUs of `few` that others hold, and the jobs on one of them. */
unsigned long held_here(void);
struct pin_company company_on(uint32_t pu);
