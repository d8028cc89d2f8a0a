/* Does placing by traffic pay? Predicted total time of messages of five communication patterns on
 * the PUs that each priority chooses: rank order, the greedy placer, Scotch. The ranks are numbered
 * as programs number them, and once at random, as when a batch system deals them out.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/mapper/cluster.h"
#include "mapper/map.h"
#include "mapper/traffic/traffic.h"
#include "profile/base/clock.h"

#define RANKS 64
#define BYTES 65536.0
#define RANDOM_EDGES_PER_RANK 4
#define MOST_EDGES (RANKS * RANKS)

struct pattern {
    uint32_t from[MOST_EDGES], to[MOST_EDGES];
    double bytes[MOST_EDGES];
    size_t count;
    uint32_t number[RANKS]; /* of a rank, when they are shuffled */
};

static uint64_t state = 1;

static uint32_t below(uint32_t limit)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33) % limit;
}

static void add(struct pattern *p, uint32_t a, uint32_t b)
{
    p->from[p->count] = p->number[a];
    p->to[p->count] = p->number[b];
    p->bytes[p->count++] = BYTES;
}

static void grid(struct pattern *p, uint32_t x, uint32_t y, uint32_t z)
{
    for (uint32_t i = 0; i < x * y * z; i++) {
        if (i % x + 1 < x) {
            add(p, i, i + 1);
        }
        if (i / x % y + 1 < y) {
            add(p, i, i + x);
        }
        if (i / (x * y) + 1 < z) {
            add(p, i, i + x * y);
        }
    }
}

static void ring(struct pattern *p)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        add(p, r, (r + 1) % RANKS);
    }
}

static void grid_2d(struct pattern *p)
{
    grid(p, 8, 8, 1);
}

static void grid_3d(struct pattern *p)
{
    grid(p, 4, 4, 4);
}

static void all_to_all(struct pattern *p)
{
    for (uint32_t a = 0; a < RANKS; a++) {
        for (uint32_t b = 0; b < a; b++) {
            add(p, a, b);
        }
    }
}

static void random_graph(struct pattern *p)
{
    for (uint32_t i = 0; i < RANKS * RANDOM_EDGES_PER_RANK; i++) {
        add(p, below(RANKS), below(RANKS));
    }
}

static const struct {
    const char *name;
    void (*fill)(struct pattern *);
} patterns[] = {{"ring", ring},
                {"2-D stencil", grid_2d},
                {"3-D stencil", grid_3d},
                {"all-to-all", all_to_all},
                {"random graph", random_graph}};

static void number_ranks(struct pattern *p, bool shuffled)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        p->number[r] = r;
    }
    for (uint32_t r = RANKS; shuffled && r > 1; r--) {
        uint32_t other = below(r), kept = p->number[r - 1];
        p->number[r - 1] = p->number[other];
        p->number[other] = kept;
    }
}

static int compare(const struct servet_profile *profile, enum map_priority priority,
                   const char *name, const struct pattern *p, bool shuffled)
{
    struct map_matrix matrix;
    struct map_view view;
    uint32_t leaves[RANKS], placed[RANKS];
    struct map_request request = {.priority = priority, .workers = RANKS};
    if (map_matrix_make(RANKS, p->from, p->to, p->bytes, p->count, &matrix) < 0 ||
        map_workers(profile, &request, leaves, NULL, NULL) < 0 ||
        map_view_make(profile, priority, RANKS, &view, NULL) < 0) {
        fprintf(stderr, "stencils: cannot map\n");
        return 1;
    }
    for (size_t r = 0; r < RANKS; r++) {
        leaves[r] = map_view_leaf(&view, leaves[r]);
    }
    printf("%-14s %-13s %-8s", name, priority == MAP_MEMORY ? "memory" : "communication",
           shuffled ? "shuffled" : "natural");
    double first = 0;
    for (enum map_placer placer = 0; placer < MAP_PLACERS; placer++) {
        double seconds;
        double start = profile_now_s();
        if (!map_placer_built(placer) ||
            map_place_ranks(&view, placer, &matrix, leaves, placed, &seconds) < 0) {
            printf(" %16s", "-");
            continue;
        }
        double took = 1e3 * (profile_now_s() - start);
        first = placer == MAP_RANK_ORDER ? seconds : first;
        if (placer == MAP_RANK_ORDER) {
            printf(" %10.3f", seconds * 1e3);
        } else {
            printf(" %9.3f %4.0f%% %6.1f", seconds * 1e3, seconds / first * 100, took);
        }
    }
    printf("\n");
    map_view_free(&view);
    map_matrix_free(&matrix);
    return 0;
}

int main(void)
{
    /* Exactly as many PUs as ranks, where only the order counts, and twice as many. */
    int failed = 0;
    printf("%d ranks, %.0f bytes per edge; predicted total of all messages, ms (share of rank "
           "order, ms to compute)\n",
           RANKS, BYTES);
    for (uint32_t nodes = 4; nodes <= 8; nodes *= 2) {
        struct cluster_shape shape = {nodes, 2, 2, 2, 4};
        struct servet_profile *profile = bench_cluster_make(&shape);
        printf("\n%u nodes of 16 cores\n%-14s %-13s %-8s %10s %9s %12s %9s\n", nodes, "pattern",
               "priority", "numbering", "rank order", "greedy", "", "Scotch");
        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
            for (int shuffled = 0; shuffled < 2; shuffled++) {
                static struct pattern pattern;
                pattern.count = 0;
                number_ranks(&pattern, shuffled);
                patterns[i].fill(&pattern);
                failed |= compare(profile, MAP_MEMORY, patterns[i].name, &pattern, shuffled);
                failed |= compare(profile, MAP_COMMUNICATION, patterns[i].name, &pattern, shuffled);
            }
        }
        profile_free(profile);
    }
    return failed;
}
