/* CPU masks as the kernel keeps them. */
#include "profile/base/mask.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/syscall.h"
#include "profile/scope.h"

int profile_mask_get(pid_t tid, struct profile_mask *out)
{
    long bytes = profile_syscall(SYS_sched_getaffinity, tid, (long)sizeof *out, (long)out, 0, 0, 0);
    if (bytes < 0) {
        return (int)bytes;
    }
    memset((char *)out + bytes, 0, sizeof *out - (size_t)bytes);
    return 0;
}

int profile_mask_set(pid_t tid, const struct profile_mask *mask)
{
    long result =
        profile_syscall(SYS_sched_setaffinity, tid, (long)sizeof *mask, (long)mask, 0, 0, 0);
    return result < 0 ? (int)result : 0;
}

int profile_mask_set_pu(pid_t tid, uint32_t pu)
{
    if (pu >= PROFILE_MASK_PUS) {
        return -EINVAL;
    }
    size_t words = pu / PROFILE_MASK_WORD_BITS + 1;
    unsigned long word[words];
    memset(word, 0, words * sizeof *word);
    word[words - 1] = 1ul << (pu % PROFILE_MASK_WORD_BITS);
    long result = profile_syscall(SYS_sched_setaffinity, tid, (long)(words * sizeof *word),
                                  (long)word, 0, 0, 0);
    return result < 0 ? (int)result : 0;
}

void profile_mask_all(struct profile_mask *mask)
{
    memset(mask, 0xff, sizeof *mask);
}

bool profile_mask_has(const struct profile_mask *mask, uint32_t pu)
{
    return pu < PROFILE_MASK_PUS &&
           (mask->word[pu / PROFILE_MASK_WORD_BITS] >> (pu % PROFILE_MASK_WORD_BITS) & 1ul);
}

void profile_mask_add(struct profile_mask *mask, uint32_t pu)
{
    if (pu < PROFILE_MASK_PUS) {
        mask->word[pu / PROFILE_MASK_WORD_BITS] |= 1ul << (pu % PROFILE_MASK_WORD_BITS);
    }
}

uint32_t profile_mask_next(const struct profile_mask *mask, uint32_t pu)
{
    size_t i = pu / PROFILE_MASK_WORD_BITS;
    unsigned long word =
        i < PROFILE_MASK_WORDS ? mask->word[i] & ~0ul << pu % PROFILE_MASK_WORD_BITS : 0;
    while (word == 0 && ++i < PROFILE_MASK_WORDS) {
        word = mask->word[i];
    }
    return word == 0 ? PROFILE_MASK_PUS
                     : (uint32_t)(i * PROFILE_MASK_WORD_BITS) + (uint32_t)__builtin_ctzl(word);
}

void profile_mask_remove(struct profile_mask *mask, uint32_t pu)
{
    if (pu < PROFILE_MASK_PUS) {
        mask->word[pu / PROFILE_MASK_WORD_BITS] &= ~(1ul << (pu % PROFILE_MASK_WORD_BITS));
    }
}

bool profile_mask_equal(const struct profile_mask *a, const struct profile_mask *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

bool profile_mask_empty(const struct profile_mask *mask)
{
    return profile_mask_count(mask) == 0;
}

size_t profile_mask_count(const struct profile_mask *mask)
{
    size_t count = 0;
    for (size_t i = 0; i < PROFILE_MASK_WORDS; i++) {
        if (mask->word[i]) { /* mostly there is nothing: PUs are counted without an instruction */
            count += (size_t)__builtin_popcountl(mask->word[i]);
        }
    }
    return count;
}

void profile_mask_unite(struct profile_mask *mask, const struct profile_mask *other)
{
    for (size_t i = 0; i < PROFILE_MASK_WORDS; i++) {
        mask->word[i] |= other->word[i];
    }
}

void profile_mask_intersect(struct profile_mask *mask, const struct profile_mask *other)
{
    for (size_t i = 0; i < PROFILE_MASK_WORDS; i++) {
        mask->word[i] &= other->word[i];
    }
}

void profile_mask_subtract(struct profile_mask *mask, const struct profile_mask *other)
{
    for (size_t i = 0; i < PROFILE_MASK_WORDS; i++) {
        mask->word[i] &= ~other->word[i];
    }
}

bool profile_mask_within(const struct profile_mask *mask, const struct profile_mask *other)
{
    struct profile_mask beyond = *mask;
    profile_mask_subtract(&beyond, other);
    return profile_mask_empty(&beyond);
}

bool profile_mask_parse(const char *list, struct profile_mask *out)
{
    *out = (struct profile_mask){0};
    for (;; list++) {
        char *end;
        const unsigned long first = strtoul(list, &end, 10);
        const bool is_range = *end == '-' && isdigit((unsigned char)end[1]);
        const unsigned long last = is_range ? strtoul(end + 1, &end, 10) : first;
        if (!isdigit((unsigned char)*list) || last < first) {
            return false;
        }
        for (unsigned long pu = first; pu <= last && pu < PROFILE_MASK_PUS; pu++) {
            profile_mask_add(out, (uint32_t)pu);
        }
        list = end;
        if (*list != ',') {
            return *list == '\0' || *list == '\n' || *list == ' ';
        }
    }
}

int profile_mask_to_set(const struct profile_mask *mask, struct profile_set *out)
{
    size_t count = profile_mask_count(mask), next = 0;
    FREED uint32_t *ids = malloc((count ? count : 1) * sizeof *ids);
    if (!ids) {
        return -ENOMEM;
    }
    PROFILE_MASK_EACH(mask, pu)
    {
        ids[next++] = pu;
    }
    return profile_set_from_array(ids, count, out);
}

void profile_mask_from_set(const struct profile_set *set, struct profile_mask *out)
{
    *out = (struct profile_mask){0};
    for (size_t i = 0; i < set->count; i++) {
        profile_mask_add(out, set->ids[i]);
    }
}

void profile_mask_format(const struct profile_mask *mask, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (uint32_t pu = profile_mask_next(mask, 0); pu < PROFILE_MASK_PUS && used < size;
         pu = profile_mask_next(mask, pu + 1)) {
        uint32_t last = pu;
        while (profile_mask_has(mask, last + 1)) {
            last++;
        }
        const char *comma = used ? "," : "";
        int length = last > pu ? snprintf(buffer + used, size - used, "%s%u-%u", comma, pu, last)
                               : snprintf(buffer + used, size - used, "%s%u", comma, pu);
        used += length > 0 ? (size_t)length : 0;
        pu = last;
    }
}
