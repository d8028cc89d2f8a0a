/* Is the reach of one and of two TLB levels read off the extra time by pages, within 5 %, and none
 * where there is none, however pages fall and however long lines are? Is the length of lines told
 * before anything else is known? Do the lines that ask for it leave the caches alone?
 * Does the spread say how far the passes lie apart? */
#include "probes/cache/probe.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

/* A machine whose lines are so long, and nothing of whose caches is declared. */
static void open_with(const char *tlbs, unsigned line, uint64_t seed)
{
#define CACHE "'declared_size_bytes': 0, 'line_bytes': %u, "
    open_machine_with(seed,
                      "'pus': '0-1', 'caches': ["
                      "{'level': 1, " CACHE "'size_bytes': 32768, 'ways': 8, 'seconds': 1.3e-9}, "
                      "{'level': 2, " CACHE "'size_bytes': 524288, 'ways': 8, 'seconds': 4e-9}, "
                      "{'level': 3, " CACHE "'size_bytes': 25165824, 'ways': 12, 'seconds': 18e-9}"
                      "], 'tlbs': [%s], 'memory': {'seconds': 9e-8, 'pu_bytes_per_s': 1e10}, "
                      "'noise': {'relative': 0.01, 'outlier_probability': 0.02, "
                      "'outlier_factor': 3}",
                      line, line, line, tlbs);
}

static struct probe_tlb measured_by(const char *tlbs, unsigned line, uint64_t seed)
{
    struct servet_error error;
    struct probe_tlb found;
    static struct probe_tlb_times times;
    times = (struct probe_tlb_times){.line_bytes = line};
    open_with(tlbs, line, seed);
    for (int pass = 0; pass < 4; pass++) {
        ck_assert_int_eq(probe_tlb_pass(&probe, 0, MACHINE_PAGES_ORDINARY, &times, &error), 0);
    }
    probe_tlb_conclude(&probe, &times, &found);
    return found;
}

static struct probe_tlb measured(const char *tlbs, uint64_t seed)
{
    return measured_by(tlbs, 64, seed);
}

/* As pages side by side fill sets under LRU. Eight points to an octave are 4.4 % to either side. */
TEST(reaches_are_within_5_percent)
{
    static const struct {
        unsigned first, first_ways, second, second_ways;
    } tlbs[] = {{96, 6, 2048, 16}, {64, 4, 1536, 12}, {48, 64, 1024, 8},
                {72, 9, 3072, 12}, {96, 2, 2040, 5},  {40, 5, 640, 5}};
    for (size_t t = 0; t < sizeof tlbs / sizeof *tlbs; t++) {
        const struct probe_tlb found = measured(
            formatted("{'entries': %u, 'ways': %u, 'seconds': 2.9e-9},"
                      "{'entries': %u, 'ways': %u, 'seconds': 9e-9}",
                      tlbs[t].first, tlbs[t].first_ways, tlbs[t].second, tlbs[t].second_ways),
            1 + t);
        const double entries[] = {tlbs[t].first, tlbs[t].second};
        ck_assert_uint_eq(found.count, 2);
        for (size_t i = 0; i < 2; i++) {
            const double told = (double)found.levels[i].reach_bytes / 4096;
            ck_assert_msg(fabs(told / entries[i] - 1) < 0.05, "%g for %g", told, entries[i]);
        }
        ck_assert_double_eq_tol(found.levels[0].seconds, 2.9e-9, 0.6e-9);
    }
}

TEST(no_level_is_made_up_by_where_pages_fall)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const struct probe_tlb none = measured("", seed);
        ck_assert_msg(none.count == 0, "%g pages", (double)none.levels[0].reach_bytes / 4096);
        ck_assert_uint_eq(measured("{'entries': 128, 'ways': 64, 'seconds': 2e-9}", seed).count, 1);
    }
}

/* Apple and POWER have lines of 128 bytes, A64FX and z of 256: what the first level holds of them,
 * 256 or 128 here, passed for a TLB. */
TEST(longer_lines_make_no_level_up)
{
    for (unsigned line = 128; line <= 256; line *= 2) {
        const struct probe_tlb none = measured_by("", line, 1);
        ck_assert_msg(none.count == 0, "%g pages", (double)none.levels[0].reach_bytes / 4096);
        const struct probe_tlb one =
            measured_by("{'entries': 96, 'ways': 6, 'seconds': 2.9e-9}", line, 2);
        ck_assert_uint_eq(one.count, 1);
        ck_assert_double_eq_tol((double)one.levels[0].reach_bytes / 4096 / 96, 1, 0.05);
    }
}

/* A cache of 64-byte lines whose ways are `pages` pages large: on pages side by side no set may be
 * visited twice before all were visited once. */
TEST(spread_lines_fill_caches_evenly)
{
    enum { PAGE = 4096, LINE = 64, PAGES_MAX = 16, SETS_MAX = PAGES_MAX * PAGE / LINE };
    for (size_t pages_of_way = 1; pages_of_way <= PAGES_MAX; pages_of_way *= 2) {
        bool visited[SETS_MAX] = {false};
        const size_t sets = pages_of_way * PAGE / LINE;
        for (size_t i = 0; i < sets; i++) {
            size_t at = i * PAGE + machine_spread_offset(i, PAGE), set = at / LINE % sets;
            ck_assert_msg(!visited[set], "%zu pages: set %zu again at page %zu", pages_of_way, set,
                          i);
            visited[set] = true;
        }
    }
}

/* Passes that see the first level, whose misses take so long, at so many pages. */
static struct probe_tlb conclude(const double *first, double miss_s, uint32_t passes)
{
    probe = (struct probe){.machine = &machine};
    machine.page_bytes = 4096;
    struct probe_tlb found;
    static struct probe_tlb_times times;
    times = (struct probe_tlb_times){.count = TLB_POINTS_MAX, .passes = passes};
    for (size_t i = 0; i < times.count; i++) {
        const double pages = floor(8 * exp2((double)i / 8));
        times.pages[i] = pages;
        for (uint32_t pass = 0; pass < passes; pass++) {
            times.reference_s[pass][i] = pages <= 512 ? 1.2e-9 : 4e-9;
            times.spread_s[pass][i] = times.reference_s[pass][i];
            times.spread_s[pass][i] += pages > first[pass] ? miss_s : 0;
        }
    }
    probe_tlb_conclude(&probe, &times, &found);
    return found;
}

TEST(spread_is_that_of_the_passes)
{
    const double same[] = {64, 64, 64, 64}, apart[] = {64, 64, 45, 38};
    struct probe_tlb found = conclude(same, 6e-9, 4);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_uint_eq(found.repetitions, 4);
    ck_assert_double_lt(found.levels[0].spread, 0); /* less than the steps of tried reaches */
    found = conclude(apart, 6e-9, 4);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_double_eq_tol(log2((double)found.levels[0].reach_bytes / (64 * 4096)), 0,
                            0.3); /* the least times */
    ck_assert_double_ge(found.levels[0].spread, 0.15);
    ck_assert_double_le(found.levels[0].spread, 0.6);
    ck_assert_double_lt(conclude(same, 6e-9, 1).levels[0].spread, 0);
    ck_assert_uint_eq(conclude(same, 0.1e-9, 4).count, 0); /* no miss of a TLB takes so little */
}
