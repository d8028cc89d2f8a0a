/* What the operating system declares of the machine that is measured. */
#ifndef SERVET_PROBES_OWN_TOPOLOGY_H
#define SERVET_PROBES_OWN_TOPOLOGY_H

#include "model.h"

/* As profile_from_hwloc(NULL, …), but of this machine: HWLOC_XMLFILE, HWLOC_SYNTHETIC and HWLOC_FSROOT, which put
 * another one in its place, are taken out of the environment unless HWLOC_THISSYSTEM says that they speak of this one.
 * Not while other threads read the environment. */
int own_topology(struct servet_profile **out, struct servet_error *error);

#endif
