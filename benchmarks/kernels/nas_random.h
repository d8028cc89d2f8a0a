/* The pseudorandom numbers of the NAS Parallel Benchmarks (RNR-94-007, Section 2.3): x(k+1) = 5^13
 * x(k) mod 2^46, numbers x(k) 2^-46 in (0, 1). 2^46 divides 2^64, so unsigned 64-bit products are
 * exact where it counts. */
#ifndef SERVET_BENCHMARKS_NAS_RANDOM_H
#define SERVET_BENCHMARKS_NAS_RANDOM_H

#include <stdint.h>

#ifndef NAS_MULTIPLIER /* the tests set a wrong one, to see the kernels refuse their results */
#define NAS_MULTIPLIER UINT64_C(1220703125) /* 5^13 */
#endif
#define NAS_MASK ((UINT64_C(1) << 46) - 1)

static inline double nas_next(uint64_t *state)
{
    *state = (*state * NAS_MULTIPLIER) & NAS_MASK;
    return (double)(int64_t)*state * 0x1p-46;
}

/* The state `steps` numbers after `state`. */
static inline uint64_t nas_jump(uint64_t state, uint64_t steps)
{
    for (uint64_t factor = NAS_MULTIPLIER; steps; steps >>= 1) {
        if (steps & 1) {
            state = (state * factor) & NAS_MASK;
        }
        factor = (factor * factor) & NAS_MASK;
    }
    return state;
}

#endif
