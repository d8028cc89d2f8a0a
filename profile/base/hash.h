/* FNV-1a, 64 bits (Fowler, Noll and Vo; draft-eastlake-fnv): a name for a text, where an attacker
 * gains nothing from a collision. Inline, because the shim uses it too.
 *
 *     uint64_t hash = profile_hash_text(PROFILE_HASH_BEGIN, path);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PROFILE_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define PROFILE_HASH_PRIME UINT64_C(0x100000001b3)

/* `hash` continued by `size` bytes. */
static inline uint64_t profile_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ at[i]) * PROFILE_HASH_PRIME;
    }
    return hash;
}

/* `hash` continued by the text without its final 0. */
static inline uint64_t profile_hash_text(uint64_t hash, const char *text)
{
    return profile_hash_bytes(hash, text, strlen(text));
}
