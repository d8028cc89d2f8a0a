/* The file that the registry's locks are on: which one, and whether it can be trusted. */
#include "preload/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/put.h"
#include "profile/base/raw.h"

#define FOLDER "/dev/shm"
/* For all users, made by the package. In that folder, where everybody may write as much as in a
 * file of his own: one of mode 0666 in /run would let everybody fill that. */
#define FOR_ALL FOLDER "/servet"
#define OWN FOLDER "/servet-"

/* Programs count on low numbers, and select() ends at 1,024. */
#define HIGH_DESCRIPTOR 1000

int pin_registry_stat(int file, struct stat *out)
{
    return (int)profile_raw(PROFILE_SYS_FSTATAT, file, (long)"", (long)out, AT_EMPTY_PATH, 0, 0);
}

static uint32_t user_here(void)
{
    return (uint32_t)profile_raw(PROFILE_SYS_GETEUID, 0, 0, 0, 0, 0, 0);
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

/* This user's own. Where another user has that name, the first of these that is not another's. */
#define MOST_NAMES 64

static int open_own(char path[PATH_MAX])
{
    const char *end = path + PATH_MAX;
    const uint32_t user = user_here();
    char *name = profile_put_number(profile_put(path, end, OWN), end, user);
    int file = open_trusted(path, O_CREAT, user, 0);
    for (unsigned i = 0; file < 0 && file != -ENOENT && i < MOST_NAMES; i++) {
        profile_put_number(profile_put(name, end, "-"), end, i);
        file = open_trusted(path, O_CREAT, user, 0);
    }
    return file;
}

static int open_default(char path[PATH_MAX])
{
    profile_put(path, path + PATH_MAX, FOR_ALL);
    int file = open_trusted(path, 0, 0, 066);
    return file < 0 ? open_own(path) : file;
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
