/* servet-ranks-LIBRARY, one process per rank. Built once for each MPI library that is installed: a
 * program is linked with one MPI and cannot run under another's launcher. Started in two ways:
 *
 * --serve CPULIST: by servet-probe through mpirun, the ranks of one node.
 *
 * --cluster …: as servet-probe by the user's mpirun or srun; it becomes this program
 * (network/launch.c). Every node's first rank runs the node's probes; rank 0 finds the node
 * classes, then asks pairs of ranks to exchange messages, and writes the profile. The other ranks
 * sleep meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "probes/mpi/mpi.h"
#include "probes/pairs/messages.h"
#include "probes/run/run.h"
#include "profile/base/cli.h"
#include "profile/base/file.h"

/* -- --serve -- */

/* Ranks of one node, told through rank 0's standard input what to do by servet-probe (machine.c):
 *
 *     mpirun -np N servet-ranks-LIBRARY --serve CPULIST    rank i sits on the i-th PU of CPULIST
 *     <- ready N
 *     -> exchange BYTES ROUND_TRIPS BATCHES UNWRITTEN PAIRS a b …    ranks; pairs are disjoint
 *     <- = WAITED SECONDS …                                how long the ranks of the pairs together
 *                                                          were ready and had no PU; one way, per
 *                                                          pair; %a
 *     -> superstep PROCESSORS H PACKING SUPERSTEPS BATCHES ranks below PROCESSORS; enum bsp_packing
 *     <- = SECONDS                                         of one superstep in the fastest batch
 *     -> (end of file)                                     all ranks end
 *
 * Trouble is one line "! …"; "! moved" when a rank was moved off its PU. */

/* The next number of the line. False: there is none, or it is above `most`. */
static bool take(char **at, uint64_t most, uint64_t *out)
{
    char *end;
    *out = strtoull(*at, &end, 10);
    bool is_one = end != *at && *out <= most;
    *at = end;
    return is_one;
}

static bool serve_exchange(struct machine *machine, char *at)
{
    struct ranks *ranks = machine->state;
    uint64_t bytes, round_trips, batches, unwritten, pairs, a = 0, b = 0;
    uint64_t last = (uint64_t)ranks->size - 1;
    if (!take(&at, INT32_MAX, &bytes) || !take(&at, UINT32_MAX, &round_trips) ||
        !take(&at, UINT32_MAX, &batches) || !take(&at, 1, &unwritten) ||
        !take(&at, ((uint64_t)ranks->size) / 2, &pairs)) {
        return false;
    }
    const struct machine_exchange what = {bytes, (uint32_t)round_trips, (uint32_t)batches,
                                          unwritten == 1};
    FREED struct profile_pair *list = calloc(pairs + 1, sizeof *list);
    FREED double *seconds = calloc(pairs + 1, sizeof *seconds);
    const double waited_s = ranks->waited_s;
    bool sound = list && seconds && pairs > 0;
    for (uint64_t i = 0; i < pairs && sound; i++) {
        sound = take(&at, last, &a) && take(&at, last, &b) && a != b;
        list[i] = (struct profile_pair){(uint32_t)a, (uint32_t)b};
    }
    int rc = sound ? machine->ops->exchange(machine, &what, list, pairs, seconds) : 0;
    if (sound && rc < 0) {
        puts(rc == -ENODEV ? "! moved" : "! not enough memory");
    } else if (sound) {
        printf("= %a", ranks->waited_s - waited_s);
        for (uint64_t i = 0; i < pairs; i++) {
            printf(" %a", seconds[i]);
        }
        puts("");
    }
    return sound;
}

static bool serve_superstep(struct ranks *ranks, char *at)
{
    uint64_t processors, h, packing, supersteps, batches;
    double seconds;
    if (!take(&at, (uint64_t)ranks->size, &processors) || !take(&at, INT32_MAX / 8, &h) ||
        !take(&at, BSP_PACKETS, &packing) || !take(&at, UINT32_MAX, &supersteps) ||
        !take(&at, UINT32_MAX, &batches) || processors == 0) {
        return false;
    }
    const struct bsp_superstep what = {(uint32_t)h, (enum bsp_packing)packing, (uint32_t)supersteps,
                                       (uint32_t)batches};
    if (probe_ranks_superstep((uint32_t)processors, &what, &seconds) < 0) {
        puts("! words were lost");
    } else {
        printf("= %a\n", seconds);
    }
    return true;
}

/* Until the end of the input, or a line that is no order. */
static int take_lines(struct ranks *ranks)
{
    static const char exchange[] = "exchange ", superstep[] = "superstep ";
    struct machine machine;
    char *line = NULL;
    size_t size = 0;
    bool sound = true;
    probe_ranks_machine(ranks, &machine);
    printf("ready %d\n", ranks->size);
    while (sound && getline(&line, &size, stdin) > 0) {
        if (strncmp(line, exchange, sizeof exchange - 1) == 0) {
            sound = serve_exchange(&machine, line + sizeof exchange - 1);
        } else if (strncmp(line, superstep, sizeof superstep - 1) == 0) {
            sound = serve_superstep(ranks, line + sizeof superstep - 1);
        } else {
            sound = false;
        }
    }
    if (!sound) {
        puts("! that is no order");
    }
    free(line);
    profile_set_free(&machine.pus);
    return sound ? CLI_OK : CLI_USAGE;
}

static int serve(const char *pus)
{
    struct ranks ranks;
    struct servet_error error;
    struct profile_set set = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (profile_set_parse(pus, &set) < 0) {
        cli_usage("--serve: expected a list of PUs; this program is started by servet-probe");
    }
    int rc = probe_ranks_open_on(&ranks, &set, &error), status = CLI_OK;
    if (rc < 0) {
        if (ranks.rank == 0) {
            printf("! %s\n", error.text);
        }
        status = rc == -EINVAL ? CLI_USAGE : CLI_FAILED;
    } else if (ranks.rank == 0) {
        status = take_lines(&ranks);
        probe_ranks_dismiss(&ranks, status);
    } else {
        status = probe_ranks_obey(&ranks);
    }
    profile_set_free(&set);
    probe_ranks_end(status);
}

/* -- --cluster -- */

struct job {
    struct cluster_options options;
    struct ranks ranks;
    char path[PATH_MAX]; /* "": standard output */
    char started[32];
    double began_s;
    struct servet_profile **nodes;
    char **names;
    struct cluster_classes classes;
    struct conditions conditions; /* of its profile */
    struct survey_layout layout;
    FILE *outliers;
    char *outlier_text;
    size_t outlier_size;
};

/* -- the end -- */

/* Rank 0, while the others obey. */
static _Noreturn void __attribute__((format(printf, 2, 3)))
fail(struct job *job, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cli_note("%s; no profile was written, an older one is untouched", text);
    probe_ranks_dismiss(&job->ranks, CLI_FAILED);
    probe_ranks_end(CLI_FAILED);
}

/* `memory`, or the end of the job when it is NULL. */
static void *need(struct job *job, void *memory)
{
    if (!memory) {
        fail(job, "not enough memory");
    }
    return memory;
}

/* The same of a result that is negative only when memory is short. */
static void check_memory(struct job *job, int rc)
{
    need(job, rc < 0 ? NULL : &rc);
}

/* -- nodes -- */

static void read_nodes(struct job *job, char **texts)
{
    struct ranks *ranks = &job->ranks;
    need(job, texts);
    job->nodes = need(job, calloc((size_t)ranks->node_count, sizeof(struct servet_profile *)));
    job->names = need(job, calloc((size_t)ranks->node_count, sizeof *job->names));
    for (int i = 0; i < ranks->node_count; i++) {
        struct servet_error error;
        char *name = ranks->info[ranks->leaders[i]].host;
        if (!texts[i] || texts[i][0] == '!') {
            fail(job, "%s: %s", name, texts[i] ? texts[i] + strlen("! ") : "no answer");
        }
        if (profile_parse(texts[i], strlen(texts[i]), name, &job->nodes[i], &error) < 0) {
            fail(job, "%s", error.text);
        }
        job->names[i] = name;
        free(texts[i]);
    }
    free(texts);
}

static void lay_out(struct job *job)
{
    struct ranks *ranks = &job->ranks;
    uint32_t used = 0;
    uint32_t *first = need(job, calloc((size_t)ranks->node_count + 1, sizeof *first)),
             *pus = need(job, calloc((size_t)ranks->size, sizeof *pus));
    for (int i = 0; i < ranks->node_count; i++) {
        for (int r = ranks->leaders[i]; r < ranks->size; r++) {
            if (ranks->info[r].leader == ranks->leaders[i]) {
                pus[used++] = (uint32_t)r;
            }
        }
        first[i + 1] = used;
    }
    job->layout = (struct survey_layout){(uint32_t)ranks->node_count, first, pus};
}

static void find_classes(struct job *job)
{
    check_memory(
        job, probe_network_classes_make(job->names, job->nodes, job->layout.nodes, &job->classes));
    job->outliers = need(job, profile_stream_open(&job->outlier_text, &job->outlier_size));
    fputs(job->classes.outliers, job->outliers);
}

static size_t message_bytes(const struct job *job)
{
    return probe_message_usual_bytes(&job->classes.profile->classes[job->classes.largest]);
}

static void measure_inside(struct job *job, struct probe *probe)
{
    struct servet_error error;
    bool *covered = need(job, calloc(job->classes.profile->class_count, sizeof *covered));
    for (size_t c = 0; c < job->classes.profile->class_count; c++) {
        covered[c] = true;
    }
    for (uint32_t i = 0; i < job->layout.nodes; i++) {
        covered[job->classes.class_of[i]] &=
            probe_ranks_cover_node(&job->ranks, job->ranks.leaders[i]);
    }
    const struct inside_nodes nodes = {&job->layout, &job->classes, covered, job->names};
    int rc = probe_inside_measure(probe, &nodes, message_bytes(job), job->outliers, &error);
    free(covered);
    if (rc < 0) {
        fail(job, "%s", error.text);
    }
}

/* -- network -- */

static void describe_network(struct job *job, const struct survey *survey,
                             const struct survey_result *result)
{
    probe_conditions_add(&job->conditions, "network_pairs",
                         "%zu of %zu pairs of nodes measured, the others inferred",
                         result->measured_pairs, result->all_pairs);
    probe_conditions_add(&job->conditions, "network_concurrent_pairs",
                         "%zu pairs at the same time, %.2f times as slow as alone", survey->width,
                         survey->disturbance);
    if (result->checked) {
        probe_conditions_add(&job->conditions, "network_check",
                             "%zu of %zu random inferred pairs were in another layer",
                             result->elsewhere, result->checked);
    }
    if (result->contradictions) {
        probe_conditions_add(&job->conditions, "network_contradictions",
                             "%zu measured pairs are slower than their group, such as %s and %s",
                             result->contradictions, job->names[result->slower.a],
                             job->names[result->slower.b]);
    }
    if (survey->out_of_time) {
        probe_conditions_add(&job->conditions, "budget",
                             "time was over after %.0f s; %u nodes were not reached",
                             job->options.run.budget_s, result->unreached);
        cli_note("the budget of %.0f s is over: %zu of %zu pairs of nodes measured, %u nodes not "
                 "reached",
                 job->options.run.budget_s, result->measured_pairs, result->all_pairs,
                 result->unreached);
    }
}

static void measure_network(struct job *job, struct probe *probe)
{
    struct survey survey;
    struct survey_result result = {0};
    const struct survey_options options = {
        .message_bytes = message_bytes(job),
        .exhaustive = job->options.run.exhaustive,
        .until_s = job->options.run.budget_s > 0 ? job->began_s + job->options.run.budget_s : 0,
    };
    int rc = probe_survey_open(&survey, probe, &job->layout, &options);
    if (rc == 0) {
        rc = probe_survey_run(&survey, &result);
    }
    if (rc == 0) {
        rc = probe_survey_curves(&survey, &result.network);
    }
    if (rc == -ETIME) {
        probe_conditions_add(&job->conditions, "budget",
                             "time was over after %.0f s, before the network was measured",
                             job->options.run.budget_s);
        cli_note("the budget of %.0f s was over before the network was measured",
                 job->options.run.budget_s);
    } else if (rc < 0) {
        fail(job, "measuring the network: %s", probe_machine_strerror(rc));
    } else {
        for (size_t i = 0; i < result.network.layer_count; i++) {
            char *name = NULL;
            check_memory(job, asprintf(&name, "network %zu", i + 1));
            result.network.layers[i].name = name;
        }
        describe_network(job, &survey, &result);
        job->classes.profile->network = result.network;
    }
    probe_survey_close(&survey);
}

/* -- the profile -- */

/* The description of the host is that of the usual node. */
static void describe_job(struct job *job)
{
    struct servet_profile *profile = job->classes.profile;
    struct servet_profile *usual = job->nodes[job->classes.representative[job->classes.largest]];
    profile->host_name = strdup(job->names[0]);
    profile->architecture = TAKE(usual->architecture);
    profile->cpu_model = TAKE(usual->cpu_model);
    profile->kernel = TAKE(usual->kernel);
    profile->conditions = TAKE(usual->conditions);
    profile->condition_count = TAKE(usual->condition_count);
    job->conditions.profile = profile;
    profile->tool = strdup("servet " SERVET_VERSION);
    profile->started = strdup(job->started);
    profile->measured = true;
    need(job, profile->host_name && profile->tool && profile->started ? profile : NULL);
    probe_conditions_add(&job->conditions, "mpi", "%s, %d ranks on %d nodes", probe_ranks_library(),
                         job->ranks.size, job->ranks.node_count);
}

static void report_outliers(struct job *job)
{
    check_memory(job, fclose(job->outliers));
    for (char *rest = job->outlier_text, *line; (line = strsep(&rest, "\n")) && *line;) {
        cli_note("outlier: %s", line);
        probe_conditions_add(&job->conditions, "outlier", "%s", line);
    }
}

static void save_job(struct job *job, double seconds)
{
    struct servet_error error;
    struct servet_profile *profile = job->classes.profile;
    profile->seconds = seconds;
    check_memory(job, job->conditions.rc);
    if (job->path[0] && profile_save(profile, job->path, &error) < 0) {
        fail(job, "%s", error.text);
    }
    if (job->path[0] && !job->options.run.quiet) {
        cli_note("measured %d nodes of %zu class%s, %zu network layer%s in %.1f s; profile written "
                 "to %s",
                 job->ranks.node_count, profile->class_count, profile->class_count == 1 ? "" : "es",
                 profile->network.layer_count, profile->network.layer_count == 1 ? "" : "s",
                 seconds, job->path);
    }
    if (!job->path[0] || job->options.run.json) {
        char *text = need(job, profile_to_json(profile));
        fputs(text, stdout);
        free(text);
        if (fflush(stdout) != 0) {
            fail(job, "standard output: %s", strerror(errno));
        }
    }
}

static _Noreturn void lead(struct job *job, char **texts)
{
    struct machine machine;
    probe_ranks_machine(&job->ranks, &machine);
    need(job, machine.pus.ids);
    struct probe probe = {.machine = &machine, .seed = job->options.run.seed};
    read_nodes(job, texts);
    lay_out(job);
    find_classes(job);
    describe_job(job);
    if (!job->options.per_node) {
        measure_inside(job, &probe);
    }
    measure_network(job, &probe);
    report_outliers(job);
    save_job(job, probe_machine_elapsed(&machine) - job->began_s);
    probe_ranks_dismiss(&job->ranks, CLI_OK);
    probe_ranks_end(CLI_OK);
}

/* -- every rank -- */

/* Before MPI_Init, and the same on every rank; one of them says what is wrong. */
static void read_options(struct job *job, int argc, char **argv)
{
    if (probe_network_rank() > 0) {
        int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        probe_network_parse(argc, argv, &job->options);
        dup2(saved, STDERR_FILENO);
        close(saved);
        close(null);
        return;
    }
    probe_network_parse(argc, argv, &job->options);
    probe_output_choose(job->options.run.output, job->path, sizeof job->path);
}

int main(int argc, char **argv)
{
    static struct job job;
    static struct node_run run;
    struct servet_error error;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a launcher may be killed without a chance to clean up */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit of the size of files is an error to report */
    if (argc == 3 && strcmp(argv[1], "--serve") == 0) {
        return serve(argv[2]);
    }
    read_options(&job, argc, argv);
    const char *command = getenv(CLUSTER_COMMAND_VARIABLE);
    if (!command) {
        cli_note("expected to be started by servet-probe --cluster, which says "
                 "in " CLUSTER_COMMAND_VARIABLE " what measures a node");
        return CLI_USAGE;
    }
    time_t now = time(NULL);
    strftime(job.started, sizeof job.started, PROBE_STARTED_FORMAT, gmtime(&now));
    if (probe_ranks_open(&job.ranks, job.options.per_node ? RANKS_ONE_A_NODE : RANKS_ON_EACH_PU,
                         &error) < 0) {
        if (job.ranks.rank == 0) {
            cli_note("%s", error.text);
        }
        probe_ranks_end(CLI_USAGE);
    }
    job.began_s = MPI_Wtime();
    if (job.ranks.info[job.ranks.rank].leader == job.ranks.rank) {
        const bool covered = probe_ranks_cover_node(&job.ranks, job.ranks.rank);
        probe_node_run_start(&run, command, probe_network_node_probes(&job.options, covered),
                             job.options.run.seed, &job.ranks.allowed);
    }
    char **texts = probe_ranks_gather(&job.ranks, &run);
    if (job.ranks.rank == 0) {
        lead(&job, texts);
    }
    probe_ranks_end(probe_ranks_obey(&job.ranks));
}
