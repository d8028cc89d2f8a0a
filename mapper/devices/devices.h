/* Ranks beside their GPUs and network cards.
 *
 * GPUs come first: the ranks of a node are shared out over the sites where GPUs are (their
 * localities), in proportion to the GPUs there, and inside a site they are mapped as any ranks are
 * (map_domains()). A rank for which there is no room goes to the nearest NUMA node, or package,
 * that has room, and takes what is near the GPUs of ranks behind it last. With fewer ranks than
 * sites a rank is mapped onto several. Beside that the ranks are placed as without GPUs, which is
 * taken where they cross fewer packages, then fewer NUMA nodes, beyond those that their own GPUs
 * are near to; then where fewer are far from their GPUs; where they fill the node; and where there
 * are more threads than cores. No rank straddles groups to share less.
 *
 * Either way GPUs are dealt out among the placed ranks, so that each has one, most are near, and
 * none has many more than another; with fewer ranks than GPUs each gets several.
 *
 * A GPU whose PUs may not be used (a cpuset left them out) is used only when each of the others
 * has a rank. Network cards move no rank: each rank gets the nearest one, of several equally near
 * the one with fewest ranks, and cards that are left go to ranks near them. */
#pragma once

#include "mapper/map.h"

#define MAP_ALL_GPUS UINT32_MAX

struct map_device_request {
    struct map_request ranks;
    uint32_t gpus;  /* of each node; MAP_ALL_GPUS; 0: GPUs play no part */
    bool exclusive; /* no GPU for two ranks: more ranks than GPUs are refused */
    bool nics;
};

/* A device of a rank, borrowed from the profile. */
struct map_held {
    const struct profile_device *device;
    bool far; /* none of the rank's PUs are near it */
};

/* Devices of all ranks: rank r has those from first[r] to first[r + 1] - 1, GPUs before cards. */
struct map_devices {
    size_t *first;
    struct map_held *held;
    size_t count;
};

/* Chooses PUs as map_domains() does, and devices. 0; -EINVAL (as map_domains(); no such device, or
 * more ranks than GPUs: the text says which); -ENOMEM. */
int map_devices(const struct servet_profile *profile, const struct map_device_request *request,
                uint32_t *pus, struct map_devices *out, struct servet_error *error);
void map_devices_free(struct map_devices *devices);
