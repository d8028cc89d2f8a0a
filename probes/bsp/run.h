/* servet-probe --bsp: its options, and one run of the BSP probe over backends and numbers of
 * processors. */
#ifndef SERVET_PROBES_BSP_RUN_H
#define SERVET_PROBES_BSP_RUN_H

#include <argp.h>

#include "probes/machine.h"
#include "probes/run/progress.h"

enum { BSP_BACKEND_THREADS = 1, BSP_BACKEND_MPI = 2 };

struct bsp_options {
    bool wanted;
    struct profile_set processors; /* empty: powers of two and divisors of the number of PUs */
    uint32_t h_low, h_high, h_step, runs; /* step 0: as the probe chooses */
    unsigned backends;                    /* 0: threads, and MPI where there is one */
    const char *plot;                     /* folder, or NULL */
    const char *tuned_by;                 /* an option that means nothing without --bsp, or NULL */
};

/* An argp child whose input is a struct bsp_options; defaults are set by it. */
extern const struct argp probe_bsp_argp;

/* After parsing: what makes no sense on that machine ends the program as bad usage. */
void probe_bsp_options_check(const struct bsp_options *options, const struct machine *machine);

/* The numbers of processors that will be measured, ascending. 0 or -ENOMEM. */
int probe_bsp_processor_counts(const struct bsp_options *options, uint32_t pus,
                               struct profile_set *out);

/* The profile that --bsp alone adds to: the one in the file `path` if there is one and it is of
 * this machine (-ESTALE and others: it is not, and must not be overwritten), else what the machine
 * declares. */
int probe_bsp_base_profile(struct machine *machine, const char *path, struct servet_profile **out,
                           struct servet_error *error);
/* The BSP entries of the profile in the file `path`, if there is one of the same machine, go over
 * to `profile`. */
void probe_bsp_keep(const char *path, struct servet_profile *profile);

/* Measures and stores into `profile`; plots if asked for. `mpi` false: not even where it could be
 * had. */
int probe_bsp_run(const struct bsp_options *options, struct machine *native, bool mpi,
                  uint64_t seed, struct progress *progress, struct servet_profile *profile,
                  struct servet_error *error);

#endif
