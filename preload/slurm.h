/* What Slurm says of the masks that it gave to the tasks of a step. */
#ifndef SERVET_PRELOAD_SLURM_H
#define SERVET_PRELOAD_SLURM_H

#include <stdbool.h>

#include "mask.h"

/* The PUs of all of the step's tasks on this node, from a binding in the form of SLURM_CPU_BIND_TYPE ("mask_cpu:" or
 * "map_cpu:") and SLURM_CPU_BIND_LIST ("0x3,0xc" or "0,2"). False, and `out` untouched, if it is none of these or
 * names no PU. */
bool pin_slurm_step_pus(const char *type, const char *list, struct pin_mask *out);

#endif
