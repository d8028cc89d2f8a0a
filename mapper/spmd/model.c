/* Equations (1) to (5) and the search over tiles: see spmd.h. */
#include "mapper/spmd/spmd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A halo wider than this is no stencil any more. */
#define REACH_MAX 1024

/* -- stencil -- */

static const struct {
    const char *name;
    struct spmd_stencil stencil;
} named[] = {
    {"1d3", {.left = 1, .right = 1, .one_dimension = true}},
    {"2d5", {.left = 1, .right = 1, .down = 1, .up = 1}},
    {"2d9", {.left = 1, .right = 1, .down = 1, .up = 1, .diagonal = true}},
};

static bool take_offset(const char **text, long *out)
{
    char *end;
    errno = 0;
    *out = strtol(*text, &end, 10);
    bool good = !errno && end != *text && *out >= -REACH_MAX && *out <= REACH_MAX;
    *text = end;
    return good;
}

static void reach(struct spmd_stencil *stencil, long dx, long dy)
{
    uint32_t *side = dx < 0 ? &stencil->left : &stencil->right;
    uint32_t far = (uint32_t)labs(dx);
    *side = far > *side ? far : *side;
    side = dy < 0 ? &stencil->down : &stencil->up;
    far = (uint32_t)labs(dy);
    *side = far > *side ? far : *side;
    stencil->diagonal |= dx && dy;
}

static int refuse_stencil(const char *text, struct servet_error *error)
{
    return profile_error(
        error, -EINVAL,
        "expected 1d3, 2d5, 2d9 or offsets dx:dy such as 1:0,-1:0,0:1,0:-1, got '%s'", text);
}

int spmd_stencil_parse(const char *text, struct spmd_stencil *out, struct servet_error *error)
{
    struct spmd_stencil stencil = {0};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        if (strcmp(text, named[i].name) == 0) {
            *out = named[i].stencil;
            return 0;
        }
    }
    for (const char *at = text;; at++) {
        long dx, dy;
        if (!take_offset(&at, &dx) || *at != ':' || (at++, !take_offset(&at, &dy)) ||
            (*at && *at != ',')) {
            return refuse_stencil(text, error);
        }
        reach(&stencil, dx, dy);
        if (!*at) {
            break;
        }
    }
    if (!(stencil.left || stencil.right || stencil.down || stencil.up)) {
        return refuse_stencil(text, error);
    }
    stencil.one_dimension = !stencil.down && !stencil.up;
    *out = stencil;
    return 0;
}

/* A process that reaches left is reached from its right: both know of each other, even if one of
 * them has nothing to send. */
static bool is_needed(const struct spmd_stencil *s, int dx, int dy)
{
    bool along_x = dx == 0 || s->left || s->right, along_y = dy == 0 || s->down || s->up;
    return (dx || dy) && along_x && along_y && (s->diagonal || !dx || !dy);
}

size_t spmd_directions(const struct spmd_stencil *stencil,
                       struct spmd_direction out[SPMD_DIRECTIONS])
{
    size_t count = 0;
    for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
            if (is_needed(stencil, dx, dy)) {
                out[count++] = (struct spmd_direction){dx, dy};
            }
        }
    }
    return count;
}

uint64_t spmd_edge_tasks(const struct spmd_stencil *s, const struct spmd_tile *tile,
                         struct spmd_direction d)
{
    uint64_t wide = d.dx == 0 ? tile->x : d.dx > 0 ? s->left : s->right;
    uint64_t high = d.dy == 0 ? tile->y : d.dy > 0 ? s->down : s->up;
    return wide * high;
}

/* -- equations -- */

int spmd_tile_of_grid(const struct spmd_problem *problem, uint64_t n, uint64_t m,
                      struct spmd_tile *out)
{
    const struct spmd_stencil *s = &problem->stencil;
    if (!n || !m || problem->x % n || problem->y % m) {
        return -EINVAL;
    }
    struct spmd_tile tile = {.x = problem->x / n, .y = problem->y / m, .n = n, .m = m};
    tile.nbx = n > 1 ? s->left + s->right : 0;
    tile.nby = m > 1 ? s->down + s->up : 0;
    bool reaches_too_far = (n > 1 && (tile.x < s->left || tile.x < s->right)) ||
                           (m > 1 && (tile.y < s->down || tile.y < s->up));
    if (reaches_too_far || tile.x < tile.nbx || tile.y < tile.nby) {
        return -EINVAL;
    }
    *out = tile;
    return 0;
}

struct spmd_times spmd_predict(const struct spmd_problem *problem, const struct spmd_tile *tile,
                               double comm_s)
{
    double all = (double)tile->x * (double)tile->y;
    double internal = (double)(tile->x - tile->nbx) * (double)(tile->y - tile->nby);
    struct spmd_times t = {.comm_s = comm_s, .cores = tile->n * tile->m};
    t.edge_s = (all - internal) * problem->comp_s;
    t.internal_s = internal * problem->comp_s;
    t.compute_s = t.edge_s + t.internal_s;
    t.kept = comm_s - t.internal_s <= t.internal_s * (1 - problem->efficiency);
    t.iteration_s = t.edge_s + (t.internal_s > comm_s ? t.internal_s : comm_s);
    t.serial_s = t.compute_s * (double)t.cores;
    t.speedup = t.serial_s / t.iteration_s;
    t.efficiency = t.speedup / (double)t.cores;
    return t;
}

double spmd_comm_per_task(void *context, const struct spmd_problem *problem,
                          const struct spmd_tile *tile)
{
    struct spmd_direction directions[SPMD_DIRECTIONS];
    size_t count = spmd_directions(&problem->stencil, directions);
    uint64_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        bool along_x = directions[i].dx && tile->n == 1, along_y = directions[i].dy && tile->m == 1;
        uint64_t tasks =
            along_x || along_y ? 0 : spmd_edge_tasks(&problem->stencil, tile, directions[i]);
        longest = tasks > longest ? tasks : longest;
    }
    return (double)longest * *(const double *)context;
}

/* -- search -- */

/* Times this close (relative) are those of tiles that all hide their communication, apart by
 * rounding. */
#define SAME_TIME 1e-9

/* Is `a` the better of two tiles for the same number of cores? The squarer one on ties: it sends
 * less. */
static bool faster(const struct spmd_choice *a, const struct spmd_choice *b)
{
    double difference = a->times.iteration_s - b->times.iteration_s;
    if (fabs(difference) > SAME_TIME * b->times.iteration_s) {
        return difference < 0;
    }
    return a->tile.x + a->tile.y < b->tile.x + b->tile.y;
}

int spmd_curve(const struct spmd_problem *problem, uint64_t cores_max, spmd_comm_function *comm,
               void *context, struct spmd_choice **out, size_t *count)
{
    struct spmd_choice *best = calloc(cores_max + 1, sizeof *best), choice;
    size_t kept = 0;
    if (!best) {
        return -ENOMEM;
    }
    for (uint64_t n = 1; n <= cores_max && n <= problem->x; n++) {
        for (uint64_t m = 1; n * m <= cores_max && m <= problem->y; m++) {
            if (spmd_tile_of_grid(problem, n, m, &choice.tile) < 0) {
                continue;
            }
            double comm_s = n * m > 1 ? comm(context, problem, &choice.tile) : 0;
            choice.times = spmd_predict(problem, &choice.tile, comm_s);
            if (!best[n * m].times.cores || faster(&choice, &best[n * m])) {
                best[n * m] = choice;
            }
        }
    }
    for (uint64_t cores = 1; cores <= cores_max; cores++) {
        if (best[cores].times.cores) {
            best[kept++] = best[cores];
        }
    }
    *out = best;
    *count = kept;
    return 0;
}

int spmd_choose(const struct spmd_problem *problem, uint64_t cores_max, bool exactly,
                spmd_comm_function *comm, void *context, struct spmd_choice *out)
{
    struct spmd_choice *curve;
    size_t count;
    int rc = spmd_curve(problem, cores_max, comm, context, &curve, &count);
    if (rc < 0) {
        return rc;
    }
    for (rc = -ERANGE; rc < 0 && count > 0; count--) {
        const struct spmd_times *times = &curve[count - 1].times;
        if (exactly ? times->cores == cores_max : times->kept) {
            *out = curve[count - 1];
            rc = 0;
        }
    }
    free(curve);
    return rc;
}
