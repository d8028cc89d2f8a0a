/* Who is where: which PUs may be used, how many workers every PU and every core holds, and the
 * order in which that makes PUs eligible before any weight is looked at.
 */
#ifndef SERVET_MAPPER_WEIGHTS_SLOTS_H
#define SERVET_MAPPER_WEIGHTS_SLOTS_H

#include "mapper/weights/view.h"

/* Sorts PUs before their weight: workers on the PU, then workers on its core, then nodes that have
 * no worker or no room behind those that have both, then PUs without memory of their own behind the
 * others, then kind (0 the most capable). So the fastest cores come first, slower ones join when
 * each fast one has a worker, and siblings when every core has. */
typedef uint64_t map_key;

#define MAP_KEY_NEVER UINT64_MAX
#define MAP_KEY_WORKER ((map_key)1 << 40)
#define MAP_KEY_CORE_WORKER ((map_key)1 << 18)
#define MAP_KEY_OTHER_NODE ((map_key)1 << 17)
#define MAP_KEY_FAR ((map_key)1 << 16)

static inline uint32_t map_key_workers(map_key key)
{
    return (uint32_t)(key / MAP_KEY_WORKER);
}

static inline uint32_t map_key_core_workers(map_key key)
{
    return (uint32_t)(key % MAP_KEY_WORKER / MAP_KEY_CORE_WORKER);
}

struct map_slots {
    const struct map_view *view;
    map_key *key; /* by leaf; MAP_KEY_NEVER: may not be used */
    uint32_t
        *taken; /* leaves that other programs hold, ascending; also those that may not be used */
    size_t taken_count;
    uint32_t *in_node; /* by node: workers; NULL: nodes are not filled one after the other */
};

/* Keys before the first worker. 0; -EINVAL (none of the PUs of `allowed` is known: the text says
 * so); -ENOMEM. */
int map_slots_make(struct map_view *view, const struct profile_set *allowed,
                   const struct profile_set *taken, struct map_slots *out,
                   struct servet_error *error);

/* One more worker on `leaf`. */
void map_slots_choose(struct map_slots *slots, uint32_t leaf);

/* What the key of every PU of a node gets besides: MAP_KEY_OTHER_NODE unless the node has workers
 * and room for more. So memory priority fills one node until the next worker would lose bandwidth
 * there, and then goes on to another. */
map_key map_slots_node_key(const struct map_slots *slots, uint32_t node);

/* Leaf that is chosen next: lowest key, then lowest weight (by leaf), then lowest PU. */
uint32_t map_slots_lowest(const struct map_slots *slots, const map_weight *weight);

/* The PUs of a leaf's core. */
struct map_core {
    uint32_t first_leaf;
    const uint32_t *members; /* positions in the node; NULL: the PU has the core for itself */
    uint32_t count;
};
struct map_core map_core_of(const struct map_view *view, uint32_t leaf);

#endif
