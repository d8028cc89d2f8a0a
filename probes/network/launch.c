/* servet-probe --cluster: its options, and the way to the program of the right MPI library. A
 * program is linked with one library and cannot run under another's launcher. */
#include "probes/network/network.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/cli.h"

static bool is_given(const char *option, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], option) == 0) {
            return true;
        }
    }
    return false;
}

bool probe_network_wanted(int argc, char **argv)
{
    return is_given("--cluster", argc, argv);
}

/* -- which MPI -- */

/* Which launchers set which variables (of rank 0: Open MPI 4.1, MPICH 4.0, Slurm 22.05). The first
 * one that is there tells: under srun --mpi=pmi2 both PMI_RANK and SLURM_PROCID are set, with
 * --mpi=pmix PMIX_RANK. */
static const struct launcher {
    const char *rank, *library;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "openmpi"},
    {"PMIX_RANK", "openmpi"},
    {"PMI_RANK", "mpich"},
    {"PMI_ID", "mpich"},
};

/* The one that started this rank, and the number it gave; NULL: none did. */
static const struct launcher *find_launcher(const char **number)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        *number = getenv(launchers[i].rank);
        if (*number && **number) {
            return &launchers[i];
        }
    }
    return NULL;
}

long probe_network_rank(void)
{
    const char *number;
    return find_launcher(&number) ? strtol(number, NULL, 10) : -1;
}

/* A user who tries it without ranks gets help. */
static _Noreturn void refuse_alone(int argc, char **argv)
{
    struct cluster_options options;
    if (is_given("--help", argc, argv)) {
        probe_network_parse(argc, argv, &options);
    }
    cli_usage("--cluster: expected to be started by mpirun or srun on all nodes, such as "
              "mpirun -n 8 servet-probe --cluster");
}

_Noreturn void probe_network_become(int argc, char **argv)
{
    char self[PATH_MAX], name[64], program[PATH_MAX];
    const char *number;
    const struct launcher *launcher = find_launcher(&number);
    if (!launcher) {
        refuse_alone(argc, argv);
    }
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    snprintf(name, sizeof name, "servet-ranks-%s", launcher->library);
    if (probe_network_find(name, program) < 0) {
        cli_fail("--cluster: servet-ranks-%s is not installed (built without %s)",
                 launcher->library, strcmp(launcher->library, "mpich") == 0 ? "MPICH" : "Open MPI");
    }
    setenv(CLUSTER_COMMAND_VARIABLE, self, 0); /* a site may have a command of its own around it */
    execv(program, argv);
    cli_fail("%s: %s", program, strerror(errno));
}

/* -- options -- */

enum { OPTION_CLUSTER = 0x100, OPTION_PROBES };

static const struct argp_option table[] = {
    {"cluster", OPTION_CLUSTER, NULL, 0,
     "Measure all nodes of this MPI job, and the network between them", 0},
    {"per-node", CLI_FLAG(struct cluster_options, per_node), NULL, 0,
     "One rank on each node (default: one on each PU); messages inside a node are measured between "
     "threads",
     0},
    {"probes", OPTION_PROBES, "NAMES", 0,
     "What every node measures by itself besides messages, comma-separated: cache, sharing, "
     "memory, or none (default: all)",
     0},
    {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct cluster_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->run;
        return 0;
    case OPTION_CLUSTER:
        return 0;
    case OPTION_PROBES:
        options->probes =
            strcmp(argument, "none") == 0 ? 0 : probe_run_parse(argument, "none, or ");
        return 0;
    default:
        return cli_set_member(key, argument, options) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

void probe_network_parse(int argc, char **argv, struct cluster_options *options)
{
    static const struct argp_child common[] = {{&probe_options_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {.options = table,
                                     .parser = parse_option,
                                     .doc = "Measures all nodes of the MPI job that it is started "
                                            "in, and the network between them.",
                                     .children = common};
    *options = (struct cluster_options){.probes = PROBE_ALL, .run.seed = 1};
    cli_parse(&argp, argc, argv, 0, NULL, options);
}

unsigned probe_network_node_probes(const struct cluster_options *options, bool covered)
{
    /* Messages inside a node are always measured: beside measured seconds of the network, a
     * declared layer would count with a rank for seconds. Where ranks cover the node, theirs are
     * what counts, and the node's own are there for the cache lines that come with them. */
    return options->probes | (!covered || options->per_node ? PROBE_MESSAGE : 0);
}
