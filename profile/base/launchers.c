/* The launchers that are known, and how they count the ranks of a node. */
#include "profile/base/launchers.h"

#include <stdlib.h>
#include <string.h>

#include "profile/base/format_safe.h"

/* Name, rank, size, also, daemon, job; and what else there is. */
#define ROW(a, b, c, d, e, f, ...)                                                                 \
    {                                                                                              \
        .name = (a), .rank = (b), .size = (c), .also = (d), .daemon = (e), .job = (f), __VA_ARGS__ \
    }

/* First match wins: those that start inside a task of another one come first. */
static const struct profile_launcher launchers[] = {
    /* The user's word: servet-pin --local-rank, --local-size. */
    ROW("servet-pin", "SERVET_LOCAL_RANK", "SERVET_LOCAL_SIZE", "SERVET_LOCAL_SIZE", NULL, NULL,
        .workers = true),
    /* "torchrun (Elastic Launch)" of docs.pytorch.org; accelerate and Lightning start by it. */
    ROW("torchrun", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", NULL,
        "TORCHELASTIC_RUN_ID MASTER_PORT", .workers = true, .takes = true),
    ROW("torchrun", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "LOCAL_WORLD_SIZE", NULL, "MASTER_PORT",
        .workers = true, .takes = true, .common = true),
    /* deepspeed/launcher/launch.py */
    ROW("DeepSpeed", "LOCAL_RANK", "LOCAL_SIZE", "LOCAL_SIZE", NULL, "MASTER_PORT", .workers = true,
        .takes = true, .common = true),
    /* jsrun(1) of IBM's Job Step Manager; Spectrum MPI sets Open MPI's variables, too. */
    ROW("jsrun", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE", NULL, NULL,
        "PMIX_NAMESPACE"),
    /* mpirun(1), "Exported Environment Variables"; Open MPI 5 under PRRTE as well. */
    ROW("Open MPI", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL,
        "mpirun mpiexec orte prte oshrun", "PMIX_NAMESPACE",
        .bound = "OMPI_MCA_orte_bound_at_launch PRTE_MCA_prte_bound_at_launch",
        .asked =
            "OMPI_MCA_hwloc_base_binding_policy PRTE_MCA_hwloc_default_binding_policy "
            "OMPI_MCA_rmaps_base_mapping_policy=PE= PRTE_MCA_rmaps_default_mapping_policy=PE="),
    /* mpirun_rsh of MVAPICH2 (user guide). */
    ROW("MVAPICH", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", NULL, "mpispawn",
        NULL),
    /* MPICH, src/pm/hydra/proxy; Intel MPI's and MVAPICH's hydra set them, too. */
    ROW("hydra", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL, "hydra_", NULL),
    /* srun(1), "OUTPUT ENVIRONMENT VARIABLES". A batch script has SLURM_LOCALID=0 as well without
     * being a rank: only a step has the counts. */
    ROW("Slurm", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE",
        "slurmstepd srun", "SLURM_JOB_ID SLURM_STEP_ID", .holds = PROFILE_SIZE_BY_NODE),
    /* flux-environment(7); PMI_RANK and PMI_SIZE, which it sets, too, are the whole job's. */
    ROW("Flux", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE", NULL, "flux-shell", "FLUX_JOB_ID",
        .holds = PROFILE_SIZE_OF_JOB),
    /* mpiexec(1) of HPE's PALS, and Cray's PMI below it. */
    ROW("PALS", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PALS_LOCAL_SIZE", NULL, "PALS_APID"),
    ROW("PALS", "PALS_LOCAL_RANKID", "PMI_LOCAL_SIZE", NULL, NULL, "PALS_APID"),
    ROW("PMI", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE", "PMI_LOCAL_SIZE", NULL,
        "SLURM_JOB_ID SLURM_STEP_ID"),
    /* Without a local rank: right on one node, and on more if the ranks are dealt out in turn. */
    ROW("PMIx", "PMIX_RANK", NULL, NULL, NULL, "PMIX_NAMESPACE"),
    ROW("PMI", "PMI_RANK", "PMI_SIZE", NULL, NULL, "SLURM_JOB_ID SLURM_STEP_ID"),
};

#define LAUNCHERS (sizeof launchers / sizeof launchers[0])

bool profile_is_daemon(const char *name)
{
    char beginning[16];
    for (size_t i = 0; i < LAUNCHERS; i++) {
        for (const char *at = launchers[i].daemon;
             profile_next_word(&at, beginning, sizeof beginning);) {
            if (strncmp(name, beginning, strlen(beginning)) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* -- numbers -- */

/* One environment. */
struct source {
    profile_variable *variable;
    const void *of;
};

static bool parse_number(const char *text, uint32_t *out)
{
    char *end;
    if (!text || *text < '0' || *text > '9') {
        return false;
    }
    unsigned long value = strtoul(text, &end, 10);
    if (*end || value >= PROFILE_MOST_RANKS) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

static bool read_variable(const struct source *from, const char *name, uint32_t *out)
{
    return parse_number(from->variable(from->of, name), out);
}

/* Entry `node` of Slurm's "2(x3),1": tasks on each node. */
static bool entry_of_counts(const char *text, uint32_t node, uint32_t *out)
{
    while (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long tasks = strtoul(text, &end, 10), times = 1;
        if (strncmp(end, "(x", 2) == 0) {
            times = strtoul(end + 2, &end, 10);
            end += *end == ')';
        }
        if (node < times && tasks <= PROFILE_MOST_RANKS) {
            *out = (uint32_t)tasks;
            return true;
        }
        node -= (uint32_t)times;
        text = *end == ',' ? end + 1 : end;
    }
    return false;
}

/* Flux tells the ranks and the nodes of the whole job. Where one is no multiple of the other, the
 * first nodes have one rank more (RFC 34, the map of a job without --taskmap). */
static bool size_of_part(const struct source *from, uint32_t all, uint32_t local_rank,
                         uint32_t *out)
{
    uint32_t nodes = 1, rank = 0;
    if (read_variable(from, "FLUX_JOB_NNODES", &nodes) && (nodes == 0 || nodes > all)) {
        return false;
    }
    const uint32_t each = all / nodes, fuller = all % nodes;
    bool known = read_variable(from, "FLUX_TASK_RANK", &rank) && rank >= local_rank;
    *out = each + (fuller && (!known || rank - local_rank < fuller * (each + 1)));
    return true;
}

/* The user's two may name the variable that has the number. */
static bool read_said(const struct source *from, const char *name, uint32_t *out)
{
    const char *text = from->variable(from->of, name);
    const bool names = text && strncmp(name, "SERVET_", 7) == 0 && (*text < '0' || *text > '9');
    return names ? read_variable(from, text, out) : parse_number(text, out);
}

static bool read_size(const struct source *from, const struct profile_launcher *row,
                      uint32_t local_rank, uint32_t *out)
{
    uint32_t node = 0, all;
    const char *counts;
    switch (row->holds) {
    case PROFILE_SIZE_BY_NODE:
        read_variable(from, "SLURM_NODEID", &node);
        counts = from->variable(from->of, row->size);
        return counts && entry_of_counts(counts, node, out);
    case PROFILE_SIZE_OF_JOB:
        return read_variable(from, row->size, &all) && size_of_part(from, all, local_rank, out);
    default:
        return row->size && read_said(from, row->size, out);
    }
}

static bool is_set(const struct source *from, const char *name)
{
    const char *value = name ? from->variable(from->of, name) : NULL;
    return value && *value;
}

static bool read_row(const struct source *from, const struct profile_launcher *row,
                     struct profile_local_rank *out)
{
    struct profile_local_rank found = {.row = row};
    if ((row->also && !is_set(from, row->also)) || !read_said(from, row->rank, &found.rank)) {
        return false;
    }
    const bool told = read_size(from, row, found.rank, &found.size);
    if (!told && row->holds == PROFILE_SIZE_BY_NODE) {
        return false;
    }
    found.contradicts = told ? found.size <= found.rank : is_set(from, row->size);
    if (found.size <= found.rank) {
        found.size = found.rank + 1;
    }
    *out = found;
    return true;
}

bool profile_launcher_find(profile_variable *variable, const void *of,
                           struct profile_local_rank *out)
{
    const struct source from = {variable, of};
    struct profile_local_rank found, first = {0};
    for (size_t i = 0; i < LAUNCHERS && (!first.row || first.row->common); i++) {
        if (read_row(&from, &launchers[i], &found) &&
            (!first.row || (found.rank == first.rank && found.size == first.size))) {
            first = found;
        }
    }
    if (first.row) {
        *out = first;
    }
    return first.row;
}
