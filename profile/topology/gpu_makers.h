/* The makers of GPUs: a new one is a row here, its count of GPUs in gpus.c, and its way to see
 * which of them a process may open in preload/command/given.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profile/model.h"

enum { PROFILE_GPU_MAKERS = 3, PROFILE_GPU_NAMES = 2, PROFILE_GPU_LISTS = 2 };

struct profile_gpu_maker {
    uint32_t vendor; /* by PCI */
    bool displays;   /* its accelerators of other classes are no GPUs */
    /* Beginnings of the names that runtimes give, the one that computes first; NULL: no more. The
     * number behind is that of the runtime, which may be told to use this device and no other. */
    const char *names[PROFILE_GPU_NAMES];
    const char *copies; /* its library in servet-devices; NULL: none that copies as the others do */
    /* Variables that list GPUs, each list in the numbers of the one before; of one list the first
     * variable that is set. */
    const char *lists[PROFILE_GPU_LISTS][3];
    const char *selector; /* another one that chooses GPUs, in words of its own; NULL: none */
};

extern const struct profile_gpu_maker profile_gpu_makers[PROFILE_GPU_MAKERS];

/* By PCI; NULL: none of them. */
const struct profile_gpu_maker *profile_gpu_maker(uint32_t vendor);
