/* The part of a cluster's profile that one node needs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/model.h"

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
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)
                     ? malloc((size_t)info.st_size + 1)
                     : NULL;
    ssize_t got = text ? read(fd, text, (size_t)info.st_size) : -1;
    if (fd >= 0) {
        close(fd);
    }
    const char *first, *last;
    if (got < 0 || got != info.st_size || !find_network(text, text + got, &first, &last)) {
        free(text);
        return profile_load(path, out,
                            error); /* says what is wrong, or there is nothing to leave out */
    }
    size_t begin = (size_t)(first - text) + 1, rest = (size_t)(text + got - last);
    memmove(text + begin, last - 1, rest + 1); /* leaves "{}" */
    int rc = profile_parse(text, begin + rest + 1, path, out, error);
    free(text);
    return rc;
}
