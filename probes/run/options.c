/* Options that a run of servet-probe has on one machine and, with --cluster, on many. */
#include "probes/run/run.h"

#include <limits.h>
#include <string.h>

#include "profile/base/cli.h"
#include "profile/base/guess.h"

enum { OPTION_SEED = 0x300, OPTION_BUDGET };

static const struct argp_option table[] = {
    {"output", 'o', "FILE", 0,
     "Write the profile to FILE ('-': standard output) instead of where servet looks for it", 0},
    {"force", CLI_FLAG(struct run_options, force), NULL, 0,
     "Replace FILE even if it is no profile, or has figures that --budget or a busy machine cost",
     0},
    {"quiet", 'q', NULL, 0, "No progress bar, no closing line", 0},
    {"seed", OPTION_SEED, "N", 0, "Start of the random choices (default: 1)", 0},
    {"budget", OPTION_BUDGET, "SECONDS", 0,
     "Finish within this time (60, 60s, 1m): fewer repetitions and pairs, and no further probe "
     "once it is over",
     0},
    {"exhaustive", CLI_FLAG(struct run_options, exhaustive), NULL, 0,
     "Measure every pair (of PUs; with --cluster, of nodes) and infer none", 0},
    {"json", CLI_FLAG(struct run_options, json), NULL, 0,
     "Also print the profile on standard output", 0},
    {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct run_options *options = state->input;
    switch (key) {
    case 'o':
        options->output = argument;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case OPTION_SEED:
        options->seed = (uint64_t)cli_integer("--seed", argument, 0, LONG_MAX);
        return 0;
    case OPTION_BUDGET:
        options->budget_s = cli_seconds("--budget", argument);
        return 0;
    default:
        return cli_set_member(key, argument, options) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

const struct argp probe_options_argp = {.options = table, .parser = parse_option};

/* -- --probes -- */

size_t probe_run_name(const char *text, const char *const *names, size_t count)
{
    const size_t length = strcspn(text, ",");
    size_t i = 0;
    while (i < count && (strlen(names[i]) != length || strncmp(text, names[i], length) != 0)) {
        i++;
    }
    return i;
}

static void refuse_probe(const char *text, const char *also)
{
    const size_t length = strcspn(text, ",");
    struct profile_guess guess = {.word = text, .length = length};
    for (size_t i = 0; i < PROBE_NAMES; i++) {
        profile_guess(&guess, probe_run_names[i]);
    }
    cli_usage("--probes: expected %sall, or names out of cache, sharing, memory, message, device, "
              "got '%.*s'%s%s%s",
              also, (int)length, text, guess.name ? ", did you mean '" : "",
              guess.name ? guess.name : "", guess.name ? "'?" : "");
}

unsigned probe_run_parse(const char *text, const char *also)
{
    static const char *const all[] = {"all"};
    unsigned probes = 0;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t i = probe_run_name(at, probe_run_names, PROBE_NAMES);
        if (i == PROBE_NAMES && probe_run_name(at, all, 1) == 1) {
            refuse_probe(at, also);
        }
        probes |= i < PROBE_NAMES ? 1u << i : (1u << PROBE_NAMES) - 1;
    }
    /* sharing is asked of caches whose size is known */
    return probes & PROBE_SHARING ? probes | PROBE_CACHE : probes;
}
