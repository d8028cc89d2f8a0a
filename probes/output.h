/* Where the profile goes. */
#ifndef SERVET_PROBES_OUTPUT_H
#define SERVET_PROBES_OUTPUT_H

#include <stddef.h>

#include "error.h"

/* The default place, whose folder is made if need be, or `wanted` (not NULL), whose folder must be there. Fails now and
 * not after the measurement when nothing can be written there. 0; -EINVAL: an empty name, or something that is no
 * regular file; -errno. */
int output_choose(const char *wanted, char *path, size_t size, struct servet_error *error);

#endif
