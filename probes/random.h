/* Random numbers that are the same everywhere for the same seed (SplitMix64, Steele et al., OOPSLA 2014). */
#ifndef SERVET_PROBES_RANDOM_H
#define SERVET_PROBES_RANDOM_H

#include <stdint.h>

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

/* An integer in [0, limit), limit > 0 (multiply-shift; its bias of limit / 2^64 does not matter here). */
static inline uint64_t random_below(struct random *random, uint64_t limit)
{
    return (uint64_t)(((unsigned __int128)random_next(random) * limit) >> 64);
}

/* In [0, 1). */
static inline double random_unit(struct random *random)
{
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

/* Normal with mean 0 and deviation 1 (Box-Muller, one of the two). */
double random_normal(struct random *random);

#endif
