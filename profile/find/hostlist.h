/* Lists of host names as batch systems write them: items separated by commas, each with at most one
 * bracket of numbers, "login,node[001-128,200]-ib". Numbers keep the width they are written
 * with. */
#ifndef SERVET_PROFILE_FIND_HOSTLIST_H
#define SERVET_PROFILE_FIND_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many names the list expands to. 0; -EINVAL (malformed, empty, a descending range); -ERANGE
 * (more than PROFILE_SET_LIMIT names, or a number of more than nine digits). */
int profile_hostlist_count(const char *list, uint32_t *count);

/* Name number `index` (from 0). 0; -ERANGE (no such name); -ENAMETOOLONG; -EINVAL as above. */
int profile_hostlist_name(const char *list, uint32_t index, char *name, size_t size);

/* Position of `name` in the list, or -1. Compares the whole name and, where that differs, both up
 * to the first dot. */
int64_t profile_hostlist_find(const char *list, const char *name);

#endif
