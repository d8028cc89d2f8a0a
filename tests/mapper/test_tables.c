/* Does the mapping follow Tables 1 and 2 of the 2012 mapping paper, row by row and rule by rule? */
#include <inttypes.h>
#include <string.h>

#include "mapper/map.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

#define PUS 16
#define TAKEN 99 /* '-' in the tables */

struct expected_row {
    int rule1[PUS], rule2[PUS], rule3[PUS], total[PUS];
    uint32_t chosen;
};

/* clang-format off */
#define T TAKEN
static const struct expected_row table1[] = {
    {.chosen = 0},
    {.rule1 = {T,  0, 10,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0},
     .rule2 = {T,  0, 10,  0, 10,  0, 10,  0,  0,  0,  0,  0,  0,  0,  0,  0},
     .rule3 = {T, -1, -1, -1, -1, -1, -1, -1,  0,  0,  0,  0,  0,  0,  0,  0},
     .total = {T, -1, 19, -1,  9, -1,  9, -1,  0,  0,  0,  0,  0,  0,  0,  0}, .chosen = 1},
    {.rule1 = {T,  T,  0, 10,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0},
     .rule2 = {T,  T,  0, 10,  0, 10,  0, 10,  0,  0,  0,  0,  0,  0,  0,  0},
     .rule3 = {T,  T, -1, -1, -1, -1, -1, -1,  0,  0,  0,  0,  0,  0,  0,  0},
     .total = {T,  T, 18, 18,  8,  8,  8,  8,  0,  0,  0,  0,  0,  0,  0,  0}, .chosen = 8},
    {.rule1 = {T,  T,  0,  0,  0,  0,  0,  0,  T,  0, 10,  0,  0,  0,  0,  0},
     .rule2 = {T,  T,  0,  0,  0,  0,  0,  0,  T,  0, 10,  0, 10,  0, 10,  0},
     .rule3 = {T,  T,  0,  0,  0,  0,  0,  0,  T, -1, -1, -1, -1, -1, -1, -1},
     .total = {T,  T, 18, 18,  8,  8,  8,  8,  T, -1, 19, -1,  9, -1,  9, -1}, .chosen = 9},
};
static const struct expected_row table2[] = {
    {.chosen = 0},
    {.rule1 = {T,   0,   1,   0,   0,   0,   0,   0, 0, 0, 0, 0, 0, 0, 0, 0},
     .rule2 = {T,   0,   1,   0,   1,   0,   1,   0, 0, 0, 0, 0, 0, 0, 0, 0},
     .rule3 = {T, -10, -10, -10, -10, -10, -10, -10, 0, 0, 0, 0, 0, 0, 0, 0},
     .total = {T, -10,  -8, -10,  -9, -10,  -9, -10, 0, 0, 0, 0, 0, 0, 0, 0}, .chosen = 1},
    {.rule1 = {T,   T,   0,   1,   0,   0,   0,   0, 0, 0, 0, 0, 0, 0, 0, 0},
     .rule2 = {T,   T,   0,   1,   0,   1,   0,   1, 0, 0, 0, 0, 0, 0, 0, 0},
     .rule3 = {T,   T, -10, -10, -10, -10, -10, -10, 0, 0, 0, 0, 0, 0, 0, 0},
     .total = {T,   T, -18, -18, -19, -19, -19, -19, 0, 0, 0, 0, 0, 0, 0, 0}, .chosen = 4},
    {.rule1 = {T,   T,   0,   0,   T,   0,   1,   0, 0, 0, 0, 0, 0, 0, 0, 0},
     .rule2 = {T,   T,   1,   0,   T,   0,   1,   0, 0, 0, 0, 0, 0, 0, 0, 0},
     .rule3 = {T,   T, -10, -10,   T, -10, -10, -10, 0, 0, 0, 0, 0, 0, 0, 0},
     .total = {T,   T, -27, -28,   T, -29, -27, -29, 0, 0, 0, 0, 0, 0, 0, 0}, .chosen = 5},
};
#undef T
/* clang-format on */

static void assert_column(const char *name, size_t row, const int *expected, const int64_t *got,
                          const struct map_row *what)
{
    for (size_t i = 0; i < PUS; i++) {
        ck_assert_msg(what->taken[i] == (expected[i] == TAKEN), "row %zu, %s: core %zu is%s taken",
                      row + 1, name, i, what->taken[i] ? "" : " not");
        if (!what->taken[i]) {
            ck_assert_msg(got[i] == expected[i] * what->denominator,
                          "row %zu, %s of core %zu: expected %d, got %" PRId64 "/%" PRId64, row + 1,
                          name, i, expected[i], got[i], what->denominator);
        }
    }
}

struct comparison {
    const struct expected_row *table;
    size_t rows;
};

static void compare_row(void *context, const struct map_row *row)
{
    struct comparison *comparison = context;
    const struct expected_row *expected = &comparison->table[row->worker];
    ck_assert_uint_eq(row->worker, comparison->rows);
    ck_assert_uint_eq(row->pu_count, PUS);
    for (uint32_t i = 0; i < PUS; i++) {
        ck_assert_uint_eq(row->pus[i], i);
    }
    assert_column("rule 1", row->worker, expected->rule1, row->rule1, row);
    assert_column("rule 2", row->worker, expected->rule2, row->rule2, row);
    assert_column("rule 3", row->worker, expected->rule3, row->rule3, row);
    assert_column("total", row->worker, expected->total, row->total, row);
    ck_assert_uint_eq(row->chosen, expected->chosen);
    ck_assert_uint_eq(row->by_sum, expected->chosen); /* order and sum agree in both tables */
    comparison->rows++;
}

static void assert_table(enum map_priority priority, const struct expected_row *table,
                         const uint32_t *placement)
{
    struct comparison comparison = {.table = table};
    struct map_explainer explainer = {compare_row, &comparison};
    struct map_request request = {.priority = priority, .workers = 4};
    const struct servet_profile *profile = loaded(NEHALEM);
    uint32_t explained[4], silent[4];
    ck_assert_int_eq(map_workers(profile, &request, explained, &explainer, NULL), 0);
    ck_assert_uint_eq(comparison.rows, 4);
    ck_assert_mem_eq(explained, placement, sizeof explained);
    ck_assert_int_eq(map_workers(profile, &request, silent, NULL, NULL), 0);
    ck_assert_mem_eq(silent, placement, sizeof silent);
}

TEST(mapping_follows_table_1_of_the_paper)
{
    assert_table(MAP_MEMORY, table1, (const uint32_t[]){0, 1, 8, 9});
}

TEST(mapping_follows_table_2_of_the_paper)
{
    assert_table(MAP_COMMUNICATION, table2, (const uint32_t[]){0, 1, 4, 5});
}
