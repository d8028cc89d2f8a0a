/* Do simulated machines share memory bandwidth as measured ones do, and take their message times
 * from a matrix? */
#include "probes/machine.h"
#include "probes/pairs/messages.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

static double together(const char *list)
{
    const struct profile_set pus = set_of(list);
    double rates[64], sum = 0;
    const struct machine_copy what = {.bytes = 1 << 20, .passes = 1, .numa = -1};
    ck_assert_int_eq(probe_machine_copy(&machine, &what, pus.ids, pus.count, rates), 0);
    for (size_t i = 0; i < pus.count; i++) {
        sum += rates[i];
    }
    return sum;
}

/* GB/s of the PUs together as measured on the machine that the fixture describes. */
TEST(an_epyc_of_four_dies_shares_as_it_was_measured)
{
    static const struct {
        const char *pus;
        double gb_per_s;
    } rows[] = {
        {"0", 19.9},
        {"0-1", 31.9},
        {"0-2,24", 36.0},
        {"0,3", 33.5},
        {"0-1,3-4", 35.9},
        {"0-5,24,27", 36.9},
        {"0,3,6,9", 63.1},
        {"0-1,3-4,6-7,9-10", 69.5},
        {"0-11,24,27,30,33", 72.4},
        {"0,3,6,9,12,15,18,21", 101.6},
        {"0-1,3-4,6-7,9-10,12-13,15-16,18-19,21-22", 109.7},
        {"0-23,24,27,30,33,36,39,42,45", 116.0},
    };
    open_machine_of("epyc-7402");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double sum = together(rows[i].pus) / 1e9;
        ck_assert_msg(sum > 0.94 * rows[i].gb_per_s && sum < 1.04 * rows[i].gb_per_s,
                      "%s: %g GB/s, measured were %g", rows[i].pus, sum, rows[i].gb_per_s);
    }
}

/* As they do on the machine itself. */
TEST(a_part_takes_its_part_of_the_time)
{
    const struct machine_copy whole = {.bytes = 64u << 20, .passes = 1, .numa = -1},
                              part = {
                                  .bytes = 64u << 20, .passes = 1, .part = 16u << 20, .numa = -1};
    double rate, took[2];
    open_machine_of("epyc-7402");
    for (size_t i = 0; i < 2; i++) {
        const double before = probe_machine_elapsed(&machine);
        ck_assert_int_eq(
            probe_machine_copy(&machine, i ? &part : &whole, machine.pus.ids, 1, &rate), 0);
        took[i] = probe_machine_elapsed(&machine) - before;
    }
    ck_assert(took[1] > took[0] / 4 && took[1] < took[0] / 3);
}

/* A worker in a full domain gets less; the others share the rest, up to their own maximum. */
TEST(nested_domains_share_fairly)
{
    open_machine_of("xeon-snc4");
    const double eight_packed = together("0-7"), eight_spread = together("0-1,8-9,16-17,24-25");
    ck_assert_double_eq_tol(eight_packed, 6e10, 0.05 * 6e10);
    ck_assert_double_eq_tol(eight_spread, 8 * 1.4e10, 0.05 * 8 * 1.4e10);
    ck_assert_double_eq_tol(together("0-8"), 6e10 + 1.4e10, 0.05 * 7.4e10);
    ck_assert_double_eq_tol(together("0-31"), 2.2e11, 0.05 * 2.2e11);
}

/* -- a matrix of message times -- */

#define MATRIX "'pus': '0,2,5', 'exchange_matrix': {'file': 'm.csv'}"

static void open_matrix(const char *description, const char *csv)
{
    scratch_file("m.csv", "%s", csv);
    open_machine_with(1, "%s", description);
}

static double message(uint32_t a, uint32_t b, size_t bytes)
{
    const struct profile_pair pair = {a, b};
    const struct machine_exchange what = {.bytes = bytes, .round_trips = 1, .batches = 1};
    double seconds;
    ck_assert_int_eq(probe_machine_exchange(&machine, &what, &pair, 1, &seconds), 0);
    return seconds;
}

TEST(a_line_takes_the_time_of_the_matrix_and_more_takes_more)
{
    open_matrix(MATRIX, ",10,50.5\n10,,51\r\n50.5,51,\n");
    ck_assert_double_eq_tol(message(0, 2, 64), 10e-9, 1e-15);
    ck_assert_double_eq_tol(message(5, 0, 8), 50.5e-9, 1e-15);
    open_matrix(MATRIX ", 'noise': {'relative': 0.5}", ",10,50\n10,,50\n50,50,\n");
    ck_assert_double_gt(message(0, 2, 64), 10.01e-9);
    /* Line by line, ten on the way: far is far for long messages, too. */
    open_matrix(MATRIX, ",10,50\n10,,50\n50,50,\n");
    ck_assert_double_eq_tol(message(0, 2, 64 * 101), 11 * 10e-9, 1e-14);
    ck_assert_double_eq_tol(message(0, 5, 64 * 101), 11 * 50e-9, 1e-14);
}

/* A layer's messages at a time hold for the pairs that are in it. */
TEST(layers_beside_a_matrix_give_contention)
{
    open_matrix(MATRIX ", 'layers': [{'groups': ['0,2'], 'seconds': 1e-6, 'bytes_per_s': 1e8, "
                       "'parallel': 0.5}]",
                ",10,50\n10,,50\n50,50,\n");
    ck_assert_double_eq_tol(message(0, 2, 64), 2 * 10e-9, 1e-15);
    ck_assert_double_eq_tol(message(0, 2, 64 * 11), 2 * 20e-9, 1e-14);
    ck_assert_double_eq_tol(message(0, 5, 64 * 11), 2 * 50e-9, 1e-14);
}

/* 32 tiles of two cores that nothing declares, as on a virtual machine: 1.6 % of the pairs. Ten
 * seeds, because which pairs are looked at is drawn. */
TEST(what_no_topology_says_is_found_by_messages_of_a_sample)
{
    const char *tiles = "'0,32'";
    for (int i = 1; i < 32; i++) {
        tiles = formatted("%s, '%d,%d'", tiles, i, i + 32);
    }
    for (uint64_t seed = 1; seed <= 10; seed++) {
        FREED_BY(profile_communication_free) struct profile_communication found;
        open_machine_with(1,
                          "'pus': '0-63', 'layers': [{'groups': [%s], 'seconds': 4e-8, "
                          "'bytes_per_s': 1e11}, {'groups': ['0-63'], 'seconds': 9e-8, "
                          "'bytes_per_s': 1e11}], 'noise': {'relative': 0.01}",
                          tiles);
        probe.seed = 1000 * seed;
        ck_assert_int_eq(probe_message(&probe, 8, &found, NULL), 0);
        ck_assert_uint_eq(found.layer_count, 2);
        ck_assert_uint_eq(found.layers[0].members.group_count, 32);
    }
}
