/* Copies between GPUs and memory: places, rounds, medians (memory.h). */
#include "probes/memory/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The nodes whose memory is copied from and to. */
struct places {
    struct machine_transfer *of;
    struct machine_transferred *figures;
    struct profile_set *pus; /* of each place */
    size_t count;
};

static void free_places(struct places *places)
{
    for (size_t i = 0; places->pus && i < places->count; i++) {
        profile_set_free(&places->pus[i]);
    }
    free(places->of);
    free(places->figures);
    free(places->pus);
}

/* The PUs of the run that are near the node; a node of memory only has all. */
static int pus_near(const struct probe *probe, const struct profile_numa *node,
                    struct profile_set *out)
{
    const struct profile_set *all = &probe->machine->pus;
    return node->pus.count ? profile_set_intersect(&node->pus, all, out)
                           : profile_set_copy(all, out);
}

static int add_place(const struct probe *probe, const struct profile_numa *node,
                     struct places *places)
{
    const size_t i = places->count;
    TRY(pus_near(probe, node, &places->pus[i]));
    if (places->pus[i].count) {
        const bool only = probe->declared->numa_count == 1;
        places->of[i] = (struct machine_transfer){.numa = only ? -1 : (int32_t)node->os_index,
                                                  .pus = &places->pus[i]};
        places->count++;
    }
    return 0;
}

static int make_places(const struct probe *probe, struct places *out)
{
    const struct profile_class *declared = probe->declared;
    const size_t most = declared->numa_count + 1;
    *out = (struct places){.of = calloc(most, sizeof *out->of),
                           .figures = calloc(most, sizeof *out->figures),
                           .pus = calloc(most, sizeof *out->pus)};
    TRY(out->of && out->figures && out->pus ? 0 : -ENOMEM);
    for (size_t i = 0; i < declared->numa_count; i++) {
        TRY(add_place(probe, &declared->numa[i], out));
    }
    return 0;
}

static struct profile_transfer row_of(uint32_t node, struct machine_transferred *figures)
{
    const size_t rounds = figures->rounds;
    double *const values[] = {figures->to_device_bytes_per_s, figures->from_device_bytes_per_s,
                              figures->seconds};
    struct profile_quality quality = {
        .origin = PROFILE_MEASURED, .repetitions = (uint32_t)rounds, .spread = -1};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        quality.spread = fmax(quality.spread, probe_spread(values[i], rounds));
    }
    return (struct profile_transfer){
        .node = node,
        .to_device_bytes_per_s = profile_median_value(values[0], rounds),
        .from_device_bytes_per_s = profile_median_value(values[1], rounds),
        .seconds = profile_median_value(values[2], rounds),
        .quality = quality,
    };
}

static void leave_device_out(struct probe_devices *result, const char *device, const char *why)
{
    if (!result->why[0]) {
        snprintf(result->why, sizeof result->why, "%s: %s", device, why);
    }
}

static int measure_device(struct probe *probe, const struct profile_device *device,
                          struct places *places, struct probe_device *out,
                          struct probe_devices *result)
{
    const uint32_t only = places->count ? probe->declared->numa[0].os_index : 0;
    struct servet_error why = {""};
    int rc = probe_machine_transfer(probe->machine, device, places->of, places->count,
                                    places->figures, &why);
    if (rc == -ETIME || rc == -EINTR || rc == -ENOMEM) {
        return rc;
    }
    if (rc < 0 || why.text[0]) {
        leave_device_out(result, device->name, why.text[0] ? why.text : probe_machine_strerror(rc));
    }
    if (rc == -EIO) {
        return rc;
    }
    out->transfers = calloc(places->count + 1, sizeof *out->transfers);
    for (size_t i = 0; rc == 0 && out->transfers && i < places->count; i++) {
        if (places->figures[i].rounds) {
            out->transfers[out->count++] = row_of(
                places->of[i].numa < 0 ? only : (uint32_t)places->of[i].numa, &places->figures[i]);
            result->rows++;
        }
    }
    return out->transfers ? 0 : -ENOMEM;
}

/* The first is tried in any case. A library that crashed or hung is asked for no other. */
static int measure_all(struct probe *probe, struct places *places, struct probe_devices *result)
{
    const struct profile_class *declared = probe->declared;
    bool first = true;
    for (size_t i = 0; i < result->count; i++) {
        const struct profile_device *device = &declared->devices[i];
        if (device->kind != PROFILE_GPU) {
            continue;
        }
        if (!first && probe_late(probe)) {
            leave_device_out(result, device->name, probe_machine_strerror(-ETIME));
            result->cut_short = true;
            return 0;
        }
        probe_tell(probe, (double)i / (double)result->count, "copies to %s", device->name);
        int rc = measure_device(probe, device, places, &result->of[i], result);
        if (rc < 0) {
            return rc == -EIO ? 0 : rc;
        }
        first = false;
    }
    return 0;
}

bool probe_devices_are(const struct machine *machine)
{
    const struct profile_class *declared = &machine->declared->classes[0];
    size_t i = 0;
    while (i < declared->device_count && declared->devices[i].kind != PROFILE_GPU) {
        i++;
    }
    return machine->ops->transfer && i < declared->device_count;
}

int probe_devices(struct probe *probe, struct probe_devices *out, struct servet_error *error)
{
    const size_t count = probe->declared->device_count;
    FREED_BY(probe_devices_free)
    struct probe_devices result = {.of = calloc(count + 1, sizeof *result.of), .count = count};
    FREED_BY(free_places) struct places places = {0};
    const int rc = result.of && make_places(probe, &places) == 0
                       ? measure_all(probe, &places, &result)
                       : -ENOMEM;
    result.cut_short |= rc == -ETIME;
    TRY(probe_error(error, rc == -ETIME && result.rows ? 0 : rc, "measuring copies to GPUs"));
    *out = TAKE(result);
    return 0;
}

void probe_devices_free(struct probe_devices *result)
{
    for (size_t i = 0; result->of && i < result->count; i++) {
        free(result->of[i].transfers);
    }
    free(result->of);
    memset(result, 0, sizeof *result);
}
