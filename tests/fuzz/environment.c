/* Input of the shim in every program: SERVET_* and the variables of launchers. The input is a line
 * for each variable. */
#include <stdlib.h>
#include <string.h>

#include "preload/place/options.h"
#include "preload/place/places.h"
#include "profile/base/launchers.h"
#include "tests/fuzz/fuzz.h"

#define MOST_VARIABLES 64

const char *const fuzz_seeds[] = {
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
    "SERVET_AUTO=1\nSERVET_WATCH=0",
    NULL,
};

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
    return 0;
}
