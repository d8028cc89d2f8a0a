/* The usual way: compute the whole tile, then exchange its edges with one neighbour after the
 * other. */
#include <stdlib.h>

#include "tests/mapper/spmd/programs/field.h"

enum { TAG = 1 };

struct edges {
    int west, east, south, north; /* ranks or MPI_PROC_NULL */
    double *out, *in;             /* one column */
};

static int rank_at(const struct field *f, long i, long j)
{
    int outside = i < 0 || j < 0 || i >= (long)f->n || j >= (long)f->m;
    return outside ? MPI_PROC_NULL : (int)(j * (long)f->n + i);
}

static void column(const struct field *f, double *array, size_t x, double *packed, int out)
{
    for (size_t y = 0; y < f->y; y++) {
        double *at = &array[(y + f->halo_y) * f->stride + x];
        if (out) {
            packed[y] = *at;
        } else {
            *at = packed[y];
        }
    }
}

/* One edge goes to a neighbour while another comes in: ranks, and columns or rows of the array. */
struct passage {
    int to;
    size_t sent;
    int from;
    size_t received;
};

static void exchange_columns(const struct field *f, double *array, const struct edges *e,
                             struct passage p)
{
    column(f, array, p.sent, e->out, 1);
    MPI_Sendrecv(e->out, (int)f->y, MPI_DOUBLE, p.to, TAG, e->in, (int)f->y, MPI_DOUBLE, p.from,
                 TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (p.from != MPI_PROC_NULL) {
        column(f, array, p.received, e->in, 0);
    }
}

static void exchange_rows(const struct field *f, double *array, struct passage p)
{
    MPI_Sendrecv(&array[p.sent * f->stride + f->halo_x], (int)f->x, MPI_DOUBLE, p.to, TAG,
                 &array[p.received * f->stride + f->halo_x], (int)f->x, MPI_DOUBLE, p.from, TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(const struct field *f, double *array, const struct edges *e)
{
    if (f->n > 1) {
        exchange_columns(f, array, e, (struct passage){e->west, 1, e->east, f->x + 1});
        exchange_columns(f, array, e, (struct passage){e->east, f->x, e->west, 0});
    }
    if (f->m > 1) {
        exchange_rows(f, array, (struct passage){e->south, 1, e->north, f->y + 1});
        exchange_rows(f, array, (struct passage){e->north, f->y, e->south, 0});
    }
}

static void choose_grid(struct arguments *arguments, int ranks)
{
    int dims[2] = {0, kernel_dimensions == 1 ? 1 : 0};
    if (!arguments->n) {
        MPI_Dims_create(ranks, 2, dims);
        arguments->n = (size_t)dims[0];
        arguments->m = (size_t)dims[1];
    }
    if (arguments->n * arguments->m != (size_t)ranks) {
        stop("--grid: expected as many processes as run (%d), got %zu x %zu", ranks, arguments->n,
             arguments->m);
    }
    if (arguments->problem_x % arguments->n || arguments->problem_y % arguments->m) {
        stop("--problem: expected tasks that the grid of %zu x %zu processes divides", arguments->n,
             arguments->m);
    }
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct arguments arguments = read_arguments(argc, argv);
    choose_grid(&arguments, ranks);
    struct field f = {.problem_x = arguments.problem_x,
                      .problem_y = arguments.problem_y,
                      .n = arguments.n,
                      .m = arguments.m,
                      .i = (size_t)rank % arguments.n,
                      .j = (size_t)rank / arguments.n,
                      .halo_x = 1,
                      .halo_y = kernel_dimensions == 1 ? 0 : 1};
    f.x = f.problem_x / f.n;
    f.y = f.problem_y / f.m;
    make_field(&f);
    long i = (long)f.i, j = (long)f.j;
    struct edges edges = {rank_at(&f, i - 1, j),        rank_at(&f, i + 1, j),
                          rank_at(&f, i, j - 1),        rank_at(&f, i, j + 1),
                          malloc(f.y * sizeof(double)), malloc(f.y * sizeof(double))};
    if (!edges.out || !edges.in) {
        stop("out of memory");
    }
    exchange(&f, f.now, &edges);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long k = 0; k < arguments.iterations; k++) {
        kernel_compute(&f, 0, f.x, 0, f.y);
        exchange(&f, f.next, &edges);
        swap(&f);
    }
    report(&f, "plain", MPI_Wtime() - start, arguments.iterations);
    free(edges.out);
    free(edges.in);
    free(f.now);
    free(f.next);
    MPI_Finalize();
    return 0;
}
