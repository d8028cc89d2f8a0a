/* A condition is a key and a line of text in the profile: it held while the machine was measured
 * and may have bent the figures (load, stolen time, siblings at work, a budget). */
#ifndef SERVET_PROBES_RUN_CONDITIONS_H
#define SERVET_PROBES_RUN_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "probes/machine.h"
#include "profile/base/ticks.h"
#include "profile/model.h"

struct conditions_before {
    char load[32]; /* load average of the last minute, before any worker of ours ran; "" if
                      unreadable */
    struct profile_ticks measured, siblings;
    double settle_spread; /* between the last warm-up figures; < 0: no warm-up */
    bool settled;
    double suspended_s; /* since boot, before the first probe */
};

/* The `count` first PUs' ticks, summed over `pus`. */
struct profile_ticks probe_conditions_sum(const struct profile_ticks *ticks, size_t count,
                                          const struct profile_set *pus);

/* Before the first probe on this very machine: looks around, and keeps the first PU busy until its
 * frequency stands still (at most 0.3 s). 0 or -errno of the machine. */
int probe_conditions_before(struct machine *machine, const struct profile_class *declared,
                            struct conditions_before *out);

/* After the last: conditions load_average, warm_up, steal, smt_siblings, suspended, stood_still,
 * busy. 0 or -ENOMEM. */
int probe_conditions_after(const struct conditions_before *before, struct machine *machine,
                           const struct profile_class *declared, struct servet_profile *profile);

/* Where conditions are added, one after the other. */
struct conditions {
    struct servet_profile *profile;
    int rc; /* -ENOMEM: one of them could not be added */
};
void probe_conditions_add(struct conditions *to, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Did other programs run before or while it was measured, as its conditions say? */
bool probe_conditions_others_ran(const struct servet_profile *profile);

/* Probes whose figures are settled in the old profile and not in the new one, which was measured
 * while other programs ran. */
unsigned probe_conditions_loosened(const struct servet_profile *old,
                                   const struct servet_profile *profile);

/* Which figures of the profile a second run might not confirm, because their rounds lie more than a
 * fifth apart, the budget cut them short or left them out, or a virtual machine's PUs shared
 * caches otherwise than declared, and how to measure them again: "memory (spread 41 %), message
 * (cut short); measure again when nothing else runs and without --budget". Where
 * nothing else ran, waiting for that is no advice.
 * `left_out`: probes that the budget left no time for. False: none, and `text` is empty. */
bool probe_conditions_unsettled(const struct servet_profile *profile, unsigned left_out, char *text,
                                size_t size);

#endif
