/* How much of a cache the kernel's resctrl lets this process allocate in (Intel CAT, AMD QoS,
 * Arm MPAM): a cache that is partly withheld measures smaller, and this says why. */
#include "probes/run/run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/topology/topology.h"

enum { CACHES_MAX = 10, HEXADECIMAL = 16 }; /* index0 … of a PU */

static const char mount[] = "/sys/fs/resctrl";

struct look {
    struct sysfs *fs;
    long task;
    uint32_t pu, level;
};

/* -- which group -- */

/* A list of tasks may be long: it is read line by line. */
static bool lists_task(const struct look *look, const char *group)
{
    char path[2 * SYSFS_PATH_SIZE], line[32];
    bool found = false;
    snprintf(path, sizeof path, "%s%s/%s/tasks", look->fs->root, mount, group);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        found = strtol(line, NULL, 10) == look->task;
    }
    if (file) {
        fclose(file);
    }
    return found;
}

static bool has_pu(const struct look *look, const char *group)
{
    struct profile_set pus;
    if (profile_sysfs_read_set(look->fs, &pus, "%s/%s/cpus_list", mount, group) < 0) {
        return false;
    }
    bool has = profile_set_has(&pus, look->pu);
    profile_set_free(&pus);
    return has;
}

static bool is_group(const struct dirent *entry)
{
    static const char *const others[] = {"info", "mon_data", "mon_groups"};
    bool group = entry->d_type == DT_DIR && entry->d_name[0] != '.';
    for (size_t i = 0; group && i < sizeof others / sizeof *others; i++) {
        group = strcmp(entry->d_name, others[i]) != 0;
    }
    return group;
}

/* The name of the first group that the question holds for, as a new string, or NULL. */
static char *find_group(const struct look *look, bool holds(const struct look *, const char *))
{
    char path[2 * SYSFS_PATH_SIZE];
    snprintf(path, sizeof path, "%s%s", look->fs->root, mount);
    DIR *folder = opendir(path);
    char *name = NULL;
    for (struct dirent *entry; folder && !name && (entry = readdir(folder));) {
        if (is_group(entry) && holds(look, entry->d_name)) {
            name = strdup(entry->d_name);
        }
    }
    if (folder) {
        closedir(folder);
    }
    return name;
}

/* -- which mask -- */

static int cache_number(const struct look *look, uint32_t *out)
{
    for (unsigned index = 0; index < CACHES_MAX; index++) {
        uint32_t level, number;
        const char *const where = "/sys/devices/system/cpu/cpu%u/cache/index%u/%s";
        if (profile_sysfs_read_u32(look->fs, &level, where, look->pu, index, "level") < 0 ||
            level != look->level) {
            continue;
        }
        int rc = profile_sysfs_read(look->fs, where, look->pu, index, "type");
        if (rc < 0 || strcmp(look->fs->text, "Instruction") == 0) {
            continue;
        }
        rc = profile_sysfs_read_u32(look->fs, &number, where, look->pu, index, "id");
        if (rc == 0) {
            *out = number;
            return 0;
        }
    }
    return -ENOENT;
}

static uint32_t bits_of(const char *mask)
{
    return (uint32_t)__builtin_popcountll(strtoull(mask, NULL, HEXADECIMAL));
}

/* "    L3:0=7ff;1=3f": the mask of cache `number`; of code and data apart, that of data. */
static const char *mask_in(const char *schemata, uint32_t level, uint32_t number)
{
    char names[2][16];
    snprintf(names[0], sizeof names[0], "L%u:", level);
    snprintf(names[1], sizeof names[1], "L%uDATA:", level);
    for (const char *line = schemata; line; line = strchr(line, '\n')) {
        line += strspn(line, "\n ");
        for (size_t i = 0; i < 2; i++) {
            bool here = strncmp(line, names[i], strlen(names[i])) == 0;
            const char *at = here ? line + strlen(names[i]) : NULL,
                       *end = line + strcspn(line, "\n");
            while (at && at < end) {
                char *equals;
                if (strtoul(at, &equals, 10) == number && *equals == '=') {
                    return equals + 1;
                }
                at += strcspn(at, ";\n") + 1;
            }
        }
    }
    return NULL;
}

static int share_of_group(const struct look *look, const char *group, struct resctrl_share *out)
{
    struct resctrl_share share = {0};
    uint32_t number = 0;
    struct sysfs *fs = look->fs;
    int rc = cache_number(look, &number);
    rc = rc < 0 ? rc : profile_sysfs_read(fs, "%s/info/L%u/cbm_mask", mount, look->level);
    if (rc == -ENOENT) {
        rc = profile_sysfs_read(fs, "%s/info/L%uDATA/cbm_mask", mount, look->level);
    }
    if (rc < 0) {
        return rc;
    }
    share.of = bits_of(fs->text);
    rc = profile_sysfs_read(fs, "%s/%s/schemata", mount, group);
    const char *mask = rc == 0 ? mask_in(fs->text, look->level, number) : NULL;
    share.parts = mask ? bits_of(mask) : 0;
    if (rc == 0 && (share.parts == 0 || share.parts > share.of)) {
        rc = -EINVAL;
    }
    if (rc == 0) {
        *out = share;
    }
    return rc;
}

int probe_resctrl_share(const char *root, long task, uint32_t pu, uint32_t level,
                        struct resctrl_share *out)
{
    struct sysfs *fs = calloc(1, sizeof *fs);
    if (!fs) {
        return -ENOMEM;
    }
    fs->root = root;
    const struct look look = {fs, task, pu, level};
    char *group = find_group(&look, lists_task);
    group = group ? group : find_group(&look, has_pu);
    int rc = share_of_group(&look, group ? group : "", out);
    free(group);
    free(fs);
    return rc;
}
