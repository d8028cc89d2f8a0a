/* Equations (1) to (5) and the search over tiles: see spmd.h. */
#include "mapper/spmd/spmd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/cli.h"
#include "profile/scope.h"

/* A halo wider than this is no stencil any more. */
#define REACH_MAX 1024

/* -- stencil -- */

static const struct {
    const char *name;
    struct spmd_stencil stencil;
} named[] = {
    {"1d3", {.left = 1, .right = 1}},
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
    t.speedup = t.compute_s * (double)t.cores / t.iteration_s;
    t.efficiency = t.speedup / (double)t.cores;
    return t;
}

uint64_t spmd_longest_edge(const struct spmd_stencil *stencil, const struct spmd_tile *tile)
{
    struct spmd_direction directions[SPMD_DIRECTIONS];
    size_t count = spmd_directions(stencil, directions);
    uint64_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        bool along_x = directions[i].dx && tile->n == 1, along_y = directions[i].dy && tile->m == 1;
        uint64_t tasks = along_x || along_y ? 0 : spmd_edge_tasks(stencil, tile, directions[i]);
        longest = tasks > longest ? tasks : longest;
    }
    return longest;
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

struct spmd_choice *spmd_curve(const struct spmd_planner *p, uint64_t cores_max, size_t *count)
{
    const struct spmd_problem *problem = &p->options.problem;
    struct spmd_choice *best = cli_needed(calloc(cores_max + 1, sizeof *best)), choice;
    *count = 0;
    for (uint64_t n = 1; n <= cores_max && n <= problem->x; n++) {
        for (uint64_t m = 1; n * m <= cores_max && m <= problem->y; m++) {
            if (spmd_tile_of_grid(problem, n, m, &choice.tile) < 0) {
                continue;
            }
            choice.times = spmd_predict(problem, &choice.tile, spmd_comm(p, &choice.tile));
            if (!best[n * m].times.cores || faster(&choice, &best[n * m])) {
                best[n * m] = choice;
            }
        }
    }
    for (uint64_t cores = 1; cores <= cores_max; cores++) {
        if (best[cores].times.cores) {
            best[(*count)++] = best[cores];
        }
    }
    return best;
}

static struct spmd_choice of_tile(const struct spmd_planner *p)
{
    const struct spmd_options *o = &p->options;
    struct spmd_choice choice;
    uint64_t n = o->problem.x / o->tile_x, m = o->problem.y / o->tile_y;
    if (n * m > p->allowed.count) {
        cli_usage("--tile: expected one for at most %zu cores (the PUs of the profile), this one "
                  "needs %llu",
                  p->allowed.count, (ull)(n * m));
    }
    if (spmd_tile_of_grid(&o->problem, n, m, &choice.tile) < 0) {
        cli_usage(
            "--tile: expected one that is not thinner than the stencil reaches, got %llu x %llu",
            (ull)o->tile_x, (ull)o->tile_y);
    }
    choice.times = spmd_predict(&o->problem, &choice.tile, spmd_comm(p, &choice.tile));
    return choice;
}

/* The last of the curve that fits. False: none does. */
static bool choose_of_curve(const struct spmd_planner *p, struct spmd_choice *out)
{
    const uint64_t cores = p->options.cores;
    size_t count;
    FREED struct spmd_choice *curve = spmd_curve(p, cores ? cores : p->allowed.count, &count);
    while (count-- > 0) {
        const struct spmd_times *times = &curve[count].times;
        if (cores ? times->cores == cores : times->kept) {
            *out = curve[count];
            return true;
        }
    }
    return false;
}

struct spmd_choice spmd_choose(const struct spmd_planner *p)
{
    const struct spmd_options *o = &p->options;
    struct spmd_choice choice;
    if (o->tile_x) {
        return of_tile(p);
    }
    if (o->cores > p->allowed.count) {
        cli_usage("--cores: expected at most %zu (the PUs of the profile), got %llu",
                  p->allowed.count, (ull)o->cores);
    }
    if (choose_of_curve(p, &choice)) {
        return choice;
    }
    if (o->cores) {
        cli_usage("--cores: expected a number of processes whose grid divides the problem of %llu "
                  "x %llu, got %llu",
                  (ull)o->problem.x, (ull)o->problem.y, (ull)o->cores);
    }
    cli_fail("no tile: %s", strerror(ERANGE));
}
