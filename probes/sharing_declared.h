/* What is declared of who shares a measured cache level: for pairs of which a measurement says nothing. */
#ifndef SERVET_PROBES_SHARING_DECLARED_H
#define SERVET_PROBES_SHARING_DECLARED_H

#include "probe_cache.h"

enum sharing_declaration { NOTHING_DECLARED, DECLARED_PRIVATE, DECLARED_SHARED };

/* The numbers that the profile gives the measured levels (result.h), as `pu` sees them; 0: nothing is declared of that
 * one. `declared` may be NULL. */
void sharing_declared_levels(const struct profile_class *declared, uint32_t pu, const struct probe_cache *caches,
                             uint32_t numbers[CACHE_LEVELS_MAX]);

/* Of the level of that number (0: none). */
enum sharing_declaration sharing_declared(const struct profile_class *declared, uint32_t number, uint32_t a,
                                          uint32_t b);

#endif
