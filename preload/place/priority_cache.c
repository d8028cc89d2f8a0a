/* The memory of SERVET_AUTO. */
#include "preload/place/priority_cache.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/node/log.h"
#include "profile/base/hash.h"

/* -- where -- */

int pin_cache_make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int code = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
        if (code < 0 && code != -EROFS && code != -EACCES) {
            return code;
        }
    }
    return 0;
}

int pin_cache_path(const char *kind, const char *of, char out[PATH_MAX])
{
    const char *cache = pin_environment("XDG_CACHE_HOME"), *home = pin_environment("HOME");
    bool own = cache && *cache == '/';
    if (!own && !(home && *home == '/')) {
        return -ENOENT;
    }
    int length =
        snprintf(out, PATH_MAX, "%s%s/servet/%s/%016llx", own ? cache : home, own ? "" : "/.cache",
                 kind, (unsigned long long)profile_hash_text(PROFILE_HASH_BEGIN, of));
    return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* -- reading and writing -- */

int pin_priority_cache_file(const char *executable, char file[PATH_MAX],
                            char head[PIN_PRIORITY_CACHE_HEAD])
{
    char path[PATH_MAX];
    struct stat info;
    if (!realpath(executable ? executable : "/proc/self/exe", path) || stat(path, &info) < 0) {
        return -errno;
    }
    snprintf(head, PIN_PRIORITY_CACHE_HEAD,
             "servet-auto 1\nexecutable %s\nfile %lld bytes of %lld.%09ld\n", path,
             (long long)info.st_size, (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    return pin_cache_path("auto", path, file);
}

static int parse_priority(const char *text, const char *head, struct pin_priority_cache *out)
{
    char priority[16];
    struct pin_priority_cache found;
    const size_t length = strlen(head);
    if (strncmp(text, head, length) != 0 ||
        sscanf(text + length, "priority %15s share %lf ranks %d", priority, &found.share,
               &found.ranks) != 3) {
        return -ENOENT;
    }
    found.communication = strcmp(priority, "communication") == 0;
    if (!found.communication && strcmp(priority, "memory") != 0) {
        return -ENOENT;
    }
    *out = found;
    return 0;
}

int pin_priority_cache_recall(const char *executable, struct pin_priority_cache *out)
{
    char file[PATH_MAX], head[PIN_PRIORITY_CACHE_HEAD], text[PIN_PRIORITY_CACHE_HEAD + 64];
    int rc = pin_priority_cache_file(executable, file, head);
    if (rc < 0) {
        return rc;
    }
    rc = pin_file_get_own(file, text, sizeof text);
    return rc < 0 ? rc : parse_priority(text, head, out);
}

bool pin_priority_cache_apply(struct pin_options *options, const char *path,
                              struct pin_priority_cache *out)
{
    if (!options->auto_priority || options->mem_prior || options->comm_prior ||
        pin_priority_cache_recall(path, out) < 0) {
        return false;
    }
    options->comm_prior = out->communication;
    options->mem_prior = !out->communication;
    return true;
}
