/* What held while measuring, and might have bent the figures: recorded in the profile. */
#ifndef SERVET_PROBES_CONDITIONS_H
#define SERVET_PROBES_CONDITIONS_H

#include "model.h"

/* Appends a condition; both texts are copied. 0 or -ENOMEM. */
int conditions_add(struct servet_profile *profile, const char *key, const char *value);

/* Does the CPU say that it is one of a virtual machine (x86)? */
bool conditions_virtual_machine(void);

/* Governor, virtual machine, THP, SMT, microcode of this machine. Unreadable ones are left out. */
int conditions_of_this_machine(struct servet_profile *profile);

#endif
