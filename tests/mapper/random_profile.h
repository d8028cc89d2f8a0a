/* Small machines as no vendor would build them: any nesting or none, gaps in the OS indices, SMT,
 * kinds, pairs. */
#pragma once

#include "mapper/map.h"
#include "profile/base/random.h"

/* A number from 0 to below - 1. */
static inline uint32_t random_number(struct random *random, uint32_t below)
{
    return (uint32_t)random_below(random, below);
}

/* The numbers from 0 on in any order. */
void random_order(struct random *random, uint32_t *numbers, uint32_t count);

/* `nested`: groups lie inside each other and there are no pairs, as on a well-measured machine. */
struct servet_profile *random_profile(struct random *random, bool nested);

/* Some PU numbers of the profile (and sometimes one that it does not have); at least `fewest`. */
struct profile_set random_pus(struct random *random, const struct servet_profile *profile,
                              size_t fewest);
