/* Are communication matrices read as they are meant, refused where they are wrong, and do they
 * improve placements? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/map.h"
#include "mapper/traffic/traffic.h"
#include "profile/base/child.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/mapper/random_profile.h"
#include "tests/profile/fixture.h"

#define MOST 64

#ifdef WITH_SCOTCH
#include <scotch.h>

#define GMAP_SIDE 16
#define GMAP_RANKS (GMAP_SIDE * GMAP_SIDE)
#define GMAP_EDGES (4 * GMAP_RANKS)
#endif

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

TEST(wrong_matrices_are_one_line_and_status_2)
{
    const char *cases[][2] = {
        {"", "one row per rank"},
        {"1 2\n3\n", ":2: expected as many numbers"},
        {"1 2\n3 4 5\n", ":2: expected as many numbers"},
        {"1 2\n", "as many rows as columns"},
        {"1 2\n3 4\n5 6\n", ":3: expected as many rows"},
        {"1 x\n3 4\n", ":1: expected numbers"},
        {"1 -2\n3 4\n", "not negative"},
        {"1 nan\n3 4\n", "not negative"},
        {"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", "coordinate"},
        {"%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n",
         ":2: expected 'ranks ranks entries'"},
        {"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n", "the file ends early"},
        {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n",
         ":3: expected 'row column bytes'"},
        {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n2 1 1\n", "no more entries"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = scratch_file("matrix", "%s", cases[i][0]);
        char named[256];
        snprintf(named, sizeof named, "%s%s", *cases[i][1] == ':' ? path : "", cases[i][1]);
        expect_refused(named, SERVET_MAP " --topology pu:4 --matrix %s", path);
    }
}

TEST(options_around_the_matrix_are_checked)
{
    const char *path = scratch_file("matrix", "0 1\n1 0\n");
    expect_refused("/nonexistent/m", SERVET_MAP " --topology pu:4 --matrix /nonexistent/m");
    expect_refused("--matrix", SERVET_MAP " --topology pu:4 --matrix /");
    expect_refused("", SERVET_MAP " --topology pu:4 -n 3 --matrix %s", path);
    expect_refused("", SERVET_MAP " --topology pu:4 -r 3 -t 2 --matrix %s", path);
    expect_refused("", SERVET_MAP " --topology pu:4 -r 3 -t 1,2,1 --matrix %s", path);
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

/* Places a ring of two sizes of ranks, which alternate, by every placer. */
static void place_two_sizes(struct map_view *view, uint32_t ranks)
{
    static uint32_t threads[MOST_IN_RING], leaves[MOST_IN_RING], placed[MOST_IN_RING];
    uint32_t apart = MOST_IN_RING / ranks;
    double seconds[MAP_PLACERS] = {0};
    struct map_matrix matrix;
    make_ring(ranks, &matrix);
    matrix.threads = threads;
    for (uint32_t r = 0; r < ranks; r++) {
        leaves[r] = r * apart;
        threads[r] = 1 + r % 2;
    }
    for (enum map_placer placer = 0; placer < MAP_PLACERS; placer++) {
        bool used[MOST_IN_RING] = {false};
        if (!map_placer_built(placer)) {
            continue;
        }
        ck_assert_int_eq(map_place_ranks(view, placer, &matrix, leaves, placed, &seconds[placer]),
                         0);
        for (uint32_t r = 0; r < ranks; r++) {
            uint32_t region = placed[r];
            ck_assert(region < ranks && !used[region]);
            ck_assert_uint_eq(threads[region], threads[r]);
            used[region] = true;
        }
    }
    ck_assert_msg(seconds[MAP_GREEDY] < 0.9 * seconds[MAP_RANK_ORDER], "%u: %g, rank order %g",
                  ranks, seconds[MAP_GREEDY], seconds[MAP_RANK_ORDER]);
    map_matrix_free(&matrix);
}

/* For few ranks, where all pairs are tried, and for many. */
TEST(no_rank_takes_a_region_of_another_size)
{
    static const uint32_t counts[] = {12, 200, MOST_IN_RING};
    struct servet_profile *profile = described("package:4 [numa] l3:10 core:15 pu:1");
    struct map_view view;
    ck_assert_int_eq(map_view_make(profile, MAP_MEMORY, 1, &view, NULL), 0);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        place_two_sizes(&view, counts[i]);
    }
    map_view_free(&view);
}

TEST(every_placer_gives_each_rank_a_pu_of_its_own_and_greedy_is_never_worse_than_rank_order)
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
        double seconds[MAP_PLACERS] = {0};
        for (enum map_placer placer = 0; placer < MAP_PLACERS; placer++) {
            bool used[MOST] = {false};
            if (!map_placer_built(placer)) {
                continue;
            }
            ck_assert_int_eq(
                map_place_ranks(&view, placer, &matrix, leaves, placed, &seconds[placer]), 0);
            double sum = 0; /* pair by pair, as the profile says it */
            for (size_t r = 0; r < ranks; r++) {
                for (size_t e = matrix.start[r]; e < matrix.start[r + 1]; e++) {
                    sum += map_message_seconds(&view, placed[r], placed[matrix.entries[e].to],
                                               matrix.entries[e].bytes) /
                           2;
                }
            }
            ck_assert_double_eq_tol(seconds[placer], sum, 1e-9 * sum + 1e-15);
            for (uint32_t r = 0; r < ranks; r++) {
                ck_assert_msg(placed[r] < ranks && !used[placed[r]],
                              "seed %" PRIu64 ": %s gives leaf %u twice", seed,
                              map_placer_names[placer], placed[r]);
                used[placed[r]] = true;
            }
        }
        ck_assert_double_le(seconds[MAP_GREEDY], seconds[MAP_RANK_ORDER] * (1 + 1e-9));
        map_matrix_free(&matrix);
        map_view_free(&view);
        profile_free(profile);
    }
}

/* A shuffled grid of 4,096 ranks on 512 nodes of 8: cut level by level it is much better than as it
 * came, each rank has a place of its own, and the greedy way and Scotch both get there. */
TEST(thousands_of_ranks_are_cut_level_by_level)
{
    enum { SIDE = 64, RANKS = SIDE * SIDE };
    struct run larger =
        run_command("sed -e '/\"nodes\"/s/8/512/g' -e '/\"network\"/,$s/0-7/0-511/' " FIXTURES
                    "/nehalem-8-nodes.json");
    static uint32_t number[RANKS], from[2 * RANKS], to[2 * RANKS], leaves[RANKS], placed[RANKS];
    static double bytes[2 * RANKS];
    struct random_source random = {7};
    shuffle(&random, number, RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        leaves[i] = i;
    }
    size_t edges = 0;
    for (uint32_t i = 0; i < RANKS; i++) {
        uint32_t beside[] = {i % SIDE + 1 < SIDE ? i + 1 : i, i + SIDE < RANKS ? i + SIDE : i};
        for (size_t n = 0; n < 2; n++) {
            from[edges] = number[i];
            to[edges] = number[beside[n]];
            bytes[edges++] = 8192;
        }
    }
    struct map_matrix matrix;
    struct map_view view;
    struct servet_profile *profile = parsed(larger.out);
    make_matrix(RANKS, from, to, bytes, edges, &matrix);
    ck_assert_int_eq(map_view_make(profile, MAP_MEMORY, 1, &view, NULL), 0);
    double seconds[MAP_PLACERS] = {0};
    for (enum map_placer placer = 0; placer < MAP_PLACERS; placer++) {
        static bool used[RANKS];
        memset(used, 0, sizeof used);
        if (!map_placer_built(placer)) {
            continue;
        }
        ck_assert_int_eq(map_place_ranks(&view, placer, &matrix, leaves, placed, &seconds[placer]),
                         0);
        for (uint32_t r = 0; r < RANKS; r++) {
            ck_assert(placed[r] < RANKS && !used[placed[r]]);
            used[placed[r]] = true;
        }
        static uint32_t again[RANKS];
        ck_assert_int_eq(map_place_ranks(&view, placer, &matrix, leaves, again, NULL), 0);
        ck_assert_mem_eq(placed, again, sizeof placed);
        /* Blocks of 8 ranks, as 2 x 4, cross nodes with 3 in 8 of their edges: what is possible. */
        ck_assert_msg(placer == MAP_RANK_ORDER || seconds[placer] < 0.7 * seconds[MAP_RANK_ORDER],
                      "%s: %g s, rank order %g s", map_placer_names[placer], seconds[placer],
                      seconds[MAP_RANK_ORDER]);
    }
    map_view_free(&view);
    map_matrix_free(&matrix);
}

#ifdef WITH_SCOTCH
/* Result of scotch_gmap with one thread: the total of its mapping onto packages x L3 x cores, whose
 * leaves are ours in order; a negative number where it puts two ranks on one leaf. */
static double total_of_gmap(struct map_view *view, const struct map_matrix *matrix,
                            const SCOTCH_Num sizes[3], const uint32_t *leaves)
{
    static SCOTCH_Num start[GMAP_RANKS + 1], with[GMAP_EDGES], load[GMAP_EDGES], part[GMAP_RANKS];
    static uint32_t place[GMAP_RANKS];
    static const SCOTCH_Num costs[] = {3, 2, 1};
    size_t edges = matrix->start[matrix->ranks];
    SCOTCH_Graph graph, bound;
    SCOTCH_Context context;
    SCOTCH_Strat strategy;
    SCOTCH_Arch arch;
    for (uint32_t r = 0; r <= matrix->ranks; r++) {
        start[r] = (SCOTCH_Num)matrix->start[r];
    }
    for (size_t e = 0; e < edges; e++) {
        with[e] = (SCOTCH_Num)matrix->entries[e].to;
        load[e] = (SCOTCH_Num)matrix->entries[e].bytes;
    }
    SCOTCH_randomReset();
    ck_assert(SCOTCH_graphInit(&graph) == 0 && SCOTCH_graphInit(&bound) == 0 &&
              SCOTCH_stratInit(&strategy) == 0 && SCOTCH_archInit(&arch) == 0 &&
              SCOTCH_archTleaf(&arch, 3, sizes, costs) == 0 && SCOTCH_contextInit(&context) == 0 &&
              SCOTCH_contextThreadSpawn(&context, 1, NULL) == 0 &&
              SCOTCH_graphBuild(&graph, 0, (SCOTCH_Num)matrix->ranks, start, NULL, NULL, NULL,
                                (SCOTCH_Num)edges, with, load) == 0 &&
              SCOTCH_contextBindGraph(&context, &graph, &bound) == 0 &&
              SCOTCH_graphMap(&bound, &arch, &strategy, part) == 0);
    SCOTCH_graphExit(&bound);
    SCOTCH_contextExit(&context);
    SCOTCH_graphExit(&graph);
    SCOTCH_archExit(&arch);
    SCOTCH_stratExit(&strategy);
    bool used[GMAP_RANKS] = {false};
    for (uint32_t r = 0; r < matrix->ranks; r++) {
        if (used[part[r]]) {
            return -1;
        }
        used[part[r]] = true;
        place[r] = leaves[part[r]];
    }
    struct map_traffic traffic = {.view = view, .matrix = matrix, .place = place};
    return map_traffic_total(&traffic);
}

/* A torus of SIDE x SIDE ranks whose numbers are shuffled and whose edges weigh 1, 2 or 3. */
static void make_shuffled_torus(struct random_source *random, struct map_matrix *out)
{
    uint32_t number[GMAP_RANKS], from[2 * GMAP_RANKS], to[2 * GMAP_RANKS];
    double bytes[2 * GMAP_RANKS];
    shuffle(random, number, GMAP_RANKS);
    for (uint32_t i = 0; i < GMAP_RANKS; i++) {
        uint32_t row = i / GMAP_SIDE * GMAP_SIDE, beside = row + (i + 1) % GMAP_SIDE;
        from[2 * i] = from[2 * i + 1] = number[i];
        to[2 * i] = number[beside];
        to[2 * i + 1] = number[(i + GMAP_SIDE) % GMAP_RANKS];
        bytes[2 * i] = 1 + random_below(random, 3);
        bytes[2 * i + 1] = 1 + random_below(random, 3);
    }
    make_matrix(GMAP_RANKS, from, to, bytes, 2 * GMAP_RANKS, out);
}

TEST(scotch_is_never_worse_than_scotch_gmap)
{
    static const SCOTCH_Num sizes[] = {4, 4, 16};
    struct servet_profile *profile = described("package:4 l3:4 core:16 pu:1");
    struct map_view view;
    uint32_t leaves[GMAP_RANKS], placed[GMAP_RANKS], held = 0;
    ck_assert_int_eq(map_view_make(profile, MAP_MEMORY, 1, &view, NULL), 0);
    for (uint32_t i = 0; i < GMAP_RANKS; i++) {
        leaves[i] = i;
    }
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct random_source random = {seed * 0x9e3779b97f4a7c15ull};
        struct map_matrix matrix;
        double seconds;
        make_shuffled_torus(&random, &matrix);
        double theirs = total_of_gmap(&view, &matrix, sizes, leaves);
        ck_assert_int_eq(map_place_ranks(&view, MAP_SCOTCH, &matrix, leaves, placed, &seconds), 0);
        ck_assert_msg(theirs < 0 || seconds <= theirs * (1 + 1e-9),
                      "seed %lu: %.9g, scotch_gmap %.9g", (unsigned long)seed, seconds, theirs);
        held += theirs >= 0;
        map_matrix_free(&matrix);
    }
    ck_assert_uint_ge(held, 20);
    map_view_free(&view);
}
#endif

TEST(messages_take_what_the_curve_says)
{
    struct profile_message_point points[] = {
        {100, 1e-6, 0, -1}, {1000, 2e-6, 0, -1}, {10000, 11e-6, 0, -1}};
    struct servet_profile *profile = loaded(NEHALEM);
    struct profile_layer *layer = &profile->classes[0].communication.layers[0];
    struct map_view view;
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
    map_view_free(&view);
}

TESTS(.seconds = 120)
