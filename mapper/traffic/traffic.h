/* The interface of mapper/traffic/ to its own files and to the rest of the room. */
#pragma once

#include <stddef.h>

#include "mapper/weights/weights.h"

/* -- matrix -- */

/* The bytes that ranks send one another: rank x rank. */

/* Most ranks of a matrix, and of one that is written out with its zeros: a row of text has a number
 * for every rank. */
#define MAP_MATRIX_MOST_RANKS 1000000
#define MAP_MATRIX_MOST_DENSE_RANKS 8192

struct map_entry {
    uint32_t from, to;
    double bytes; /* > 0 in a matrix */
};

/* Both directions of a pair added up, stored for both ends; the diagonal is left out. */
struct map_matrix {
    uint32_t ranks;
    const uint32_t *threads;   /* by rank, borrowed; NULL: all ranks have as many */
    size_t *start;             /* by rank, and one more: where its entries begin */
    struct map_entry *entries; /* of each rank by partner */
};

/* Of entries in any order; those of one pair are added up. 0 or -ENOMEM. */
int map_matrix_make(uint32_t ranks, const struct map_entry *entries, size_t count,
                    struct map_matrix *out);

/* Reads a file: Matrix Market (coordinate, real or integer, general or symmetric), or plain text
 * with one row of numbers per rank ('#' begins a comment). 0; -EINVAL (the text names file, line
 * and what was expected); -ENOENT and other errors of opening; -ENOMEM. */
int map_matrix_read(const char *path, struct map_matrix *out, struct servet_error *error);
void map_matrix_free(struct map_matrix *matrix);

/* -- traffic -- */

/* Tries to exchange all pairs below `count`, again while a round of them made something better. */
void map_exchange_all(void *context, uint32_t count, int rounds,
                      bool (*exchange)(void *context, uint32_t a, uint32_t b));

/* Places ranks by who talks to whom: which rank on which of the PUs that the weights have chosen.
 *
 * The predicted time of a pair is that of one message with all its bytes, by the curve of the layer
 * between the two PUs; the total is the sum over pairs. It says how much communication a placement
 * costs, not how long the program waits. */

/* Predicted totals. */
struct map_traffic_seconds {
    double in_order; /* of rank order, as there is without a matrix */
    double greedy;
};

/* Rank r is best on leaves[out[r]], each of `leaves` (matrix->ranks of them) used once: placed
 * greedily, in rank order where that is as good. 0 or -ENOMEM. */
int map_place_ranks(struct map_view *view, const struct map_matrix *matrix, const uint32_t *leaves,
                    uint32_t *out, struct map_traffic_seconds *seconds);

/* One way, seconds; where latencies are not known, layers times bytes: a weight, no time. */
double map_message_seconds(const struct map_view *view, uint32_t a, uint32_t b, double bytes);
