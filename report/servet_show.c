/* servet-show: what a profile says, for people and (--json) for programs. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/map.h"
#include "profile/base/cli.h"
#include "profile/base/control_groups.h"
#include "profile/base/file.h"
#include "profile/model.h"
#include "profile/scope.h"
#include "profile/text/text.h"
#include "report/report.h"

struct show_options {
    const char *file;   /* NULL: looked for */
    const char *second; /* of --diff */
    const char *html, *hwloc;
    size_t workers; /* of --map; 0: none */
    bool json, bsp, diff;
    pid_t live; /* 0: not asked for */
};

enum { OPTION_MAP = 0x100 };

#define FLAG(member) CLI_FLAG(struct show_options, member)
#define TEXT(member) CLI_TEXT(struct show_options, member)

static const struct argp_option option_table[] = {
    {"json", 'j', NULL, 0, "Print the profile as JSON (checked, in the order of the schema)", 0},
    {"bsp", 'b', NULL, 0,
     "Print the table of BSP parameters only: p, g, l and the time of a 0-relation", 0},
    {"live", 'l', "PID", 0,
     "Print where each thread of a running program is (with --json: JSON lines)", 0},
    {"html", TEXT(html), "FILE", 0,
     "Write a report with plots and pictures, one page that needs no network", 0},
    {"hwloc", TEXT(hwloc), "FILE", 0,
     "Write hwloc's XML of the topology with the measured bandwidth and latency of NUMA nodes", 0},
    {"map", OPTION_MAP, "N", 0, "With --html: show where N workers would go", 0},
    {"diff", FLAG(diff), NULL, 0,
     "Say what changed from the profile OLD to NEW, and whether the mapping would (with --json: as "
     "JSON)",
     0},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct show_options *options = state->input;
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
    case OPTION_MAP:
        options->workers = (size_t)cli_integer("--map", argument, 1, MAP_WORKER_LIMIT - 1);
        return 0;
    case ARGP_KEY_ARG:
        if (options->file && options->diff && !options->second) {
            options->second = argument;
            return 0;
        }
        if (options->diff && options->second) {
            cli_usage("--diff: expected two profiles, OLD and NEW, got a third: '%s'", argument);
        }
        if (options->file) {
            cli_usage("expected one profile, got '%s' and '%s'", options->file, argument);
        }
        options->file = argument;
        return 0;
    default:
        return cli_set_member(key, argument, options) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] =
    "Shows what is known of a machine: caches with their effective and declared sizes and who "
    "shares them, what "
    "concurrent memory accesses cost, how long messages take, and how sure each figure is."
    "\vFILE is a profile that servet-probe wrote, or a topology in hwloc's XML. Without it the "
    "first of $SERVET_PROFILE, "
    "$XDG_CONFIG_HOME/servet/HOST.json (by default ~/.config/servet/HOST.json), "
    "/etc/servet/HOST.json and "
    "/etc/servet/profile.json is shown, HOST being this host's name up to the first dot; when "
    "there is none, what the "
    "operating system declares, marked as not measured.\n\n"
    "Exit status: 0, 1 when it failed, 2 when the profile or the usage is wrong (one line says "
    "where and why).";

static const struct argp command = {
    .options = option_table, .parser = parse, .args_doc = "[FILE]\n--diff OLD NEW", .doc = doc};

/* The profile of this machine and the file it is from, `path` empty for none. */
static struct servet_profile *find_profile(char *path, size_t size)
{
    struct servet_profile *profile;
    struct servet_error error;
    int rc = profile_find(path, size);
    if (rc == -ENOENT) {
        *path = '\0';
        cli_check(profile_from_hwloc(NULL, &profile, &error), &error);
        return profile;
    }
    if (rc < 0) {
        cli_usage("SERVET_PROFILE: %s", strerrordesc_np(-rc));
    }
    profile = cli_load(path);
    if (profile_matches(profile, "", NULL, &error) < 0) {
        cli_note("%s: %s", path, error.text);
    }
    return profile;
}

/* The page, or hwloc's XML. */
static void write_file(const struct report *report, bool html, const char *path)
{
    size_t length;
    struct servet_error error;
    FREED char *text = html ? report_html(report, &length) : report_hwloc(report->profile, &length);
    if (strcmp(path, "-") == 0) {
        fwrite(text, 1, length, stdout);
    } else if (profile_save_file(path, text, length, &error) < 0) {
        cli_fail("%s", error.text); /* not bad usage */
    }
}

static void show_diff(const struct show_options *options)
{
    struct servet_profile *old = cli_load(options->file), *new = cli_load(options->second);
    json_t *diff = report_diff_profiles(old, new);
    profile_free(old);
    profile_free(new);
    if (options->json) {
        json_dumpf(diff, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        putchar('\n');
    } else {
        report_diff_print(diff, stdout);
    }
    json_decref(diff);
}

/* "servet-show --html profile.json" means to show it, and would write a page over it. */
static void refuse_profile(const char *option, const char *path)
{
    struct servet_profile *profile;
    if (profile_load(path, &profile, NULL) == 0) {
        profile_free(profile);
        cli_usage("%s: expected the file to write, such as report.%s; %s is a profile", option,
                  strcmp(option, "--html") == 0 ? "html" : "xml", path);
    }
}

static void refuse_combinations(const struct show_options *options)
{
    bool json_alone = options->json && !options->diff;
    const char *const outputs[][2] = {{"--html", options->html}, {"--hwloc", options->hwloc}};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        if (outputs[i][1] && !*outputs[i][1]) {
            cli_usage("%s: expected the name of a file, got ''", outputs[i][0]);
        }
        if (outputs[i][1] && strcmp(outputs[i][1], "-") != 0) {
            refuse_profile(outputs[i][0], outputs[i][1]);
        }
    }
    bool html = options->html, hwloc = options->hwloc;
    if (json_alone + options->bsp + options->diff + html + hwloc > 1) {
        cli_usage("--json, --bsp, --diff, --hwloc and --html: expected one of them (or --diff with "
                  "--json)");
    }
    if (options->live && (options->file || options->bsp || options->diff || html || hwloc)) {
        cli_usage("--live: expected alone or with --json");
    }
    if (options->diff && !options->second) {
        cli_usage("--diff: expected two profiles, OLD and NEW");
    }
    if (options->workers && !html) {
        cli_usage("--map: expected --html FILE beside it (servet-map prints mappings)");
    }
}

static void show_profile(const struct show_options *options, const struct servet_profile *profile,
                         const char *source)
{
    const struct report report = {
        .profile = profile, .source = source, .workers = options->workers};
    if (options->hwloc || options->html) {
        write_file(&report, options->html, options->html ? options->html : options->hwloc);
    } else if (options->bsp && !profile->bsp_count) {
        cli_fail("%s: no BSP parameters in it (servet-probe --bsp measures them)",
                 source ? source : "this machine");
    } else if (options->bsp) {
        profile_show_bsp(profile, stdout);
    } else if (options->json) {
        FREED char *text = cli_needed(profile_to_json(profile));
        fputs(text, stdout);
    } else {
        double quota = 0;
        (void)(options->file ? 0 : profile_quota_read("", &quota));
        profile_show_text(profile, source, quota, stdout);
    }
}

int main(int argc, char **argv)
{
    struct show_options options = {0};
    char path[PATH_MAX];
    cli_parse(&command, argc, argv, 0, NULL, &options);
    refuse_combinations(&options);
    if (options.live) {
        report_live_print(stdout, options.json, options.live);
        return cli_finish(CLI_OK);
    }
    if (options.diff) {
        show_diff(&options);
        return cli_finish(CLI_OK);
    }
    struct servet_profile *profile =
        options.file ? cli_load(options.file) : find_profile(path, sizeof path);
    const char *source = options.file ? options.file : *path ? path : NULL;
    show_profile(&options, profile, source);
    profile_free(profile);
    return cli_finish(CLI_OK);
}
