/* Which PUs a user lets us use: a list, so many of each core, one kind of core. */
#ifndef SERVET_MAPPER_COMMAND_COMMON_OPTIONS_H
#define SERVET_MAPPER_COMMAND_COMMON_OPTIONS_H

#include <argp.h>

#include "mapper/formats/formats.h"
#include "profile/model.h"

struct map_limits {
    const struct profile_set *pus; /* PU numbers; NULL: all */
    uint32_t smt;                  /* most PUs of one core, the lowest first; 0: all */
    int kind; /* 0 is the most capable kind, MAP_KIND_LAST the least; < 0: all */
};

#define MAP_KIND_ANY (-1)
#define MAP_KIND_LAST 1000

/* The PU numbers that are left. 0; -EINVAL (a PU that the profile does not have, none is left, or
 * there is no such kind: the text says which); -ENOMEM. */
int map_allowed_pus(const struct servet_profile *profile, const struct map_limits *limits,
                    struct profile_set *out, struct servet_error *error);

/* Groups that cross each other, as a noisy measurement leaves them: neither inside the other nor
 * apart. */

/* Names the first two groups of the profile that cross, "L3 cache 0-1 and memory level 1 0,2,4,6".
 * The mapping is made all the same: each rule counts its own groups, pair by pair, and only the
 * short cut through nested groups is lost. 0: none cross (`text` is empty); 1: some do; -ENOMEM,
 * -EINVAL as map_workers(). */
int map_crossing_groups(const struct servet_profile *profile, char *text, size_t size,
                        struct servet_error *error);

/* The options that servet-map and servet-spmd have in common: which machine, and the language of a
 * mapping. */

struct common_machine {
    const char *profile, *topology; /* both NULL: this machine */
    struct profile_set cpuset;      /* empty: all */
};

/* --profile, --topology and --cpuset: an argp child whose input is a struct common_machine, zero at
 * first. */
extern const struct argp map_common_machine_argp;

/* After parsing: both --profile and --topology end the program as bad usage. */
void map_common_machine_check(const struct common_machine *machine);

/* The profile that was asked for. Without one that of this machine; where there is none, or it is
 * of another machine, one line says so and the topology is used. Ends the program when there is
 * nothing to be had (cli.h). */
struct servet_profile *map_common_machine_open(const struct common_machine *machine);

/* The format of that name; "help" prints all of them and ends the program, another name is bad
 * usage. */
const struct map_format *map_common_format(const char *name);

#endif
