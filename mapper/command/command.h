/* The interface of mapper/command/ to its own files and to the rest of the room. */
#pragma once

#include <argp.h>
#include <jansson.h>
#include <stdio.h>

#include "mapper/formats/formats.h"
#include "mapper/weights/weights.h"
#include "mapper/worth/worth.h"
#include "profile/model.h"

/* Where nothing else is said, these end the program when something is wrong (cli.h). */

/* -- common_options -- */

/* Ends the program as bad usage where that is `wrong`. */
void map_refuse_if(bool wrong, const char *text);

/* The nodes that a job will run on, before it starts: from a file or from the batch system. */

/* PU numbers of the nodes that the file lists, one to a line as launchers write them: "node1",
 * "node1 slots=4", "node1:4"; the name may be a hostlist (node[1-4]); comments after '#', empty
 * lines and repeats do not matter. 0; -errno of the file; -EINVAL (a name that the profile does not
 * have, with file and line; no node; not the profile of a cluster); -ENOMEM. */
int map_job_from_file(const struct servet_profile *profile, const char *path,
                      struct profile_set *pus, struct servet_error *error);

/* The same of the Slurm job that this process is part of ($SLURM_JOB_NODELIST). -EINVAL also
 * outside of a job. */
int map_job_from_slurm(const struct servet_profile *profile, struct profile_set *pus,
                       struct servet_error *error);

/* Which PUs a user lets us use: a list, so many of each core, one kind of core. */

struct map_limits {
    const struct profile_set *pus; /* PU numbers; NULL: all */
    uint32_t smt;                  /* most PUs of one core, the lowest first; 0: all */
    int kind; /* 0 is the most capable kind, MAP_KIND_LAST the least; < 0: all */
};

#define MAP_KIND_ANY (-1)
#define MAP_KIND_LAST 1000

/* The PU numbers that are left. A PU that the profile does not have, none that is left, and no such
 * kind are bad usage. */
struct profile_set map_allowed_pus(const struct servet_profile *profile,
                                   const struct map_limits *limits);

/* The options that servet-map and servet-spmd have in common: which machine, and the language of a
 * mapping. */

struct common_machine {
    const char *profile, *topology; /* both NULL: this machine */
    struct profile_set cpuset; /* empty: all; of this machine those that this process may use */
    double quota; /* of this machine: CPUs that control groups let run at a time; 0: all */
};

/* --profile, --topology and --cpuset: an argp child whose input is a struct common_machine, zero at
 * first. */
extern const struct argp map_common_machine_argp;

/* After parsing: both --profile and --topology end the program as bad usage. */
void map_common_machine_check(const struct common_machine *machine);

/* The profile that was asked for. Without one that of this machine, and an empty machine->cpuset
 * gets the PUs that this process may use; where there is none, or the shim would not use it (of
 * another machine, of other PUs), one line says so and the topology is used. Ends the program when
 * there is nothing to be had (cli.h). */
struct servet_profile *map_common_machine_open(struct common_machine *machine);

/* How many workers the machine's quota lets run at a time; SIZE_MAX: as many as there are PUs. */
size_t map_common_most(const struct common_machine *machine);

/* The format of that name; "help" prints all of them and ends the program, another name is bad
 * usage. */
const struct map_format *map_common_format(const char *name);

/* -- compare -- */

/* Predicts the figures of this mapping, beside those of compact and scatter. */

/* Writes the table. `allowed`: the PUs that compact and scatter may use. */
void map_compare(FILE *out, const struct map_mapping *plan, const struct profile_set *allowed);

/* Two orders that are widely used, to compare with: compact (fill one group after the other) and
 * scatter (go round the widest groups first). Both take one PU of every core before any second
 * one. */
enum map_known_order { MAP_COMPACT, MAP_SCATTER, MAP_KNOWN_ORDERS };

/* All leaves of the view, in that order. */
void map_order_known(struct map_view *view, enum map_known_order order, uint32_t *leaves);

/* -- explain -- */

/* Why a mapping is what it is: the table of the 2012 paper (iteration x rule x PU). */

/* Widest and longest table that anybody reads; larger machines get a summary. */
#define MAP_EXPLAIN_MOST_PUS 64
#define MAP_EXPLAIN_MOST_WORKERS 64

/* Writes the row, for a struct map_explainer whose context is a FILE. A taken PU shows "-"; the
 * chosen one has a "*". */
void map_explain_row(void *out, const struct map_row *row);

/* How many workers every node, package, memory domain, cache, layer group and core got. */
void map_explain_summary(FILE *out, const struct map_mapping *plan);

/* -- worth -- */

/* The rows of --worth, in words or as JSON. `allowed`: PUs that may be used. */
void map_worth_table(FILE *out, const struct servet_profile *profile,
                     const struct profile_set *allowed, bool json);

/* The table of --suggest, in words or as JSON. */
void map_suggest_table(FILE *out, const struct servet_profile *profile,
                       const struct map_suggest_request *request, bool json);

/* The places of all nodes that are worth having, an array to be freed. */
uint32_t *map_worth_places(const struct servet_profile *profile, const struct profile_set *allowed,
                           size_t *count);
