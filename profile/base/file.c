/* profile_save(): the new text beside the old file, then one rename. */
#include "profile/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/model.h"

#define NEW_FILE_MODE 0666 /* before the umask */

static int failed(struct servet_error *error, const char *path, int code)
{
    return profile_error(error, -code, "%s: %s", path, strerrordesc_np(code));
}

static int write_all(int fd, const char *text, size_t left)
{
    while (left) {
        ssize_t n = TEMP_FAILURE_RETRY(write(fd, text, left));
        if (n < 0) {
            return -errno;
        }
        text += n;
        left -= (size_t)n;
    }
    return 0;
}

/* mkstemp gives 0600; a profile is for everyone the user's umask lets read. There is no way to ask
 * for the umask without changing it for a moment. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return NEW_FILE_MODE & ~mask;
}

static int write_temporary(int fd, const char *text, size_t length)
{
    int rc = write_all(fd, text, length);
    if (rc == 0 && fchmod(fd, usual_mode()) < 0) {
        rc = -errno;
    }
    /* Before the rename: after a power cut the name must not stand for an empty file. */
    if (rc == 0 && fsync(fd) < 0) {
        rc = -errno;
    }
    if (close(fd) < 0 && rc == 0) {
        rc = -errno;
    }
    return rc;
}

/* Makes the rename last. The file is complete either way, so a file system that cannot sync a
 * folder is no failure. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof folder) {
        return;
    }
    snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    const char *name = slash ? folder : ".";
    int fd = open(slash && !length ? "/" : name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

static int replace(const char *path, const char *text, size_t length, struct servet_error *error)
{
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (n < 0 || (size_t)n >= sizeof temporary) {
        return failed(error, path, ENAMETOOLONG);
    }
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        return failed(error, path, errno);
    }
    int rc = write_temporary(fd, text, length);
    if (rc == 0 && rename(temporary, path) < 0) {
        rc = -errno;
    }
    if (rc < 0) {
        unlink(temporary);
        return failed(error, path, -rc);
    }
    sync_folder(path);
    return 0;
}

int profile_save_file(const char *path, const char *data, size_t length, struct servet_error *error)
{
    /* A link keeps pointing at what it pointed at; a device or a folder is never replaced. */
    char target[PATH_MAX];
    struct stat status;
    const char *real = realpath(path, target);
    if (real && stat(real, &status) == 0 && !S_ISREG(status.st_mode)) {
        return profile_error(error, -EINVAL, "%s: not a regular file, expected one or none", path);
    }
    return replace(real ? real : path, data, length, error);
}

int profile_save_text(const char *text, const char *path, struct servet_error *error)
{
    return profile_save_file(path, text, strlen(text), error);
}

int profile_save(const struct servet_profile *profile, const char *path, struct servet_error *error)
{
    struct servet_error why;
    int rc = profile_check(profile, &why);
    if (rc < 0) {
        return profile_error(error, rc, "%s: not written: %s", path, why.text);
    }
    char *text = profile_to_json(profile);
    if (!text) {
        return failed(error, path, ENOMEM);
    }
    rc = profile_save_file(path, text, strlen(text), error);
    free(text);
    return rc;
}
