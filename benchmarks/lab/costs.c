/* What placing costs, beside the tools that could do it instead, in interleaved rounds. (What
 * measuring larger machines would cost: probes/time_table.py, cluster/survey_scaling.c.) */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/bench/launcher.h"
#include "benchmarks/bench/report.h"
#include "benchmarks/bench/run.h"
#include "benchmarks/bench/statistics.h"
#include "benchmarks/bench/tools.h"
#include "benchmarks/lab/lab.h"
#include "profile/base/cli.h"

#define LIMIT_SECONDS 120.0
#define MOST 16

/* One way to do a thing; `tool` is looked for, and the way left out when it is not there. */
struct way {
    const char *name;
    const char *tool; /* of this project when ours; "mpirun": the launcher that is compared; NULL:
                         nothing in front */
    bool ours;
    const char *options[MOST];
};

struct timed {
    const struct way *way;
    char *tool;
    struct words argv;
    double *values;
    const char *failed;
};

static json_t *interval_json(const char *name, const double *values, size_t count, double unit)
{
    struct interval interval = bench_statistics_interval(values, count);
    return json_pack("{s:s,s:f,s:[f,f]}", "name", name, "seconds",
                     bench_statistics_median(values, count) * unit, "interval", interval.low * unit,
                     interval.high * unit);
}

/* Stands for the file with the profile of a cluster, which is made when it is needed. */
#define CLUSTER "{cluster}"
#define CLUSTER_NODES 1000
static char cluster[] = "/tmp/servet-bench-XXXXXX";

/* A command of this project among the options. */
#define OURS "{ours}"

static void add_option(struct words *argv, const char *option)
{
    if (strcmp(option, CLUSTER) == 0) {
        bench_words_add(argv, "%s", cluster);
        return;
    }
    bool ours = strncmp(option, OURS, strlen(OURS)) == 0;
    char *found = ours ? bench_tools_ours(option + strlen(OURS)) : NULL;
    bench_words_add(argv, "%s", found ? found : ours ? option + strlen(OURS) : option);
    free(found);
}

/* Open MPI's launcher: the options above are its. */
static char *openmpi(void)
{
    const struct bench_linked linked = {.mpi = BENCH_MPI_OPEN};
    enum bench_mpi kind;
    char *launcher = NULL;
    return bench_launcher(&linked, &kind, &launcher, NULL) < 0 ? NULL : launcher;
}

static void prepare(const struct way *ways, size_t count, char *const *program, size_t rounds,
                    struct timed *timed)
{
    for (size_t i = 0; i < count; i++) {
        const struct way *way = &ways[i];
        timed[i] = (struct timed){.way = way, .values = calloc(rounds, sizeof(double))};
        if (way->tool) {
            timed[i].tool = strcmp(way->tool, "mpirun") == 0 ? openmpi()
                            : way->ours                      ? bench_tools_ours(way->tool)
                                                             : bench_tools_find(way->tool);
            timed[i].failed = timed[i].tool ? NULL : "not installed";
        }
        if (timed[i].tool) {
            bench_words_add(&timed[i].argv, "%s", timed[i].tool);
        }
        for (size_t o = 0; o < MOST && way->options[o]; o++) {
            add_option(&timed[i].argv, way->options[o]);
        }
        if (program) {
            bench_words_add_all(&timed[i].argv, program);
        }
    }
}

/* The figure of a run: its wall time, or the number after `word` in its output. */
static double figure(const struct bench_run *run, const char *word)
{
    const char *found = word && run->out ? strstr(run->out, word) : NULL;
    return word ? (found ? strtod(found + strlen(word), NULL) : NAN) : run->seconds;
}

static void run_rounds(struct timed *timed, size_t count, size_t rounds, const char *word)
{
    const struct words nothing = {0};
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            struct bench_run run;
            if (timed[i].failed) {
                continue;
            }
            bench_run(&timed[i].argv, &nothing, 1, LIMIT_SECONDS, &run);
            timed[i].values[round] = figure(&run, word);
            if (run.status != 0 || !isfinite(timed[i].values[round])) {
                timed[i].failed = "the program failed under it";
            }
            bench_run_free(&run);
        }
    }
}

/* One table: what is compared, under which ways, of which program (NULL: the ways are whole
 * commands). */
struct cost {
    const char *title;
    const struct way *ways;
    size_t count;
    char *const *program;
    const char *word; /* its figure follows that in the output; NULL: wall time */
    double unit;      /* of the figure, in seconds */
};

/* All ways in one table, in microseconds. */
static json_t *compare(FILE *out, const struct cost *cost, size_t rounds)
{
    const struct way *ways = cost->ways;
    size_t count = cost->count;
    double unit = cost->unit;
    struct timed *timed = calloc(count, sizeof *timed);
    if (!timed) {
        cli_fail("out of memory");
    }
    json_t *list = json_array();
    prepare(ways, count, cost->program, rounds, timed);
    run_rounds(timed, count, rounds, cost->word);
    fprintf(out, "%s (median and 95 %% interval of %zu interleaved rounds, us)\n", cost->title,
            rounds);
    for (size_t i = 0; i < count; i++) {
        if (timed[i].failed) {
            fprintf(out, "  %-34s %s\n", ways[i].name, timed[i].failed);
            json_array_append_new(
                list, json_pack("{s:s,s:s}", "name", ways[i].name, "left_out", timed[i].failed));
        } else {
            struct interval interval = bench_statistics_interval(timed[i].values, rounds);
            double median = bench_statistics_median(timed[i].values, rounds);
            fprintf(out, "  %-34s %12.1f  [%.1f, %.1f]\n", ways[i].name, median * unit * 1e6,
                    interval.low * unit * 1e6, interval.high * unit * 1e6);
            json_array_append_new(list, interval_json(ways[i].name, timed[i].values, rounds, unit));
        }
        free(timed[i].tool);
        bench_words_free(&timed[i].argv);
        free(timed[i].values);
    }
    fprintf(out, "\n");
    free(timed);
    return json_pack("{s:s,s:o}", "what", cost->title, "ways", list);
}

static const struct way starts[] = {
    {"nothing", NULL, false, {NULL}},
    {"servet-pin --mem-prior", "servet-pin", true, {"--mem-prior", "--"}},
    {"taskset -c 0", "taskset", false, {"-c", "0"}},
    {"numactl --physcpubind=0", "numactl", false, {"--physcpubind=0"}},
    {"hwloc-bind core:0", "hwloc-bind", false, {"core:0", "--"}},
    {"likwid-pin -c 0", "likwid-pin", false, {"-q", "-c", "0"}},
    {"mpirun -n 1 --bind-to core", "mpirun", false, {"-n", "1", "--bind-to", "core"}},
    {"mpirun -n 1 servet-pin",
     "mpirun",
     false,
     {"-n", "1", "--bind-to", "none", OURS "servet-pin", "--mem-prior", "--"}},
};

/* Threads: those that keep all of them on one PU, and those that spread them. */
static const struct way creations[] = {
    {"nothing", NULL, false, {NULL}},
    {"taskset -c 0", "taskset", false, {"-c", "0"}},
    {"hwloc-bind core:0", "hwloc-bind", false, {"core:0", "--"}},
    {"likwid-pin -c 0", "likwid-pin", false, {"-q", "-c", "0"}},
    {"likwid-pin -c 0,1", "likwid-pin", false, {"-q", "-c", "0,1"}},
    {"servet-pin --mem-prior", "servet-pin", true, {"--mem-prior", "--"}},
};

/* Time until all of a mapping is printed, the start of the command included. */
static const struct way mappings[] = {
    {"servet-map -n 16 of 16 cores",
     "servet-map",
     true,
     {"-n", "16", "--topology", "package:2 numa:1 core:8 pu:1"}},
    {"hwloc-distrib 16 of 16 cores",
     "hwloc-distrib",
     false,
     {"-i", "package:2 numa:1 core:8 pu:1", "16"}},
    {"servet-map -n 128 of 128 cores",
     "servet-map",
     true,
     {"-n", "128", "--topology", "package:4 numa:4 core:8 pu:1"}},
    {"hwloc-distrib 128 of 128 cores",
     "hwloc-distrib",
     false,
     {"-i", "package:4 numa:4 core:8 pu:1", "128"}},
    {"servet-map -n 1024 of 1024 cores",
     "servet-map",
     true,
     {"-n", "1024", "--topology", "package:16 numa:4 core:16 pu:1"}},
    {"hwloc-distrib 1024 of 1024 cores",
     "hwloc-distrib",
     false,
     {"-i", "package:16 numa:4 core:16 pu:1", "1024"}},
    /* Open MPI's own simulation of an allocation; it does not know where the cores of those nodes
     * are. */
    {"servet-map of 8000 ranks, 1000 nodes",
     "servet-map",
     true,
     {"--profile", CLUSTER, "--cluster", "-n", "8000", "--format", "rankfile"}},
    {"mpirun --map-by node, the same",
     "mpirun",
     false,
     {"--mca", "ras", "simulator", "--mca", "ras_simulator_num_nodes", "1000", "--bind-to", "none",
      "--do-not-launch", "--display-map", "-n", "8000", "--map-by", "node", "true"}},
};

/* What there is to learn before anything can be placed: read from the system, or measured. */
static const struct way lessons[] = {
    {"lstopo (reads, measures nothing)", "lstopo-no-graphics", false, {"--of", "xml", "-"}},
    {"likwid-topology (the same)", "likwid-topology", false, {NULL}},
    {"servet-probe", "servet-probe", true, {"-q", "-o", "-"}},
};

#define MAPPING_ROUNDS 7
#define LESSON_ROUNDS 3

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* The machine of the 2012 paper's Figure 2 as a node, and a thousand of them. False: its profile is
 * not there. */
static bool make_cluster(void)
{
    char names[32], members[32];
    json_t *profile = json_load_file(LAB_PROFILES "/nehalem-8-nodes.json", 0, NULL), *layer;
    size_t i;
    snprintf(names, sizeof names, "node[1-%d]", CLUSTER_NODES);
    snprintf(members, sizeof members, "0-%d", CLUSTER_NODES - 1);
    json_object_set_new(
        profile, "nodes",
        json_pack("[{s:s,s:i,s:i}]", "names", names, "count", CLUSTER_NODES, "class_index", 0));
    json_array_foreach(json_object_get(json_object_get(profile, "network"), "layers"), i, layer)
    {
        json_object_set_new(layer, "members", json_pack("{s:[s]}", "groups", members));
    }
    int fd = profile ? mkstemp(cluster) : -1;
    bool made = fd >= 0 && json_dumpfd(profile, fd, 0) == 0;
    if (fd >= 0) {
        close(fd);
    }
    json_decref(profile);
    return made;
}

void bench_costs(FILE *out, size_t rounds, json_t **json)
{
    const size_t fewer =
        rounds < MAPPING_ROUNDS ? rounds : MAPPING_ROUNDS; /* of what takes long, or is a median */
    char *nothing[] = {(char *)"/bin/true", NULL};
    const bool simulated = make_cluster();
    *json = json_array();
    if (geteuid() ==
        0) { /* Open MPI wants to be told that root knows; the kernels are started so too */
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
    const struct cost start = {"Start of /bin/true", starts, COUNT(starts), nothing, NULL, 1.0};
    json_array_append_new(*json, compare(out, &start, rounds));
    char *threads = bench_tools_built("thread_storm");
    if (threads) {
        char *storm[] = {threads, NULL};
        const struct cost thread = {"A thread created and joined: on one PU, or each on the next",
                                    creations,
                                    COUNT(creations),
                                    storm,
                                    "us per thread: ",
                                    1e-6};
        json_array_append_new(*json, compare(out, &thread, fewer));
        free(threads);
    }
    const struct cost mapping = {
        "A whole mapping, command included", mappings, COUNT(mappings), NULL, NULL, 1.0};
    json_array_append_new(*json, compare(out, &mapping, fewer));
    if (simulated) {
        unlink(cluster);
    }
    const struct cost lesson = {
        "Learning what this machine is like", lessons, COUNT(lessons), NULL, NULL, 1.0};
    json_array_append_new(*json,
                          compare(out, &lesson, fewer < LESSON_ROUNDS ? fewer : LESSON_ROUNDS));
}
