/* What a placement gives its workers, by the profile: how many share each memory domain and cache,
 * what bandwidth and cache that leaves to each, and how far neighbours in worker order are from
 * each other. Predicted, not measured.
 */
#ifndef SERVET_MAPPER_COMMAND_PREDICT_H
#define SERVET_MAPPER_COMMAND_PREDICT_H

#include "mapper/weights/view.h"
#include "profile/query.h"

#define MAP_FIGURE_LEVELS 8 /* memory overhead levels, cache levels: more are not looked at */

struct map_figures {
    uint32_t core_most;                      /* most workers on one core */
    uint32_t memory_levels;                  /* most of any class in use */
    uint32_t memory_most[MAP_FIGURE_LEVELS]; /* by level, worst overhead first: most workers in one
                                                group */
    /* Of the worker with the least, and on average. Bandwidth by the scaling curves, or else by the
     * pair figure of each level; 0: nothing was measured. */
    double memory_worst_bytes_per_s, memory_mean_bytes_per_s;
    /* By cache level (index 0 is L1): the share of the worker with the least; 0: no worker has such
     * a cache. */
    double cache_worst_bytes[MAP_FIGURE_LEVELS], cache_mean_bytes[MAP_FIGURE_LEVELS];
    uint32_t cache_most[MAP_FIGURE_LEVELS]; /* most workers on one cache */
    /* Between worker i and i + 1; seconds, or ranks of layers where latencies are not known; 0
     * with one worker. */
    double neighbour_mean, neighbour_worst;
};

/* Leaf indices of the view in worker order. 0 or -ENOMEM. */
int map_figures_of(struct map_view *view, const uint32_t *leaves, size_t count,
                   struct map_figures *out);

/* What lies between two leaves: the first layer that lists them, else the farthest of the profile.
 * No layer, distance 0: the same leaf, and profiles without layers. */
struct map_between {
    const struct profile_communication *communication;
    const struct profile_layer *layer;
    double distance; /* profile_layer_distance(): seconds, or the layer's rank */
};
struct map_between map_between(const struct map_view *view, uint32_t a, uint32_t b);
double map_pair_distance(const struct map_view *view, uint32_t a, uint32_t b);

#endif
