/* The places that servet-pin exports for the rank it becomes, for OpenMP runtimes and for the shim.
 *
 * A rank's region is exported as OMP_PLACES (one PU for each thread, in the order of the slots) and
 * OMP_PROC_BIND=close, and the rank starts on the whole region, so that a runtime counts its PUs
 * and no others. SERVET_RANK tells the shim that these two are not the user's choice, for which
 * rank they were made, and the mask that was there before: from that the shim makes the same plan,
 * and it is the mask that children of the rank get back. As soon as one of the variables is
 * changed, or the process is another rank (mpirun inside a rank), they count as the user's again.
 */
#ifndef SERVET_PRELOAD_PLACE_PLACES_H
#define SERVET_PRELOAD_PLACE_PLACES_H

#include "preload/place/launcher.h"
#include "preload/place/plan.h"

/* The variable by which the user has placed OpenMP threads (OMP_PLACES and the like), NULL: none.
 * Exported places of any rank count too. */
const char *pin_users_places(void);

/* Sets OMP_PLACES, OMP_PROC_BIND and SERVET_RANK in the environment of this process, which may use
 * `before`. 0 or -ENOMEM. */
int pin_places_export(const struct pin_launcher *launcher, const struct profile_mask *before,
                      const struct pin_plan *plan);

/* Is the environment still what pin_places_export() made of it for this very rank? Then `before`
 * is set. */
bool pin_places_read(const struct pin_launcher *launcher, struct profile_mask *before);

#endif
