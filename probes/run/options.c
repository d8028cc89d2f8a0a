/* Options that a run of servet-probe has on one machine and, with --cluster, on many, and where the
 * profile goes. */
#include "probes/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/base/cli.h"
#include "profile/base/file.h"
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

/* -- where the profile goes -- */

/* Saving needs room for a temporary file beside it. */
static int try_folder(const char *path)
{
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof temporary) {
        return -ENAMETOOLONG;
    }
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    close(fd);
    return unlink(temporary) < 0 ? -errno : 0;
}

/* The folder of a path; false: it is none of its own. */
static bool folder_of(const char *path, char folder[PATH_MAX])
{
    snprintf(folder, PATH_MAX, "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder) {
        return false;
    }
    *slash = '\0';
    return true;
}

/* The folder of a file that was named, where only that one is missing: /etc/servet on a machine
 * without a profile. Further folders are not made: a missing one is more likely misspelt. */
static int make_folder_of(const char *path)
{
    char folder[PATH_MAX];
    struct stat status;
    if (!folder_of(path, folder) || stat(folder, &status) == 0 || errno != ENOENT) {
        return 0;
    }
    return mkdir(folder, 0755) < 0 && errno != ENOENT ? -errno : 0;
}

static int check_place(const char *path, struct servet_error *error)
{
    char target[PATH_MAX];
    struct stat status;
    const char *real = realpath(path, target); /* a link stays one: what it points at is replaced */
    if (real && stat(real, &status) == 0 && !S_ISREG(status.st_mode)) {
        return profile_error(error, -EINVAL, "%s: not a regular file, expected one or none", path);
    }
    int rc = try_folder(real ? real : path);
    return rc < 0 ? profile_error(error, rc, "%s: cannot write there: %s", path, strerror(-rc)) : 0;
}

static int choose_path(const char *wanted, char *path, size_t size, struct servet_error *error)
{
    char folder[PATH_MAX];
    int rc = 0;
    path[0] = '\0';
    if (wanted && strcmp(wanted, "-") == 0) {
        return 0;
    }
    if (wanted && wanted[0] == '\0') {
        return profile_error(error, -EINVAL,
                             "--output: expected a file, or '-' for standard output, got ''");
    }
    if (wanted && strlen(wanted) >= size) {
        return profile_error(error, -ENAMETOOLONG, "--output: %s", strerror(ENAMETOOLONG));
    }
    if (wanted) {
        snprintf(path, size, "%s", wanted);
        rc = make_folder_of(path);
    } else {
        TRY(profile_default_path(path, size, error));
        rc = folder_of(path, folder) ? profile_make_folders(folder, 0755) : 0;
    }
    return rc < 0 ? profile_error(error, rc, "%s: cannot %s: %s", path,
                                  wanted ? "make its folder" : "write there", strerror(-rc))
                  : check_place(path, error);
}

void probe_output_choose(const char *wanted, char *path, size_t size)
{
    struct servet_error error;
    int rc = choose_path(wanted, path, size, &error);
    if (rc == -EINVAL) {
        cli_usage("%s", error.text);
    }
    if (rc < 0) {
        cli_fail("%s", error.text);
    }
}
