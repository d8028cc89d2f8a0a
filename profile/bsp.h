/* Questions to the BSP parameters of a profile. */
#ifndef SERVET_PROFILE_BSP_H
#define SERVET_PROFILE_BSP_H

#include "model.h"

/* The parameters for `processors`, of `backend` (NULL: of the first one that covers this number): those measured, or
 * between two measured numbers on a straight line. False outside what was measured. An unknown l is T(0), its lower
 * bound. out->backend and the note belong to the profile. */
bool profile_bsp_at(const struct servet_profile *profile, const char *backend, uint32_t processors,
                    struct profile_bsp *out);

#endif
