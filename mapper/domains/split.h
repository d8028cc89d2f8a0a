/* Dividing a machine among ranks, top down. */
#ifndef SERVET_MAPPER_DOMAINS_SPLIT_H
#define SERVET_MAPPER_DOMAINS_SPLIT_H

#include "mapper/weights/weights.h"

/* A rank and how much it asks for. */
struct map_share {
    uint32_t rank;
    uint32_t threads;
};

enum map_fit {
    MAP_PACK_THREADS, /* one box after the other, none holds more threads than it has room */
    MAP_FIT_THREADS,  /* no box holds more threads than it has room */
    MAP_FIT_RANKS,    /* no box holds more ranks than it has room */
    MAP_FIT_NOTHING,  /* boxes are overfull alike */
};

/* Gives every share one of `count` boxes, as evenly as it goes (but for MAP_PACK_THREADS). Shares
 * are sorted by box, then by rank; box_of (by place in `shares`) says which. 0; -ENOSPC (no way was
 * found in which all fit: widest first into the emptiest box, then into the fullest); -ENOMEM. */
int map_share_out(struct map_share *shares, size_t share_count, const uint64_t *room, size_t count,
                  enum map_fit fit, uint32_t *box_of);

/* What is divided: units (cores or PUs of one node) in the order of the tree. */
struct map_units {
    const struct map_order *order;
    const uint32_t *item; /* by unit: its first PU, a position in the class */
    uint32_t count;
};

/* How regions are cut: `whole` levels of the tree, from the widest, are kept together. */
struct map_cut {
    uint32_t whole;
    bool pack; /* groups are filled one after the other */
};

/* Gives every share a region: begin[i] to end[i] - 1 (units) of shares[i], which are reordered.
 * Groups of the levels that are kept whole are divided from the widest to the narrowest: ranks are
 * shared out to groups, or groups to ranks where there are fewer ranks, as long as everybody's
 * threads fit. Ranks that are left in one group have one region together, to be dealt out among
 * them; where their threads do not fit, as many units each, and more ranks than units take them in
 * turn. 0 or -ENOMEM. */
int map_split(const struct map_units *units, struct map_cut cut, struct map_share *shares,
              size_t count, uint32_t *begin, uint32_t *end);

#endif
