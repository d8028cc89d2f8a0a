/* The options that servet-map and servet-spmd have in common: which machine, and the language of a mapping. */
#ifndef SERVET_MAPPER_COMMON_OPTIONS_H
#define SERVET_MAPPER_COMMON_OPTIONS_H

#include <argp.h>

#include "formats.h"

struct common_machine {
    const char *profile, *topology; /* both NULL: this machine */
    struct profile_set cpuset;      /* empty: all */
};

/* --profile, --topology and --cpuset: an argp child whose input is a struct common_machine, zero at first. */
extern const struct argp common_machine_argp;

/* After parsing: both --profile and --topology end the program as bad usage. */
void common_machine_check(const struct common_machine *machine);

/* The profile that was asked for. Without one that of this machine; where there is none, or it is of another machine,
 * one line says so and the topology is used. Ends the program when there is nothing to be had (cli.h). */
struct servet_profile *common_machine_open(const struct common_machine *machine);

/* The format of that name; "help" prints all of them and ends the program, another name is bad usage. */
const struct map_format *common_format(const char *name);

#endif
