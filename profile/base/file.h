/* Files that are there whole or not at all. */
#ifndef SERVET_PROFILE_BASE_FILE_H
#define SERVET_PROFILE_BASE_FILE_H

#include <stddef.h>

#include "profile/base/error.h"

/* Writes beside `path`, syncs, renames over it: a reader sees the old file or the new one, never
 * half of one. 0; -EINVAL (a folder, a device); -EACCES, -ENOENT, -ENOSPC … with the path. */
int profile_save_file(const char *path, const char *data, size_t length,
                      struct servet_error *error);

#endif
