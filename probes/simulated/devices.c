/* GPUs of a simulated machine: what it declares of them, and copies between them and memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/simulated/simulated.h"

static int declare(const struct sim_gpu *gpu, uint32_t number, struct profile_device *out)
{
    *out = (struct profile_device){
        .kind = PROFILE_GPU, .number = number, .card = number, .numa_node = PROFILE_NOT_SAID};
    out->name = strdup(gpu->name);
    return out->name ? profile_set_copy(&gpu->pus, &out->pus) : -ENOMEM;
}

int probe_sim_declare_gpus(const struct sim *sim, struct profile_class *node_class)
{
    int rc = 0;
    node_class->devices = calloc(sim->gpu_count + 1, sizeof *node_class->devices);
    if (!node_class->devices) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; rc == 0 && i < sim->gpu_count; i++) {
        rc = declare(&sim->gpus[i], i, &node_class->devices[node_class->device_count++]);
    }
    return rc;
}

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
        probe_sim_pass(sim, 1, to + from + latency);
    }
}

int probe_sim_transfer(struct machine *machine, const struct profile_device *device,
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
