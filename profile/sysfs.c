#include "sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_text(struct sysfs *fs)
{
    int fd = open(fs->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    size_t used = 0;
    ssize_t got;
    do {
        got = TEMP_FAILURE_RETRY(read(fd, fs->text + used, sizeof fs->text - 1 - used));
        used += got > 0 ? (size_t)got : 0;
    } while (got > 0 && used < sizeof fs->text - 1);
    int rc = got < 0 ? -errno : 0;
    close(fd);
    fs->text[used] = '\0';
    if (used && fs->text[used - 1] == '\n') {
        fs->text[used - 1] = '\0';
    }
    return rc;
}

static int read_path(struct sysfs *fs, const char *format, va_list args)
{
    int root = snprintf(fs->path, sizeof fs->path, "%s", fs->root);
    if (root < 0 || (size_t)root >= sizeof fs->path) {
        return -ENAMETOOLONG;
    }
    size_t room = sizeof fs->path - (size_t)root;
    int n = vsnprintf(fs->path + root, room, format, args);
    return n < 0 || (size_t)n >= room ? -ENAMETOOLONG : read_text(fs);
}

int sysfs_read(struct sysfs *fs, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = read_path(fs, format, args);
    va_end(args);
    return rc;
}

int sysfs_read_set(struct sysfs *fs, struct profile_set *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = read_path(fs, format, args);
    va_end(args);
    if (rc == 0 && !*fs->text) {
        *out = (struct profile_set){0};
        return 0;
    }
    return rc < 0 ? rc : profile_set_parse(fs->text, out);
}

int sysfs_read_u32(struct sysfs *fs, uint32_t *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = read_path(fs, format, args);
    va_end(args);
    if (rc < 0) {
        return rc;
    }
    char *end;
    errno = 0;
    unsigned long value = strtoul(fs->text, &end, 10);
    if (errno || end == fs->text || *fs->text == '-' || value > UINT32_MAX) {
        return -EINVAL;
    }
    *out = (uint32_t)value;
    return 0;
}

char *sysfs_value(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0) {
            continue;
        }
        const char *at = line + length + strspn(line + length, " \t");
        if (*at == ':') {
            at += 1 + strspn(at + 1, " \t");
            return strndup(at, strcspn(at, "\n"));
        }
    }
    return NULL;
}
