/* Machines that are not here, as profiles that the shim believes. */
#include "tests/preload/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/base/scratch.h"

/* Also before the first test, where an assertion cannot be reported. */
static void need(bool condition, const char *source, const char *what)
{
    if (!condition) {
        fprintf(stderr, "%s: %s\n", source, what);
        exit(99);
    }
}

void open_machine(const char *source, struct machine *out)
{
    struct servet_error error = {""};
    size_t length = strlen(source);
    bool json = length > 5 && strcmp(source + length - 5, ".json") == 0;
    int rc = json ? profile_load(source, &out->profile, &error)
                  : profile_from_hwloc(source, &out->profile, &error);
    need(rc == 0, source, error.text);
    need(profile_node_count(out->profile) == 1, source, "more than one node");
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    free(out->profile->nodes[0].names);
    out->profile->nodes[0].names = strdup(host);
    snprintf(out->path, sizeof out->path, "%s/machine-XXXXXX", scratch_folder());
    int file = mkstemp(out->path);
    need(file >= 0, source, "no file in /tmp");
    close(file);
    need(profile_save(out->profile, out->path, &error) == 0, source, error.text);
    out->all = (struct profile_mask){0};
    profile_mask_from_set(&out->profile->classes[0].pus, &out->all);
}

void close_machine(struct machine *machine)
{
    unlink(machine->path);
    profile_free(machine->profile);
}

void set_number(const char *name, uint32_t value)
{
    setenv(name, formatted("%u", value), 1);
}
