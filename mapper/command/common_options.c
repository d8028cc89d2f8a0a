/* The options that servet-map and servet-spmd have in common: which machine, which of its PUs,
 * which nodes of a job, which language. */
#include "mapper/command/command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/weights/weights.h"
#include "profile/base/cli.h"
#include "profile/base/control_groups.h"
#include "profile/base/guess.h"
#include "profile/base/mask.h"
#include "profile/model.h"
#include "profile/scope.h"

void map_refuse_if(bool wrong, const char *text)
{
    if (wrong) {
        cli_usage("%s", text);
    }
}

/* Kind of a leaf, with MAP_KIND_LAST standing for the highest number that its class has. */
static bool kind_wanted(const struct map_view *view, uint32_t leaf, int kind)
{
    const struct map_class *class = map_view_class(view, leaf);
    uint32_t item = leaf - view->nodes[view->node_of[leaf]].first_leaf;
    if (kind < 0 || !class->of->kind_count) {
        return kind <= 0 || kind == MAP_KIND_LAST; /* all cores are of one kind */
    }
    int last = (int)class->of->kind_count - 1;
    return class->kind[item] == (kind == MAP_KIND_LAST ? last : kind);
}

/* Most of any node. */
static size_t kinds_of(const struct map_view *view)
{
    size_t kinds = 1;
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        const size_t here = map_view_class(view, leaf)->of->kind_count;
        kinds = here > kinds ? here : kinds;
    }
    return kinds;
}

struct profile_set map_allowed_pus(const struct servet_profile *profile,
                                   const struct map_limits *limits)
{
    FREED_BY(map_view_free) struct map_view view;
    struct servet_error error;
    struct profile_set out;
    size_t count = 0;
    cli_check(map_view_make(profile, MAP_MEMORY, 1, &view, &error), &error);
    for (size_t i = 0; limits->pus && i < limits->pus->count; i++) {
        if (map_view_leaf(&view, limits->pus->ids[i]) == MAP_NONE) {
            cli_usage("--cpuset: expected PUs of the profile (%u to %u), got %u", view.pu[0],
                      view.pu[view.leaf_count - 1], limits->pus->ids[i]);
        }
    }
    bool *in = cli_needed(map_arena_get(&view.arena, view.leaf_count, sizeof *in));
    uint32_t *pus = cli_needed(map_arena_get(&view.arena, view.leaf_count, sizeof *pus));
    for (uint32_t leaf = 0; leaf < view.leaf_count; leaf++) {
        bool listed = !limits->pus || profile_set_has(limits->pus, view.pu[leaf]);
        in[leaf] = listed && kind_wanted(&view, leaf, limits->kind) &&
                   (!limits->smt || map_core_mates_before(&view, leaf, in) < limits->smt);
        if (in[leaf]) {
            pus[count++] = view.pu[leaf];
        }
    }
    if (!count && limits->kind >= 0) {
        cli_usage("--kind: expected p, e or a number below %zu, the kinds of cores here, got %d",
                  kinds_of(&view), limits->kind);
    }
    if (!count) {
        cli_usage("allowed PUs: expected at least one PU of the profile");
    }
    cli_done(profile_set_from_array(pus, count, &out));
    return out;
}

enum { CPUSET = 0x300 };

static const struct argp_option table[] = {
    {"profile", CLI_TEXT(struct common_machine, profile), "FILE", 0,
     "a profile of servet-probe, or a topology in hwloc's XML (default: the profile of this "
     "machine)",
     0},
    {"topology", CLI_TEXT(struct common_machine, topology), "FILE|TEXT", 0,
     "plan for an hwloc XML file or a description such as \"package:2 core:4 pu:2\"", 0},
    {"cpuset", CPUSET, "LIST", 0, "use only these PUs (0-3,8)", 0},
    {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct common_machine *machine = state->input;
    if (key == CPUSET) {
        profile_set_free(&machine->cpuset);
        machine->cpuset = cli_set("--cpuset", argument);
        return 0;
    }
    return cli_set_member(key, argument, machine) ? 0 : ARGP_ERR_UNKNOWN;
}

const struct argp map_common_machine_argp = {.options = table, .parser = parse_option};

void map_common_machine_check(const struct common_machine *machine)
{
    map_refuse_if(machine->profile && machine->topology,
                  "--profile, --topology: expected one of them, not both");
}

/* -- which machine -- */

static struct servet_profile *from_topology(const char *source)
{
    struct servet_profile *profile;
    struct servet_error error;
    int rc = profile_from_hwloc(source, &profile, &error);
    if (rc == -EINVAL) {
        cli_usage("--topology: %s", error.text);
    }
    if (rc < 0) {
        cli_fail("%s", error.text);
    }
    return profile;
}

/* The profile of this machine; one of another machine, or of others of its PUs than those that are
 * `usable`, is said to be so and left alone. */
static struct servet_profile *load_own_profile(const struct profile_set *usable)
{
    char path[4096];
    if (profile_find(path, sizeof path) < 0) {
        cli_note("no profile of this machine (servet-probe makes one): nothing was measured, using "
                 "the topology");
        return from_topology(NULL);
    }
    struct servet_profile *profile = cli_load(path);
    struct servet_error error;
    if (profile_matches(profile, "", usable, &error) < 0) {
        cli_note("%s: %s: nothing measured is used, only the topology (--profile %s insists)", path,
                 error.text, path);
        profile_free(profile);
        return from_topology(NULL);
    }
    return profile;
}

/* The PUs that this process may use: as the shim finds them. */
static struct profile_set usable_pus(void)
{
    struct profile_mask mask;
    struct profile_set pus = {0};
    cli_done(profile_mask_get(0, &mask) < 0 ? 0 : profile_mask_to_set(&mask, &pus));
    return pus;
}

/* A quota, and where --cpuset is missing a job's cpuset, taskset and PUs that are offline hold.
 * They do not hold for a cluster, whose other nodes have masks of their own, nor for a topology
 * that hwloc was given (HWLOC_XMLFILE), which has no signature. */
static void keep_to_usable(const struct servet_profile *profile, const struct profile_set *usable,
                           struct common_machine *machine)
{
    const char *signature = profile->topology_signature;
    const struct profile_set *pus = &profile_node_class(profile, 0)->pus;
    struct profile_set both, *cpuset = &machine->cpuset;
    if (profile_node_count(profile) > 1 || !signature || !*signature) {
        return;
    }
    (void)profile_quota_read("", &machine->quota);
    if (cpuset->count) {
        return;
    }
    cli_done(profile_set_intersect(pus, usable, &both));
    if (both.count && both.count < pus->count) {
        *cpuset = both;
    } else {
        profile_set_free(&both);
    }
}

struct servet_profile *map_common_machine_open(struct common_machine *machine)
{
    if (machine->profile || machine->topology) {
        return machine->profile ? cli_load(machine->profile) : from_topology(machine->topology);
    }
    FREED_BY(profile_set_free) struct profile_set usable = usable_pus();
    struct servet_profile *profile = load_own_profile(&usable);
    keep_to_usable(profile, &usable, machine);
    return profile;
}

size_t map_common_most(const struct common_machine *machine)
{
    const uint32_t workers = profile_quota_workers(machine->quota);
    return workers ? workers : SIZE_MAX;
}

/* -- formats -- */

const struct map_format *map_common_format(const char *name)
{
    const struct map_format *format = map_format_find(name);
    if (strcmp(name, "help") == 0) {
        for (format = map_formats; format->name; format++) {
            printf("%-12s %s\n", format->name, format->purpose);
        }
        exit(cli_finish(CLI_OK));
    }
    if (!format) {
        char names[512];
        struct profile_guess guess = {.word = name, .length = strlen(name)};
        size_t used = 0;
        for (format = map_formats; format->name && used < sizeof names; format++) {
            profile_guess(&guess, format->name);
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     format->name);
        }
        cli_usage("--format: expected one of %s, got '%s'%s%s%s", names, name,
                  guess.name ? ", did you mean '" : "", guess.name ? guess.name : "",
                  guess.name ? "'?" : "");
    }
    return format;
}

/* -- The nodes that a job will run on. In whatever order they stand there, the mapping takes them
 * in that of the profile, and names them to the launcher. -- */

enum { NAME_SIZE = 256 };

struct job_nodes {
    const struct servet_profile *profile;
    uint32_t *pus;
    size_t count;
    const char *source; /* of the names, for errors */
    struct servet_error *error;
};

/* The number of the node of that name; -1: the profile does not have it. */
static int64_t node_of_name(const struct servet_profile *profile, const char *name)
{
    uint32_t first = 0;
    for (size_t i = 0; i < profile->node_range_count; i++) {
        int64_t position = profile_hostlist_find(profile->nodes[i].names, name);
        if (position >= 0) {
            return first + position;
        }
        first += profile->nodes[i].count;
    }
    return -1;
}

static int add_job_node(struct job_nodes *job, const char *name)
{
    const int64_t node = node_of_name(job->profile, name);
    if (node < 0) {
        return profile_error(job->error, -EINVAL, "%s: expected nodes of the profile, got '%s'",
                             job->source, name);
    }
    const struct profile_set *own = &profile_node_class(job->profile, (uint32_t)node)->pus;
    const uint32_t first_pu = profile_node_first_pu(job->profile, (uint32_t)node);
    uint32_t *pus = realloc(job->pus, (job->count + own->count) * sizeof *pus);
    if (!pus) {
        return -ENOMEM;
    }
    job->pus = pus;
    for (size_t i = 0; i < own->count; i++) {
        job->pus[job->count++] = first_pu + own->ids[i];
    }
    return 0;
}

static int add_list(struct job_nodes *job, const char *list)
{
    uint32_t count;
    char name[NAME_SIZE];
    if (profile_hostlist_count(list, &count) < 0) {
        return profile_error(job->error, -EINVAL, "%s: expected names of nodes, got '%s'",
                             job->source, list);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (profile_hostlist_name(list, i, name, sizeof name) < 0) {
            return profile_error(job->error, -EINVAL, "%s: a name of a node is too long",
                                 job->source);
        }
        TRY(add_job_node(job, name));
    }
    return 0;
}

static int finish_job(struct job_nodes *job, int rc, struct profile_set *pus)
{
    if (rc == 0) {
        rc = job->count ? profile_set_from_array(job->pus, job->count, pus)
                        : profile_error(job->error, -EINVAL, "%s: expected at least one node",
                                        job->source);
    }
    free(job->pus);
    return map_out_of_memory(rc, job->error);
}

/* "node1 slots=4" and "node1:4" to "node1". */
static char *name_in(char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    line[strcspn(line, " \t:")] = '\0';
    return line;
}

int map_job_from_file(const struct servet_profile *profile, const char *path,
                      struct profile_set *pus, struct servet_error *error)
{
    char source[PATH_MAX + 32], *line = NULL;
    size_t size = 0, number = 0;
    struct job_nodes job = {.profile = profile, .source = source, .error = error};
    FILE *file = fopen(path, "re");
    snprintf(source, sizeof source, "%s", path);
    if (!file) {
        int code = errno;
        return profile_error(error, -code, "%s: %s", path, strerror(code));
    }
    int rc = 0;
    while (rc == 0 && getline(&line, &size, file) > 0) {
        char *name = name_in(line);
        snprintf(source, sizeof source, "%s:%zu", path, ++number);
        rc = *name ? add_list(&job, name) : 0;
    }
    if (rc == 0 && !feof(file)) {
        int code = errno;
        rc = profile_error(error, -code, "%s: %s", path, strerrordesc_np(code));
    }
    fclose(file);
    free(line);
    return finish_job(&job, rc, pus);
}

int map_job_from_slurm(const struct servet_profile *profile, struct profile_set *pus,
                       struct servet_error *error)
{
    struct job_nodes job = {.profile = profile, .source = "SLURM_JOB_NODELIST", .error = error};
    const char *list = getenv("SLURM_JOB_NODELIST");
    if (!list || !*list) {
        return profile_error(
            error, -EINVAL,
            "--slurm: expected to run inside a Slurm job (SLURM_JOB_NODELIST is not set)");
    }
    return finish_job(&job, add_list(&job, list), pus);
}
