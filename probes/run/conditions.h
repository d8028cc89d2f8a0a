/* What else the machine did while it was measured: time stolen by a hypervisor, siblings at work,
 * load. */
#ifndef SERVET_PROBES_RUN_CONDITIONS_H
#define SERVET_PROBES_RUN_CONDITIONS_H

#include "probes/machine.h"
#include "profile/model.h"

/* Clock ticks since boot of some PUs together. */
struct conditions_ticks {
    unsigned long long all, idle, stolen;
};

struct conditions_before {
    char load[32]; /* load average of the last minute, before any worker of ours ran; "" if
                      unreadable */
    struct conditions_ticks measured, siblings;
    double settle_spread; /* between the last warm-up figures; < 0: no warm-up */
    bool settled;
    double suspended_s; /* since boot, before the first probe */
};

/* Sums the ticks of `pus` in a text like /proc/stat. */
struct conditions_ticks probe_conditions_sum(const char *stat_text, const struct profile_set *pus);

/* Before the first probe on this very machine: looks around, and keeps the first PU busy until its
 * frequency stands still (at most 0.3 s). 0 or -errno of the machine. */
int probe_conditions_before(struct machine *machine, const struct profile_class *declared,
                            struct conditions_before *out);

/* After the last: conditions load_average, warm_up, steal, smt_siblings, suspended, stood_still,
 * busy. 0 or -ENOMEM. */
int probe_conditions_after(const struct conditions_before *before, struct machine *machine,
                           const struct profile_class *declared, struct servet_profile *profile);

/* What held while measuring, and might have bent the figures: recorded in the profile. */

/* Appends a condition; both texts are copied. 0 or -ENOMEM. */
int probe_conditions_add(struct servet_profile *profile, const char *key, const char *value);

/* Which figures of the profile a second run might not confirm, because their rounds lie more than a
 * fifth apart or the budget cut them short: "memory (spread 41 %), message (cut short)". False:
 * none, and `text` is empty. */
bool probe_conditions_unsettled(const struct servet_profile *profile, char *text, size_t size);

/* Does the CPU say that it is one of a virtual machine (x86)? */
bool probe_conditions_virtual_machine(void);

/* Governor, virtual machine, THP, SMT, microcode of this machine. Unreadable ones are left out. */
int probe_conditions_of_this_machine(struct servet_profile *profile);

#endif
