/* The wave equation in one dimension: `next` still holds the step before `now` when it is
 * overwritten. */
#include "tests/mapper/spmd/programs/field.h"

const char kernel_name[] = "wave";
const int kernel_dimensions = 1;

static const double courant_squared =
    0.25; /* of speed times step of time over step of space; stable up to 1 */

double kernel_start(double x, double y)
{
    (void)y;
    return x < 0 ? 0 : 1 / (1 + 0.0001 * (x - 300) * (x - 300));
}

void kernel_compute(const struct field *f, size_t x0, size_t x1, size_t y0, size_t y1)
{
    const double *now = f->now;
    double *next = f->next;
    for (size_t x = x0 + f->halo_x; y0 < y1 && x < x1 + f->halo_x; x++) {
        next[x] = 2 * now[x] - next[x] + courant_squared * (now[x - 1] - 2 * now[x] + now[x + 1]);
    }
}
