/* BSP supersteps of a described machine: what words, partners and a barrier cost a processor, and
 * the links between processors that all words share. g and l are nowhere in the description: the
 * probe has to find them, as on a machine of metal.
 *
 * The published figures show which costs there are (Bisseling's BSP benchmarking, parameters of
 * Cartesius for p = 1 to 32; tests/fixtures/machines/cartesius.json):
 *   g grows with p by the same amount for each processor: words go one after the other through
 *   something shared, each in a cache line of its own. Within a package that is full at p = 16;
 *   what g grows by from there on are the words between the packages.
 *   T(0) is proportional to p: a counter that each processor takes over from another.
 *   l is above T(0) by about as much whatever p: what a superstep with words costs beside them.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "probes/bsp/bsp.h"
#include "profile/base/cli.h"
#include "tests/simulated/simulated.h"

/* Vectors of this length reach half the rate: the loop's overhead, as seen of DAXPY. */
static const double half_rate_length = 16;
/* The native backend takes the fastest of many, too. */
enum { DAXPY_BATCHES = 9 };
/* Bytes over a link for a single word, and for one of a packet. */
enum { LINE_BYTES = 64, WORD_BYTES = 8 };

/* The link of a group of a layer. */
struct link {
    const struct sim_layer *layer;
    double cyclic; /* words over it when every processor sends one, evenly to all others */
    double next;   /* when every processor sends one to the next */
};

struct described {
    struct sim *sim;
    const struct profile_set *pus;
    uint32_t processors; /* that `links` are of; 0: none yet */
    size_t link_count;
    struct link links[];
};

static struct link *link_of(struct described *described, uint32_t a, uint32_t b)
{
    const struct profile_pair pair = {described->pus->ids[a], described->pus->ids[b]};
    size_t group = 0;
    const struct sim_layer *layer = probe_sim_layer_of(described->sim, &pair, &group);
    struct link *link = described->links;
    for (const struct sim_layer *l = described->sim->layers; layer && l < layer; l++) {
        link += l->group_count;
    }
    return layer ? link + group : NULL;
}

/* Counts what goes over each link. 0, -ENOTSUP (a pair has no layer). */
static int count_words(struct described *described, uint32_t processors)
{
    for (size_t i = 0; i < described->link_count; i++) {
        described->links[i].cyclic = described->links[i].next = 0;
    }
    for (uint32_t from = 0; from < processors; from++) {
        for (uint32_t to = 0; to < processors; to++) {
            struct link *link = from == to ? NULL : link_of(described, from, to);
            if (from != to && !link) {
                return -ENOTSUP;
            }
            if (link) {
                link->cyclic += 1.0 / (processors - 1);
                link->next += to == (from + 1) % processors;
            }
        }
    }
    described->processors = processors;
    return 0;
}

/* Each processor takes the counter over from the one before. */
static double barrier(const struct described *described)
{
    double seconds = 0;
    for (size_t i = 0; i < described->link_count; i++) {
        seconds += described->links[i].cyclic * described->links[i].layer->seconds;
    }
    return described->processors == 1 ? described->sim->bsp.alone_seconds : seconds;
}

/* Until the busiest link of each layer is free: links of one layer work side by side, a word
 * between packages waits for both. A layer that carries any number of messages costs nothing
 * here. */
static double links_seconds(const struct described *described, const struct bsp_superstep *what)
{
    const bool packets = what->packing == BSP_PACKETS;
    const double bytes = packets ? WORD_BYTES : LINE_BYTES;
    const struct sim_layer *before = NULL;
    double seconds = 0, busiest = 0;
    for (size_t i = 0; i < described->link_count; i++) {
        const struct link *link = &described->links[i];
        double words = what->h * (packets ? link->next : link->cyclic);
        double rate = link->layer->bytes_per_s * link->layer->parallel;
        double busy = rate > 0 ? words * bytes / rate : 0;
        seconds += link->layer == before ? 0 : busiest;
        busiest = link->layer == before ? fmax(busiest, busy) : busy;
        before = link->layer;
    }
    return seconds + busiest;
}

static double superstep_seconds(const struct described *described, const struct bsp_superstep *what)
{
    const struct sim_bsp *bsp = &described->sim->bsp;
    const bool packets = what->packing == BSP_PACKETS;
    uint32_t others = described->processors - 1,
             most = packets ? 1 : what->h, /* in one packet: to one */
        partners = most < others ? most : others;
    if (what->h == 0) {
        return barrier(described);
    }
    return barrier(described) + bsp->start_seconds + partners * bsp->partner_seconds +
           what->h * (packets ? bsp->packed_word_seconds : bsp->word_seconds) +
           links_seconds(described, what);
}

static int described_superstep(struct bsp_machine *machine, uint32_t processors,
                               const struct bsp_superstep *what, double *seconds)
{
    struct described *described = machine->state;
    int rc = described->processors == processors ? 0 : count_words(described, processors);
    if (rc < 0) {
        return rc;
    }
    const double exact = superstep_seconds(described, what);
    *seconds = INFINITY;
    for (uint32_t i = 0; i < what->batches; i++) {
        *seconds = fmin(*seconds, probe_sim_noisy(described->sim, exact));
    }
    described->sim->clock_s += exact * what->supersteps * what->batches;
    return 0;
}

static int described_daxpy(struct bsp_machine *machine, uint32_t processors, uint32_t length,
                           double *flop_per_s)
{
    const struct described *described = machine->state;
    const double rate = described->sim->bsp.flop_per_s * length / (length + half_rate_length);
    double seconds = INFINITY;
    (void)processors;
    for (int i = 0; i < DAXPY_BATCHES; i++) {
        seconds = fmin(seconds, probe_sim_noisy(described->sim, 1 / rate));
    }
    *flop_per_s = 1 / seconds;
    return 0;
}

static void described_close(struct bsp_machine *machine)
{
    free(machine->state);
}

int probe_sim_supersteps(struct machine *simulated, struct bsp_machine *out,
                         struct servet_error *error)
{
    static const struct bsp_machine_ops ops = {described_daxpy, described_superstep,
                                               described_close};
    struct sim *sim = simulated->state;
    size_t count = 0, link = 0;
    if (sim->bsp.flop_per_s <= 0) {
        return profile_error(error, -EINVAL,
                             "--bsp: expected a machine whose description has `bsp`, the one of %s "
                             "has none",
                             sim->name);
    }
    for (size_t i = 0; i < sim->layer_count; i++) {
        count += sim->layers[i].group_count;
    }
    struct described *described =
        cli_needed(calloc(1, sizeof *described + count * sizeof *described->links));
    described->sim = sim;
    described->pus = &simulated->pus;
    described->link_count = count;
    for (size_t i = 0; i < sim->layer_count; i++) {
        for (size_t group = 0; group < sim->layers[i].group_count; group++) {
            described->links[link++].layer = &sim->layers[i];
        }
    }
    *out = (struct bsp_machine){&ops, "simulated", (uint32_t)simulated->pus.count, NULL, described};
    return 0;
}
