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

int map_mapping_make(const struct servet_profile *profile, const uint32_t *pus, size_t ranks,
                     const uint32_t *threads, struct map_mapping *out)
{
    struct map_mapping mapping = {
        .profile = profile, .rank_count = ranks, .hybrid = threads != NULL};
    mapping.first = calloc(ranks + 1, sizeof *mapping.first);
    if (!mapping.first) {
        return -ENOMEM;
    }
    for (size_t r = 0; r < ranks; r++) {
        mapping.first[r + 1] = mapping.first[r] + (threads ? threads[r] : 1);
    }
    mapping.place_count = mapping.first[ranks];
    mapping.places = calloc(mapping.place_count ? mapping.place_count : 1, sizeof *mapping.places);
    int rc = mapping.places ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < mapping.place_count; i++) {
        rc = place_of(profile, pus[i], &mapping.places[i]);
    }
    if (rc < 0) {
        map_mapping_free(&mapping);
        return rc;
    }
    *out = mapping;
    return 0;
}

void map_mapping_free(struct map_mapping *mapping)
{
    free(mapping->places);
    free(mapping->first);
    *mapping = (struct map_mapping){0};
}

bool map_mapping_one_node(const struct map_mapping *mapping, size_t begin, size_t end)
{
    for (size_t i = begin + 1; i < end; i++) {
        if (mapping->places[i].node != mapping->places[begin].node) {
            return false;
        }
    }
    return true;
}

void map_mapping_node_name(const struct map_mapping *mapping, uint32_t node, char *name,
                           size_t size)
{
    uint32_t first = 0;
    for (size_t r = 0; r < mapping->profile->node_range_count; r++) {
        const struct profile_node_range *range = &mapping->profile->nodes[r];
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
