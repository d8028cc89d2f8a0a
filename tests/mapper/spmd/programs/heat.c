/* Heat transfer in two dimensions, explicit: every task gives part of its warmth to its four
 * neighbours. */
#include "tests/mapper/spmd/programs/field.h"

const char kernel_name[] = "heat";
const int kernel_dimensions = 2;

static const double conductivity =
    0.2; /* times step of time over square of space; stable up to 0.25 */

double kernel_start(double x, double y)
{
    double dx = x - 100, dy = y - 50;
    return x < 0 ? 20 : 20 + 500 / (1 + 0.01 * (dx * dx + dy * dy));
}

void kernel_compute(const struct field *f, size_t x0, size_t x1, size_t y0, size_t y1)
{
    for (size_t y = y0 + f->halo_y; y < y1 + f->halo_y; y++) {
        const double *now = f->now + y * f->stride;
        const double *below = now - f->stride, *above = now + f->stride;
        double *next = f->next + y * f->stride;
        for (size_t x = x0 + f->halo_x; x < x1 + f->halo_x; x++) {
            double around = now[x - 1] + now[x + 1] + below[x] + above[x];
            next[x] = now[x] + conductivity * (around - 4 * now[x]);
        }
    }
}
