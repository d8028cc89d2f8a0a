#include "run_identity.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "first_line.h"
#include "machine_journal.h"

static const char simulated[] = "simulated:";

/* Its first line, in which the setting in force is marked ("always [madvise] never"); "?" if it cannot be read. */
static void read_setting(const char *root, const char *name, char *line, int size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", root, name);
    if (!first_line(path, line, size)) {
        strcpy(line, "?");
    }
}

/* Of what a file holds; 0 if it cannot be read. */
static uint64_t checksum(const char *path)
{
    uint64_t sum = 0, words[512];
    size_t length;
    FILE *file = fopen(path, "re");
    while (file && (memset(words, 0, sizeof words), length = fread(words, 1, sizeof words, file)) > 0) {
        char before[32];
        snprintf(before, sizeof before, "%" PRIx64 " %zu", sum, length);
        sum = machine_journal_key(before, "file", words, sizeof words / sizeof *words);
    }
    if (file) {
        fclose(file);
    }
    return sum;
}

char *run_identity(const char *root, const char *machine)
{
    char kernel[256], enabled[256], defrag[256], *text = NULL;
    if (strncmp(machine, simulated, strlen(simulated)) == 0) {
        int length = asprintf(&text, "file=%" PRIx64, checksum(machine + strlen(simulated)));
        return length < 0 ? NULL : text;
    }
    read_setting(root, "/proc/sys/kernel/osrelease", kernel, sizeof kernel);
    read_setting(root, "/sys/kernel/mm/transparent_hugepage/enabled", enabled, sizeof enabled);
    read_setting(root, "/sys/kernel/mm/transparent_hugepage/defrag", defrag, sizeof defrag);
    int length = asprintf(&text, "kernel=%s huge_pages=%s defrag=%s", kernel, enabled, defrag);
    return length < 0 ? NULL : text;
}
