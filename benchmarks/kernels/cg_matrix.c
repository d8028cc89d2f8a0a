/* The matrix of the CG kernel (RNR-94-007, Section 2.4). Each rank makes the rows it owns from
 * the same random numbers, so that any number of ranks has the same matrix. */
#include "benchmarks/kernels/cg_matrix.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/nas_random.h"

#define SEED UINT64_C(314159265)
#define CONDITION 0.1 /* rcond of the specification */
#define NONZERO_LIMIT 16

struct sparse {
    size_t count;
    uint32_t index[NONZERO_LIMIT];
    double value[NONZERO_LIMIT];
};

static size_t find(const struct sparse *vector, uint32_t index)
{
    size_t i = 0;
    while (i < vector->count && vector->index[i] != index) {
        i++;
    }
    return i;
}

/* `nonzeros` different places drawn below the next power of two; those past n are thrown away. */
static void draw(uint64_t *state, size_t n, size_t power, size_t nonzeros, struct sparse *out)
{
    out->count = 0;
    while (out->count < nonzeros) {
        double value = nas_next(state);
        uint32_t index = (uint32_t)((double)power * nas_next(state));
        if (index >= n || find(out, index) < out->count) {
            continue;
        }
        out->index[out->count] = index;
        out->value[out->count++] = value;
    }
}

static void set(struct sparse *vector, uint32_t index, double value)
{
    size_t at = find(vector, index);
    vector->index[at] = index;
    vector->value[at] = value;
    if (at == vector->count) {
        vector->count++;
    }
}

static struct sparse *draw_all(size_t n, size_t nonzeros)
{
    struct sparse *vectors = kernel_memory(n, sizeof *vectors);
    uint64_t state = SEED;
    nas_next(&state); /* the specification draws, and drops, one number first */
    size_t power = 1;
    while (power < n) {
        power *= 2;
    }
    for (size_t i = 0; i < n; i++) {
        draw(&state, n, power, nonzeros, &vectors[i]);
        set(&vectors[i], (uint32_t)i, 0.5);
    }
    return vectors;
}

/* Adds up equal columns of one row, and sorts it by insertion: the row is built of a few short
 * runs. */
static size_t add_entry(uint32_t *columns, double *values, size_t count, uint32_t column,
                        double value)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (columns[middle] < column) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < count && columns[low] == column) {
        values[low] += value;
        return count;
    }
    memmove(columns + low + 1, columns + low, (count - low) * sizeof *columns);
    memmove(values + low + 1, values + low, (count - low) * sizeof *values);
    columns[low] = column;
    values[low] = value;
    return count + 1;
}

/* Room that each row may need: the lengths of all vectors that it occurs in. */
static void count_room(const struct sparse *vectors, size_t n, struct cg_matrix *out)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t e = 0; e < vectors[i].count; e++) {
            size_t row = vectors[i].index[e] - out->first_row;
            if (vectors[i].index[e] >= out->first_row && row < out->rows) {
                out->row_first[row + 1] += vectors[i].count;
            }
        }
    }
    for (size_t row = 0; row < out->rows; row++) {
        out->row_first[row + 1] += out->row_first[row];
    }
}

static void add_vector(const struct sparse *vector, double weight, double diagonal, size_t self,
                       struct cg_matrix *out, size_t *filled)
{
    for (size_t e = 0; e < vector->count; e++) {
        size_t row = vector->index[e] - out->first_row;
        if (vector->index[e] < out->first_row || row >= out->rows) {
            continue;
        }
        size_t at = out->row_first[row];
        double scale = weight * vector->value[e];
        for (size_t f = 0; f < vector->count; f++) {
            double value = vector->value[f] * scale;
            if (vector->index[e] == self && vector->index[f] == self) {
                value += diagonal;
            }
            filled[row] = add_entry(out->columns + at, out->values + at, filled[row],
                                    vector->index[f], value);
        }
    }
}

static void close_gaps(struct cg_matrix *out, const size_t *filled)
{
    size_t to = 0;
    for (size_t row = 0; row < out->rows; row++) {
        size_t from = out->row_first[row];
        memmove(out->columns + to, out->columns + from, filled[row] * sizeof *out->columns);
        memmove(out->values + to, out->values + from, filled[row] * sizeof *out->values);
        out->row_first[row] = to;
        to += filled[row];
    }
    out->row_first[out->rows] = to;
}

void cg_matrix_make(size_t n, size_t nonzeros, double shift, size_t first_row, size_t rows,
                    struct cg_matrix *out)
{
    struct sparse *vectors = draw_all(n, nonzeros);
    *out = (struct cg_matrix){.first_row = first_row, .rows = rows};
    out->row_first = kernel_memory(rows + 1, sizeof *out->row_first);
    count_room(vectors, n, out);
    out->columns = kernel_memory(out->row_first[rows], sizeof *out->columns);
    out->values = kernel_memory(out->row_first[rows], sizeof *out->values);
    size_t *filled = kernel_memory(rows, sizeof *filled);
    double weight = 1.0, ratio = pow(CONDITION, 1.0 / (double)n);
    for (size_t i = 0; i < n; i++) {
        add_vector(&vectors[i], weight, CONDITION - shift, i, out, filled);
        weight *= ratio;
    }
    close_gaps(out, filled);
    free(filled);
    free(vectors);
}

void cg_matrix_free(struct cg_matrix *matrix)
{
    free(matrix->row_first);
    free(matrix->columns);
    free(matrix->values);
}
