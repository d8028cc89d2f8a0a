/* CPU masks as the kernel keeps them. */
#include "profile/base/mask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/raw.h"

int pin_mask_get(pid_t tid, struct pin_mask *out)
{
    struct pin_mask mask = {0};
    long result = pin_raw(SYS_sched_getaffinity, tid, (long)sizeof mask, (long)&mask, 0, 0, 0);
    if (result < 0) {
        return (int)result;
    }
    *out = mask;
    return 0;
}

int pin_mask_set(pid_t tid, const struct pin_mask *mask)
{
    long result = pin_raw(SYS_sched_setaffinity, tid, (long)sizeof *mask, (long)mask, 0, 0, 0);
    return result < 0 ? (int)result : 0;
}

int pin_mask_set_pu(pid_t tid, uint32_t pu)
{
    if (pu >= PIN_MASK_PUS) {
        return -EINVAL;
    }
    size_t words = pu / PIN_MASK_WORD_BITS + 1;
    unsigned long word[words];
    memset(word, 0, words * sizeof *word);
    word[words - 1] = 1ul << (pu % PIN_MASK_WORD_BITS);
    long result =
        pin_raw(SYS_sched_setaffinity, tid, (long)(words * sizeof *word), (long)word, 0, 0, 0);
    return result < 0 ? (int)result : 0;
}

void pin_mask_all(struct pin_mask *mask)
{
    memset(mask, 0xff, sizeof *mask);
}

bool pin_mask_has(const struct pin_mask *mask, uint32_t pu)
{
    return pu < PIN_MASK_PUS &&
           (mask->word[pu / PIN_MASK_WORD_BITS] >> (pu % PIN_MASK_WORD_BITS) & 1ul);
}

void pin_mask_add(struct pin_mask *mask, uint32_t pu)
{
    if (pu < PIN_MASK_PUS) {
        mask->word[pu / PIN_MASK_WORD_BITS] |= 1ul << (pu % PIN_MASK_WORD_BITS);
    }
}

void pin_mask_and(struct pin_mask *mask, const struct pin_mask *other)
{
    for (size_t i = 0; i < PIN_MASK_WORDS; i++) {
        mask->word[i] &= other->word[i];
    }
}

bool pin_mask_equal(const struct pin_mask *a, const struct pin_mask *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

bool pin_mask_empty(const struct pin_mask *mask)
{
    return pin_mask_count(mask) == 0;
}

size_t pin_mask_count(const struct pin_mask *mask)
{
    size_t count = 0;
    for (size_t i = 0; i < PIN_MASK_WORDS; i++) {
        count += (size_t)__builtin_popcountl(mask->word[i]);
    }
    return count;
}

int pin_mask_to_set(const struct pin_mask *mask, struct profile_set *out)
{
    size_t count = pin_mask_count(mask), next = 0;
    uint32_t *ids = malloc((count ? count : 1) * sizeof *ids);
    if (!ids) {
        return -ENOMEM;
    }
    for (uint32_t pu = 0; pu < PIN_MASK_PUS; pu++) {
        if (pin_mask_has(mask, pu)) {
            ids[next++] = pu;
        }
    }
    int code = profile_set_from_array(ids, count, out);
    free(ids);
    return code;
}

void pin_mask_from_set(const struct profile_set *set, struct pin_mask *out)
{
    *out = (struct pin_mask){0};
    for (size_t i = 0; i < set->count; i++) {
        pin_mask_add(out, set->ids[i]);
    }
}

void pin_mask_format(const struct pin_mask *mask, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (uint32_t pu = 0; pu < PIN_MASK_PUS && used < size; pu++) {
        if (!pin_mask_has(mask, pu)) {
            continue;
        }
        uint32_t last = pu;
        while (pin_mask_has(mask, last + 1)) {
            last++;
        }
        const char *comma = used ? "," : "";
        int length = last > pu ? snprintf(buffer + used, size - used, "%s%u-%u", comma, pu, last)
                               : snprintf(buffer + used, size - used, "%s%u", comma, pu);
        used += length > 0 ? (size_t)length : 0;
        pu = last;
    }
}
