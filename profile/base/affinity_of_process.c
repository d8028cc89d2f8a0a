/* Where a thread is right now. */
#include "profile/base/affinity_of_process.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/file.h"

int profile_affinity_of_thread(pid_t pid, pid_t tid, struct profile_thread_now *out)
{
    char path[96], text[4096];
    struct profile_thread_now now = {.pid = pid, .tid = tid};
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    if (!profile_read_small(path, text, sizeof text)) {
        return -ESRCH;
    }
    const char *pu = profile_stat_find(text, PROFILE_STAT_PU);
    char *left = strchr(text, '('), *right = strrchr(text, ')');
    if (!left || !right) {
        return -ESRCH;
    }
    *right = '\0';
    snprintf(now.name, sizeof now.name, "%.31s", left + 1);
    now.last_pu = pu ? atoi(pu) : -1;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)tid);
    if (!profile_read_small(path, text, sizeof text)) {
        return -ESRCH;
    }
    const char *allowed = strstr(text, "Cpus_allowed_list:");
    allowed = allowed ? allowed + strlen("Cpus_allowed_list:") + 1 : "";
    snprintf(now.allowed, sizeof now.allowed, "%.*s", (int)strcspn(allowed, "\n"), allowed);
    *out = now;
    return 0;
}

static void read_number(const char *format, int32_t pu, char *out, size_t size)
{
    char path[128], text[32];
    snprintf(path, sizeof path, format, pu);
    bool read = profile_read_small(path, text, sizeof text);
    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), read ? text : "-");
}

/* The cpuN folder holds a link nodeM. */
static void find_node(int32_t pu, char *out, size_t size)
{
    char path[64];
    struct dirent *entry;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d", pu);
    snprintf(out, size, "-");
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        if (strncmp(entry->d_name, "node", 4) == 0 && entry->d_name[4] >= '0' &&
            entry->d_name[4] <= '9') {
            snprintf(out, size, "%.15s", entry->d_name + 4);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

/* Names come from the program and may hold anything. */
static void print_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20 || byte == '"' || byte == '\\' || byte >= 0x7f) {
            fprintf(out, "\\u%04x", byte);
        } else {
            fputc(byte, out);
        }
    }
    fputc('"', out);
}

static void print_member(FILE *out, const char *name, const char *text, const char *after)
{
    fprintf(out, "\"%s\":", name);
    print_string(out, text);
    fputs(after, out);
}

/* The same as text: "\\n" and "\\x1b" for what would break the line or be obeyed by a terminal. */
static void escape(const char *text, char *out, size_t size)
{
    size_t used = 0;
    for (; *text && used + sizeof "\\xff" < size; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '\n') {
            used += (size_t)snprintf(out + used, size - used, "\\n");
        } else if (byte < 0x20 || byte >= 0x7f) {
            used += (size_t)snprintf(out + used, size - used, "\\x%02x", byte);
        } else {
            out[used++] = (char)byte;
        }
    }
    out[used] = '\0';
}

void profile_affinity_print(FILE *out, bool json, const struct profile_thread_now *now,
                            const struct profile_thread_said *said)
{
    char core[16], l3[16], node[16];
    read_number("/sys/devices/system/cpu/cpu%d/topology/core_id", now->last_pu, core, sizeof core);
    read_number("/sys/devices/system/cpu/cpu%d/cache/index3/id", now->last_pu, l3, sizeof l3);
    find_node(now->last_pu, node, sizeof node);
    if (!json) {
        char name[4 * sizeof now->name + 1];
        escape(now->name, name, sizeof name);
        fprintf(out, "%s %d rank %s tid %d %s %s PU %s last %d core %s L3 %s NUMA %s by %s\n",
                said->host, (int)now->pid, said->rank, (int)now->tid, name, said->role, said->pus,
                now->last_pu, core, l3, node, said->decided_by);
        return;
    }
    fprintf(out, "{\"pid\":%d,\"tid\":%d,\"last_pu\":%d,", (int)now->pid, (int)now->tid,
            now->last_pu);
    print_member(out, "host", said->host, ",");
    print_member(out, "local_rank", said->rank, ",");
    print_member(out, "name", now->name, ",");
    print_member(out, "role", said->role, ",");
    print_member(out, "pus", said->pus, ",");
    print_member(out, "core", core, ",");
    print_member(out, "l3", l3, ",");
    print_member(out, "numa", node, ",");
    print_member(out, "decided_by", said->decided_by, "}\n");
}
