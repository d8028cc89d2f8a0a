/* The seam between what is inferred and what is measured.
 *
 * A probe never reads a clock, pins a thread or allocates a working set itself: it asks a *machine*
 * for the time of one of a few things, so that every inference is tested against machines that we
 * do not have, with the truth known.
 * Backends:
 *   native     pinned threads of this process, memory placed with libnuma
 *   mpi        one rank per PU; only the exchange of messages, and supersteps
 *   simulated  a machine described in a JSON file (tests/simulated)
 *
 * All operations: 0 and every output set, or -errno and none (a backend may set some):
 *   -ENOTSUP  this backend cannot
 *   -EPERM    not allowed to pin to one of the PUs
 *   -ENODEV   a PU went offline
 *   -ENOMEM   working set not to be had, or not on the NUMA node that was named
 *   -EACCES   this process may not place memory on that NUMA node
 *   -EINTR    `*cancel` became non-zero
 *   -ETIME    the machine's time (until_s) was over before there was a figure
 *   -EINVAL   a PU is named twice or not one of the machine's, or a size is 0
 *   -EIO      a helper process of the backend failed
 * PUs are OS indices. An operation on several PUs keeps all of them busy until the last one has its
 * figure. */
#pragma once

#include <signal.h>

#include "profile/model.h"
#include "profile/scope.h"

/* Sizes that all probes have in common. LINE_BYTES: a cache line of most machines, where none is
 * known. NODE_BYTES: a node per line would be fetched by the adjacent-line prefetcher and cost four
 * times more. WARM_PASSES: an L3 that is filled by victims keeps only lines that show reuse: 4
 * passes read 22 ns, 16 and more 15.6. BURST_BYTES: of a copy, at most: 25 us at 40 GB/s. */
enum {
    MACHINE_LINE_BYTES = 64,
    MACHINE_NODE_BYTES = 256,
    MACHINE_WARM_PASSES = 16,
    MACHINE_BURST_BYTES = 512 << 10,
};

enum machine_order {
    MACHINE_CHASE,  /* dependent loads along one random cycle through the whole working set */
    MACHINE_STRIDE, /* mcalibrator's: loads `stride_bytes` apart, each finding the stride in memory
                       (2010 paper, Figure 1) */
    MACHINE_SPREAD, /* chase with one node in each page, the line within the page moving on from
                       page to page: asks the TLB more than the caches. `stride_bytes` is the page
                       size */
};

enum machine_pages {
    MACHINE_PAGES_ORDINARY,
    MACHINE_PAGES_HUGE,  /* asked for; a machine without them serves ordinary pages (see
                           machine.huge_page_bytes) */
    MACHINE_PAGES_GIVEN, /* what the system gives a program that asks for none */
};

struct machine_traversal {
    size_t bytes;        /* working set of each PU */
    size_t stride_bytes; /* distance of two loads (STRIDE) or size of one node (CHASE: the node's
                            first line is loaded) */
    enum machine_order order;
    enum machine_pages pages;
    bool on_node; /* the memory is on NUMA node `numa` (OS index), in the region that copies use */
    int32_t numa;
    uint32_t warm_passes; /* passes over the whole set, in the order of the measurement, before the
                             clock starts; fewer where they take long and no longer change
                             anything */
    uint64_t seed;        /* of each PU's random cycle, and of its place in the pool */
};

/* Where in its page the node of the i-th page of MACHINE_SPREAD lies: one line further from page to
 * page, and one more after each round through the page. Without the latter, pages side by side
 * would fill a 64th of the sets of a cache whose ways are larger than a page, and its conflicts
 * would pass for misses of the TLB. */
static inline size_t machine_spread_offset(size_t i, size_t page_bytes)
{
    const size_t step_bytes = MACHINE_LINE_BYTES, lines = page_bytes / step_bytes;
    size_t sum = 0;
    for (; i > 0 && lines > 1; i /= lines) {
        sum += i % lines;
    }
    return lines > 1 ? sum % lines * step_bytes : 0;
}

struct machine_copy {
    size_t bytes;    /* of the source and of the target, each, per PU */
    uint32_t passes; /* through all of it, in bursts of which the upper quartile is reported */
    /* > 0: a pass is of so much of the source only, from where the last copy of the PU ended: what
     * is read has left the caches as long as all of it is larger than they are */
    size_t part;
    size_t burst; /* of each array, in one burst; 0: MACHINE_BURST_BYTES */
    int32_t numa; /* OS index of the NUMA node to place both on; < 0: local to each PU */
    enum machine_pages pages;
    enum profile_kernel kernel; /* what runs through both together; the best copy unless said */
    /* on the machine's clock; 0: none. From then on a native copy does with as few bursts as make a
     * figure, whatever is left of its passes */
    double deadline;
};

/* Bytes of one pass. */
static inline size_t machine_copy_pass(const struct machine_copy *what)
{
    return what->part > 0 && what->part < what->bytes ? what->part : what->bytes;
}

struct machine_exchange {
    size_t bytes;         /* message size; up to a cache line is one line handed over */
    uint32_t round_trips; /* per batch */
    uint32_t batches;     /* of which the minimum is reported */
    /* the data is never written, as in OSU's benchmarks; otherwise each message forwards the one
     * before */
    bool unwritten;
};

/* The PUs of pairs, both of the first before those of the next. */
static inline const uint32_t *machine_pair_pus(const struct profile_pair *pairs)
{
    _Static_assert(sizeof *pairs == 2 * sizeof(uint32_t), "a pair is two numbers");
    return (const void *)pairs;
}

/* Copies between a device and pinned memory of one NUMA node. TRANSFER_BYTES: of a large copy;
 * 64 MiB last 0.15 ms on the fastest link there is (NVLink-C2C, 450 GB/s), where starting one takes
 * 10 us. */
enum { MACHINE_TRANSFER_ROUNDS = 5, MACHINE_TRANSFER_BYTES = 64 << 20 };

struct machine_transfer {
    int32_t numa;                  /* OS index of the node; < 0: the machine's only one */
    const struct profile_set *pus; /* one of them asks for the copies; never empty */
};

/* Figures of each round that was done, one after the other. */
struct machine_transferred {
    size_t rounds; /* 0: not measured */
    double to_device_bytes_per_s[MACHINE_TRANSFER_ROUNDS],
        from_device_bytes_per_s[MACHINE_TRANSFER_ROUNDS];
    double seconds[MACHINE_TRANSFER_ROUNDS]; /* of the smallest copy that is waited for */
};

/* Starting many ranks, or the driver of a server of eight GPUs, takes seconds, an answer much less.
 * A program of ours that is silent for longer hangs. */
#define MACHINE_ANSWER_S 60.0

struct machine;
struct bsp_superstep;

/* Seconds since a machine was opened, of all its workers together, in operations. */
struct machine_times {
    /* without running: another task had their PU, they were stopped or the machine was asleep */
    double waited;
    double ran;       /* 0: not known */
    double throttled; /* periods of a quota that ended without time left */
};

struct machine_ops {
    /* Each PU of `pus` traverses its own working set, all at the same time. seconds_per_access[i]
     * for pus[i]. */
    int (*traverse)(struct machine *machine, const struct machine_traversal *what,
                    const uint32_t *pus, size_t count, double *seconds_per_access);
    /* Each PU copies its own source to its own target (or does what the kernel says within the
     * memory of both), all at the same time. bytes_per_s[i], read +
     * written (STREAM's way: a line fetched only because it is written to is not counted). */
    int (*copy)(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                size_t count, double *bytes_per_s);
    /* Every pair exchanges messages, all pairs at the same time; pairs are disjoint. seconds[i]:
     * one way. */
    int (*exchange)(struct machine *machine, const struct machine_exchange *what,
                    const struct profile_pair *pairs, size_t count, double *seconds);
    /* Copies between a device and the memory of `count` places. `why`: what is in the way of those
     * that have no rounds. -ENOTSUP: the device is out of reach. NULL: devices are. */
    int (*transfer)(struct machine *machine, const struct profile_device *device,
                    const struct machine_transfer *places, size_t count,
                    struct machine_transferred *out, struct servet_error *why);
    /* Seconds gone on this machine since it was opened: the wall clock, or the simulated machine's
     * own. */
    double (*elapsed)(struct machine *machine);
    /* NULL: not known. */
    struct machine_times (*times)(struct machine *machine);
    /* How many tasks there are now for each PU, beside the one that asks; NULL: none. */
    double (*others)(struct machine *machine);
    /* By the first `processors` PUs, all at once (bsp/bsp.h): the mean rate of y := a x + y on
     * vectors of `length` words, 2 flops a word; and the seconds of one superstep. */
    int (*daxpy)(struct machine *machine, uint32_t processors, uint32_t length, double *flop_per_s);
    int (*superstep)(struct machine *machine, uint32_t processors, const struct bsp_superstep *what,
                     double *seconds);
    void (*close)(struct machine *machine);
};

/* State of the guard: an operation during which other tasks ran on the measured PUs is measured a
 * second time. A backend that can tell says how long its workers were ready and had no PU
 * (machine_ops.times). A load average cannot show that other tasks interfered on these PUs,
 * during this measurement. */
struct machine_guard {
    size_t operations, repeated;
    size_t disturbed; /* operations that stayed so */
    size_t throttled; /* operations during which a quota ran out */
    double repeat_s;  /* spent on repeating */
    double last_s;    /* that the last operation took */
    /* In the last copy some PU had its figure while the others did not run: it is what one gets
     * alone. */
    bool not_concurrent;
    double asked_s, ran_s; /* of workers: from being asked to the answer; of that, on their PUs */
    double budget_s;       /* of the run, of which repeating takes a part; 0: none */
    double still_s; /* that workers stood still with an operation at hand: stopped, or the machine
                         asleep */
};

/* Pages of the largest memory that was requested in huge pages. */
struct machine_grant {
    size_t asked_bytes; /* 0: none was, or it cannot be seen */
    size_t huge_bytes;  /* that are in huge pages */
};

struct machine {
    const struct machine_ops *ops; /* an operation may be NULL: -ENOTSUP */
    const char *name;              /* "native", "mpi", "simulated" */
    struct profile_set pus;        /* those it may measure on, never empty. Owned */
    /* Its declared topology. Never used as a measurement; NULL for a messenger. Owned. */
    struct servet_profile *declared;
    size_t page_bytes;
    size_t huge_page_bytes; /* 0: none to be had */
    struct machine_grant grant;
    size_t memory_limit_bytes; /* that all working sets together may take */
    /* CPUs that a control group allows at a time; 0: as many as there are PUs */
    double cpu_quota;
    const char *copy_method;             /* "AVX2 non-temporal stores", … or NULL */
    const volatile sig_atomic_t *cancel; /* may be NULL */
    /* on its clock; 0: none. From then on operations end, with a figure or without */
    double until_s;
    struct machine_guard guard;
    void *state;
};

/* This machine. `pus` must be allowed to this process; empty: all that are. -EPERM or -EINVAL with
 * the reason when a PU of them cannot be pinned to. */
int probe_machine_open_native(const struct profile_set *pus, const volatile sig_atomic_t *cancel,
                              struct machine *out, struct servet_error *error);

/* Ranks of servet-ranks, one per PU, through `mpirun`. -ENOENT when mpirun or the program is
 * not installed. */
int probe_machine_open_mpi(const struct profile_set *pus, const volatile sig_atomic_t *cancel,
                           struct machine *out, struct servet_error *error);

/* The operations, with the checks that hold for every backend. */
int probe_machine_traverse(struct machine *machine, const struct machine_traversal *what,
                           const uint32_t *pus, size_t count, double *seconds_per_access);
int probe_machine_copy(struct machine *machine, const struct machine_copy *what,
                       const uint32_t *pus, size_t count, double *bytes_per_s);
/* A copy of PUs that are to be at it at the same time, asked again when they were not; -EAGAIN:
 * they never were. */
int probe_machine_copy_together(struct machine *machine, const struct machine_copy *what,
                                const uint32_t *pus, size_t count, double *bytes_per_s);
int probe_machine_exchange(struct machine *machine, const struct machine_exchange *what,
                           const struct profile_pair *pairs, size_t count, double *seconds);
int probe_machine_transfer(struct machine *machine, const struct profile_device *device,
                           const struct machine_transfer *places, size_t count,
                           struct machine_transferred *out, struct servet_error *why);
double probe_machine_elapsed(struct machine *machine);
void probe_machine_close(struct machine *machine);

/* Tasks for each PU, besides the caller; 0 also where it is unknown. */
double probe_machine_others(struct machine *machine);

/* With fewer seconds of workers the share of waiting is unknown. */
#define MACHINE_PACE_LEAST_S 0.1

/* How long something takes here for each second of processor time that it needs: 1 on a machine
 * that does nothing else. Good to a factor of two. */
double probe_machine_pace(struct machine *machine);

/* How many workers may run at a time without being throttled by a quota; at least 1, SIZE_MAX where
 * there is none. */
size_t probe_machine_at_once(const struct machine *machine);

/* Caches and memory are measured in huge pages where the machine has them, as large pieces get
 * them: the TLB adds least to a time then. */
static inline enum machine_pages machine_pages(const struct machine *machine)
{
    return machine->huge_page_bytes ? MACHINE_PAGES_HUGE : MACHINE_PAGES_ORDINARY;
}

/* This very computer, and not a messenger or a description. */
static inline bool machine_is_native(const struct machine *machine)
{
    return strcmp(machine->name, "native") == 0;
}

/* Huge pages were asked for, and less than half of the memory came in them. */
static inline bool machine_denies_huge_pages(const struct machine *machine)
{
    return 2 * machine->grant.huge_bytes < machine->grant.asked_bytes;
}

/* Adds the account of a machine that measured for this one. */
void probe_guard_add(struct machine_guard *sum, const struct machine_guard *more);

/* Too many operations stayed disturbed for the figures to be trusted. */
bool probe_machine_was_busy(const struct machine *machine);

/* One sentence for the errors above. */
const char *probe_machine_strerror(int error);
