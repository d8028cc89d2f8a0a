/* Is a measurement repeated when other tasks were in the way, no longer than promised, and is a
 * busy machine marked? And does a fault of the machine come through as what it is? */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "probes/run/run.h"
#include "profile/topology/topology.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

/* A machine of one PU whose operations take a second each, of which they wait by turns
 * `waits[0]` and `waits[1]`; the figure of the n-th is n. */
struct world {
    double waits[2];
    size_t asked;
    double clock_s, waited_s;
    double step_s;       /* that an operation takes */
    size_t offline_from; /* operations from this one on fail; 0: none */
};

TRAVERSE(traverse)
{
    struct world *world = subject->state;
    if (world->offline_from && world->asked >= world->offline_from) {
        return -ENODEV;
    }
    for (size_t i = 0; i < count; i++) {
        seconds[i] = (double)world->asked;
    }
    world->waited_s += world->waits[world->asked++ % 2];
    world->clock_s += world->step_s;
    return 0;
}

EXCHANGE(exchange)
{
    ((struct world *)subject->state)->asked++;
    memset(seconds, 0, count * sizeof *seconds);
    return 0;
}

static double elapsed(struct machine *subject)
{
    return ((const struct world *)subject->state)->clock_s;
}

static struct machine_times waited(struct machine *subject)
{
    return (struct machine_times){.waited = ((const struct world *)subject->state)->waited_s};
}

static const struct machine_ops ops = {
    .traverse = traverse, .exchange = exchange, .elapsed = elapsed, .times = waited};
static const struct machine_traversal small = {.bytes = 8192, .stride_bytes = 64};
static const uint32_t pu;
static struct world world;

static void may_use(const char *pus)
{
    machine.pus = set_of(pus);
}

static void start(double first_wait, double second_wait)
{
    world = (struct world){.waits = {first_wait, second_wait}, .step_s = 1};
    machine = (struct machine){.ops = &ops, .state = &world};
    may_use("0");
}

static double measure(void)
{
    double seconds = -1;
    ck_assert_int_eq(probe_machine_traverse(&machine, &small, &pu, 1, &seconds), 0);
    return seconds;
}

TEST(a_calm_measurement_is_made_once)
{
    start(0.001, 0.001);
    ck_assert_double_eq(measure(), 0);
    ck_assert_uint_eq(world.asked, 1);
    ck_assert(!probe_machine_was_busy(&machine));
}

TEST(the_calmer_of_two_counts)
{
    start(0.5, 0);
    ck_assert_double_eq(measure(), 1);
    ck_assert_uint_eq(machine.guard.disturbed, 0);
    start(0.3, 0.6);
    ck_assert_double_eq(measure(), 0);
    ck_assert_uint_eq(machine.guard.disturbed, 1);
    ck_assert(probe_machine_was_busy(&machine));
}

TEST(a_machine_that_is_never_idle_is_not_measured_twice_for_ever)
{
    start(0.5, 0.5);
    for (int i = 0; i < 100; i++) {
        measure();
    }
    ck_assert_uint_gt(machine.guard.repeated, 0);
    ck_assert_uint_lt(world.asked, 110);
    ck_assert(probe_machine_was_busy(&machine));
}

static double others_of_nine(struct machine *asked)
{
    (void)asked;
    return 9;
}

static struct machine_times ran(struct machine *asked)
{
    const struct world *of = asked->state;
    return (struct machine_times){.waited = of->waited_s, .ran = of->clock_s - of->waited_s};
}

/* One operation that waits so long, on a machine that counts who else runs. */
static void start_beside_nine(double wait)
{
    start(wait, wait);
    struct machine_ops *counted = replace_operations();
    counted->others = others_of_nine;
    counted->times = ran;
}

TEST(how_long_operations_wait_says_how_busy_it_is_once_there_are_some)
{
    start_beside_nine(0.75);
    ck_assert_double_eq_tol(probe_machine_pace(&machine), 10, 1e-9);
    measure();
    ck_assert_double_eq_tol(probe_machine_pace(&machine), 4, 1e-9);
    machine.guard.asked_s = 0.5;
    machine.guard.ran_s = 0.5 / 100; /* no more than everybody's share */
    ck_assert_double_eq_tol(probe_machine_pace(&machine), 10, 1e-9);
    machine.guard.ran_s = 0.6;
    ck_assert_double_eq_tol(probe_machine_pace(&machine), 1, 1e-9);
}

/* Hundreds of short operations come before: they would hide a few disturbed ones. */
TEST(what_a_machine_settles_with_is_no_measurement)
{
    const struct profile_class nothing = {0};
    struct conditions_before before;
    start_beside_nine(0);
    world.step_s = 0.001;
    ck_assert_int_eq(probe_conditions_before(&machine, &nothing, &before), 0);
    ck_assert_uint_gt(world.asked, 50);
    ck_assert_double_ge(machine.guard.asked_s, MACHINE_PACE_LEAST_S);
    ck_assert_uint_eq(machine.guard.operations, 0);
}

TEST(a_pu_that_goes_offline_is_reported)
{
    double seconds = -1;
    start(0.5, 0.5);
    world.offline_from = 1; /* during the repetition: the first figure stands */
    ck_assert_double_eq(measure(), 0);
    ck_assert_int_eq(probe_machine_traverse(&machine, &small, &pu, 1, &seconds), -ENODEV);
    ck_assert_double_eq(seconds, -1);
}

TEST(a_cancelled_machine_is_not_asked)
{
    static const volatile sig_atomic_t cancelled = 1;
    double seconds;
    start(0, 0);
    machine.cancel = &cancelled;
    ck_assert_int_eq(probe_machine_traverse(&machine, &small, &pu, 1, &seconds), -EINTR);
    ck_assert_uint_eq(world.asked, 0);
}

TEST(pairs_of_one_exchange_are_disjoint)
{
    static const struct machine_exchange line = {64, 50, 3, false};
    static const struct profile_pair chain[] = {{0, 1}, {1, 2}}, twice[] = {{0, 0}},
                                     apart[] = {{0, 1}, {2, 3}};
    double seconds[2];
    start(0, 0);
    may_use("0-3");
    ck_assert_int_eq(probe_machine_exchange(&machine, &line, chain, 2, seconds), -EINVAL);
    ck_assert_int_eq(probe_machine_exchange(&machine, &line, twice, 1, seconds), -EINVAL);
    ck_assert_uint_eq(world.asked, 0);
    ck_assert_int_eq(probe_machine_exchange(&machine, &line, apart, 2, seconds), 0);
}

TEST(ticks_of_the_measured_pus_are_summed)
{
    static const struct profile_ticks ticks[] = {{42, 34, 5}, {110, 7, 3}, {9, 9, 9}};
    const struct profile_set pus = set_of("0-1,3");
    struct profile_ticks sum = probe_conditions_sum(ticks, 3, &pus);
    ck_assert_uint_eq(sum.all, 42 + 110);
    ck_assert_uint_eq(sum.idle, 34 + 7);
    ck_assert_uint_eq(sum.stolen, 8);
}

/* -- what else the machine did -- */

static atomic_bool spinning;

static void *spin(void *argument)
{
    const uint32_t *on = argument;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(*on, &mask);
    sched_setaffinity(0, sizeof mask, &mask);
    while (spinning) {
    }
    return NULL;
}

/* The conditions after a while in which the second PU was busy; `core`: the PUs of the only core
 * there is. */
static struct servet_profile *watched(const char *core)
{
    struct servet_profile *profile = kept(profile_topology_new());
    struct conditions_before before;
    pthread_t thread;
    profile->classes[0].pus = set_of("0-1");
    profile->classes[0].cores = relation_of(core);
    start(0, 0);
    may_use("0");
    world.asked = 1; /* figures of a PU that never settles: 1, 2, 3 ... */
    world.step_s = 0.01;
    ck_assert_int_eq(probe_conditions_before(&machine, &profile->classes[0], &before), 0);
    spinning = true;
    static const uint32_t second = 1;
    ck_assert_int_eq(pthread_create(&thread, NULL, spin, (void *)(uintptr_t)&second), 0);
    usleep(300000);
    spinning = false;
    pthread_join(thread, NULL);
    machine.guard = (struct machine_guard){.operations = 10, .disturbed = 5, .still_s = 1.5};
    ck_assert_int_eq(probe_conditions_after(&before, &machine, &profile->classes[0], profile), 0);
    return profile;
}

TEST(what_else_the_machine_did_is_told)
{
    const struct servet_profile *profile = watched("0-1");
    ck_assert_ptr_nonnull(profile_condition(profile, "load_average"));
    ck_assert_ptr_nonnull(profile_condition(profile, "warm_up"));
    ck_assert_ptr_nonnull(strstr(profile_condition(profile, "stood_still"), "1.5 s"));
    ck_assert_ptr_nonnull(strstr(profile_condition(profile, "busy"), "5 of 10"));
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_ISSET(1, &mine)) {
        ck_assert_ptr_nonnull(profile_condition(profile, "smt_siblings"));
    }
}

TEST(pus_of_cores_that_are_not_measured_are_no_siblings)
{
    ck_assert_ptr_null(profile_condition(watched("1,2"), "smt_siblings"));
}

TEST(waits_that_are_short_say_nothing)
{
    start(0.0004, 0.0004); /* of an operation of 1 ms, a large part */
    world.step_s = 0.001;
    measure();
    ck_assert_uint_eq(world.asked, 1);
}

TEST(a_few_disturbed_measurements_are_no_busy_machine)
{
    start(0, 0);
    machine.guard = (struct machine_guard){.operations = 100, .disturbed = 4};
    ck_assert(!probe_machine_was_busy(&machine));
    machine.guard.disturbed = 6;
    ck_assert(probe_machine_was_busy(&machine));
}

/* -- faults in the middle of a whole run, injected at the seam of a simulated machine -- */

static size_t operations, fault_at;
static int fault;

TRAVERSE(faulty_traverse)
{
    return ++operations >= fault_at ? fault : honest->traverse(subject, what, pus, count, seconds);
}

COPY(faulty_copy)
{
    return ++operations >= fault_at ? fault : honest->copy(subject, what, pus, count, rates);
}

TEST(a_fault_ends_the_run_with_its_reason)
{
    static const struct {
        int fault;
        const char *text;
    } cases[] = {
        {-ENODEV, "offline"}, {-EPERM, "not allowed to pin"}, {-ENOMEM, "not enough memory"}};
    static const size_t at[] = {1, 20};
    for (size_t i = 0; i < 6; i++) {
        struct servet_error error = {.text = ""};
        struct servet_profile *profile;
        open_machine_of("two-packages");
        struct machine_ops *faulty = replace_operations();
        faulty->traverse = faulty_traverse;
        faulty->copy = faulty_copy;
        operations = 0;
        fault_at = at[i % 2];
        fault = cases[i / 2].fault;
        ck_assert_int_eq(try_probes((struct probe_run){.probes = PROBE_MEMORY}, &profile, &error),
                         cases[i / 2].fault);
        ck_assert_ptr_null(profile);
        ck_assert_msg(strstr(error.text, cases[i / 2].text), "%s", error.text);
    }
}

/* Which probes should measure again, "": none. */
static const char *unsettled(const struct servet_profile *profile, unsigned left_out)
{
    static char text[256];
    const bool some = probe_conditions_unsettled(profile, left_out, text, sizeof text);
    ck_assert_int_eq(some, *text != '\0');
    return text;
}

TEST(what_is_not_settled_is_named_and_settled_is_not)
{
    struct profile_memory_level level = {.quality = {.origin = PROFILE_MEASURED, .spread = 0.41}};
    struct profile_layer layer = {
        .quality = {.origin = PROFILE_MEASURED, .spread = 0.1, .note = NULL}};
    struct profile_class node_class = {
        .memory = {.quality = {.origin = PROFILE_MEASURED, .spread = 0.02},
                   .levels = &level,
                   .level_count = 1},
        .communication = {.layers = &layer, .layer_count = 1}};
    struct servet_profile profile = {.classes = &node_class, .class_count = 1};
    ck_assert_str_eq(unsettled(&profile, 0),
                     "memory (spread 41 %); measure again when nothing else runs");
    layer.quality.cut_short = true;
    ck_assert_str_eq(unsettled(&profile, 0),
                     "memory (spread 41 %), message (cut short); measure again when nothing "
                     "else runs and without --budget");
    layer.quality.cut_short = false;
    level.quality.origin = PROFILE_INFERRED;
    ck_assert_str_eq(unsettled(&profile, 0), "");
    /* of messages whatever is said of them: lines, and each size */
    struct profile_message_point curve[] = {{.bytes = 1, .spread = 0.1}, {.bytes = 8, .spread = 2}};
    layer.line_quality = (struct profile_quality){.origin = PROFILE_MEASURED, .spread = 0.5};
    ck_assert_str_eq(unsettled(&profile, 0),
                     "message (spread 50 %); measure again when nothing else runs");
    layer.curve = curve;
    layer.curve_count = 2;
    ck_assert_str_eq(unsettled(&profile, 0),
                     "message (spread 200 %); measure again when nothing else runs");
    layer.line_quality.spread = 0;
    curve[1].spread = -1;
    ck_assert_str_eq(unsettled(&profile, 0), "");
    profile.conditions = &(struct profile_condition){"busy", "other tasks ran"};
    profile.condition_count = 1;
    ck_assert_str_eq(unsettled(&profile, 0),
                     "message (beside others); measure again when nothing else runs");
    layer.curve_count = 0;
    profile.condition_count = 0;
    ck_assert_str_eq(unsettled(&profile, PROBE_SHARING | PROBE_MEMORY),
                     "not measured: sharing memory; measure again without --budget");
    struct profile_transfer copies = {.quality = {.origin = PROFILE_MEASURED, .spread = 0.3}};
    struct profile_device gpu = {.transfers = &copies, .transfer_count = 1};
    node_class.devices = &gpu;
    node_class.device_count = 1;
    ck_assert_str_eq(unsettled(&profile, 0),
                     "device (spread 30 %); measure again when nothing else runs");
    node_class.device_count = 0;
    struct profile_cache cache[3] = {{.level = 1, .quality.pus_move = true},
                                     {.level = 2, .quality.pus_move = true},
                                     {.level = 3, .quality.note = "shared by 0-1 as measured"}};
    node_class.caches = cache;
    node_class.cache_count = 3;
    ck_assert_str_eq(unsettled(&profile, 0), "sharing of L1, L2; measure again");
    /* whatever spread and note the figures have */
    node_class.cache_count = 1;
    cache[0] = (struct profile_cache){.quality.cut_short = true, .sharing_quality.cut_short = true};
    node_class.memory.quality.cut_short = true;
    ck_assert_str_eq(unsettled(&profile, PROBE_MESSAGE),
                     "cache (cut short), sharing (cut short), memory (cut short), not "
                     "measured: message; measure again without --budget");
}

TEST(who_was_alone_is_not_told_to_wait_until_nothing_else_runs, .loops = 6)
{
    static const char alone[] = "; measure again",
                      waits[] = "; measure again when nothing else runs";
    static const struct {
        const char *load, *key, *value, *says;
    } cases[] = {{"0.31", "virtual_machine", "yes", alone},
                 {"0.31", "virtual_machine", "no", alone},
                 {"0.31", "steal", "3.0 % of the measured PUs' time", alone},
                 {"0.50", "virtual_machine", "yes", waits},
                 {"0.31", "busy", "other tasks ran", waits},
                 {"0.31", "smt_siblings", "busy 20 % of the time", waits}};
    struct profile_layer layer = {.quality = {.origin = PROFILE_MEASURED, .spread = 0.3}};
    struct profile_class node_class = {.communication = {.layers = &layer, .layer_count = 1}};
    struct servet_profile profile = {.classes = &node_class, .class_count = 1};
    struct conditions conditions = {&profile, 0};
    probe_conditions_add(&conditions, "load_average", "%s", cases[_i].load);
    probe_conditions_add(&conditions, cases[_i].key, "%s", cases[_i].value);
    ck_assert_int_eq(conditions.rc, 0);
    ck_assert_int_eq(probe_conditions_others_ran(&profile), cases[_i].says == waits);
    ck_assert_str_eq(unsettled(&profile, 0), formatted("message (spread 30 %%)%s", cases[_i].says));
    layer.quality.cut_short = true;
    ck_assert_str_eq(unsettled(&profile, 0),
                     formatted("message (spread 30 %%)%s%s without --budget", cases[_i].says,
                               cases[_i].says == waits ? " and" : ""));
    for (size_t i = 0; i < profile.condition_count; i++) {
        free(profile.conditions[i].key);
        free(profile.conditions[i].value);
    }
    free(profile.conditions);
}

/* A machine that was busy is a reason to keep what is settled; one that is so by itself is not. */
TEST(settled_figures_are_not_given_up_for_those_of_a_busy_machine)
{
    struct profile_class before = {.memory.quality = {.origin = PROFILE_MEASURED, .spread = 0.1}},
                         now = {.memory.quality = {.origin = PROFILE_MEASURED, .spread = 0.5}};
    struct servet_profile old = {.classes = &before, .class_count = 1},
                          profile = {.classes = &now, .class_count = 1};
    ck_assert_uint_eq(probe_conditions_loosened(&old, &profile), 0);
    profile.conditions = &(struct profile_condition){"busy", "other tasks ran"};
    profile.condition_count = 1;
    ck_assert_uint_eq(probe_conditions_loosened(&old, &profile), PROBE_MEMORY);
    before.memory.quality.spread = 0.3;
    ck_assert_uint_eq(probe_conditions_loosened(&old, &profile), 0);
    before.memory.quality.spread = 0.1;
    now.memory.quality = (struct profile_quality){.origin = PROFILE_MEASURED, .cut_short = true};
    ck_assert_uint_eq(probe_conditions_loosened(&old, &profile), 0);
}
