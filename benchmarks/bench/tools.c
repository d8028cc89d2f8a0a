/* Where the programs are that are run: beside servet-bench, in the build tree around it, in
 * $PATH. */
#include "benchmarks/bench/tools.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/base/child.h"
#include "profile/base/cli.h"
#include "profile/base/control_groups.h"
#include "profile/base/file.h"
#include "profile/base/mask.h"

/* Folders of the build tree that hold commands, seen from the folder of servet-bench. */
static const char *const build_folders[] = {
    ".", "../../preload", "../../mapper", "../../probes", "../../report", "../../profile", NULL};

static bool is_program(const char *path)
{
    struct stat status;
    return access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

void *bench_memory(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        cli_fail("out of memory");
    }
    return memory;
}

char *bench_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(bench_memory(size, 1), text, size);
}

char *bench_text(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) {
        cli_fail("out of memory");
    }
    va_end(arguments);
    return text;
}

bool bench_matches(const regex_t *compiled, const char *text, size_t count, regmatch_t *match,
                   int flags)
{
    errno = 0;
    bool found = regexec(compiled, text, count, match, flags) == 0;
    if (!found && errno == ENOMEM) { /* glibc answers REG_NOMATCH then, too */
        cli_fail("out of memory");
    }
    return found;
}

char *bench_tools_find(const char *name)
{
    if (strchr(name, '/')) {
        return is_program(name) ? bench_copy(name) : NULL;
    }
    const char *path = getenv("PATH");
    char candidate[PATH_MAX];
    for (const char *next = path ? path : "/usr/bin:/bin"; *next;) {
        size_t length = strcspn(next, ":");
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, next, name);
        if (is_program(candidate)) {
            return bench_copy(candidate);
        }
        next += length + (next[length] == ':');
    }
    return NULL;
}

char *bench_tools_ours(const char *name)
{
    char path[PATH_MAX];
    return profile_child_find(build_folders, name, X_OK, path) == 0 ? bench_copy(path)
                                                                    : bench_tools_find(name);
}

char *bench_tools_kernels(void)
{
    static const char *const places[] = {"../kernels", SERVET_KERNELS_FROM_BIN, NULL};
    char path[PATH_MAX];
    return profile_child_find(places, ".", X_OK, path) == 0 ? bench_copy(path) : NULL;
}

size_t bench_tools_pus(void)
{
    struct profile_mask mask;
    return profile_mask_get(0, &mask) < 0 ? 1 : profile_mask_count(&mask);
}

int bench_make_folder(const char *path)
{
    struct stat status;
    int rc = profile_make_folders(path, 0777);
    if (rc < 0) {
        return rc;
    }
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode) ? 0 : -EEXIST;
}

struct bench_quota bench_tools_quota(void)
{
    struct bench_quota quota = {0};
    if (profile_quota_read("", &quota.cpus) == 0 && quota.cpus > 0) {
        snprintf(quota.text, sizeof quota.text, ", in a quota of %.3g CPUs", quota.cpus);
    }
    return quota;
}
