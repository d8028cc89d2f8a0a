/* What the launcher of a parallel program says in the environment. */
#include "launcher.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slurm.h"

/* How many generations the launcher's daemon may be away (wrappers such as servet-pin, time or a shell script). */
#define MOST_GENERATIONS 8

static const char slurm_name[] = "Slurm";

/* First match wins. Intel MPI and MVAPICH (hydra) set MPI_LOCALRANKID too. A size that no variable tells is NULL. */
static const struct {
    const char *name, *rank, *size;
} dialects[] = {
    {"Open MPI", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MVAPICH", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"hydra", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"PALS", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    /* Without a local rank: right on one node, and on more if the ranks are dealt out in turn. */
    {"PMIx", "PMIX_RANK", NULL},
    {"PMI", "PMI_RANK", "PMI_SIZE"},
};

static bool read_number(const char *name, uint32_t *out)
{
    const char *text = name ? getenv(name) : NULL;
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    unsigned long value = strtoul(text, &end, 10);
    if (*end || value > INT32_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
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
        if (node < times && tasks <= INT32_MAX) {
            *out = (uint32_t)tasks;
            return true;
        }
        node -= (uint32_t)times;
        text = *end == ',' ? end + 1 : end;
    }
    return false;
}

/* A batch script has SLURM_LOCALID=0 as well without being a rank: only a step has SLURM_STEP_TASKS_PER_NODE. */
static bool read_slurm(struct pin_launcher *out)
{
    uint32_t node = 0;
    const char *counts = getenv("SLURM_STEP_TASKS_PER_NODE");
    if (!counts || !read_number("SLURM_LOCALID", &out->local_rank))
        return false;
    read_number("SLURM_NODEID", &node);
    if (!entry_of_counts(counts, node, &out->local_size))
        return false;
    out->name = slurm_name;
    return true;
}

static bool read_dialect(struct pin_launcher *out)
{
    for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++) {
        if (!read_number(dialects[i].rank, &out->local_rank))
            continue;
        if (!read_number(dialects[i].size, &out->local_size))
            out->local_size = out->local_rank + 1;
        out->name = dialects[i].name;
        return true;
    }
    return false;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static enum pin_binding who_bound(bool slurm, bool rebind)
{
    /* Open MPI hands --bind-to down as the parameter's value, and a default binding only as the fact. */
    if (is_set("OMPI_MCA_hwloc_base_binding_policy") || is_set("PRTE_MCA_hwloc_default_binding_policy")) {
        const char *policy = getenv("OMPI_MCA_hwloc_base_binding_policy");
        return policy && strcmp(policy, "none") == 0 ? PIN_SHARED_MASK : PIN_USERS_CHOICE;
    }
    if (is_set("OMPI_MCA_orte_bound_at_launch") || is_set("PRTE_MCA_prte_bound_at_launch"))
        return PIN_LAUNCHERS_CHOICE;
    if (is_set("HYDRA_USER_PROVIDED_BINDING"))
        return PIN_USERS_CHOICE;
    /* Slurm's variable looks the same whether the user or Slurm chose; the plugin knows. Without it, what Slurm bound
     * stays. */
    const char *slurm_binding = slurm ? getenv("SLURM_CPU_BIND_TYPE") : NULL;
    if (slurm_binding && *slurm_binding && strncmp(slurm_binding, "none", 4) != 0)
        return rebind ? PIN_LAUNCHERS_CHOICE : PIN_USERS_CHOICE;
    return PIN_SHARED_MASK;
}

/* Name and parent of a process from /proc/PID/stat: "PID (name) state parent …". */
static bool read_ancestor(pid_t pid, char *name, size_t size, pid_t *parent)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return false;
    text[length] = '\0';
    char *left = strchr(text, '('), *right = strrchr(text, ')');
    int number;
    if (!left || !right || right < left || sscanf(right + 1, " %*c %d", &number) != 1)
        return false;
    *right = '\0';
    snprintf(name, size, "%s", left + 1);
    *parent = number;
    return true;
}

static bool is_launcher(const char *name)
{
    static const char *const beginnings[] = {"mpirun", "mpiexec",    "orte", "prte",
                                             "hydra_", "slurmstepd", "srun", "oshrun"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* The nearest ancestor that is a launcher or its daemon, or 0. */
static pid_t find_launcher(void)
{
    pid_t pid = getppid();
    for (int generation = 0; generation < MOST_GENERATIONS && pid > 1; generation++) {
        char name[32];
        pid_t parent;
        if (!read_ancestor(pid, name, sizeof name, &parent))
            return 0;
        if (is_launcher(name))
            return pid;
        pid = parent;
    }
    return 0;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (hash ^ '/') * 0x100000001b3u;
}

/* Launchers name their jobs in the environment; hydra does not, and there the daemon is the job. */
static uint64_t job_of_launcher(void)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID", "PALS_APID"};
    uint64_t hash = 0xcbf29ce484222325u;
    char daemon[16];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        hash = hash_text(hash, getenv(names[i]));
    snprintf(daemon, sizeof daemon, "%d", is_set("PMIX_NAMESPACE") ? 0 : (int)find_launcher());
    return hash_text(hash, daemon) | 1;
}

void pin_launcher_read(bool rebind, struct pin_launcher *out)
{
    *out = (struct pin_launcher){0};
    /* Open MPI's and hydra's own ranks first: mpirun inside a Slurm step leaves that step's variables in place. */
    if (!is_set("OMPI_COMM_WORLD_LOCAL_RANK") && !is_set("MPI_LOCALRANKID") && read_slurm(out))
        out->binding = who_bound(true, rebind);
    else if (read_dialect(out))
        out->binding = who_bound(false, rebind);
    else
        return;
    if (out->binding == PIN_USERS_CHOICE) {
        out->local_rank = 0;
        out->local_size = 1;
    } else
        out->job = job_of_launcher();
    if (out->local_size <= out->local_rank)
        out->local_size = out->local_rank + 1;
}

void pin_launcher_allowed(const struct pin_launcher *launcher, const struct pin_mask *start, struct pin_mask *out)
{
    struct pin_mask mask;
    *out = *start;
    if (!launcher->name || launcher->binding != PIN_LAUNCHERS_CHOICE)
        return;
    if (strcmp(launcher->name, slurm_name) == 0) {
        pin_slurm_step_pus(getenv("SLURM_CPU_BIND_TYPE"), getenv("SLURM_CPU_BIND_LIST"), out);
        return;
    }
    pid_t pid = find_launcher();
    if (pid > 0 && pin_mask_get(pid, &mask) == 0)
        *out = mask;
}
