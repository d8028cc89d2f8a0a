/* Answers that a program keeps for the next ones of the same user, in the registry's file behind
 * its entries.
 *
 * Each record has one place, by the hash of its key; a newer one takes it. It is read and written
 * without the lock: half a record, and one that somebody else has altered, fails its checksum, and
 * then there is none. */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "preload/node/node.h"
#include "profile/base/hash.h"

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
