/* The seam of the BSP probe: what it asks of a machine of p processors, so that its conclusions are
 * tested against machines whose r, g and l are known.
 *
 * Backends: threads    pinned threads, puts into queues that a synchronisation delivers
 *           mpi        ranks of servet-ranks, an all-to-all-v per superstep
 *           simulated  a formula with noise, or the `bsp` of a described machine (sim.h) with the
 * noise of that
 *
 * Both operations: 0 and the output set, or -errno as machine.h has it.
 */
#ifndef SERVET_PROBES_BSP_MACHINE_H
#define SERVET_PROBES_BSP_MACHINE_H

#include "probes/machine.h"

enum bsp_packing {
    BSP_WORDS,   /* single words to the other processors in cyclic fashion: the pessimistic g */
    BSP_PACKETS, /* the h words in one packet to the next processor: the optimistic g */
};

/* A full h-relation: every processor sends h words of 8 bytes and receives h. With one processor,
 * to itself. */
struct bsp_superstep {
    uint32_t h;
    enum bsp_packing packing;
    uint32_t supersteps; /* timed together */
    uint32_t batches;    /* of which the fastest counts */
};

struct bsp_machine;

struct bsp_machine_ops {
    /* Rate of y := a x + y on vectors of `length` words, 2 flops a word, all processors at once:
     * their mean. */
    int (*daxpy)(struct bsp_machine *machine, uint32_t processors, uint32_t length,
                 double *flop_per_s);
    /* Seconds of one superstep. */
    int (*superstep)(struct bsp_machine *machine, uint32_t processors,
                     const struct bsp_superstep *what, double *seconds);
    void (*close)(struct bsp_machine *machine);
};

struct bsp_machine {
    const struct bsp_machine_ops *ops;
    const char *name;        /* "threads", "mpi", "simulated" */
    uint32_t processors_max; /* one per PU */
    struct machine *native;  /* whose PUs and workers are used; processor i is on its i-th PU. NULL
                                if simulated */
    void *state;
};

/* Threads of a native machine, which stays open and must outlive it. */
int probe_bsp_open_threads(struct machine *native, struct bsp_machine *out,
                           struct servet_error *error);
/* Ranks, one per PU of a native machine, by which r is measured. -ENOENT when there is no
 * mpirun. */
int probe_bsp_open_mpi(struct machine *native, struct bsp_machine *out, struct servet_error *error);

/* A machine that is a formula: T(h) = h g + l for h >= 1, t0 for none. */
struct bsp_simulation {
    double flop_per_s;     /* r of long vectors; half of it at length 16 */
    double g_s, l_s, t0_s; /* seconds */
    double g_packets_s;    /* with packets */
    double noise; /* relative deviation of every batch, one-sided: machines are only ever late */
    double stall_probability;      /* of a batch that takes ... */
    double stall_factor;           /* ... this many times as long */
    uint32_t switch_h;             /* from here on g is ... (0: never) */
    double switch_g_s, switch_l_s; /* ... this, and l this */
    double drift;                  /* every superstep takes this part longer than the one before */
    uint64_t seed;
};
/* r as measured by the threads of the native machine: the operation of two backends. */
int probe_native_bsp_daxpy(struct bsp_machine *machine, uint32_t processors, uint32_t length,
                           double *flop_per_s);

/* `simulation` must outlive the machine. */
int probe_bsp_open_simulated(struct bsp_simulation *simulation, uint32_t processors,
                             struct bsp_machine *out);
/* The parameters that the description of a simulated machine gives, on straight lines between the
 * numbers of processors that it names; the machine must outlive it. -EINVAL: it names none, or not
 * those of one and of all PUs. */
int probe_bsp_open_described(struct machine *simulated, struct bsp_machine *out,
                             struct servet_error *error);
/* Is it a machine of probe_machine_open_simulated()? */
bool probe_bsp_is_described(const struct machine *machine);

void probe_bsp_machine_close(struct bsp_machine *machine);

/* Destination of the i-th of h words of processor s among p (bspbench: cyclic over the p - 1
 * others), and its place there. */
static inline uint32_t bsp_destination(uint32_t s, uint32_t i, uint32_t p)
{
    return p == 1 ? 0 : (s + 1 + i % (p - 1)) % p;
}
static inline uint32_t bsp_destination_index(uint32_t s, uint32_t i, uint32_t p)
{
    return p == 1 ? i : s + i / (p - 1) * p;
}
/* Words that every processor's target must hold: largest index above, and one. */
static inline size_t bsp_target_words(uint32_t h, uint32_t p)
{
    return p == 1 ? h : (size_t)(h / (p - 1) + 1) * p;
}

#endif
