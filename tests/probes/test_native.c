/* Does the native backend keep the seam's promises on whatever machine this is? No test looks at
 * how long anything took, only at relations that hold on every machine. */
#include <numa.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "probes/machine.h"
#include "probes/native/native.h"
#include "profile/base/clock.h"
#include "profile/base/statistics.h"
#include "tests/base/runner.h"
#include "tests/probes/forbid_mbind.h"
#include "tests/probes/native/folded.h"
#include "tests/profile/fixture.h"

static volatile sig_atomic_t cancel;
static struct machine machine;

static void open_machine(void)
{
    struct servet_error error;
    cancel = 0;
    ck_assert_msg(probe_machine_open_native(NULL, &cancel, &machine, &error) == 0, "%s",
                  error.text);
}

static void close_machine(void)
{
    probe_machine_close(&machine);
}

/* By the first of the PUs: 0 or -errno. */
static int traverse(const struct machine_traversal *what, double *seconds)
{
    return probe_machine_traverse(&machine, what, machine.pus.ids, 1, seconds);
}

static int copy(const struct machine_copy *what, double *rate)
{
    return probe_machine_copy(&machine, what, machine.pus.ids, 1, rate);
}

static struct profile_pair first_pair(void)
{
    return (struct profile_pair){machine.pus.ids[0], machine.pus.ids[1]};
}

static const struct machine_traversal small = {
    .bytes = 8192, .stride_bytes = 256, .order = MACHINE_CHASE, .warm_passes = 4, .seed = 1};

TEST(it_knows_its_pus_and_what_is_declared)
{
    ck_assert_uint_ge(machine.pus.count, 1);
    ck_assert_ptr_nonnull(machine.declared);
    ck_assert(!machine.declared->measured);
    ck_assert_uint_gt(machine.memory_limit_bytes, 0);
}

TEST(a_large_cycle_is_slower_than_a_small_one)
{
    struct machine_traversal large = small;
    double few, many;
    large.bytes = 24u << 20;
    ck_assert_int_eq(traverse(&small, &few), 0);
    ck_assert_int_eq(traverse(&large, &many), 0);
    ck_assert_msg(few > 0 && many > 2 * few, "%g and %g ns", few * 1e9, many * 1e9);
}

/* Passes without end are asked for, of a set that no pass makes any faster for long. */
TEST(warming_ends_where_it_changes_nothing)
{
    struct machine_traversal large = small;
    double seconds = 0;
    large.bytes = 64u << 20;
    large.warm_passes = UINT32_MAX;
    ck_assert_int_eq(traverse(&large, &seconds), 0);
    ck_assert(seconds > 0 && isfinite(seconds));
}

TEST(every_order_and_kind_of_page_gives_a_time)
{
    static const enum machine_order orders[] = {MACHINE_CHASE, MACHINE_STRIDE, MACHINE_SPREAD};
    for (size_t i = 0; i < 3; i++) {
        struct machine_traversal what = small;
        what.order = orders[i];
        what.bytes = 1u << 20;
        what.stride_bytes = orders[i] == MACHINE_SPREAD ? machine.page_bytes : 1024;
        what.pages = i == 1 ? MACHINE_PAGES_HUGE : MACHINE_PAGES_ORDINARY;
        double seconds = 0;
        ck_assert_int_eq(traverse(&what, &seconds), 0);
        ck_assert(seconds > 0 && isfinite(seconds));
    }
}

TEST(all_pus_copy_and_traverse_together)
{
    const struct machine_copy what = {.bytes = 4u << 20, .passes = 2, .numa = -1};
    size_t n = machine.pus.count < 4 ? machine.pus.count : 4;
    double rates[4], seconds[4];
    ck_assert_int_eq(probe_machine_copy(&machine, &what, machine.pus.ids, n, rates), 0);
    ck_assert_int_eq(probe_machine_traverse(&machine, &small, machine.pus.ids, n, seconds), 0);
    for (size_t i = 0; i < n; i++) {
        ck_assert(rates[i] > 0 && seconds[i] > 0);
    }
}

/* The data of the copy before would be in a cache that holds a part. Asked for past the guard,
 * which has a disturbed copy made again. */
TEST(copies_of_a_part_go_on_where_the_last_one_ended)
{
    const size_t part = 1u << 20;
    const struct machine_copy what = {.bytes = 4 * part, .passes = 1, .part = part, .numa = -1};
    const struct native *native = machine.state;
    for (size_t copies = 1; copies <= 5; copies++) {
        double rate;
        ck_assert_int_eq(probe_native_copy(&machine, &what, machine.pus.ids, 1, &rate), 0);
        ck_assert(rate > 0);
        ck_assert_uint_eq(native->workers[0]->copied_to, ((copies - 1) % 4 + 1) * part);
    }
}

/* -- when the machine's time is over: on a clock that goes on by a second whenever it is looked
 * at -- */

static double looked_at_s;

static double by_looks(struct machine *m)
{
    (void)m;
    return looked_at_s += 1;
}

/* The machine's time is over after so many looks. */
static struct machine_ops end_after(double looks)
{
    struct machine_ops ops = *machine.ops;
    ops.elapsed = by_looks;
    ops.times = NULL;
    looked_at_s = 0;
    machine.until_s = looks;
    return ops;
}

TEST(memory_is_not_touched_beyond_the_machines_time)
{
    const struct machine_copy what = {.bytes = 32u << 20, .passes = 1, .numa = -1};
    const struct machine_ops *native = machine.ops, ops = end_after(8);
    double rate = -1;
    machine.ops = &ops;
    ck_assert_int_eq(copy(&what, &rate), -ETIME);
    /* and then nothing is begun */
    ck_assert_int_eq(traverse(&small, &rate), -ETIME);
    ck_assert_double_eq(rate, -1);
    machine.ops = native;
    machine.until_s = 0;
    ck_assert_int_eq(copy(&what, &rate), 0);
    ck_assert_double_gt(rate, 0);
}

TEST(messages_end_with_the_machines_time)
{
    const struct machine_exchange one = {.bytes = 64, .round_trips = 1u << 30, .batches = 1},
                                  many = {.bytes = 64, .round_trips = 4, .batches = UINT32_MAX};
    if (machine.pus.count < 2) {
        return;
    }
    const struct profile_pair pair = first_pair();
    const struct machine_ops *native = machine.ops, first = end_after(20);
    double seconds = -1;
    machine.ops = &first;
    ck_assert_int_eq(probe_machine_exchange(&machine, &one, &pair, 1, &seconds), -ETIME);
    ck_assert_double_eq(seconds, -1);
    machine.ops = native;
    /* batches that were done before are the figure */
    const struct machine_ops second = end_after(1e6);
    machine.ops = &second;
    const int rc = probe_machine_exchange(&machine, &many, &pair, 1, &seconds);
    ck_assert(rc == 0 ? seconds > 0 && isfinite(seconds) : rc == -ETIME && seconds < 0);
    machine.ops = native;
    machine.until_s = 0;
}

/* Node 0 is there on nearly every machine; one that has others only, or forbids placing, says
 * so. */
TEST(memory_is_placed_on_a_node_or_refused)
{
    struct machine_traversal far = small;
    struct machine_copy what = {
        .bytes = 4u << 20, .passes = 2, .numa = 0, .pages = MACHINE_PAGES_HUGE};
    double seconds = -1, rate = -1;
    far.on_node = true;
    far.bytes = 4u << 20;
    int copied = copy(&what, &rate);
    ck_assert(copied == 0 ? rate > 0 : (copied == -EACCES || copied == -ENOMEM) && rate < 0);
    int chased = traverse(&far, &seconds);
    ck_assert_int_eq(chased, copied);
    ck_assert(chased == 0 ? seconds > 0 : seconds < 0);
    far.numa = what.numa =
        1000; /* the kernel takes numbers up to 1023, and no machine has this one */
    rate = seconds = -1;
    ck_assert_int_eq(copy(&what, &rate), -EACCES);
    ck_assert_int_eq(traverse(&far, &seconds), -EACCES);
    ck_assert(rate < 0 && seconds < 0);
    what.numa = -1; /* and after that as if nothing had been */
    ck_assert_int_eq(copy(&what, &rate), 0);
}

/* KiB of mappings that have this one of the kernel's flags. */
static size_t kilobytes_that_have(const char *flag)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    char line[512];
    size_t sum = 0, size = 0;
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "Size: %zu kB", &size);
        sum += strncmp(line, "VmFlags:", 8) == 0 && strstr(line, flag) ? size : 0;
    }
    if (file) {
        fclose(file);
    }
    return sum;
}

/* The pages of a program without requests depend on the system alone: no advice goes with it. */
TEST(memory_comes_as_asked_for_or_as_the_system_gives_it)
{
    static const enum machine_pages kinds[] = {MACHINE_PAGES_ORDINARY, MACHINE_PAGES_GIVEN,
                                               MACHINE_PAGES_HUGE};
    const size_t no = kilobytes_that_have(" nh"), yes = kilobytes_that_have(" hg");
    if (madvise(NULL, 0, MADV_HUGEPAGE) < 0) {
        return; /* a kernel without huge pages */
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct machine_copy what = {
            .bytes = 4u << 20, .passes = 1, .numa = -1, .pages = kinds[i]};
        double rate = 0;
        ck_assert_int_eq(copy(&what, &rate), 0);
        ck_assert_int_eq(kilobytes_that_have(" nh") > no, kinds[i] == MACHINE_PAGES_ORDINARY);
        ck_assert_int_eq(kilobytes_that_have(" hg") > yes, kinds[i] == MACHINE_PAGES_HUGE);
    }
}

/* Containers forbid mbind() by default. Threads inherit that, so it comes before the machine's
 * first worker. */
TEST(where_placing_is_forbidden_that_is_said_and_the_rest_goes_on)
{
    struct machine forbidden;
    struct servet_error error;
    const struct machine_copy placed = {.bytes = 4u << 20, .passes = 2, .numa = 0};
    const struct machine_copy anywhere = {.bytes = 4u << 20, .passes = 2, .numa = -1};
    double rate = -1;
    if (numa_available() < 0 || forbid_mbind() < 0) {
        return; /* a sandbox already, which allows no other */
    }
    ck_assert_msg(probe_machine_open_native(NULL, NULL, &forbidden, &error) == 0, "%s", error.text);
    ck_assert_int_eq(probe_machine_copy(&forbidden, &placed, forbidden.pus.ids, 1, &rate), -EACCES);
    ck_assert(rate < 0);
    ck_assert_int_eq(probe_machine_copy(&forbidden, &anywhere, forbidden.pus.ids, 1, &rate), 0);
    ck_assert(rate > 0);
    probe_machine_close(&forbidden);
}

TEST(a_longer_message_takes_longer)
{
    if (machine.pus.count < 2) {
        return;
    }
    const struct profile_pair pair = first_pair();
    const struct machine_exchange line = {64, 50, 3, false}, large = {1u << 20, 2, 3, false};
    double brief, lengthy;
    ck_assert_int_eq(probe_machine_exchange(&machine, &line, &pair, 1, &brief), 0);
    ck_assert_int_eq(probe_machine_exchange(&machine, &large, &pair, 1, &lengthy), 0);
    ck_assert(brief > 0 && lengthy > brief);
}

/* As Ctrl-Z does, or a laptop that is closed: another process stops this one and lets it go on. */
static pid_t stop_me_for_a_while(void)
{
    pid_t me = getpid(), child = fork();
    if (child == 0) {
        usleep(100000);
        kill(me, SIGSTOP);
        usleep(600000);
        kill(me, SIGCONT);
        _exit(0);
    }
    return child;
}

/* On a busy machine a whole pause can fall between two measurements; one of several falls into
 * one. */
#define MOST_PAUSES 20

TEST(a_measurement_that_stood_still_is_made_again)
{
    const struct machine_copy what = {.bytes = 8u << 20, .passes = 20, .numa = -1};
    double rate = 0;
    size_t operations = 0;
    for (int i = 0; i < MOST_PAUSES && machine.guard.still_s <= 0.3; i++) {
        pid_t child = stop_me_for_a_while();
        ck_assert_int_gt(child, 0);
        while (waitpid(child, NULL, WNOHANG) == 0) {
            ck_assert_int_eq(copy(&what, &rate), 0);
            operations++;
        }
    }
    ck_assert_msg(machine.guard.still_s > 0.3, "%g s of %zu operations", machine.guard.still_s,
                  operations);
    ck_assert_uint_ge(machine.guard.repeated, 1);
    ck_assert_uint_eq(machine.guard.operations, operations);
}

/* A quarter of an hour of passes; all PUs that take part have a figure. */
TEST(a_copy_past_its_deadline_ends_with_a_figure)
{
    const struct machine_copy what = {
        .bytes = 4u << 20, .passes = 1u << 20, .numa = -1, .deadline = 1e-9};
    const size_t n = machine.pus.count < 2 ? machine.pus.count : 2;
    double rates[2] = {0};
    ck_assert_int_eq(probe_machine_copy(&machine, &what, machine.pus.ids, n, rates), 0);
    for (size_t i = 0; i < n; i++) {
        ck_assert(rates[i] > 0 && isfinite(rates[i]));
    }
}

/* Sixteen of them make a figure that is late; of half a MiB they would go through all of this. */
TEST(bursts_are_as_long_as_was_asked)
{
    const size_t burst = 64u << 10;
    const struct machine_copy what = {
        .bytes = 8u << 20, .passes = 1, .burst = burst, .numa = -1, .deadline = 1e-9};
    const struct native *native = machine.state;
    double rate;
    ck_assert_int_eq(probe_native_copy(&machine, &what, machine.pus.ids, 1, &rate), 0);
    ck_assert(rate > 0);
    ck_assert_uint_eq(native->workers[0]->copied_to, 16 * burst);
}

/* Two workers on one PU are never at it at the same time, and what each gets is all there is. On a
 * busy machine their turns may be as short as some bursts now and then. */
TEST(copies_that_did_not_run_at_the_same_time_are_none_of_a_pair)
{
    const struct machine_copy what = {.bytes = 8u << 20, .passes = 8, .numa = -1};
    FREED_BY(probe_machine_close) struct machine folded;
    cpu_set_t one;
    double rates[2];
    int apart = 0;
    CPU_ZERO(&one);
    CPU_SET(machine.pus.ids[0], &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    open_folded(2, NULL, &folded);
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(probe_machine_copy(&folded, &what, folded.pus.ids, 2, rates), 0);
        apart += folded.guard.not_concurrent;
    }
    ck_assert_int_ge(apart, 5);
    ck_assert_int_eq(probe_machine_copy(&folded, &what, folded.pus.ids, 1, rates), 0);
    ck_assert(!folded.guard.not_concurrent);
}

/* Programs that take a PU, or their share of it, until they are killed. */
enum { OTHERS_MOST = 14 };
static pid_t others[OTHERS_MOST];
static size_t other_count;

static void spin_on(uint32_t pu)
{
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t own;
        CPU_ZERO(&own);
        CPU_SET(pu, &own);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (sched_setaffinity(0, sizeof own, &own) < 0) {
            _exit(1);
        }
        for (volatile unsigned turns = 0;; turns++) {
        }
    }
    ck_assert_int_gt(child, 0);
    others[other_count++] = child;
}

static void end_others(void)
{
    for (size_t i = 0; i < other_count; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
}

/* Beside seven programs that want the PU, whole passes last as long as everybody's turn: the more
 * others there are, the further they are from what the memory gives. */
TEST(bandwidth_is_what_memory_gives_not_how_much_of_the_pu_was_had,
     .not_emulated = "times of an emulator mean nothing")
{
    const struct machine_copy what = {.bytes = 64u << 20, .passes = 9, .numa = -1};
    const uint32_t pu = machine.pus.ids[0];
    double rate = 0;
    if (pu >= CPU_SETSIZE || machine.memory_limit_bytes < 4 * what.bytes) {
        return;
    }
    ck_assert_int_eq(machine.ops->copy(&machine, &what, &pu, 1, &rate), 0); /* touches it */
    for (size_t i = 0; i < 7; i++) {
        spin_on(pu);
    }
    double begun = profile_now_s();
    int rc = machine.ops->copy(&machine, &what, &pu, 1, &rate);
    double by_wall = 2.0 * (double)what.bytes * what.passes / (profile_now_s() - begun);
    end_others();
    ck_assert_int_eq(rc, 0);
    ck_assert_msg(rate > 4 * by_wall, "%.1f GB/s, and %.1f of whole passes", rate / 1e9,
                  by_wall / 1e9);
}

/* Beside programs that want both PUs, most round trips last until everybody had a turn. */
TEST(a_message_takes_what_it_takes_whoever_wants_the_pus,
     .not_emulated = "times of an emulator mean nothing")
{
    const struct machine_exchange what = {.bytes = 64, .round_trips = 50, .batches = 1};
    enum { TIMES = 12 };
    double alone, beside[TIMES] = {0};
    int rc = 0;
    if (machine.pus.count < 2 || machine.pus.ids[1] >= CPU_SETSIZE) {
        return;
    }
    const struct profile_pair pair = first_pair();
    ck_assert_int_eq(machine.ops->exchange(&machine, &what, &pair, 1, &alone), 0);
    for (size_t i = 0; i < OTHERS_MOST; i++) {
        spin_on(i % 2 ? pair.a : pair.b);
    }
    for (int i = 0; i < TIMES && rc == 0; i++) {
        rc = machine.ops->exchange(&machine, &what, &pair, 1, &beside[i]);
    }
    end_others();
    ck_assert_int_eq(rc, 0);
    /* it was thousands of times */
    const double slow = profile_quantile(beside, TIMES, 0.75);
    ck_assert_msg(slow < 50 * alone, "%g us, %g us alone", 1e6 * slow, 1e6 * alone);
}

TEST(impossible_orders_are_refused)
{
    double seconds[2] = {-1, -1};
    const uint32_t twice[] = {machine.pus.ids[0], machine.pus.ids[0]}, unknown[] = {1u << 20};
    struct machine_traversal empty = small, huge = small;
    empty.bytes = 0;
    huge.bytes = (size_t)1 << 46;
    ck_assert_int_eq(probe_machine_traverse(&machine, &small, twice, 2, seconds), -EINVAL);
    ck_assert_int_eq(probe_machine_traverse(&machine, &small, unknown, 1, seconds), -EINVAL);
    ck_assert_int_eq(traverse(&empty, seconds), -EINVAL);
    ck_assert_int_eq(traverse(&huge, seconds), -ENOMEM);
    ck_assert_double_eq(seconds[0], -1);
}

TEST(a_cancelled_machine_stops)
{
    double seconds;
    cancel = 1;
    ck_assert_int_eq(traverse(&small, &seconds), -EINTR);
    cancel = 0;
    ck_assert_int_eq(traverse(&small, &seconds), 0);
}

TEST(a_pu_that_is_not_ours_is_refused_by_name)
{
    struct machine other;
    struct servet_error error;
    const struct profile_set pus = set_of("7000");
    ck_assert_int_eq(probe_machine_open_native(&pus, NULL, &other, &error), -EPERM);
    ck_assert_ptr_nonnull(strstr(error.text, "got 7000"));
}

/* The system's setting says "madvise" or "always" meanwhile. Each test has a process of its own. */
TEST(huge_pages_that_are_not_granted_are_not_had,
     .not_emulated = "qemu-user has no PR_SET_THP_DISABLE")
{
    struct machine own;
    struct servet_error error;
    ck_assert_int_eq(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
    ck_assert_int_eq(probe_machine_open_native(NULL, NULL, &own, &error), 0);
    ck_assert_uint_eq(own.huge_page_bytes, 0);
    probe_machine_close(&own);
}

TEST(what_huge_memory_came_in_is_recorded)
{
    struct machine_traversal what = small;
    double seconds;
    what.pages = MACHINE_PAGES_HUGE;
    what.bytes = 8 << 20;
    ck_assert_uint_eq(machine.grant.asked_bytes, 0);
    ck_assert_int_eq(traverse(&what, &seconds), 0);
    ck_assert_uint_ge(machine.grant.asked_bytes, what.bytes);
    ck_assert_uint_le(machine.grant.huge_bytes, machine.grant.asked_bytes);
    ck_assert(machine.huge_page_bytes == 0 || machine.grant.huge_bytes > 0);
}

TESTS(.setup = open_machine, .teardown = close_machine)
