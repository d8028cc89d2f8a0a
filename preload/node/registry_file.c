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

/* Containers have files, devices and most namespaces of their own, but hardly ever one of time; nor
 * one of users, where kernels have none of time (before 5.6). Each is a file, and the first one of
 * the kernel's has a number of its own (include/linux/proc_ns.h). */
static const struct name_space {
    const char *path;
    ino_t first;
} shared[] = {{"/proc/self/ns/time", 0xEFFFFFFAu}, {"/proc/self/ns/user", 0xEFFFFFFDu}},
  own[] = {{"/proc/self/ns/pid", 0xEFFFFFFCu}, {"/proc/self/ns/ipc", 0xEFFFFFFFu}};

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

/* fstatat(2), of the kernel: fakeroot and its like answer for libc's. */
static bool ask(int file, const char *path, struct stat *out)
{
    return profile_syscall(PROFILE_SYS_FSTATAT, file, (long)path, (long)out,
                           path[0] ? 0 : AT_EMPTY_PATH, 0, 0) == 0;
}

/* Where /proc does not tell, it is. */
static bool is_first(const struct name_space *it)
{
    struct stat about;
    return !ask(AT_FDCWD, it->path, &about) || about.st_ino == it->first;
}

/* "": there is none. */
static const char *shared_by_containers(void)
{
    struct stat about;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (ask(AT_FDCWD, shared[i].path, &about) && about.st_ino == shared[i].first) {
            return shared[i].path;
        }
    }
    return "";
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

/* The shim's own file, if locks on it are seen by all who have it. */
static int open_installed(const char *library)
{
    const int file = library[0] == '/' ? open_file(library, 0) : -ENOENT;
    if (file >= 0 && !is_local(file)) {
        close_file(file);
        return -ENOENT;
    }
    return file;
}

int pin_registry_find(const char *path, const char *library, struct pin_registry *out)
{
    profile_format_text(out->path, out->path + PATH_MAX, path ? path : library);
    out->also = "";
    if (path) {
        return open_users(path);
    }
    const char *common = shared_by_containers();
    const bool contained = !is_first(&own[0]) || !is_first(&own[1]);
    int file = open_installed(library);
    out->also = contained && common[0] ? (file >= 0 ? library : KERNELS_FILE) : common;
    out->alone = contained && !common[0];
    if (contained && common[0]) {
        if (file >= 0) {
            close_file(file);
        }
        return open_file(strcpy(out->path, common), 0);
    }
    return file >= 0 ? file : open_file(strcpy(out->path, KERNELS_FILE), 0);
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
 * is read by it. False: this kind of file has none. */
static bool map_file(int file)
{
    const long at = profile_syscall(PROFILE_SYS_MMAP, 0, 1, PROT_NONE, MAP_PRIVATE, file, 0);
    if (at < 0 && at >= -4095) {
        return false;
    }
    profile_syscall(SYS_madvise, at, 1, MADV_DONTFORK, 0, 0, 0);
    return true;
}

static bool are_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The program may have closed it, or has another file there. */
static bool has_kept(const struct pin_registry *registry)
{
    struct stat here, there;
    return registry->kept > 0 && ask(AT_FDCWD, registry->path, &here) &&
           ask(registry->kept, "", &there) && are_same(&here, &there);
}

/* A descriptor that is kept has all locks, so there is but one. */
struct pin_files pin_registry_begin(const struct pin_registry *registry)
{
    struct pin_files files = {.of = registry, .own = -1, .also = -1};
    if (registry->on) {
        files.own = has_kept(registry) ? (int)profile_syscall(PROFILE_SYS_FCNTL, registry->kept,
                                                              F_DUPFD_CLOEXEC, 0, 0, 0, 0)
                                       : open_file(registry->path, 0);
    }
    if (files.own >= 0 && registry->also[0]) {
        files.also = open_file(registry->also, 0);
    }
    return files;
}

void pin_registry_keep(struct pin_registry *registry, struct pin_files files)
{
    if (files.own < 0 || has_kept(registry) || (!registry->over_exec && map_file(files.own))) {
        return;
    }
    registry->kept = (int)profile_syscall(PROFILE_SYS_FCNTL, files.own,
                                          registry->over_exec ? F_DUPFD : F_DUPFD_CLOEXEC,
                                          high_descriptor(), 0, 0, 0);
}

void pin_registry_end(struct pin_files files)
{
    if (files.own >= 0) {
        close_file(files.own);
    }
    if (files.also >= 0) {
        close_file(files.also);
    }
}

void pin_registry_forget(struct pin_registry *registry)
{
    if (has_kept(registry)) {
        close_file(registry->kept);
    }
    registry->kept = 0;
}

void pin_registry_adopt(struct pin_registry *registry, int file)
{
    struct stat here, there;
    if (!ask(file, "", &here)) {
        return;
    }
    for (int kept = high_descriptor(); kept > file && ask(kept, "", &there); kept++) {
        if (!are_same(&here, &there)) {
            continue;
        }
        if (map_file(kept)) {
            close_file(kept);
        } else {
            registry->kept = kept;
            profile_syscall(PROFILE_SYS_FCNTL, kept, F_SETFD, FD_CLOEXEC, 0, 0, 0);
        }
    }
}
