/* A simulated network of nodes under switches under a core, with noise: the survey is judged on
 * networks that are not here. */
#include "tests/cluster/fat_tree.h"

#include <errno.h>
#include <stdlib.h>

size_t bench_fat_tree_layer(const struct fat_tree *tree, uint32_t a, uint32_t b)
{
    uint32_t pod = tree->per_switch * tree->per_pod;
    return a / tree->per_switch == b / tree->per_switch ? 0 : a / pod == b / pod ? 1 : 2;
}

static double message(struct fat_tree *tree, struct profile_pair pair, size_t count)
{
    double seconds = tree->seconds[bench_fat_tree_layer(tree, pair.a, pair.b)];
    seconds *= pair.a == tree->slow || pair.b == tree->slow ? 2 : 1;
    seconds *= tree->most_pairs && count > tree->most_pairs ? 2 : 1;
    double factor = 1 + tree->noise * random_normal(&tree->random);
    factor = factor < 0.5 ? 0.5 : factor;
    return seconds * (random_unit(&tree->random) < tree->outliers
                          ? 1 + 2 * random_unit(&tree->random)
                          : factor);
}

static int exchange(struct machine *machine, const struct machine_exchange *what,
                    const struct profile_pair *pairs, size_t count, double *seconds)
{
    struct fat_tree *tree = machine->state;
    double slowest = 0;
    for (size_t i = 0; i < count; i++) {
        seconds[i] = message(tree, pairs[i], count);
        slowest = seconds[i] > slowest ? seconds[i] : slowest;
    }
    tree->elapsed_s += slowest * 2 * what->round_trips * (what->batches + 1);
    return 0;
}

static double elapsed(struct machine *machine)
{
    return ((struct fat_tree *)machine->state)->elapsed_s;
}

static const struct machine_ops ops = {.exchange = exchange, .elapsed = elapsed};

int bench_fat_tree_open(struct fat_tree *tree, struct machine *machine)
{
    *machine = (struct machine){.ops = &ops, .name = "fat tree", .state = tree};
    machine->pus.ids = calloc(tree->nodes, sizeof *machine->pus.ids);
    tree->first = calloc(tree->nodes + 1, sizeof *tree->first);
    tree->pus = calloc(tree->nodes, sizeof *tree->pus);
    if (!machine->pus.ids || !tree->first || !tree->pus) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < tree->nodes; i++) {
        machine->pus.ids[machine->pus.count++] = i;
        tree->pus[i] = i;
        tree->first[i + 1] = i + 1;
    }
    return 0;
}

void bench_fat_tree_close(struct fat_tree *tree, struct machine *machine)
{
    probe_machine_close(machine);
    free(tree->first);
    free(tree->pus);
}

struct survey_layout bench_fat_tree_layout(const struct fat_tree *tree)
{
    return (struct survey_layout){tree->nodes, tree->first, tree->pus};
}
