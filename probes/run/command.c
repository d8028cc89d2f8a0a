/* The command servet-probe: measures a machine and writes its profile. */
#include "probes/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/bsp/bsp.h"
#include "probes/memory/memory.h"
#include "profile/base/cli.h"

enum {
    OPTION_CPUSET = UCHAR_MAX + 1,
    OPTION_PROBES,
    OPTION_CLUSTER,
    OPTION_METHOD,
    OPTION_MESSAGE_DATA,
    OPTION_CHECK,
    OPTION_LARGEST,
    OPTION_PROGRESS,
};

struct options {
    struct run_options run;
    probe_open_machine *open;
    struct profile_set cpuset;
    struct probe_run measured; /* `probes` 0: none were named */
    bool no_mpi, check;
    int events;             /* file descriptor of --progress=json; < 0: a bar */
    const char *check_file; /* NULL: the profile that servet finds */
    struct bsp_options bsp;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    __atomic_store_n(&interrupted, number, __ATOMIC_RELAXED); /* workers look at it */
}

static void catch_signals(void)
{
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN); /* a messenger that ended is an error to report */
    signal(SIGXFSZ, SIG_IGN); /* so is a limit of the size of files: the temporary file must go */
}

/* -- options -- */

static const struct argp_option table[] = {
    {"cpuset", OPTION_CPUSET, "LIST", 0, "Measure on these PUs only, such as 0-3,8", 0},
    {"no-mpi", CLI_FLAG(struct options, no_mpi), NULL, 0,
     "Measure messages between threads, without starting mpirun", 0},
    {"probes", OPTION_PROBES, "NAMES", 0,
     "Comma-separated: cache, sharing, memory, message, device (default: all)", 0},
    {"method", OPTION_METHOD, "NAME", 0,
     "Cache sizes by: default, or paper (that of the 2010 paper)", 0},
    {"message-data", OPTION_MESSAGE_DATA, "KIND", 0,
     "Data of messages: written before (written, default), or never written (unwritten), as in "
     "OSU's benchmarks",
     0},
    {"one-by-one", CLI_FLAG(struct options, measured.one_by_one), NULL, 0,
     "Never measure several pairs of PUs at the same time, even without interference", 0},
    {"progress", OPTION_PROGRESS, "FORM", 0,
     "bar (default, on a terminal), or json[:FD]: one JSON object per line on standard error, or "
     "on descriptor FD",
     0},
    {"largest", OPTION_LARGEST, "SIZE", 0,
     "Infer cache sizes from working sets up to SIZE, such as 4M (default: well beyond the largest "
     "declared cache)",
     0},
    {"check", OPTION_CHECK, "FILE", OPTION_ARG_OPTIONAL,
     "Measure a sample (within 5 s) and say whether the profile still describes this machine: "
     "status 0 yes, or too busy to say; 1 no",
     0},
    {"cluster", OPTION_CLUSTER, NULL, 0,
     "Under mpirun or srun: measure all nodes of the job and the network between them (--cluster "
     "--help says more)",
     0},
    {0},
};

static int parse_progress(const char *text)
{
    if (strcmp(text, "bar") == 0) {
        return -1;
    }
    if (strcmp(text, "json") == 0) {
        return STDERR_FILENO;
    }
    if (strncmp(text, "json:", strlen("json:")) != 0) {
        cli_usage("--progress: expected bar, json or json:FD, got '%s'", text);
    }
    int descriptor = (int)cli_integer("--progress=json:", text + strlen("json:"), 0, INT_MAX);
    if (fcntl(descriptor, F_GETFD) < 0) {
        cli_usage("--progress: expected an open file descriptor, got %d", descriptor);
    }
    return descriptor;
}

/* Bytes, with K, M or G behind for powers of 1024; at least 64 KiB, for a curve to have enough
 * points. */
static size_t parse_size(const char *option, const char *text)
{
    const size_t least = 64u << 10, most = (size_t)1 << 40;
    const char *units = "KMG", *unit;
    char *end;
    errno = 0;
    unsigned long long size = strtoull(text, &end, 10);
    if (*end && (unit = strchr(units, *end)) && size < most) {
        size <<= 10 * (unit - units + 1);
        end++;
    }
    if (errno || text[0] < '0' || text[0] > '9' || *end || size < least || size > most) {
        cli_usage("%s: expected a size of at least 64K, such as 512K or 4M, got '%s'", option,
                  text);
    }
    return size;
}

/* Is it the second of the two words that the option takes? */
static bool second_of(const char *option, const char *first, const char *second, const char *text)
{
    if (strcmp(text, first) != 0 && strcmp(text, second) != 0) {
        cli_usage("%s: expected %s or %s, got '%s'", option, first, second, text);
    }
    return strcmp(text, second) == 0;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->run;
        state->child_inputs[1] = &options->bsp;
        return 0;
    case OPTION_CPUSET:
        profile_set_free(&options->cpuset);
        options->cpuset = cli_set("--cpuset", argument);
        return 0;
    case OPTION_PROBES:
        options->measured.probes = probe_run_parse(argument, "");
        return 0;
    case OPTION_CHECK:
        options->check = true;
        options->check_file = argument;
        return 0;
    case OPTION_PROGRESS:
        options->events = parse_progress(argument);
        return 0;
    case OPTION_METHOD:
        options->measured.paper = second_of("--method", "default", "paper", argument);
        return 0;
    case OPTION_MESSAGE_DATA:
        options->measured.unwritten = second_of("--message-data", "written", "unwritten", argument);
        return 0;
    case OPTION_LARGEST:
        options->measured.largest_bytes = parse_size("--largest", argument);
        return 0;
    default:
        return cli_set_member(key, argument, options) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

/* -- the run -- */

static void open_machine(const struct options *options, struct machine *machine)
{
    struct servet_error error;
    const int rc =
        options->open(&options->cpuset, options->run.seed, &interrupted, machine, &error);
    /* -EPERM: a PU of --cpuset that this process may not use. */
    if (rc == -EINVAL || rc == -ENOENT || rc == -EACCES || rc == -EISDIR || rc == -EPERM) {
        cli_usage("%s", error.text);
    }
    if (rc < 0) {
        cli_fail("%s", error.text);
    }
}

static void print_profile(const struct servet_profile *profile)
{
    char *text = profile_to_json(profile);
    if (!text) {
        cli_fail("cannot print the profile: %s", strerror(ENOMEM));
    }
    fputs(text, stdout);
    free(text);
}

/* Conditions that a reader has to weigh before anything else. */
static void note_conditions(const struct servet_profile *profile)
{
    for (size_t i = 0; i < profile->condition_count; i++) {
        const struct profile_condition *condition = &profile->conditions[i];
        if (strcmp(condition->key, "busy") == 0) {
            cli_note("the machine was busy: %s", condition->value);
        }
        if (strcmp(condition->key, "cpu_quota") == 0) {
            cli_note("a control group limits this process: %s", condition->value);
        }
    }
}

/* --bsp alone asks for no other probe, and adds to the profile that is there. */
static bool bsp_alone(const struct options *options)
{
    return options->bsp.wanted && !options->measured.probes;
}

static void save_profile(const struct options *options, const struct servet_profile *profile,
                         const struct probe_run *run, const char *path)
{
    struct servet_error error;
    char unsettled[256];
    if (path[0] != '\0' && profile_save(profile, path, &error) < 0) {
        cli_fail("%s", error.text);
    }
    if (path[0] != '\0' && !options->run.quiet) {
        cli_note("measured %zu PUs in %.1f s; profile written to %s", profile->classes[0].pus.count,
                 run->took_s, path);
    }
    if (path[0] != '\0' && !options->run.quiet && !bsp_alone(options)) {
        note_conditions(profile);
        /* The last line: what to measure again, and when. */
        if (probe_conditions_unsettled(profile, run->left_out, unsettled, sizeof unsettled)) {
            cli_note("not settled: %s", unsettled);
        }
    }
    if (path[0] == '\0' || options->run.json) {
        print_profile(profile);
    }
}

/* Beside the profile, under a name that no reader takes for a whole profile. */
static void save_partial(const struct servet_profile *profile, const char *path, const char *reason)
{
    char partial[PATH_MAX + sizeof ".partial"];
    struct servet_error error;
    snprintf(partial, sizeof partial, "%s.partial", path);
    if (path[0] == '\0') {
        cli_fail("%s", reason);
    }
    if (profile_save(profile, partial, &error) < 0) {
        cli_fail("%s", error.text);
    }
    cli_note("%s; what was measured before is in %s, an older profile is untouched", reason,
             partial);
}

/* Figures of the profile at that path that this one lacks, or has less settled: why, or NULL. A
 * profile of another machine has no settled ones to lose. */
static const char *lost_figures(const struct servet_profile *profile, unsigned left_out,
                                const char *path)
{
    struct servet_profile *old;
    if (path[0] == '\0' || profile_load(path, &old, NULL) < 0) {
        return NULL;
    }
    const struct profile_class *of = &old->classes[0];
    const unsigned has = (of->cache_curve_count ? PROBE_CACHE : 0) |
                         (of->memory.reference_bytes_per_s > 0 ? PROBE_MEMORY : 0) |
                         (of->communication.layer_count ? PROBE_MESSAGE : 0);
    const bool same = old->topology_signature && profile->topology_signature &&
                      strcmp(old->topology_signature, profile->topology_signature) == 0,
               looser = same && has & probe_conditions_loosened(old, profile);
    profile_free(old);
    return has & left_out ? "--budget: no time was left for figures that the profile has"
           : looser       ? "other programs ran: the profile's figures are settled, these are not"
                          : NULL;
}

static const struct argp_child more_options[] = {
    {&probe_options_argp, 0, NULL, 0}, {&probe_bsp_argp, 0, NULL, 0}, {0}};

/* The probes that were asked for. */
static int measure_node(const struct options *options, struct probe_run *run, const char *path,
                        struct servet_profile **profile, struct servet_error *error)
{
    const bool alone = bsp_alone(options);
    const double begun = probe_machine_elapsed(run->machine);
    run->probes = run->probes ? run->probes : PROBE_ALL;
    run->mpi = !options->no_mpi;
    run->exhaustive = options->run.exhaustive;
    run->budget_s = options->run.budget_s;
    run->seed = options->run.seed;
    TRY(alone ? probe_bsp_base_profile(run->machine, path, profile, error)
              : probe_run_run(run, profile, error));
    if (!alone && !run->incomplete) {
        probe_bsp_keep(path, *profile);
    }
    if (options->bsp.wanted && !run->incomplete) {
        TRY(probe_bsp_run(&options->bsp, run->machine, run->seed, run->progress, *profile, error));
    }
    run->took_s = probe_machine_elapsed(run->machine) - begun;
    return 0;
}

/* -- --check -- */

static struct servet_profile *stored_profile(const struct options *options)
{
    char path[PATH_MAX];
    struct servet_profile *profile;
    struct servet_error error;
    if (!options->check_file && profile_find(path, sizeof path) < 0) {
        cli_usage(
            "--check: expected a profile to compare with, found none; servet-probe measures one");
    }
    if (profile_load(options->check_file ? options->check_file : path, &profile, &error) < 0) {
        cli_usage("%s", error.text);
    }
    cli_note_unknown(profile);
    return profile;
}

static int check_profile(const struct options *options)
{
    if (options->run.output || options->run.budget_s > 0) {
        cli_usage("--check: expected no %s with it, it %s",
                  options->run.output ? "--output" : "--budget",
                  options->run.output ? "writes no profile" : "ends within 5 s");
    }
    struct machine machine;
    struct servet_error error;
    struct servet_profile *profile = stored_profile(options);
    catch_signals();
    open_machine(options, &machine);
    int rc = probe_verify_pairs(&machine, profile, !options->no_mpi, stdout, &error);
    probe_machine_close(&machine);
    profile_free(profile);
    if (interrupted) {
        cli_note("interrupted");
        return 128 + interrupted;
    }
    if (rc < 0) {
        cli_fail("%s", error.text);
    }
    return cli_finish(rc ? CLI_OK : CLI_FAILED);
}

/* Where the profile goes, into `path`; "" for standard output. */
static void choose_place(const struct options *options, char *path, size_t size)
{
    probe_output_choose(options->run.output, path, size);
    if (path[0] != '\0' && !options->run.force && !profile_replaceable(path)) {
        cli_usage("%s: is no profile, expected one, no file, or --force", path);
    }
}

/* Saves and reports a run that ended with `rc`; returns the exit status. */
static int settle_run(const struct options *options, struct probe_run *run, int rc,
                      struct servet_profile *profile, const char *path,
                      const struct servet_error *error)
{
    if (interrupted && run->incomplete && path[0] != '\0') {
        save_partial(profile, path, "interrupted");
        return 128 + interrupted;
    }
    if (interrupted) {
        cli_note("interrupted; %s",
                 path[0] ? "no profile was written, an older one is untouched" : "no profile");
        return 128 + interrupted;
    }
    if (rc == -ESTALE || (rc == -EINVAL && options->bsp.wanted)) {
        cli_usage("%s", error->text);
    }
    if (rc < 0) {
        cli_fail("%s", error->text);
    }
    if (run->incomplete) {
        save_partial(profile, path, error->text);
        return cli_finish(CLI_FAILED);
    }
    const char *lost = options->run.force ? NULL : lost_figures(profile, run->left_out, path);
    if (lost) {
        save_partial(profile, path, lost);
        return cli_finish(CLI_FAILED);
    }
    save_profile(options, profile, run, path);
    return cli_finish(CLI_OK);
}

int probe_command(int argc, char **argv, probe_open_machine *open)
{
    static const struct argp argp = {.options = table,
                                     .parser = parse_option,
                                     .doc = "Measures caches, memory bandwidth and message latency "
                                            "of this machine and writes its profile.",
                                     .children = more_options};
    struct options options = {.open = open, .run.seed = 1, .events = -1};
    struct servet_error error;
    struct servet_profile *profile = NULL;
    struct machine machine;
    struct progress progress;
    char path[PATH_MAX] = "";
    cli_parse(&argp, argc, argv, 0, NULL, &options);
    if (options.check) {
        return check_profile(&options);
    }
    choose_place(&options, path, sizeof path);
    catch_signals();
    open_machine(&options, &machine);
    probe_bsp_options_check(&options.bsp, &machine);
    if (options.measured.probes == PROBE_DEVICE && !probe_devices_are(&machine)) {
        cli_usage("--probes: device: expected a GPU, found none");
    }
    probe_progress_start(&progress, !options.run.quiet, options.events);
    options.bsp.no_mpi = options.no_mpi;
    struct probe_run run = options.measured;
    run.machine = &machine;
    run.progress = &progress;
    int rc = measure_node(&options, &run, path, &profile, &error);
    probe_progress_end(&progress);
    bool failed = rc < 0 || run.incomplete;
    probe_progress_outcome(&progress, interrupted ? "interrupted" : failed ? "failed" : "done");
    probe_machine_close(&machine);
    profile_set_free(&options.cpuset);
    profile_set_free(&options.bsp.processors);
    int status = settle_run(&options, &run, rc, profile, path, &error);
    profile_free(profile);
    return status;
}
