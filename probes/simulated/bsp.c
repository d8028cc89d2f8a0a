/* BSP supersteps of a machine whose parameters are known: g h + l with noise, so that the fit of
 * probes/bsp is tested against the truth. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "probes/bsp/bsp.h"
#include "probes/simulated/simulated.h"
#include "profile/base/random.h"

/* Vectors of this length reach half the rate: the loop's overhead, as seen of DAXPY. */
static const double half_rate_length = 16;
/* The native backend takes the fastest of many, too. */
enum { DAXPY_BATCHES = 9 };

static int simulated_daxpy(struct bsp_machine *machine, uint32_t processors, uint32_t length,
                           double *flop_per_s)
{
    const struct bsp_simulation *s = machine->state;
    (void)processors;
    *flop_per_s = s->flop_per_s * length / (length + half_rate_length);
    return 0;
}

static double exact(const struct bsp_simulation *s, const struct bsp_superstep *what)
{
    if (what->h == 0) {
        return s->t0_s;
    }
    if (what->packing == BSP_PACKETS) {
        return what->h * s->g_packets_s + s->l_s;
    }
    if (s->switch_h && what->h >= s->switch_h) {
        return what->h * s->switch_g_s + s->switch_l_s;
    }
    return what->h * s->g_s + s->l_s;
}

/* The fastest of the batches, each as late as noise makes it. */
static double fastest(struct bsp_simulation *s, const struct bsp_superstep *what)
{
    struct random random = {s->seed};
    double best = INFINITY;
    for (uint32_t i = 0; i < what->batches; i++) {
        double late = 1 + s->noise * fabs(profile_random_normal(&random));
        double stall = random_unit(&random) < s->stall_probability ? s->stall_factor : 1;
        best = fmin(best, exact(s, what) * late * stall);
    }
    s->seed = random_next(&random);
    return best;
}

static int simulated_superstep(struct bsp_machine *machine, uint32_t processors,
                               const struct bsp_superstep *what, double *seconds)
{
    struct bsp_simulation *s = machine->state;
    (void)processors;
    *seconds = fastest(s, what);
    s->g_s *= 1 + s->drift;
    s->l_s *= 1 + s->drift;
    return 0;
}

static void simulated_close(struct bsp_machine *machine)
{
    machine->state = NULL;
}

int probe_bsp_open_simulated(struct bsp_simulation *simulation, uint32_t processors,
                             struct bsp_machine *out)
{
    static const struct bsp_machine_ops ops = {simulated_daxpy, simulated_superstep,
                                               simulated_close};
    *out = (struct bsp_machine){&ops, "simulated", processors, NULL, simulation};
    return 0;
}

/* -- described machines -- */

bool probe_bsp_is_described(const struct machine *machine)
{
    return strcmp(machine->name, "simulated") == 0;
}

static double between(double a, double b, double part)
{
    return a + part * (b - a);
}

/* The parameters of `processors` as a formula; noise is the machine's. */
static struct bsp_simulation formula(const struct sim *sim, uint32_t processors)
{
    size_t i = 0;
    while (sim->bsp[i].processors < processors) {
        i++;
    }
    const struct sim_bsp *b = &sim->bsp[i], *a = i ? b - 1 : b;
    double part =
        a == b ? 0 : (double)(processors - a->processors) / (b->processors - a->processors);
    double r = between(a->r_flop_per_s, b->r_flop_per_s, part);
    double longest = probe_bsp_lengths[BSP_LENGTHS - 1]; /* whose rate the description gives */
    return (struct bsp_simulation){.flop_per_s = r * (longest + half_rate_length) / longest,
                                   .g_s = between(a->g_flops, b->g_flops, part) / r,
                                   .g_packets_s =
                                       between(a->g_packets_flops, b->g_packets_flops, part) / r,
                                   .l_s = between(a->l_flops, b->l_flops, part) / r,
                                   .t0_s = between(a->t0_flops, b->t0_flops, part) / r,
                                   .noise = sim->noise.relative,
                                   .stall_probability = sim->noise.outlier_probability,
                                   .stall_factor = sim->noise.outlier_factor,
                                   .seed = sim->random.state};
}

static int described_daxpy(struct bsp_machine *machine, uint32_t processors, uint32_t length,
                           double *flop_per_s)
{
    struct sim *sim = machine->state;
    struct bsp_simulation s = formula(sim, processors);
    double late = INFINITY;
    for (int i = 0; i < DAXPY_BATCHES; i++) {
        late = fmin(late, 1 + s.noise * fabs(profile_random_normal(&sim->random)));
    }
    *flop_per_s = s.flop_per_s * length / (length + half_rate_length) / late;
    return 0;
}

static int described_superstep(struct bsp_machine *machine, uint32_t processors,
                               const struct bsp_superstep *what, double *seconds)
{
    struct sim *sim = machine->state;
    struct bsp_simulation s = formula(sim, processors);
    *seconds = fastest(&s, what);
    sim->random.state = s.seed;
    sim->clock_s += exact(&s, what) * what->supersteps * what->batches;
    return 0;
}

int probe_bsp_open_described(struct machine *simulated, struct bsp_machine *out,
                             struct servet_error *error)
{
    static const struct bsp_machine_ops ops = {described_daxpy, described_superstep,
                                               simulated_close};
    const struct sim *sim = simulated->state;
    uint32_t pus = (uint32_t)simulated->pus.count;
    if (!sim->bsp_count || sim->bsp[0].processors != 1 ||
        sim->bsp[sim->bsp_count - 1].processors != pus) {
        return profile_error(error, -EINVAL,
                             "--bsp: expected a machine whose description has bsp parameters from "
                             "1 to %u processors, "
                             "the one of %s has %s",
                             pus, sim->name, sim->bsp_count ? "others" : "none");
    }
    *out = (struct bsp_machine){&ops, "simulated", pus, NULL, simulated->state};
    return 0;
}

/* -- */

void probe_bsp_machine_close(struct bsp_machine *machine)
{
    if (machine->ops) {
        machine->ops->close(machine);
    }
    machine->ops = NULL;
}
