/* Small files of /proc and /sys, read at once: a second read could tell of another moment. In a
 * header, since the shim, its commands and the report are linked of different files. */
#ifndef PROFILE_BASE_SMALL_FILE_H
#define PROFILE_BASE_SMALL_FILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The first `size` - 1 bytes, ended by a zero; false, and "", when the file cannot be read or is
 * empty. */
static inline bool profile_read_small(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
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
    unsigned running = 0;
    bool known = profile_read_small("/proc/loadavg", text, sizeof text) &&
                 sscanf(text, "%*s %*s %*s %u/", &running) == 1;
    return known ? running : 0;
}

#endif
