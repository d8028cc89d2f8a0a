/* The file that the registry's locks are on: which one, and whether it can be trusted. */
#include "preload/node/node.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "profile/base/clock.h"
#include "profile/base/format_safe.h"
#include "profile/base/syscall.h"

#define FOLDER "/dev/shm"
/* For all users, made by the package. In that folder, where everybody may write as much as in a
 * file of his own: one of mode 0666 in /run would let everybody fill that. */
#define FOR_ALL FOLDER "/servet"
#define OWN FOLDER "/servet-"

/* Programs count on low numbers, and select() ends at 1,024. */
#define HIGH_DESCRIPTOR 1000

int pin_registry_stat(int file, struct stat *out)
{
    return (int)profile_syscall(PROFILE_SYS_FSTATAT, file, (long)"", (long)out, AT_EMPTY_PATH, 0,
                                0);
}

static uint32_t user_here(void)
{
    return (uint32_t)profile_syscall(PROFILE_SYS_GETEUID, 0, 0, 0, 0, 0, 0);
}

/* An ordinary file of `user`, without another name, with just these rights. The file; -EINVAL,
 * -EPERM; -errno. */
static int open_trusted(const char *path, int how, uint32_t user, uint32_t rights)
{
    struct stat about;
    int file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | how, 0600);
    if (file < 0) {
        return -errno;
    }
    int rc = pin_registry_stat(file, &about);
    if (rc == 0 && (!S_ISREG(about.st_mode) || about.st_nlink != 1)) {
        rc = -EINVAL;
    } else if (rc == 0 && (about.st_uid != user || (about.st_mode & 077) != rights)) {
        rc = -EPERM;
    }
    if (rc == 0) {
        return file;
    }
    close(file);
    return rc;
}

/* -- where another user has this user's name -- */

/* Programs that find no name at one time make one after the other; who keeps the folder's lock does
 * not stop them. */
#define MOST_NAPS 50
#define NAP_NS 200000

/* The first file of this user whose name begins so; `path` is left. No other user can make one. The
 * file; -ENOENT: there is none. */
static int open_first(DIR *folder, const char *beginning, char path[PATH_MAX])
{
    char candidate[PATH_MAX];
    int file = -ENOENT;
    rewinddir(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        snprintf(candidate, sizeof candidate, FOLDER "/%s", entry->d_name);
        if (strncmp(candidate, beginning, strlen(beginning)) != 0 ||
            (file >= 0 && strcmp(candidate, path) > 0)) {
            continue;
        }
        int before = file, next = open_trusted(candidate, 0, user_here(), 0);
        if (next >= 0) {
            (void)(before >= 0 && close(before));
            strcpy(path, candidate);
            file = next;
        }
    }
    return file;
}

static int open_by_suffix(char path[PATH_MAX])
{
    char beginning[64];
    DIR *folder = opendir(FOLDER);
    if (!folder) {
        return -errno;
    }
    snprintf(beginning, sizeof beginning, "%s-", path);
    int file = open_first(folder, beginning, path);
    for (int i = 0; file < 0 && i < MOST_NAPS && flock(dirfd(folder), LOCK_EX | LOCK_NB) < 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    file = file < 0 ? open_first(folder, beginning, path) : file;
    if (file < 0) {
        snprintf(path, PATH_MAX, "%s%llx", beginning, (unsigned long long)profile_now_ns());
        file = open_trusted(path, O_CREAT | O_EXCL, user_here(), 0);
        /* Where the lock's holder was stopped there may be another one by now: the first counts. */
        if (file >= 0) {
            close(file);
            file = open_first(folder, beginning, path);
        }
    }
    closedir(folder);
    return file;
}

static int open_default(char path[PATH_MAX])
{
    const char *end = path + PATH_MAX;
    profile_format_text(path, end, FOR_ALL);
    int file = open_trusted(path, 0, 0, 066);
    if (file < 0) {
        profile_format_number(profile_format_text(path, end, OWN), end, user_here());
        file = open_trusted(path, O_CREAT, user_here(), 0);
    }
    return file < 0 ? open_by_suffix(path) : file;
}

/* Descriptors of the same file that the program before this one has left open with its locks
 * (pin_registry_keep()). To close them would drop the locks. */
static void keep_from_children(int file)
{
    struct stat here, there;
    for (int old = HIGH_DESCRIPTOR; old < file && pin_registry_stat(file, &here) == 0; old++) {
        if (pin_registry_stat(old, &there) == 0 && there.st_dev == here.st_dev &&
            there.st_ino == here.st_ino) {
            fcntl(old, F_SETFD, FD_CLOEXEC);
        }
    }
}

int pin_registry_file(const char *path, char where[PATH_MAX])
{
    int file =
        path[0] ? open_trusted(strcpy(where, path), O_CREAT, user_here(), 0) : open_default(where);
    int high = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    if (high >= 0) {
        close(file);
        keep_from_children(high);
    }
    return high >= 0 ? high : file;
}
