/* Who holds which PUs of this node. */
#include "preload/node/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "preload/node/note.h"

/* Also the layout's version: a file of another one is begun anew. */
#define MAGIC 0x7365727665743031u /* "servet01" */

/* Longest wait for the lock, which is held for the time it takes to make a plan (about a
 * millisecond). */
#define LOCK_TRIES 100
#define LOCK_PAUSE_NANOSECONDS 1000000

struct header {
    uint64_t magic, count;
};

struct pin_registry_entry {
    uint64_t pid, start_ticks, job; /* pid 0: free */
    struct profile_mask taken, held;
};

void pin_registry_default_path(char *path, size_t size)
{
    snprintf(path, size, "/dev/shm/servet-%u", (unsigned)geteuid());
}

/* Field 22 of /proc/PID/stat: start time in clock ticks since boot; 0 when there is no such
 * process. */
static uint64_t start_of(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    /* The name in parentheses may hold anything; field 3 comes after the last one. */
    const char *field = strrchr(text, ')');
    for (int number = 2; field && number < 22; number++) {
        field = strchr(field + 1, ' ');
    }
    return field ? strtoull(field, NULL, 10) : 0;
}

static bool is_alive(const struct pin_registry_entry *entry)
{
    /* Without /proc a process does not know its own start, and nobody could tell when it is
     * gone. */
    return entry->pid != 0 && entry->pid <= INT32_MAX && entry->start_ticks != 0 &&
           start_of((pid_t)entry->pid) == entry->start_ticks;
}

static int take_lock(int file)
{
    struct timespec pause = {.tv_nsec = LOCK_PAUSE_NANOSECONDS};
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0) {
            return 0;
        }
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return -errno;
        }
        nanosleep(&pause, NULL);
    }
    return -EAGAIN;
}

static int open_own_file(const char *path)
{
    struct stat about;
    int file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (file < 0) {
        return -errno;
    }
    int code = 0;
    if (fstat(file, &about) < 0) {
        code = -errno;
    } else if (!S_ISREG(about.st_mode) || about.st_nlink != 1) {
        code = -EINVAL;
    } else if (about.st_uid != geteuid() || (about.st_mode & 077)) {
        code = -EPERM;
    } else {
        code = take_lock(file);
    }
    if (code == 0) {
        return file;
    }
    close(file);
    return code;
}

static int make_room(struct pin_registry *registry, uint32_t count)
{
    if (count <= registry->room) {
        return 0;
    }
    struct pin_registry_entry *entries = realloc(registry->entries, count * sizeof *entries);
    if (!entries) {
        return -ENOMEM;
    }
    registry->entries = entries;
    registry->room = count;
    return 0;
}

static int read_entries(struct pin_registry *registry)
{
    struct header header;
    uint64_t count = 0;
    if (pread(registry->file, &header, sizeof header, 0) == sizeof header &&
        header.magic == MAGIC) {
        count = header.count <= PIN_REGISTRY_ENTRIES ? header.count : PIN_REGISTRY_ENTRIES;
    }
    size_t bytes = count * sizeof *registry->entries;
    int code = make_room(registry, (uint32_t)count + 1); /* for ours */
    if (code < 0) {
        return code;
    }
    ssize_t got = pread(registry->file, registry->entries, bytes, sizeof header);
    uint32_t whole = got > 0 ? (uint32_t)((size_t)got / sizeof *registry->entries) : 0;
    for (uint32_t i = 0; i < whole; i++) {
        if (is_alive(&registry->entries[i])) {
            registry->entries[registry->count++] = registry->entries[i];
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
    } else {
        *out = registry;
    }
    return code;
}

void pin_registry_close(struct pin_registry *registry)
{
    struct header header = {.magic = MAGIC, .count = registry->count};
    size_t bytes = registry->count * sizeof *registry->entries;
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

static const struct pin_registry_entry *entry_of_job(const struct pin_registry *registry,
                                                     uint64_t job, uint32_t before)
{
    for (uint32_t i = 0; i < before; i++) {
        if (registry->entries[i].job == job) {
            return &registry->entries[i];
        }
    }
    return NULL;
}

static bool job_holds_before(const struct pin_registry *registry, uint32_t entry, uint32_t pu)
{
    for (uint32_t i = 0; i < entry; i++) {
        if (registry->entries[i].job == registry->entries[entry].job &&
            profile_mask_has(&registry->entries[i].held, pu)) {
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
        if (registry->entries[i].job != job && profile_mask_has(&registry->entries[i].held, pu)) {
            load += !job_holds_before(registry, i, pu);
        }
    }
    return load;
}

void pin_registry_taken(const struct pin_registry *registry, uint64_t job,
                        const struct profile_mask *allowed, struct profile_mask *taken)
{
    const struct pin_registry_entry *first = entry_of_job(registry, job, registry->count);
    uint32_t least = UINT32_MAX;
    *taken = first ? first->taken : (struct profile_mask){0};
    if (first) {
        return;
    }
    for (uint32_t pu = 0; pu < PROFILE_MASK_PUS; pu++) {
        uint32_t load = profile_mask_has(allowed, pu) ? load_of(registry, job, pu) : least;
        least = load < least ? load : least;
    }
    for (uint32_t pu = 0; pu < PROFILE_MASK_PUS; pu++) {
        if (profile_mask_has(allowed, pu) && load_of(registry, job, pu) > least) {
            profile_mask_add(taken, pu);
        }
    }
}

static struct pin_registry_entry *own_entry(const struct pin_registry *registry)
{
    uint64_t pid = (uint64_t)getpid();
    for (uint32_t i = 0; i < registry->count; i++) {
        if (registry->entries[i].pid == pid) {
            return &registry->entries[i];
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
        entry = &registry->entries[registry->count++];
    }
    *entry = (struct pin_registry_entry){.pid = (uint64_t)getpid(),
                                         .start_ticks = start,
                                         .job = job,
                                         .taken = *taken,
                                         .held = *held};
    return 0;
}

bool pin_registry_claim(struct pin_registry *registry, uint64_t job, uint32_t pu)
{
    struct pin_registry_entry *entry = own_entry(registry);
    if (load_of(registry, job, pu) > 0) {
        return false;
    }
    if (entry) {
        profile_mask_add(&entry->held, pu);
    }
    return true;
}

void pin_registry_leave(struct pin_registry *registry)
{
    struct pin_registry_entry *entry = own_entry(registry);
    if (entry) {
        *entry = registry->entries[--registry->count];
    }
}

/* This process's side. */

/* A job of one process: no launcher's number has the highest bit and the pid's place at once. */
static uint64_t job_of_this_process(void)
{
    return (uint64_t)1 << 63 | (uint64_t)(uint32_t)getpid();
}

static bool open_registry(const char *path, bool verbose, struct pin_registry *registry)
{
    int code = pin_registry_open(path, registry);
    if (code < 0 && verbose) {
        pin_note("%s: %s; other programs on this node are not seen", path, strerrordesc_np(-code));
    }
    return code == 0;
}

void pin_claims_begin(struct pin_claims *claims, const struct pin_options *options,
                      const struct pin_launcher *launcher, const struct profile_mask *allowed,
                      struct profile_mask *taken)
{
    *taken = (struct profile_mask){0};
    *claims = (struct pin_claims){.job = launcher->job ? launcher->job : job_of_this_process()};
    if (options->no_registry) {
        return;
    }
    if (options->registry[0]) {
        snprintf(claims->path, sizeof claims->path, "%s", options->registry);
    } else {
        pin_registry_default_path(claims->path, sizeof claims->path);
    }
    claims->on = open_registry(claims->path, options->verbose, &claims->registry);
    if (!claims->on) {
        return;
    }
    pin_registry_taken(&claims->registry, claims->job, allowed, taken);
    claims->taken = *taken;
}

void pin_claims_commit(struct pin_claims *claims, const struct profile_mask *held)
{
    if (!claims->on) {
        return;
    }
    claims->on =
        held && pin_registry_enter(&claims->registry, claims->job, &claims->taken, held) == 0;
    pin_registry_close(&claims->registry);
}

bool pin_claims_try(struct pin_claims *claims, uint32_t pu)
{
    struct pin_registry registry;
    if (!claims->on || !open_registry(claims->path, false, &registry)) {
        return true;
    }
    bool claimed = pin_registry_claim(&registry, claims->job, pu);
    pin_registry_close(&registry);
    return claimed;
}

void pin_claims_end(struct pin_claims *claims)
{
    struct pin_registry registry;
    if (!claims->on || !open_registry(claims->path, false, &registry)) {
        return;
    }
    pin_registry_leave(&registry);
    pin_registry_close(&registry);
    claims->on = false;
}
