/* Where the profile goes. */
#include "probes/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/model.h"

/* Saving needs room for a temporary file beside it. */
static int try_folder(const char *path)
{
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof temporary) {
        return -ENAMETOOLONG;
    }
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    close(fd);
    return unlink(temporary) < 0 ? -errno : 0;
}

/* The folder of a path; false: it is none of its own. */
static bool folder_of(const char *path, char folder[PATH_MAX])
{
    snprintf(folder, PATH_MAX, "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder) {
        return false;
    }
    *slash = '\0';
    return true;
}

/* The folder of a file that was named, where only that one is missing: /etc/servet on a machine
 * without a profile. Further folders are not made: a missing one is more likely misspelt. */
static int make_folder_of(const char *path)
{
    char folder[PATH_MAX];
    struct stat status;
    if (!folder_of(path, folder) || stat(folder, &status) == 0 || errno != ENOENT) {
        return 0;
    }
    return mkdir(folder, 0755) < 0 && errno != ENOENT ? -errno : 0;
}

static int check_place(const char *path, struct servet_error *error)
{
    char target[PATH_MAX];
    struct stat status;
    const char *real = realpath(path, target); /* a link stays one: what it points at is replaced */
    if (real && stat(real, &status) == 0 && !S_ISREG(status.st_mode)) {
        return profile_error(error, -EINVAL, "%s: not a regular file, expected one or none", path);
    }
    int rc = try_folder(real ? real : path);
    return rc < 0 ? profile_error(error, rc, "%s: cannot write there: %s", path, strerror(-rc)) : 0;
}

static int choose_path(const char *wanted, char *path, size_t size, struct servet_error *error)
{
    char folder[PATH_MAX];
    int rc = 0;
    path[0] = '\0';
    if (wanted && strcmp(wanted, "-") == 0) {
        return 0;
    }
    if (wanted && wanted[0] == '\0') {
        return profile_error(error, -EINVAL,
                             "--output: expected a file, or '-' for standard output, got ''");
    }
    if (wanted && strlen(wanted) >= size) {
        return profile_error(error, -ENAMETOOLONG, "--output: %s", strerror(ENAMETOOLONG));
    }
    if (wanted) {
        snprintf(path, size, "%s", wanted);
        rc = make_folder_of(path);
    } else {
        TRY(profile_default_path(path, size, error));
        rc = folder_of(path, folder) ? profile_make_folders(folder, 0755) : 0;
    }
    return rc < 0 ? profile_error(error, rc, "%s: cannot %s: %s", path,
                                  wanted ? "make its folder" : "write there", strerror(-rc))
                  : check_place(path, error);
}

void probe_output_choose(const char *wanted, char *path, size_t size)
{
    struct servet_error error;
    int rc = choose_path(wanted, path, size, &error);
    if (rc == -EINVAL) {
        cli_usage("%s", error.text);
    }
    if (rc < 0) {
        cli_fail("%s", error.text);
    }
}
