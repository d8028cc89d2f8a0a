/* servet-pin --gpus and --nics: the devices of the rank that this process becomes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/place/launcher.h"
#include "preload/place/options.h"
#include "profile/model.h"

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

/* -- given.c: which GPUs the variables of the user, of the batch system or of the launcher mean for
 * this process -- */

struct pin_gpus {
    const struct profile_device **list;
    size_t count;
    bool uncounted; /* the runtime's order is not known: numbers mean nothing */
};

struct pin_given {
    struct pin_gpus own; /* none: no variable speaks of them */
    struct pin_gpus job; /* those of all ranks here */
    size_t shares;       /* so many ranks have each of them */
    size_t share;        /* which of these this process is */
};

/* `root`: of /dev, /proc and /sys. 0; -ENOENT (a variable names a GPU that is not there, or may not
 * be opened: the text names it). */
int pin_given_read(const struct profile_class *of, const char *root,
                   const struct pin_launcher *launcher, struct pin_given *out,
                   struct servet_error *error);
void pin_given_free(struct pin_given *given);
