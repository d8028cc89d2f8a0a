/* The options of servet-map. Those that contradict one another are refused here, before
 * anything is read. */
#include "mapper/command/command.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/cli.h"
#include "profile/scope.h"

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

void map_options_read(int argc, char **argv, struct map_options *options)
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

void map_options_free(struct map_options *options)
{
    free(options->threads);
    profile_set_free(&options->machine.cpuset);
}
