/* The matrix of the CG kernel (RNR-94-007, Section 2.4): a sparse, symmetric, random matrix whose
 * smallest eigenvalues are known to lie near `shift`: sum over i of w(i) x(i) x(i)^T + (rcond -
 * shift) I, with sparse random vectors x(i) and weights w(i) falling geometrically from 1 to
 * rcond. */
#ifndef SERVET_BENCHMARKS_CG_MATRIX_H
#define SERVET_BENCHMARKS_CG_MATRIX_H

#include <stddef.h>
#include <stdint.h>

struct cg_matrix {
    size_t first_row, rows; /* those of this rank */
    size_t *row_first;      /* rows + 1 places in the two arrays below */
    uint32_t *columns;
    double *values;
};

/* Rows first_row … of the matrix of order n; every rank draws all random vectors and keeps its own
 * rows. */
void cg_matrix_make(size_t n, size_t nonzeros, double shift, size_t first_row, size_t rows,
                    struct cg_matrix *out);
void cg_matrix_free(struct cg_matrix *matrix);

#endif
