/* Sets of PUs (or of nodes) by OS index, kept as sorted arrays without duplicates.
 *
 * A machine has up to a few thousand PUs and a profile stores mostly small groups of them, so a
 * sorted array of 32-bit indices is smaller and simpler than a bitmap, and walks in OS-index order,
 * which is the order that every tie in this project is broken by.
 *
 * Text form: the kernel's cpulist, "0-3,8,10-11" (see cpuset(7), FORMATS). The empty set is "". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile_set {
    uint32_t *ids; /* ascending, unique; owned; NULL when count is 0 */
    size_t count;
};

/* Largest index a set may hold (exclusive): bounds what a hostile "0-4000000000" can make us
 * allocate. */
#define PROFILE_SET_LIMIT (1u << 24)

void profile_set_free(struct profile_set *set);

/* Parses a cpulist. 0, -EINVAL (malformed, descending range, or empty text), -ERANGE (an index at
 * or above PROFILE_SET_LIMIT), -ENOMEM. Order and repeats in the text do not matter. Trailing
 * newline allowed. */
int profile_set_parse(const char *text, struct profile_set *out);

/* Builds a set from any array (unsorted, repeats allowed). 0 or -ENOMEM. */
int profile_set_from_array(const uint32_t *ids, size_t count, struct profile_set *out);

int profile_set_copy(const struct profile_set *from, struct profile_set *out);

/* Writes the cpulist text. Returns the length without the terminator, as snprintf does. */
size_t profile_set_format(const struct profile_set *set, char *buffer, size_t size);

/* The same as a new string (free() it), or NULL when memory is short. */
char *profile_set_text(const struct profile_set *set);

/* How many members are lower; set->count where it is no member. */
size_t profile_set_position(const struct profile_set *set, uint32_t id);
bool profile_set_has(const struct profile_set *set, uint32_t id);
bool profile_set_equal(const struct profile_set *a, const struct profile_set *b);
bool profile_set_subset(const struct profile_set *part, const struct profile_set *whole);
/* Have they a member in common? */
bool profile_set_overlaps(const struct profile_set *a, const struct profile_set *b);
int profile_set_intersect(const struct profile_set *a, const struct profile_set *b,
                          struct profile_set *out);
int profile_set_union(const struct profile_set *a, const struct profile_set *b,
                      struct profile_set *out);
