/* Reads the launcher of a parallel program. */
#include "preload/place/launcher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/place/options.h"
#include "profile/base/file.h"
#include "profile/base/hash.h"
#include "profile/base/launchers.h"
#include "profile/base/nearness.h"

int pin_launcher_format(const struct pin_launcher *launcher, char *out, size_t size)
{
    return snprintf(out, size, "%" PRIx64 " %" PRIu32 "/%" PRIu32 " ", launcher->job,
                    launcher->local_rank, launcher->local_size);
}

/* What Slurm says of the masks that it gave to the tasks of a step. */

enum { BITS_OF_HEX_DIGIT = 4 };

/* Adds a mask's digits, the last of which is PUs 0 to 3. Returns what follows them. */
static const char *add_hexadecimal(const char *text, struct profile_mask *out)
{
    const char *end = text + strspn(text, "0123456789abcdefABCDEF");
    for (const char *digit = end; digit > text; digit--) {
        const unsigned long value = strtoul((const char[]){digit[-1], '\0'}, NULL, 16);
        for (unsigned bit = 0; bit < BITS_OF_HEX_DIGIT; bit++) {
            size_t pu = (size_t)(end - digit) * BITS_OF_HEX_DIGIT + bit;
            if (pu < PROFILE_MASK_PUS && (value >> bit & 1) != 0) {
                profile_mask_add(out, (uint32_t)pu);
            }
        }
    }
    return end;
}

static const char *add_number(const char *text, struct profile_mask *out)
{
    char *end;
    unsigned long pu = strtoul(text, &end, 10);
    if (end > text && pu < PROFILE_MASK_PUS) {
        profile_mask_add(out, (uint32_t)pu);
    }
    return end;
}

/* The PUs of all of the step's tasks on this node, from a binding in the form of
 * SLURM_CPU_BIND_TYPE ("mask_cpu:" or "map_cpu:") and SLURM_CPU_BIND_LIST ("0x3,0xc" or "0,2").
 * False, and `out` untouched, if it is none of these or names no PU. */
static bool read_step_pus(const char *type, const char *list, struct profile_mask *out)
{
    struct profile_mask all = {0};
    if (!type || !list || (strncmp(type, "mask_cpu", 8) != 0 && strncmp(type, "map_cpu", 7) != 0)) {
        return false;
    }
    for (const char *text = list; *text;) {
        const char *end =
            strncmp(text, "0x", 2) == 0 ? add_hexadecimal(text + 2, &all) : add_number(text, &all);
        if (*end != ',' && *end != '\0') {
            return false;
        }
        text = *end ? end + 1 : end;
    }
    if (profile_mask_empty(&all)) {
        return false;
    }
    *out = all;
    return true;
}

/* The launcher's variables in the environment. */

/* How many generations the launcher's daemon may be away (wrappers such as servet-pin, time or a
 * shell script). */
#define MOST_GENERATIONS 8

static bool read_number(const char *name, uint32_t *out)
{
    const char *text = name ? pin_environment(name) : NULL;
    char *end;
    if (!text || *text < '0' || *text > '9') {
        return false;
    }
    unsigned long value = strtoul(text, &end, 10);
    if (*end || value >= PIN_MOST_RANKS) {
        return false;
    }
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
        if (node < times && tasks <= PIN_MOST_RANKS) {
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
static bool size_of_part(uint32_t all, uint32_t local_rank, uint32_t *out)
{
    uint32_t nodes = 1, rank = 0;
    if (read_number("FLUX_JOB_NNODES", &nodes) && (nodes == 0 || nodes > all)) {
        return false;
    }
    const uint32_t each = all / nodes, fuller = all % nodes;
    bool known = read_number("FLUX_TASK_RANK", &rank) && rank >= local_rank;
    *out = each + (fuller && (!known || rank - local_rank < fuller * (each + 1)));
    return true;
}

/* The user's two may name the variable that has the number. */
static bool read_said(const char *name, uint32_t *out)
{
    const char *text = strncmp(name, "SERVET_", 7) == 0 ? pin_environment(name) : NULL;
    return read_number(text && (*text < '0' || *text > '9') ? text : name, out);
}

static bool read_size(const struct profile_launcher *row, uint32_t local_rank, uint32_t *out)
{
    uint32_t node = 0, all;
    switch (row->holds) {
    case PROFILE_SIZE_BY_NODE:
        read_number("SLURM_NODEID", &node);
        return entry_of_counts(pin_environment(row->size), node, out);
    case PROFILE_SIZE_OF_JOB:
        return read_number(row->size, &all) && size_of_part(all, local_rank, out);
    default:
        return row->size && read_said(row->size, out);
    }
}

static bool read_row(const struct profile_launcher *row, struct pin_launcher *out)
{
    struct pin_launcher found = {.name = row->name, .row = row};
    if ((row->also && !pin_is_set(row->also)) || !read_said(row->rank, &found.local_rank)) {
        return false;
    }
    const bool told = read_size(row, found.local_rank, &found.local_size);
    if (!told && row->holds == PROFILE_SIZE_BY_NODE) {
        return false;
    }
    found.contradicts =
        told ? found.local_size <= found.local_rank : row->size && pin_is_set(row->size);
    if (!told) {
        found.local_size = found.local_rank + 1;
    }
    *out = found;
    return true;
}

static bool read_table(struct pin_launcher *out)
{
    for (size_t i = 0; i < PROFILE_LAUNCHERS; i++) {
        struct pin_launcher found;
        if (!read_row(&profile_launchers[i], &found) ||
            (out->name &&
             (found.local_rank != out->local_rank || found.local_size != out->local_size))) {
            continue;
        }
        *out = found;
        if (!found.row->common) {
            return true;
        }
    }
    return out->name;
}

static enum pin_binding who_bound(const struct pin_launcher *launcher, bool rebind)
{
    /* Variables of a launcher around these are about a mask that all of them share. */
    if (launcher->row->workers) {
        return PIN_SHARED_MASK;
    }
    /* A resource set is the user's word (jsrun(1), --rs_per_host, --bind). */
    if (strcmp(launcher->name, "jsrun") == 0) {
        return PIN_USERS_CHOICE;
    }
    /* Open MPI hands --bind-to down as the parameter's value, and a default binding only as the
     * fact. */
    if (pin_is_set("OMPI_MCA_hwloc_base_binding_policy") ||
        pin_is_set("PRTE_MCA_hwloc_default_binding_policy")) {
        const char *policy = pin_environment("OMPI_MCA_hwloc_base_binding_policy");
        return policy && strcmp(policy, "none") == 0 ? PIN_SHARED_MASK : PIN_USERS_CHOICE;
    }
    if (pin_is_set("OMPI_MCA_orte_bound_at_launch") ||
        pin_is_set("PRTE_MCA_prte_bound_at_launch")) {
        return PIN_LAUNCHERS_CHOICE;
    }
    if (pin_is_set("HYDRA_USER_PROVIDED_BINDING")) {
        return PIN_USERS_CHOICE;
    }
    /* Slurm's variable looks the same whether the user or Slurm chose; the plugin knows. Without
     * it, what Slurm bound stays, and so does a task beside GPUs that Slurm gave. */
    const bool slurm = launcher->row->holds == PROFILE_SIZE_BY_NODE;
    const char *slurm_binding = slurm ? pin_environment("SLURM_CPU_BIND_TYPE") : NULL;
    if (slurm_binding && *slurm_binding && strncmp(slurm_binding, "none", 4) != 0) {
        bool gpus = pin_is_set("SLURM_STEP_GPUS") || pin_is_set("SLURM_JOB_GPUS");
        return rebind && !gpus ? PIN_LAUNCHERS_CHOICE : PIN_USERS_CHOICE;
    }
    return PIN_SHARED_MASK;
}

/* Name, parent and number of threads of a process from /proc/PID/stat: "PID (name) state parent
 * …". */
static bool read_ancestor(pid_t pid, char *name, size_t size, pid_t *parent, long *threads)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!profile_read_small(path, text, sizeof text)) {
        return false;
    }
    char *left = strchr(text, '('), *right = strrchr(text, ')');
    const char *field = profile_stat_find(text, PROFILE_STAT_PARENT);
    if (!left || !right || right < left || !field) {
        return false;
    }
    const char *count = profile_stat_find(text, PROFILE_STAT_THREADS);
    const int number = atoi(field);
    *threads = count ? strtol(count, NULL, 10) : 1;
    *right = '\0';
    snprintf(name, size, "%s", left + 1);
    *parent = number;
    return true;
}

static bool is_launcher(const char *name)
{
    static const char *const beginnings[] = {"mpirun", "mpiexec", "orte",
                                             "prte",   "hydra_",  "slurmstepd",
                                             "srun",   "oshrun",  "flux-shell"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0) {
            return true;
        }
    }
    return false;
}

pid_t pin_launcher_process(void)
{
    pid_t pid = getppid();
    for (int generation = 0; generation < MOST_GENERATIONS && pid > 1; generation++) {
        char name[32];
        pid_t parent;
        long threads;
        if (!read_ancestor(pid, name, sizeof name, &parent, &threads)) {
            return 0;
        }
        if (is_launcher(name)) {
            return pid;
        }
        pid = parent;
    }
    return 0;
}

static bool had_variable(pid_t pid, const char *name)
{
    char path[64], *entry = NULL;
    size_t room = 0, length = strlen(name);
    bool had = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && !had && getdelim(&entry, &room, '\0', file) > 0) {
        had = strncmp(entry, name, length) == 0 && entry[length] == '=';
    }
    free(entry);
    if (file) {
        fclose(file);
    }
    return had;
}

/* The process that has started the workers, the nearest ancestor that was started without their
 * variables; 0: none is near. `threads`: the most that a process in between has. Shells and other
 * wrappers have one; a worker that starts processes has more (data loaders, compilers). */
static pid_t find_starter(const struct profile_launcher *row, long *threads)
{
    pid_t pid = getppid();
    *threads = 1;
    for (int generation = 0; generation < MOST_GENERATIONS && pid > 1; generation++) {
        char name[32];
        long count;
        pid_t parent;
        if (!had_variable(pid, row->size)) {
            return pid;
        }
        if (!read_ancestor(pid, name, sizeof name, &parent, &count)) {
            return 0;
        }
        *threads = count > *threads ? count : *threads;
        pid = parent;
    }
    return 0;
}

/* Has the rank less than the process that started all of them? Then a binding of its own was asked
 * for: torchrun --numa-binding, cpu-affinity=per-task of Flux. */
static bool is_narrower(const struct pin_launcher *launcher, const struct profile_mask *start)
{
    struct profile_mask all;
    long threads;
    pid_t pid = launcher->row->workers ? find_starter(launcher->row, &threads)
                : launcher->row->holds == PROFILE_SIZE_OF_JOB ? pin_launcher_process()
                                                              : 0;
    return pid > 0 && profile_mask_get(pid, &all) == 0 && !profile_mask_equal(&all, start);
}

/* The text and an end that no text has. */
static uint64_t hash_entry(uint64_t hash, const char *text)
{
    return profile_hash_bytes(profile_hash_text(hash, text ? text : ""), "/", 1);
}

/* Launchers name their jobs in the environment; hydra does not, and there the daemon is the job.
 * Names are made of numbers of processes, which each container counts from 1. */
static uint64_t job_of_launcher(void)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID",
                                        "PALS_APID",      "FLUX_JOB_ID",  "TORCHELASTIC_RUN_ID",
                                        "MASTER_PORT"};
    uint64_t hash = PROFILE_HASH_BEGIN;
    struct stat processes = {0};
    char daemon[48];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hash = hash_entry(hash, pin_environment(names[i]));
    }
    (void)stat("/proc/self/ns/pid", &processes);
    snprintf(daemon, sizeof daemon, "%d %ju",
             pin_is_set("PMIX_NAMESPACE") ? 0 : (int)pin_launcher_process(),
             (uintmax_t)processes.st_ino);
    return (hash_entry(hash, daemon) | 1) & INT64_MAX; /* the highest bit: a job of one process */
}

/* A mask that the rank was bound to is its own. */
static void be_alone(struct pin_launcher *launcher)
{
    launcher->local_rank = 0;
    launcher->local_size = 1;
    launcher->job = 0;
}

void pin_launcher_mark_own(const struct pin_launcher *launcher, const char *gpus)
{
    char rank[64], *text;
    pin_launcher_format(launcher, rank, sizeof rank);
    if (asprintf(&text, "%s%s", rank, gpus) >= 0) {
        (void)setenv(pin_option_table[PIN_BESIDE].name, text, 1);
        free(text);
    }
}

/* Has servet-pin marked this very rank, and not one above mpirun? */
static bool is_marked(const struct pin_launcher *launcher)
{
    char rank[64];
    const char *marked = pin_environment(pin_option_table[PIN_BESIDE].name);
    pin_launcher_format(launcher, rank, sizeof rank);
    return marked && strncmp(marked, rank, strlen(rank)) == 0;
}

void pin_launcher_read(bool rebind, struct pin_launcher *out)
{
    *out = (struct pin_launcher){0};
    if (!read_table(out)) {
        return;
    }
    long threads = 1;
    if (out->row->workers && find_starter(out->row, &threads) > 0 && threads > 1) {
        *out = (struct pin_launcher){0}; /* a process that a worker has started */
        return;
    }
    out->binding = who_bound(out, rebind);
    out->node_rank = out->local_rank;
    out->node_ranks = out->local_size > out->local_rank ? out->local_size : out->local_rank + 1;
    if (out->binding == PIN_USERS_CHOICE) {
        be_alone(out);
    } else {
        out->job = job_of_launcher();
    }
    if (out->local_size <= out->local_rank) {
        out->local_size = out->local_rank + 1;
    }
    if (out->job && is_marked(out)) {
        out->binding = PIN_USERS_CHOICE;
        be_alone(out);
    }
}

/* The PUs that all ranks of the job on this node may use, where the launcher tells; else `out` is
 * unchanged. */
static void find_job_pus(const struct pin_launcher *launcher, struct profile_mask *out)
{
    struct profile_mask mask;
    if (launcher->row->holds == PROFILE_SIZE_BY_NODE) {
        read_step_pus(pin_environment("SLURM_CPU_BIND_TYPE"),
                      pin_environment("SLURM_CPU_BIND_LIST"), out);
        return;
    }
    pid_t pid = pin_launcher_process();
    if (pid > 0 && profile_mask_get(pid, &mask) == 0) {
        *out = mask;
    }
}

void pin_launcher_allowed(struct pin_launcher *launcher, const struct profile_mask *start,
                          struct profile_mask *out)
{
    *out = *start;
    if (launcher->name && launcher->binding == PIN_SHARED_MASK && is_narrower(launcher, start)) {
        launcher->binding = PIN_USERS_CHOICE;
        be_alone(launcher);
    }
    if (!launcher->name || launcher->binding != PIN_LAUNCHERS_CHOICE) {
        return;
    }
    find_job_pus(launcher, out);
    bool beyond = launcher->node_ranks > profile_mask_count(out);
    for (size_t i = 0; i < PROFILE_MASK_WORDS; i++) {
        beyond = beyond || (start->word[i] & ~out->word[i]) != 0;
    }
    if (beyond) {
        *out = *start;
        be_alone(launcher);
    }
}

bool pin_launcher_oversubscribed(const struct pin_launcher *launcher,
                                 const struct profile_mask *start)
{
    struct profile_mask pus = *start;
    if (!launcher->name) {
        return false;
    }
    if (launcher->binding != PIN_SHARED_MASK) {
        find_job_pus(launcher, &pus);
    }
    return launcher->node_ranks > profile_mask_count(&pus);
}
