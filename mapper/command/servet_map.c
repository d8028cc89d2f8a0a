/* servet-map: which PUs for how many workers, and why. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mapper/command/command.h"
#include "mapper/formats/formats.h"
#include "mapper/map.h"
#include "mapper/traffic/traffic.h"
#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/scope.h"

/* -- options: those that contradict one another are refused before anything is read -- */

struct map_options {
    size_t workers, ranks;
    uint32_t *threads; /* by rank; NULL: not hybrid */
    const char *thread_list;
    bool undecided; /* a plain answer is asked for, and no priority was given */
    bool memory, communication, paper, one_by_one, explain, compare, worth, suggest, json;
    uint32_t node_count; /* of --suggest; 0: the nodes of the profile */
    struct common_machine machine;
    const char *matrix;
    bool cluster, slurm;
    const char *nodes;               /* file with the nodes of a job; NULL: all of the profile */
    const struct map_format *format; /* NULL: the table of --worth or --suggest */
    uint32_t smt;
    int kind;
    uint32_t gpus; /* of each node; MAP_ALL_GPUS; 0: not asked for */
    bool exclusive, nics;
};

enum { FORMAT = 256, SMT, NO_SMT, KIND, GPUS };

#define FLAG(member) CLI_FLAG(struct map_options, member)
#define TEXT(member) CLI_TEXT(struct map_options, member)

/* Most hardware threads of a core that anybody asks for (8 on POWER). */
#define MOST_SMT 64

static const struct argp_option option_table[] = {
    {"workers", 'n', "N", 0, "map N workers (threads or single-threaded ranks)", 0},
    {"ranks", 'r', "R", 0, "map R ranks, each a domain for its threads", 0},
    {"threads", 't', "T", 0, "threads of every rank, or a list with one number per rank (3,3,2)",
     0},
    {"worth", FLAG(worth), NULL, 0,
     "how many workers are worth having: the fewest with 95 % of the memory bandwidth, and where",
     0},
    {"suggest", FLAG(suggest), NULL, 0,
     "how many ranks with how many threads: ways to divide a node, with reasons", 0},
    {"node-count", 'N', "N", 0, "with --suggest: on so many nodes (default those of the profile)",
     0},
    {"mem-prior", FLAG(memory), NULL, 0, "memory bandwidth and caches before latency (default)", 0},
    {"comm-prior", FLAG(communication), NULL, 0, "latency before memory bandwidth and caches", 0},
    {"one-by-one", FLAG(one_by_one), NULL, 0,
     "with -n: the number is not known beforehand, as of threads that a program starts one by one",
     0},
    {"paper", FLAG(paper), NULL, 0,
     "add the rules as the paper does instead of comparing them in order", 0},
    {"cluster", FLAG(cluster), NULL, 0, "map a job over the nodes of a cluster's profile", 0},
    {"nodes", TEXT(nodes), "FILE", 0,
     "with --cluster: only the nodes in FILE, one to a line, as in a hostfile", 0},
    {"slurm", FLAG(slurm), NULL, 0, "with --cluster: only the nodes of this Slurm job", 0},
    {"smt", SMT, "K", 0, "use at most K hardware threads of each core", 0},
    {"no-smt", NO_SMT, NULL, 0, "use one hardware thread of each core", 0},
    {"kind", KIND, "KIND", 0,
     "use only these cores: 'p' the most capable, 'e' the least, or a number (0 the most capable)",
     0},
    {"matrix", TEXT(matrix), "FILE", 0,
     "place ranks by who sends how many bytes to whom (rows of numbers, or Matrix Market)", 0},
    {"gpus", GPUS, "N|exclusive", OPTION_ARG_OPTIONAL,
     "place ranks beside their GPUs, evenly: all of a node, N of them, or none for two ranks", 0},
    {"nics", FLAG(nics), NULL, 0, "say which network cards are nearest to each rank", 0},
    {"format", FORMAT, "NAME", 0, "print it in this language (default list; 'help' shows all)", 0},
    {"json", FLAG(json), NULL, 0,
     "print JSON: of a mapping as --format json, of --worth and --suggest the "
     "table",
     0},
    {"explain", FLAG(explain), NULL, 0,
     "print the weights before each choice first; of large machines a summary of the groups", 0},
    {"compare", FLAG(compare), NULL, 0,
     "print what this, compact and scatter are predicted to give first", 0},
    {0},
};

static void set_kind(struct map_options *options, const char *kind)
{
    if (strcmp(kind, "p") == 0) {
        options->kind = 0;
    } else if (strcmp(kind, "e") == 0) {
        options->kind = MAP_KIND_LAST;
    } else {
        char *end;
        long number = strtol(kind, &end, 10);
        if (end == kind || *end || number < 0 || number >= MAP_KIND_LAST) {
            cli_usage("--kind: expected p, e or a number from 0, got '%s'", kind);
        }
        options->kind = (int)number;
    }
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct map_options *options = state->input;
    if (cli_set_member(key, argument, options)) {
        return 0;
    }
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
    case 'N':
        options->node_count = (uint32_t)cli_integer("-N", argument, 1, MAP_WORKER_LIMIT - 1);
        return 0;
    case ARGP_KEY_ARG:
        if (options->machine.profile) {
            cli_usage("expected one profile, got '%s' and '%s'", options->machine.profile,
                      argument);
        }
        options->machine.profile = argument;
        return 0;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->machine;
        return 0;
    case SMT:
        options->smt = (uint32_t)cli_integer("--smt", argument, 1, MOST_SMT);
        return 0;
    case NO_SMT:
        options->smt = 1;
        return 0;
    case KIND:
        set_kind(options, argument);
        return 0;
    case GPUS:
        options->exclusive = argument && strcmp(argument, "exclusive") == 0;
        options->gpus = !argument || options->exclusive
                            ? MAP_ALL_GPUS
                            : (uint32_t)cli_integer("--gpus", argument, 1, MAP_WORKER_LIMIT - 1);
        return 0;
    case FORMAT:
        options->format = map_common_format(argument);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* -- threads of ranks -- */

static void read_threads(struct map_options *options)
{
    size_t items = 1;
    for (const char *c = options->thread_list; *c; c++) {
        items += *c == ',';
    }
    if (!options->ranks) {
        options->ranks = items;
    }
    if (items != 1 && items != options->ranks) {
        cli_usage("-t: expected one number or %zu (one per rank), got %zu", options->ranks, items);
    }
    FREED char *list = cli_needed(strdup(options->thread_list));
    char *rest = list;
    options->threads = cli_needed(calloc(options->ranks, sizeof *options->threads));
    for (size_t r = 0; r < options->ranks; r++) {
        char *item = items == 1 && r ? NULL : strsep(&rest, ",");
        options->threads[r] = item ? (uint32_t)cli_integer("-t", item, 1, MAP_WORKER_LIMIT - 1)
                                   : options->threads[r - 1];
    }
}

/* --worth and --suggest find the numbers themselves, --worth for memory priority. */
static void check_advice(const struct map_options *options, const char *name)
{
    if (options->workers || options->ranks || options->thread_list || options->matrix) {
        cli_usage("%s: expected it alone, not with -n, -r, -t or --matrix", name);
    }
    map_refuse_if(options->worth && (options->communication || options->suggest),
                  "--worth: expected neither --comm-prior nor --suggest with it");
    if (options->paper || options->one_by_one || options->explain || options->compare) {
        cli_usage("%s: expected none of --paper, --one-by-one, --explain and --compare with it",
                  name);
    }
    map_refuse_if(options->suggest && options->format,
                  "--suggest: expected no --format with it, only --json");
}

static void check_options(struct map_options *options)
{
    map_refuse_if((options->gpus || options->nics) && (options->matrix || options->one_by_one ||
                                                       options->worth || options->suggest),
                  "--gpus, --nics: expected none of --matrix, --one-by-one, --worth and --suggest "
                  "with them");
    map_refuse_if(options->memory && options->communication,
                  "--mem-prior, --comm-prior: expected one of them, not both");
    map_refuse_if((options->nodes || options->slurm) && !options->cluster,
                  "--nodes, --slurm: expected --cluster with them");
    map_refuse_if(options->nodes && options->slurm,
                  "--nodes, --slurm: expected one of them, not both");
    map_common_machine_check(&options->machine);
    map_refuse_if(options->workers && (options->ranks || options->thread_list),
                  "-n: expected either -n, or -r and -t, not both");
    map_refuse_if(options->thread_list && !options->ranks && !strchr(options->thread_list, ','),
                  "-t: expected -r RANKS with it, or a list with one number per rank");
    map_refuse_if(options->node_count && !options->suggest, "-N: expected --suggest with it");
    map_refuse_if(options->json && options->format,
                  "--json, --format: expected one of them, not both");
    if (options->worth || options->suggest) {
        check_advice(options, options->worth ? "--worth" : "--suggest");
        return;
    }
    map_refuse_if(!options->workers && !options->ranks && !options->thread_list && !options->matrix,
                  "expected -n WORKERS, -r RANKS -t THREADS, --matrix FILE, --worth, or --suggest");
    if (options->thread_list) {
        read_threads(options);
    } else if (options->ranks) {
        options->workers = options->ranks;
    }
}

static void read_options(int argc, char **argv, struct map_options *options)
{
    *options = (struct map_options){.kind = MAP_KIND_ANY};
    static const struct argp_child children[] = {{&map_common_machine_argp, 0, NULL, 0}, {0}};
    const struct argp argp = {.options = option_table,
                              .parser = parse_option,
                              .args_doc = "[FILE]",
                              .doc = "Chooses PUs for the workers of a parallel program from what "
                                     "was measured of the machine: of this one, or as --profile "
                                     "of that in FILE.",
                              .children = children};
    cli_parse(&argp, argc, argv, 0, NULL, options);
    check_options(options);
    if (!options->format && !options->worth && !options->suggest) {
        bool devices = options->gpus || options->nics;
        options->undecided = !options->memory && !options->communication && !options->json &&
                             !getenv("SERVET_MEM_PRIOR") && !getenv("SERVET_COMM_PRIOR");
        options->format = map_common_format(options->json ? "json" : devices ? "devices" : "list");
    }
}

/* -- mapping -- */

static enum map_priority asked_priority(const struct map_options *options)
{
    return options->communication ? MAP_COMMUNICATION : MAP_MEMORY;
}

/* The paper's table, where anybody could read it. */
static bool wants_table(const struct map_options *options, const struct profile_set *allowed)
{
    return options->explain && !options->threads && !options->gpus &&
           allowed->count <= MAP_EXPLAIN_MOST_PUS && options->workers <= MAP_EXPLAIN_MOST_WORKERS;
}

static bool wants_devices(const struct map_options *options)
{
    return options->gpus || options->nics;
}

/* `devices` is set where they were asked for. */
static struct map_mapping choose_places(const struct map_options *options,
                                        const struct servet_profile *profile,
                                        const struct profile_set *allowed, FILE *out,
                                        struct map_devices *devices)
{
    struct servet_error error;
    struct map_device_request request = {
        .ranks = {.priority = asked_priority(options),
                  .workers = options->threads ? options->ranks : options->workers,
                  .threads = options->threads,
                  .threads_each = 1,
                  .allowed = allowed,
                  .paper = options->paper,
                  .known = !options->one_by_one},
        .gpus = options->gpus,
        .exclusive = options->exclusive,
        .nics = options->nics};
    const struct map_explainer table = {map_explain_row, out};
    const struct map_explainer *explainer = wants_table(options, allowed) ? &table : NULL;
    size_t places = options->threads ? 0 : options->workers;
    for (size_t r = 0; options->threads && r < options->ranks; r++) {
        places += options->threads[r];
    }
    FREED uint32_t *pus = cli_needed(calloc(places, sizeof *pus));
    cli_check(wants_devices(options) ? map_devices(profile, &request, pus, devices, &error)
              : options->threads     ? map_domains(profile, &request.ranks, pus, &error)
                                     : map_workers(profile, &request.ranks, pus, explainer, &error),
              &error);
    struct map_mapping plan =
        map_mapping_make(profile, pus, request.ranks.workers, options->threads);
    plan.priority = asked_priority(options);
    plan.devices = wants_devices(options) ? devices : NULL;
    return plan;
}

/* -- by traffic -- */

static void read_matrix(struct map_options *options, struct map_matrix *matrix)
{
    struct servet_error error;
    int rc = map_matrix_read(options->matrix, matrix, &error);
    if (rc == -ENOMEM) {
        cli_fail("%s", error.text);
    }
    if (rc < 0) {
        cli_usage("--matrix: %s", error.text);
    }
    size_t ranks = options->threads ? options->ranks : options->workers;
    if (ranks && ranks != matrix->ranks) {
        cli_usage("%s: expected %u, the ranks of %s, got %zu", options->ranks ? "-r" : "-n",
                  matrix->ranks, options->matrix, ranks);
    }
    if (!options->threads) {
        options->workers = matrix->ranks;
    }
    for (size_t r = 1; options->threads && r < ranks && !matrix->threads; r++) {
        matrix->threads = options->threads[r] != options->threads[0] ? options->threads : NULL;
    }
}

static void explain_traffic(FILE *out, const struct map_traffic_seconds *seconds,
                            const struct map_view *view)
{
    const bool greedy = seconds->greedy < seconds->in_order;
    fprintf(out, "predicted time of all messages%s: rank order %.6g%s greedy %.6g%s\n",
            view->latencies_known     ? ", s"
            : view->profile->measured ? " (layers x bytes, latencies were not measured)"
                                      : " (layers x bytes, nothing was measured)",
            seconds->in_order, greedy ? "" : " (taken)", seconds->greedy, greedy ? " (taken)" : "");
}

/* Ranks with threads change regions: rank r gets all of the one that was rank placed[r]'s. */
static void give_regions(const uint32_t *placed, struct map_mapping *plan)
{
    FREED struct map_place *old = cli_needed(calloc(plan->place_count, sizeof *old));
    memcpy(old, plan->places, plan->place_count * sizeof *old);
    for (size_t r = 0; r < plan->rank_count; r++) {
        memcpy(plan->places + plan->first[r], old + plan->first[placed[r]],
               (plan->first[r + 1] - plan->first[r]) * sizeof *old);
    }
}

static void plan_by_traffic(const struct map_options *options, const struct map_matrix *matrix,
                            FILE *out, struct map_mapping *plan)
{
    FREED_BY(map_view_free) struct map_view view;
    struct servet_error error;
    cli_check(map_view_make(plan->profile, plan->priority, matrix->ranks, &view, &error), &error);
    uint32_t *given = cli_needed(map_arena_get(&view.arena, matrix->ranks, sizeof *given));
    uint32_t *placed = cli_needed(map_arena_get(&view.arena, matrix->ranks, sizeof *placed));
    for (size_t r = 0; r < matrix->ranks; r++) {
        given[r] = map_view_leaf(&view, plan->places[plan->first[r]].pu);
    }
    struct map_traffic_seconds seconds;
    cli_done(map_place_ranks(&view, matrix, given, placed, &seconds));
    give_regions(placed, plan);
    if (options->explain || options->compare) {
        explain_traffic(out, &seconds, &view);
    }
}

/* Without a format the table; else the places of the nodes as workers. */
static void answer_worth(const struct map_options *options, const struct servet_profile *profile,
                         const struct profile_set *allowed, FILE *out)
{
    struct servet_error error;
    size_t count;
    if (!options->format) {
        map_worth_table(out, profile, allowed, options->json);
        return;
    }
    FREED uint32_t *pus = map_worth_places(profile, allowed, &count);
    FREED_BY(map_mapping_free)
    struct map_mapping plan = map_mapping_make(profile, pus, count, NULL);
    cli_check(map_format_print(out, options->format, &plan, &error), &error);
}

static struct map_figures predict_places(const struct map_mapping *plan)
{
    FREED_BY(map_view_free) struct map_view view;
    struct map_figures figures;
    struct servet_error error;
    cli_check(map_view_make(plan->profile, plan->priority, plan->place_count, &view, &error),
              &error);
    uint32_t *leaves = cli_needed(map_arena_get(&view.arena, plan->place_count, sizeof *leaves));
    for (size_t i = 0; i < plan->place_count; i++) {
        leaves[i] = map_view_leaf(&view, plan->places[i].pu);
    }
    cli_done(map_figures_of(&view, leaves, plan->place_count, &figures));
    return figures;
}

/* Where no priority was given, and the other one lets more or fewer share a cache. */
static void note_priority(const struct map_options *options, const struct profile_set *allowed,
                          const struct map_mapping *plan)
{
    struct map_options other = *options;
    FREED_BY(map_devices_free) struct map_devices devices = {0};
    size_t level = MAP_FIGURE_LEVELS;
    if (!options->undecided) {
        return;
    }
    other.communication = true;
    other.explain = false;
    FREED_BY(map_mapping_free)
    struct map_mapping placed = choose_places(&other, plan->profile, allowed, NULL, &devices);
    const struct map_figures here = predict_places(plan), there = predict_places(&placed);
    while (level && here.cache_most[level - 1] == there.cache_most[level - 1]) {
        level--;
    }
    if (level) {
        cli_note(
            "the default, --mem-prior, puts at most %u worker%s on an L%zu cache, --comm-prior "
            "%u: for programs of many messages try both",
            here.cache_most[level - 1], here.cache_most[level - 1] == 1 ? "" : "s", level,
            there.cache_most[level - 1]);
    }
}

/* Where there are more workers than that, it is said. */
static void note_quota(const struct map_options *options, size_t workers)
{
    const size_t most = map_common_most(&options->machine);
    if (workers > most) {
        cli_note("%zu workers in a quota of %.3g CPUs: more than %zu at a time wait", workers,
                 options->machine.quota, most);
    }
}

/* The PUs that answer how many workers: in a quota those of so many. */
static void keep_to_quota(const struct map_options *options, const struct servet_profile *profile,
                          struct profile_set *allowed)
{
    struct servet_error error;
    const size_t most = map_common_most(&options->machine);
    if (!(options->worth || options->suggest) || allowed->count <= most) {
        return;
    }
    cli_note("a quota of %.3g CPUs: no more than %zu of %zu workers run at a time",
             options->machine.quota, most, allowed->count);
    cli_check(map_worth_keep(profile, asked_priority(options), most, allowed, &error), &error);
}

static void answer_suggest(const struct map_options *options, const struct servet_profile *profile,
                           const struct profile_set *allowed, FILE *out)
{
    const char *described = options->machine.topology;
    const struct map_suggest_request request = {
        .priority = asked_priority(options),
        .nodes = options->node_count,
        .allowed = allowed,
        .unsized = described && access(described, F_OK) < 0 && !strstr(described, "size=")};
    if (options->smt > 1) {
        cli_note("--suggest: one thread on each core; no topology says who gains by a second "
                 "one, servet-bench --tune tries it");
    }
    map_suggest_table(out, profile, &request, options->json);
}

/* Writes all that was asked for and closes `out`, then says its notes; ends the program when some
 * of it cannot be said. */
static void answer_all(const struct map_options *options, const struct servet_profile *profile,
                       const struct profile_set *allowed, const struct map_matrix *matrix,
                       FILE *out)
{
    if (options->worth || options->suggest) {
        (options->worth ? answer_worth : answer_suggest)(options, profile, allowed, out);
        cli_done(fclose(out));
        return;
    }
    FREED_BY(map_devices_free) struct map_devices devices = {0};
    struct servet_error error;
    FREED_BY(map_mapping_free)
    struct map_mapping plan = choose_places(options, profile, allowed, out, &devices);
    if (options->matrix) {
        plan_by_traffic(options, matrix, out, &plan);
    }
    if (options->explain && !wants_table(options, allowed)) {
        map_explain_summary(out, &plan);
    }
    if (options->compare) {
        map_compare(out, &plan, allowed);
    }
    cli_check(map_format_print(out, options->format, &plan, &error), &error);
    cli_done(fclose(out));
    note_priority(options, allowed, &plan);
    note_quota(options, plan.place_count);
    if (plan.place_count > allowed->count) {
        cli_note("%zu workers on %zu PUs: some PUs get more than one", plan.place_count,
                 allowed->count);
    }
}

/* --cluster: the PUs of the job's nodes take the place of --cpuset, or what that leaves of them. */
static void use_job_nodes(struct map_options *options, const struct servet_profile *profile)
{
    struct servet_error error;
    struct profile_set nodes = {0}, both;
    map_refuse_if(options->cluster && profile_node_count(profile) < 2,
                  "--cluster: expected the profile of a cluster (mpirun servet-probe --cluster "
                  "makes one), this is one of "
                  "a single node");
    if (!options->nodes && !options->slurm) {
        return;
    }
    cli_check(options->slurm ? map_job_from_slurm(profile, &nodes, &error)
                             : map_job_from_file(profile, options->nodes, &nodes, &error),
              &error);
    if (options->machine.cpuset.count) {
        cli_done(profile_set_intersect(&options->machine.cpuset, &nodes, &both));
        if (!both.count) {
            cli_usage("--cpuset: expected PUs of the job's nodes");
        }
        profile_set_free(&nodes);
        nodes = both;
    }
    profile_set_free(&options->machine.cpuset);
    options->machine.cpuset = nodes;
}

/* Where it was not asked for, it is said. */
static void note_nodes(const struct map_options *options, const struct servet_profile *profile)
{
    bool is_asked =
        options->cluster || options->machine.cpuset.count || options->worth || options->suggest;
    if (!is_asked && profile_node_count(profile) > 1) {
        cli_note("the profile is of %u nodes, and workers are placed on all of them; expected "
                 "--cluster, or --cpuset 0-%u for the first node alone",
                 profile_node_count(profile),
                 profile_class_span(profile_node_class(profile, 0)) - 1);
    }
}

int main(int argc, char **argv)
{
    struct map_options options;
    read_options(argc, argv, &options);
    struct map_matrix matrix = {0};
    if (options.matrix) {
        read_matrix(&options, &matrix);
    }
    struct servet_profile *profile = map_common_machine_open(&options.machine);
    use_job_nodes(&options, profile);
    struct map_limits limits = {options.machine.cpuset.count ? &options.machine.cpuset : NULL,
                                options.smt, options.kind};
    struct profile_set allowed = map_allowed_pus(profile, &limits);
    keep_to_quota(&options, profile, &allowed);
    char *text = NULL;
    size_t size = 0;
    FILE *out = cli_needed(profile_stream_open(&text, &size));
    answer_all(&options, profile, &allowed, &matrix, out);
    note_nodes(&options, profile);
    fwrite(text, 1, size, stdout);
    free(text);
    profile_set_free(&allowed);
    map_matrix_free(&matrix);
    free(options.threads);
    profile_set_free(&options.machine.cpuset);
    profile_free(profile);
    return cli_finish(CLI_OK);
}
