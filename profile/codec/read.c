/* Profiles in files: read whole, within bounds, and for a node of a cluster without the network
 * that it never asks about. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* A path may come from the environment of whoever starts a program: a pipe must not hold that
 * program up, a device not be read, and a large file not fill its memory. */
static int read_file(const char *path, char **text, size_t *length, struct servet_error *error)
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

int profile_load(const char *path, struct servet_profile **out, struct servet_error *error)
{
    char *text;
    size_t length;
    int rc = read_file(path, &text, &length, error);
    if (rc < 0) {
        return rc;
    }
    rc = profile_parse(text, length, path, out, error);
    free(text);
    return rc;
}

/* -- the part of a cluster's profile that one node needs -- */

/* End of the string that begins at `at`, behind its closing quote; NULL: it has none. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++) {
        at += *at == '\\';
    }
    return at < end ? at + 1 : NULL;
}

/* End of the object or array that begins at `at`, or NULL. */
static const char *skip_value(const char *at, const char *end)
{
    for (size_t depth = 0; at && at < end;) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        depth += *at == '{' || *at == '[';
        if ((*at == '}' || *at == ']') && --depth == 0) {
            return at + 1;
        }
        at++;
    }
    return NULL;
}

/* The object of the outermost key "network"; false when there is none. */
static bool find_network(const char *text, const char *end, const char **first, const char **last)
{
    static const char key[] = "\"network\"";
    size_t depth = 0;
    for (const char *at = text; at && at < end;) {
        if (*at == '"') {
            bool here = depth == 1 && (size_t)(end - at) > sizeof key &&
                        memcmp(at, key, sizeof key - 1) == 0;
            at = skip_string(at, end);
            for (const char *value = at; here && value && value < end; value++) {
                if (*value == '{') {
                    *first = value;
                    *last = skip_value(value, end);
                    return *last != NULL;
                }
                here = *value == ':' || *value == ' ' || *value == '\n' || *value == '\t' ||
                       *value == '\r';
            }
            continue;
        }
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at++;
    }
    return false;
}

int profile_load_node(const char *path, struct servet_profile **out, struct servet_error *error)
{
    const char *first, *last;
    char *text;
    size_t length;
    int rc = read_file(path, &text, &length, error);
    if (rc < 0) {
        return rc;
    }
    if (find_network(text, text + length, &first, &last)) {
        size_t begin = (size_t)(first - text) + 1, rest = (size_t)(text + length - last);
        memmove(text + begin, last - 1, rest + 1); /* leaves "{}" */
        length = begin + rest + 1;
    }
    rc = profile_parse(text, length, path, out, error);
    free(text);
    return rc;
}
