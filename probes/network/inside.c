/* Measurements inside the nodes of a cluster (network.h). */
#include "probes/network/network.h"
#include "probes/run/result.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/pairs/messages.h"
#include "profile/base/child.h"
#include "profile/base/mask.h"
#include "profile/base/statistics.h"
#include "profile/query.h"

/* One node as a machine whose PU numbers are its own. */
struct node_machine {
    struct machine *all;
    const struct profile_set *pus;
    const uint32_t *ranks; /* of the i-th PU */
};

static uint32_t rank_on(const struct node_machine *node, uint32_t pu)
{
    return node->ranks[profile_set_position(node->pus, pu)];
}

static int node_exchange(struct machine *machine, const struct machine_exchange *what,
                         const struct profile_pair *pairs, size_t count, double *seconds)
{
    const struct node_machine *node = machine->state;
    FREED struct profile_pair *ranks = calloc(count, sizeof *ranks);
    TRY(ranks ? 0 : -ENOMEM);
    for (size_t i = 0; i < count; i++) {
        ranks[i] = (struct profile_pair){rank_on(node, pairs[i].a), rank_on(node, pairs[i].b)};
    }
    return probe_machine_exchange(node->all, what, ranks, count, seconds);
}

static const struct machine_ops node_ops = {.exchange = node_exchange};

static int measure_class(struct probe *probe, const struct survey_layout *layout, uint32_t node,
                         struct profile_class *node_class, size_t message_bytes,
                         struct servet_error *error)
{
    struct node_machine state = {probe->machine, &node_class->pus,
                                 layout->pus + layout->first[node]};
    struct machine machine = {.ops = &node_ops,
                              .name = "mpi",
                              .pus = node_class->pus,
                              .cancel = probe->machine->cancel,
                              .state = &state};
    struct probe inside = *probe;
    struct profile_communication found;
    inside.machine = &machine;
    int rc = probe_message(&inside, message_bytes, &found, error);
    probe->seed = inside.seed;
    TRY(rc);
    rc = probe_lines_move(&node_class->communication, &found) == 0
             ? probe_result_set_layers(node_class, &found)
             : -ENOMEM;
    return rc < 0 ? profile_error(error, rc, "messages inside a node: %s", strerror(-rc)) : 0;
}

/* A pair of PUs of the layer. */
static bool find_pair_of_layer(const struct profile_class *node_class, size_t layer, size_t *a,
                               size_t *b)
{
    const struct profile_set *pus = &node_class->pus;
    for (*a = 0; *a < pus->count; ++*a) {
        for (*b = *a + 1; *b < pus->count; ++*b) {
            size_t index;
            if (profile_layer_of(&node_class->communication, pus->ids[*a], pus->ids[*b], &index) &&
                index == layer) {
                return true;
            }
        }
    }
    return false;
}

/* The same pair on all nodes of the class. */
static int compare_nodes(struct probe *probe, const struct inside_nodes *nodes, uint32_t c,
                         size_t layer, size_t message_bytes, FILE *outliers)
{
    const struct survey_layout *layout = nodes->layout;
    const struct cluster_classes *classes = nodes->classes;
    const struct profile_class *node_class = &classes->profile->classes[c];
    double usual = node_class->communication.layers[layer].seconds;
    size_t a, b;
    if (!find_pair_of_layer(node_class, layer, &a, &b)) {
        return 0;
    }
    for (uint32_t node = 0; node < layout->nodes; node++) {
        const uint32_t *ranks = layout->pus + layout->first[node];
        double seconds, again;
        if (classes->class_of[node] != c || node == classes->representative[c]) {
            continue;
        }
        const struct profile_pair pair = {ranks[a], ranks[b]};
        TRY(probe_message_pair(probe, message_bytes, &pair, &seconds));
        if (seconds > (1 + RECHECK_SAME_MESSAGE) * usual) { /* disturbed, or really so? */
            TRY(probe_message_pair(probe, message_bytes, &pair, &again));
            seconds = again < seconds ? again : seconds;
        }
        if (!profile_same(seconds, usual, RECHECK_SAME_MESSAGE)) {
            fprintf(outliers,
                    "%s: messages between its PUs %u and %u take %.3g us, not %.3g as on %s\n",
                    nodes->names[node], node_class->pus.ids[a], node_class->pus.ids[b],
                    seconds * 1e6, usual * 1e6, nodes->names[classes->representative[c]]);
        }
    }
    return 0;
}

int probe_inside_measure(struct probe *probe, const struct inside_nodes *nodes,
                         size_t message_bytes, FILE *outliers, struct servet_error *error)
{
    const struct cluster_classes *classes = nodes->classes;
    for (uint32_t c = 0; c < classes->profile->class_count; c++) {
        struct profile_class *node_class = &classes->profile->classes[c];
        if (!nodes->covered[c] || node_class->pus.count < 2) {
            continue;
        }
        TRY(measure_class(probe, nodes->layout, classes->representative[c], node_class,
                          message_bytes, error));
        for (size_t layer = 0; layer < node_class->communication.layer_count; layer++) {
            int rc = compare_nodes(probe, nodes, c, layer, message_bytes, outliers);
            TRY(rc < 0 ? profile_error(error, rc, "comparing nodes: %s", probe_machine_strerror(rc))
                       : 0);
        }
    }
    return 0;
}

/* -- a node's own probes -- */

/* An error becomes the answer: rank 0, on another node, must get it. */
__attribute__((format(printf, 2, 3))) static void answer(struct node_run *run, const char *format,
                                                         ...)
{
    va_list arguments;
    va_start(arguments, format);
    free(run->text);
    if (vasprintf(&run->text, format, arguments) < 0) {
        run->text = NULL;
    }
    va_end(arguments);
}

/* Nothing is measured: what the system declares of the PUs. */
static void declare_node(struct node_run *run, const struct profile_set *pus)
{
    struct servet_profile *profile;
    struct servet_error error;
    if (probe_topology_own(&profile, &error) < 0) {
        answer(run, "! %s", error.text);
        return;
    }
    run->text =
        probe_topology_restrict(&profile->classes[0], pus) == 0 ? profile_to_json(profile) : NULL;
    profile_free(profile);
}

/* The rank is pinned to one PU; its node is not. */
static void unpin_rank(void *context)
{
    struct profile_mask mask;
    profile_mask_from_set(context, &mask);
    profile_mask_set(0, &mask);
}

void probe_node_run_start(struct node_run *run, const char *command, unsigned probes, uint64_t seed,
                          const struct profile_set *pus)
{
    char seed_text[24];
    struct probe_run_list names = probe_run_list(probes, ',');
    *run = (struct node_run){0};
    if (!probes) {
        declare_node(run, pus);
        return;
    }
    run->output = profile_child_file();
    snprintf(seed_text, sizeof seed_text, "%" PRIu64, seed);
    char *argv[] = {(char *)command, "--quiet",      "--output", "-",       "--no-mpi",
                    "--probes",      names.text + 1, "--seed",   seed_text, NULL};
    const struct profile_child child = {.argv = argv,
                                        .in = PROFILE_CHILD_NOTHING,
                                        .out = run->output,
                                        .errors = STDERR_FILENO,
                                        .dies_with_us = SIGKILL,
                                        .prepare = unpin_rank,
                                        .context = (void *)pus};
    int rc = run->output < 0 ? run->output : profile_child_start(&child, &run->pid);
    if (rc < 0) {
        answer(run, "! %s: %s", command, strerrordesc_np(-rc));
    }
}

static void finish_node(struct node_run *run, int status)
{
    if (!WIFEXITED(status)) {
        answer(run, "! servet-probe was killed");
    } else if (WEXITSTATUS(status) != 0) {
        answer(run, "! servet-probe ended with status %d", WEXITSTATUS(status));
    } else if (profile_child_read(run->output, &run->text) == 0 && !run->text[0]) {
        answer(run, "! servet-probe wrote no profile");
    }
    close(run->output);
    run->pid = 0;
}

bool probe_node_run_busy(struct node_run *run)
{
    int status = -1; /* killed, where nothing is known of it */
    if (!run->pid || waitpid(run->pid, &status, WNOHANG) == 0) {
        return run->pid != 0;
    }
    finish_node(run, status);
    return false;
}

char *probe_node_run_text(struct node_run *run)
{
    char *text = run->text ? run->text : strdup("! not enough memory");
    run->text = NULL;
    return text;
}
