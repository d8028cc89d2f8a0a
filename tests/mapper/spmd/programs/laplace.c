/* Laplace's equation in two dimensions by Jacobi's method: every task becomes the mean of its four
 * neighbours. */
#include "tests/mapper/spmd/programs/field.h"

const char kernel_name[] = "laplace";
const int kernel_dimensions = 2;

double kernel_start(double x, double y)
{
    return x < 0 ? 1 : 0.001 * (x - y);
}

void kernel_compute(const struct field *f, size_t x0, size_t x1, size_t y0, size_t y1)
{
    for (size_t y = y0 + f->halo_y; y < y1 + f->halo_y; y++) {
        const double *now = f->now + y * f->stride;
        const double *below = now - f->stride, *above = now + f->stride;
        double *next = f->next + y * f->stride;
        for (size_t x = x0 + f->halo_x; x < x1 + f->halo_x; x++) {
            next[x] = 0.25 * (now[x - 1] + now[x + 1] + below[x] + above[x]);
        }
    }
}
