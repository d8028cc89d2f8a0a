/* The simulation of grid.c: one clock a process, one interface a node. */
#include "mapper/spmd/spmd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "profile/base/random.h"
#include "profile/query.h"

struct link {
    int64_t to;
    double seconds; /* of the message, alone */
    bool off_node;
    uint32_t node; /* of the sender */
    uint32_t node_to;
};

struct world {
    uint64_t ranks;
    size_t directions;
    struct link *links;    /* [rank * directions + d] */
    double *clock, *ready; /* ready: when the last of its messages is there */
    double *interface;     /* by node: when it is free again */
    const struct spmd_simulation *simulation;
    struct random random;
};

static uint32_t node_of(const struct servet_profile *profile, uint32_t pu)
{
    struct profile_place place = {0};
    return profile_locate(profile, pu, &place) ? place.node : 0;
}

static void make_links(const struct servet_profile *profile, const struct spmd_problem *problem,
                       const struct spmd_tile *tile, const struct spmd_grid *grid,
                       struct world *world)
{
    struct spmd_direction directions[SPMD_DIRECTIONS];
    spmd_directions(&problem->stencil, directions);
    for (uint64_t r = 0; r < world->ranks; r++) {
        for (size_t d = 0; d < world->directions; d++) {
            struct link *link = &world->links[r * world->directions + d];
            double tasks = (double)spmd_edge_tasks(&problem->stencil, tile, directions[d]);
            *link = (struct link){.to = spmd_neighbour(grid, r, directions[d])};
            if (link->to < 0) {
                continue;
            }
            struct profile_link way;
            spmd_layer(profile, grid->pus[r], grid->pus[link->to], &way);
            link->node = node_of(profile, grid->pus[r]);
            link->node_to = node_of(profile, grid->pus[link->to]);
            link->off_node = link->node != link->node_to;
            link->seconds =
                way.layer ? profile_message_seconds(way.layer, way.communication->message_bytes,
                                                    tasks * problem->bytes)
                          : 0;
            if (world->simulation->comm_s > 0) {
                link->seconds = tasks * world->simulation->comm_s;
            }
        }
    }
}

/* When a message that is handed over at `start` is there. Only the part beyond the latency of the
 * first byte would really keep the interface busy; a layer's curve does not tell the two apart, so
 * half of the message does. */
static double deliver(struct world *world, const struct link *link, double start)
{
    if (!link->off_node) {
        return start + link->seconds;
    }
    double busy = link->seconds / 2;
    double *out = &world->interface[link->node];
    start = fmax(start, *out);
    *out = start + busy;
    return start + link->seconds;
}

static double computing(struct world *world, double seconds)
{
    return seconds * (1 + world->simulation->noise * random_unit(&world->random));
}

static void planned_iteration(struct world *world, const struct spmd_times *times)
{
    for (uint64_t r = 0; r < world->ranks; r++) {
        world->clock[r] += computing(world, times->edge_s);
        world->ready[r] = 0;
    }
    for (size_t d = 0; d < world->directions; d++) {
        for (uint64_t r = 0; r < world->ranks; r++) {
            const struct link *link = &world->links[r * world->directions + d];
            if (link->to >= 0) {
                world->ready[link->to] =
                    fmax(world->ready[link->to], deliver(world, link, world->clock[r]));
            }
        }
    }
    for (uint64_t r = 0; r < world->ranks; r++) {
        world->clock[r] =
            fmax(world->clock[r] + computing(world, times->internal_s), world->ready[r]);
    }
}

static void plain_iteration(struct world *world, const struct spmd_times *times)
{
    for (uint64_t r = 0; r < world->ranks; r++) {
        world->clock[r] += computing(world, times->compute_s);
    }
    for (size_t d = 0; d < world->directions;
         d++) { /* one neighbour after the other: everybody waits for it */
        for (uint64_t r = 0; r < world->ranks; r++) {
            world->ready[r] = world->clock[r];
        }
        for (uint64_t r = 0; r < world->ranks; r++) {
            const struct link *link = &world->links[r * world->directions + d];
            if (link->to >= 0) {
                double there = deliver(world, link, world->clock[r]);
                world->ready[link->to] = fmax(world->ready[link->to], there);
                world->ready[r] =
                    fmax(world->ready[r], there); /* a blocking exchange holds the sender too */
            }
        }
        for (uint64_t r = 0; r < world->ranks; r++) {
            world->clock[r] = world->ready[r];
        }
    }
}

static double latest(const struct world *world)
{
    double last = 0;
    for (uint64_t r = 0; r < world->ranks; r++) {
        last = fmax(last, world->clock[r]);
    }
    return last;
}

int spmd_simulate(const struct servet_profile *profile, const struct spmd_problem *problem,
                  const struct spmd_tile *tile, const struct spmd_grid *grid,
                  const struct spmd_simulation *simulation, double *iteration_s)
{
    struct spmd_direction unused[SPMD_DIRECTIONS];
    struct world world = {
        .ranks = grid->n * grid->m, .simulation = simulation, .random = {simulation->seed}};
    struct spmd_times times = spmd_predict(problem, tile, 0);
    world.directions = spmd_directions(&problem->stencil, unused);
    world.links = calloc(world.ranks * world.directions, sizeof *world.links);
    world.clock = calloc(world.ranks, sizeof *world.clock);
    world.ready = calloc(world.ranks, sizeof *world.ready);
    world.interface = calloc(profile_node_count(profile), sizeof *world.interface);
    int rc = world.links && world.clock && world.ready && world.interface ? 0 : -ENOMEM;
    if (rc == 0) {
        make_links(profile, problem, tile, grid, &world);
        for (uint32_t i = 0; i < simulation->iterations; i++) {
            if (simulation->planned) {
                planned_iteration(&world, &times);
            } else {
                plain_iteration(&world, &times);
            }
        }
        *iteration_s = latest(&world) / simulation->iterations;
    }
    free(world.links);
    free(world.clock);
    free(world.ready);
    free(world.interface);
    return rc;
}
