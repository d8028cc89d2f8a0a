/* The command servet-probe, for any machine that can be opened. */
#ifndef SERVET_PROBES_RUN_COMMAND_H
#define SERVET_PROBES_RUN_COMMAND_H

#include "probes/machine.h"

/* Opens the machine to be measured, on `pus` alone unless they are empty; `seed` drives what is
 * drawn. -EINVAL, -EPERM, -ENOENT, -EACCES and -EISDIR are bad input. */
typedef int probe_open_machine(const struct profile_set *pus, uint64_t seed,
                               const volatile sig_atomic_t *cancel, struct machine *out,
                               struct servet_error *error);

/* The exit status; bad input ends the program. */
int probe_command(int argc, char **argv, probe_open_machine *open);

#endif
