/* Are communication matrices read as they are meant, refused where they are wrong, and do they
 * improve placements? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/map.h"
#include "mapper/traffic/traffic.h"
#include "profile/base/child.h"
#include "profile/scope.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/mapper/random_profile.h"
#include "tests/profile/fixture.h"

#define MOST 64

static double bytes_between(const struct map_matrix *matrix, uint32_t a, uint32_t b)
{
    for (size_t i = matrix->start[a]; i < matrix->start[a + 1]; i++) {
        if (matrix->entries[i].to == b) {
            return matrix->entries[i].bytes;
        }
    }
    return 0;
}

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

TEST(both_formats_say_the_same)
{
    const char *texts[] = {
        "# bytes\n9 10 0\n5 0 1e3\n0,0,7\n",
        ("%%MatrixMarket matrix coordinate real general\n% bytes\n3 3 4\n1 2 10\n2 1 5\n2 3 1e3\n"
         "1 1 9\n"),
        "%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 15\n3 2 1000\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct map_matrix matrix;
        struct servet_error error;
        ck_assert_msg(map_matrix_read(scratch_file("matrix", "%s", texts[i]), &matrix, &error) == 0,
                      "%s", error.text);
        ck_assert_uint_eq(matrix.ranks, 3);
        ck_assert_double_eq(bytes_between(&matrix, 0, 1), 15);
        ck_assert_double_eq(bytes_between(&matrix, 1, 0), 15);
        ck_assert_double_eq(bytes_between(&matrix, 1, 2), 1000);
        ck_assert_double_eq(bytes_between(&matrix, 0, 0), 0);
        ck_assert_double_eq(bytes_between(&matrix, 0, 2), 0);
        map_matrix_free(&matrix);
    }
}

TEST(partners_end_side_by_side)
{
    /* 0 talks to 3 and 1 to 2; the L3 of the Nehalem is shared by 0,2 and 1,3 but rank order would
     * cross nodes. */
    const char *path = scratch_file("matrix", "0 0 0 9\n0 0 9 0\n0 0 0 0\n0 0 0 0\n");
    struct run run = run_command(SERVET_MAP " --profile " FIXTURES
                                            "/nehalem-2-nodes.json --matrix %s --format hostfile",
                                 path);
    ck_assert_int_eq(run.status, 0);
    ck_assert_msg(strcmp(run.out, "node1\nnode2\nnode2\nnode1\n") == 0 ||
                      strcmp(run.out, "node2\nnode1\nnode1\nnode2\n") == 0,
                  "%s", run.out);
}

/* Ranks of 2 threads: the four that talk most to one another get the four regions of a socket,
 * whatever their numbers. */
TEST(ranks_with_threads_change_regions)
{
    const char *path = scratch_file(
        "matrix", "0 0 9 0 9 0 9 0\n0 0 0 9 0 9 0 9\n0 0 0 0 9 0 9 0\n0 0 0 0 0 9 0 9\n"
                  "0 0 0 0 0 0 9 0\n0 0 0 0 0 0 0 9\n0 0 0 0 0 0 0 0\n0 0 0 0 0 0 0 0\n");
    struct run run = run_command(
        SERVET_MAP " --topology 'package:2 [numa] core:8 pu:1' -r 8 -t 2 --matrix %s", path);
    ck_assert_int_eq(run.status, 0);
    uint32_t used = 0, socket[8];
    char *at = run.out;
    for (size_t r = 0; r < 8; r++) {
        unsigned long a = strtoul(at, &at, 10), b = strtoul(at + 1, &at, 10);
        ck_assert_uint_lt(a, 16);
        ck_assert_uint_eq(b, a + 1); /* a region stays as it is */
        used |= 3u << a;
        socket[r] = (uint32_t)(a / 8);
        ck_assert_msg(r < 2 || socket[r] == socket[r - 2], "%s", run.out);
    }
    ck_assert_uint_eq(used, 0xffff);
}

/* Ranks 0 and 3 of 4 threads, the others of 2: each takes the two that it talks to beside it, with
 * a region of its own size. */
TEST(ranks_of_uneven_threads_change_regions_of_their_size)
{
    static const char *const priorities[] = {"--mem-prior", "--comm-prior"};
    static const uint32_t threads[] = {4, 2, 2, 4, 2, 2}, partner[] = {0, 3, 3, 3, 0, 0};
    const char *path = scratch_file(
        "matrix", "0 0 0 0 9 9\n0 0 0 0 0 0\n0 0 0 0 0 0\n0 9 9 0 0 0\n0 0 0 0 0 0\n0 0 0 0 0 0\n");
    for (size_t i = 0; i < 2; i++) {
        struct run run =
            run_command(SERVET_MAP " --topology 'package:2 [numa] core:8 pu:1' -t 4,2,2,4,2,2 %s "
                                   "--matrix %s",
                        priorities[i], path);
        ck_assert_msg(run.status == 0, "%s", run.err);
        uint32_t used = 0;
        unsigned long package[6];
        char *at = run.out;
        for (size_t r = 0; r < 6; r++) {
            for (uint32_t t = 0; t < threads[r]; t++) {
                unsigned long pu = strtoul(at, &at, 10);
                ck_assert_uint_lt(pu, 16);
                ck_assert_msg(t == 0 || pu / 8 == package[r], "%s", run.out);
                package[r] = pu / 8;
                used |= 1u << pu;
                at += *at == ',';
            }
            ck_assert_msg(*at == '\n', "%s", run.out);
        }
        ck_assert_uint_eq(used, 0xffff);
        for (size_t r = 0; r < 6; r++) {
            ck_assert_msg(package[r] == package[partner[r]], "%s", run.out);
        }
    }
}

#define MOST_IN_RING 600

/* The numbers from 0 on in any order. */
static void shuffle(struct random_source *random, uint32_t *number, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = random_below(random, i + 1);
        number[i] = number[at];
        number[at] = i;
    }
}

/* A ring of ranks that are numbered at random. */
static void make_ring(uint32_t ranks, struct map_matrix *out)
{
    static uint32_t number[MOST_IN_RING], from[MOST_IN_RING], to[MOST_IN_RING];
    static double bytes[MOST_IN_RING];
    struct random_source random = {ranks};
    shuffle(&random, number, ranks);
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
    bool used[MOST_IN_RING] = {false};
    make_ring(ranks, &matrix);
    matrix.threads = threads;
    for (uint32_t r = 0; r < ranks; r++) {
        leaves[r] = r * apart;
        threads[r] = 1 + r % 2;
    }
    ck_assert_int_eq(map_place_ranks(view, &matrix, leaves, placed, &seconds), 0);
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t region = placed[r];
        ck_assert(region < ranks && !used[region]);
        ck_assert_uint_eq(threads[region], threads[r]);
        used[region] = true;
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
        struct random_source random = {seed * 0x9e3779b97f4a7c15ull};
        struct servet_profile *profile = random_profile(&random, seed % 2);
        struct map_view view;
        ck_assert_int_eq(map_view_make(profile, MAP_MEMORY, 100, &view, NULL), 0);
        uint32_t ranks = view.leaf_count, from[MOST], to[MOST], leaves[MOST], placed[MOST];
        double bytes[MOST];
        size_t edges = random_below(&random, MOST);
        for (size_t e = 0; e < edges; e++) {
            from[e] = random_below(&random, ranks);
            to[e] = random_below(&random, ranks);
            bytes[e] = random_below(&random, 1000);
        }
        for (uint32_t i = 0; i < ranks; i++) {
            leaves[i] = i;
        }
        struct map_matrix matrix;
        make_matrix(ranks, from, to, bytes, edges, &matrix);
        struct map_traffic_seconds seconds;
        bool used[MOST] = {false};
        ck_assert_int_eq(map_place_ranks(&view, &matrix, leaves, placed, &seconds), 0);
        const double in_order = sum_of_pairs(&view, &matrix, NULL),
                     sum = sum_of_pairs(&view, &matrix, placed);
        ck_assert_double_eq_tol(seconds.in_order, in_order, 1e-9 * in_order + 1e-15);
        ck_assert_double_eq_tol(seconds.greedy < seconds.in_order ? seconds.greedy
                                                                  : seconds.in_order,
                                sum, 1e-9 * sum + 1e-15);
        for (uint32_t r = 0; r < ranks; r++) {
            ck_assert_msg(placed[r] < ranks && !used[placed[r]], "seed %" PRIu64 ": leaf %u twice",
                          seed, placed[r]);
            used[placed[r]] = true;
        }
        ck_assert_double_le(seconds.greedy, seconds.in_order * (1 + 1e-9));
        map_matrix_free(&matrix);
        map_view_free(&view);
        profile_free(profile);
    }
}

/* A grid of SIDE x SIDE ranks, at most 64, whose numbers are shuffled. */
static void make_shuffled_grid(struct random_source *random, uint32_t side, double size,
                               struct map_matrix *out)
{
    enum { MOST_RANKS = 64 * 64 };
    static uint32_t number[MOST_RANKS], from[2 * MOST_RANKS], to[2 * MOST_RANKS];
    static double bytes[2 * MOST_RANKS];
    const uint32_t ranks = side * side;
    size_t edges = 0;
    shuffle(random, number, ranks);
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
    struct random_source random = {7};
    for (uint32_t i = 0; i < RANKS; i++) {
        leaves[i] = i;
    }
    FREED_BY(map_matrix_free) struct map_matrix matrix;
    FREED_BY(map_view_free) struct map_view view;
    struct servet_profile *profile = parsed(larger.out);
    make_shuffled_grid(&random, SIDE, 8192, &matrix);
    ck_assert_int_eq(map_view_make(profile, MAP_MEMORY, 1, &view, NULL), 0);
    static bool used[RANKS];
    static uint32_t again[RANKS];
    struct map_traffic_seconds seconds;
    ck_assert_int_eq(map_place_ranks(&view, &matrix, leaves, placed, &seconds), 0);
    for (uint32_t r = 0; r < RANKS; r++) {
        ck_assert(placed[r] < RANKS && !used[placed[r]]);
        used[placed[r]] = true;
    }
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
    for (uint32_t i = 0; i < RANKS; i++) {
        leaves[i] = i;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct random_source random = {seed * 0x9e3779b97f4a7c15ull};
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

TEST(messages_take_what_the_curve_says)
{
    struct profile_message_point points[] = {
        {100, 1e-6, 0, -1}, {1000, 2e-6, 0, -1}, {10000, 11e-6, 0, -1}};
    struct servet_profile *profile = loaded(NEHALEM);
    struct profile_layer *layer = &profile->classes[0].communication.layers[0];
    FREED_BY(map_view_free) struct map_view view;
    ck_assert_int_eq(map_view_make(profile, MAP_MEMORY, 1, &view, NULL), 0);
    ck_assert_double_eq_tol(map_message_seconds(&view, 0, 1, 65536), 2 * layer->seconds,
                            1e-12); /* of 32 KiB */
    ck_assert_double_eq_tol(map_message_seconds(&view, 0, 1, 8), layer->seconds, 1e-12);
    layer->curve = points;
    layer->curve_count = 3;
    ck_assert_double_eq_tol(map_message_seconds(&view, 0, 1, 10), 1e-6, 1e-12);
    ck_assert_double_eq_tol(map_message_seconds(&view, 0, 1, 550), 1.5e-6, 1e-12);
    ck_assert_double_eq_tol(map_message_seconds(&view, 0, 1, 20000), 21e-6, 1e-12);
    /* A last point below the one before it is noise: talking more never takes less time. */
    points[2].seconds = 1.9e-6;
    ck_assert_double_eq_tol(map_message_seconds(&view, 0, 1, 1e9), 1.9e-6, 1e-12);
    layer->curve = NULL;
    layer->curve_count = 0;
}

TESTS(.seconds = 120)
