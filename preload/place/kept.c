/* Plans that are kept for the next program. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "preload/place/place.h"
#include "profile/base/hash.h"

/* A file that is changed twice within one tick of the system's clock (10 ms at most; some file
 * systems tell whole seconds) looks the same both times, so of one that has just changed nothing is
 * kept. */
#define SETTLED_S 2

#define ONLINE "/sys/devices/system/cpu/online"

enum {
    BUILD,
    OPTIONS,
    THREADS,
    RANK,
    RANKS,
    HOST,
    ONLINE_TEXT,
    ONLINE_DEVICE, /* which /sys it is: a container may have one of its own */
    PATH,
    DEVICE,
    INODE,
    SIZE,
    CHANGED_S,
    CHANGED_NS,
    MODIFIED_S,
    MODIFIED_NS,
    BASIS_WORDS
};
_Static_assert(BASIS_WORDS == PIN_BASIS_WORDS, "all words are named");

/* -- what a plan depends on -- */

/* Opened as it will be read: who may not read it any more is told so, and a network's file system
 * asks then whether it has changed. */
static bool describe_file(const char *path, uint64_t *word)
{
    struct stat about;
    struct timespec now;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool known = file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    if (file >= 0) {
        close(file);
    }
    if (!known || clock_gettime(CLOCK_REALTIME, &now) < 0 ||
        about.st_ctim.tv_sec > now.tv_sec - SETTLED_S) {
        return false;
    }
    word[PATH] = profile_hash_text(PROFILE_HASH_BEGIN, path);
    word[DEVICE] = (uint64_t)about.st_dev;
    word[INODE] = (uint64_t)about.st_ino;
    word[SIZE] = (uint64_t)about.st_size;
    word[CHANGED_S] = (uint64_t)about.st_ctim.tv_sec;
    word[CHANGED_NS] = (uint64_t)about.st_ctim.tv_nsec;
    word[MODIFIED_S] = (uint64_t)about.st_mtim.tv_sec;
    word[MODIFIED_NS] = (uint64_t)about.st_mtim.tv_nsec;
    return true;
}

/* The declared topology stays what it is while the system runs, but for the PUs that are online. */
static bool describe_system(uint64_t *word)
{
    struct utsname names;
    struct stat about;
    char text[1024];
    int file = open(ONLINE, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text);
    bool known = length > 0 && (size_t)length < sizeof text && fstat(file, &about) == 0 &&
                 uname(&names) == 0;
    if (file >= 0) {
        close(file);
    }
    if (known) {
        word[ONLINE_TEXT] = profile_hash_bytes(PROFILE_HASH_BEGIN, text, (size_t)length);
        word[ONLINE_DEVICE] = (uint64_t)about.st_dev;
        word[HOST] = profile_hash_text(PROFILE_HASH_BEGIN, names.nodename);
    }
    return known;
}

bool pin_kept_basis(const struct pin_options *options, const struct pin_launcher *launcher,
                    uint32_t threads, const char *path, struct pin_basis *out)
{
    *out = (struct pin_basis){0};
    out->word[BUILD] = pin_build_here();
    out->word[OPTIONS] = (uint64_t)options->mem_prior | (uint64_t)options->comm_prior << 1 |
                         (uint64_t)options->paper << 2;
    out->word[THREADS] = threads;
    out->word[RANK] = launcher->local_rank;
    out->word[RANKS] = launcher->local_size;
    return out->word[BUILD] != 0 && describe_system(out->word) &&
           (!path[0] || describe_file(path, out->word));
}

/* -- keys and values -- */

/* A key: the basis, the PUs allowed, those taken. A value: what is said here, the mask of the PUs
 * held, and the list. Masks are as long as the kernel's, with room for as many PUs in the list. */
struct value {
    uint64_t count;
    struct pin_nodes nodes;
    char source[sizeof((struct pin_plan *)NULL)->source];
    uint64_t held_and_pus[];
};

static size_t value_bytes(size_t words, size_t pus)
{
    return sizeof(struct value) + words * sizeof(uint64_t) + pus * sizeof(uint16_t);
}

static uint16_t *pus_of(struct value *value)
{
    return (uint16_t *)(value->held_and_pus + pin_registry_words());
}

/* The key, and room for the value behind it, both in what is to be freed as `key`. False: no
 * memory. */
static bool make_record(const struct pin_basis *basis, const struct pin_around *around,
                        struct pin_kept *out)
{
    const size_t words = pin_registry_words(), bytes = words * sizeof(uint64_t),
                 key_bytes = sizeof *basis + 2 * bytes, size = value_bytes(words, words * 64);
    char *key = malloc(key_bytes + size);
    if (key) {
        memcpy(key, basis, sizeof *basis);
        memcpy(key + sizeof *basis, around->allowed->word, bytes);
        memcpy(key + sizeof *basis + bytes, around->taken->word, bytes);
        *out = (struct pin_kept){
            .key = key, .key_bytes = key_bytes, .value = key + key_bytes, .size = size};
    }
    return key != NULL;
}

/* Nothing of it is believed that would lead a thread where it may not go. */
static bool read_value(struct value *value, size_t bytes, const struct profile_mask *allowed,
                       struct pin_plan *plan)
{
    const size_t words = pin_registry_words(), count = (size_t)value->count;
    const uint16_t *pus = pus_of(value);
    if (bytes < sizeof *value || count == 0 || count > PROFILE_MASK_PUS ||
        bytes != value_bytes(words, count) || value->source[sizeof value->source - 1] != '\0') {
        return false;
    }
    struct profile_mask held = {0}, own = {0};
    memcpy(held.word, value->held_and_pus, words * sizeof(uint64_t));
    for (size_t w = 0; w < PROFILE_MASK_WORDS; w++) {
        if (held.word[w] & ~allowed->word[w]) {
            return false;
        }
    }
    uint32_t *list = malloc(count * sizeof *list);
    for (size_t i = 0; list && i < count; i++) {
        if (!profile_mask_has(allowed, pus[i])) {
            free(list);
            return false;
        }
        list[i] = pus[i];
        profile_mask_add(&own, pus[i]);
    }
    if (list) {
        plan->pus = list;
        plan->count = count;
        plan->held = held;
        plan->own = own;
        plan->nodes = value->nodes;
        memcpy(plan->source, value->source, sizeof plan->source);
    }
    return list != NULL;
}

/* PUs beyond the kernel's masks, which are never here, would not be told apart. */
static bool is_here(const struct profile_mask *allowed)
{
    return profile_mask_next(allowed, pin_registry_words() * 64) == PROFILE_MASK_PUS;
}

bool pin_kept_recall(const struct pin_basis *basis, const struct pin_around *around,
                     const struct pin_claims *claims, struct pin_plan *plan)
{
    struct pin_kept what;
    if (!is_here(around->allowed) || !make_record(basis, around, &what)) {
        return false;
    }
    const size_t bytes = pin_claims_recall(claims, &what);
    const bool found = read_value(what.value, bytes, around->allowed, plan);
    free(what.key);
    return found;
}

void pin_kept_keep(const struct pin_basis *basis, const struct pin_around *around,
                   struct pin_claims *claims, const struct pin_plan *plan)
{
    const size_t words = pin_registry_words();
    struct pin_kept what;
    if (plan->count > words * 64 || !is_here(around->allowed) ||
        !make_record(basis, around, &what)) {
        return;
    }
    struct value *value = what.value;
    uint16_t *pus = pus_of(value);
    what.size = value_bytes(words, plan->count);
    memset(value, 0, what.size);
    value->count = plan->count;
    value->nodes = plan->nodes;
    snprintf(value->source, sizeof value->source, "%s", plan->source);
    memcpy(value->held_and_pus, plan->held.word, words * sizeof(uint64_t));
    for (size_t i = 0; i < plan->count; i++) {
        pus[i] = (uint16_t)plan->pus[i];
    }
    pin_claims_keep(claims, &what);
    free(what.key);
}
