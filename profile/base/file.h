/* Files, as every room needs them: small ones read at once, texts in memory written as files are,
 * and new ones that are there whole or not at all. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/base/error.h"

/* -- small files of /proc and /sys, read at once: a second read could tell of another moment. Here,
 * since the shim, its commands and the report are linked of different files -- */

/* A descriptor, or -errno, with errno set. A plain file: at another one, a FIFO that stands there,
 * a program could wait for ever. */
static inline int profile_open_plain(const char *path)
{
    struct stat about = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0 || (fstat(file, &about) == 0 && S_ISREG(about.st_mode))) {
        return file < 0 ? -errno : file;
    }
    close(file);
    errno = S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
    return -errno;
}

/* The first `size` - 1 bytes, ended by a zero; false, and "", when the file cannot be read or is
 * empty. */
static inline bool profile_read_small(const char *path, char *text, size_t size)
{
    int file = profile_open_plain(path);
    ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    if (file >= 0) {
        close(file);
    }
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* The same up to the end of the first line: mostly there is but one. */
static inline bool profile_first_line(const char *path, char *line, size_t size)
{
    bool there = profile_read_small(path, line, size);
    line[strcspn(line, "\n")] = '\0';
    return there;
}

/* Tasks of the whole system that are ready to run, the one that asks among them; 0: not known. */
static inline uint32_t profile_running_tasks(void)
{
    char text[128];
    const char *at = text;
    profile_read_small("/proc/loadavg", text, sizeof text);
    for (int averages = 3; averages > 0 && at; averages--) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    uint32_t running = 0; /* by hand: as put.h */
    for (; at && *at >= '0' && *at <= '9'; at++) {
        running = 10 * running + (uint32_t)(*at - '0');
    }
    return running;
}

/* Is what is at `path` another user's, in a folder that everybody may write to? The kernel's rule
 * for links and files there (protected_symlinks, which a rename would go round, and
 * protected_regular, which some systems lack). */
static inline bool profile_planted(const char *path, const struct stat *entry)
{
    char folder[PATH_MAX];
    struct stat around;
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) {
        slash[slash == folder] = '\0';
    }
    if (stat(slash ? folder : ".", &around) < 0) {
        return true;
    }
    const bool for_everybody = (around.st_mode & S_ISVTX) && (around.st_mode & S_IWOTH);
    return for_everybody && entry->st_uid != geteuid() && entry->st_uid != around.st_uid;
}

/* -- a text in memory, written through a FILE (stream.c) -- */

/* As open_memstream(3), but the text and its size are there only when fclose() has answered 0;
 * until then, and when memory has run out, they are NULL and 0. The text ends with a NUL that does
 * not count; free() it. ftell() says how long it is so far; it cannot be moved. NULL: no memory. */
FILE *profile_stream_open(char **text, size_t *size);

/* -- whole or not at all (file.c) -- */

/* Writes beside `path`, syncs, renames over it: a reader sees the old file or the new one, never
 * half of one. It keeps the mode of an older file of this user's; in the place of another user's it
 * is 0644 less the umask. 0; -EINVAL (a folder, a device); -EACCES, -ENOSPC … with the path. */
int profile_save_file(const char *path, const char *data, size_t length,
                      struct servet_error *error);

/* Makes the folder and those that it lies in, where they are missing. 0, -errno. */
int profile_make_folders(const char *path, mode_t mode);
