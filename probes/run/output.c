/* Where the profile goes, and what an interrupted run must have in common with the one that goes
 * on: the same kernel, page settings and machine. */
#include "probes/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/checkpoint.h"
#include "profile/base/file.h"
#include "profile/model.h"

static int make_folders(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", folder);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST) {
            return -errno;
        }
        *slash = '/';
    }
    return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/* What saving will need: a name that a temporary file can have beside it. */
static int try_folder(const char *path)
{
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof temporary) {
        return -ENAMETOOLONG;
    }
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    close(fd);
    return unlink(temporary) < 0 ? -errno : 0;
}

/* The folder of a file that was named, where only that one is missing: /etc/servet on a machine
 * without a profile. Of a path that lies further away the first part may be misspelt. */
static int make_folder_of(const char *path)
{
    char folder[PATH_MAX];
    struct stat status;
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder) {
        return 0;
    }
    *slash = '\0';
    if (stat(folder, &status) == 0 || errno != ENOENT) {
        return 0;
    }
    return mkdir(folder, 0755) < 0 && errno != ENOENT ? -errno : 0;
}

static int check_place(const char *path, struct servet_error *error)
{
    char target[PATH_MAX];
    struct stat status;
    const char *real = realpath(path, target); /* a link stays one: what it points at is replaced */
    if (real && stat(real, &status) == 0 && !S_ISREG(status.st_mode)) {
        return profile_error(error, -EINVAL, "%s: not a regular file, expected one or none", path);
    }
    int rc = try_folder(real ? real : path);
    return rc < 0 ? profile_error(error, rc, "%s: cannot write there: %s", path, strerror(-rc)) : 0;
}

int probe_output_choose(const char *wanted, char *path, size_t size, struct servet_error *error)
{
    char folder[PATH_MAX];
    int rc = 0;
    if (wanted && wanted[0] == '\0') {
        return profile_error(error, -EINVAL,
                             "--output: expected a file, or '-' for standard output, got ''");
    }
    if (wanted && strlen(wanted) >= size) {
        return profile_error(error, -ENAMETOOLONG, "--output: %s", strerror(ENAMETOOLONG));
    }
    if (wanted) {
        snprintf(path, size, "%s", wanted);
        rc = make_folder_of(path);
        return rc < 0
                   ? profile_error(error, rc, "%s: cannot make its folder: %s", path, strerror(-rc))
                   : check_place(path, error);
    }
    rc = profile_default_path(path, size, error);
    if (rc < 0) {
        return rc;
    }
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = '\0';
        rc = make_folders(folder);
    }
    return rc < 0 ? profile_error(error, rc, "%s: cannot write there: %s", path, strerror(-rc))
                  : check_place(path, error);
}

static const char simulated[] = "simulated:";

/* Its first line, in which the setting in force is marked ("always [madvise] never"); "?" if it
 * cannot be read. */
static void read_setting(const char *root, const char *name, char *line, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", root, name);
    if (!profile_first_line(path, line, size)) {
        strcpy(line, "?");
    }
}

/* Of what a file holds; 0 if it cannot be read. */
static uint64_t checksum(const char *path)
{
    uint64_t sum = 0, words[512];
    size_t length;
    FILE *file = fopen(path, "re");
    while (file &&
           (memset(words, 0, sizeof words), length = fread(words, 1, sizeof words, file)) > 0) {
        char before[32];
        snprintf(before, sizeof before, "%" PRIx64 " %zu", sum, length);
        sum = probe_checkpoint_key(before, "file", words, sizeof words / sizeof *words);
    }
    if (file) {
        fclose(file);
    }
    return sum;
}

char *probe_run_identity(const char *root, const char *machine)
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
