/* r, g and l of a BSP computer: how fast a processor computes, how long a word travels, what a
 * synchronisation costs.
 *
 * Source: Bisseling's BSP benchmarking (bspbench, mpibench). What it calls advice is done here:
 * every figure comes from at least three runs of which the best two must agree; a negative g or l
 * makes the interval of h grow; a bend of the curve is told with its h.
 */
#ifndef SERVET_PROBES_BSP_PROBE_H
#define SERVET_PROBES_BSP_PROBE_H

#include "probes/bsp/fit.h"
#include "probes/bsp/machine.h"
#include "probes/probe.h"

#define BSP_H_HIGH 2048u /* bspbench's MAXH */
#define BSP_RUNS 3u      /* "Run the benchmark at least three times" */
#define BSP_RUNS_MAX 64u
#define BSP_H_MAX (1u << 22)      /* 32 MiB of words per processor */
#define BSP_POINTS 2049u          /* of a curve by default: every h up to bspbench's */
#define BSP_POINTS_MAX (1u << 16) /* beyond this a curve takes minutes */
#define BSP_LENGTHS 5             /* of vectors by which r is measured */

struct probe_bsp_request {
    uint32_t h_low, h_high; /* the interval of the fit; high > low + 1 */
    uint32_t h_step; /* distance of two h; 0: 1, and in longer intervals so that BSP_POINTS are
                        measured */
    uint32_t runs;   /* >= BSP_RUNS */
    uint64_t seed;   /* of the order in which the h are taken */
};

/* One way of packing. Times in seconds. */
struct probe_bsp_fit {
    struct bsp_choice choice;
    struct bsp_curve curve; /* per h the minimum of the best two runs */
    struct bsp_bend bend;
    uint32_t runs;         /* made; more than asked for when the best two did not agree */
    double difference;     /* of the best two: probe_bsp_difference() */
    bool agree;            /* it is at most BSP_AGREEMENT */
    uint32_t enlargements; /* how often the interval was doubled, because g or l was negative */
};

struct probe_bsp {
    uint32_t processors;
    double flop_per_s;        /* r */
    uint32_t length;          /* of the vectors that reached it */
    double rate[BSP_LENGTHS]; /* flop/s by vector length, probe_bsp_lengths */
    double t0_s;              /* of a 0-relation */
    struct probe_bsp_fit words, packets;
};

/* Words of a vector, ascending; two of the longest are 16 KiB: any primary cache holds them. */
extern const uint32_t probe_bsp_lengths[BSP_LENGTHS];

void probe_bsp_free(struct probe_bsp *found);

/* Measures one number of processors. `tell` (may be NULL) is who hears how far it is. */
int probe_bsp(struct bsp_machine *machine, uint32_t processors,
              const struct probe_bsp_request *request, const struct probe *tell,
              struct probe_bsp *out, struct servet_error *error);

/* What to be told of a result, one line, "" for nothing: flags, bend, disagreement. */
void probe_bsp_note(const struct probe_bsp *found, char *text, size_t size);

/* Puts it into the profile in place of an entry of the same backend and processors, in their order
 * (backend as first met, processors ascending). A negative l is left out (profile_bsp.l_flops < 0);
 * a negative g has no entry: -ERANGE. 0, -ERANGE, -ENOMEM. */
int probe_bsp_store(const struct probe_bsp *found, const char *backend,
                    struct servet_profile *profile);

#endif
