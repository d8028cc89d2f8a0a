#include "output.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model.h"

static int make_folders(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", folder);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST) {
            return -errno;
        }
        *slash = '/';
    }
    return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

int output_choose(const char *wanted, char *path, size_t size, struct servet_error *error)
{
    int rc = 0;
    if (wanted) {
        snprintf(path, size, "%s", wanted);
    } else {
        rc = profile_default_path(path, size, error);
    }
    if (rc < 0) {
        return rc;
    }
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash == folder) {
        slash[1] = '\0';
    } else if (slash) {
        *slash = '\0';
    } else {
        snprintf(folder, sizeof folder, ".");
    }
    rc = wanted ? 0 : make_folders(folder);
    if (rc == 0 && access(folder, W_OK | X_OK) < 0) {
        rc = -errno;
    }
    return rc < 0 ? profile_error(error, rc, "%s: cannot write there: %s", path, strerror(-rc)) : 0;
}
