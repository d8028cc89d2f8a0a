/* The file that the registry's locks are on, and how a process keeps a lock. */
#include "preload/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "profile/base/format_safe.h"
#include "profile/base/syscall.h"

/* Calls of the kernel: libc's open() and close() are cancellation points, and its fcntl() may be
 * the program's. */

/* -- which file -- */

/* In the kernel's own memory, and the same for all users, whatever the node's file systems are. */
#define KERNELS_FILE "/dev/zero"

#define ZFS_MAGIC 0x2fc12fc1

static int open_file(const char *path, int how)
{
    return (int)profile_syscall(SYS_openat, AT_FDCWD, (long)path,
                                O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_LARGEFILE | how,
                                0644, 0, 0);
}

static void close_file(int file)
{
    profile_syscall(SYS_close, file, 0, 0, 0, 0, 0);
}

/* Is a lock there seen by all programs of this node, and by no server? An overlay is another one in
 * each container, so it is none of these. */
static bool is_local(int file)
{
    static const unsigned long kinds[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                          TMPFS_MAGIC, ZFS_MAGIC};
    struct statfs about;
    bool is = false;
    const int saved = errno;
    const int rc = fstatfs(file, &about);
    errno = saved;
    for (size_t i = 0; rc == 0 && i < sizeof kinds / sizeof *kinds; i++) {
        is = is || (unsigned long)about.f_type == kinds[i];
    }
    return is;
}

/* The user's file is made if there is none. */
static int open_users(const char *path)
{
    int file = open_file(path, 0);
    if (file == -ENOENT) {
        file = open_file(path, O_CREAT | O_EXCL);
    }
    return file == -EEXIST ? open_file(path, 0) : file;
}

int pin_registry_find(const char *path, const char *library, char where[PATH_MAX])
{
    profile_format_text(where, where + PATH_MAX, path[0] ? path : library);
    int file = path[0] ? open_users(path) : library[0] == '/' ? open_file(library, 0) : -ENOENT;
    if (path[0] || (file >= 0 && is_local(file))) {
        return file;
    }
    if (file >= 0) {
        close_file(file);
    }
    return open_file(strcpy(where, KERNELS_FILE), 0);
}

int pin_registry_lock(int file, int command, short type, uint64_t start, uint64_t bytes,
                      struct flock *lock)
{
    *lock = (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)bytes};
    return (int)profile_syscall(PROFILE_SYS_FCNTL, file, command, (long)lock, 0, 0, 0);
}

/* -- keeping it -- */

/* Programs count on low numbers, and select() ends at 1,024. */
#define HIGH_DESCRIPTOR 1000

/* Below it where the limit is low. */
static int high_descriptor(void)
{
    uint64_t limit[2] = {HIGH_DESCRIPTOR}; /* the kernel's struct rlimit64: now, at most */
    profile_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)limit, 0, 0);
    return limit[0] > HIGH_DESCRIPTOR ? HIGH_DESCRIPTOR : (int)limit[0] - 1;
}

/* A mapping keeps the file open without a descriptor that would be in the program's way, or closed
 * by it. It ends with the process, or when that becomes another program; no child has it. Nothing
 * is read by it. */
static void map_file(int file)
{
    const long at = profile_syscall(PROFILE_SYS_MMAP, 0, 1, PROT_NONE, MAP_PRIVATE, file, 0);
    profile_syscall(SYS_madvise, at, 1, MADV_DONTFORK, 0, 0, 0);
}

int pin_registry_begin(const struct pin_registry *registry)
{
    return registry->on ? open_file(registry->path, 0) : -ENOENT;
}

void pin_registry_end(const struct pin_registry *registry, int file, bool keep)
{
    if (file < 0) {
        return;
    }
    if (keep && registry->over_exec) {
        (void)profile_syscall(PROFILE_SYS_FCNTL, file, F_DUPFD, high_descriptor(), 0, 0, 0);
    } else if (keep) {
        map_file(file);
    }
    close_file(file);
}

/* fstat(2), of the kernel: fakeroot and its like answer for libc's. */
static bool ask_file(int file, struct stat *out)
{
    return profile_syscall(PROFILE_SYS_FSTATAT, file, (long)"", (long)out, AT_EMPTY_PATH, 0, 0) ==
           0;
}

void pin_registry_adopt(int file)
{
    struct stat here, there;
    if (!ask_file(file, &here)) {
        return;
    }
    for (int kept = high_descriptor(); kept > file && ask_file(kept, &there); kept++) {
        if (there.st_dev == here.st_dev && there.st_ino == here.st_ino) {
            map_file(kept);
            close_file(kept);
        }
    }
}
