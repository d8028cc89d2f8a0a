/* The steps of servet-pin, each with a file of its own, and what they hand on. A step that finds
 * bad usage ends the command. */
#pragma once

#include <stdbool.h>

#include "preload/command/devices.h"
#include "preload/place/launcher.h"
#include "preload/place/options.h"

struct pin_command {
    /* Asked for by the line. */
    bool tuned, no_quota, variables, dry_run;
    struct pin_device_wish devices;
    const char *values[PIN_OPTION_COUNT]; /* of the variables; NULL: not asked for */
    char **program;                       /* its name and arguments */
    /* As the environment has it, with that. */
    struct pin_options options;
    struct pin_launcher launcher;
    bool may_place; /* no filter kills for the calls that placing takes */
};

/* One rank of each node does. */
static inline bool pin_command_speaks(const struct pin_command *command)
{
    return command->launcher.node_rank == 0;
}
/* With -v, too. */
static inline bool pin_command_explains(const struct pin_command *command)
{
    return command->options.verbose && pin_command_speaks(command);
}

/* -- environment.c -- */

void pin_command_set(const char *name, const char *value);
/* Sets the variables that the line asks for, and reads all of them. */
void pin_command_set_variables(const struct pin_command *command);
void pin_command_read_environment(struct pin_command *command);
/* Variables that are misspelt are reported, and taken away: the shim would report them again. */
void pin_command_refuse_misspelt(const struct pin_command *command);

/* -- threads.c -- */

/* The ranks are the launcher's, threads the user's where OMP_NUM_THREADS is set; the rest is as it
 * was fastest with these. False: the fastest was not to place. */
bool pin_command_use_tuned(struct pin_command *command);

/* Sets OMP_NUM_THREADS where a quota of CPU time lets fewer threads run than there are PUs, and the
 * user has chosen no number. */
void pin_command_keep_quota(const struct pin_command *command);

/* -- preload.c -- */

/* Puts the libraries that the program needs before what LD_PRELOAD holds. */
void pin_command_preload(const struct pin_command *command);
/* Where exec would find the program: false, and nothing is known of it, when nowhere. */
bool pin_command_find_program(const struct pin_command *command, char *path, size_t size);

/* -- rank.c -- */

/* If the environment says that this process is a rank, and the user has not placed OpenMP threads
 * (or SERVET_FORCE is on): makes the rank's plan as the shim in it will, exports its places
 * (place/places.h), and moves this process onto the plan's PUs. Else, and where that fails (one
 * line on stderr), nothing is changed: the program runs under the shim alone. Returns why not;
 * NULL: reported, or nothing to report. */
const char *pin_command_place(struct pin_command *command);
