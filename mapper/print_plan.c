/* Formats of our own: the list and JSON. */
#include "print.h"

#include <errno.h>
#include <jansson.h>

static void print_numbers(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        fprintf(out, "%s%u", i > begin ? "," : "", plan->places[i].pu);
    }
    fputc('\n', out);
}

int print_list(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    if (!plan->hybrid) {
        print_numbers(out, plan, begin, end);
        return 0;
    }
    for (size_t r = 0; r < plan->rank_count; r++) {
        print_numbers(out, plan, plan->first[r], plan->first[r + 1]);
    }
    return 0;
}

static json_t *threads_json(const struct map_plan *plan, size_t rank)
{
    json_t *threads = json_array();
    for (size_t i = plan->first[rank]; threads && i < plan->first[rank + 1]; i++) {
        const struct map_place *place = &plan->places[i];
        json_array_append_new(
            threads, json_pack("{s:I, s:I}", "pu", (json_int_t)place->pu, "os_index", (json_int_t)place->os_index));
    }
    return threads;
}

static json_t *rank_json(const struct map_plan *plan, size_t rank)
{
    const struct map_place *place = &plan->places[plan->first[rank]];
    char name[256];
    map_plan_node_name(plan, place->node, name, sizeof name);
    if (plan->hybrid) {
        return json_pack("{s:I, s:s, s:o}", "rank", (json_int_t)rank, "node", name, "threads",
                         threads_json(plan, rank));
    }
    return json_pack("{s:I, s:s, s:I, s:I}", "worker", (json_int_t)rank, "node", name, "pu", (json_int_t)place->pu,
                     "os_index", (json_int_t)place->os_index);
}

int print_json(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    json_t *places = json_array();
    for (size_t r = 0; places && r < plan->rank_count; r++) {
        if (json_array_append_new(places, rank_json(plan, r)) < 0) {
            json_decref(places);
            return -ENOMEM;
        }
    }
    json_t *root = json_pack("{s:s, s:b, s:o}", "priority", plan->priority == MAP_MEMORY ? "memory" : "communication",
                             "measured", plan->profile->measured, plan->hybrid ? "ranks" : "workers", places);
    if (!root) {
        return -ENOMEM;
    }
    int rc = json_dumpf(root, out, JSON_INDENT(2));
    json_decref(root);
    fputc('\n', out);
    return rc < 0 ? -ENOMEM : 0;
}
