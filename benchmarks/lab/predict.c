/* What a placement is worth by the profile's model: predictions, not measurements.
 *
 * Memory: a worker that is one of k in a group of a memory overhead level gets at most the k-th
 * part of what that group gives together (its scaling curve; without one, what two colliding
 * workers get together), and never more than the reference bandwidth. The bandwidth of a placement
 * is the sum over its workers. Messages: the one-way time of a message of the profile's
 * message_bytes, from each worker to the next (a ring), and between all pairs; both as means. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/lab/lab.h"
#include "profile/query.h"

/* Workers of the placement, on that node, in `group`. */
static uint32_t workers_in(const struct servet_profile *profile, const uint32_t *workers,
                           size_t count, uint32_t node, const struct profile_set *group)
{
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++) {
        struct profile_place place;
        if (profile_locate(profile, workers[i], &place) && place.node == node) {
            found += profile_set_has(group, place.os_index);
        }
    }
    return found;
}

static double worker_bandwidth(const struct servet_profile *profile, const uint32_t *workers,
                               size_t count, const struct profile_place *place)
{
    const struct profile_memory *memory = &place->node_class->memory;
    double bandwidth = memory->reference_bytes_per_s;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_set *group =
            profile_group_of(&memory->levels[i].collisions, place->os_index);
        uint32_t k = group ? workers_in(profile, workers, count, place->node, group) : 1;
        if (k > 1) {
            double together = profile_memory_bandwidth(memory, &memory->levels[i], k);
            bandwidth = together > 0 ? fmin(bandwidth, together / k) : bandwidth;
        }
    }
    return bandwidth;
}

static double message(const struct servet_profile *profile, uint32_t from, uint32_t to)
{
    struct profile_place a, b;
    if (!profile_locate(profile, from, &a) || !profile_locate(profile, to, &b)) {
        return 0.0;
    }
    struct profile_link link;
    uint64_t bytes = a.node_class->communication.message_bytes;
    return profile_link_of(profile, &a, &b, &link)
               ? profile_message_seconds(link.layer, link.communication->message_bytes,
                                         (double)bytes)
               : 0.0;
}

static double mean_of_pairs(const struct servet_profile *profile, const uint32_t *workers,
                            size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            sum += message(profile, workers[i], workers[j]);
        }
    }
    return count > 1 ? sum / ((double)count * (double)(count - 1) / 2.0) : 0.0;
}

int bench_predict(const struct servet_profile *profile, const uint32_t *workers, size_t count,
                  struct prediction *out)
{
    struct prediction sum = {0};
    uint32_t nodes = profile_node_count(profile);
    bool *used = calloc(nodes, sizeof *used);
    if (!used) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        struct profile_place place;
        if (!profile_locate(profile, workers[i], &place)) {
            free(used);
            return -EINVAL;
        }
        used[place.node] = true;
        sum.bytes_per_s += worker_bandwidth(profile, workers, count, &place);
        sum.ring_seconds +=
            count > 1 ? message(profile, workers[i], workers[(i + 1) % count]) / (double)count
                      : 0.0;
    }
    for (uint32_t node = 0; node < nodes; node++) {
        sum.nodes += used[node];
    }
    free(used);
    sum.pair_seconds = mean_of_pairs(profile, workers, count);
    *out = sum;
    return 0;
}

int bench_default_placement(const struct servet_profile *profile, size_t count, uint32_t *out)
{
    size_t placed = 0;
    for (uint32_t node = 0; node < profile_node_count(profile); node++) {
        const struct profile_class *node_class = profile_node_class(profile, node);
        for (size_t i = 0; i < node_class->pus.count && placed < count; i++) {
            out[placed++] = profile_node_first_pu(profile, node) + node_class->pus.ids[i];
        }
    }
    return placed == count ? 0 : -ERANGE;
}
