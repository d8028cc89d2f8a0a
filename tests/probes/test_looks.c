/* Figures between PUs: is a cache line's time found for each pair and layer, does a look later
 * widen a spread that one burst had too narrow, do messages say of which data they are, and do
 * loops over memory each get their own? */
#include "probes/memory/memory.h"
#include "probes/memory/rates.h"
#include "probes/pairs/messages.h"
#include "profile/base/random.h"
#include "profile/query.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

/* Two PUs, and what messages between them take. */
#define PAIR(bytes_per_s)                                                                          \
    "'pus': '0-1', 'layers': [{'groups': ['0-1'], 'seconds': 1e-7, 'bytes_per_s': " bytes_per_s "}]"

/* -- lines -- */

enum { PUS = 8 };

/* Four cores of two: 20 ns inside, 100 ns and a little between. */
static double line_ns(size_t i, size_t j)
{
    return i / 2 == j / 2 ? 20 : 100 + 0.25 * (double)(i + j);
}

static struct profile_communication lines_of(bool exhaustive)
{
    struct profile_communication found;
    const char *csv = "";
    struct servet_error error;
    for (size_t i = 0; i < PUS * PUS; i++) {
        csv = formatted("%s%g%s", csv, i % (PUS + 1) ? line_ns(i / PUS, i % PUS) : 0,
                        (i + 1) % PUS ? "," : "\n");
    }
    scratch_file("m.csv", "%s", csv);
    open_machine_with(1, "'pus': '0-7', 'exchange_matrix': {'file': 'm.csv'}");
    probe.exhaustive = exhaustive;
    ck_assert_int_eq(probe_message(&probe, 4096, &found, &error), 0);
    ck_assert_uint_eq(found.layer_count, 2);
    ck_assert(found.layers[0].line_seconds == 0);
    ck_assert_int_eq(probe_lines(&probe, &found, NULL), 0);
    return found;
}

TEST(lines_are_those_of_the_machine)
{
    FREED_BY(profile_communication_free) struct profile_communication found = lines_of(true);
    ck_assert_double_eq_tol(found.layers[0].line_seconds, 20e-9, 1e-12);
    ck_assert_double_eq_tol(found.layers[1].line_seconds, 101.75e-9, 0.5e-9);
    ck_assert_int_eq(found.layers[1].line_quality.origin, PROFILE_MEASURED);
    ck_assert_uint_eq(found.line_time_count, PUS * (PUS - 1) / 2);
    ck_assert_uint_eq(found.message_time_count, PUS * (PUS - 1) / 2);
    for (uint32_t i = 0; i < PUS; i++) {
        for (uint32_t j = i + 1; j < PUS; j++) {
            double line = profile_pair_figure(found.line_times, found.line_time_count, j, i);
            ck_assert_double_eq_tol(line, line_ns(i, j) * 1e-9, 0.06e-9); /* four digits */
        }
    }
    ck_assert(profile_pair_figure(found.line_times, found.line_time_count, 3, 8) == 0);
}

TEST(lines_of_a_sample_are_of_every_layer_and_of_few_pairs)
{
    FREED_BY(profile_communication_free) struct profile_communication found = lines_of(false);
    ck_assert_double_eq_tol(found.layers[0].line_seconds, 20e-9, 1e-12);
    ck_assert_double_eq_tol(found.layers[1].line_seconds, 101.75e-9, 1.5e-9);
    ck_assert_uint_eq(found.line_time_count, 4 + 8); /* all siblings, eight of the others */
}

/* The layers that another way of messages finds: siblings as before, then all but PU 7, then all;
 * each gets the lines of its own pairs, and what no pair was measured of gets none. */
TEST(lines_move_to_layers_that_other_messages_found)
{
    FREED_BY(profile_communication_free) struct profile_communication from = lines_of(true);
    struct profile_layer layers[] = {{.members = relation_of("0-1 2-3 4-5 6-7")},
                                     {.members = relation_of("0-6")},
                                     {.members = relation_of("0-7")},
                                     {.members = relation_of("0-7")}};
    struct profile_communication to = {.layers = layers, .layer_count = 4};
    ck_assert_int_eq(probe_lines_move(&from, &to), 0);
    ck_assert_uint_eq(from.line_time_count, 0);
    ck_assert_uint_eq(to.line_time_count, PUS * (PUS - 1) / 2);
    ck_assert_double_eq_tol(layers[0].line_seconds, 20e-9, 1e-12);
    ck_assert_double_eq_tol(layers[1].line_seconds, 101.5e-9, 0.3e-9);
    ck_assert_double_eq_tol(layers[2].line_seconds, 102.4e-9, 0.3e-9); /* PU 7 and 0 … 5 */
    ck_assert(layers[3].line_seconds == 0);
    ck_assert_uint_eq(layers[2].line_quality.repetitions, 15);
    free(to.line_times);
}

/* -- looks apart in time -- */

TEST(the_smaller_of_two_looks_counts_and_their_distance_is_spread)
{
    double seconds = 2, spread = 0.01;
    uint32_t repetitions = 5;
    probe_repeat_look_again(&seconds, &spread, &repetitions, &(struct probe_settled){1, 0.02, 10});
    ck_assert_double_eq(seconds, 1);
    ck_assert_double_eq_tol(spread, 1.02, 1e-9); /* to the end of the slower one's own */
    ck_assert_uint_eq(repetitions, 15);
    probe_repeat_look_again(&seconds, &spread, &repetitions, &(struct probe_settled){1, -1, 5});
    ck_assert_double_eq_tol(spread, 1.02, 1e-9); /* never narrower */
    spread = -1;
    probe_repeat_look_again(&seconds, &spread, &repetitions, &(struct probe_settled){1, -1, 5});
    ck_assert_double_eq(spread, 0);
}

static double waited_s, longer = 1;
static uint64_t drift; /* 0: there is none */

/* All takes `longer`, data that is never written half as long, and where it drifts up to three
 * times as long for ten simulated seconds at a time. */
EXCHANGE(exchange_changed)
{
    struct random random = {drift + (uint64_t)(probe_machine_elapsed(subject) / 10)};
    random_next(&random);
    const double slower = drift ? 1 + 2 * random_unit(&random) : 1;
    int rc = honest->exchange(subject, what, pairs, count, seconds);
    for (size_t i = 0; i < count && rc == 0; i++) {
        seconds[i] *= longer * slower * (what->unwritten ? 0.5 : 1);
    }
    return rc;
}

/* The machine, whose messages change so. */
static void change_messages(void)
{
    replace_operations()->exchange = exchange_changed;
}

/* Messages and lines of a run between the only two PUs. */
struct said {
    double message, message_spread, line, line_spread, curve, curve_spread;
};

/* Messages drift: within one look nothing of it is to be seen. */
static struct said run_of(uint64_t seed, int looks)
{
    FREED_BY(profile_communication_free) struct profile_communication found;
    double rate;
    open_machine_with(seed, PAIR("1e10") ", 'noise': {'relative': 0.005}");
    change_messages();
    drift = seed;
    ck_assert_int_eq(probe_message(&probe, 16384, &found, NULL), 0);
    ck_assert_int_eq(probe_lines(&probe, &found, NULL), 0);
    for (int i = 1; i < looks; i++) {
        /* Other probes take their time. */
        const struct machine_copy other = {.bytes = (size_t)20e9, .passes = 3, .numa = -1};
        ck_assert_int_eq(probe_machine_copy(&machine, &other, &(uint32_t){0}, 1, &rate), 0);
        ck_assert_int_eq(probe_message_look_again(&probe, &found, NULL), 0);
        ck_assert_int_eq(probe_lines(&probe, &found, NULL), 0);
    }
    const struct profile_layer *layer = &found.layers[0];
    struct said said = {layer->seconds,          layer->quality.spread,
                        layer->line_seconds,     layer->line_quality.spread,
                        layer->curve[3].seconds, layer->curve[3].spread};
    ck_assert_double_eq_tol(found.message_times[0].value, layer->seconds, 1e-3 * layer->seconds);
    drift = 0;
    return said;
}

/* How many of the runs' figures hold within their own spread what the next run says? */
static size_t covered(int looks, size_t runs)
{
    size_t count = 0;
    struct said before = run_of(1, looks);
    for (size_t i = 0; i < runs; i++) {
        struct said next = run_of(2 + i, looks);
        count += fabs(next.message / before.message - 1) <= before.message_spread;
        count += fabs(next.line / before.line - 1) <= before.line_spread;
        count += fabs(next.curve / before.curve - 1) <= before.curve_spread;
        before = next;
    }
    return count;
}

TEST(spreads_cover_what_a_second_run_says)
{
    enum { RUNS = 100 };
    size_t once = covered(1, RUNS), often = covered(4, RUNS);
    ck_assert_msg(often >= 3 * RUNS * 9 / 10, "%zu of %d covered", often, 3 * RUNS);
    /* And that is what the looks are for. */
    ck_assert_msg(once < 3 * RUNS / 2, "%zu of %d covered by one look", once, 3 * RUNS);
}

EXCHANGE(exchange_that_waits)
{
    waited_s += 1;
    return exchange_changed(subject, what, pairs, count, seconds);
}

static struct machine_times waited(struct machine *m)
{
    (void)m;
    return (struct machine_times){.waited = waited_s};
}

static void open_pair(void)
{
    open_machine_with(1, PAIR("1e10"));
    waited_s = 0;
}

/* Two of five exchanges wait for a PU: one, and the guard's repetition of it. */
EXCHANGE(exchange_that_waits_at_times)
{
    static size_t calls;
    return calls++ % 5 < 2 ? exchange_that_waits(subject, what, pairs, count, seconds)
                           : honest->exchange(subject, what, pairs, count, seconds);
}

/* The first measurement, too; where nothing else was seen there is no spread, and the first look
 * without others takes the place of that. */
TEST(turns_that_others_disturbed_do_not_widen)
{
    struct profile_communication found;
    open_pair();
    struct machine_ops *ops = replace_operations();
    ops->times = waited;
    ops->exchange = exchange_that_waits_at_times;
    longer = 100;
    ck_assert_int_eq(probe_message(&probe, 16384, &found, NULL), 0);
    const struct profile_layer *layer = &found.layers[0];
    ck_assert_uint_gt(machine.guard.disturbed, 0);
    ck_assert_double_lt(layer->quality.spread, 1);
    ck_assert_double_lt(layer->concurrency[0].spread, 1);
    for (size_t i = 0; i < layer->curve_count; i++) {
        ck_assert_double_lt(layer->curve[i].spread, 1);
    }
    const double seconds = layer->curve[3].seconds;
    profile_communication_free(&found);
    ops->exchange = exchange_that_waits;
    ck_assert_int_eq(probe_message(&probe, 16384, &found, NULL), 0);
    layer = &found.layers[0];
    ck_assert_double_lt(layer->quality.spread, 0);
    ck_assert_double_lt(layer->curve[3].spread, 0);
    ck_assert_double_gt(layer->curve[3].seconds, 50 * seconds);
    ops->exchange = honest->exchange;
    for (int look = 0; look < 2; look++) {
        ck_assert_int_eq(probe_message_look_again(&probe, &found, NULL), 0);
    }
    ck_assert_double_eq_tol(layer->curve[3].seconds, seconds, 0.1 * seconds);
    ck_assert_double_ge(layer->curve[3].spread, 0);
    ck_assert_double_lt(layer->curve[3].spread, 1);
    ck_assert_double_lt(layer->quality.spread, 1);
    profile_communication_free(&found);
}

/* A look that is a hundred times as long counts, but not where others are known to have run. */
TEST(looks_that_others_disturbed_do_not_widen)
{
    FREED_BY(profile_communication_free) struct profile_communication found;
    open_pair();
    ck_assert_int_eq(probe_message(&probe, 16384, &found, NULL), 0);
    const struct profile_layer *layer = &found.layers[0];
    const double seconds = layer->seconds, curve = layer->curve[3].spread;
    struct machine_ops *ops = replace_operations();
    ops->times = waited;
    ops->exchange = exchange_that_waits;
    longer = 100;
    ck_assert_int_eq(probe_message_look_again(&probe, &found, NULL), 0);
    ck_assert_double_lt(layer->quality.spread, 1);
    ck_assert_double_eq(layer->curve[3].spread, curve);
    longer = 0.5; /* the least counts however it came about */
    ck_assert_int_eq(probe_message_look_again(&probe, &found, NULL), 0);
    ck_assert_double_eq_tol(layer->seconds, seconds / 2, 1e-3 * seconds);
    longer = 100;
    ops->exchange = exchange_changed;
    ck_assert_int_eq(probe_message_look_again(&probe, &found, NULL), 0);
    ck_assert_double_gt(layer->quality.spread, 50);
    ck_assert_double_gt(layer->curve[3].spread, 50);
}

/* -- data of messages -- */

TEST(messages_say_of_which_data_they_are)
{
    for (int unwritten = 0; unwritten < 2; unwritten++) {
        FREED_BY(profile_communication_free) struct profile_communication found;
        open_machine_with(1, PAIR("1e9"));
        change_messages();
        probe.unwritten = unwritten;
        ck_assert_int_eq(probe_message(&probe, 32768, &found, NULL), 0);
        ck_assert_str_eq(found.message_data, unwritten ? "unwritten" : "written");
        ck_assert_double_eq_tol(found.layers[0].seconds, (1e-7 + 32768 / 1e9) / (1 + unwritten),
                                1e-12);
    }
}

/* -- loops over memory -- */

static size_t loops, loops_as_given, looped_bytes;
/* The share of the rate of copies that each loop gets. */
static const double shares[PROFILE_KERNELS] = {1, 1, 0.5, 0.6};

COPY(note_pages)
{
    loops++;
    loops_as_given += what->pages == MACHINE_PAGES_GIVEN;
    looped_bytes = machine_copy_pass(what);
    int rc = honest->copy(subject, what, pus, count, rates);
    for (size_t i = 0; i < count; i++) {
        rates[i] *= shares[what->kernel];
    }
    return rc;
}

/* Slow memory moves much data in minutes. */
TEST(loops_are_as_long_as_the_copies_of_the_levels)
{
    enum { ARRAY = 1 << 28 };
    FREED_BY(probe_memory_free)
    struct probe_memory found = {.array_bytes = ARRAY, .memory.method = strdup("levels")};
    open_machine_with(1, "'pus': '0-3'");
    replace_operations()->copy = note_pages;
    probe.alone_bytes_per_s = 1e9;
    const struct machine_copy usual = probe_memory_what(&probe, ARRAY, -1);
    ck_assert_int_eq(probe_memory_kernels(&probe, &found, NULL), 0);
    ck_assert_uint_lt(looped_bytes, ARRAY);
    ck_assert_uint_eq(looped_bytes, machine_copy_pass(&usual));
}

/* On memory as a program gets it, whatever the levels are measured on. */
TEST(each_loop_has_its_own_bandwidth)
{
    FREED_BY(probe_memory_free)
    struct probe_memory found = {.array_bytes = 1 << 20, .memory.method = strdup("levels")};
    open_machine_with(1, "'pus': '0-3', 'huge_page_bytes': 2097152, 'memory': {'seconds': 1e-7, "
                         "'pu_bytes_per_s': 1e10, 'domains': [{'pus': '0-3', 'bytes_per_s': "
                         "[{'bytes_per_s': 2e10}]}]}");
    replace_operations()->copy = note_pages;
    ck_assert_int_eq(probe_memory_kernels(&probe, &found, NULL), 0);
    ck_assert_uint_gt(loops, 0);
    ck_assert_uint_eq(loops_as_given, loops);
    const struct profile_memory *memory = &found.memory;
    ck_assert_str_eq(memory->method, "levels; loops on pages as the system gives them");
    ck_assert_uint_eq(memory->kernel_count, PROFILE_KERNELS);
    ck_assert_uint_eq(memory->kernel_pus.count, 4);
    for (size_t i = 0; i < PROFILE_KERNELS; i++) {
        ck_assert_uint_eq(memory->kernels[i].kernel, i);
        ck_assert_double_eq_tol(memory->kernels[i].bytes_per_s, 1e10 * shares[i], 1);
        ck_assert_double_eq_tol(memory->kernels[i].together_bytes_per_s, 2e10 * shares[i], 1);
        ck_assert_int_eq(memory->kernels[i].levels, i == PROFILE_NT_COPY);
    }
}

TESTS(.seconds = 100)
