/* BSP parameters: the machine, its supersteps, the fit of g and l, runs and results. */
#pragma once

#include <argp.h>

#include "probes/machine.h"
#include "probes/probe.h"
#include "probes/run/progress.h"

/* -- fit -- */

/* From measured times T(h) of full h-relations to the BSP parameters g and l: T(h) = h g + l.
 *
 * Source: Bisseling's BSP benchmarking ("Least-squares fit", "Advice from the trenches"). Pure
 * arithmetic; the times may be in any unit, g and l come in the same one. */

struct bsp_curve {
    uint32_t *h;  /* ascending, unique */
    double *time; /* T(h), same index */
    size_t count;
};

struct bsp_line {
    double g, l;
};

/* A change of the straight line: the library switches to another way of packing data. */
struct bsp_bend {
    uint32_t h; /* first h of the second piece; 0: no bend */
    struct bsp_line before, after;
};

/* The two-run test of the advice: relative difference that still counts as agreement. The advice
 * names none; repeats within one start of a program were seen 1 to 32 % apart, those on a quiet
 * machine under 10. */
#define BSP_AGREEMENT 0.10

/* The line that minimises the sum over all points of (T(h) - (h g + l))^2: the 2 x 2 normal
 * equations, solved around the mean of h, where they are diagonal. 0, -EINVAL (fewer than two
 * points). */
int probe_bsp_least_squares(const struct bsp_curve *curve, struct bsp_line *out);

/* Is the curve two straight pieces rather than one? Only where two explain it much better than
 * noise would let them, and differ visibly from one; T(0) is left out. out->h is 0 where there is
 * no bend. 0, -EINVAL (fewer than two points), -ENOMEM. */
int probe_bsp_find_bend(const struct bsp_curve *curve, struct bsp_bend *out);

/* How far two fits are apart over [low, high]: the larger of the relative difference of their g,
 * and of their times at both ends over the smaller of their times in the middle. */
double probe_bsp_difference(const struct bsp_line *a, const struct bsp_line *b, double low,
                            double high);

/* -- supersteps -- */

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

/* The machines that r and supersteps are measured on: threads of this machine; its ranks, an
 * all-to-all-v per superstep; or a machine that is described. */
struct bsp_backend {
    const char *name; /* "threads", "mpi", "simulated" */
    /* Not owned. Processor i is on the i-th PU. */
    struct machine *rates, *supersteps;
};

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

/* -- probe -- */

/* r, g and l of a BSP computer: how fast a processor computes, how long a word travels, what a
 * synchronisation costs.
 *
 * Source: Bisseling's BSP benchmarking (bspbench, mpibench). Its advice is followed here: every
 * figure comes from at least three runs of which the best two must agree; a negative g or l makes
 * the interval of h grow; a bend of the curve is reported with its h. */

#define BSP_H_HIGH 2048u /* bspbench's MAXH */
#define BSP_RUNS 3u      /* "Run the benchmark at least three times" */
#define BSP_RUNS_MAX 64u
#define BSP_H_MAX (1u << 22)        /* 32 MiB of words per processor */
#define BSP_POINTS (BSP_H_HIGH + 1) /* of a curve by default: every h up to bspbench's */
#define BSP_POINTS_MAX (1u << 16)   /* beyond this a curve takes minutes */
#define BSP_LENGTHS 5               /* of vectors by which r is measured */

struct probe_bsp_request {
    uint32_t h_low, h_high; /* the interval of the fit; high > low + 1 */
    uint32_t h_step;   /* distance of two h; 0: 1, and in longer intervals so that BSP_POINTS are
                        measured */
    uint32_t runs;     /* >= BSP_RUNS */
    uint64_t seed;     /* of the order in which the h are taken */
    double patience_s; /* of words, and of packets: after that no run beyond those asked for and no
                          larger interval; 0: as long as it takes */
};

/* One way of packing. Times in seconds. */
struct probe_bsp_fit {
    struct bsp_line line;
    bool negative;          /* its g or l is below zero */
    struct bsp_curve curve; /* per h the minimum of the best two runs */
    struct bsp_bend bend;
    uint32_t runs;         /* made; more than asked for when the best two did not agree */
    double difference;     /* of the best two: probe_bsp_difference() */
    bool agree;            /* it is at most BSP_AGREEMENT */
    uint32_t enlargements; /* how often the interval was doubled, because g or l was negative */
    bool patience_ended;   /* so that no more runs or larger intervals were tried */
};

struct probe_bsp {
    uint32_t processors;
    double flop_per_s;        /* r */
    uint32_t length;          /* of the vectors that reached it */
    double rate[BSP_LENGTHS]; /* flop/s by vector length, bsp_length() */
    double t0_s;              /* of a 0-relation */
    struct probe_bsp_fit words, packets;
};

/* Words of the i-th vector, 64 to 1024; two of the longest are 16 KiB: any primary cache holds
 * them. */
static inline uint32_t bsp_length(size_t i)
{
    return 64u << i;
}

void probe_bsp_free(struct probe_bsp *found);

/* Measures one number of processors, by a request that makes sense. `tell` (may be NULL) is who
 * hears how far it is. */
int probe_bsp(const struct bsp_backend *backend, uint32_t processors,
              const struct probe_bsp_request *request, const struct probe *tell,
              struct probe_bsp *out, struct servet_error *error);

/* Puts it into the profile in place of an entry of the same backend and processors, in their order
 * (backend as first met, processors ascending). A negative l is left out (profile_bsp.l_flops < 0);
 * a negative g has no entry: -ERANGE. 0, -ERANGE, -ENOMEM. */
int probe_bsp_store(const struct probe_bsp *found, const char *backend,
                    struct servet_profile *profile);

/* Writes data (.dat) and pictures (.svg): bsp-BACKEND-pP, T(h) with its fit, for each result;
 * bsp-BACKEND (g against p; the data of l, too), bsp-BACKEND-l (l against p, a picture only) and
 * bsp-BACKEND-r (r against the length of the vectors) for all. 0, -errno (a file cannot be
 * written). */
int probe_bsp_plot(const char *folder, const char *backend, const struct probe_bsp *found,
                   size_t count, struct servet_error *error);

/* -- servet-probe --bsp: one run over backends and numbers of processors -- */

enum { BSP_BACKEND_THREADS = 1, BSP_BACKEND_MPI = 2 };

struct bsp_options {
    bool wanted;
    struct profile_set processors;    /* empty: powers of two and divisors of the number of PUs */
    struct probe_bsp_request request; /* but for its seed */
    unsigned backends;                /* 0: threads, and MPI where there is one */
    bool no_mpi;                      /* not even where it could be had, unless asked for */
    const char *plot;                 /* folder, or NULL */
    const char *tuned_by;             /* an option that means nothing without --bsp, or NULL */
};

/* An argp child whose input is a struct bsp_options; defaults are set by it. */
extern const struct argp probe_bsp_argp;

/* After parsing: what makes no sense on that machine ends the program as bad usage. */
void probe_bsp_options_check(const struct bsp_options *options, const struct machine *machine);

/* The profile that --bsp alone adds to: the one in the file `path` if there is one and it is of
 * this machine (-ESTALE and others: it is not, and must not be overwritten), else what the machine
 * declares. */
int probe_bsp_base_profile(struct machine *machine, const char *path, struct servet_profile **out,
                           struct servet_error *error);
/* The BSP entries of the profile in the file `path`, if there is one and it is of the same machine,
 * go over to `profile`. "": none. */
void probe_bsp_keep(const char *path, struct servet_profile *profile);

/* Measures and stores into `profile`; plots if asked for. */
int probe_bsp_run(const struct bsp_options *options, struct machine *machine, uint64_t seed,
                  struct progress *progress, struct servet_profile *profile,
                  struct servet_error *error);
