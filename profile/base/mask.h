/* CPU masks as the kernel keeps them, of a fixed size that holds every machine Linux runs on.
 *
 * Kept apart from struct profile_set because it is used where nothing may be allocated: in a thread
 * that has just started, between fork and exec, in answers to sched_getaffinity(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/model.h"

/* The largest NR_CPUS that any architecture of the kernel can be built with. */
#define PROFILE_MASK_PUS 8192u
#define PROFILE_MASK_WORD_BITS (8u * (unsigned)sizeof(unsigned long))
#define PROFILE_MASK_WORDS (PROFILE_MASK_PUS / PROFILE_MASK_WORD_BITS)

struct profile_mask {
    unsigned long word[PROFILE_MASK_WORDS];
};

/* The mask of thread `tid` (0: the caller). 0, or -errno as sched_getaffinity(2). errno is left
 * alone in all of these. */
int profile_mask_get(pid_t tid, struct profile_mask *out);
/* Sets it. 0, or -errno as sched_setaffinity(2). */
int profile_mask_set(pid_t tid, const struct profile_mask *mask);
/* Sets it to one PU, using no more stack than that PU's index needs. */
int profile_mask_set_pu(pid_t tid, uint32_t pu);

void profile_mask_all(struct profile_mask *mask);
bool profile_mask_has(const struct profile_mask *mask, uint32_t pu);
/* The first member from `pu` on; PROFILE_MASK_PUS: there is none. Of 8,192 PUs few are members. */
uint32_t profile_mask_next(const struct profile_mask *mask, uint32_t pu);
#define PROFILE_MASK_EACH(mask, pu)                                                                \
    for (uint32_t pu = profile_mask_next(mask, 0); pu < PROFILE_MASK_PUS;                          \
         pu = profile_mask_next(mask, pu + 1))
void profile_mask_add(struct profile_mask *mask, uint32_t pu);
void profile_mask_remove(struct profile_mask *mask, uint32_t pu);
bool profile_mask_equal(const struct profile_mask *a, const struct profile_mask *b);
bool profile_mask_empty(const struct profile_mask *mask);
size_t profile_mask_count(const struct profile_mask *mask);

/* Adds the members of `other`; keeps only them; removes them. */
void profile_mask_unite(struct profile_mask *mask, const struct profile_mask *other);
void profile_mask_intersect(struct profile_mask *mask, const struct profile_mask *other);
void profile_mask_subtract(struct profile_mask *mask, const struct profile_mask *other);
/* Is each member one of `other`, too? */
bool profile_mask_within(const struct profile_mask *mask, const struct profile_mask *other);

/* Between the two forms. 0, -ENOMEM; PUs that a mask cannot hold are left out. */
int profile_mask_to_set(const struct profile_mask *mask, struct profile_set *out);
void profile_mask_from_set(const struct profile_set *set, struct profile_mask *out);

/* A cpulist, which a blank or the line ends. False: it is malformed, or empty. */
bool profile_mask_parse(const char *list, struct profile_mask *out);
/* Writes the cpulist ("0-3,8"), cut off where the buffer ends. */
void profile_mask_format(const struct profile_mask *mask, char *buffer, size_t size);
