/* The papers' machines as servet-probe finds them: figures are made of what was measured on the
 * simulated machine, never of its description.
 *
 * Probing 32 nodes as one machine would take minutes and say nothing more than two do, so a cluster
 * is put together as `servet-probe --cluster` writes one: a node, measured by itself, as the class
 * of all nodes, and between them the outermost layer that was measured between two nodes. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/bench/run.h"
#include "benchmarks/bench/tools.h"
#include "benchmarks/lab/lab.h"

/* Against hanging: the largest machine takes some 15 s of a quiet PU, and the machine is shared. */
#define PROBING_LIMIT_SECONDS 300.0

int bench_probed(const char *machine, const char *probes, struct servet_profile **out,
                 struct servet_error *error)
{
    char *probe = bench_tools_ours("servet-probe"), name[PATH_MAX];
    if (!probe) {
        return profile_error(error, -ENOENT, "servet-probe is not built");
    }
    struct words argv = {0}, environment = {0};
    bench_words_add(&argv, "%s", probe);
    bench_words_add(&argv, "--quiet");
    bench_words_add(&argv, "--machine=simulated:%s/%s.json", LAB_MACHINES, machine);
    bench_words_add(&argv, "--probes=%s", probes);
    bench_words_add(&argv, "--output=-");
    struct bench_run run;
    bench_run(&argv, &environment, 1, PROBING_LIMIT_SECONDS, &run);
    snprintf(name, sizeof name, "profile of %s", machine);
    int rc = run.status ? profile_error(error, -EIO, "servet-probe of %s: exit status %d: %s",
                                        machine, run.status, run.complaint ? run.complaint : "")
                        : profile_parse(run.out, strlen(run.out), name, out, error);
    bench_run_free(&run);
    bench_words_free(&environment);
    bench_words_free(&argv);
    free(probe);
    return rc;
}

/* The outermost layer of `pair` as a network of one layer that joins all nodes; `pair` loses it. */
static int take_network(struct profile_communication *pair, uint32_t nodes,
                        struct profile_communication *out)
{
    struct profile_layer *outermost = &pair->layers[pair->layer_count - 1];
    struct profile_relation *members = &outermost->members;
    struct profile_set all = {0};
    char text[32], *name = strdup("network");
    struct profile_layer *layer = malloc(sizeof *layer);
    snprintf(text, sizeof text, "0-%u", nodes - 1);
    if (!name || !layer || profile_set_parse(text, &all)) {
        free(name);
        free(layer);
        return -ENOMEM;
    }
    *layer = *outermost;
    pair->layer_count--;
    free(layer->name);
    layer->name = name;
    profile_set_free(&members->groups[0]);
    layer->members.groups[0] = all;
    *out = (struct profile_communication){
        .message_bytes = pair->message_bytes, .layers = layer, .layer_count = 1};
    return 0;
}

int bench_cluster(struct servet_profile *node, struct servet_profile *pair, uint32_t nodes)
{
    struct profile_communication *between = &pair->classes[0].communication;
    if (nodes < 2 || profile_node_count(node) != 1 || profile_node_count(pair) != 1 ||
        between->layer_count < 2) {
        return -EINVAL;
    }
    const struct profile_relation *members = &between->layers[between->layer_count - 1].members;
    if (members->group_count != 1 || members->pair_count) {
        return -EINVAL;
    }
    char *names = NULL;
    if (asprintf(&names, "node[1-%u]", nodes) < 0) {
        return -ENOMEM;
    }
    int rc = take_network(between, nodes, &node->network);
    if (rc) {
        free(names);
        return rc;
    }
    free(node->nodes[0].names);
    node->nodes[0].names = names;
    node->nodes[0].count = nodes;
    return profile_check(node, NULL);
}
