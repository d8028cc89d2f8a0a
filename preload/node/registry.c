/* Who holds which PUs of this node. */
#include "preload/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifndef STATX_BASIC_STATS /* musl before 1.2.4 */
#include <linux/stat.h>
#endif

#include "profile/base/clock.h"
#include "profile/base/raw.h"
#include "profile/base/small_file.h"

/* Also the layout's version. A file of an older one is begun anew; one that is no registry at all
 * is somebody's text, and is left alone. */
#define MAGIC 0x7365727665743032u        /* "servet02" */
#define MAGIC_FAMILY 0x7365727665740000u /* "servet" and two digits */
#define MAGIC_FAMILY_MASK 0xffffffffffff0000u

/* Waits between looks at the lock: from as long as a plan takes to what keeps 500 that wait from
 * taking the holder's PU with their looks, and finds it free soon when few are left. */
#define FIRST_PAUSE_NS 50000
#define LONGEST_PAUSE_NS 4000000
/* How long to wait for a holder that runs (500 programs that start at once on two PUs take a
 * second), and for one that is stopped or cannot be seen. */
#define LONGEST_WAIT_NS 10000000000u
#define LONGEST_WAIT_FOR_STOPPED_NS 100000000u
/* Who is gone is looked for in /proc at most that often; between, signal 0 must do. */
#define CHECK_EVERY_NS 1000000000u

/* How often a file may be removed under our hands: each time another program has ended. */
#define MOST_REMOVALS 100

struct header {
    uint64_t magic, words, count, checked_ns;
};

/* The masks of an entry, in this order. They are as long as the kernel's are on this machine, or
 * 500 entries would be a megabyte and a half to read and to write for each of 500 programs. */
enum { TAKEN, HELD, USED, MASKS };
#define WORD_BITS 64

struct pin_registry_entry {
    uint64_t pid, start_ticks, job; /* pid 0: free */
    uint64_t shared; /* 1 + a PU that another process uses or has used at the same time */
    uint64_t bits[]; /* also in programs of 32 bits: they share the node with the others */
};

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
    unsigned user = (unsigned)profile_raw(PROFILE_SYS_GETEUID, 0, 0, 0, 0, 0, 0);
    int rc = ask_about(AT_FDCWD, "/proc/self/ns/user", 0, &about);
    bool passing = rc == 0 && about.inode != FIRST_USER_NAMESPACE;
    if (passing) {
        snprintf(path, size, "/dev/shm/servet-%u-in-%llu", user, (unsigned long long)about.inode);
    } else {
        snprintf(path, size, "/dev/shm/servet-%u", user);
    }
    return passing;
}

/* Field 22 of /proc/PID/stat: start time in clock ticks since boot; 0 when there is no such
 * process. */
static uint64_t start_of(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!profile_read_small(path, text, sizeof text)) {
        return 0;
    }
    /* The name in parentheses may hold anything; field 3 comes after the last one. */
    const char *field = strrchr(text, ')');
    for (int number = 2; field && number < 22; number++) {
        field = strchr(field + 1, ' ');
    }
    return field ? strtoull(field, NULL, 10) : 0;
}

/* `thoroughly`: also whether the pid is still the same process's. */
static bool is_alive(const struct pin_registry_entry *entry, bool thoroughly)
{
    /* Without /proc a process does not know its own start, and nobody could tell when it is
     * gone. */
    if (entry->pid == 0 || entry->pid > INT32_MAX || entry->start_ticks == 0) {
        return false;
    }
    if (profile_raw(SYS_kill, (long)entry->pid, 0, 0, 0, 0, 0) == -ESRCH) {
        return false;
    }
    return !thoroughly || start_of((pid_t)entry->pid) == entry->start_ticks;
}

/* Field 3 of /proc/PID/stat. */
static bool is_stopped(pid_t pid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (pid <= 0 || !profile_read_small(path, text, sizeof text)) {
        return true;
    }
    const char *state = strrchr(text, ')');
    return !state || (state[1] && (state[2] == 'T' || state[2] == 't' || state[2] == 'Z'));
}

/* A lock of the process (fcntl), not of the open file (flock): the child of a fork has none of it,
 * and it ends with its holder. Among the threads of one process, claims.lock decides. */
static int take_lock(int file)
{
    uint64_t begun = profile_now_ns(), looked = LONGEST_WAIT_FOR_STOPPED_NS;
    long pause = FIRST_PAUSE_NS;
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
        /* Different for each, or all come again at once. */
        pause = pause < LONGEST_PAUSE_NS ? 2 * pause : LONGEST_PAUSE_NS;
        nanosleep(&(struct timespec){.tv_nsec = pause / 2 + (long)(waited % (uint64_t)pause)},
                  NULL);
    }
}

/* An ordinary file of this user that nobody else may write, locked. -ESTALE: whoever had the lock
 * has removed it. */
static int open_once(const char *path)
{
    struct about about;
    int file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (file < 0) {
        return -errno;
    }
    int code = ask_about(file, "", AT_EMPTY_PATH, &about);
    if (code < 0) {
        ;
    } else if (!S_ISREG(about.mode) || about.links != 1) {
        code = -EINVAL;
    } else if (about.user != (uint32_t)profile_raw(PROFILE_SYS_GETEUID, 0, 0, 0, 0, 0, 0) ||
               (about.mode & 077)) {
        code = -EPERM;
    } else {
        code = take_lock(file);
    }
    if (code == 0) {
        code = ask_about(file, "", AT_EMPTY_PATH, &about);
    }
    if (code == 0 && about.links > 0) {
        return file;
    }
    close(file);
    return code < 0 ? code : -ESTALE;
}

static int open_own_file(const char *path)
{
    int file = -ESTALE;
    for (int i = 0; i < MOST_REMOVALS && file == -ESTALE; i++) {
        file = open_once(path);
    }
    return file;
}

static size_t entry_bytes(const struct pin_registry *registry)
{
    return sizeof(struct pin_registry_entry) + MASKS * registry->words * sizeof(uint64_t);
}

static struct pin_registry_entry *entry_at(const struct pin_registry *registry, uint32_t i)
{
    return (struct pin_registry_entry *)(void *)((char *)registry->entries +
                                                 i * entry_bytes(registry));
}

static uint64_t *mask_of(const struct pin_registry *registry, struct pin_registry_entry *entry,
                         int mask)
{
    return entry->bits + (size_t)mask * registry->words;
}

static bool has(const struct pin_registry *registry, struct pin_registry_entry *entry, int mask,
                uint32_t pu)
{
    return pu / WORD_BITS < registry->words &&
           (mask_of(registry, entry, mask)[pu / WORD_BITS] >> (pu % WORD_BITS) & 1) != 0;
}

static void add(const struct pin_registry *registry, struct pin_registry_entry *entry, int mask,
                uint32_t pu)
{
    if (pu / WORD_BITS < registry->words) {
        mask_of(registry, entry, mask)[pu / WORD_BITS] |= UINT64_C(1) << (pu % WORD_BITS);
    }
}

/* Words of the kernel's masks here: that many bytes it writes, however large the buffer. */
static uint32_t words_here(void)
{
    struct profile_mask mask;
    long bytes = profile_raw(SYS_sched_getaffinity, 0, sizeof mask, (long)&mask, 0, 0, 0);
    size_t whole = bytes > 0 ? (size_t)bytes : sizeof mask;
    return (uint32_t)((whole + sizeof(uint64_t) - 1) / sizeof(uint64_t));
}

static int make_room(struct pin_registry *registry, uint32_t count)
{
    if (count <= registry->room) {
        return 0;
    }
    struct pin_registry_entry *entries = realloc(registry->entries, count * entry_bytes(registry));
    if (!entries) {
        return -ENOMEM;
    }
    registry->entries = entries;
    registry->room = count;
    return 0;
}

/* 0: `header` is that of a registry, all zeros where one is to be begun. -EINVAL: another file. */
static int read_header(int file, struct header *header)
{
    ssize_t got = pread(file, header, sizeof *header, 0);
    if (got < 0) {
        return -errno;
    }
    if (got > 0 && (got < (ssize_t)sizeof header->magic ||
                    (header->magic & MAGIC_FAMILY_MASK) != MAGIC_FAMILY)) {
        return -EINVAL;
    }
    if (got < (ssize_t)sizeof *header || header->magic != MAGIC) {
        *header = (struct header){0};
    }
    return 0;
}

static int read_entries(struct pin_registry *registry)
{
    struct header header;
    int code = read_header(registry->file, &header);
    if (code < 0) {
        return code;
    }
    uint64_t count = header.count <= PIN_REGISTRY_ENTRIES ? header.count : PIN_REGISTRY_ENTRIES;
    registry->words = words_here();
    count = header.words == registry->words ? count : 0;
    size_t bytes = (size_t)count * entry_bytes(registry);
    code = make_room(registry, (uint32_t)count + 1); /* for ours */
    if (code < 0) {
        return code;
    }
    uint64_t now = profile_now_ns();
    bool thoroughly = now - header.checked_ns > CHECK_EVERY_NS; /* also when that lies ahead */
    registry->checked_ns = thoroughly ? now : header.checked_ns;
    ssize_t got = pread(registry->file, registry->entries, bytes, sizeof header);
    uint32_t whole = got > 0 ? (uint32_t)((size_t)got / entry_bytes(registry)) : 0;
    for (uint32_t i = 0; i < whole; i++) {
        if (is_alive(entry_at(registry, i), thoroughly)) {
            memmove(entry_at(registry, registry->count++), entry_at(registry, i),
                    entry_bytes(registry));
        }
    }
    return 0;
}

int pin_registry_open(const char *path, struct pin_registry *out)
{
    struct pin_registry registry = {.file = open_own_file(path)};
    if (registry.file < 0) {
        return registry.file;
    }
    int code = read_entries(&registry);
    if (code < 0) {
        close(registry.file);
        free(registry.entries);
    } else {
        *out = registry;
    }
    return code;
}

void pin_registry_close(struct pin_registry *registry)
{
    struct header header = {.magic = MAGIC,
                            .words = registry->words,
                            .count = registry->count,
                            .checked_ns = registry->checked_ns};
    size_t bytes = registry->count * entry_bytes(registry);
    struct pin_signals before;
    pin_signals_hold(&before);
    /* Should a write fail (memory of /dev/shm used up, ulimit -f), the next reader drops what it
     * cannot read. */
    if (pwrite(registry->file, registry->entries, bytes, sizeof header) == (ssize_t)bytes &&
        pwrite(registry->file, &header, sizeof header, 0) == sizeof header) {
        (void)!ftruncate(registry->file, (off_t)(sizeof header + bytes));
    }
    pin_signals_release(&before);
    close(registry->file);
    free(registry->entries);
    *registry = (struct pin_registry){.file = -1};
}

static struct pin_registry_entry *entry_of_job(const struct pin_registry *registry, uint64_t job)
{
    for (uint32_t i = 0; i < registry->count; i++) {
        if (entry_at(registry, i)->job == job) {
            return entry_at(registry, i);
        }
    }
    return NULL;
}

bool pin_registry_knows(const struct pin_registry *registry, uint64_t job)
{
    return entry_of_job(registry, job) != NULL;
}

static bool job_holds_before(const struct pin_registry *registry, uint32_t entry, uint32_t pu)
{
    uint64_t job = entry_at(registry, entry)->job;
    if (job & PIN_JOB_OF_ONE_PROCESS) {
        return false;
    }
    for (uint32_t i = 0; i < entry; i++) {
        if (entry_at(registry, i)->job == job && has(registry, entry_at(registry, i), HELD, pu)) {
            return true;
        }
    }
    return false;
}

/* Jobs other than `job` that hold `pu`. */
static uint32_t load_of(const struct pin_registry *registry, uint64_t job, uint32_t pu)
{
    uint32_t load = 0;
    for (uint32_t i = 0; i < registry->count; i++) {
        struct pin_registry_entry *entry = entry_at(registry, i);
        if (entry->job != job && has(registry, entry, HELD, pu)) {
            load += !job_holds_before(registry, i, pu);
        }
    }
    return load;
}

void pin_registry_taken(const struct pin_registry *registry, uint64_t job,
                        const struct profile_mask *allowed, struct profile_mask *taken)
{
    struct pin_registry_entry *first = entry_of_job(registry, job);
    uint32_t least = UINT32_MAX;
    *taken = (struct profile_mask){0};
    if (first) {
        memcpy(taken->word, mask_of(registry, first, TAKEN), registry->words * sizeof(uint64_t));
        return;
    }
    PROFILE_MASK_EACH(allowed, pu)
    {
        uint32_t load = load_of(registry, job, pu);
        least = load < least ? load : least;
    }
    PROFILE_MASK_EACH(allowed, pu)
    {
        if (load_of(registry, job, pu) > least) {
            profile_mask_add(taken, pu);
        }
    }
}

static struct pin_registry_entry *own_entry(const struct pin_registry *registry)
{
    uint64_t pid = (uint64_t)getpid();
    for (uint32_t i = 0; i < registry->count; i++) {
        if (entry_at(registry, i)->pid == pid) {
            return entry_at(registry, i);
        }
    }
    return NULL;
}

int pin_registry_enter(struct pin_registry *registry, uint64_t job,
                       const struct profile_mask *taken, const struct profile_mask *held)
{
    struct pin_registry_entry *entry = own_entry(registry);
    uint64_t start = start_of(getpid());
    if (start == 0) {
        return -ESRCH;
    }
    if (!entry && registry->count >= PIN_REGISTRY_ENTRIES) {
        return -ENOSPC;
    }
    if (!entry) {
        int code = make_room(registry, registry->count + 1);
        if (code < 0) {
            return code;
        }
        entry = entry_at(registry, registry->count++);
    }
    size_t bytes = registry->words * sizeof(uint64_t);
    memset(entry, 0, entry_bytes(registry));
    entry->pid = (uint64_t)getpid();
    entry->start_ticks = start;
    entry->job = job;
    memcpy(mask_of(registry, entry, TAKEN), taken->word, bytes);
    memcpy(mask_of(registry, entry, HELD), held->word, bytes);
    return 0;
}

bool pin_registry_claim(struct pin_registry *registry, uint64_t job, uint32_t pu)
{
    struct pin_registry_entry *entry = own_entry(registry);
    if (load_of(registry, job, pu) > 0) {
        return false;
    }
    if (entry) {
        add(registry, entry, HELD, pu);
    }
    return true;
}

void pin_registry_use(struct pin_registry *registry, uint32_t pu)
{
    struct pin_registry_entry *entry = own_entry(registry);
    if (!entry) {
        return;
    }
    add(registry, entry, USED, pu);
    for (uint32_t i = 0; i < registry->count; i++) {
        struct pin_registry_entry *other = entry_at(registry, i);
        if (other != entry && has(registry, other, USED, pu)) {
            other->shared = entry->shared = 1 + (uint64_t)pu;
        }
    }
}

int32_t pin_registry_shared(const struct pin_registry *registry)
{
    const struct pin_registry_entry *entry = own_entry(registry);
    return entry && entry->shared <= PROFILE_MASK_PUS ? (int32_t)entry->shared - 1 : -1;
}

void pin_registry_leave(struct pin_registry *registry)
{
    struct pin_registry_entry *entry = own_entry(registry);
    if (entry) {
        memmove(entry, entry_at(registry, --registry->count), entry_bytes(registry));
    }
}
