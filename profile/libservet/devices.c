/* Answers of libservet on GPUs, network cards and disks. */
#include <errno.h>
#include <string.h>

#include "profile/query.h"
#include "profile/servet.h"

static struct servet_device device_of(const struct profile_device *device)
{
    return (struct servet_device){
        .kind = (enum servet_device_kind)device->kind,
        .name = device->name,
        .bus_id = device->bus_id,
        .uuid = device->uuid,
        .number = device->number == PROFILE_NOT_SAID ? -1 : (int64_t)device->number,
        .numa_node = device->numa_node == PROFILE_NOT_SAID ? -1 : (int64_t)device->numa_node,
        .card = device->card,
    };
}

/* Devices that as many PUs are near to keep the profile's order. */
size_t servet_devices_near(const servet_profile *profile, uint32_t pu, enum servet_device_kind kind,
                           struct servet_device *out, size_t room)
{
    struct profile_place place;
    size_t count = 0, least = 0;
    while (profile_locate(profile, pu, &place)) {
        const struct profile_class *node_class = place.node_class;
        size_t next = SIZE_MAX;
        for (size_t i = 0; i < node_class->device_count; i++) {
            const struct profile_device *device = &node_class->devices[i];
            if (device->kind != (enum profile_device_kind)kind ||
                !profile_set_has(&device->pus, place.os_index)) {
                continue;
            }
            if (device->pus.count == least) {
                if (count < room) {
                    out[count] = device_of(device);
                }
                count++;
            } else if (device->pus.count > least && device->pus.count < next) {
                next = device->pus.count;
            }
        }
        if (next == SIZE_MAX) {
            break;
        }
        least = next;
    }
    return count;
}

static const struct profile_transfer *find_transfer(const struct profile_class *node_class,
                                                    const char *device, uint32_t numa_node)
{
    for (size_t i = 0; i < node_class->device_count; i++) {
        const struct profile_device *of = &node_class->devices[i];
        for (size_t k = 0; k < of->transfer_count && strcmp(of->name, device) == 0; k++) {
            if (of->transfers[k].node == numa_node) {
                return &of->transfers[k];
            }
        }
    }
    return NULL;
}

int servet_device_transfer(const servet_profile *profile, uint32_t pu, const char *device,
                           uint32_t numa_node, struct servet_transfer *out)
{
    struct profile_place place;
    const struct profile_transfer *row =
        device && servet_measured(profile) && profile_locate(profile, pu, &place)
            ? find_transfer(place.node_class, device, numa_node)
            : NULL;
    if (!row) {
        return -ENOENT;
    }
    *out = (struct servet_transfer){row->to_device_bytes_per_s, row->from_device_bytes_per_s,
                                    row->seconds, row->quality.spread};
    return 0;
}
