/* Processes that run, as /proc shows them. */
#include "profile/processes/process.h"

#include <stdlib.h>
#include <string.h>

#include "profile/base/file.h"

/* Fields of /proc/PID/task/TID/stat, counted as proc(5) does. */
enum field {
    FIELD_NAME = 2, /* in parentheses; may hold anything */
    FIELD_STATE,
    FIELD_PARENT,
    FIELD_USER = 14,
    FIELD_SYSTEM,
    FIELD_THREADS = 20,
    FIELD_BEGAN = 22,
    FIELD_BYTES,
    FIELD_PU = 39,
};

/* "" where there are not as many. */
static const char *find_field(const char *name_end, enum field number)
{
    const char *at = name_end;
    for (int i = FIELD_NAME; at && i < (int)number; i++) {
        at = strchr(at + 1, ' ');
    }
    return at ? at + 1 : "";
}

static uint64_t number_at(const char *name_end, enum field number)
{
    return strtoull(find_field(name_end, number), NULL, 10);
}

bool profile_stat_read(pid_t pid, pid_t tid, struct profile_stat *out)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    const bool is_there = profile_read_small(path, text, sizeof text);
    const char *left = strchr(text, '('), *right = strrchr(text, ')');
    if (!is_there || !left || !right || right < left) {
        return false;
    }
    *out = (struct profile_stat){
        .pid = pid,
        .state = *find_field(right, FIELD_STATE),
        .parent = (pid_t)number_at(right, FIELD_PARENT),
        .threads = (uint32_t)number_at(right, FIELD_THREADS),
        .ran = number_at(right, FIELD_USER) + number_at(right, FIELD_SYSTEM),
        .began = number_at(right, FIELD_BEGAN),
        .bytes = number_at(right, FIELD_BYTES),
        .pu = (int32_t)number_at(right, FIELD_PU),
    };
    snprintf(out->name, sizeof out->name, "%.*s", (int)(right - left - 1), left + 1);
    return true;
}

bool profile_schedstat_read(pid_t pid, pid_t tid, uint64_t *ran_ns, uint64_t *waited_ns)
{
    char path[64], text[96], *end;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    if (!profile_read_small(path, text, sizeof text)) {
        return false;
    }
    *ran_ns = strtoull(text, &end, 10);
    *waited_ns = strtoull(end, NULL, 10);
    return true;
}

bool profile_descends_from(pid_t pid, pid_t ancestor)
{
    struct profile_stat it;
    while (ancestor > 0 && pid > 1 && profile_stat_read(pid, pid, &it)) {
        pid = it.parent;
        if (pid == ancestor) {
            return true;
        }
    }
    return false;
}

DIR *profile_open_numbers(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return opendir(pid > 0 ? path : "/proc");
}

pid_t profile_next_number(DIR *folder)
{
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        if (atoi(entry->d_name) > 0) {
            return atoi(entry->d_name);
        }
    }
    if (folder) {
        closedir(folder);
    }
    return 0;
}

char *profile_variable_of(pid_t pid, const char *name)
{
    char path[64], *entry = NULL;
    size_t room = 0;
    const size_t length = strlen(name);
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && !found && getdelim(&entry, &room, '\0', file) > 0) {
        found = strncmp(entry, name, length) == 0 && entry[length] == '=';
    }
    char *value = found ? strdup(entry + length + 1) : NULL;
    free(entry);
    if (file) {
        fclose(file);
    }
    return value;
}

FILE *profile_open_regions(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    return fopen(path, "re");
}

bool profile_next_region(FILE *file, struct profile_region *out)
{
    char line[4096 + 128]; /* a path and what is before it */
    while (file && fgets(line, sizeof line, file)) {
        const char *slash = strrchr(line, '/');
        if (sscanf(line, "%zx-%zx %4s", &out->from, &out->to, out->rights) == 3) {
            snprintf(out->file, sizeof out->file, "%.*s", slash ? (int)strcspn(slash + 1, "\n") : 0,
                     slash ? slash + 1 : "");
            return true;
        }
    }
    if (file) {
        fclose(file);
    }
    return false;
}
