/* The file that the registry's locks are on, and how a process keeps a lock. */
#include "preload/node/registry_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "profile/base/format_safe.h"
#include "profile/base/syscall.h"

/* Calls of the kernel: libc's open() and close() are cancellation points, and its fcntl() may be
 * the program's. */

/* -- which file -- */

/* Containers have files, devices and most namespaces of their own, but hardly ever one of time.
 * Where kernels have none of it (before 5.6) those of clusters have the node's processes, and other
 * ones its users. Each is a file, and the first one of the kernel's has a number of its own
 * (include/linux/proc_ns.h). */
static const struct name_space {
    const char *path;
    ino_t first;
} kinds[] = {{"/proc/self/ns/time", 0xEFFFFFFAu},
             {"/proc/self/ns/pid", 0xEFFFFFFCu},
             {"/proc/self/ns/user", 0xEFFFFFFDu}};

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

/* fstatat(2), of the kernel: fakeroot and its like answer for libc's. */
static bool ask(int file, const char *path, struct stat *out)
{
    return profile_syscall(PROFILE_SYS_FSTATAT, file, (long)path, (long)out,
                           path[0] ? 0 : AT_EMPTY_PATH, 0, 0) == 0;
}

/* The one that this process shares with the node; else one that it shares with its container. */
static const char *namespace_of_node(bool *alone)
{
    const struct name_space *own = NULL;
    struct stat about;
    *alone = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && own != kinds; i++) {
        if (!ask(AT_FDCWD, kinds[i].path, &about)) {
            continue;
        }
        if (about.st_ino == kinds[i].first) {
            return kinds[i].path;
        }
        own = own ? own : &kinds[i];
    }
    *alone = own != NULL;
    return own ? own->path : kinds[0].path;
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

int pin_registry_find(const char *path, struct pin_registry *out)
{
    struct stat about;
    out->alone = false;
    profile_format_text(out->path, out->path + PATH_MAX,
                        path ? path : namespace_of_node(&out->alone));
    const int file = path ? open_users(path) : open_file(out->path, 0);
    if (file >= 0 && ask(file, "", &about)) {
        out->device = about.st_dev;
        out->inode = about.st_ino;
    }
    return file;
}

int pin_registry_lock(int file, int command, short type, uint64_t start, uint64_t bytes,
                      struct flock *lock)
{
    *lock = (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)bytes};
    return (int)profile_syscall(PROFILE_SYS_FCNTL, file, command, (long)lock, 0, 0, 0);
}

/* -- keeping it -- */

/* Programs count on low numbers. Above 63 the kernel enlarges the process's table, and where that
 * has threads it waits for all processors: 2 to 4 ms. */
#define FIRST_KEPT 60

static int call_fcntl(int file, int command, int argument)
{
    return (int)profile_syscall(PROFILE_SYS_FCNTL, file, command, argument, 0, 0, 0);
}

static bool is_the_file(const struct pin_registry *registry, const struct stat *about)
{
    return about->st_dev == registry->device && about->st_ino == registry->inode;
}

/* A descriptor that is kept has an owner (F_SETOWN), the process that keeps it, and a signal
 * (F_SETSIG), which is never sent: what a program opens has neither. */
#define MARK SIGPWR

static bool is_marked(const struct pin_registry *registry, int number)
{
    struct stat about;
    return ask(number, "", &about) && is_the_file(registry, &about) &&
           call_fcntl(number, F_GETSIG, 0) == MARK;
}

static bool is_kept_here(const struct pin_registry *registry, int number)
{
    return is_marked(registry, number) && call_fcntl(number, F_GETOWN, 0) == registry->pid;
}

bool pin_registry_is_kept(const struct pin_registry *registry)
{
    return registry->kept > 0 && is_kept_here(registry, registry->kept);
}

/* One that is kept has all locks, so no other is opened beside it. It is looked at when no other
 * thread can close it any more. */
struct pin_file pin_registry_begin(const struct pin_registry *registry)
{
    struct pin_file file = {.of = registry, .number = -1};
    struct stat about;
    if (registry->on && registry->kept > 0) {
        file.number = call_fcntl(registry->kept, F_DUPFD_CLOEXEC, 0);
        file.is_kept = is_kept_here(registry, file.number) &&
                       ask(AT_FDCWD, registry->path, &about) && is_the_file(registry, &about);
    }
    if (registry->on && !file.is_kept) {
        pin_registry_end(file);
        file.number = open_file(registry->path, 0);
    }
    return file;
}

bool pin_registry_keep(struct pin_registry *registry, struct pin_file file)
{
    if (file.is_kept && registry->over_exec) {
        call_fcntl(registry->kept, F_SETFD, 0);
    }
    if (file.number < 0 || file.is_kept) {
        return true;
    }
    const int kept =
        call_fcntl(file.number, registry->over_exec ? F_DUPFD : F_DUPFD_CLOEXEC, FIRST_KEPT);
    if (kept >= 0 && call_fcntl(kept, F_SETOWN, registry->pid) == 0 &&
        call_fcntl(kept, F_SETSIG, MARK) == 0) {
        registry->kept = kept;
        return true;
    }
    if (kept >= 0) {
        close_file(kept);
    }
    return false;
}

void pin_registry_end(struct pin_file file)
{
    if (file.number >= 0) {
        close_file(file.number);
    }
}

/* Its owner may have ended. */
void pin_registry_forget(struct pin_registry *registry)
{
    if (registry->kept > 0 && is_marked(registry, registry->kept)) {
        close_file(registry->kept);
    }
    registry->kept = 0;
}

void pin_registry_adopt(struct pin_registry *registry)
{
    for (int kept = FIRST_KEPT; call_fcntl(kept, F_GETFD, 0) >= 0; kept++) {
        if (is_kept_here(registry, kept)) {
            registry->kept = kept;
            call_fcntl(kept, F_SETFD, FD_CLOEXEC);
        }
    }
}
