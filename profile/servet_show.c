/* servet-show: what a profile says, for people and (--json) for programs. */
#include "cli.h"
#include "live.h"
#include "model.h"
#include "show_bsp.h"
#include "show_text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *file; /* NULL: looked for */
    bool json, bsp;
    pid_t live; /* 0: not asked for */
};

static const struct argp_option option_table[] = {
    {"json", 'j', NULL, 0, "Print the profile as JSON (checked, in the order of the schema)", 0},
    {"bsp", 'b', NULL, 0, "Print the table of BSP parameters only: p, g, l and the time of a 0-relation", 0},
    {"live", 'l', "PID", 0, "Print where each thread of a running program is (with --json: JSON lines)", 0},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 'j':
        options->json = true;
        return 0;
    case 'b':
        options->bsp = true;
        return 0;
    case 'l':
        options->live = (pid_t)cli_integer("--live", argument, 1, INT_MAX);
        return 0;
    case ARGP_KEY_ARG:
        if (options->file) {
            cli_usage("expected one profile, got '%s' and '%s'", options->file, argument);
        }
        options->file = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] =
    "Shows what is known of a machine: caches with their effective and declared sizes and who shares them, what "
    "concurrent memory accesses cost, how long messages take, and how sure each figure is."
    "\vFILE is a profile that servet-probe wrote. Without it the first of $SERVET_PROFILE, "
    "$XDG_CONFIG_HOME/servet/HOST.json (by default ~/.config/servet/HOST.json), /etc/servet/HOST.json and "
    "/etc/servet/profile.json is shown, HOST being this host's name up to the first dot; when there is none, what the "
    "operating system declares, marked as not measured.\n\n"
    "Exit status: 0, 1 when it failed, 2 when the profile or the usage is wrong (one line says where and why).";

static const struct argp command = {.options = option_table, .parser = parse, .args_doc = "[FILE]", .doc = doc};

/* A missing or wrong profile is bad input (2), lack of memory a failure (1). */
static _Noreturn void give_up(int rc, const struct servet_error *error)
{
    if (rc == -ENOMEM || rc == -EIO) {
        cli_fail("%s", error->text);
    }
    cli_usage("%s", error->text);
}

static struct servet_profile *load(const char *path)
{
    struct servet_profile *profile;
    struct servet_error error;
    int rc = profile_load(path, &profile, &error);
    if (rc < 0) {
        give_up(rc, &error);
    }
    return profile;
}

/* The profile of this machine and the file it is from, `path` empty for none. */
static struct servet_profile *find(char *path, size_t size)
{
    struct servet_profile *profile;
    struct servet_error error;
    int rc = profile_find(path, size);
    if (rc == -ENOENT) {
        *path = '\0';
        rc = profile_from_hwloc(NULL, &profile, &error);
        if (rc < 0) {
            give_up(rc, &error);
        }
        return profile;
    }
    if (rc < 0) {
        cli_usage("SERVET_PROFILE: %s", strerrordesc_np(-rc));
    }
    profile = load(path);
    if (profile_matches(profile, "", NULL, &error) < 0) {
        cli_note("%s: %s", path, error.text);
    }
    return profile;
}

static int print_json(const struct servet_profile *profile)
{
    char *text = profile_to_json(profile);
    if (!text) {
        return -ENOMEM;
    }
    fputs(text, stdout);
    free(text);
    return 0;
}

static int print_bsp(const struct servet_profile *profile, const char *source)
{
    if (!profile->bsp_count) {
        cli_fail("%s: no BSP parameters in it (servet-probe --bsp measures them)", source ? source : "this machine");
    }
    show_bsp(profile, stdout);
    return 0;
}

static int show_live(const struct options *options)
{
    int rc = pin_live_print(stdout, options->json, options->live);
    if (rc == -ESRCH) {
        cli_usage("--live: expected a running process, %d is none", (int)options->live);
    }
    if (rc < 0) {
        cli_fail("--live %d: %s", (int)options->live, strerrordesc_np(-rc));
    }
    return cli_finish(CLI_OK);
}

int main(int argc, char **argv)
{
    struct options options = {0};
    char path[PATH_MAX];
    cli_parse(&command, argc, argv, 0, NULL, &options);
    if (options.json && options.bsp) {
        cli_usage("--json, --bsp: expected one of them, not both");
    }
    if (options.live) {
        if (options.file || options.bsp) {
            cli_usage("--live: expected alone or with --json");
        }
        return show_live(&options);
    }
    struct servet_profile *profile = options.file ? load(options.file) : find(path, sizeof path);
    const char *source = options.file ? options.file : *path ? path : NULL;
    int rc = options.json  ? print_json(profile)
             : options.bsp ? print_bsp(profile, source)
                           : show_text(profile, source, stdout);
    profile_free(profile);
    if (rc < 0) {
        cli_fail("%s", strerrordesc_np(-rc));
    }
    return cli_finish(CLI_OK);
}
