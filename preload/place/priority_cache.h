/* The memory of SERVET_AUTO: whether the last run of a program was communication intensive.
 *
 * One small file for each path of an executable in $XDG_CACHE_HOME/servet/auto (or
 * ~/.cache/servet/auto). It counts only for the same build: the same size and time of modification.
 * An interpreter's scripts share its entry. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/place/options.h"

/* Where the user's cache keeps what is of that kind for `of`: $XDG_CACHE_HOME/servet/KIND/ and a
 * hash (~/.cache without the variable). 0, -ENOENT (neither it nor $HOME is an absolute path),
 * -ENAMETOOLONG. */
int pin_cache_path(const char *kind, const char *of, char out[PATH_MAX]);
/* Makes the folders above the last part of `path`, for the user alone. 0, -errno. */
int pin_cache_make_folders(char *path);

struct pin_priority_cache {
    bool communication; /* communication intensive, else memory bound or computing */
    double share;       /* of the time after MPI_Init in MPI: of the rank for which it is least */
    int32_t ranks;
};

/* The verdict kept for the executable at `path` (NULL: the calling process's). 0; -ENOENT: nothing,
 * or of another build; -EPERM: the file is another user's; -errno. */
int pin_priority_cache_recall(const char *path, struct pin_priority_cache *out);

/* The file that it is in, and the lines that come before the verdict. 0, -ENOENT, -ENAMETOOLONG,
 * -errno. */
#define PIN_PRIORITY_CACHE_HEAD (PATH_MAX + 128)
int pin_priority_cache_file(const char *path, char file[PATH_MAX],
                            char head[PIN_PRIORITY_CACHE_HEAD]);

/* With SERVET_AUTO and no priority set, sets the one that the memory of `path` speaks for. True: it
 * did, and `out` is what is remembered. */
bool pin_priority_cache_apply(struct pin_options *options, const char *path,
                              struct pin_priority_cache *out);
