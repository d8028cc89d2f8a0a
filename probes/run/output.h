/* Where the profile goes. */
#ifndef SERVET_PROBES_RUN_OUTPUT_H
#define SERVET_PROBES_RUN_OUTPUT_H

#include <stddef.h>

#include "profile/base/error.h"

/* The default place, whose folder is made if need be, or `wanted` (not NULL), whose folder must be
 * there. Fails now and not after the measurement when nothing can be written there. 0; -EINVAL: an
 * empty name, or something that is no regular file; -errno. */
int probe_output_choose(const char *wanted, char *path, size_t size, struct servet_error *error);

/* What measurements of an interrupted run must have in common with those that go on with them,
 * beside the options. */

/* One line without blanks at its ends. Of the native machine: the kernel's release and what it does
 * about huge pages, as read below `root` ("" for this machine). Of "simulated:FILE": a checksum of
 * the file. To be freed; NULL: no memory. */
char *probe_run_identity(const char *root, const char *machine);

#endif
