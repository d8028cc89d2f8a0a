/* Reads the launcher of a parallel program, and finds out whose mask a rank has. */
#include "preload/place/launcher.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/place/options.h"
#include "profile/base/control_groups.h"
#include "profile/base/file.h"
#include "profile/base/format_safe.h"
#include "profile/base/hash.h"
#include "profile/base/launchers.h"
#include "profile/processes/process.h"

int pin_launcher_format(const struct pin_launcher *launcher, char *out, size_t size)
{
    return snprintf(out, size, "%" PRIx64 " %" PRIu32 "/%" PRIu32 " ", launcher->job,
                    launcher->node_rank, launcher->node_ranks);
}

/* A cpulist of /sys. False, and an empty mask, where it cannot be read or lists nothing. */
static bool read_pus(const char *path, struct profile_mask *out)
{
    char text[4096];
    *out = (struct profile_mask){0};
    return profile_first_line(path, text, sizeof text) && profile_mask_parse(text, out) &&
           !profile_mask_empty(out);
}

/* -- the launcher's variables -- */

static const char *variable_here(const void *unused, const char *name)
{
    (void)unused;
    return pin_environment(name);
}

/* Of words NAME, or NAME=TEXT: then the value has the text in it, in any case. */
static bool is_any_set(const char *names)
{
    char name[64];
    while (profile_next_word(&names, name, sizeof name)) {
        char *text = strchr(name, '=');
        if (text) {
            *text++ = '\0';
        }
        if (pin_is_set(name) && (!text || strcasestr(pin_environment(name), text))) {
            return true;
        }
    }
    return false;
}

/* -- who started the ranks -- */

/* Was the process started with the variable of the rank, or the one that the user names for it? */
static bool had_rank(pid_t pid, const struct profile_launcher *row)
{
    const char *named = pin_environment(row->rank);
    char *value = profile_variable_of(pid, row->rank);
    value = !value && named ? profile_variable_of(pid, named) : value;
    const bool had = value;
    free(value);
    return had;
}

/* The line of ancestors, up to who started the ranks. */
struct line {
    struct profile_stat starter; /* pid 0: it is not seen */
    struct profile_stat first;   /* of this rank: the starter's child */
    uint32_t threads; /* the most that a process between has. Shells and other wrappers have one; a
                     worker that starts processes has more (data loaders, compilers) */
};

static void find_starter(const struct profile_launcher *row, struct line *out)
{
    struct profile_stat it;
    *out = (struct line){.threads = 1};
    if (!profile_stat_read(getpid(), getpid(), &out->first)) {
        return;
    }
    while (profile_stat_read(out->first.parent, out->first.parent, &it)) {
        if (profile_is_daemon(it.name) || !had_rank(it.pid, row)) {
            out->starter = it;
            return;
        }
        out->threads = it.threads > out->threads ? it.threads : out->threads;
        out->first = it;
    }
}

/* -- the job -- */

/* The text and an end that no text has. */
static uint64_t hash_entry(uint64_t hash, const char *text)
{
    return profile_hash_bytes(profile_hash_text(hash, text ? text : ""), "/", 1);
}

/* Launchers name their jobs in the environment. Where one does not, the process that started the
 * ranks is the job, and a rank by itself is its own. Names are made of numbers of processes, which
 * each container counts from 1. */
static uint64_t job_of(const struct pin_launcher *launcher, const struct line *line)
{
    uint64_t hash = PROFILE_HASH_BEGIN;
    struct stat processes = {0};
    char name[64], process[80];
    for (const char *at = launcher->row->job; profile_next_word(&at, name, sizeof name);) {
        hash = hash_entry(hash, pin_environment(name));
    }
    const struct profile_stat *it =
        launcher->node_ranks > 1 && line->starter.pid ? &line->starter : &line->first;
    const bool is_named = is_any_set(launcher->row->job);
    (void)stat("/proc/self/ns/pid", &processes);
    snprintf(process, sizeof process, "%d %ju %ju", is_named ? 0 : (int)it->pid,
             is_named ? 0 : (uintmax_t)it->began, (uintmax_t)processes.st_ino);
    return (hash_entry(hash, process) | 1) & INT64_MAX; /* the highest bit: a job of one process */
}

void pin_launcher_read(bool rebind, struct pin_launcher *out)
{
    struct profile_local_rank found;
    struct line line;
    *out = (struct pin_launcher){0};
    if (!profile_launcher_find(variable_here, NULL, &found)) {
        return;
    }
    find_starter(found.row, &line);
    if (found.row->workers && line.starter.pid > 0 && line.threads > 1) {
        return; /* a process that a worker has started */
    }
    *out = (struct pin_launcher){.name = found.row->name,
                                 .row = found.row,
                                 .contradicts = found.contradicts,
                                 .rebind = rebind,
                                 .local_rank = found.rank,
                                 .local_size = found.size,
                                 .node_rank = found.rank,
                                 .node_ranks = found.size,
                                 .sharers = 1,
                                 .starter = line.starter.pid};
    out->job = job_of(out, &line);
}

/* -- what all ranks have together -- */

enum { BITS_OF_HEX_DIGIT = 4 };

/* Adds a mask ("0x3"), whose last digit is PUs 0 to 3, or one PU. Returns what follows. */
static const char *add_listed(const char *text, struct profile_mask *out)
{
    const bool is_mask = strncmp(text, "0x", 2) == 0;
    const char *end = text + strspn(text, is_mask ? "0123456789abcdefABCDEFx" : "0123456789");
    uint32_t pu = 0;
    if (!is_mask && end > text) {
        profile_mask_add(out, (uint32_t)strtoul(text, NULL, 10));
    }
    for (const char *digit = end; is_mask && digit > text + 2; pu += BITS_OF_HEX_DIGIT) {
        const unsigned long value = strtoul((const char[]){*--digit, '\0'}, NULL, 16);
        for (uint32_t bit = 0; bit < BITS_OF_HEX_DIGIT; bit++) {
            if (value >> bit & 1) {
                profile_mask_add(out, pu + bit);
            }
        }
    }
    return end;
}

/* Slurm's word on the masks of the step's tasks on this node, in the form of SLURM_CPU_BIND_TYPE
 * ("mask_cpu:" or "map_cpu:") and SLURM_CPU_BIND_LIST ("0x3,0xc" or "0,2"): `all`, and `own` of the
 * task `rank`. False, and both untouched, if it is none of these or names no PU. */
static bool read_step_pus(uint32_t rank, struct profile_mask *all, struct profile_mask *own)
{
    struct profile_mask found = {0}, mine = {0};
    const char *type = pin_environment("SLURM_CPU_BIND_TYPE"),
               *text = pin_environment("SLURM_CPU_BIND_LIST");
    if (!type || !text || (strncmp(type, "mask_cpu", 8) != 0 && strncmp(type, "map_cpu", 7) != 0)) {
        return false;
    }
    for (uint32_t task = 0; *text; task++) {
        struct profile_mask one = {0};
        const char *end = add_listed(text, &one);
        if (*end != ',' && *end != '\0') {
            return false;
        }
        mine = task == rank ? one : mine;
        profile_mask_unite(&found, &one);
        text = *end ? end + 1 : end;
    }
    if (profile_mask_empty(&found)) {
        return false;
    }
    *all = found;
    *own = mine;
    return true;
}

/* PUs that the groups of this process may use. */
static struct profile_mask cpuset;

static double keep_cpuset(const char *folder, int *rc)
{
    char path[4096];
    struct profile_mask here;
    (void)rc;
    snprintf(path, sizeof path, "%s/cpuset.cpus.effective", folder);
    bool known = read_pus(path, &here);
    snprintf(path, sizeof path, "%s/cpuset.cpus", folder);
    if (known || read_pus(path, &here)) {
        profile_mask_intersect(&cpuset, &here);
    }
    return INFINITY;
}

/* The PUs that all ranks of the job on this node may use, where one can tell; else `out` is
 * unchanged. Slurm's daemon has the whole node: where it does not list the tasks' masks, they have
 * what their control group has. */
static void find_job_pus(const struct pin_launcher *launcher, struct profile_mask *out)
{
    struct profile_mask own, found;
    struct profile_stat starter = {0};
    const bool slurm = launcher->row->holds == PROFILE_SIZE_BY_NODE;
    int rc = 0;
    if ((slurm && read_step_pus(launcher->node_rank, out, &own)) || launcher->starter == 0 ||
        profile_mask_get(launcher->starter, &found) < 0) {
        return;
    }
    if (slurm && profile_stat_read(launcher->starter, launcher->starter, &starter) &&
        profile_is_daemon(starter.name)) {
        profile_mask_all(&cpuset);
        (void)profile_group_least("", "cpuset", keep_cpuset, keep_cpuset, &rc);
        profile_mask_intersect(&found, &cpuset);
    }
    if (!profile_mask_empty(&found)) {
        *out = found;
    }
}

/* -- a default of the launcher's -- */

#define CPU "/sys/devices/system/cpu/cpu%u/topology/"
#define NODE "/sys/devices/system/node/node%u/cpulist"

/* Has `own` PUs of object `number` alone, counted round, and `whole`: all of them? The objects are
 * those parts of `within` that the files list, one for each node, or for each PU. */
static bool is_nth(const struct profile_mask *own, const struct profile_mask *within,
                   const char *files, uint32_t number, bool whole)
{
    struct profile_mask seen = {0}, object;
    uint32_t objects = 0, at = UINT32_MAX;
    char path[128];
    for (uint32_t file = 0; profile_mask_next(within, file) < PROFILE_MASK_PUS; file++) {
        snprintf(path, sizeof path, files, file);
        if ((strcmp(files, NODE) != 0 && !profile_mask_has(within, file)) ||
            !read_pus(path, &object)) {
            continue;
        }
        profile_mask_intersect(&object, within);
        if (profile_mask_within(&object, &seen)) {
            continue; /* that of another PU, too, or no PU of `within` */
        }
        if (profile_mask_within(own, &object) && (!whole || profile_mask_within(&object, own))) {
            at = objects;
        }
        profile_mask_unite(&seen, &object);
        objects++;
    }
    return objects > 0 && at == number % objects;
}

/* Has the rank what Open MPI gives by default: of two ranks the first cores, of more one NUMA node,
 * or package, after another? */
static bool is_shape_of_default(const struct pin_launcher *launcher, const struct profile_mask *own,
                                const struct profile_mask *all)
{
    const char *ranks = pin_environment("OMPI_COMM_WORLD_SIZE");
    const uint32_t rank = launcher->node_rank;
    struct profile_mask package;
    char path[128];
    if (ranks && atoi(ranks) > 2) {
        return is_nth(own, all, NODE, rank, true) ||
               is_nth(own, all, CPU "core_siblings_list", rank, true);
    }
    snprintf(path, sizeof path, CPU "core_siblings_list", profile_mask_next(all, 0));
    if (!read_pus(path, &package)) {
        return true;
    }
    profile_mask_intersect(&package, all);
    return is_nth(own, &package, CPU "thread_siblings_list", rank, false);
}

/* Has the launcher bound the rank by its own default, and no script since? Slurm's variable looks
 * the same whether the user or Slurm chose; the plugin knows. Without it, what Slurm bound stays,
 * and so does a task beside GPUs that Slurm gave. */
static bool is_default(const struct pin_launcher *launcher, const struct profile_mask *own,
                       const struct profile_mask *all)
{
    struct profile_mask of_step, of_task;
    if (launcher->row->holds == PROFILE_SIZE_BY_NODE) {
        return launcher->rebind && !is_any_set("SLURM_STEP_GPUS SLURM_JOB_GPUS") &&
               read_step_pus(launcher->node_rank, &of_step, &of_task) &&
               profile_mask_equal(own, &of_task);
    }
    return is_any_set(launcher->row->bound) && !is_any_set(launcher->row->asked) &&
           launcher->node_ranks <= profile_mask_count(all) &&
           is_shape_of_default(launcher, own, all);
}

/* -- whose mask -- */

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
static bool is_marked_rank(const struct pin_launcher *launcher)
{
    char rank[64];
    const char *marked = pin_environment(pin_option_table[PIN_BESIDE].name);
    pin_launcher_format(launcher, rank, sizeof rank);
    return marked && strncmp(marked, rank, strlen(rank)) == 0;
}

/* As many ranks have this mask as it is a part of what all have. */
static uint32_t count_sharers(const struct pin_launcher *launcher, const struct profile_mask *own,
                              const struct profile_mask *all)
{
    const size_t ranks = launcher->node_ranks * profile_mask_count(own) / profile_mask_count(all);
    return ranks > 1 && profile_mask_within(own, all) ? (uint32_t)ranks : 1;
}

void pin_launcher_allowed(struct pin_launcher *launcher, const struct profile_mask *start,
                          struct profile_mask *out)
{
    struct profile_mask all = *start;
    *out = *start;
    if (!launcher->name) {
        return;
    }
    find_job_pus(launcher, &all);
    const bool is_servets = is_marked_rank(launcher);
    if (!is_servets && profile_mask_equal(start, &all)) {
        return;
    }
    if (!is_servets && profile_mask_within(start, &all) && is_default(launcher, start, &all)) {
        launcher->mask_of = PIN_MASK_BY_LAUNCHER;
        *out = all;
        return;
    }
    launcher->mask_of = is_servets ? PIN_MASK_BY_SERVET : PIN_MASK_OF_RANK;
    launcher->sharers = is_servets ? 1 : count_sharers(launcher, start, &all);
    launcher->local_rank = 0;
    launcher->local_size = 1;
    launcher->job =
        profile_hash_bytes(launcher->job, &launcher->node_rank, sizeof launcher->node_rank) &
        INT64_MAX;
}

bool pin_launcher_oversubscribed(const struct pin_launcher *launcher,
                                 const struct profile_mask *start)
{
    struct pin_launcher own = *launcher;
    struct profile_mask pus;
    pin_launcher_allowed(&own, start, &pus);
    const uint32_t ranks = own.local_size > 1 ? own.local_size : own.sharers;
    return launcher->name && ranks > profile_mask_count(&pus);
}
