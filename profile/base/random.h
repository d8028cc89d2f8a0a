/* Random numbers that are the same everywhere for the same seed (SplitMix64, Steele et al., OOPSLA
 * 2014). */
#pragma once

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { RANDOM_ITEM_MAX = 32 }; /* bytes of an item that is shuffled */

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* An integer in [0, limit), limit > 0: the upper half of the product of 128 bits (its bias of
 * limit / 2^64 does not matter here), by halves of 32 bits, for processors that have no more. */
static inline uint64_t random_below(struct random *random, uint64_t limit)
{
    uint64_t drawn = random_next(random);
    uint64_t drawn_high = drawn >> 32, drawn_low = (uint32_t)drawn;
    uint64_t limit_high = limit >> 32, limit_low = (uint32_t)limit;
    uint64_t upper = drawn_high * limit_low;
    uint64_t middle = (drawn_low * limit_low >> 32) + (uint32_t)upper + drawn_low * limit_high;
    return drawn_high * limit_high + (upper >> 32) + (middle >> 32);
}

/* In [0, 1). */
static inline double random_unit(struct random *random)
{
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

/* All orders of the items, of `size` bytes each, are equally likely (Fisher and Yates). */
static inline void random_shuffle(struct random *random, void *items, size_t count, size_t size)
{
    unsigned char swap[RANDOM_ITEM_MAX], *at = items;
    assert(size <= sizeof swap);
    for (size_t i = count; i > 1; i--) {
        unsigned char *last = at + (i - 1) * size, *other = at + random_below(random, i) * size;
        memcpy(swap, last, size);
        memmove(last, other, size); /* they may be one */
        memcpy(other, swap, size);
    }
}

/* Normal with mean 0 and deviation 1 (Box-Muller, one of the two). */
static inline double random_normal(struct random *random)
{
    double u = 1 - random_unit(random), v = random_unit(random);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}
