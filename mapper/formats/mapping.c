#include "mapper/formats/mapping.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/find/hostlist.h"

static int place_of(const struct servet_profile *profile, uint32_t pu, struct map_place *out)
{
    uint32_t first_pu = 0, first_node = 0;
    for (size_t r = 0; r < profile->node_range_count; r++) {
        const struct profile_node_range *range = &profile->nodes[r];
        uint32_t span = profile_class_span(&profile->classes[range->class_index]);
        uint64_t pus = (uint64_t)span * range->count;
        if (span && pu - first_pu < pus) {
            uint32_t node = (pu - first_pu) / span;
            *out = (struct map_place){pu, first_node + node, (pu - first_pu) % span};
            return 0;
        }
        first_pu += (uint32_t)pus;
        first_node += range->count;
    }
    return -EINVAL;
}

int map_plan_make(const struct servet_profile *profile, const uint32_t *pus, size_t ranks,
                  const uint32_t *threads, struct map_plan *out)
{
    struct map_plan plan = {.profile = profile, .rank_count = ranks, .hybrid = threads != NULL};
    plan.first = calloc(ranks + 1, sizeof *plan.first);
    if (!plan.first) {
        return -ENOMEM;
    }
    for (size_t r = 0; r < ranks; r++) {
        plan.first[r + 1] = plan.first[r] + (threads ? threads[r] : 1);
    }
    plan.place_count = plan.first[ranks];
    plan.places = calloc(plan.place_count ? plan.place_count : 1, sizeof *plan.places);
    int rc = plan.places ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < plan.place_count; i++) {
        rc = place_of(profile, pus[i], &plan.places[i]);
    }
    if (rc < 0) {
        map_plan_free(&plan);
        return rc;
    }
    *out = plan;
    return 0;
}

void map_plan_free(struct map_plan *plan)
{
    free(plan->places);
    free(plan->first);
    *plan = (struct map_plan){0};
}

bool map_plan_one_node(const struct map_plan *plan, size_t begin, size_t end)
{
    for (size_t i = begin + 1; i < end; i++) {
        if (plan->places[i].node != plan->places[begin].node) {
            return false;
        }
    }
    return true;
}

void map_plan_node_name(const struct map_plan *plan, uint32_t node, char *name, size_t size)
{
    uint32_t first = 0;
    for (size_t r = 0; r < plan->profile->node_range_count; r++) {
        const struct profile_node_range *range = &plan->profile->nodes[r];
        if (node - first < range->count) {
            if (range->names &&
                profile_hostlist_name(range->names, node - first, name, size) == 0) {
                return;
            }
            break;
        }
        first += range->count;
    }
    snprintf(name, size, "node%u", node);
}
