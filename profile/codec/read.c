/* Profiles in files: read whole and within bounds; for choosing places without the rest. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/codec/codec.h"
#include "profile/model.h"

/* Far above what a real one needs: a profile of 256 PUs with every pair listed takes half a MiB, a
 * list of 100,000 nodes a few. */
#define FILE_LIMIT_BYTES ((size_t)16 << 20)

/* Not stdio: in somebody else's process a FILE costs a lock list entry and a buffer for nothing. */
static int read_all(int fd, size_t size, char **out, size_t *length)
{
    size_t used = 0;
    char *text = malloc(size + 1);
    if (!text) {
        return -ENOMEM;
    }
    while (used < size) {
        ssize_t got = read(fd, text + used, size - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            int saved = errno;
            free(text);
            return -saved;
        }
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    *out = text;
    *length = used;
    return 0;
}

int profile_read_text(const char *path, char **text, size_t *length, struct servet_error *error)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &info) < 0) {
        int code = errno;
        if (fd >= 0) {
            close(fd);
        }
        return profile_error(error, -code, "%s: %s", path, strerrordesc_np(code));
    }
    int rc;
    if (S_ISDIR(info.st_mode)) {
        rc = profile_error(error, -EISDIR, "%s: %s", path, strerrordesc_np(EISDIR));
    } else if (!S_ISREG(info.st_mode)) {
        rc = profile_error(error, -EINVAL, "%s: not a regular file, expected a profile", path);
    } else if ((size_t)info.st_size > FILE_LIMIT_BYTES) {
        rc = profile_error(error, -EINVAL, "%s: larger than %zu MiB, expected a profile", path,
                           FILE_LIMIT_BYTES >> 20);
    } else {
        rc = read_all(fd, (size_t)info.st_size, text, length);
        rc = rc < 0 ? profile_error(error, rc, "%s: %s", path, strerrordesc_np(-rc)) : 0;
    }
    close(fd);
    return rc;
}

typedef int parse_function(const char *text, size_t length, const char *name,
                           struct servet_profile **out, struct servet_error *error);

static int load(const char *path, parse_function *parse, struct servet_profile **out,
                struct servet_error *error)
{
    char *text;
    size_t length;
    int rc = profile_read_text(path, &text, &length, error);
    if (rc < 0) {
        return rc;
    }
    rc = parse(text, length, path, out, error);
    free(text);
    return rc;
}

int profile_load(const char *path, struct servet_profile **out, struct servet_error *error)
{
    return load(path, profile_parse, out, error);
}

int profile_load_node(const char *path, struct servet_profile **out, struct servet_error *error)
{
    return load(path, profile_parse_places, out, error);
}
