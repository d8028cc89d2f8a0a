/* MZ: a multi-zone solver in the manner of SP-MZ (NPB Multi-Zone, NAS-03-010): the mesh is cut into
 * zones, each rank has some of them, a step of every zone is independent of the others (threads
 * work inside a zone), and after it zones exchange the faces that they overlap in. Mesh sizes and
 * zones of the classes are SP-MZ's; the equations are not (a linear model with the same scalar
 * pentadiagonal systems), so there are no published values for it.
 *
 * A linear function of place is a steady state of the equations, whatever the zones: the solver
 * starts with that plus a disturbance, must bring the disturbance down, and must end on the same
 * value, to the last digit printed, for any number of ranks and threads (the tests compare
 * them). */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/nas_random.h"
#include "benchmarks/kernels/par.h"

const char kernel_name[] = "MZ";

/* -- zones -- */

/* One zone of the multi-zone kernel: a block of nx x ny x nz points, whose values move by an
 * alternating-direction implicit step with fourth-order dissipation: one scalar pentadiagonal
 * system along every line of every direction. */

#define ZONE_COMPONENTS 5 /* as many as the Navier-Stokes equations have */

struct zone {
    size_t nx, ny, nz;
    /* [nz][ny][nx][ZONE_COMPONENTS]; the outermost x and y layers belong to neighbours */
    double *u;
};

static inline size_t zone_at(const struct zone *zone, size_t z, size_t y, size_t x)
{
    return ((z * zone->ny + y) * zone->nx + x) * ZONE_COMPONENTS;
}

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

static void zone_step(struct zone *zone)
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

/* -- the kernel -- */

#define SEED UINT64_C(314159265)

static const struct problem {
    size_t zones_x, zones_y, nx, ny, nz;
    int steps;
} problems[] = {{2, 2, 24, 24, 6, 100},
                {4, 4, 64, 64, 8, 400},
                {4, 4, 128, 128, 16, 400},
                {8, 8, 304, 208, 17, 400}};

struct mesh {
    const struct problem *what;
    size_t zones;
    struct zone *zone; /* all; u is NULL in those of other ranks */
    size_t *owner;
    size_t *offset; /* per zone and side: its face's place in the gathered buffer, in doubles */
    size_t *parts;  /* bytes where each rank's faces start in the gathered buffer */
    double *faces;  /* all faces of all zones, by rank */
};

enum side { WEST, EAST, SOUTH, NORTH, SIDES };

static size_t face_size(const struct zone *zone, enum side side)
{
    return zone->nz * (side == WEST || side == EAST ? zone->ny : zone->nx) * ZONE_COMPONENTS;
}

/* Steady state of component c at a place of the whole mesh. */
static double steady(size_t x, size_t y, size_t z, size_t c)
{
    return (double)(c + 1) * (1.0 + 0.01 * (double)x + 0.02 * (double)y + 0.03 * (double)z);
}

/* First inner point of part i of n points cut into `parts`. */
static size_t cut(size_t n, size_t parts, size_t i)
{
    return n * i / parts;
}

static void place_of(const struct mesh *mesh, size_t index, size_t *x0, size_t *y0)
{
    *x0 = cut(mesh->what->nx, mesh->what->zones_x, index % mesh->what->zones_x);
    *y0 = cut(mesh->what->ny, mesh->what->zones_y, index / mesh->what->zones_x);
}

/* Zones have one layer more on each x and y side: the neighbour's, or the edge of the mesh. */
static void shape_zone(struct mesh *mesh, size_t index)
{
    size_t column = index % mesh->what->zones_x, row = index / mesh->what->zones_x;
    struct zone *zone = &mesh->zone[index];
    zone->nx = cut(mesh->what->nx, mesh->what->zones_x, column + 1) -
               cut(mesh->what->nx, mesh->what->zones_x, column) + 2;
    zone->ny = cut(mesh->what->ny, mesh->what->zones_y, row + 1) -
               cut(mesh->what->ny, mesh->what->zones_y, row) + 2;
    zone->nz = mesh->what->nz;
    mesh->owner[index] = index * par_size() / mesh->zones;
}

static bool inner(const struct mesh *mesh, size_t x, size_t y, size_t z)
{
    return x >= 1 && x <= mesh->what->nx && y >= 1 && y <= mesh->what->ny && z >= 1 &&
           z + 1 < mesh->what->nz;
}

static void fill_zone(struct mesh *mesh, size_t index)
{
    struct zone *zone = &mesh->zone[index];
    size_t x0, y0, row_numbers = mesh->what->nx + 2;
    place_of(mesh, index, &x0, &y0);
    zone->u = kernel_memory(zone->nx * zone->ny * zone->nz, ZONE_COMPONENTS * sizeof(double));
    for (size_t z = 0; z < zone->nz; z++) {
        for (size_t y = 0; y < zone->ny; y++) {
            for (size_t x = 0; x < zone->nx; x++) {
                size_t place = (z * (mesh->what->ny + 2) + y0 + y) * row_numbers + x0 + x;
                uint64_t state = nas_jump(SEED, place * ZONE_COMPONENTS);
                for (size_t c = 0; c < ZONE_COMPONENTS; c++) {
                    double disturbance = nas_next(&state) - 0.5;
                    zone->u[zone_at(zone, z, y, x) + c] =
                        steady(x0 + x, y0 + y, z, c) +
                        (inner(mesh, x0 + x, y0 + y, z) ? disturbance : 0.0);
                }
            }
        }
    }
}

static void plan_faces(struct mesh *mesh)
{
    size_t next = 0;
    for (size_t rank = 0, index = 0; rank < par_size(); rank++) {
        mesh->parts[rank] = next * sizeof(double);
        for (; index < mesh->zones && mesh->owner[index] == rank; index++) {
            for (enum side side = WEST; side < SIDES; side++) {
                mesh->offset[index * SIDES + side] = next;
                next += face_size(&mesh->zone[index], side);
            }
        }
    }
    mesh->parts[par_size()] = next * sizeof(double);
    mesh->faces = kernel_memory(next, sizeof(double));
}

/* Copies layer `layer` of a zone's side to or from `face`: 1 is what a neighbour needs, 0 is what
 * it sends. */
static void copy_face(struct zone *zone, enum side side, size_t layer, double *face, bool take)
{
    bool along_y = side == WEST || side == EAST;
    size_t length = along_y ? zone->ny : zone->nx, x = 0, y = 0;
    for (size_t z = 0; z < zone->nz; z++) {
        for (size_t i = 0; i < length; i++, face += ZONE_COMPONENTS) {
            x = along_y ? (side == WEST ? layer : zone->nx - 1 - layer) : i;
            y = along_y ? i : (side == SOUTH ? layer : zone->ny - 1 - layer);
            double *there = zone->u + zone_at(zone, z, y, x);
            memcpy(take ? face : there, take ? there : face, ZONE_COMPONENTS * sizeof *face);
        }
    }
}

/* The zone at `side` of zone `index`, or SIZE_MAX at the edge of the mesh. */
static size_t neighbour(const struct mesh *mesh, size_t index, enum side side)
{
    size_t column = index % mesh->what->zones_x, row = index / mesh->what->zones_x;
    switch (side) {
    case WEST:
        return column > 0 ? index - 1 : SIZE_MAX;
    case EAST:
        return column + 1 < mesh->what->zones_x ? index + 1 : SIZE_MAX;
    case SOUTH:
        return row > 0 ? index - mesh->what->zones_x : SIZE_MAX;
    default:
        return row + 1 < mesh->what->zones_y ? index + mesh->what->zones_x : SIZE_MAX;
    }
}

static void exchange_faces(struct mesh *mesh)
{
    static const enum side opposite[SIDES] = {EAST, WEST, NORTH, SOUTH};
    for (size_t i = 0; i < mesh->zones * SIDES; i++) {
        if (mesh->owner[i / SIDES] == par_rank()) {
            copy_face(&mesh->zone[i / SIDES], (enum side)(i % SIDES), 1,
                      mesh->faces + mesh->offset[i], true);
        }
    }
    par_gather_parts(mesh->faces, mesh->parts);
    for (size_t i = 0; i < mesh->zones * SIDES; i++) {
        enum side side = (enum side)(i % SIDES);
        size_t from = neighbour(mesh, i / SIDES, side);
        if (mesh->owner[i / SIDES] == par_rank() && from != SIZE_MAX) {
            copy_face(&mesh->zone[i / SIDES], side, 0,
                      mesh->faces + mesh->offset[from * SIDES + opposite[side]], false);
        }
    }
}

static double zone_disturbance(const struct mesh *mesh, size_t index)
{
    const struct zone *zone = &mesh->zone[index];
    size_t x0, y0;
    place_of(mesh, index, &x0, &y0);
    double sum = 0.0;
    for (size_t z = 0; z < zone->nz; z++) {
        for (size_t y = 1; y + 1 < zone->ny; y++) {
            for (size_t x = 1; x + 1 < zone->nx; x++) {
                for (size_t c = 0; c < ZONE_COMPONENTS; c++) {
                    double d = zone->u[zone_at(zone, z, y, x) + c] - steady(x0 + x, y0 + y, z, c);
                    sum += d * d;
                }
            }
        }
    }
    return sum;
}

/* Root mean square distance from the steady state; zones are added up in their order, whoever has
 * them, so that the sum is the same to the last bit. */
static double disturbance(const struct mesh *mesh)
{
    double *sums = kernel_memory(mesh->zones, sizeof *sums), total = 0.0;
    for (size_t index = 0; index < mesh->zones; index++) {
        if (mesh->owner[index] == par_rank()) {
            sums[index] = zone_disturbance(mesh, index);
        }
    }
    par_sum(sums, mesh->zones);
    for (size_t index = 0; index < mesh->zones; index++) {
        total += sums[index];
    }
    free(sums);
    return sqrt(total /
                (double)(mesh->what->nx * mesh->what->ny * mesh->what->nz * ZONE_COMPONENTS));
}

static void make(struct mesh *mesh, const struct problem *what)
{
    *mesh = (struct mesh){.what = what, .zones = what->zones_x * what->zones_y};
    mesh->zone = kernel_memory(mesh->zones, sizeof *mesh->zone);
    mesh->owner = kernel_memory(mesh->zones, sizeof *mesh->owner);
    mesh->offset = kernel_memory(mesh->zones * SIDES, sizeof *mesh->offset);
    mesh->parts = kernel_memory(par_size() + 1, sizeof *mesh->parts);
    for (size_t index = 0; index < mesh->zones; index++) {
        shape_zone(mesh, index);
        if (mesh->owner[index] == par_rank()) {
            fill_zone(mesh, index);
        }
    }
    plan_faces(mesh);
}

static void drop(struct mesh *mesh)
{
    for (size_t index = 0; index < mesh->zones; index++) {
        free(mesh->zone[index].u);
    }
    free(mesh->zone);
    free(mesh->owner);
    free(mesh->offset);
    free(mesh->parts);
    free(mesh->faces);
}

static void step(struct mesh *mesh)
{
    exchange_faces(mesh);
    for (size_t index = 0; index < mesh->zones; index++) {
        if (mesh->owner[index] == par_rank()) {
            zone_step(&mesh->zone[index]);
        }
    }
}

bool kernel_run(char problem, struct kernel_result *result, const char **reason)
{
    const struct problem *what = &problems[kernel_class_index(problem)];
    *reason = "expected no more ranks than zones";
    if (par_size() > what->zones_x * what->zones_y) {
        return false;
    }
    struct mesh mesh;
    make(&mesh, what);
    double before = disturbance(&mesh);
    par_barrier();
    double start = par_seconds();
    for (int i = 0; i < what->steps; i++) {
        step(&mesh);
    }
    result->seconds = par_seconds() - start;
    double after = disturbance(&mesh), slowest = result->seconds;
    par_maximum(&slowest, 1);
    if (par_rank() == 0) {
        printf("%-14s %.15e at the start, %.15e at the end\n", "disturbance", before, after);
    }
    result->rate = what->steps * (double)(what->nx * what->ny * what->nz) / slowest * 1e-6;
    result->unit = "M points/s";
    result->verified = after < 0.05 * before; /* NaN is not */
    result->checked = "the disturbance dies out (a model of SP-MZ: no published values)";
    drop(&mesh);
    return true;
}
