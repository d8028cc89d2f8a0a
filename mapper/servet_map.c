/* servet-map: which PUs for how many workers, and why. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "explain.h"
#include "formats.h"
#include "map.h"

struct options {
    size_t workers, ranks;
    uint32_t *threads; /* by rank; NULL: not hybrid */
    const char *thread_list;
    bool memory, communication, explain;
    const char *profile, *topology;
    const struct map_format *format;
    struct profile_set cpuset;
};

enum { MEM_PRIOR = 256, COMM_PRIOR, PROFILE, TOPOLOGY, EXPLAIN, FORMAT, CPUSET };

static const struct argp_option option_table[] = {
    {"workers", 'n', "N", 0, "map N workers (threads or single-threaded ranks)", 0},
    {"ranks", 'r', "R", 0, "map R ranks, each a domain for its threads", 0},
    {"threads", 't', "T", 0, "threads of every rank, or a list with one number per rank (3,3,2)", 0},
    {"mem-prior", MEM_PRIOR, NULL, 0, "memory bandwidth and caches before latency (default)", 0},
    {"comm-prior", COMM_PRIOR, NULL, 0, "latency before memory bandwidth and caches", 0},
    {"profile", PROFILE, "FILE", 0, "a profile of servet-probe (default: the one of this machine)", 0},
    {"topology", TOPOLOGY, "FILE|TEXT", 0,
     "plan for an hwloc XML file or a description such as \"package:2 core:4 pu:2\"", 0},
    {"cpuset", CPUSET, "LIST", 0, "use only these PUs (0-3,8)", 0},
    {"format", FORMAT, "NAME", 0, "print it in this language (default list; 'help' shows all)", 0},
    {"explain", EXPLAIN, NULL, 0, "print the weights before each choice first", 0},
    {0},
};

static void print_formats(void)
{
    for (const struct map_format *format = map_formats; format->name; format++) {
        printf("%-12s %s\n", format->name, format->purpose);
    }
    exit(cli_finish(CLI_OK));
}

static void set_format(struct options *options, const char *name)
{
    if (strcmp(name, "help") == 0) {
        print_formats();
    }
    options->format = map_format_find(name);
    if (!options->format) {
        char names[512];
        map_format_names(names, sizeof names);
        cli_usage("--format: expected one of %s, got '%s'", names, name);
    }
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 'n':
        options->workers = (size_t)cli_integer("-n", argument, 1, MAP_WORKER_LIMIT - 1);
        return 0;
    case 'r':
        options->ranks = (size_t)cli_integer("-r", argument, 1, MAP_WORKER_LIMIT - 1);
        return 0;
    case 't':
        options->thread_list = argument;
        return 0;
    case MEM_PRIOR:
        options->memory = true;
        return 0;
    case COMM_PRIOR:
        options->communication = true;
        return 0;
    case PROFILE:
        options->profile = argument;
        return 0;
    case TOPOLOGY:
        options->topology = argument;
        return 0;
    case CPUSET:
        profile_set_free(&options->cpuset);
        options->cpuset = cli_set("--cpuset", argument);
        return 0;
    case FORMAT:
        set_format(options, argument);
        return 0;
    case EXPLAIN:
        options->explain = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* -- threads of ranks ------------------------------------------------------------------------------------------- */

static void *needed(void *memory)
{
    if (!memory) {
        cli_fail("out of memory");
    }
    return memory;
}

static size_t count_items(const char *list)
{
    size_t count = 1;
    for (; *list; list++) {
        count += *list == ',';
    }
    return count;
}

static void read_threads(struct options *options)
{
    size_t items = count_items(options->thread_list);
    if (!options->ranks) {
        options->ranks = items;
    }
    if (items != 1 && items != options->ranks) {
        cli_usage("-t: expected one number or %zu (one per rank), got %zu", options->ranks, items);
    }
    char *list = needed(strdup(options->thread_list));
    char *rest = list;
    options->threads = needed(calloc(options->ranks, sizeof *options->threads));
    for (size_t r = 0; r < options->ranks; r++) {
        char *item = items == 1 && r ? NULL : strsep(&rest, ",");
        options->threads[r] =
            item ? (uint32_t)cli_integer("-t", item, 1, MAP_WORKER_LIMIT - 1) : options->threads[r - 1];
    }
    free(list);
}

static void check_options(struct options *options)
{
    if (options->memory && options->communication) {
        cli_usage("--mem-prior, --comm-prior: expected one of them, not both");
    }
    if (options->profile && options->topology) {
        cli_usage("--profile, --topology: expected one of them, not both");
    }
    if (options->workers && (options->ranks || options->thread_list)) {
        cli_usage("-n: expected either -n, or -r and -t, not both");
    }
    if (options->thread_list && !options->ranks && !strchr(options->thread_list, ',')) {
        cli_usage("-t: expected -r RANKS with it, or a list with one number per rank");
    }
    if (!options->workers && !options->ranks && !options->thread_list) {
        cli_usage("expected -n WORKERS, or -r RANKS -t THREADS");
    }
    if (options->thread_list) {
        read_threads(options);
    } else if (options->ranks) {
        options->workers = options->ranks;
    }
    if (options->threads && options->explain) {
        cli_usage("--explain: expected -n WORKERS with it, not -t");
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

static struct servet_profile *open_profile(const struct options *options)
{
    if (options->profile) {
        return from_file(options->profile);
    }
    return options->topology ? from_topology(options->topology) : of_this_machine();
}

/* -- mapping ---------------------------------------------------------------------------------------------------- */

static size_t count_pus(const struct servet_profile *profile)
{
    size_t count = 0;
    for (size_t r = 0; r < profile->node_range_count; r++) {
        count += profile->nodes[r].count * profile->classes[profile->nodes[r].class_index].pus.count;
    }
    return count;
}

static void refuse(int rc, const struct servet_error *error)
{
    if (rc == -EINVAL) {
        cli_usage("%s", error->text);
    }
    if (rc < 0) {
        cli_fail("%s", error->text);
    }
}

static size_t count_places(const struct options *options)
{
    size_t places = options->workers;
    for (size_t r = 0; options->threads && r < options->ranks; r++) {
        places += options->threads[r];
    }
    return places;
}

static void map(const struct options *options, const struct servet_profile *profile, FILE *explanation, uint32_t *pus)
{
    struct servet_error error;
    enum map_priority priority = options->communication ? MAP_COMMUNICATION : MAP_MEMORY;
    const struct profile_set *allowed = options->cpuset.count ? &options->cpuset : NULL;
    int rc;
    if (options->threads) {
        struct map_domain_request request = {
            .priority = priority, .ranks = options->ranks, .threads = options->threads, .allowed = allowed};
        rc = map_domains(profile, &request, pus, &error);
    } else {
        struct map_request request = {.priority = priority, .workers = options->workers, .allowed = allowed};
        rc = options->explain ? map_explain_table(explanation, profile, &request, pus, &error)
                              : map_workers(profile, &request, pus, NULL, &error);
    }
    refuse(rc, &error);
}

static void note_sharing(const struct options *options, const struct servet_profile *profile, size_t places)
{
    size_t pus = options->cpuset.count ? options->cpuset.count : count_pus(profile);
    if (places > pus) {
        cli_note("%zu workers on %zu PUs: some PUs get more than one", places, pus);
    }
}

int main(int argc, char **argv)
{
    struct options options = {.format = &map_formats[0]};
    const struct argp argp = {
        option_table, parse_option,
        NULL,         "Chooses PUs for the workers of a parallel program from what was measured of the machine.",
        NULL,         NULL,
        NULL};
    cli_parse(&argp, argc, argv, 0, NULL, &options);
    check_options(&options);
    struct servet_profile *profile = open_profile(&options);
    size_t places = count_places(&options);
    uint32_t *pus = needed(calloc(places, sizeof *pus));
    char *text = NULL;
    size_t size = 0;
    FILE *explanation = needed(open_memstream(&text, &size));
    map(&options, profile, explanation, pus);
    struct map_plan plan;
    if (map_plan_make(profile, pus, options.threads ? options.ranks : options.workers, options.threads, &plan) < 0 ||
        fclose(explanation) != 0) {
        cli_fail("out of memory");
    }
    plan.priority = options.communication ? MAP_COMMUNICATION : MAP_MEMORY;
    note_sharing(&options, profile, places);
    struct servet_error error;
    char *mapping = NULL;
    size_t mapping_size = 0;
    FILE *out = needed(open_memstream(&mapping, &mapping_size));
    refuse(map_format_print(out, options.format, &plan, &error), &error);
    fclose(out);
    fwrite(text, 1, size, stdout);
    fwrite(mapping, 1, mapping_size, stdout);
    map_plan_free(&plan);
    free(text);
    free(mapping);
    free(pus);
    free(options.threads);
    profile_set_free(&options.cpuset);
    profile_free(profile);
    return cli_finish(CLI_OK);
}
