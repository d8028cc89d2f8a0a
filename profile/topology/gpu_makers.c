/* One row for each maker of GPUs: what tells them apart, and how processes are given them. */
#include "profile/topology/gpu_makers.h"

#include <stddef.h>

/* Level Zero, for Intel's, takes lists of commands where the others take copies. */
const struct profile_gpu_maker profile_gpu_makers[PROFILE_GPU_MAKERS] = {
    {.vendor = PROFILE_PCI_NVIDIA,
     .names = {"cuda", "nvml"},
     .copies = "cuda",
     .lists = {{"CUDA_VISIBLE_DEVICES"}}},
    {.vendor = PROFILE_PCI_AMD,
     .names = {"rsmi"},
     .copies = "hip",
     .lists = {{"ROCR_VISIBLE_DEVICES"},
               {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}}},
    {.vendor = PROFILE_PCI_INTEL,
     .displays = true,
     .names = {"ze"},
     .lists = {{"ZE_AFFINITY_MASK"}},
     .selector = "ONEAPI_DEVICE_SELECTOR"},
};

const struct profile_gpu_maker *profile_gpu_maker(uint32_t vendor)
{
    for (size_t i = 0; i < PROFILE_GPU_MAKERS; i++) {
        if (profile_gpu_makers[i].vendor == vendor) {
            return &profile_gpu_makers[i];
        }
    }
    return NULL;
}
