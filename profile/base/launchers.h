/* How launchers tell a process which rank of its node it is, and how many there are: names of
 * variables in its environment. For the shim, which is such a process, and for `servet-show
 * --live`, which looks at one. */
#ifndef SERVET_PROFILE_BASE_LAUNCHERS_H
#define SERVET_PROFILE_BASE_LAUNCHERS_H

enum { PROFILE_OPEN_MPI, PROFILE_MVAPICH, PROFILE_HYDRA };

/* First match wins. Intel MPI and MVAPICH (hydra) set MPI_LOCALRANKID too. A size that no variable
 * tells is NULL. */
static const struct {
    const char *name, *rank, *size;
} profile_launchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MVAPICH", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"hydra", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"PALS", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    /* Without a local rank: right on one node, and on more if the ranks are dealt out in turn. */
    {"PMIx", "PMIX_RANK", NULL},
    {"PMI", "PMI_RANK", "PMI_SIZE"},
};

#define PROFILE_LAUNCHERS (sizeof profile_launchers / sizeof profile_launchers[0])

/* Before those, but for Open MPI's and hydra's, which start under Slurm, too. A batch script has
 * SLURM_LOCALID=0 as well without being a rank: only a step has the counts. */
#define PROFILE_SLURM_RANK "SLURM_LOCALID"
#define PROFILE_SLURM_COUNTS "SLURM_STEP_TASKS_PER_NODE"

#endif
