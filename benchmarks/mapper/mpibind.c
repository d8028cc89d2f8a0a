/* Asks LLNL's mpibind in a process of its own, because it ends some of them: on several topologies
 * it crashes, on others it goes on for ever and takes all memory, and what it says on its way must
 * not end among our lines. */
#include "benchmarks/mapper/mpibind.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The functions of mpibind.h that are called. */
struct mpibind {
    int (*init)(void **handle);
    int (*set_ntasks)(void *handle, int tasks);
    int (*set_nthreads)(void *handle, int threads);
    int (*set_topology)(void *handle, hwloc_topology_t topology);
    int (*load_topology)(hwloc_topology_t topology);
    int (*map)(void *handle);
    hwloc_bitmap_t *(*get_cpus)(void *handle);
};

/* Is there a library to ask? It is named by $MPIBIND_LIBRARY. */
static bool mpibind_is_there(void)
{
    const char *library = getenv("MPIBIND_LIBRARY");
    return library && access(library, R_OK) == 0;
}

static bool open_library(struct mpibind *out)
{
    static const char *const names[] = {"mpibind_init",          "mpibind_set_ntasks",
                                        "mpibind_set_nthreads",  "mpibind_set_topology",
                                        "mpibind_load_topology", "mpibind",
                                        "mpibind_get_cpus"};
    void *library = dlopen(getenv("MPIBIND_LIBRARY"), RTLD_NOW);
    void **functions = (void **)out;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        functions[i] = library ? dlsym(library, names[i]) : NULL;
        if (!functions[i]) {
            return false;
        }
    }
    return true;
}

/* Thread i of n on the PU at i / n of its rank's set. */
static bool spread(hwloc_const_bitmap_t set, uint32_t threads, uint32_t *pus)
{
    int count = hwloc_bitmap_weight(set);
    if (count < 1) {
        return false;
    }
    for (uint32_t t = 0; t < threads; t++) {
        int pu = hwloc_bitmap_first(set);
        for (uint64_t skip = (uint64_t)t * (uint64_t)count / threads; skip > 0; skip--) {
            pu = hwloc_bitmap_next(set, pu);
        }
        pus[t] = (uint32_t)pu;
    }
    return true;
}

/* An answer takes some milliseconds and megabytes. */
#define MOST_SECONDS 10
#define MOST_BYTES ((rlim_t)1 << 30)

static void limit_child(void)
{
    setrlimit(RLIMIT_CPU, &(struct rlimit){MOST_SECONDS, MOST_SECONDS});
    setrlimit(RLIMIT_AS, &(struct rlimit){MOST_BYTES, MOST_BYTES});
}

/* In the child: the places go through the pipe. */
static int place(const char *machine, uint32_t ranks, uint32_t threads, int out)
{
    struct mpibind mpibind;
    hwloc_topology_t topology;
    void *handle;
    uint32_t *pus = calloc((size_t)ranks * threads, sizeof *pus);
    if (!pus || !open_library(&mpibind) || hwloc_topology_init(&topology) < 0 ||
        (access(machine, F_OK) == 0 ? hwloc_topology_set_xml(topology, machine)
                                    : hwloc_topology_set_synthetic(topology, machine)) < 0 ||
        mpibind.load_topology(topology) != 0 || mpibind.init(&handle) != 0) {
        return 1;
    }
    mpibind.set_topology(handle, topology);
    mpibind.set_ntasks(handle, (int)ranks);
    mpibind.set_nthreads(handle, (int)threads);
    if (mpibind.map(handle) != 0) {
        return 1;
    }
    hwloc_bitmap_t *sets = mpibind.get_cpus(handle);
    for (uint32_t r = 0; r < ranks; r++) {
        if (!spread(sets[r], threads, pus + (size_t)r * threads)) {
            return 1;
        }
    }
    size_t size = (size_t)ranks * threads * sizeof *pus;
    return write(out, pus, size) == (ssize_t)size ? 0 : 1;
}

bool bench_mpibind_place(const char *machine, uint32_t ranks, uint32_t threads, uint32_t *pus)
{
    int ends[2], status;
    size_t size = (size_t)ranks * threads * sizeof *pus, used = 0;
    if (!mpibind_is_there() || pipe2(ends, O_CLOEXEC) < 0) {
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        limit_child();
        _exit(place(machine, ranks, threads, ends[1]));
    }
    close(ends[1]);
    ssize_t got = 1;
    while (child > 0 && used < size && got > 0) {
        got = read(ends[0], (char *)pus + used, size - used);
        used += got > 0 ? (size_t)got : 0;
    }
    close(ends[0]);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 && used == size;
}
