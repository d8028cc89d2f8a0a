/* Formats that spread ranks over nodes, for launchers that are told counts and names. */
#include <errno.h>

#include "print.h"

/* Ranks from `first` on that are on its node. */
static size_t run_of(const struct map_plan *plan, size_t first)
{
    size_t rank = first;
    while (rank < plan->rank_count && plan->places[plan->first[rank]].node == plan->places[plan->first[first]].node) {
        rank++;
    }
    return rank - first;
}

/* As many on each node, but perhaps on the last one? */
static bool even(const struct map_plan *plan)
{
    size_t each = run_of(plan, 0);
    for (size_t rank = 0, count; rank < plan->rank_count; rank += count) {
        count = run_of(plan, rank);
        if (count != each && (count > each || rank + count < plan->rank_count)) {
            return false;
        }
    }
    return true;
}

int print_hydra_hosts(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    bool same = even(plan);
    (void)begin;
    (void)end;
    fprintf(out, "-hosts ");
    for (size_t rank = 0, count; rank < plan->rank_count; rank += count) {
        char name[256];
        count = run_of(plan, rank);
        map_plan_node_name(plan, plan->places[plan->first[rank]].node, name, sizeof name);
        fprintf(out, "%s%s", rank ? "," : "", name);
        if (!same) {
            fprintf(out, ":%zu", count);
        }
    }
    if (same) {
        fprintf(out, " -ppn %zu", run_of(plan, 0));
    }
    fputc('\n', out);
    return 0;
}

int print_slurm_hosts(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    fprintf(out, "--distribution=arbitrary --ntasks=%zu --nodelist=", plan->rank_count);
    for (size_t rank = 0; rank < plan->rank_count; rank++) {
        char name[256];
        map_plan_node_name(plan, plan->places[plan->first[rank]].node, name, sizeof name);
        fprintf(out, "%s%s", rank ? "," : "", name);
    }
    fputc('\n', out);
    return 0;
}
