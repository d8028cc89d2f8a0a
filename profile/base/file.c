/* Files that are there whole or not at all: the new text beside the old file, then one rename.
 *
 * A link is followed here, one step at a time, and not by realpath(): a link that another user put
 * into /tmp must not send root's output to another place. The kernel refuses that for open()
 * (protected_symlinks, proc_sys_fs(5)); a rename over what realpath() found goes round it. */
#include "profile/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/model.h"
#include "profile/scope.h"

#define NEW_FILE_MODE 0666 /* before the umask */
#define OWN_FILE_MODE 0644 /* the same, in the place of another user's file */
#define MODE_BITS 0777     /* of an old file of one's own, that its successor gets */
#define HEAD_BYTES 4096    /* of a profile: its first key is there */

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

/* mkstemp gives 0600; a profile is for everyone the user's umask lets read. The kernel is asked for
 * that: umask(2) would change it for all threads for a moment. */
static mode_t less_the_umask(mode_t mode)
{
    char status[4096];
    profile_read_small("/proc/self/status", status, sizeof status);
    const char *mask = strstr(status, "\nUmask:\t");
    return mode & ~(mask ? (mode_t)strtoul(mask + strlen("\nUmask:\t"), NULL, 8) : 077);
}

static int write_temporary(int fd, mode_t mode, const char *text, size_t length)
{
    int rc = write_all(fd, text, length);
    if (rc == 0 && fchmod(fd, mode) < 0) {
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

static int replace(const char *path, mode_t mode, const char *text, size_t length,
                   struct servet_error *error)
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
    int rc = write_temporary(fd, mode, text, length);
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

/* -- which file -- */

#define LINKS_MOST 40 /* as many as the kernel follows */

static int follow_link(char *path, size_t size)
{
    char target[PATH_MAX], copy[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) {
        return -errno;
    }
    target[length] = '\0';
    snprintf(copy, sizeof copy, "%s", path);
    int n = target[0] == '/' ? snprintf(path, size, "%s", target)
                             : snprintf(path, size, "%s/%s", dirname(copy), target);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* The file that `path` means, through links; st_mode is 0 where there is none yet. */
static int find_file(char *path, size_t size, struct stat *status)
{
    for (int links = 0; links < LINKS_MOST; links++) {
        if (lstat(path, status) < 0) {
            status->st_mode = 0;
            return errno == ENOENT ? 0 : -errno;
        }
        if (!S_ISLNK(status->st_mode)) {
            return 0;
        }
        TRY(profile_planted(path, status) ? -EPERM : follow_link(path, size));
    }
    return -ELOOP;
}

/* The mode of the new file. Another user's mode is not kept: it could let that user write to what
 * is ours from now on. */
static mode_t successor_mode(const struct stat *old)
{
    if (!old->st_mode) {
        return less_the_umask(NEW_FILE_MODE);
    }
    return old->st_uid == geteuid() ? old->st_mode & MODE_BITS : less_the_umask(OWN_FILE_MODE);
}

int profile_save_file(const char *path, const char *data, size_t length, struct servet_error *error)
{
    char file[PATH_MAX];
    struct stat old;
    if ((size_t)snprintf(file, sizeof file, "%s", path) >= sizeof file) {
        return failed(error, path, ENAMETOOLONG);
    }
    int rc = find_file(file, sizeof file, &old);
    if (rc == -EPERM) {
        return profile_error(error, rc,
                             "%s: another user's link in a folder for everybody, "
                             "expected a file",
                             path);
    }
    if (rc < 0) {
        return failed(error, path, -rc);
    }
    if (old.st_mode && !S_ISREG(old.st_mode)) {
        return profile_error(error, -EINVAL, "%s: not a regular file, expected one or none", path);
    }
    return replace(file, successor_mode(&old), data, length, error);
}

int profile_make_folders(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    for (size_t end = 0; path[end];) {
        end += strspn(path + end, "/");
        end += strcspn(path + end, "/");
        snprintf(part, sizeof part, "%.*s", (int)end, path);
        if (mkdir(part, mode) < 0 && errno != EEXIST) {
            return -errno;
        }
    }
    return 0;
}

bool profile_replaceable(const char *path)
{
    char head[HEAD_BYTES + 1];
    return !profile_read_small(path, head, sizeof head) || strstr(head, "\"servet_profile\"");
}
