/* What the files of mapper/traffic/ promise one another and the rest of the room. */
#ifndef SERVET_MAPPER_TRAFFIC_TRAFFIC_H
#define SERVET_MAPPER_TRAFFIC_TRAFFIC_H

#include <stddef.h>

#include "mapper/weights/weights.h"
#include "profile/base/error.h"

/* -- matrix -- */

/* Who sends how much to whom: rank x rank bytes. */

/* Most ranks of a matrix, and of one that is written out with its zeros: a row of text has a number
 * for every rank. */
#define MAP_MATRIX_MOST_RANKS 1000000
#define MAP_MATRIX_MOST_DENSE_RANKS 8192

/* Both directions of a pair added up, stored for both ends; the diagonal is left out. */
struct map_matrix {
    uint32_t ranks;
    const uint32_t *threads; /* by rank, borrowed; NULL: all ranks have as many */
    size_t *start;           /* by rank, and one more: where its partners begin */
    uint32_t *with;          /* ascending for each rank */
    double *bytes;           /* > 0 */
};

/* A sum of `count` entries: from[i] sends bytes[i] to to[i]. 0, -ENOMEM. */
int map_matrix_make(uint32_t ranks, const uint32_t *from, const uint32_t *to, const double *bytes,
                    size_t count, struct map_matrix *out);

/* Reads a file: Matrix Market (coordinate, real or integer, general or symmetric), or plain text
 * with one row of numbers per rank ('#' begins a comment). 0; -EINVAL (the text names file, line
 * and what was expected); -ENOENT and other errors of opening; -ENOMEM. */
int map_matrix_read(const char *path, struct map_matrix *out, struct servet_error *error);
void map_matrix_free(struct map_matrix *matrix);

/* -- traffic -- */

/* The ways to place ranks by their traffic. */

struct map_traffic {
    struct map_view *view;
    const struct map_matrix *matrix;
    const uint32_t *leaves; /* to be used, one each */
    uint32_t *place;        /* by rank: its leaf; MAP_NONE: not placed yet */
    /* What map_traffic_make() works out once, because the ways to place ask millions of times: */
    uint32_t levels;       /* layers that two leaves may have in common, nearest first */
    uint32_t *path;        /* by leaf, `levels` of them: its group, named by a leaf of it */
    uint32_t layers;       /* of all classes, of the network, and the farthest of all */
    uint32_t *first_layer; /* by class: where its layers begin among those */
    double *cost; /* by entry of the matrix and layer, NULL: the pairs are asked one by one */
};

/* `view` and `matrix` are borrowed. 0 or -ENOMEM; the memory is the view's. */
int map_traffic_make(struct map_view *view, const struct map_matrix *matrix, const uint32_t *leaves,
                     uint32_t *place, struct map_traffic *out);

/* Predicted time of what the rank exchanges with ranks that are placed, if it were on `leaf`. */
double map_traffic_of_rank(const struct map_traffic *traffic, uint32_t rank, uint32_t leaf);

/* Predicted time of all messages of a complete placement. */
double map_traffic_total(const struct map_traffic *traffic);

/* Ranks of different numbers of threads have regions of different sizes, and do not change places:
 * `leaves` are then those of rank 0, rank 1, … */
static inline bool map_traffic_exchangeable(const struct map_traffic *traffic, uint32_t a,
                                            uint32_t b)
{
    const uint32_t *threads = traffic->matrix->threads;
    return !threads || threads[a] == threads[b];
}

/* The better one of two: by descent, each level cut by Scotch; and, where the leaves form a regular
 * tree, Scotch's own mapping onto that tree, with every rank on a leaf of its own. 0, -ENOTSUP,
 * -ENOMEM. */
int map_place_by_scotch(struct map_traffic *traffic);

/* Places ranks by who talks to whom: which rank on which of the PUs that the weights have chosen.
 *
 * The predicted time of a pair is that of one message with all its bytes, by the curve of the layer
 * between the two PUs; the total is the sum over pairs. It says how much communication a placement
 * costs, not how long the program waits.
 */

enum map_placer { MAP_RANK_ORDER, MAP_GREEDY, MAP_SCOTCH, MAP_PLACERS };
extern const char *const map_placer_names[MAP_PLACERS];

/* Some placer of this build (Scotch is optional)? */
bool map_placer_built(enum map_placer placer);

/* Places by one placer: out[r] is one of `leaves` (matrix->ranks of them) for rank r, each used
 * once. `seconds` (may be NULL) gets the predicted total. 0; -ENOTSUP (not in this build);
 * -ENOMEM. */
int map_place_ranks(struct map_view *view, enum map_placer placer, const struct map_matrix *matrix,
                    const uint32_t *leaves, uint32_t *out, double *seconds);

/* One way, seconds; where latencies are not known, layers times bytes: a weight, no time. */
double map_message_seconds(const struct map_view *view, uint32_t a, uint32_t b, double bytes);

/* -- descent -- */

/* Placing ranks from the top of the machine down: what the ways to cut a set of ranks share. */

/* Some of the ranks, numbered from 0, and what they send to one another. */
struct map_subgraph {
    uint32_t count;
    const size_t *start;  /* by rank, and one more: where its partners begin */
    const uint32_t *with; /* numbers in the subgraph */
    const double *bytes;
};

/* Cuts the ranks into `parts` parts of exactly sizes[p] ranks (their sum is the count), so that few
 * bytes go between parts: part[r] for each rank. 0 or -ENOMEM. */
typedef int map_cut_fn(const struct map_subgraph *graph, const uint32_t *sizes, uint32_t parts,
                       uint32_t *part);

/* Parts one after the other, each grown from the rank with the most bytes: next is always the rank
 * with the most bytes to the part. n log n. */
map_cut_fn map_cut_by_growth;

/* All ranks, each the one with the most bytes to those before it. 0 or -ENOMEM. */
int map_order_by_growth(const struct map_matrix *matrix, uint32_t *order);

/* Places all ranks: on each level of the machine (layers between nodes, nodes, layers inside them,
 * from the slowest down) they are cut into as many parts as the leaves lie in groups. Then ranks
 * change places with others near their partners while that saves time. 0 or -ENOMEM. */
int map_place_by_descent(struct map_traffic *traffic, map_cut_fn *cut);

/* Ranks change places with others near their partners while that saves time. 0 or -ENOMEM. */
int map_improve_nearby(struct map_traffic *traffic);

/* The levels of the machine, 0 the outermost: layers between nodes, the node, layers inside it. */
size_t map_count_levels(const struct map_view *view);

/* The group of a leaf on a level. Groups of different nodes may have one number: nodes are told
 * apart before. A leaf in no group is alone. */
uint64_t map_group_at(const struct map_view *view, size_t level, uint32_t leaf);

#endif
