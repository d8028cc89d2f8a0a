/* The places that servet-pin exports for the rank it becomes, for OpenMP runtimes and for the shim.
 *
 * A rank's region is exported as OMP_PLACES (one PU for each thread, in the order of the slots) and
 * OMP_PROC_BIND=close, and the rank starts on the whole region, so that a runtime counts its PUs
 * and no others. SERVET_RANK tells the shim that these two are not the user's choice, for which
 * rank they were made, and the mask that was there before, which children of the rank get back. As
 * soon as one of the variables is changed, or the process is another rank (mpirun inside a rank),
 * they count as the user's again. They go where a mask is narrowed behind
 * servet-pin, which is right.
 */
#pragma once

#include "preload/place/launcher.h"
#include "preload/place/plan.h"

/* The variable by which the user has placed OpenMP threads (OMP_PLACES and the like), NULL: none.
 * Exported places of any rank count too. */
const char *pin_users_places(void);

/* Sets OMP_PLACES, OMP_PROC_BIND and SERVET_RANK in the environment of this process, which may use
 * `before`. 0 or -ENOMEM. */
int pin_places_export(const struct pin_launcher *launcher, const struct profile_mask *before,
                      const struct pin_plan *plan);

/* Is the environment still what pin_places_export() made of it for this very rank, and `mask`, that
 * of the main thread at its start, what was set then (or the first place, with a runtime in the
 * process)? Then `mask` becomes the one from before. */
bool pin_places_read(const struct pin_launcher *launcher, bool has_runtime,
                     struct profile_mask *mask);
/* The PUs of OMP_PLACES in their order, at most `room`; returns how many. */
size_t pin_places_order(uint32_t *out, size_t room);

/* Takes what was exported from the environment if this process, which becomes another program, has
 * another mask by now. Allocates nothing and takes no lock. */
void pin_places_drop(const struct profile_mask *mask);
