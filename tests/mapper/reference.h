/* The weight algorithm written down as map.h says it, pair by pair and without any structure. */
#pragma once

#include "mapper/map.h"

#define REFERENCE_MOST_PUS 128

/* PU numbers, weights and workers of every PU of the profile after mapping; `out` as
 * map_workers(). */
void reference_map(const struct servet_profile *profile, const struct map_request *request,
                   uint32_t *out);
