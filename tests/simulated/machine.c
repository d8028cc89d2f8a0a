/* A described machine as a `struct machine`: times of traversals (traverse.c) with noise, memory
 * bandwidth as the max-min fair share of nested domains, messages by layer or by a measured matrix,
 * and copies to GPUs. It keeps a clock of its own, of what the same operations would have taken on
 * the machine itself. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/cli.h"
#include "tests/simulated/simulated.h"

/* Time of a measurement on the machine itself: measured on the native backend (two virtual cores),
 * so that times of machines with many cores can be projected. */
static const double warm_speedup = 8; /* independent loads against dependent ones */
static const double timed_loads = 12288;
/* Waking the workers; for messages: an order and its answer. */
static const double operation_seconds = 150e-6;

/* Noise only ever slows down: a half-normal deviation, and now and then an outlier. */
double probe_sim_noisy(struct sim *sim, double seconds)
{
    double factor = 1 + sim->noise.relative * fabs(random_normal(&sim->random));
    if (random_unit(&sim->random) < sim->noise.outlier_probability) {
        factor *= 1 + (sim->noise.outlier_factor - 1) * random_unit(&sim->random);
    }
    return seconds * factor;
}

/* An operation of so many workers that would take so long if they had their PUs to themselves. */
static void sim_pass(struct sim *sim, size_t workers, double seconds)
{
    sim->clock_s += seconds * (1 + sim->noise.others);
    sim->times.ran += seconds * (double)workers;
    sim->times.waited += seconds * sim->noise.others * (double)workers;
}

static int sim_traverse(struct machine *machine, const struct machine_traversal *what,
                        const uint32_t *pus, size_t count, double *seconds_per_access)
{
    struct sim *sim = machine->state;
    double slowest = 0;
    int rc = probe_sim_traverse(sim, what, pus, count, seconds_per_access);
    for (size_t i = 0; i < count && rc == 0; i++) {
        slowest = fmax(slowest, seconds_per_access[i]);
        seconds_per_access[i] = probe_sim_noisy(sim, seconds_per_access[i]);
    }
    double nodes = (double)(what->bytes / what->stride_bytes);
    sim_pass(sim, count,
             operation_seconds + nodes * slowest * what->warm_passes / warm_speedup +
                 timed_loads * slowest);
    return rc;
}

/* -- memory: everybody's share grows evenly until a limit that it is under is used up -- */

static const struct sim_node *node_at(const struct sim *sim, int32_t numa, uint32_t pu)
{
    for (size_t i = 0; i < sim->node_count; i++) {
        if (numa < 0 ? profile_set_has(&sim->nodes[i].pus, pu)
                     : sim->nodes[i].os_index == (uint32_t)numa) {
            return &sim->nodes[i];
        }
    }
    return NULL;
}

static const struct sim_kind *kind_of(const struct sim *sim, uint32_t pu)
{
    for (size_t i = 0; i < sim->kind_count; i++) {
        if (profile_set_has(&sim->kinds[i].pus, pu)) {
            return &sim->kinds[i];
        }
    }
    return NULL;
}

/* Its bandwidth when it works alone. */
static double rate_of(const struct sim *sim, uint32_t pu)
{
    const struct sim_kind *kind = kind_of(sim, pu);
    return kind ? kind->pu_bytes_per_s : sim->pu_bytes_per_s;
}

int probe_sim_memory_of(const struct sim *sim, int32_t numa, uint32_t pu, double *seconds,
                        double *bytes_per_s)
{
    const struct sim_node *node = node_at(sim, numa, pu);
    if (!node && numa > 0) { /* a machine without nodes of its own has number 0 */
        return -EACCES;
    }
    const struct sim_kind *kind = kind_of(sim, pu);
    *seconds = kind ? kind->memory_seconds : sim->memory_seconds;
    *bytes_per_s = rate_of(sim, pu);
    for (size_t i = 0; node && i < node->from_count; i++) {
        if (profile_set_has(&node->from[i].pus, pu)) {
            *seconds = node->from[i].seconds;
            *bytes_per_s = node->from[i].bytes_per_s;
        }
    }
    return 0;
}

static double capacity_of(const struct sim_domain *domain, size_t workers)
{
    const struct sim_capacity *row = domain->kind->capacities;
    size_t i = 0;
    while (i < domain->kind->capacity_count && row[i].workers <= workers) {
        i++;
    }
    if (i == 0 || i == domain->kind->capacity_count) {
        return row[i ? i - 1 : 0].bytes_per_s;
    }
    double part =
        (double)(workers - row[i - 1].workers) / (double)(row[i].workers - row[i - 1].workers);
    return row[i - 1].bytes_per_s + part * (row[i].bytes_per_s - row[i - 1].bytes_per_s);
}

/* Which of those who work are in which domain: looked up once, for machines of hundreds of PUs. */
struct traffic {
    const struct sim *sim;
    const uint32_t *pus;
    size_t count;
    size_t *first;   /* of a domain's members; one more at the end. Owned */
    size_t *members; /* positions in `pus`, by domain, ascending. Owned */
    bool *fixed;     /* whose rate grows no more. Owned */
};

static void free_traffic(struct traffic *traffic)
{
    free(traffic->first);
    free(traffic->members);
    free(traffic->fixed);
}

static struct traffic make_traffic(const struct sim *sim, const uint32_t *pus, size_t count)
{
    size_t inside = 0;
    struct traffic it = {
        .sim = sim,
        .pus = pus,
        .count = count,
        .first = cli_needed(calloc(sim->domain_count + 1, sizeof *it.first)),
        .members = cli_needed(malloc((sim->domain_count * count + 1) * sizeof *it.members)),
        .fixed = cli_needed(calloc(count + 1, sizeof *it.fixed))};
    for (size_t d = 0; d < sim->domain_count; d++) {
        for (size_t i = 0; i < count; i++) {
            if (profile_set_has(sim->domains[d].pus, pus[i])) {
                it.members[inside++] = i;
            }
        }
        it.first[d + 1] = inside;
    }
    return it;
}

/* The rest for each worker whose rate still grows; INFINITY if none does. */
static double reach_of(const struct traffic *traffic, size_t domain, const double *rates)
{
    const size_t from = traffic->first[domain], to = traffic->first[domain + 1];
    double used = 0;
    size_t growing = 0;
    for (size_t k = from; k < to; k++) {
        size_t i = traffic->members[k];
        used += traffic->fixed[i] ? rates[i] : 0;
        growing += !traffic->fixed[i];
    }
    double capacity = capacity_of(&traffic->sim->domains[domain], to - from);
    return growing ? (capacity - used) / (double)growing : INFINITY;
}

/* Those whose own rate, or whose domain, is at its limit grow no more; how many more. */
static size_t fix_rates(struct traffic *traffic, size_t limit, double level, double *rates)
{
    const bool own = limit == traffic->sim->domain_count;
    const size_t from = own ? 0 : traffic->first[limit],
                 to = own ? traffic->count : traffic->first[limit + 1];
    size_t fixed = 0;
    for (size_t k = from; k < to; k++) {
        size_t i = own ? k : traffic->members[k];
        bool now = !traffic->fixed[i] && (!own || rate_of(traffic->sim, traffic->pus[i]) <= level);
        rates[i] = now ? level : rates[i];
        traffic->fixed[i] |= now;
        fixed += now;
    }
    return fixed;
}

static void share_local_bandwidth(const struct sim *sim, const uint32_t *pus, size_t count,
                                  double *rates)
{
    FREED_BY(free_traffic) struct traffic traffic = make_traffic(sim, pus, count);
    memset(rates, 0, count * sizeof *rates);
    for (size_t open = count; open > 0;) {
        /* The rate at which the next limit is reached: a PU's own or a domain's. */
        double level = INFINITY;
        size_t limit = sim->domain_count;
        for (size_t i = 0; i < count; i++) {
            level = traffic.fixed[i] ? level : fmin(level, rate_of(sim, pus[i]));
        }
        for (size_t d = 0; d < sim->domain_count; d++) {
            double reach = reach_of(&traffic, d, rates);
            if (reach < level) {
                level = reach;
                limit = d;
            }
        }
        open -= fix_rates(&traffic, limit, level, rates);
    }
}

/* Each has as much less as all want too much. */
static void limit_node(const struct sim_node *node, size_t count, double *rates)
{
    double all = 0;
    for (size_t i = 0; i < count; i++) {
        all += rates[i];
    }
    const bool over = node && node->together_bytes_per_s > 0 && all > node->together_bytes_per_s;
    for (size_t i = 0; over && i < count; i++) {
        rates[i] *= node->together_bytes_per_s / all;
    }
}

static int share_bandwidth(const struct sim *sim, int32_t numa, const uint32_t *pus, size_t count,
                           double *rates)
{
    int rc = 0;
    share_local_bandwidth(sim, pus, count, rates);
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct sim_node *own = node_at(sim, -1, pus[i]);
        bool far = numa >= 0 && own && own->os_index != (uint32_t)numa;
        double seconds, most = 0;
        rc = probe_sim_memory_of(sim, numa, pus[i], &seconds, &most);
        /* Domains are of local traffic: elsewhere a PU has what `nodes` says, and no limit
         * beside. */
        rates[i] = far ? most : fmin(most, rates[i]);
    }
    if (rc == 0 && numa >= 0) {
        limit_node(node_at(sim, numa, 0), count, rates);
    }
    return rc;
}

static int copy(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                size_t count, double *bytes_per_s)
{
    struct sim *sim = machine->state;
    bool offline = sim->offline_after && ++sim->copies > sim->offline_after;
    int rc = offline ? -ENODEV : share_bandwidth(sim, what->numa, pus, count, bytes_per_s);
    if (rc < 0) {
        return rc;
    }
    double slowest = INFINITY;
    for (size_t i = 0; i < count; i++) {
        slowest = fmin(slowest, bytes_per_s[i]);
        bytes_per_s[i] = 1 / probe_sim_noisy(sim, 1 / bytes_per_s[i]);
    }
    sim_pass(sim, count,
             operation_seconds +
                 (what->passes + 0.2) * 2 * (double)machine_copy_pass(what) / slowest);
    return 0;
}

/* -- messages -- */

const struct sim_layer *probe_sim_layer_of(const struct sim *sim, const struct profile_pair *pair,
                                           size_t *group)
{
    for (size_t i = 0; i < sim->layer_count; i++) {
        for (size_t g = 0; g < sim->layers[i].group_count; g++) {
            const struct profile_set *set = &sim->layers[i].groups[g];
            if (profile_set_has(set, pair->a) && profile_set_has(set, pair->b)) {
                *group = g;
                return &sim->layers[i];
            }
        }
    }
    return NULL;
}

static double message_seconds(const struct sim_layer *layer, const struct machine_exchange *what)
{
    double seconds = layer->seconds + (double)what->bytes / layer->bytes_per_s;
    return layer->eager_bytes && what->bytes >= layer->eager_bytes
               ? seconds + layer->rendezvous_seconds
               : seconds;
}

/* The measured time is that of one line. A longer message is handed over line by line, ten on the
 * way at a time as a core has line fill buffers (Little's law: the bandwidth between two PUs falls
 * with the time of a line). */
static double measured_seconds(const struct machine *machine, const struct profile_pair *pair,
                               size_t bytes)
{
    static const double line_bytes = 64, lines_on_the_way = 10;
    const struct sim *sim = machine->state;
    size_t row = profile_set_position(&machine->pus, pair->a),
           column = profile_set_position(&machine->pus, pair->b);
    double seconds = sim->matrix.seconds[row * sim->pu_count + column];
    double more = fmax(0, (double)bytes - line_bytes);
    return seconds + more / line_bytes * seconds / lines_on_the_way;
}

/* How much slower than alone: the pairs of its group at the same time, over those it can carry. */
static double load_of(const struct sim *sim, const struct profile_pair *pairs, size_t count,
                      const struct sim_layer *layer, size_t group)
{
    size_t other, users = 0;
    if (!layer || layer->parallel <= 0) {
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        users += probe_sim_layer_of(sim, &pairs[i], &other) == layer && other == group;
    }
    return fmax(1, (double)users / layer->parallel);
}

static int sim_exchange(struct machine *machine, const struct machine_exchange *what,
                        const struct profile_pair *pairs, size_t count, double *seconds)
{
    struct sim *sim = machine->state;
    double slowest = 0;
    for (size_t i = 0; i < count; i++) {
        size_t group = 0;
        const struct sim_layer *layer = probe_sim_layer_of(sim, &pairs[i], &group);
        if (!layer && !sim->matrix.seconds) {
            return -ENOTSUP;
        }
        double alone = sim->matrix.seconds ? measured_seconds(machine, &pairs[i], what->bytes)
                                           : message_seconds(layer, what);
        double exact = alone * load_of(sim, pairs, count, layer, group);
        seconds[i] = INFINITY;
        for (uint32_t batch = 0; batch < what->batches; batch++) {
            seconds[i] = fmin(seconds[i], probe_sim_noisy(sim, exact));
        }
        slowest = fmax(slowest, exact);
    }
    sim_pass(sim, 2 * count,
             operation_seconds + 2 * slowest * what->round_trips * (what->batches + 1));
    return 0;
}

/* -- copies between GPUs and memory -- */

static const struct sim_gpu *find_gpu(const struct sim *sim, const char *name)
{
    size_t i = 0;
    while (i < sim->gpu_count && strcmp(sim->gpus[i].name, name) != 0) {
        i++;
    }
    return i < sim->gpu_count && sim->gpus[i].transfer_count ? &sim->gpus[i] : NULL;
}

static const struct sim_transfer *find_transfer(const struct sim_gpu *gpu, int32_t numa)
{
    const uint32_t node = numa < 0 ? 0 : (uint32_t)numa;
    size_t i = 0;
    while (i < gpu->transfer_count && gpu->transfers[i].node != node) {
        i++;
    }
    return i < gpu->transfer_count ? &gpu->transfers[i] : NULL;
}

/* Rates are as much less as times are more. */
static void copy_rounds(struct sim *sim, const struct sim_transfer *of,
                        struct machine_transferred *out)
{
    for (out->rounds = 0; out->rounds < MACHINE_TRANSFER_ROUNDS; out->rounds++) {
        const double to = probe_sim_noisy(sim, MACHINE_TRANSFER_BYTES / of->to_device_bytes_per_s),
                     from =
                         probe_sim_noisy(sim, MACHINE_TRANSFER_BYTES / of->from_device_bytes_per_s),
                     latency = probe_sim_noisy(sim, of->seconds);
        out->to_device_bytes_per_s[out->rounds] = MACHINE_TRANSFER_BYTES / to;
        out->from_device_bytes_per_s[out->rounds] = MACHINE_TRANSFER_BYTES / from;
        out->seconds[out->rounds] = latency;
        sim_pass(sim, 1, to + from + latency);
    }
}

static int transfer(struct machine *machine, const struct profile_device *device,
                    const struct machine_transfer *places, size_t count,
                    struct machine_transferred *out, struct servet_error *why)
{
    struct sim *sim = machine->state;
    const struct sim_gpu *gpu = find_gpu(sim, device->name);
    if (!gpu) {
        return profile_error(why, -ENOTSUP, "the description has no copies to it");
    }
    for (size_t i = 0; i < count; i++) {
        const struct sim_transfer *of = find_transfer(gpu, places[i].numa);
        out[i].rounds = 0;
        if (of) {
            copy_rounds(sim, of, &out[i]);
        } else {
            profile_error(why, 0, "the description has no copies to node %d", places[i].numa);
        }
    }
    return 0;
}

/* -- opening -- */

static double sim_elapsed(struct machine *machine)
{
    return ((const struct sim *)machine->state)->clock_s;
}

static struct machine_times times(struct machine *machine)
{
    return ((const struct sim *)machine->state)->times;
}

static double others(struct machine *machine)
{
    return ((const struct sim *)machine->state)->noise.others;
}

static void close_simulated(struct machine *machine)
{
    probe_sim_free(machine->state);
    free(machine->state);
}

static const struct machine_ops simulated_ops = {.traverse = sim_traverse,
                                                 .copy = copy,
                                                 .exchange = sim_exchange,
                                                 .transfer = transfer,
                                                 .elapsed = sim_elapsed,
                                                 .times = times,
                                                 .others = others,
                                                 .daxpy = probe_sim_daxpy,
                                                 .superstep = probe_sim_superstep,
                                                 .close = close_simulated};

int probe_machine_open_simulated(const char *path, uint64_t seed, struct machine *out,
                                 struct servet_error *error)
{
    struct machine machine = {.ops = &simulated_ops, .name = "simulated"};
    struct sim *sim = machine.state = cli_needed(calloc(1, sizeof *sim));
    sim->random.state = seed;
    int rc = probe_sim_load(path, sim, &machine, error);
    if (rc < 0) {
        probe_machine_close(&machine);
        return rc;
    }
    *out = machine;
    return 0;
}
