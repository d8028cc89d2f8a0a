/* Options of servet-probe --bsp; values without sense are refused here, before anything is
 * measured. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/bsp/bsp.h"
#include "probes/run/run.h"
#include "profile/base/cli.h"

/* Runs of an idle machine take less than a second, those of a slow network some. */
static const double patience_s = 30;

enum { OPTION_P = 0x200, OPTION_H, OPTION_RUNS, OPTION_BACKEND, OPTION_PLOT };

static const struct argp_option table[] = {
    {0, 0, 0, 0, "BSP parameters:", 1},
    {"bsp", CLI_FLAG(struct bsp_options, wanted), NULL, 0,
     "Measure r, g and l for growing numbers of processors and add them to the existing profile; "
     "no other probe runs unless --probes names it",
     1},
    {"p", OPTION_P, "LIST", 0,
     "Numbers of processors, such as 1,2,4-8 (default: powers of two and divisors)", 1},
    {"h", OPTION_H, "LOW-HIGH[:STEP]", 0,
     "Interval of h for the fit, and step of the measured values (default: 0-2048:1; 2049 values "
     "in longer intervals)",
     1},
    {"runs", OPTION_RUNS, "N", 0,
     "Number of runs, at least 3; the best two must agree (default: 3)", 1},
    {"backend", OPTION_BACKEND, "NAMES", 0, "threads, mpi (default: both)", 1},
    {"plot", OPTION_PLOT, "DIR", 0, "Write T(h), g, l and r there, as data and as SVG", 1},
    {0},
};

static void parse_interval(struct bsp_options *options, const char *text)
{
    char *end = NULL;
    errno = 0;
    long low = strtol(text, &end, 10);
    long high = *end == '-' ? strtol(end + 1, &end, 10) : -1;
    bool stepped = high >= 0 && *end == ':';
    const char *digits = stepped ? end + 1 : "1";
    long step = stepped ? strtol(digits, &end, 10) : 0;
    if (errno || *end || text[0] < '0' || text[0] > '9' || low < 0 || high < low + 2 ||
        high > (long)BSP_H_MAX) {
        cli_usage("--h: expected LOW-HIGH with HIGH from LOW + 2 to %u, such as 0-2048, got '%s'",
                  BSP_H_MAX, text);
    }
    long least = (high - low + (long)BSP_POINTS_MAX - 1) / (long)BSP_POINTS_MAX;
    if (digits[0] < '0' || digits[0] > '9' ||
        (stepped && (step < least || step > (high - low) / 2))) {
        cli_usage(
            "--h: expected a step from %ld to %ld (at most %u values of h, at least 3), got '%s'",
            least, (high - low) / 2, BSP_POINTS_MAX, text);
    }
    options->request.h_step = (uint32_t)step;
    options->request.h_low = (uint32_t)low;
    options->request.h_high = (uint32_t)high;
}

static unsigned parse_backends(const char *text)
{
    static const char *const names[] = {"threads", "mpi"}; /* by bit of BSP_BACKEND_... */
    enum { NAMES = sizeof names / sizeof *names };
    unsigned backends = 0;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t i = probe_run_name(at, names, NAMES);
        if (i == NAMES) {
            cli_usage("--backend: expected names out of threads, mpi, got '%.*s'",
                      (int)strcspn(at, ","), at);
        }
        backends |= 1u << i;
    }
    return backends;
}

static error_t parse_bsp(int key, char *argument, struct argp_state *state)
{
    struct bsp_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        options->request = (struct probe_bsp_request){
            .h_high = BSP_H_HIGH, .runs = BSP_RUNS, .patience_s = patience_s};
        return 0;
    case OPTION_P:
        profile_set_free(&options->processors);
        options->processors = cli_set("--p", argument);
        options->tuned_by = "--p";
        return 0;
    case OPTION_H:
        parse_interval(options, argument);
        options->tuned_by = "--h";
        return 0;
    case OPTION_RUNS:
        options->request.runs = (uint32_t)cli_integer("--runs", argument, BSP_RUNS, BSP_RUNS_MAX);
        options->tuned_by = "--runs";
        return 0;
    case OPTION_BACKEND:
        options->backends = parse_backends(argument);
        options->tuned_by = "--backend";
        return 0;
    case OPTION_PLOT:
        options->plot = argument;
        options->tuned_by = "--plot";
        return 0;
    default:
        return cli_set_member(key, argument, options) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

const struct argp probe_bsp_argp = {.options = table, .parser = parse_bsp};

static void check_plot_folder(const char *folder)
{
    struct stat status;
    if (stat(folder, &status) < 0) {
        cli_usage("--plot: expected a folder that can be written to: %s: %s", folder,
                  strerror(errno));
    }
    if (!S_ISDIR(status.st_mode) || access(folder, W_OK) < 0) {
        cli_usage("--plot: expected a folder that can be written to, got '%s'", folder);
    }
}

void probe_bsp_options_check(const struct bsp_options *options, const struct machine *machine)
{
    const struct profile_set *pus = &machine->pus;
    if (!options->wanted && options->tuned_by) {
        cli_usage("%s: expected --bsp with it", options->tuned_by);
    }
    if (!options->wanted) {
        return;
    }
    size_t count = options->processors.count;
    if (count &&
        (options->processors.ids[0] < 1 || options->processors.ids[count - 1] > pus->count)) {
        uint32_t bad = options->processors.ids[0] < 1 ? 0 : options->processors.ids[count - 1];
        cli_usage("--p: expected numbers from 1 to %zu (the PUs to be measured on), got %u",
                  pus->count, bad);
    }
    if (options->plot) {
        check_plot_folder(options->plot);
    }
}
