#include "traffic.h"

#include <errno.h>
#include <string.h>

#include "figures.h"
#include "placers.h"

const char *const map_placer_names[MAP_PLACERS] = {"rank order", "greedy", "Scotch"};

/* -- the time of a message ------------------------------------------------------------------------------------------
 */

static const struct profile_layer *layer_between(const struct map_view *view, uint32_t a, uint32_t b,
                                                 uint64_t *message_bytes)
{
    uint32_t node = map_view_node(view, a);
    bool same_node = node == map_view_node(view, b);
    const struct map_class *class = &view->classes[view->nodes[node].class_index];
    uint32_t first = view->nodes[node].first_leaf;
    const struct profile_communication *inside = &class->of->communication;
    *message_bytes = inside->message_bytes;
    for (size_t i = 0; same_node && i < inside->layer_count; i++) {
        size_t family = class->family_count - inside->layer_count + i;
        if (map_groups_related(&class->families[family].groups, a - first, b - first)) {
            return &inside->layers[i];
        }
    }
    *message_bytes = view->profile->network.message_bytes;
    for (size_t i = 0; i < view->network_count; i++) {
        if (map_groups_related(&view->network[i].groups, node, map_view_node(view, b))) {
            return &view->profile->network.layers[i];
        }
    }
    return NULL;
}

/* By the curve, in straight lines between its points and on with its last slope. */
static double by_curve(const struct profile_message_point *points, size_t count, double bytes)
{
    if (count == 1 || bytes <= (double)points[0].bytes) {
        return points[0].seconds;
    }
    size_t i = 1;
    while (i + 1 < count && (double)points[i].bytes < bytes) {
        i++;
    }
    double run = (double)(points[i].bytes - points[i - 1].bytes);
    double slope = run > 0 ? (points[i].seconds - points[i - 1].seconds) / run : 0;
    return points[i].seconds + slope * (bytes - (double)points[i].bytes);
}

double map_message_seconds(const struct map_view *view, uint32_t a, uint32_t b, double bytes)
{
    uint64_t message_bytes;
    const struct profile_layer *layer = a == b ? NULL : layer_between(view, a, b, &message_bytes);
    if (layer && layer->curve_count) {
        return by_curve(layer->curve, layer->curve_count, bytes);
    }
    double latency = map_pair_latency(view, a, b);
    if (!view->profile->measured || !layer || !message_bytes) {
        return latency * bytes;
    }
    return bytes > (double)message_bytes ? latency * bytes / (double)message_bytes : latency;
}

/* -- placing ------------------------------------------------------------------------------------------------------- */

double map_traffic_of_rank(const struct map_traffic *t, uint32_t rank, uint32_t leaf)
{
    double seconds = 0;
    for (size_t i = t->matrix->start[rank]; i < t->matrix->start[rank + 1]; i++) {
        uint32_t other = t->place[t->matrix->with[i]];
        if (other != MAP_NONE) {
            seconds += map_message_seconds(t->view, leaf, other, t->matrix->bytes[i]);
        }
    }
    return seconds;
}

double map_traffic_total(const struct map_traffic *t)
{
    double seconds = 0;
    for (uint32_t r = 0; r < t->matrix->ranks; r++) {
        seconds += map_traffic_of_rank(t, r, t->place[r]);
    }
    return seconds / 2; /* every pair was seen from both ends */
}

bool map_placer_built(enum map_placer placer)
{
    return placer != MAP_SCOTCH || map_scotch_built;
}

int map_place_ranks(struct map_view *view, enum map_placer placer, const struct map_matrix *matrix,
                    const uint32_t *leaves, uint32_t *out, double *seconds)
{
    struct map_traffic t = {view, matrix, leaves, out};
    int rc = 0;
    if (placer == MAP_RANK_ORDER) {
        memcpy(out, leaves, matrix->ranks * sizeof *out);
    } else if (placer == MAP_GREEDY) {
        rc = map_place_greedily(&t);
    } else {
        rc = map_place_by_scotch(&t);
    }
    if (rc == 0 && seconds) {
        *seconds = map_traffic_total(&t);
    }
    return rc;
}
