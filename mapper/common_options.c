#include "common_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { PROFILE = 0x300, TOPOLOGY, CPUSET };

static const struct argp_option table[] = {
    {"profile", PROFILE, "FILE", 0, "a profile of servet-probe (default: the one of this machine)", 0},
    {"topology", TOPOLOGY, "FILE|TEXT", 0,
     "plan for an hwloc XML file or a description such as \"package:2 core:4 pu:2\"", 0},
    {"cpuset", CPUSET, "LIST", 0, "use only these PUs (0-3,8)", 0},
    {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct common_machine *machine = state->input;
    switch (key) {
    case PROFILE:
        machine->profile = argument;
        return 0;
    case TOPOLOGY:
        machine->topology = argument;
        return 0;
    case CPUSET:
        profile_set_free(&machine->cpuset);
        machine->cpuset = cli_set("--cpuset", argument);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp common_machine_argp = {.options = table, .parser = parse_option};

void common_machine_check(const struct common_machine *machine)
{
    if (machine->profile && machine->topology) {
        cli_usage("--profile, --topology: expected one of them, not both");
    }
}

/* -- which machine ---------------------------------------------------------------------------------------------- */

static struct servet_profile *from_topology(const char *source)
{
    struct servet_profile *profile;
    struct servet_error error;
    if (profile_from_hwloc(source, &profile, &error) < 0) {
        if (source) {
            cli_usage("--topology: %s", error.text);
        }
        cli_fail("%s", error.text);
    }
    return profile;
}

static struct servet_profile *from_file(const char *path)
{
    struct servet_profile *profile;
    struct servet_error error;
    int rc = profile_load(path, &profile, &error);
    if (rc == -ENOMEM) {
        cli_fail("%s", error.text);
    }
    if (rc < 0) {
        cli_usage("%s", error.text);
    }
    return profile;
}

/* The profile of this machine; one of another machine is said to be so and left alone. */
static struct servet_profile *of_this_machine(void)
{
    char path[4096];
    if (profile_find(path, sizeof path) < 0) {
        cli_note("no profile of this machine (servet-probe makes one): nothing was measured, using the topology");
        return from_topology(NULL);
    }
    struct servet_profile *profile = from_file(path);
    struct servet_error error;
    if (profile_matches(profile, "", NULL, &error) < 0) {
        cli_note("%s: %s: nothing measured is used, only the topology (--profile %s insists)", path, error.text, path);
        profile_free(profile);
        return from_topology(NULL);
    }
    return profile;
}

struct servet_profile *common_machine_open(const struct common_machine *machine)
{
    if (machine->profile) {
        return from_file(machine->profile);
    }
    return machine->topology ? from_topology(machine->topology) : of_this_machine();
}

/* -- formats ---------------------------------------------------------------------------------------------------- */

const struct map_format *common_format(const char *name)
{
    const struct map_format *format = map_format_find(name);
    if (strcmp(name, "help") == 0) {
        for (format = map_formats; format->name; format++) {
            printf("%-12s %s\n", format->name, format->purpose);
        }
        exit(cli_finish(CLI_OK));
    }
    if (!format) {
        char names[512];
        map_format_names(names, sizeof names);
        cli_usage("--format: expected one of %s, got '%s'", names, name);
    }
    return format;
}
