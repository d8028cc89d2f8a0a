/* Who holds which PUs of this node. */
#include "preload/node/node.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/raw.h"

/* Also the layout's version. A file of an older one is begun anew; one that is no registry at all
 * is somebody's text, and is left alone. */
#define MAGIC 0x7365727665743036u        /* "servet06" */
#define MAGIC_FAMILY 0x7365727665740000u /* "servet" and two digits */
#define MAGIC_FAMILY_MASK 0xffffffffffff0000u

/* Who is gone is looked for in /proc at most that often; between, signal 0 must do. */
#define CHECK_EVERY_NS 1000000000u
/* So many by one program, in turn: others wait meanwhile. */
#define CHECKED_AT_ONCE 32u
/* More than those get the signal at most that often: of 500 programs that come at once each would
 * ask for all. A job is killed and the next one started in more time than that. */
#define SIGNAL_EVERY_NS 10000000u
/* How often a file may be removed under our hands: each time another program has ended. */
#define MOST_REMOVALS 100

/* The file: the header, a look for strangers, and the front: who is here, and what is counted of
 * their entries, which follow. A process keeps its place until it ends; then another one may have
 * it. Of 500 programs that come at once each reads the front, and none the 500 entries. */
struct header {
    uint64_t magic, words;
};

/* Followed by the PUs that were looked at, and those of them that were busy. */
struct look {
    uint64_t begun_ns, ended_ns;
};

/* Followed by two counts of each PU (jobs that hold it, processes that use it) and by the pids, one
 * of each place, 0: free. They are counted again where other pids are there than were counted: who
 * leaves only takes his pid away. */
struct front {
    uint64_t counted;          /* processes */
    uint64_t checked_ns, next; /* who is to be looked after next */
    uint64_t signalled_ns;
};
enum { JOBS, USERS, COUNTS };

/* The masks of an entry, in this order. They are as long as the kernel's are on this machine, or
 * 500 entries would be a megabyte and a half. */
enum { TAKEN, HELD, USED, MASKS };
#define WORD_BITS 64u

struct pin_registry_entry {
    uint64_t entered, job; /* pin_registry_now() */
    uint64_t shared;       /* 1 + a PU that another process uses or has used at the same time */
    uint64_t bits[];       /* also in programs of 32 bits: they share the node with the others */
};

static size_t entry_bytes(uint32_t words)
{
    return sizeof(struct pin_registry_entry) + MASKS * words * sizeof(uint64_t);
}

static size_t beginning_bytes(uint32_t words)
{
    return sizeof(struct header) + sizeof(struct look) + 2 * words * sizeof(uint64_t);
}

/* Up to the pids. */
static size_t counts_bytes(uint32_t words)
{
    return sizeof(struct front) + COUNTS * words * WORD_BITS * sizeof(uint16_t);
}

static off_t offset_of_pid(uint32_t words, uint32_t place)
{
    return (off_t)(beginning_bytes(words) + counts_bytes(words) + place * sizeof(uint32_t));
}

static off_t offset_of(uint32_t words, uint32_t place)
{
    return offset_of_pid(words, PIN_REGISTRY_ENTRIES) + (off_t)(place * entry_bytes(words));
}

off_t pin_registry_end(void)
{
    return offset_of(pin_registry_words(), PIN_REGISTRY_ENTRIES);
}

static struct front *front_of(const struct pin_registry *registry)
{
    return (struct front *)(void *)(registry->bytes + beginning_bytes(registry->words));
}

/* One of each PU below 64 x words. */
static uint16_t *counts_of(const struct pin_registry *registry, int which)
{
    return (uint16_t *)(front_of(registry) + 1) + (size_t)which * registry->words * WORD_BITS;
}

static uint32_t *pids_of(const struct pin_registry *registry)
{
    return (uint32_t *)(void *)(registry->bytes + offset_of_pid(registry->words, 0));
}

/* This process's own is kept behind the pids; of the others, only where they have been read. */
static struct pin_registry_entry *entry_at(const struct pin_registry *registry, uint32_t place)
{
    const char *at = place == registry->own
                         ? registry->bytes + offset_of(registry->words, 0)
                         : registry->entries + place * entry_bytes(registry->words);
    return (struct pin_registry_entry *)(uintptr_t)at;
}

static struct pin_registry_entry *own_entry(const struct pin_registry *registry)
{
    return registry->own == PIN_REGISTRY_NO_PLACE ? NULL : entry_at(registry, registry->own);
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

/* False: it is there already, or no PU of this machine. */
static bool add(const struct pin_registry *registry, struct pin_registry_entry *entry, int mask,
                uint32_t pu)
{
    if (pu / WORD_BITS >= registry->words || has(registry, entry, mask, pu)) {
        return false;
    }
    mask_of(registry, entry, mask)[pu / WORD_BITS] |= UINT64_C(1) << (pu % WORD_BITS);
    return true;
}

static bool write_held(int file, const void *bytes, size_t count, off_t offset)
{
    return pwrite(file, bytes, count, offset) == (ssize_t)count;
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
    if (header->magic != MAGIC || header->words != pin_registry_words()) {
        memset(bytes, 0, size);
    }
    return 0;
}

/* -- who is here -- */

/* Reads the entries of the others, too. False: there is no memory for them, or there are none. */
static bool read_entries(struct pin_registry *registry)
{
    const size_t bytes = registry->places * entry_bytes(registry->words);
    if (registry->entries || bytes == 0) {
        return bytes > 0;
    }
    registry->entries = calloc(1, bytes); /* what the file lacks is zeros */
    return registry->entries &&
           pread(registry->file, registry->entries, bytes, offset_of(registry->words, 0)) >= 0;
}

/* The PUs that an entry holds, without those that an entry of its job before it holds, too. */
static uint64_t held_first(const struct pin_registry *registry, uint32_t place, uint32_t word)
{
    struct pin_registry_entry *entry = entry_at(registry, place);
    uint64_t held = mask_of(registry, entry, HELD)[word];
    for (uint32_t i = 0; held && !(entry->job & PIN_JOB_OF_ONE_PROCESS) && i < place; i++) {
        struct pin_registry_entry *before = entry_at(registry, i);
        if (pids_of(registry)[i] != 0 && before->job == entry->job) {
            held &= ~mask_of(registry, before, HELD)[word];
        }
    }
    return held;
}

static void count_word(uint64_t bits, uint16_t *counts)
{
    for (; bits; bits &= bits - 1) {
        counts[__builtin_ctzll(bits)]++;
    }
}

static void count_anew(struct pin_registry *registry)
{
    if (registry->count > 0 && !read_entries(registry)) {
        return; /* the next one will */
    }
    memset(counts_of(registry, JOBS), 0, counts_bytes(registry->words) - sizeof(struct front));
    for (uint32_t i = 0; i < registry->places; i++) {
        for (uint32_t w = 0; pids_of(registry)[i] != 0 && w < registry->words; w++) {
            count_word(held_first(registry, i, w), counts_of(registry, JOBS) + w * WORD_BITS);
            count_word(mask_of(registry, entry_at(registry, i), USED)[w],
                       counts_of(registry, USERS) + w * WORD_BITS);
        }
    }
    front_of(registry)->counted = registry->count;
}

static void free_place(struct pin_registry *registry, uint32_t place)
{
    uint32_t *pid = &pids_of(registry)[place];
    *pid = 0;
    registry->count--;
    pin_registry_write(registry->file, pid, sizeof *pid, offset_of_pid(registry->words, place));
}

/* Frees the places of processes that are gone. */
static void look_after(struct pin_registry *registry)
{
    struct front *front = front_of(registry);
    const uint64_t now = profile_now_ns();
    const uint32_t places = registry->places;
    /* also when that lies ahead */
    const bool thoroughly = now - front->checked_ns > CHECK_EVERY_NS && read_entries(registry),
               all = places <= CHECKED_AT_ONCE || now - front->signalled_ns > SIGNAL_EVERY_NS;
    const uint32_t looks = places < CHECKED_AT_ONCE ? places : CHECKED_AT_ONCE;
    front->checked_ns = thoroughly ? now : front->checked_ns;
    front->signalled_ns = all ? now : front->signalled_ns;
    for (uint32_t i = 0; (all || thoroughly) && i < places; i++) {
        const uint32_t place = (uint32_t)((front->next + i) % places),
                       pid = pids_of(registry)[place];
        const bool closely = thoroughly && i < looks;
        if (pid != 0 && (all || closely) &&
            !pin_registry_lives(pid, closely ? &entry_at(registry, place)->entered : NULL)) {
            free_place(registry, place);
        }
    }
    front->next = thoroughly ? (front->next + looks) % places : front->next;
    if (thoroughly || front->counted != registry->count) {
        count_anew(registry); /* now and then also what somebody has altered */
    }
    registry->looked_after = all || thoroughly;
}

/* Leaves the pids, also of processes that are gone. -EINVAL, -ENOMEM, -errno. */
static int read_front(struct pin_registry *registry)
{
    const uint32_t words = registry->words = pin_registry_words();
    const size_t bytes = (size_t)offset_of(words, 0), entry = entry_bytes(words);
    registry->bytes = malloc(bytes + entry);
    int code = registry->bytes ? read_beginning(registry->file, registry->bytes, bytes) : -ENOMEM;
    const uint32_t own = (uint32_t)getpid();
    for (uint32_t place = 0; code == 0 && place < PIN_REGISTRY_ENTRIES; place++) {
        const uint32_t pid = pids_of(registry)[place];
        registry->count += pid != 0;
        registry->places = pid != 0 ? place + 1 : registry->places;
        registry->own = pid == own ? place : registry->own;
    }
    if (code == 0 && registry->own != PIN_REGISTRY_NO_PLACE) {
        char *mine = registry->bytes + bytes;
        memset(mine, 0, entry);
        code = pread(registry->file, mine, entry, offset_of(words, registry->own)) < 0 ? -errno : 0;
    }
    return code;
}

int pin_registry_begin(int file, struct pin_registry *out)
{
    struct pin_registry registry = {.file = file, .own = PIN_REGISTRY_NO_PLACE};
    int code = pin_registry_lock(file);
    code = code < 0 ? code : read_front(&registry);
    registry.is_new = code == 0 && ((struct header *)(void *)registry.bytes)->magic == 0;
    if (registry.is_new && ftruncate(file, 0) < 0) {
        code = -errno;
    }
    if (code < 0) {
        close(file);
        free(registry.bytes);
    } else {
        look_after(&registry);
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

/* The pid last: should a write fail (memory of /dev/shm used up, ulimit -f), or this process be
 * killed meanwhile, nobody sees half an entry. */
static void write_back(const struct pin_registry *registry)
{
    const struct header header = {.magic = MAGIC, .words = registry->words};
    const uint32_t words = registry->words, own = registry->own;
    const int file = registry->file;
    struct pin_signals before;
    pin_signals_hold(&before);
    const bool enters = registry->changed && own != PIN_REGISTRY_NO_PLACE;
    if ((!registry->is_new || write_held(file, &header, sizeof header, 0)) &&
        (!enters ||
         write_held(file, own_entry(registry), entry_bytes(words), offset_of(words, own))) &&
        write_held(file, front_of(registry), counts_bytes(words), (off_t)beginning_bytes(words)) &&
        enters) {
        (void)write_held(file, &pids_of(registry)[own], sizeof(uint32_t),
                         offset_of_pid(words, own));
    }
    pin_signals_release(&before);
}

void pin_registry_close(struct pin_registry *registry)
{
    if (registry->changed || registry->looked_after || registry->is_new) {
        write_back(registry);
    }
    close(registry->file);
    free(registry->bytes);
    free(registry->entries);
    *registry = (struct pin_registry){.file = -1, .own = PIN_REGISTRY_NO_PLACE};
}

/* -- what they hold -- */

/* The first of the job; one that no launcher has made is this process. */
static struct pin_registry_entry *entry_of_job(struct pin_registry *registry, uint64_t job)
{
    struct pin_registry_entry *own = own_entry(registry);
    if ((job & PIN_JOB_OF_ONE_PROCESS) || !read_entries(registry)) {
        return own && own->job == job ? own : NULL;
    }
    for (uint32_t i = 0; i < registry->places; i++) {
        if (pids_of(registry)[i] != 0 && entry_at(registry, i)->job == job) {
            return entry_at(registry, i);
        }
    }
    return NULL;
}

/* Does a process of the job hold it? */
static bool job_holds(struct pin_registry *registry, uint64_t job, uint32_t pu)
{
    struct pin_registry_entry *own = own_entry(registry);
    if (own && own->job == job && has(registry, own, HELD, pu)) {
        return true;
    }
    const bool others = !(job & PIN_JOB_OF_ONE_PROCESS) && read_entries(registry);
    for (uint32_t i = 0; others && i < registry->places; i++) {
        struct pin_registry_entry *entry = entry_at(registry, i);
        if (pids_of(registry)[i] != 0 && entry->job == job && has(registry, entry, HELD, pu)) {
            return true;
        }
    }
    return false;
}

bool pin_registry_knows(struct pin_registry *registry, uint64_t job)
{
    return entry_of_job(registry, job) != NULL;
}

void pin_registry_taken(struct pin_registry *registry, uint64_t job,
                        const struct profile_mask *allowed, struct profile_mask *taken)
{
    struct pin_registry_entry *first = entry_of_job(registry, job);
    const uint16_t *jobs = counts_of(registry, JOBS);
    const uint32_t pus = registry->words * WORD_BITS;
    uint32_t least = UINT32_MAX;
    *taken = (struct profile_mask){0};
    if (first) {
        memcpy(taken->word, mask_of(registry, first, TAKEN), registry->words * sizeof(uint64_t));
        return;
    }
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
}

/* In place of an older entry of this process. 0, -ENOSPC. */
static int take_place(struct pin_registry *registry)
{
    uint32_t *pid = pids_of(registry), place = 0;
    if (registry->own != PIN_REGISTRY_NO_PLACE) {
        pid[registry->own] = 0; /* the file's stays until the new entry is there */
        registry->count--;
        count_anew(registry);
        pid[registry->own] = (uint32_t)getpid();
        registry->count++;
        return 0;
    }
    while (place < PIN_REGISTRY_ENTRIES && pid[place] != 0) {
        place++;
    }
    if (place == PIN_REGISTRY_ENTRIES) {
        return -ENOSPC;
    }
    pid[place] = (uint32_t)getpid();
    registry->places += place == registry->places;
    registry->count++;
    registry->own = place;
    return 0;
}

int pin_registry_enter(struct pin_registry *registry, uint64_t job,
                       const struct profile_mask *taken, const struct profile_mask *held)
{
    const size_t bytes = registry->words * sizeof(uint64_t);
    int rc = take_place(registry);
    if (rc < 0) {
        return rc;
    }
    struct pin_registry_entry *entry = own_entry(registry);
    memset(entry, 0, entry_bytes(registry->words));
    entry->entered = pin_registry_now();
    entry->job = job;
    memcpy(mask_of(registry, entry, TAKEN), taken->word, bytes);
    PROFILE_MASK_EACH(held, pu)
    {
        const bool known = job_holds(registry, job, pu);
        if (add(registry, entry, HELD, pu) && !known) {
            counts_of(registry, JOBS)[pu]++;
        }
    }
    front_of(registry)->counted = registry->count;
    registry->changed = true;
    return 0;
}

bool pin_registry_claim(struct pin_registry *registry, uint64_t job, uint32_t pu)
{
    struct pin_registry_entry *own = own_entry(registry);
    if (pu / WORD_BITS >= registry->words) {
        return true;
    }
    uint16_t *jobs = &counts_of(registry, JOBS)[pu];
    const bool known = job_holds(registry, job, pu);
    if (*jobs > known) {
        return false;
    }
    if (own && add(registry, own, HELD, pu)) {
        *jobs = (uint16_t)(*jobs + !known);
        registry->changed = true;
    }
    return true;
}

/* Says in the entries of the others that they share a PU: the rest of them is those processes'. */
static void tell_others(struct pin_registry *registry, uint32_t pu)
{
    const uint64_t shared = 1 + (uint64_t)pu;
    for (uint32_t i = 0; read_entries(registry) && i < registry->places; i++) {
        struct pin_registry_entry *other = entry_at(registry, i);
        if (i != registry->own && pids_of(registry)[i] != 0 && other->shared == 0 &&
            has(registry, other, USED, pu)) { /* one PU is enough to know */
            other->shared = shared;
            pin_registry_write(registry->file, &shared, sizeof shared,
                               offset_of(registry->words, i) +
                                   (off_t)offsetof(struct pin_registry_entry, shared));
        }
    }
}

void pin_registry_use(struct pin_registry *registry, uint32_t pu)
{
    struct pin_registry_entry *entry = own_entry(registry);
    if (!entry || !add(registry, entry, USED, pu)) {
        return;
    }
    registry->changed = true;
    const unsigned others = counts_of(registry, USERS)[pu]++;
    if (others > 0) {
        entry->shared = 1 + (uint64_t)pu;
    }
    if (others == 1) { /* where there are more, the second has told the first */
        tell_others(registry, pu);
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
    const uint32_t words = pin_registry_words();
    uint32_t pid;
    int32_t shared = -1;
    int file = pin_registry_file(path, false);
    if (file < 0) {
        return shared;
    }
    if (pread(file, &pid, sizeof pid, offset_of_pid(words, place)) == sizeof pid &&
        pid == (uint32_t)getpid()) {
        if (pread(file, &entry, sizeof entry, offset_of(words, place)) == sizeof entry) {
            shared = shared_of(&entry);
        }
        pid = 0;
        pin_registry_write(file, &pid, sizeof pid, offset_of_pid(words, place));
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
    if (read_beginning(file, &text, beginning_bytes(words)) < 0 || text.header.magic == 0) {
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
