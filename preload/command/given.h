/* Which GPUs the variables of the user, of the batch system or of the launcher mean for this
 * process. */
#ifndef SERVET_PRELOAD_COMMAND_GIVEN_H
#define SERVET_PRELOAD_COMMAND_GIVEN_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/place/launcher.h"
#include "profile/model.h"

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

#endif
