/* What placing costs, beside the tools that could do it instead, in interleaved rounds; and what
 * measuring larger machines would cost: the real probes on simulated machines, whose clock adds up
 * what each measurement takes on the native backend (starts of mpirun are left out). */
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

/* -- probing, projected -- */

#define PROBE_LIMIT_SECONDS 300.0

/* Packages of up to 32 cores with L1 and L2 of their own and one L3 and one memory each. */
enum { PACKAGE = 32 };
static const int sizes[] = {2, 8, 24, 64, 256, 1024};

static json_t *packages_of(int pus, int each)
{
    json_t *list = json_array();
    for (int first = 0; first < pus; first += each) {
        char text[32];
        snprintf(text, sizeof text, "%d-%d", first, first + each - 1);
        json_array_append_new(list, json_string(text));
    }
    return list;
}

static json_t *describe(int pus)
{
    int each = pus / 2 < PACKAGE ? pus / 2 : PACKAGE;
    char all[32];
    snprintf(all, sizeof all, "0-%d", pus - 1);
    json_t *packages = packages_of(pus, each), *domains = json_array(), *package;
    size_t i;
    json_array_foreach(packages, i, package)
    {
        json_array_append_new(domains, json_pack("{s:O,s:f}", "pus", package, "bytes_per_s",
                                                 1e10 * (1.6 + each / 4)));
    }
    json_t *caches =
        json_pack("[{s:i,s:i,s:i,s:f},{s:i,s:i,s:i,s:f},{s:i,s:i,s:i,s:f,s:i,s:O}]", "level", 1,
                  "size_bytes", 32 << 10, "ways", 8, "seconds", 1.2e-9, "level", 2, "size_bytes",
                  1 << 20, "ways", 16, "seconds", 4.5e-9, "level", 3, "size_bytes", 16 << 20,
                  "ways", 16, "seconds", 1.8e-8, "slices", 8, "groups", packages);
    json_t *layers = json_pack("[{s:s,s:O,s:f,s:f},{s:s,s:[s],s:f,s:f}]", "name", "package",
                               "groups", packages, "seconds", 4e-7, "bytes_per_s", 9e9, "name",
                               "node", "groups", all, "seconds", 9e-7, "bytes_per_s", 4e9);
    return json_pack("{s:i,s:s,s:s,s:o,s:o,s:{s:f,s:f,s:o},s:o,s:{s:f,s:f,s:f}}", "servet_machine",
                     1, "name", "regular", "pus", all, "packages", packages, "caches", caches,
                     "memory", "seconds", 1e-7, "pu_bytes_per_s", 1e10, "domains", domains,
                     "layers", layers, "noise", "relative", 0.02, "outlier_probability", 0.02,
                     "outlier_factor", 3.0);
}

/* Seconds that the machine's own clock says; < 0: it could not be measured. */
static double projected(const char *probe, int pus)
{
    char path[] = "/tmp/servet-bench-XXXXXX", found[64];
    const struct words nothing = {0};
    struct words argv = {0};
    struct bench_run run;
    json_t *machine = describe(pus);
    int fd = mkstemp(path);
    if (!machine || fd < 0 || json_dumpfd(machine, fd, 0)) {
        cli_fail("%s: cannot write the description of a machine", path);
    }
    close(fd);
    json_decref(machine);
    bench_words_add(&argv, "%s", probe);
    bench_words_add(&argv, "-q");
    bench_words_add(&argv, "--machine");
    bench_words_add(&argv, "simulated:%s", path);
    bench_words_add(&argv, "-o");
    snprintf(found, sizeof found, "%s.profile", path);
    bench_words_add(&argv, "%s", found);
    bench_run(&argv, &nothing, 1, PROBE_LIMIT_SECONDS, &run);
    bench_words_free(&argv);
    json_t *profile = run.status == 0 ? json_load_file(found, 0, NULL) : NULL;
    const json_t *seconds = json_object_get(json_object_get(profile, "measurement"), "seconds");
    double value = json_is_number(seconds) ? json_number_value(seconds) : -1;
    unlink(path);
    unlink(found);
    json_decref(profile);
    bench_run_free(&run);
    return value;
}

/* What survey_scaling (benchmarks/cluster) says of the network of a fat tree, whose rows are
 * | nodes | … | seconds, disjoint pairs together | … */
static void add_networks(FILE *out, json_t *ways)
{
    static const unsigned nodes[] = {32, 256, 1024};
    enum { SECONDS_COLUMN = 7 };
    char *survey = bench_tools_built("../cluster/survey_scaling");
    const struct words nothing = {0};
    struct words argv = {0};
    struct bench_run run;
    if (!survey) {
        return;
    }
    bench_words_add(&argv, "%s", survey);
    bench_run(&argv, &nothing, 1, PROBE_LIMIT_SECONDS, &run);
    for (size_t i = 0; run.status == 0 && i < sizeof nodes / sizeof *nodes; i++) {
        char row[32], name[64];
        snprintf(row, sizeof row, "\n| %u |", nodes[i]);
        const char *at = strstr(run.out, row);
        for (int column = 0; at && column < SECONDS_COLUMN; column++) {
            at = strchr(at + 1, '|');
        }
        double seconds = at ? strtod(at + 1, NULL) : 0;
        if (seconds > 0) {
            snprintf(name, sizeof name, "network between %u nodes", nodes[i]);
            fprintf(out, "  %-34s %12.3f\n", name, seconds);
            json_array_append_new(ways, json_pack("{s:s,s:f}", "name", name, "seconds", seconds));
        }
    }
    bench_run_free(&run);
    bench_words_free(&argv);
    free(survey);
}

static json_t *costs_probing(FILE *out)
{
    static const char what[] = "Probing a whole machine, projected by simulation";
    char *probe = bench_tools_ours("servet-probe");
    json_t *ways = json_array();
    fprintf(out, "%s (s)\n", what);
    for (size_t i = 0; probe && i < sizeof sizes / sizeof *sizes; i++) {
        double seconds = projected(probe, sizes[i]);
        char name[48];
        snprintf(name, sizeof name, "servet-probe, %d PUs", sizes[i]);
        if (seconds < 0) {
            fprintf(out, "  %-34s the simulation failed\n", name);
            continue;
        }
        fprintf(out, "  %-34s %12.1f\n", name, seconds);
        json_array_append_new(ways, json_pack("{s:s,s:f}", "name", name, "seconds", seconds));
    }
    add_networks(out, ways);
    fprintf(out, "  (a cluster takes as long as the slowest of its node classes, all at once, and "
                 "its network)\n\n");
    free(probe);
    return json_pack("{s:s,s:o}", "what", what, "ways", ways);
}

/* -- all of it -- */

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
    json_array_append_new(*json, costs_probing(out));
}

/* -- as a picture -- */

#define WIDTH 900
#define BAR_HEIGHT 26    /* of one way, in pixels */
#define PANEL_HEIGHT 110 /* of what stands around the bars of a panel */
#define LABELS 0.34      /* share of the width that the names take */

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

/* A logarithmic axis has no zero: bars begin at a tenth of the shortest. */
#define BEGIN 0.1

static double shortest(const json_t *cost)
{
    const json_t *way;
    size_t i;
    double least = INFINITY;
    json_array_foreach(json_object_get(cost, "ways"), i, way)
    {
        const json_t *seconds = json_object_get(way, "seconds");
        least = json_is_number(seconds) ? fmin(least, json_number_value(seconds)) : least;
    }
    return least;
}

static size_t ways_measured(const json_t *cost)
{
    const json_t *way;
    size_t i, count = 0;
    json_array_foreach(json_object_get(cost, "ways"), i, way)
    {
        count += json_is_number(json_object_get(way, "seconds"));
    }
    return count;
}

/* Bars from top to bottom, in the order of the table. */
static void write_bars(FILE *gnuplot, const json_t *cost, size_t panel, size_t bars)
{
    const json_t *way;
    size_t i, row = 0;
    fprintf(gnuplot, "$panel%zu << EOD\n", panel);
    json_array_foreach(json_object_get(cost, "ways"), i, way)
    {
        if (json_is_number(json_object_get(way, "seconds"))) {
            fprintf(gnuplot, "%zu %g \"", bars - row++,
                    json_number_value(json_object_get(way, "seconds")));
            bench_plot_text(gnuplot, text(way, "name"));
            fprintf(gnuplot, "\"\n");
        }
    }
    fprintf(gnuplot, "EOD\n");
}

static void draw_panel(FILE *gnuplot, const json_t *cost, size_t panel, size_t bars, double top,
                       double height)
{
    fprintf(gnuplot, "set title \"");
    bench_plot_text(gnuplot, text(cost, "what"));
    double begin = BEGIN * shortest(cost);
    fprintf(gnuplot,
            "\"\nset origin 0,%g\nset size 1,%g\nset yrange [0.4:%g]\nset xrange [%g:*]\n"
            "plot $panel%zu using 2:1:(%g):2:(column(1) - 0.35):(column(1) + 0.35):yticlabels(3) "
            "with boxxyerror lc rgb '#1b7837' notitle\n",
            top - height, height, (double)bars + 0.6, begin, panel, begin);
}

void bench_costs_plot(const char *path, const json_t *costs)
{
    const json_t *cost;
    size_t i;
    double pixels = 0, top = 1;
    json_array_foreach(costs, i, cost)
    {
        pixels +=
            (double)ways_measured(cost) * BAR_HEIGHT + (ways_measured(cost) ? PANEL_HEIGHT : 0);
    }
    if (pixels <= 0) {
        return;
    }
    FILE *gnuplot = bench_plot_open(path, WIDTH, (unsigned)pixels);
    json_array_foreach(costs, i, cost)
    {
        write_bars(gnuplot, cost, i, ways_measured(cost));
    }
    fprintf(gnuplot,
            "set multiplot\nset logscale x\nset format x '%%.0s %%cs'\nset style fill solid 0.7\n"
            "set grid xtics\nset lmargin at screen %g\nset rmargin at screen 0.96\nset ytics "
            "nomirror scale 0\n",
            LABELS);
    json_array_foreach(costs, i, cost)
    {
        size_t bars = ways_measured(cost);
        double height = ((double)bars * BAR_HEIGHT + PANEL_HEIGHT) / pixels;
        if (bars) {
            draw_panel(gnuplot, cost, i, bars, top, height);
            top -= height;
        }
    }
    fprintf(gnuplot, "unset multiplot\n");
    bench_plot_close(gnuplot, path);
}
