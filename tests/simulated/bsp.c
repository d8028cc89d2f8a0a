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

struct sim_links {
    const struct sim *sim;
    const struct profile_set *pus;
    uint32_t processors; /* that the words are of; 0: none yet */
    size_t count;
    struct link of[];
};

static struct link *link_of(struct sim_links *links, uint32_t a, uint32_t b)
{
    const struct profile_pair pair = {links->pus->ids[a], links->pus->ids[b]};
    size_t group = 0;
    const struct sim_layer *layer = probe_sim_layer_of(links->sim, &pair, &group);
    struct link *link = links->of;
    for (const struct sim_layer *l = links->sim->layers; layer && l < layer; l++) {
        link += l->group_count;
    }
    return layer ? link + group : NULL;
}

/* Counts what goes over each link. 0, -ENOTSUP (a pair has no layer). */
static int count_words(struct sim_links *links, uint32_t processors)
{
    for (size_t i = 0; i < links->count; i++) {
        links->of[i].cyclic = links->of[i].next = 0;
    }
    for (uint32_t from = 0; from < processors; from++) {
        for (uint32_t to = 0; to < processors; to++) {
            struct link *link = from == to ? NULL : link_of(links, from, to);
            if (from != to && !link) {
                return -ENOTSUP;
            }
            if (link) {
                link->cyclic += 1.0 / (processors - 1);
                link->next += to == (from + 1) % processors;
            }
        }
    }
    links->processors = processors;
    return 0;
}

/* Each processor takes the counter over from the one before. */
static double barrier(const struct sim_links *links)
{
    double seconds = 0;
    for (size_t i = 0; i < links->count; i++) {
        seconds += links->of[i].cyclic * links->of[i].layer->seconds;
    }
    return links->processors == 1 ? links->sim->bsp.alone_seconds : seconds;
}

/* Until the busiest link of each layer is free: links of one layer work side by side, a word
 * between packages waits for both. A layer that carries any number of messages costs nothing
 * here. */
static double links_seconds(const struct sim_links *links, const struct bsp_superstep *what)
{
    const bool packets = what->packing == BSP_PACKETS;
    const double bytes = packets ? WORD_BYTES : LINE_BYTES;
    const struct sim_layer *before = NULL;
    double seconds = 0, busiest = 0;
    for (size_t i = 0; i < links->count; i++) {
        const struct link *link = &links->of[i];
        double words = what->h * (packets ? link->next : link->cyclic);
        double rate = link->layer->bytes_per_s * link->layer->parallel;
        double busy = rate > 0 ? words * bytes / rate : 0;
        seconds += link->layer == before ? 0 : busiest;
        busiest = link->layer == before ? fmax(busiest, busy) : busy;
        before = link->layer;
    }
    return seconds + busiest;
}

static double superstep_seconds(const struct sim_links *links, const struct bsp_superstep *what)
{
    const struct sim_bsp *bsp = &links->sim->bsp;
    const bool packets = what->packing == BSP_PACKETS;
    uint32_t others = links->processors - 1,
             most = packets ? 1 : what->h, /* in one packet: to one */
        partners = most < others ? most : others;
    if (what->h == 0) {
        return barrier(links);
    }
    return barrier(links) + bsp->start_seconds + partners * bsp->partner_seconds +
           what->h * (packets ? bsp->packed_word_seconds : bsp->word_seconds) +
           links_seconds(links, what);
}

/* For words of so many processors. */
static int make_links(struct machine *machine, uint32_t processors)
{
    struct sim *sim = machine->state;
    size_t count = 0, link = 0;
    if (sim->bsp.flop_per_s <= 0) {
        return -ENOTSUP;
    }
    for (size_t i = 0; i < sim->layer_count; i++) {
        count += sim->layers[i].group_count;
    }
    sim->links = sim->links
                     ? sim->links
                     : cli_needed(calloc(1, sizeof *sim->links + count * sizeof *sim->links->of));
    if (sim->links->processors == processors) {
        return 0;
    }
    *sim->links = (struct sim_links){.sim = sim, .pus = &machine->pus, .count = count};
    for (size_t i = 0; i < sim->layer_count; i++) {
        for (size_t group = 0; group < sim->layers[i].group_count; group++) {
            sim->links->of[link++].layer = &sim->layers[i];
        }
    }
    return count_words(sim->links, processors);
}

int probe_sim_superstep(struct machine *machine, uint32_t processors,
                        const struct bsp_superstep *what, double *seconds)
{
    struct sim *sim = machine->state;
    const int rc = make_links(machine, processors);
    if (rc < 0) {
        return rc;
    }
    const double exact = superstep_seconds(sim->links, what);
    *seconds = INFINITY;
    for (uint32_t i = 0; i < what->batches; i++) {
        *seconds = fmin(*seconds, probe_sim_noisy(sim, exact));
    }
    sim->clock_s += exact * what->supersteps * what->batches;
    return 0;
}

int probe_sim_daxpy(struct machine *machine, uint32_t processors, uint32_t length,
                    double *flop_per_s)
{
    struct sim *sim = machine->state;
    const double rate = sim->bsp.flop_per_s * length / (length + half_rate_length);
    double seconds = INFINITY;
    (void)processors;
    for (int i = 0; i < DAXPY_BATCHES; i++) {
        seconds = fmin(seconds, probe_sim_noisy(sim, 1 / rate));
    }
    *flop_per_s = 1 / seconds;
    return rate > 0 ? 0 : -ENOTSUP;
}
