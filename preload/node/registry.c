/* Who holds which PUs of this node. */
#include "preload/node/node.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/raw.h"

/* Also the layout's version. A file of an older one is begun anew; one that is no registry at all
 * is somebody's text, and is left alone. */
#define MAGIC 0x7365727665743035u        /* "servet05" */
#define MAGIC_FAMILY 0x7365727665740000u /* "servet" and two digits */
#define MAGIC_FAMILY_MASK 0xffffffffffff0000u

/* Who is gone is looked for in /proc at most that often; between, signal 0 must do. */
#define CHECK_EVERY_NS 1000000000u
/* So many by one program, in turn: others wait meanwhile. */
#define CHECKED_AT_ONCE 32u
/* More than those get the signal at most that often: of 500 programs that come at once each would
 * ask for all. A job is killed and the next one started in more time than that. */
#define SIGNAL_EVERY_NS 10000000u
/* Of /proc: USER_HZ is 100 everywhere. */
#define TICK_NS 10000000u
/* How often a file may be removed under our hands: each time another program has ended. */
#define MOST_REMOVALS 100

/* The file: this, a look for strangers, and entries. An entry stays where it is until its process
 * ends; then another one may have the place. */
struct header {
    uint64_t magic, words;
    uint64_t places;           /* entries and free places, up to the last entry */
    uint64_t checked_ns, next; /* who is to be looked after next */
    uint64_t signalled_ns;
};

/* Followed by the PUs that were looked at, and those of them that were busy. */
struct look {
    uint64_t begun_ns, ended_ns;
};

/* The masks of an entry, in this order. They are as long as the kernel's are on this machine, or
 * 500 entries would be a megabyte and a half to read for each of 500 programs. */
enum { TAKEN, HELD, USED, MASKS };
#define WORD_BITS 64

struct pin_registry_entry {
    uint64_t pid; /* 0: free */
    /* When this was written, since the system started: another process with this pid began later.
     * (When its own did would be to be looked up in /proc, by every program.) */
    uint64_t entered_ticks;
    uint64_t job;
    uint64_t shared; /* 1 + a PU that another process uses or has used at the same time */
    uint64_t bits[]; /* also in programs of 32 bits: they share the node with the others */
};

/* When it began: in clock ticks since boot; 0 when there is no such
 * process. */
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

static uint64_t now_ticks(void)
{
    return profile_clock_ns(CLOCK_BOOTTIME) / TICK_NS;
}

/* `thoroughly`: also whether the pid is still the same process's, as far as /proc tells. */
static bool is_alive(const struct pin_registry_entry *entry, bool thoroughly)
{
    if (entry->pid == 0 || entry->pid > INT32_MAX ||
        profile_raw(SYS_kill, (long)entry->pid, 0, 0, 0, 0, 0) == -ESRCH) {
        return false;
    }
    return !thoroughly || start_of((pid_t)entry->pid) <= entry->entered_ticks;
}

static size_t entry_bytes(uint32_t words)
{
    return sizeof(struct pin_registry_entry) + MASKS * words * sizeof(uint64_t);
}

static size_t look_bytes(uint32_t words)
{
    return sizeof(struct look) + 2 * words * sizeof(uint64_t);
}

static off_t offset_of(uint32_t words, uint32_t place)
{
    return (off_t)(sizeof(struct header) + look_bytes(words) + place * entry_bytes(words));
}

off_t pin_registry_end(void)
{
    return offset_of(pin_registry_words(), PIN_REGISTRY_ENTRIES);
}

static struct pin_registry_entry *entry_at(const struct pin_registry *registry, uint32_t place)
{
    return (struct pin_registry_entry *)(void *)((char *)registry->entries +
                                                 place * entry_bytes(registry->words));
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

/* That many bytes the kernel writes, however large the buffer. The same for all threads. */
uint32_t pin_registry_words(void)
{
    static _Atomic(uint32_t) words;
    uint32_t known = atomic_load_explicit(&words, memory_order_relaxed);
    if (known > 0) {
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

/* The beginning of the file in `bytes`, `size` of them; those that are not there are zeros. 0: it
 * is that of a registry, with a header of zeros where one is to be begun. -EINVAL: another file's;
 * -errno. */
static int read_beginning(int file, void *bytes, size_t size)
{
    struct header *header = bytes;
    ssize_t got = pread(file, bytes, size, 0);
    if (got < 0) {
        return -errno;
    }
    memset((char *)bytes + got, 0, size - (size_t)got);
    if (got > 0 && (got < (ssize_t)sizeof header->magic ||
                    (header->magic & MAGIC_FAMILY_MASK) != MAGIC_FAMILY)) {
        return -EINVAL;
    }
    if (got < (ssize_t)sizeof *header || header->magic != MAGIC ||
        header->words != pin_registry_words()) {
        *header = (struct header){0};
    }
    return 0;
}

static void free_place(struct pin_registry *registry, uint32_t place)
{
    struct pin_registry_entry *entry = entry_at(registry, place);
    entry->pid = 0;
    registry->count--;
    pin_registry_write(registry->file, &entry->pid, sizeof entry->pid,
                       offset_of(registry->words, place));
}

/* Frees the places of processes that are gone, and forgets the free ones at the end. */
static void look_after(struct pin_registry *registry, const struct header *header)
{
    const uint64_t now = profile_now_ns(), own = (uint64_t)getpid();
    const uint32_t places = registry->places;
    /* also when that lies ahead */
    const bool thoroughly = now - header->checked_ns > CHECK_EVERY_NS,
               all = places <= CHECKED_AT_ONCE || now - header->signalled_ns > SIGNAL_EVERY_NS;
    const uint32_t looks = places < CHECKED_AT_ONCE ? places : CHECKED_AT_ONCE;
    registry->checked_ns = thoroughly ? now : header->checked_ns;
    registry->signalled_ns = all ? now : header->signalled_ns;
    for (uint32_t i = 0; (all || thoroughly) && i < places; i++) {
        const uint32_t place = (uint32_t)((header->next + i) % places);
        const struct pin_registry_entry *entry = entry_at(registry, place);
        const bool closely = thoroughly && i < looks;
        if (entry->pid != 0 && (all || closely) && !is_alive(entry, closely)) {
            free_place(registry, place);
        }
    }
    registry->next = places > 0 && thoroughly ? (uint32_t)((header->next + looks) % places)
                                              : (uint32_t)header->next;
    registry->count = registry->places = 0;
    for (uint32_t place = 0; place < places; place++) {
        const uint64_t pid = entry_at(registry, place)->pid;
        registry->count += pid != 0;
        registry->own = pid == own ? place : registry->own;
        registry->places = pid != 0 ? place + 1 : registry->places;
    }
}

/* Places that are read with the header: of most nodes all. */
#define FIRST_PLACES 32u

/* Leaves the entries, also of processes that are gone. -EINVAL, -ENOMEM, -errno. */
static int read_entries(struct pin_registry *registry)
{
    const uint32_t words = registry->words = pin_registry_words();
    const size_t first = (size_t)offset_of(words, FIRST_PLACES);
    char *bytes = malloc(first + entry_bytes(words)); /* one for us */
    int code = bytes ? read_beginning(registry->file, bytes, first) : -ENOMEM;
    if (code < 0) {
        free(bytes);
        return code;
    }
    const uint64_t told = ((struct header *)(void *)bytes)->places;
    uint32_t places = told < PIN_REGISTRY_ENTRIES ? (uint32_t)told : PIN_REGISTRY_ENTRIES;
    if (places > FIRST_PLACES) {
        const size_t rest = (places - FIRST_PLACES) * entry_bytes(words);
        char *all = realloc(bytes, first + rest + entry_bytes(words));
        ssize_t got = all ? pread(registry->file, all + first, rest, (off_t)first) : 0;
        bytes = all ? all : bytes;
        places = FIRST_PLACES + (got > 0 ? (uint32_t)((size_t)got / entry_bytes(words)) : 0);
        code = all ? 0 : -ENOMEM;
    }
    registry->bytes = bytes;
    registry->entries = (struct pin_registry_entry *)(void *)(bytes + offset_of(words, 0));
    registry->places = places;
    return code;
}

int pin_registry_begin(int file, struct pin_registry *out)
{
    struct pin_registry registry = {.file = file, .own = PIN_REGISTRY_NO_PLACE};
    int code = pin_registry_lock(file);
    code = code < 0 ? code : read_entries(&registry);
    const struct header *header = registry.bytes;
    if (code == 0 && header->magic == 0 && ftruncate(file, 0) < 0) {
        code = -errno;
    }
    if (code < 0) {
        close(file);
        free(registry.bytes);
    } else {
        look_after(&registry, header);
        *out = registry;
    }
    return code;
}

int pin_registry_open(const char *path, struct pin_registry *out)
{
    int code = -ESTALE;
    for (int i = 0; i < MOST_REMOVALS && code == -ESTALE; i++) {
        code = pin_registry_file(path, true);
        code = code < 0 ? code : pin_registry_begin(code, out);
    }
    return code;
}

void pin_registry_close(struct pin_registry *registry)
{
    struct header header = {.magic = MAGIC,
                            .words = registry->words,
                            .places = registry->places,
                            .checked_ns = registry->checked_ns,
                            .next = registry->next,
                            .signalled_ns = registry->signalled_ns};
    bool written =
        !registry->changed || registry->own == PIN_REGISTRY_NO_PLACE ||
        pin_registry_write(registry->file, entry_at(registry, registry->own),
                           entry_bytes(registry->words), offset_of(registry->words, registry->own));
    /* Should a write fail (memory of /dev/shm used up, ulimit -f), nobody sees half an entry. */
    if (written) {
        pin_registry_write(registry->file, &header, sizeof header, 0);
    }
    close(registry->file);
    free(registry->bytes);
    *registry = (struct pin_registry){.file = -1, .own = PIN_REGISTRY_NO_PLACE};
}

static struct pin_registry_entry *entry_of_job(const struct pin_registry *registry, uint64_t job)
{
    for (uint32_t i = 0; i < registry->places; i++) {
        if (entry_at(registry, i)->pid != 0 && entry_at(registry, i)->job == job) {
            return entry_at(registry, i);
        }
    }
    return NULL;
}

bool pin_registry_knows(const struct pin_registry *registry, uint64_t job)
{
    return entry_of_job(registry, job) != NULL;
}

/* The PUs that an entry holds, without those that an entry of its job before it holds, too. */
static uint64_t held_first(const struct pin_registry *registry, uint32_t place, uint32_t word)
{
    struct pin_registry_entry *entry = entry_at(registry, place);
    uint64_t held = mask_of(registry, entry, HELD)[word];
    for (uint32_t i = 0; held && !(entry->job & PIN_JOB_OF_ONE_PROCESS) && i < place; i++) {
        struct pin_registry_entry *before = entry_at(registry, i);
        if (before->pid != 0 && before->job == entry->job) {
            held &= ~mask_of(registry, before, HELD)[word];
        }
    }
    return held;
}

/* Of each PU below 64 x words: how many jobs other than `job` hold it. */
static void count_jobs(const struct pin_registry *registry, uint64_t job, uint32_t *jobs)
{
    for (uint32_t i = 0; i < registry->places; i++) {
        struct pin_registry_entry *entry = entry_at(registry, i);
        for (uint32_t w = 0; entry->pid != 0 && entry->job != job && w < registry->words; w++) {
            for (uint64_t held = held_first(registry, i, w); held; held &= held - 1) {
                jobs[w * WORD_BITS + (uint32_t)__builtin_ctzll(held)]++;
            }
        }
    }
}

void pin_registry_taken(const struct pin_registry *registry, uint64_t job,
                        const struct profile_mask *allowed, struct profile_mask *taken)
{
    struct pin_registry_entry *first = entry_of_job(registry, job);
    uint32_t least = UINT32_MAX, pus = registry->words * WORD_BITS;
    *taken = (struct profile_mask){0};
    if (first) {
        memcpy(taken->word, mask_of(registry, first, TAKEN), registry->words * sizeof(uint64_t));
        return;
    }
    uint32_t *jobs = calloc(pus, sizeof *jobs);
    if (!jobs) {
        return;
    }
    count_jobs(registry, job, jobs);
    PROFILE_MASK_EACH(allowed, pu)
    {
        least = pu < pus && jobs[pu] < least ? jobs[pu] : least;
    }
    PROFILE_MASK_EACH(allowed, pu)
    {
        if (pu < pus && jobs[pu] > least) {
            profile_mask_add(taken, pu);
        }
    }
    free(jobs);
}

static struct pin_registry_entry *own_entry(const struct pin_registry *registry)
{
    return registry->own == PIN_REGISTRY_NO_PLACE ? NULL : entry_at(registry, registry->own);
}

/* 0, -ENOSPC. */
static int take_place(struct pin_registry *registry)
{
    uint32_t place = 0;
    while (place < registry->places && entry_at(registry, place)->pid != 0) {
        place++;
    }
    if (place >= PIN_REGISTRY_ENTRIES) {
        return -ENOSPC;
    }
    registry->places += place == registry->places;
    registry->count++;
    registry->own = place;
    return 0;
}

int pin_registry_enter(struct pin_registry *registry, uint64_t job,
                       const struct profile_mask *taken, const struct profile_mask *held)
{
    int rc = own_entry(registry) ? 0 : take_place(registry);
    if (rc < 0) {
        return rc;
    }
    struct pin_registry_entry *entry = entry_at(registry, registry->own);
    size_t bytes = registry->words * sizeof(uint64_t);
    memset(entry, 0, entry_bytes(registry->words));
    entry->pid = (uint64_t)getpid();
    entry->entered_ticks = now_ticks();
    entry->job = job;
    memcpy(mask_of(registry, entry, TAKEN), taken->word, bytes);
    memcpy(mask_of(registry, entry, HELD), held->word, bytes);
    registry->changed = true;
    return 0;
}

bool pin_registry_claim(struct pin_registry *registry, uint64_t job, uint32_t pu)
{
    struct pin_registry_entry *own = own_entry(registry);
    for (uint32_t i = 0; i < registry->places; i++) {
        struct pin_registry_entry *entry = entry_at(registry, i);
        if (entry->pid != 0 && entry->job != job && has(registry, entry, HELD, pu)) {
            return false;
        }
    }
    if (own) {
        add(registry, own, HELD, pu);
        registry->changed = true;
    }
    return true;
}

/* Says in the entry of another process that it shares a PU: the rest of it is that process's. */
static void tell(struct pin_registry *registry, uint32_t place, uint64_t shared)
{
    struct pin_registry_entry *other = entry_at(registry, place);
    off_t offset =
        offset_of(registry->words, place) + (off_t)offsetof(struct pin_registry_entry, shared);
    if (other->shared == 0) { /* one PU is enough to know */
        other->shared = shared;
        pin_registry_write(registry->file, &shared, sizeof shared, offset);
    }
}

void pin_registry_use(struct pin_registry *registry, uint32_t pu)
{
    struct pin_registry_entry *entry = own_entry(registry);
    if (!entry) {
        return;
    }
    add(registry, entry, USED, pu);
    registry->changed = true;
    for (uint32_t i = 0; i < registry->places; i++) {
        struct pin_registry_entry *other = entry_at(registry, i);
        if (other != entry && other->pid != 0 && has(registry, other, USED, pu)) {
            entry->shared = 1 + (uint64_t)pu;
            tell(registry, i, entry->shared);
        }
    }
}

/* The PU that an entry says is shared. */
static int32_t shared_of(const struct pin_registry_entry *entry)
{
    return entry->shared <= PROFILE_MASK_PUS ? (int32_t)entry->shared - 1 : -1;
}

int32_t pin_registry_leave(struct pin_registry *registry)
{
    struct pin_registry_entry *entry = own_entry(registry);
    if (!entry) {
        return -1;
    }
    int32_t shared = shared_of(entry);
    free_place(registry, registry->own);
    registry->own = PIN_REGISTRY_NO_PLACE;
    return shared;
}

int32_t pin_registry_leave_place(const char *path, uint32_t place)
{
    struct pin_registry_entry entry;
    off_t offset = offset_of(pin_registry_words(), place);
    int32_t shared = -1;
    int file = pin_registry_file(path, false);
    if (file < 0) {
        return shared;
    }
    if (pread(file, &entry, sizeof entry, offset) == sizeof entry &&
        entry.pid == (uint64_t)getpid()) {
        shared = shared_of(&entry);
        entry.pid = 0;
        pin_registry_write(file, &entry.pid, sizeof entry.pid, offset);
    }
    close(file);
    return shared;
}

/* -- looks for strangers -- */

/* A look says for so long what is busy. Where many start at once it says so for longer: on a node
 * with a queue before every PU it matters little, and each look waits in that queue. */
#define LOOK_HOLDS_NS 50000000u
#define LOOK_OF_CROWD_HOLDS_NS 1000000000u

static bool is_younger(uint64_t then_ns, uint64_t now_ns, uint64_t holds_ns)
{
    return then_ns <= now_ns && now_ns - then_ns < holds_ns;
}

bool pin_registry_looked(int file, bool crowd, const struct profile_mask *allowed,
                         struct profile_mask *busy)
{
    const uint32_t words = pin_registry_words();
    struct {
        struct header header;
        struct look look;
        uint64_t bits[2 * PROFILE_MASK_PUS / WORD_BITS];
    } text;
    struct profile_mask asked = {0};
    const uint64_t now = profile_now_ns();
    const size_t bytes = words * sizeof(uint64_t);
    if (read_beginning(file, &text, (size_t)offset_of(words, 0)) < 0 || text.header.magic == 0) {
        return false;
    }
    memcpy(asked.word, text.bits, bytes);
    for (size_t w = 0; w < PROFILE_MASK_WORDS; w++) {
        if (allowed->word[w] & ~asked.word[w]) {
            return false;
        }
    }
    *busy = (struct profile_mask){0};
    if (text.look.ended_ns >= text.look.begun_ns &&
        is_younger(text.look.ended_ns, now, crowd ? LOOK_OF_CROWD_HOLDS_NS : LOOK_HOLDS_NS)) {
        memcpy(busy->word, text.bits + words, bytes);
        return true;
    }
    return crowd && is_younger(text.look.begun_ns, now, LOOK_OF_CROWD_HOLDS_NS);
}

void pin_registry_look(struct pin_registry *registry, uint64_t begun_ns,
                       const struct profile_mask *allowed, const struct profile_mask *busy)
{
    const struct profile_mask none = {0};
    size_t bytes = registry->words * sizeof(uint64_t);
    struct look look = {.begun_ns = begun_ns, .ended_ns = busy ? profile_now_ns() : 0};
    off_t offset = sizeof(struct header);
    pin_registry_write(registry->file, &look, sizeof look, offset);
    pin_registry_write(registry->file, allowed->word, bytes, offset + (off_t)sizeof look);
    pin_registry_write(registry->file, busy ? busy->word : none.word, bytes,
                       offset + (off_t)(sizeof look + bytes));
}
