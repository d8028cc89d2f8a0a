#include "benchmarks/servet_bench/costs_probing.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/servet_bench/runner.h"
#include "benchmarks/servet_bench/tools.h"
#include "benchmarks/servet_bench/words.h"
#include "profile/base/cli.h"

#define LIMIT_SECONDS 300.0

/* Packages of up to 32 cores with L1 and L2 of their own and one L3 and one memory each. */
enum { PACKAGE = 32 };
static const int sizes[] = {2, 8, 24, 64, 256, 1024};

static json_t *packages_of(int pus, int each)
{
    json_t *list = json_array();
    for (int first = 0; first < pus; first += each) {
        char text[32];
        snprintf(text, sizeof text, "%d-%d", first, first + each - 1);
        json_array_append_new(list, json_string(text));
    }
    return list;
}

static json_t *describe(int pus)
{
    int each = pus / 2 < PACKAGE ? pus / 2 : PACKAGE;
    char all[32];
    snprintf(all, sizeof all, "0-%d", pus - 1);
    json_t *packages = packages_of(pus, each), *domains = json_array(), *package;
    size_t i;
    json_array_foreach(packages, i, package)
    {
        json_array_append_new(domains, json_pack("{s:O,s:f}", "pus", package, "bytes_per_s",
                                                 1e10 * (1.6 + each / 4)));
    }
    json_t *caches =
        json_pack("[{s:i,s:i,s:i,s:f},{s:i,s:i,s:i,s:f},{s:i,s:i,s:i,s:f,s:i,s:O}]", "level", 1,
                  "size_bytes", 32 << 10, "ways", 8, "seconds", 1.2e-9, "level", 2, "size_bytes",
                  1 << 20, "ways", 16, "seconds", 4.5e-9, "level", 3, "size_bytes", 16 << 20,
                  "ways", 16, "seconds", 1.8e-8, "slices", 8, "groups", packages);
    json_t *layers = json_pack("[{s:s,s:O,s:f,s:f},{s:s,s:[s],s:f,s:f}]", "name", "package",
                               "groups", packages, "seconds", 4e-7, "bytes_per_s", 9e9, "name",
                               "node", "groups", all, "seconds", 9e-7, "bytes_per_s", 4e9);
    return json_pack("{s:i,s:s,s:s,s:o,s:o,s:{s:f,s:f,s:o},s:o,s:{s:f,s:f,s:f}}", "servet_machine",
                     1, "name", "regular", "pus", all, "packages", packages, "caches", caches,
                     "memory", "seconds", 1e-7, "pu_bytes_per_s", 1e10, "domains", domains,
                     "layers", layers, "noise", "relative", 0.02, "outlier_probability", 0.02,
                     "outlier_factor", 3.0);
}

/* Seconds that the machine's own clock says; < 0: it could not be measured. */
static double projected(const char *probe, int pus)
{
    char path[] = "/tmp/servet-bench-XXXXXX", found[64];
    const struct words nothing = {0};
    struct words argv = {0};
    struct run run;
    json_t *machine = describe(pus);
    int fd = mkstemp(path);
    if (!machine || fd < 0 || json_dumpfd(machine, fd, 0)) {
        cli_fail("%s: cannot write the description of a machine", path);
    }
    close(fd);
    json_decref(machine);
    words_add(&argv, "%s", probe);
    words_add(&argv, "-q");
    words_add(&argv, "--machine");
    words_add(&argv, "simulated:%s", path);
    words_add(&argv, "-o");
    snprintf(found, sizeof found, "%s.profile", path);
    words_add(&argv, "%s", found);
    runner_run(&argv, &nothing, 1, LIMIT_SECONDS, &run);
    words_free(&argv);
    json_t *profile = run.status == 0 ? json_load_file(found, 0, NULL) : NULL;
    const json_t *seconds = json_object_get(json_object_get(profile, "measurement"), "seconds");
    double value = json_is_number(seconds) ? json_number_value(seconds) : -1;
    unlink(path);
    unlink(found);
    json_decref(profile);
    runner_free(&run);
    return value;
}

/* What survey_scaling (benchmarks/cluster) says of the network of a fat tree, whose rows are
 * | nodes | … | seconds, disjoint pairs together | … */
static void add_networks(FILE *out, json_t *ways)
{
    static const unsigned nodes[] = {32, 256, 1024};
    enum { SECONDS_COLUMN = 7 };
    char *survey = tools_built("../cluster/survey_scaling");
    const struct words nothing = {0};
    struct words argv = {0};
    struct run run;
    if (!survey) {
        return;
    }
    words_add(&argv, "%s", survey);
    runner_run(&argv, &nothing, 1, LIMIT_SECONDS, &run);
    for (size_t i = 0; run.status == 0 && i < sizeof nodes / sizeof *nodes; i++) {
        char row[32], name[64];
        snprintf(row, sizeof row, "\n| %u |", nodes[i]);
        const char *at = strstr(run.out, row);
        for (int column = 0; at && column < SECONDS_COLUMN; column++) {
            at = strchr(at + 1, '|');
        }
        double seconds = at ? strtod(at + 1, NULL) : 0;
        if (seconds > 0) {
            snprintf(name, sizeof name, "network between %u nodes", nodes[i]);
            fprintf(out, "  %-34s %12.3f\n", name, seconds);
            json_array_append_new(ways, json_pack("{s:s,s:f}", "name", name, "seconds", seconds));
        }
    }
    runner_free(&run);
    words_free(&argv);
    free(survey);
}

json_t *costs_probing(FILE *out)
{
    static const char what[] = "Probing a whole machine, projected by simulation";
    char *probe = tools_ours("servet-probe");
    json_t *ways = json_array();
    fprintf(out, "%s (s)\n", what);
    for (size_t i = 0; probe && i < sizeof sizes / sizeof *sizes; i++) {
        double seconds = projected(probe, sizes[i]);
        char name[48];
        snprintf(name, sizeof name, "servet-probe, %d PUs", sizes[i]);
        if (seconds < 0) {
            fprintf(out, "  %-34s the simulation failed\n", name);
            continue;
        }
        fprintf(out, "  %-34s %12.1f\n", name, seconds);
        json_array_append_new(ways, json_pack("{s:s,s:f}", "name", name, "seconds", seconds));
    }
    add_networks(out, ways);
    fprintf(out, "  (a cluster takes as long as the slowest of its node classes, all at once, and "
                 "its network)\n\n");
    free(probe);
    return json_pack("{s:s,s:o}", "what", what, "ways", ways);
}
