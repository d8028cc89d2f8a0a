/* The plan of servet-spmd: edge tasks first, internal tasks while the edges travel. The plan
 * ($SERVET_SPMD_PLAN) says how large the problem is and how it is cut. */
#include <stdlib.h>

#include "mapper/spmd/library/servet_spmd.h"
#include "tests/mapper/spmd/programs/field.h"

static void compute(void *context, const struct servet_spmd_box *box)
{
    kernel_compute(context, box->x0, box->x1, box->y0, box->y1);
}

int main(int argc, char **argv)
{
    servet_spmd *plan;
    char line[512];
    MPI_Init(&argc, &argv);
    struct arguments arguments = read_arguments(argc, argv);
    if (servet_spmd_open(NULL, MPI_COMM_WORLD, sizeof(double), &plan, line, sizeof line) < 0) {
        stop("%s", line);
    }
    const struct servet_spmd_layout *t = servet_spmd_layout(plan);
    if (t->left != 1 || t->right != 1 || t->up != t->down ||
        t->up != (kernel_dimensions == 1 ? 0 : 1)) {
        stop("the plan is for another stencil, expected %s",
             kernel_dimensions == 1 ? "1d3" : "2d5");
    }
    struct field f = {.problem_x = t->problem_x,
                      .problem_y = t->problem_y,
                      .n = t->n,
                      .m = t->m,
                      .i = t->i,
                      .j = t->j,
                      .x = t->x,
                      .y = t->y,
                      .halo_x = t->left,
                      .halo_y = t->up};
    make_field(&f);
    servet_spmd_exchange(plan, f.now);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long k = 0; k < arguments.iterations; k++) {
        servet_spmd_step(plan, f.next, compute, &f);
        swap(&f);
    }
    report(&f, "planned", MPI_Wtime() - start, arguments.iterations);
    servet_spmd_close(plan);
    free(f.now);
    free(f.next);
    MPI_Finalize();
    return 0;
}
