#include <errno.h>
#include <math.h>

#include "bsp_machine.h"
#include "random.h"

/* Vectors of this length reach half the rate: the loop's overhead, as seen of DAXPY. */
static const double half_rate_length = 16;

static int simulated_daxpy(struct bsp_machine *machine, uint32_t processors, uint32_t length, double *flop_per_s)
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

static int simulated_superstep(struct bsp_machine *machine, uint32_t processors, const struct bsp_superstep *what,
                               double *seconds)
{
    struct bsp_simulation *s = machine->state;
    struct random random = {s->seed};
    double best = INFINITY;
    (void)processors;
    for (uint32_t i = 0; i < what->batches; i++) {
        double late = 1 + s->noise * fabs(random_normal(&random));
        double stall = random_unit(&random) < s->stall_probability ? s->stall_factor : 1;
        best = fmin(best, exact(s, what) * late * stall);
    }
    s->seed = random_next(&random);
    s->g_s *= 1 + s->drift;
    s->l_s *= 1 + s->drift;
    *seconds = best;
    return 0;
}

static void simulated_close(struct bsp_machine *machine)
{
    machine->state = NULL;
}

int bsp_open_simulated(struct bsp_simulation *simulation, uint32_t processors, struct bsp_machine *out)
{
    static const struct bsp_machine_ops ops = {simulated_daxpy, simulated_superstep, simulated_close};
    *out = (struct bsp_machine){&ops, "simulated", processors, NULL, simulation};
    return 0;
}

void bsp_machine_close(struct bsp_machine *machine)
{
    if (machine->ops) {
        machine->ops->close(machine);
    }
    machine->ops = NULL;
}
