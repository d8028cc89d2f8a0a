/* servet-pin --gpus and --nics: the devices of the rank that this process becomes. */
#ifndef SERVET_PRELOAD_COMMAND_DEVICES_H
#define SERVET_PRELOAD_COMMAND_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/place/launcher.h"
#include "preload/place/options.h"

struct pin_device_wish {
    uint32_t gpus; /* MAP_ALL_GPUS, so many, or 0: none are asked for */
    bool exclusive, nics;
};

/* Narrows this process to the PUs beside the rank's devices, unless the user has chosen PUs, and
 * tells the runtimes which devices they are, by variables that neither the user nor the batch
 * system has set. Where one of these says the GPUs, the rank keeps its PUs, too. Devices that are
 * not there end the program as bad usage. `launcher` says afterwards whose choice the PUs are. */
void pin_devices_apply(const struct pin_device_wish *wish, const struct pin_options *options,
                       struct pin_launcher *launcher);

#endif
