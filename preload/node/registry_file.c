/* The registry as a file: where it is, whether it can be trusted, who may write it now; and what
 * programs keep in it, behind its entries, for the next ones. */
#include "preload/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#ifndef STATX_BASIC_STATS /* musl before 1.2.4 */
#include <linux/stat.h>
#endif

#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/hash.h"
#include "profile/base/put.h"
#include "profile/base/raw.h"

/* -- where it is, and who may write it -- */

/* A holder that runs is done within the first looks and turns, some 30 us. One that has lost its PU
 * gets it back when others give theirs up: of 500 programs that start at once on two PUs each that
 * only looks, or sleeps and comes back behind all that are runnable, keeps all others waiting (with
 * 8 turns twice as long as with 64, with 500 or 2,000 as long). After so many the lock is held by
 * one of a lower priority on the same PU, who gets that only while others sleep: between looks at
 * the lock, from as long as a plan takes to what keeps 500 that wait from taking that PU with their
 * looks, and finds the lock free soon when few are left. */
#define FIRST_LOOKS_NS 10000
#define MOST_YIELDS 64
#define FIRST_PAUSE_NS 50000
#define LONGEST_PAUSE_NS 4000000
/* How long to wait for a holder that runs, and for one that is stopped or cannot be seen. */
#define LONGEST_WAIT_NS 10000000000u
#define LONGEST_WAIT_FOR_STOPPED_NS 100000000u

/* The inode of the user namespace that every system begins with (PROC_USER_INIT_INO). */
#define FIRST_USER_NAMESPACE 0xEFFFFFFDu

/* What is asked of a file. */
struct about {
    uint64_t inode, links;
    uint32_t mode, user;
};

/* Sandboxes that are older than statx() answer ENOSYS to it, or EPERM (Docker before 18.04, with
 * libseccomp before 2.3.3). 0 or -errno. */
static int ask_about(int folder, const char *path, int flags, struct about *out)
{
    struct statx wide;
    struct stat plain; /* the kernel's own is the same, on 32 bits with files of 64 */
    long rc = profile_raw(SYS_statx, folder, (long)path, flags, STATX_BASIC_STATS, (long)&wide, 0);
    if (rc == 0) {
        *out = (struct about){wide.stx_ino, wide.stx_nlink, wide.stx_mode, wide.stx_uid};
        return 0;
    }
    if (rc == -ENOSYS || rc == -EPERM) {
        rc = profile_raw(PROFILE_SYS_FSTATAT, folder, (long)path, (long)&plain, flags, 0, 0);
    }
    if (rc == 0) {
        *out = (struct about){plain.st_ino, plain.st_nlink, plain.st_mode, plain.st_uid};
    }
    return (int)rc;
}

/* The kernel is asked, not libc: fakeroot and its like answer there. In a user namespace a number
 * says nothing about whose file it is outside (everybody can be 0 in one of his own), so names of
 * another namespace say which. */
bool pin_registry_default_path(char *path, size_t size)
{
    struct about about;
    const char *end = path + size;
    uint32_t user = (uint32_t)profile_raw(PROFILE_SYS_GETEUID, 0, 0, 0, 0, 0, 0);
    int rc = ask_about(AT_FDCWD, "/proc/self/ns/user", 0, &about);
    bool passing = rc == 0 && about.inode != FIRST_USER_NAMESPACE;
    char *at = profile_put_number(profile_put(path, end, "/dev/shm/servet-"), end, user);
    if (passing) {
        profile_put_number(profile_put(at, end, "-in-"), end, about.inode);
    }
    return passing;
}

static bool is_stopped(pid_t pid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (pid <= 0 || !profile_read_small(path, text, sizeof text)) {
        return true;
    }
    const char *state = profile_stat_find(text, PROFILE_STAT_STATE);
    return !state || *state == 'T' || *state == 't' || *state == 'Z';
}

/* A lock of the process (fcntl), not of the open file (flock): the child of a fork has none of it,
 * and it ends with its holder. Among the threads of one process, claims.lock decides. */
static int take_lock(int file)
{
    uint64_t begun = profile_now_ns(), looked = LONGEST_WAIT_FOR_STOPPED_NS;
    long pause = FIRST_PAUSE_NS;
    unsigned yields = 0;
    for (;;) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fcntl(file, F_SETLK, &lock) == 0) {
            return 0;
        }
        if (errno != EACCES && errno != EAGAIN && errno != EINTR) {
            return -errno;
        }
        uint64_t waited = profile_now_ns() - begun;
        if (waited > LONGEST_WAIT_NS) {
            return -EAGAIN;
        }
        if (waited > looked) {
            looked = waited + LONGEST_WAIT_FOR_STOPPED_NS;
            if (fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK &&
                is_stopped(lock.l_pid)) {
                return -EAGAIN;
            }
        }
        if (waited < FIRST_LOOKS_NS) {
            continue;
        }
        if (yields++ < MOST_YIELDS) {
            sched_yield();
            continue;
        }
        /* Different for each, or all come again at once. */
        pause = pause < LONGEST_PAUSE_NS ? 2 * pause : LONGEST_PAUSE_NS;
        nanosleep(&(struct timespec){.tv_nsec = pause / 2 + (long)(waited % (uint64_t)pause)},
                  NULL);
    }
}

/* An ordinary file of this user that nobody else may write. */
int pin_registry_file(const char *path, bool make)
{
    struct about about;
    int how = O_RDWR | (make ? O_CREAT : 0);
    int file = open(path, how | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (file < 0) {
        return -errno;
    }
    int code = ask_about(file, "", AT_EMPTY_PATH, &about);
    if (code < 0) {
        ;
    } else if (!S_ISREG(about.mode) || about.links > 1) {
        code = -EINVAL;
    } else if (about.user != (uint32_t)profile_raw(PROFILE_SYS_GETEUID, 0, 0, 0, 0, 0, 0) ||
               (about.mode & 077)) {
        code = -EPERM;
    }
    if (code < 0) {
        close(file);
    }
    return code < 0 ? code : file;
}

/* That many bytes the kernel writes, however large the buffer. The same for all threads. */
uint32_t pin_registry_words(void)
{
    enum {
        UNKNOWN = 1 << 30
    }; /* not 0: of what is written to at a start, that is on one page less */
    static _Atomic(uint32_t) words = UNKNOWN;
    uint32_t known = atomic_load_explicit(&words, memory_order_relaxed);
    if (known != UNKNOWN) {
        return known;
    }
    struct profile_mask mask;
    long bytes = profile_raw(SYS_sched_getaffinity, 0, sizeof mask, (long)&mask, 0, 0, 0);
    size_t whole = bytes > 0 ? (size_t)bytes : sizeof mask;
    known = (uint32_t)((whole + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    atomic_store_explicit(&words, known, memory_order_relaxed);
    return known;
}

bool pin_registry_write(int file, const void *bytes, size_t count, off_t offset)
{
    struct pin_signals before;
    pin_signals_hold(&before);
    bool whole = pwrite(file, bytes, count, offset) == (ssize_t)count;
    pin_signals_release(&before);
    return whole;
}

int pin_registry_lock(int file)
{
    struct about about;
    int code = take_lock(file);
    if (code == 0) {
        code = ask_about(file, "", AT_EMPTY_PATH, &about);
    }
    return code == 0 && about.links == 0 ? -ESTALE : code;
}

/* -- who is still there -- */

/* Of /proc: USER_HZ is 100 everywhere. */
#define TICK_NS 10000000u

/* When it began, in clock ticks since boot; 0 when there is no such process. */
static uint64_t start_of(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!profile_read_small(path, text, sizeof text)) {
        return 0;
    }
    const char *began = profile_stat_find(text, PROFILE_STAT_BEGAN);
    return began ? strtoull(began, NULL, 10) : 0;
}

uint64_t pin_registry_now(void)
{
    return profile_clock_ns(CLOCK_BOOTTIME) / TICK_NS;
}

bool pin_registry_lives(uint32_t pid, const uint64_t *entered)
{
    if (pid > INT32_MAX || profile_raw(SYS_kill, (long)pid, 0, 0, 0, 0, 0) == -ESRCH) {
        return false;
    }
    return !entered || start_of((pid_t)pid) <= *entered;
}

/* -- what programs keep for the next ones -- */

/* Answers that a program keeps for the next ones of the same user, in the registry's file behind
 * its entries.
 *
 * Each record has one place, by the hash of its key; a newer one takes it. It is read and written
 * without the lock: half a record, and one that somebody else has altered, fails its checksum, and
 * then there is none. */

#define MAGIC 0x73657276706c3031u /* "servpl01": also the layout's version */
/* Records at one time: more than ranks of most nodes, each of which has a plan of its own. */
#define PLACES 256u
/* Bytes of a record: for each word of a mask the three masks of a plan and its 64 PUs of two bytes,
 * and what does not grow with the machine. */
#define BYTES_OF_WORD (3u * 8u + 64u * 2u)
#define BYTES_BESIDE 640u

struct record {
    uint64_t magic, key_bytes, value_bytes;
    uint64_t checksum; /* of all before and behind */
    char bytes[];      /* the key, the value */
};

static size_t record_bytes(void)
{
    return BYTES_BESIDE + pin_registry_words() * BYTES_OF_WORD;
}

static uint64_t checksum_of(const struct record *record)
{
    uint64_t sum =
        profile_hash_bytes(PROFILE_HASH_BEGIN, record, offsetof(struct record, checksum));
    return profile_hash_bytes(sum, record->bytes,
                              (size_t)(record->key_bytes + record->value_bytes));
}

static bool is_whole(const struct record *record, size_t bytes)
{
    const size_t room = bytes - sizeof *record;
    return bytes > sizeof *record && record->magic == MAGIC && record->key_bytes <= room &&
           record->value_bytes <= room - record->key_bytes &&
           record->checksum == checksum_of(record);
}

static off_t offset_for(const struct pin_kept *what)
{
    uint64_t hash = profile_hash_bytes(PROFILE_HASH_BEGIN, what->key, what->key_bytes);
    return pin_registry_end() + (off_t)(hash % PLACES) * (off_t)record_bytes();
}

size_t pin_kept_get(int file, const struct pin_kept *what)
{
    const size_t room = record_bytes();
    struct record *record = malloc(room);
    size_t bytes = 0;
    if (!record) {
        return 0;
    }
    ssize_t got = pread(file, record, room, offset_for(what));
    if (got > 0 && is_whole(record, (size_t)got) && record->key_bytes == what->key_bytes &&
        memcmp(record->bytes, what->key, what->key_bytes) == 0 &&
        record->value_bytes <= what->size) {
        bytes = (size_t)record->value_bytes;
        memcpy(what->value, record->bytes + what->key_bytes, bytes);
    }
    free(record);
    return bytes;
}

/* A file on a disk would tell of the machine that it was on: of another one, or before a new
 * start. */
static bool ends_with_the_system(int file)
{
    struct statfs about;
    return fstatfs(file, &about) == 0 && about.f_type == TMPFS_MAGIC;
}

void pin_kept_put(int file, const struct pin_kept *what)
{
    const size_t whole = sizeof(struct record) + what->key_bytes + what->size;
    if (whole > record_bytes() || !ends_with_the_system(file)) {
        return;
    }
    struct record *record = malloc(whole);
    if (!record) {
        return;
    }
    *record =
        (struct record){.magic = MAGIC, .key_bytes = what->key_bytes, .value_bytes = what->size};
    memcpy(record->bytes, what->key, what->key_bytes);
    memcpy(record->bytes + what->key_bytes, what->value, what->size);
    record->checksum = checksum_of(record);
    pin_registry_write(file, record, whole, offset_for(what));
    free(record);
}
