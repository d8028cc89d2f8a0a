#include "conditions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "first_line.h"

int conditions_add(struct servet_profile *profile, const char *key, const char *value)
{
    struct profile_condition *all =
        realloc(profile->conditions, (profile->condition_count + 1) * sizeof *profile->conditions);
    if (!all) {
        return -ENOMEM;
    }
    profile->conditions = all;
    struct profile_condition *condition = &all[profile->condition_count];
    *condition = (struct profile_condition){strdup(key), strdup(value)};
    if (!condition->key || !condition->value) {
        free(condition->key);
        free(condition->value);
        return -ENOMEM;
    }
    profile->condition_count++;
    return 0;
}

static bool read_line(const char *path, char *line, int size)
{
    return first_line(path, line, size) && line[0] != '\0';
}

static int add_file(struct servet_profile *profile, const char *key, const char *path)
{
    char line[256];
    return read_line(path, line, sizeof line) ? conditions_add(profile, key, line) : 0;
}

/* "always [madvise] never" -> "madvise" */
static int add_chosen(struct servet_profile *profile, const char *key, const char *path)
{
    char line[256];
    if (!read_line(path, line, sizeof line)) {
        return 0;
    }
    char *start = strchr(line, '['), *end = start ? strchr(start, ']') : NULL;
    if (!end) {
        return 0;
    }
    *end = '\0';
    return conditions_add(profile, key, start + 1);
}

/* A field of the first PU in /proc/cpuinfo. */
static bool cpuinfo(const char *key, char *value, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[4096];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, key, strlen(key)) == 0) {
            colon[strcspn(colon, "\n")] = '\0';
            snprintf(value, size, "%s", colon + 1 + strspn(colon + 1, " "));
            found = true;
        }
    }
    if (file) {
        fclose(file);
    }
    return found;
}

bool conditions_virtual_machine(void)
{
    char flags[4096];
    return cpuinfo("flags", flags, sizeof flags) && strstr(flags, " hypervisor");
}

int conditions_of_this_machine(struct servet_profile *profile)
{
    char text[4096];
    int rc = add_file(profile, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    rc = rc < 0 ? rc : add_chosen(profile, "transparent_huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled");
    rc = rc < 0 ? rc : add_file(profile, "smt", "/sys/devices/system/cpu/smt/control");
    if (cpuinfo("flags", text, sizeof text)) {
        rc = rc < 0 ? rc : conditions_add(profile, "virtual_machine", conditions_virtual_machine() ? "yes" : "no");
    }
    if (cpuinfo("microcode", text, sizeof text)) {
        rc = rc < 0 ? rc : conditions_add(profile, "microcode", text);
    }
    return rc;
}
