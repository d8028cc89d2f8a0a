/* Does --method paper do what Figures 1, 3 and 4 of the 2010 paper say, and find what the paper
 * found with it? */
#include "probes/cache/probe.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

/* -- Figure 1 -- */

static size_t asked[256], asked_count;

TRAVERSE(traverse)
{
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(what->order, MACHINE_STRIDE);
    ck_assert_uint_eq(what->stride_bytes, 1 * KIB);
    ck_assert_int_eq(what->pages, MACHINE_PAGES_ORDINARY);
    asked[asked_count++] = what->bytes;
    *seconds = 1e-9;
    return 0;
}

TEST(sizes_double_up_to_2_mib_and_grow_by_1_mib)
{
    FREED_BY(probe_cache_free) struct probe_cache found;
    open_machine_of("dempsey");
    replace_operations()->traverse = traverse;
    ck_assert_int_eq(probe_cache_paper(&probe, 0, &found, NULL), 0);
    ck_assert_uint_eq(found.count, 0); /* no gradient at all */
    size_t expected = 4 * KIB;
    for (size_t i = 0; i < asked_count; i++) {
        ck_assert_uint_eq(asked[i], expected);
        expected += expected < 2 * MIB ? expected : MIB;
    }
    ck_assert_uint_eq(asked[asked_count - 1], 64 * MIB);
}

/* -- Figures 3 and 4, on curves that are written down -- */

enum { POINTS = 10 + 30 }; /* 4 KiB … 2 MiB, 3 MiB … 32 MiB */
static double bytes[POINTS], seconds[POINTS];
static const struct cache_curve curve = {
    .bytes = bytes, .seconds = seconds, .count = POINTS, .page_bytes = 4096};
static uint64_t sizes[CACHE_LEVELS_MAX];

static size_t at(uint64_t size)
{
    size_t i = 0;
    while (i + 1 < POINTS && bytes[i] < (double)size) {
        i++;
    }
    return i;
}

/* A flat curve, that rises behind some sizes by a factor. */
struct rise {
    double kib, factor;
};

static void draw(const struct rise *rises, size_t count)
{
    for (size_t i = 0; i < POINTS; i++) {
        bytes[i] = i < 10 ? (double)(4 * KIB << i) : (double)(MIB * (i - 7));
        seconds[i] = 1;
        for (size_t k = 0; k < count; k++) {
            seconds[i] *= bytes[i] > rises[k].kib * KIB ? rises[k].factor : 1;
        }
    }
}

#define DRAW(...)                                                                                  \
    draw((const struct rise[]){__VA_ARGS__},                                                       \
         sizeof((const struct rise[]){__VA_ARGS__}) / sizeof(struct rise))

/* "32 512 6144": the sizes in KiB that are found. */
static void expect_sizes(const struct cache_curve *of, const char *expected)
{
    const size_t count = probe_cache_paper_infer(of, sizes);
    const char *text = "";
    for (size_t i = 0; i < count; i++) {
        text = formatted("%s%s%d", text, i ? " " : "", (int)(sizes[i] / KIB));
    }
    ck_assert_str_eq(text, expected);
}

/* P(1 + X > K), X ~ B(NP - 1, K PS / CS), summed up term by term. */
static double conflicts(double pages, double ways, double size)
{
    double p = ways * 4096 / size, others = pages - 1;
    double term = pow(1 - p, others), below = 0;
    for (double k = 0; k < ways; k++) {
        below += term;
        term *= (others - k) / (k + 1) * p / (1 - p);
    }
    return 1 - below;
}

/* From point `first` to `last` as a cache of that size and so many ways makes it. */
static void conflict(size_t first, size_t last, double size, double ways)
{
    double base = seconds[first];
    for (size_t i = first; i < POINTS; i++) {
        seconds[i] = base * (1 + 9 * conflicts(bytes[i < last ? i : last] / 4096, ways, size));
    }
}

TEST(the_first_peak_is_the_l1)
{
    /* a slight rise before it, and one behind it that has not come down yet */
    DRAW({16, 1.1}, {32, 3}, {64, 1.3});
    expect_sizes(&curve, "32");
}

TEST(a_peak_of_one_size_is_a_level_of_that_size)
{
    DRAW({32, 3}, {512, 2}, {6 * 1024, 1.5});
    expect_sizes(&curve, "32 512 6144");
    DRAW({8, 3}, {32, 2}); /* a size that the model is not tried with */
    expect_sizes(&curve, "8 32");
}

/* Paper: "the estimate analyzing the [256KB,4MB] range is 2MB", where the highest gradient says 1
 * MiB; and 12 MiB of a rise as wide as from 3 to 14 MiB. */
TEST(a_wide_peak_is_held_against_the_binomial_model)
{
    DRAW({16, 3});
    conflict(at(256 * KIB), at(4 * MIB), 2.0 * MIB, 8);
    expect_sizes(&curve, "16 2048");
    DRAW({16, 3});
    conflict(at(3 * MIB), at(32 * MIB), 12.0 * MIB, 16);
    expect_sizes(&curve, "16 12288");
}

TEST(a_rise_up_to_the_largest_size_is_one_too)
{
    DRAW({16, 3});
    for (size_t i = at(26 * MIB); i < POINTS; i++) {
        seconds[i] = seconds[i - 1] * 1.1; /* no peak, but above 1 */
    }
    ck_assert_uint_eq(probe_cache_paper_infer(&curve, sizes), 2);
    ck_assert_uint_gt(sizes[1], 24 * MIB);
    seconds[POINTS - 1] = seconds[POINTS - 2]; /* not up to the largest */
    expect_sizes(&curve, "16");
}

TEST(two_peaks_that_never_come_to_rest_are_two_levels)
{
    DRAW({16, 3}, {1024, 1.4}, {2048, 1.3}, {3072, 1.02}, {6144, 1.4}, {7168, 1.3});
    ck_assert_uint_eq(probe_cache_paper_infer(&curve, sizes), 3);
    ck_assert_uint_lt(sizes[1], 4 * MIB);
    ck_assert_uint_gt(sizes[2], 4 * MIB);
}

/* As simulated, 16 KiB pages in 9 MiB of 18 ways, ns from 4 MiB on. */
TEST(a_peak_that_falls_on_its_way_up_is_one_level)
{
    static const double rise[] = {9.94,  21.28, 20.38, 28.27, 55.82, 105,
                                  130.2, 159.2, 171.1, 193.4, 197.5, 200.9};
    struct cache_curve large_pages = curve;
    large_pages.page_bytes = 16 * KIB;
    DRAW({16, 3});
    for (size_t i = at(4 * MIB), k = 0; i < POINTS; i++, k += k + 1 < sizeof rise / sizeof *rise) {
        seconds[i] *= rise[k] / rise[0];
    }
    expect_sizes(&large_pages, "16 9216");
}

/* -- Section IV-A: what the paper found, on the simulated machines -- */

static void expect(const char *name, const uint64_t *expected, size_t count)
{
    FREED_BY(probe_cache_free) struct probe_cache found;
    open_machine_of(name);
    ck_assert_int_eq(probe_cache_paper(&probe, 0, &found, NULL), 0);
    ck_assert_uint_eq(found.count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(found.levels[i].size_bytes, expected[i]);
    }
}

TEST(the_papers_machines_are_found)
{
    expect("dempsey", (const uint64_t[]){16 * KIB, 2 * MIB}, 2);
    expect("athlon-3200", (const uint64_t[]){64 * KIB, 512 * KIB}, 2);
    expect("dunnington", (const uint64_t[]){32 * KIB, 3 * MIB, 12 * MIB}, 3);
    expect("finis-terrae", (const uint64_t[]){16 * KIB, 256 * KIB, 9 * MIB}, 3);
}

/* Of 18 ways and large pages, one page more or less in a set is seen. */
TEST(finis_terrae_is_found_nearly_wherever_pages_fall)
{
    enum { SEEDS = 20, MOST = SEEDS - 3 };
    size_t right = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        FREED_BY(probe_cache_free) struct probe_cache found;
        open_machine_of("finis-terrae");
        probe.seed = 1000 * seed;
        ck_assert_int_eq(probe_cache_paper(&probe, 0, &found, NULL), 0);
        right += found.count == 3 && found.levels[0].size_bytes == 16 * KIB &&
                 found.levels[1].size_bytes == 256 * KIB && found.levels[2].size_bytes == 9 * MIB;
    }
    ck_assert_msg(right >= MOST, "%zu of %d", right, SEEDS);
}

TESTS(.seconds = 100)
