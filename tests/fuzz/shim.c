/* Input of the shim in every program. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/place/options.h"
#include "preload/place/places.h"
#include "preload/place/process.h"
#include "profile/base/launchers.h"
#include "tests/fuzz/fuzz.h"

/* -- SERVET_* and the variables of launchers; the input is a line for each variable -- */

#define MOST_VARIABLES 64

extern char **environ;

static void expect_shorter(const char *text, size_t size)
{
    fuzz_expect(!text || strnlen(text, size) < size, "a value that ends");
}

static void read_options(struct pin_options *options)
{
    memset(options, 0, sizeof *options);
    pin_options_read(options);
    expect_shorter(options->helpers, PIN_PATTERNS_SIZE);
    expect_shorter(options->workers, PIN_PATTERNS_SIZE);
    expect_shorter(options->profile, PATH_MAX);
    expect_shorter(options->registry, PATH_MAX);
    expect_shorter(options->report, PATH_MAX);
    expect_shorter(options->trace, PATH_MAX);
}

static void read_launcher(bool rebind)
{
    struct pin_launcher launcher;
    struct profile_mask start = {0}, allowed = {0}, before;
    uint32_t order[4];
    profile_mask_add(&start, 0);
    profile_mask_add(&start, PROFILE_MASK_PUS - 1);
    pin_launcher_read(rebind, &launcher);
    fuzz_expect(!launcher.name || launcher.local_rank < launcher.local_size,
                "a rank below their number");
    fuzz_expect(launcher.local_size <= PROFILE_MOST_RANKS &&
                    launcher.node_ranks <= PROFILE_MOST_RANKS,
                "ranks as many as there may be");
    pin_launcher_allowed(&launcher, &start, &allowed);
    fuzz_expect(!profile_mask_empty(&allowed), "some PU");
    pin_launcher_oversubscribed(&launcher, &start);
    before = start;
    (void)pin_places_read(&launcher, true, &before);
    fuzz_expect(!profile_mask_empty(&before), "some PU");
    fuzz_expect(pin_places_order(order, 4) <= 4, "as many as there is room for");
    pin_places_drop(&before);
    (void)pin_users_places();
}

FUZZ(environment,
     "OMPI_COMM_WORLD_LOCAL_RANK=1\nOMPI_COMM_WORLD_LOCAL_SIZE=4\nPMIX_NAMESPACE=prterun-1\n"
     "OMPI_MCA_orte_bound_at_launch=1",
     "MPI_LOCALRANKID=0\nMPI_LOCALNRANKS=2\nHYDRA_USER_PROVIDED_BINDING=1",
     "PMI_RANK=3\nPMI_SIZE=2\nPALS_LOCAL_RANKID=8191\nPALS_LOCAL_SIZE=8192",
     "SLURM_STEP_TASKS_PER_NODE=2(x3),1\nSLURM_LOCALID=0\nSLURM_NODEID=3\nSLURM_JOB_ID=7\n"
     "SLURM_CPU_BIND_TYPE=mask_cpu:\nSLURM_CPU_BIND_LIST=0x3,0xc",
     "SLURM_STEP_TASKS_PER_NODE=4\nSLURM_LOCALID=1\nSLURM_CPU_BIND_TYPE=map_cpu:\n"
     "SLURM_CPU_BIND_LIST=0,2,1,3\nSERVET_REBIND=1",
     "PMIX_RANK=0\nPMIX_NAMESPACE=a\nOMP_PLACES={0},{4}\nOMP_PROC_BIND=close\n"
     "SERVET_RANK=f 0/1 0-7 {0},{4}",
     "OMPI_COMM_WORLD_LOCAL_RANK=0\nOMPI_COMM_WORLD_LOCAL_SIZE=1\n"
     "OMPI_MCA_hwloc_base_binding_policy=core\nOMP_PLACES={0},{4}\nOMP_PROC_BIND=close\n"
     "SERVET_RANK=0 0/1 0-7 {0},{4}",
     "SERVET_PROFILE=a/b.json\nSERVET_REGISTRY=0\nSERVET_REPORT=stderr\nSERVET_TRACE=-\n"
     "SERVET_MEMBIND=local\nSERVET_HELPERS=libuv*,libev*\nSERVET_WORKERS=lib[a-z]*\n"
     "SERVET_AUTO=1\nSERVET_WATCH=0")
{
    static struct pin_options options;
    char *lines[MOST_VARIABLES + 1] = {NULL}, *seen[MOST_VARIABLES + 1], **own = environ,
                                 *text = fuzz_text(data, size);
    size_t count = 0;
    for (char *rest = text, *line; count < MOST_VARIABLES && (line = strsep(&rest, "\n"));) {
        lines[count++] = strdup(line);
    }
    memcpy(seen, lines, sizeof seen); /* from which some may be taken */
    environ = seen;
    read_options(&options);
    read_launcher(options.rebind);
    environ = own;
    for (size_t i = 0; i < count; i++) {
        free(lines[i]);
    }
    free(text);
}

/* -- what SERVET_AUTO remembers of a program: a file that anybody may have written -- */

static char folder[64];
static char program[96];

static void clean_up(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    fuzz_expect(system(command) == 0, "to remove the folder");
}

static void start(void)
{
    if (program[0]) {
        return;
    }
    /* Thousands of small files: in memory where that can be. */
    snprintf(folder, sizeof folder, "%s/servet-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    fuzz_expect(mkdtemp(folder) != NULL, "a folder");
    atexit(clean_up);
    setenv("XDG_CACHE_HOME", folder, 1);
    snprintf(program, sizeof program, "%s/program", folder);
}

static void write_file(const char *path, const void *data, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_expect(file >= 0 && write(file, data, size) == (ssize_t)size, "a written file");
    close(file);
}

/* A remembered file that ends with `data`. */
static void remember(const void *data, size_t size)
{
    char file[PATH_MAX], text[2 * PATH_MAX];
    fuzz_expect(pin_priority_cache_file(program, file, text) == 0, "a place of the memory");
    fuzz_expect(pin_cache_make_folders(file) == 0, "its folders");
    const size_t head = strlen(text), rest = sizeof text - head;
    size = size < rest ? size : rest;
    memcpy(text + head, data, size);
    write_file(file, text, head + size);
}

FUZZ(program, "priority communication share 0.4321 ranks 8\n",
     "priority memory share 0.0100 ranks 4\n")
{
    static const char last[] = "priority communication share 0.5000 ranks 4\n";
    struct pin_priority_cache recalled = {0};
    start();
    write_file(program, data, size);
    remember(last, strlen(last));
    fuzz_expect(pin_priority_cache_recall(program, &recalled) == 0 && recalled.communication &&
                    recalled.ranks == 4,
                "to recall what was remembered");
    remember(data, size);
    fuzz_expect(pin_priority_cache_recall(program, &recalled) <= 0, "0 or a negative code");
}
