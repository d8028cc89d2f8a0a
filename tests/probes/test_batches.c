/* Do several pairs at a time run on real threads: operations of eight workers, the probes with
 * their check of whether pairs disturb one another, a cancelled batch, a worker that fails in one?
 * The workers of eight PUs share those that this process has, so that no figure means anything;
 * what counts is that all come to an end, and how. */
#include <pthread.h>

#include "probes/native/native.h"
#include "tests/base/runner.h"
#include "tests/probes/native/folded.h"
#include "tests/probes/open_fixture.h"

enum { PUS = 8, PAIRS = PUS / 2 };

static volatile sig_atomic_t cancel;
static const uint32_t pus[PUS] = {0, 1, 2, 3, 4, 5, 6, 7};
static const struct profile_pair pairs[PAIRS] = {{0, 1}, {2, 5}, {3, 4}, {6, 7}};

static void open_machine(void)
{
    cancel = 0;
    open_folded(PUS, &cancel, &machine);
}

static void close_machine(void)
{
    probe_machine_close(&machine);
}

static void assert_figures(const double *figures, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(figures[i] > 0 && isfinite(figures[i]), "figure %zu: %g", i, figures[i]);
    }
}

TEST(operations_of_several_pairs_end_with_a_figure_of_each)
{
    const struct machine_traversal chase = {.bytes = 64 << 10,
                                            .stride_bytes = 256,
                                            .order = MACHINE_CHASE,
                                            .warm_passes = 2,
                                            .seed = 1};
    const struct machine_copy copies = {.bytes = 256 << 10, .passes = 2, .numa = -1};
    const struct machine_exchange line = {64, 5, 2, false}, large = {64 << 10, 2, 2, true};
    for (int round = 0; round < 5; round++) {
        double figures[PUS];
        ck_assert_int_eq(probe_machine_traverse(&machine, &chase, pus, PUS, figures), 0);
        assert_figures(figures, PUS);
        ck_assert_int_eq(probe_machine_copy(&machine, &copies, pus, PUS, figures), 0);
        assert_figures(figures, PUS);
        ck_assert_int_eq(probe_machine_exchange(&machine, &line, pairs, PAIRS, figures), 0);
        assert_figures(figures, PAIRS);
        ck_assert_int_eq(probe_machine_exchange(&machine, &large, pairs, PAIRS, figures), 0);
        assert_figures(figures, PAIRS);
    }
}

/* Each alone has room, all together have not: the last is refused, and the first gets the right
 * answer. */
TEST(workers_of_a_batch_count_what_the_others_are_about_to_take)
{
    const struct machine_copy copies = {.bytes = 4 << 20, .passes = 1, .numa = -1};
    double rates[PUS] = {-1};
    machine.memory_limit_bytes = 3 * 2 * copies.bytes;
    ck_assert_int_eq(probe_machine_copy(&machine, &copies, pus, PUS, rates), -ENOMEM);
    ck_assert_double_eq(rates[0], -1);
    ck_assert_int_eq(probe_machine_copy(&machine, &copies, pus, 2, rates), 0);
    assert_figures(rates, 2);
}

/* Counts the calls that reach the native backend. */
static size_t most_copying, most_exchanging;
static bool alone_seen, went_offline;

static int count_copy(struct machine *m, const struct machine_copy *what, const uint32_t *at,
                      size_t count, double *rates)
{
    struct machine_copy small = *what;
    small.bytes =
        128 << 10; /* the PUs of a machine of eight have as many channels; these have not */
    most_copying = count > most_copying ? count : most_copying;
    return honest->copy(m, &small, at, count, rates);
}

static int count_exchange(struct machine *m, const struct machine_exchange *what,
                          const struct profile_pair *at, size_t count, double *seconds)
{
    const struct machine_exchange brief = {what->bytes < 4096 ? what->bytes : 4096, 2, 2, false};
    most_exchanging = count > most_exchanging ? count : most_exchanging;
    return honest->exchange(m, &brief, at, count, seconds);
}

static struct machine_ops *count_operations(void)
{
    struct machine_ops *ops = replace_operations();
    most_copying = most_exchanging = 0;
    ops->copy = count_copy;
    ops->exchange = count_exchange;
    machine.memory_limit_bytes =
        (size_t)4 << 30; /* room for four pairs, which their small copies do not need */
    return ops;
}

static const struct probe_run all_pairs = {.probes = PROBE_MEMORY | PROBE_MESSAGE,
                                           .exhaustive = true};

TEST(the_probes_try_batches_and_give_a_valid_profile)
{
    count_operations();
    const struct servet_profile *profile = run_probes(all_pairs);
    ck_assert_uint_ge(most_copying, PUS); /* a check of four pairs */
    ck_assert_uint_ge(most_exchanging, PAIRS);
    const struct profile_class *node_class = &profile->classes[0];
    ck_assert(node_class->memory.reference_bytes_per_s > 0);
    ck_assert_uint_ge(node_class->communication.layer_count, 1);
    FREED char *text = profile_to_json(profile);
    ck_assert_ptr_nonnull(text);
}

static void *cancel_soon(void *unused)
{
    (void)unused;
    usleep(150000);
    __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
    return NULL;
}

TEST(a_cancelled_batch_ends)
{
    const struct machine_copy copies = {.bytes = 4 << 20, .passes = 1u << 20, .numa = -1};
    const struct machine_exchange messages = {64, 1u << 30, 1, false};
    double figures[PUS] = {-1};
    for (int kind = 0; kind < 2; kind++) {
        pthread_t thread;
        cancel = 0;
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
        int rc = kind ? probe_machine_exchange(&machine, &messages, pairs, PAIRS, figures)
                      : probe_machine_copy(&machine, &copies, pus, PUS, figures);
        pthread_join(thread, NULL);
        ck_assert_int_eq(rc, -EINTR);
        ck_assert_double_eq(figures[0], -1);
    }
    cancel = 0; /* and the workers are there again */
    const struct machine_copy one = {.bytes = 64 << 10, .passes = 1, .numa = -1};
    ck_assert_int_eq(probe_machine_copy(&machine, &one, pus, PUS, figures), 0);
    assert_figures(figures, PUS);
}

/* A PU goes offline: its worker finds itself elsewhere. */
static int go_offline(struct machine *m, const struct machine_copy *what, const uint32_t *at,
                      size_t count, double *rates)
{
    struct native *backend = m->state;
    struct native_worker *worker = backend->workers[3];
    uint32_t before = worker->pu;
    bool inside = false;
    for (size_t i = 0; i < count; i++) {
        inside |= at[i] == 3;
    }
    alone_seen |= count == 1; /* the probes have begun */
    bool now = inside && alone_seen && count > 2 && !went_offline;
    went_offline |= now;
    worker->pu = now ? UINT32_MAX : before;
    int rc = count_copy(m, what, at, count, rates);
    worker->pu = before;
    return rc;
}

TEST(a_pu_that_goes_offline_in_a_batch_ends_the_run)
{
    struct servet_error error;
    struct servet_profile *profile;
    const struct machine_copy one = {.bytes = 64 << 10, .passes = 1, .numa = -1};
    double rates[PUS];
    ck_assert_int_eq(probe_machine_copy(&machine, &one, pus, PUS, rates), 0);
    count_operations()->copy = go_offline;
    alone_seen = went_offline = false;
    ck_assert_int_eq(try_probes(all_pairs, &profile, &error), -ENODEV);
    ck_assert(went_offline);
    machine.ops = honest;
    ck_assert_int_eq(probe_machine_copy(&machine, &one, pus, PUS, rates), 0);
    assert_figures(rates, PUS);
}

TESTS(.seconds = 100, .setup = open_machine, .teardown = close_machine)
