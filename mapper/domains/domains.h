/* Hybrid programs: dividing a machine among ranks, top down (split.c), and the threads of a rank in
 * its region (region.c). */
#pragma once

#include "mapper/weights/weights.h"

/* A rank, how much it asks for, and what it gets. */
struct map_share {
    uint32_t rank;
    uint32_t threads;
    uint32_t box;        /* map_share_out() */
    uint32_t begin, end; /* map_split(): its region, units [begin, end) */
};

enum map_fit {
    MAP_PACK_THREADS, /* one box after the other, none holds more threads than it has room */
    MAP_FIT_THREADS,  /* no box holds more threads than it has room */
    MAP_FIT_NOTHING,  /* boxes are overfull alike */
};

/* Gives every share one of `count` boxes, as evenly as it goes (but for MAP_PACK_THREADS). Shares
 * are sorted by box, then by rank. 0; -ENOSPC (no way was
 * found in which all fit: widest first into the emptiest box, then into the fullest); -ENOMEM. */
int map_share_out(struct map_share *shares, size_t share_count, const uint64_t *room, size_t count,
                  enum map_fit fit);

/* Where there are more threads than cores, and cores enough for whole ones: `threads` of each share
 * becomes the number of its cores, those that it cannot do without (with more threads than PUs
 * one) and its part of the others; together all cores. `least`: the fewest PUs of a core. False:
 * nothing is changed. */
bool map_divide_cores(struct map_share *shares, size_t count, uint64_t cores, uint64_t pus,
                      uint32_t least);

/* The units that are divided: cores or PUs of one node, in the order of the tree. */
struct map_units {
    const struct map_order *order;
    const uint32_t *item; /* by unit: its first PU, a position in the class */
    uint32_t count;
    const struct map_groups *memory; /* the narrowest domains; NULL: none is known */
};

/* How regions are cut: `whole` levels of the tree, from the widest, are kept together. */
struct map_cut {
    uint32_t whole;
    bool pack; /* groups are filled one after the other */
};

/* Gives every share a region; the shares are reordered.
 * Groups of the levels that are kept whole are divided from the widest to the narrowest: ranks are
 * shared out to groups, or groups to ranks where there are fewer ranks, so that no more ranks are
 * split than the groups inside cannot hold. Ranks that are left in one group have one region
 * together, to be dealt out among them. With more threads than units each gets as many units, and
 * more ranks than units take them in turn. 0 or -ENOMEM. */
int map_split(const struct map_units *units, struct map_cut cut, struct map_share *shares,
              size_t count);

/* -- A rank's region, or that of several ranks: which of its PUs get a thread. -- */

/* A class of nodes as a machine of its own. */
struct map_machine {
    struct map_node_view node;
    struct map_view view;
    struct map_slots slots;
    struct map_engine *engine;
    struct map_order tree, layers;
    uint32_t *load;    /* by item: threads of the ranks at hand */
    uint32_t *most[2]; /* by family: for struct map_sharing, of two ways to cut regions */
    bool made;
};

/* Some of the PUs of a node of that class. */
struct map_region {
    const struct map_slots *slots; /* of the whole cluster: keys, and what other programs hold */
    uint32_t first_leaf;           /* of the node, there */
    const uint32_t *items;         /* positions in the class */
    uint32_t count;
};

/* Only the PUs of the region may be used. */
void map_region_open(struct map_machine *m, const struct map_region *region);

/* Takes `threads` (fewer than the items) of the region by key and weight, as workers are placed, in
 * the order of choice. */
void map_region_choose(struct map_machine *m, const struct map_region *region, size_t threads,
                       uint32_t *chosen);

enum map_relation { MAP_LAYERS, MAP_SHARING };

/* Does a layer, or something that is shared, join some of the units and part them from others? */
bool map_region_parted(const struct map_machine *m, enum map_relation by,
                       const struct map_units *units);

/* Layers between threads of a rank that lie beside each other, summed over the ranks: `items` are
 * those of the first rank, then of the second, … */
uint64_t map_region_parting(const struct map_order *layers, const uint32_t *items,
                            const struct map_share *ranks, size_t rank_count);

/* Chooses from `count` items in the order of the tree (at least as many as the ranks have threads)
 * those that separate the threads of each rank least, one rank after the other; of several ways the
 * one that leaves the fewest out. 0 or -ENOMEM. */
int map_region_align(const struct map_order *layers, const uint32_t *items, size_t count,
                     const struct map_share *ranks, size_t rank_count, uint32_t *out);

/* Caches and memory that the threads of all ranks share. */
struct map_sharing {
    uint64_t all;   /* twice the pairs that share a cache, a memory domain or a package, over all
                       levels: what rules 1 and 2 add up to, but for a constant */
    uint32_t *most; /* by family: most threads in one of its groups */
    uint64_t crowd; /* map_machine_crowd() */
};

/* Has no cache and no memory domain more threads than where no group is kept whole, and no rank
 * noticeably less memory than the one there with least? Caches of 4, 4, 4, 2 and 2 threads give the
 * slowest rank what 4, 3, 3, 3 and 3 do, and split no rank of two. Wider domains than the narrowest
 * count where they were measured. */
bool map_sharing_no_worse(const struct map_machine *m, const struct map_sharing *with,
                          const struct map_sharing *least);

/* Memory that the threads of the rank with most share, in thousandths: workers in the memory
 * domains of one of its threads, on average, summed over the levels that count. items + first[rank]
 * are its threads; the loads are those of all ranks. */
uint64_t map_machine_crowd(const struct map_machine *m, const uint32_t *items, const size_t *first,
                           const struct map_share *ranks, size_t rank_count);

/* Into `out`, whose `most` has room for the families of the class; NULL: they are not asked for. */
void map_machine_sharing(const struct map_machine *m, struct map_sharing *out);
