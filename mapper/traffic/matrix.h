/* Who sends how much to whom: rank x rank bytes. */
#ifndef SERVET_MAPPER_TRAFFIC_MATRIX_H
#define SERVET_MAPPER_TRAFFIC_MATRIX_H

#include <stddef.h>

#include "profile/base/error.h"

/* Most ranks of a matrix, and of one that is written out with its zeros: a row of text has a number
 * for every rank. */
#define MAP_MATRIX_MOST_RANKS 1000000
#define MAP_MATRIX_MOST_DENSE_RANKS 8192

/* Both directions of a pair added up, stored for both ends; the diagonal is left out. */
struct map_matrix {
    uint32_t ranks;
    size_t *start;  /* by rank, and one more: where its partners begin */
    uint32_t *with; /* ascending for each rank */
    double *bytes;  /* > 0 */
};

/* A sum of `count` entries: from[i] sends bytes[i] to to[i]. 0, -ENOMEM. */
int map_matrix_make(uint32_t ranks, const uint32_t *from, const uint32_t *to, const double *bytes,
                    size_t count, struct map_matrix *out);

/* Reads a file: Matrix Market (coordinate, real or integer, general or symmetric), or plain text
 * with one row of numbers per rank ('#' begins a comment). 0; -EINVAL (the text names file, line
 * and what was expected); -ENOENT and other errors of opening; -ENOMEM. */
int map_matrix_read(const char *path, struct map_matrix *out, struct servet_error *error);
void map_matrix_free(struct map_matrix *matrix);

#endif
