/* One zone of the multi-zone kernel: an alternating-direction implicit step with a pentadiagonal
 * system along every line. */
#include "benchmarks/kernels/zone.h"

#include <stdlib.h>

#include "benchmarks/kernels/kernel.h"

/* Weights of one implicit step of u_t = D u_xx - E u_xxxx per direction: below 1/4, so that the
 * explicit coupling of zones (neighbours' values of the step before) stays stable. */
#define DIFFUSION 0.2
#define DISSIPATION 0.05

/* Solves (I - D d2 + E d4) x = f along one line of n points `step` apart, for all components at
 * once; end points keep their values, the points next to them have no fourth difference. `w` is
 * scratch of 2 n. */
static void solve_line(double *u, size_t n, size_t step, double *w)
{
    double *upper = w, *farther = w + n; /* the two superdiagonals left by the elimination */
    upper[0] = farther[0] = 0.0;
    for (size_t i = 1; i < n; i++) {
        double far = i >= 2 && i + 2 < n ? DISSIPATION : 0.0;
        double near = -DIFFUSION - 4.0 * far, middle = 1.0 + 2.0 * DIFFUSION + 6.0 * far;
        if (i == n - 1) {
            near = 0.0;
            middle = 1.0;
        }
        /* subtract far x row i-2 and then what is left below the diagonal x row i-1 */
        double left = near - (far > 0.0 ? far * upper[i - 2] : 0.0);
        double pivot =
            1.0 / (middle - (far > 0.0 ? far * farther[i - 2] : 0.0) - left * upper[i - 1]);
        upper[i] = (near - left * farther[i - 1]) * pivot;
        farther[i] = far * pivot;
        for (size_t c = 0; c < ZONE_COMPONENTS; c++) {
            double f = u[i * step + c] - left * u[(i - 1) * step + c];
            if (far > 0.0) {
                f -= far * u[(i - 2) * step + c];
            }
            u[i * step + c] = f * pivot;
        }
    }
    for (size_t i = n - 1; i-- > 1;) {
        for (size_t c = 0; c < ZONE_COMPONENTS; c++) {
            double far = i + 2 < n ? farther[i] * u[(i + 2) * step + c] : 0.0;
            u[i * step + c] -= upper[i] * u[(i + 1) * step + c] + far;
        }
    }
}

void zone_step(struct zone *zone)
{
    size_t nx = zone->nx, ny = zone->ny, nz = zone->nz;
    size_t longest = nx > ny ? (nx > nz ? nx : nz) : (ny > nz ? ny : nz);
#pragma omp parallel
    {
        double *work = malloc(2 * longest * sizeof *work);
#pragma omp for schedule(static)
        for (size_t z = 1; z < nz - 1; z++) {
            for (size_t y = 1; y < ny - 1; y++) {
                solve_line(zone->u + zone_at(zone, z, y, 0), nx, ZONE_COMPONENTS, work);
            }
            for (size_t x = 1; x < nx - 1; x++) {
                solve_line(zone->u + zone_at(zone, z, 0, x), ny, nx * ZONE_COMPONENTS, work);
            }
        }
#pragma omp for schedule(static)
        for (size_t y = 1; y < ny - 1; y++) {
            for (size_t x = 1; x < nx - 1; x++) {
                solve_line(zone->u + zone_at(zone, 0, y, x), nz, nx * ny * ZONE_COMPONENTS, work);
            }
        }
        free(work);
    }
}
