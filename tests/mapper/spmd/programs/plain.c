/* The usual way: compute the whole tile, then exchange its edges with one neighbour after the
 * other. */
#include <stdlib.h>

#include "tests/mapper/spmd/programs/field.h"

enum { TAG = 1 };

struct edges {
    int west, east, south, north; /* ranks or MPI_PROC_NULL */
    MPI_Datatype column, row;
};

static int rank_at(const struct field *f, long i, long j)
{
    int outside = i < 0 || j < 0 || i >= (long)f->n || j >= (long)f->m;
    return outside ? MPI_PROC_NULL : (int)(j * (long)f->n + i);
}

/* One edge goes to a neighbour while another comes in: ranks, and where they begin in the array. */
struct passage {
    int to;
    size_t sent;
    int from;
    size_t received;
};

static void pass(double *array, MPI_Datatype edge, struct passage p)
{
    MPI_Sendrecv(&array[p.sent], 1, edge, p.to, TAG, &array[p.received], 1, edge, p.from, TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(const struct field *f, double *array, const struct edges *e)
{
    const size_t top = f->halo_y * f->stride, left = f->halo_x;
    if (f->n > 1) {
        pass(array, e->column, (struct passage){e->west, top + 1, e->east, top + f->x + 1});
        pass(array, e->column, (struct passage){e->east, top + f->x, e->west, top});
    }
    if (f->m > 1) {
        pass(array, e->row,
             (struct passage){e->south, f->stride + left, e->north, (f->y + 1) * f->stride + left});
        pass(array, e->row, (struct passage){e->north, f->y * f->stride + left, e->south, left});
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
    struct edges edges = {.west = rank_at(&f, i - 1, j),
                          .east = rank_at(&f, i + 1, j),
                          .south = rank_at(&f, i, j - 1),
                          .north = rank_at(&f, i, j + 1)};
    MPI_Type_vector((int)f.y, 1, (int)f.stride, MPI_DOUBLE, &edges.column);
    MPI_Type_contiguous((int)f.x, MPI_DOUBLE, &edges.row);
    MPI_Type_commit(&edges.column);
    MPI_Type_commit(&edges.row);
    exchange(&f, f.now, &edges);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long k = 0; k < arguments.iterations; k++) {
        kernel_compute(&f, 0, f.x, 0, f.y);
        exchange(&f, f.next, &edges);
        swap(&f);
    }
    report(&f, "plain", MPI_Wtime() - start, arguments.iterations);
    MPI_Type_free(&edges.column);
    MPI_Type_free(&edges.row);
    free(f.now);
    free(f.next);
    MPI_Finalize();
    return 0;
}
