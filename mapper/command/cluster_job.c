/* The nodes that a job will run on, before it starts: from a file or from the batch system.
 * Their order is the order of the ranks, so it is kept. */
#include "mapper/command/command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/model.h"

enum { NAME_SIZE = 256 };

struct job {
    const struct servet_profile *profile;
    uint32_t *pus;
    size_t count;
    const char *source; /* of the names, for errors */
    struct servet_error *error;
};

/* Node number of `name`, first PU number and class; false when the profile does not have it. */
static bool find_node(const struct servet_profile *profile, const char *name, uint32_t *first_pu,
                      const struct profile_class **node_class)
{
    *first_pu = 0;
    for (size_t i = 0; i < profile->node_range_count; i++) {
        const struct profile_node_range *range = &profile->nodes[i];
        uint32_t span = profile_class_span(&profile->classes[range->class_index]);
        int64_t position = profile_hostlist_find(range->names, name);
        if (position >= 0) {
            *first_pu += (uint32_t)position * span;
            *node_class = &profile->classes[range->class_index];
            return true;
        }
        *first_pu += range->count * span;
    }
    return false;
}

static int add_node(struct job *job, const char *name)
{
    const struct profile_class *node_class;
    uint32_t first_pu;
    if (!find_node(job->profile, name, &first_pu, &node_class)) {
        return profile_error(job->error, -EINVAL, "%s: expected nodes of the profile, got '%s'",
                             job->source, name);
    }
    uint32_t *pus = realloc(job->pus, (job->count + node_class->pus.count) * sizeof *pus);
    if (!pus) {
        return profile_error(job->error, -ENOMEM, "out of memory");
    }
    job->pus = pus;
    for (size_t i = 0; i < node_class->pus.count; i++) {
        job->pus[job->count++] = first_pu + node_class->pus.ids[i];
    }
    return 0;
}

static int add_list(struct job *job, const char *list)
{
    uint32_t count;
    char name[NAME_SIZE];
    if (profile_hostlist_count(list, &count) < 0) {
        return profile_error(job->error, -EINVAL, "%s: expected names of nodes, got '%s'",
                             job->source, list);
    }
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        rc = profile_hostlist_name(list, i, name, sizeof name);
        rc = rc < 0 ? profile_error(job->error, -EINVAL, "%s: a name of a node is too long",
                                    job->source)
                    : add_node(job, name);
    }
    return rc;
}

static int finish(struct job *job, int rc, struct profile_set *pus)
{
    if (rc == 0 && !job->count) {
        rc = profile_error(job->error, -EINVAL, "%s: expected at least one node", job->source);
    }
    if (rc == 0 && profile_set_from_array(job->pus, job->count, pus) < 0) {
        rc = profile_error(job->error, -ENOMEM, "out of memory");
    }
    free(job->pus);
    return rc;
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
    struct job job = {.profile = profile, .source = source, .error = error};
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
    if (rc == 0 && ferror(file)) {
        rc = profile_error(error, -EIO, "%s: cannot be read", path);
    }
    fclose(file);
    free(line);
    return finish(&job, rc, pus);
}

int map_job_from_slurm(const struct servet_profile *profile, struct profile_set *pus,
                       struct servet_error *error)
{
    struct job job = {.profile = profile, .source = "SLURM_JOB_NODELIST", .error = error};
    const char *list = getenv("SLURM_JOB_NODELIST");
    if (!list || !*list) {
        return profile_error(
            error, -EINVAL,
            "--slurm: expected to run inside a Slurm job (SLURM_JOB_NODELIST is not set)");
    }
    return finish(&job, add_list(&job, list), pus);
}
