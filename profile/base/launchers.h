/* How launchers tell a process which rank of its node it is, and how many there are: names of
 * variables in its environment. For the shim, which is such a process, and for `servet-show
 * --live`, which looks at one. */
#ifndef SERVET_PROFILE_BASE_LAUNCHERS_H
#define SERVET_PROFILE_BASE_LAUNCHERS_H

#include <stdbool.h>

/* The variable of the size holds the number, Slurm's counts of all nodes ("2(x3),1"), or
 * Flux's ranks of the whole job. */
enum profile_local_size { PROFILE_SIZE_HERE, PROFILE_SIZE_BY_NODE, PROFILE_SIZE_OF_JOB };

struct profile_launcher {
    const char *name, *rank, *size; /* size NULL: no variable tells */
    const char *also;               /* NULL; else without it these two are not this launcher's */
    enum profile_local_size holds;
    bool workers; /* processes without MPI_Init: each has an equal part of the node, where those
                     that it starts live, too */
    bool takes;   /* worker k takes GPU k of those that all of them see */
    bool common;  /* scripts under other launchers set the two as well: if those say the same
                     numbers, it is them */
};

/* First match wins: those that start inside a task of another one come first. */
static const struct profile_launcher profile_launchers[] = {
    /* The user's word: servet-pin --local-rank, --local-size. */
    {.name = "servet-pin",
     .rank = "SERVET_LOCAL_RANK",
     .size = "SERVET_LOCAL_SIZE",
     .also = "SERVET_LOCAL_SIZE",
     .workers = true},
    /* "torchrun (Elastic Launch)" of docs.pytorch.org; accelerate and Lightning start by it. */
    {.name = "torchrun",
     .rank = "LOCAL_RANK",
     .size = "LOCAL_WORLD_SIZE",
     .also = "TORCHELASTIC_RUN_ID",
     .workers = true,
     .takes = true},
    {.name = "torchrun",
     .rank = "LOCAL_RANK",
     .size = "LOCAL_WORLD_SIZE",
     .also = "LOCAL_WORLD_SIZE",
     .workers = true,
     .takes = true,
     .common = true},
    /* deepspeed/launcher/launch.py */
    {.name = "DeepSpeed",
     .rank = "LOCAL_RANK",
     .size = "LOCAL_SIZE",
     .also = "LOCAL_SIZE",
     .workers = true,
     .takes = true,
     .common = true},
    /* jsrun(1) of IBM's Job Step Manager; Spectrum MPI sets Open MPI's variables, too. */
    {.name = "jsrun", .rank = "JSM_NAMESPACE_LOCAL_RANK", .size = "JSM_NAMESPACE_LOCAL_SIZE"},
    /* mpirun(1), "Exported Environment Variables"; Open MPI 5 under PRRTE as well. */
    {.name = "Open MPI",
     .rank = "OMPI_COMM_WORLD_LOCAL_RANK",
     .size = "OMPI_COMM_WORLD_LOCAL_SIZE"},
    /* mpirun_rsh of MVAPICH2 (user guide). */
    {.name = "MVAPICH", .rank = "MV2_COMM_WORLD_LOCAL_RANK", .size = "MV2_COMM_WORLD_LOCAL_SIZE"},
    /* MPICH, src/pm/hydra/proxy; Intel MPI's and MVAPICH's hydra set them, too. */
    {.name = "hydra", .rank = "MPI_LOCALRANKID", .size = "MPI_LOCALNRANKS"},
    /* srun(1), "OUTPUT ENVIRONMENT VARIABLES". A batch script has SLURM_LOCALID=0 as well without
     * being a rank: only a step has the counts. */
    {.name = "Slurm",
     .rank = "SLURM_LOCALID",
     .size = "SLURM_STEP_TASKS_PER_NODE",
     .also = "SLURM_STEP_TASKS_PER_NODE",
     .holds = PROFILE_SIZE_BY_NODE},
    /* flux-environment(7); PMI_RANK and PMI_SIZE, which it sets, too, are the whole job's. */
    {.name = "Flux",
     .rank = "FLUX_TASK_LOCAL_ID",
     .size = "FLUX_JOB_SIZE",
     .holds = PROFILE_SIZE_OF_JOB},
    /* mpiexec(1) of HPE's PALS, and Cray's PMI below it. */
    {.name = "PALS",
     .rank = "PALS_LOCAL_RANKID",
     .size = "PALS_LOCAL_SIZE",
     .also = "PALS_LOCAL_SIZE"},
    {.name = "PALS", .rank = "PALS_LOCAL_RANKID", .size = "PMI_LOCAL_SIZE"},
    {.name = "PMI", .rank = "PMI_LOCAL_RANK", .size = "PMI_LOCAL_SIZE", .also = "PMI_LOCAL_SIZE"},
    /* Without a local rank: right on one node, and on more if the ranks are dealt out in turn. */
    {.name = "PMIx", .rank = "PMIX_RANK"},
    {.name = "PMI", .rank = "PMI_RANK", .size = "PMI_SIZE"},
};

/* Variables by which users place the threads of OpenMP runtimes. */
static const char *const profile_users_places[] = {"OMP_PLACES", "OMP_PROC_BIND",
                                                   "GOMP_CPU_AFFINITY", "KMP_AFFINITY", NULL};

#define PROFILE_LAUNCHERS (sizeof profile_launchers / sizeof profile_launchers[0])

#endif
