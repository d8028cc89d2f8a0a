/* This machine as the tests need it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapper/map.h"

/* PUs this process may use. */
size_t here_pus(void);

/* What `servet-map -n workers` answers for the declared topology of this machine: `pus` gets that
 * many. */
void here_order(enum map_priority priority, size_t workers, uint32_t *pus);

/* Writes a profile of this machine to `path` in which the PU with the highest index is a more
 * capable core, so that a single worker's place is that PU and not the first. Returns that PU. */
uint32_t here_write_uneven_profile(const char *path);

/* Writes a profile of this machine with a GPU (cuda0) and a card (mlx5_0) beside its first PU and a
 * GPU (cuda1) and a card (hsi1) beside its last, or all beside the last. */
void here_write_gpu_profile(const char *path, uint32_t vendor, bool both_last);

/* Ends the test program with status 77 and a reason unless two PUs may be used. Learns `order`. */
void here_need_two_pus(void);

/* here_order() of two workers by memory priority. */
extern uint32_t order[2];
/* The PUs that this process may use, as programs print them: of threads that are left to the
 * kernel. */
extern char all_pus[256];
extern char order_text[2][16], order_pair[32]; /* "0", "1"; "0,1" */
extern char order_pus[32];                     /* the same two as the kernel prints them, "0-1" */
