/* What SERVET_AUTO remembers of a program: whether its last run was communication intensive.
 *
 * One small file for each path of an executable in $XDG_CACHE_HOME/servet/auto (or
 * ~/.cache/servet/auto). It counts only for the same build: the same build ID, or size and time of
 * modification where there is none. An interpreter's scripts share its entry.
 */
#ifndef SERVET_PRELOAD_TRACE_REMEMBERED_H
#define SERVET_PRELOAD_TRACE_REMEMBERED_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/place/options.h"

struct pin_remembered {
    bool communication; /* communication intensive, else memory bound or computing */
    double share;       /* of the time after MPI_Init in MPI: of the rank for which it is least */
    int32_t ranks;
};

/* What is remembered of the executable at `path` (NULL: the calling process's). 0; -ENOENT:
 * nothing, or of another build; -EPERM: the file is somebody else's; -errno. */
int pin_remembered_recall(const char *path, struct pin_remembered *out);

/* Remembers. 0, -errno. */
int pin_remembered_keep(const char *path, const struct pin_remembered *what);

/* With SERVET_AUTO and no priority set, sets the one that the memory of `path` speaks for. True: it
 * did, and `out` is what is remembered. */
bool pin_remembered_apply(struct pin_options *options, const char *path,
                          struct pin_remembered *out);

#endif
