/* Nodes, classes and PU numbers, which count through the nodes by the span of their class, so that
 * a thousand nodes alike need no table. */
#include "profile/model.h"

#include <string.h>

uint32_t profile_class_span(const struct profile_class *node_class)
{
    return node_class->pus.count ? node_class->pus.ids[node_class->pus.count - 1] + 1 : 0;
}

uint32_t profile_node_count(const struct servet_profile *profile)
{
    uint32_t count = 0;
    for (size_t i = 0; i < profile->node_range_count; i++) {
        count += profile->nodes[i].count;
    }
    return count;
}

const struct profile_class *profile_node_class(const struct servet_profile *profile, uint32_t node)
{
    for (size_t i = 0; i < profile->node_range_count; i++) {
        const struct profile_node_range *range = &profile->nodes[i];
        if (node < range->count) {
            return &profile->classes[range->class_index];
        }
        node -= range->count;
    }
    return NULL;
}

const char *profile_condition(const struct servet_profile *profile, const char *key)
{
    for (size_t i = 0; i < profile->condition_count; i++) {
        if (strcmp(profile->conditions[i].key, key) == 0) {
            return profile->conditions[i].value;
        }
    }
    return NULL;
}

uint32_t profile_node_first_pu(const struct servet_profile *profile, uint32_t node)
{
    uint32_t first = 0;
    for (size_t i = 0; i < profile->node_range_count; i++) {
        const struct profile_node_range *range = &profile->nodes[i];
        uint32_t span = profile_class_span(&profile->classes[range->class_index]);
        if (node < range->count) {
            return first + node * span;
        }
        node -= range->count;
        first += range->count * span;
    }
    return first;
}
