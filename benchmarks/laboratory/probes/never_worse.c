/* Is who measures ever worse off than who does not?
 *
 *     never_worse [--budget=SECONDS] MACHINE.json ...
 *
 * For each simulated machine: its workers are placed by memory priority from what its topology says
 * and from what servet-probe's memory and message probes find, noise and all; both mappings are
 * held against the machine file's own arithmetic, without noise. One line for each machine: its
 * bandwidth for 1, 2, 4 … all PUs, unmeasured and measured. Where the measured mapping has less,
 * the line says so. Status 1 when it has less by more than the tenth that counts as no overhead
 * (memory.h): what lies within, no level speaks of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/map.h"
#include "probes/machine.h"
#include "probes/memory/rates.h"
#include "probes/run/progress.h"
#include "probes/run/run.h"
#include "profile/base/cli.h"
#include "tests/simulated/simulated.h"

/* Sums of the same figures in another order. */
static const double rounding = 1e-9;

static int fail(const struct servet_error *error)
{
    cli_note("%s", error->text);
    return -1;
}

/* Bandwidth of all workers together, without noise. */
static int bandwidth(struct machine *machine, const struct servet_profile *profile, size_t workers,
                     double *out)
{
    const struct machine_copy what = {.bytes = 1u << 20, .passes = 1, .numa = -1};
    const struct map_request request = {.priority = MAP_MEMORY, .workers = workers};
    struct servet_error error = {0};
    uint32_t *pus = calloc(workers, sizeof *pus);
    double *rates = calloc(workers, sizeof *rates);
    int rc = pus && rates ? map_workers(profile, &request, pus, NULL, &error) : -1;
    rc = rc < 0 ? fail(&error) : probe_machine_copy(machine, &what, pus, workers, rates);
    *out = 0;
    for (size_t i = 0; i < workers && rc == 0; i++) {
        *out += rates[i];
    }
    free(pus);
    free(rates);
    return rc;
}

static int measure(const char *path, double budget_s, struct servet_profile **out)
{
    struct machine machine;
    struct servet_error error;
    struct progress progress = {.events = -1};
    int rc = probe_machine_open_simulated(path, 1, &machine, &error);
    if (rc < 0) {
        return fail(&error);
    }
    struct probe_run run = {.probes = PROBE_MEMORY | PROBE_MESSAGE,
                            .seed = 1,
                            .budget_s = budget_s,
                            .machine = &machine,
                            .progress = &progress};
    rc = probe_run_run(&run, out, &error);
    rc = rc < 0 ? fail(&error) : 0;
    probe_machine_close(&machine);
    return rc;
}

/* Prints the line. 2: some measured mapping has less by more than the tenth, 1: by less than it, 0:
 * none has; -1: failed. */
static int look_at(const char *path, struct machine *machine, const struct servet_profile *measured)
{
    const size_t pus = machine->pus.count;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    bool done = false;
    int worst = 0;
    printf("%-28.*s %4zu", (int)(strlen(name) - strlen(".json")), name, pus);
    for (size_t workers = 1; !done; workers = 2 * workers < pus ? 2 * workers : pus) {
        double before, after;
        if (bandwidth(machine, machine->declared, workers, &before) < 0 ||
            bandwidth(machine, measured, workers, &after) < 0) {
            return -1;
        }
        int worse = after < PROBE_MEMORY_COLLISION * before ? 2 : after < before * (1 - rounding);
        static const char *const words[] = {"", " (less)", " WORSE"};
        printf("  %zu: %.1f %.1f%s", workers, before / 1e9, after / 1e9, words[worse]);
        worst = worse > worst ? worse : worst;
        done = workers == pus;
    }
    puts("");
    return worst;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    double *budget_s = state->input;
    if (key != 'b') {
        return ARGP_ERR_UNKNOWN;
    }
    *budget_s = cli_number("--budget", argument, 0, 1e6);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"budget", 'b', "SECONDS", 0, "Measure with this budget (default: without)", 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "MACHINE.json ...",
        .doc = "Holds mappings by measured profiles against mappings by declared ones."};
    double budget_s = 0;
    int first, failed = 0, counts[3] = {0};
    cli_parse(&argp, argc, argv, 0, &first, &budget_s);
    if (first == argc) {
        cli_usage("name at least one MACHINE.json");
    }
    puts("machine                       PUs  workers: GB/s unmeasured, measured");
    for (int i = first; i < argc; i++) {
        struct machine machine;
        struct servet_error error;
        struct servet_profile *measured;
        if (measure(argv[i], budget_s, &measured) < 0) {
            failed++;
            continue;
        }
        if (probe_machine_open_simulated(argv[i], 1, &machine, &error) < 0) {
            failed++;
            fail(&error);
        } else {
            ((struct sim *)machine.state)->noise = (struct sim_noise){0};
            int rc = look_at(argv[i], &machine, measured);
            failed += rc < 0;
            counts[rc < 0 ? 0 : rc]++;
            probe_machine_close(&machine);
        }
        profile_free(measured);
    }
    printf("%d machines, measured worse on %d, less by up to a tenth on %d\n",
           argc - first - failed, counts[2], counts[1]);
    return failed || counts[2];
}
