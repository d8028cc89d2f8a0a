/* Do communication matrices improve placements? (How they are read, and a few by name:
 * golden/matrices.golden.) */
#include <stdio.h>

#include "mapper/map.h"
#include "mapper/traffic/traffic.h"
#include "profile/base/child.h"
#include "profile/scope.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/mapper/random_profile.h"
#include "tests/profile/fixture.h"

#define MOST 64

/* A matrix in which from[i] sends bytes[i] to to[i], through a file in memory. */
static void make_matrix(uint32_t ranks, const uint32_t *from, const uint32_t *to,
                        const double *bytes, size_t count, struct map_matrix *out)
{
    char path[32];
    struct servet_error error;
    int fd = profile_child_file();
    FILE *file = fdopen(fd, "w");
    fprintf(file, "%%%%MatrixMarket matrix coordinate real general\n%u %u %zu\n", ranks, ranks,
            count);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%u %u %.17g\n", from[i] + 1, to[i] + 1, bytes[i]);
    }
    fflush(file);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ck_assert_msg(map_matrix_read(path, out, &error) == 0, "%s", error.text);
    fclose(file);
}

static void number(uint32_t *leaves, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        leaves[i] = i;
    }
}

/* Each rank has a place of its own. */
static void assert_apart(const uint32_t *placed, uint32_t ranks)
{
    bool *used = kept(calloc(ranks, sizeof *used));
    for (uint32_t r = 0; r < ranks; r++) {
        ck_assert_msg(placed[r] < ranks && !used[placed[r]], "place %u twice", placed[r]);
        used[placed[r]] = true;
    }
}

#define MOST_IN_RING 600

/* A ring of ranks that are numbered at random. */
static void make_ring(uint32_t ranks, struct map_matrix *out)
{
    static uint32_t number[MOST_IN_RING], from[MOST_IN_RING], to[MOST_IN_RING];
    static double bytes[MOST_IN_RING];
    struct random random = {ranks};
    random_order(&random, number, ranks);
    for (uint32_t r = 0; r < ranks; r++) {
        bytes[r] = 1000;
        from[r] = number[r];
        to[r] = number[(r + 1) % ranks];
    }
    make_matrix(ranks, from, to, bytes, ranks, out);
}

/* Places a ring of two sizes of ranks, which alternate, by traffic. */
static void place_two_sizes(struct map_view *view, uint32_t ranks)
{
    static uint32_t threads[MOST_IN_RING], leaves[MOST_IN_RING], placed[MOST_IN_RING];
    uint32_t apart = MOST_IN_RING / ranks;
    struct map_traffic_seconds seconds;
    FREED_BY(map_matrix_free) struct map_matrix matrix;
    make_ring(ranks, &matrix);
    matrix.threads = threads;
    for (uint32_t r = 0; r < ranks; r++) {
        leaves[r] = r * apart;
        threads[r] = 1 + r % 2;
    }
    ck_assert_int_eq(map_place_ranks(view, &matrix, leaves, placed, &seconds), 0);
    assert_apart(placed, ranks);
    for (uint32_t r = 0; r < ranks; r++) {
        ck_assert_uint_eq(threads[placed[r]], threads[r]);
    }
    ck_assert_msg(seconds.greedy < 0.9 * seconds.in_order, "%u: %g, rank order %g", ranks,
                  seconds.greedy, seconds.in_order);
}

/* For few ranks, where all pairs are tried, and for many. */
TEST(no_rank_takes_a_region_of_another_size)
{
    static const uint32_t counts[] = {12, 200, MOST_IN_RING};
    struct servet_profile *profile = described("package:4 [numa] l3:10 core:15 pu:1");
    FREED_BY(map_view_free) struct map_view view;
    ck_assert_int_eq(map_view_make(profile, MAP_MEMORY, 1, &view, NULL), 0);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        place_two_sizes(&view, counts[i]);
    }
}

/* As the profile says it, pair by pair; `placed` NULL: in rank order. */
static double sum_of_pairs(const struct map_view *view, const struct map_matrix *matrix,
                           const uint32_t *placed)
{
    double sum = 0;
    for (uint32_t r = 0; r < matrix->ranks; r++) {
        for (size_t e = matrix->start[r]; e < matrix->start[r + 1]; e++) {
            const uint32_t to = matrix->entries[e].to;
            sum += map_message_seconds(view, placed ? placed[r] : r, placed ? placed[to] : to,
                                       matrix->entries[e].bytes) /
                   2;
        }
    }
    return sum;
}

TEST(each_rank_gets_a_pu_of_its_own_and_none_is_worse_off_than_in_rank_order)
{
    for (uint64_t seed = 1; seed < 300; seed++) {
        struct random random = {seed * 0x9e3779b97f4a7c15ull};
        struct servet_profile *profile = random_profile(&random, seed % 2);
        struct map_view view;
        ck_assert_int_eq(map_view_make(profile, MAP_MEMORY, 100, &view, NULL), 0);
        uint32_t ranks = view.leaf_count, from[MOST], to[MOST], leaves[MOST], placed[MOST];
        double bytes[MOST];
        size_t edges = random_number(&random, MOST);
        for (size_t e = 0; e < edges; e++) {
            from[e] = random_number(&random, ranks);
            to[e] = random_number(&random, ranks);
            bytes[e] = random_number(&random, 1000);
        }
        number(leaves, ranks);
        struct map_matrix matrix;
        make_matrix(ranks, from, to, bytes, edges, &matrix);
        struct map_traffic_seconds seconds;
        ck_assert_int_eq(map_place_ranks(&view, &matrix, leaves, placed, &seconds), 0);
        const double in_order = sum_of_pairs(&view, &matrix, NULL),
                     sum = sum_of_pairs(&view, &matrix, placed);
        ck_assert_double_eq_tol(seconds.in_order, in_order, 1e-9 * in_order + 1e-15);
        ck_assert_double_eq_tol(seconds.greedy < seconds.in_order ? seconds.greedy
                                                                  : seconds.in_order,
                                sum, 1e-9 * sum + 1e-15);
        assert_apart(placed, ranks);
        ck_assert_double_le(seconds.greedy, seconds.in_order * (1 + 1e-9));
        map_matrix_free(&matrix);
        map_view_free(&view);
        profile_free(profile);
    }
}

/* A grid of SIDE x SIDE ranks, at most 64, whose numbers are shuffled. */
static void make_shuffled_grid(struct random *random, uint32_t side, double size,
                               struct map_matrix *out)
{
    enum { MOST_RANKS = 64 * 64 };
    static uint32_t number[MOST_RANKS], from[2 * MOST_RANKS], to[2 * MOST_RANKS];
    static double bytes[2 * MOST_RANKS];
    const uint32_t ranks = side * side;
    size_t edges = 0;
    random_order(random, number, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        uint32_t beside[] = {i % side + 1 < side ? i + 1 : i, i + side < ranks ? i + side : i};
        for (size_t n = 0; n < 2; n++) {
            from[edges] = number[i];
            to[edges] = number[beside[n]];
            bytes[edges++] = size;
        }
    }
    make_matrix(ranks, from, to, bytes, edges, out);
}

/* A shuffled grid of 4,096 ranks on 512 nodes of 8: cut level by level it is much better than as it
 * came, and each rank has a place of its own. */
TEST(thousands_of_ranks_are_cut_level_by_level)
{
    enum { SIDE = 64, RANKS = SIDE * SIDE };
    struct run larger =
        run_command("sed -e '/\"nodes\"/s/8/512/g' -e '/\"network\"/,$s/0-7/0-511/' " FIXTURES
                    "/nehalem-8-nodes.json");
    static uint32_t leaves[RANKS], placed[RANKS];
    struct random random = {7};
    number(leaves, RANKS);
    FREED_BY(map_matrix_free) struct map_matrix matrix;
    FREED_BY(map_view_free) struct map_view view;
    struct servet_profile *profile = parsed(larger.out);
    make_shuffled_grid(&random, SIDE, 8192, &matrix);
    ck_assert_int_eq(map_view_make(profile, MAP_MEMORY, 1, &view, NULL), 0);
    static uint32_t again[RANKS];
    struct map_traffic_seconds seconds;
    ck_assert_int_eq(map_place_ranks(&view, &matrix, leaves, placed, &seconds), 0);
    assert_apart(placed, RANKS);
    /* Blocks of 8 ranks, as 2 x 4, cross nodes with 3 in 8 of their edges: what is possible. */
    ck_assert_msg(seconds.greedy < 0.7 * seconds.in_order, "%g s, rank order %g s", seconds.greedy,
                  seconds.in_order);
    ck_assert_int_eq(map_place_ranks(&view, &matrix, leaves, again, &seconds), 0);
    ck_assert_mem_eq(placed, again, sizeof placed);
}

/* A shuffled grid on caches of 16 cores: four of its quarters on a package, of 4 x 4 ranks on a
 * cache, is the best there is. Cuts as they have grown are 1.05 of it. */
TEST(a_shuffled_grid_becomes_blocks)
{
    enum { SIDE = 16, RANKS = SIDE * SIDE, BYTES = 8192, SEEDS = 10 };
    /* 384 pairs in a cache, 64 in a package, 32 across. */
    const double best = (384 * 1 + 64 * 2 + 32 * 3) * (double)BYTES;
    double sum = 0;
    struct servet_profile *profile = described("package:4 l3:4 core:16 pu:1");
    struct map_view view;
    uint32_t leaves[RANKS], placed[RANKS];
    ck_assert_int_eq(map_view_make(profile, MAP_MEMORY, 1, &view, NULL), 0);
    number(leaves, RANKS);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct random random = {seed * 0x9e3779b97f4a7c15ull};
        struct map_matrix matrix;
        struct map_traffic_seconds seconds;
        make_shuffled_grid(&random, SIDE, BYTES, &matrix);
        ck_assert_int_eq(map_place_ranks(&view, &matrix, leaves, placed, &seconds), 0);
        sum += seconds.greedy / best;
        map_matrix_free(&matrix);
    }
    ck_assert_msg(sum <= 1.03 * SEEDS, "%g of the best", sum / SEEDS);
    map_view_free(&view);
    profile_free(profile);
}

TESTS(.seconds = 120)
