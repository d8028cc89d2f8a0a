/* What the files of this folder share: the choice that is being made. */
#pragma once

#include "mapper/devices/devices.h"
#include "mapper/worth/worth.h"

/* A site where GPUs are. */
struct map_site {
    struct profile_set pus; /* those near them that may be used, OS indices; empty: they are far */
    uint32_t numa_node;     /* PROFILE_NOT_SAID: not known */
    const struct profile_device **gpus; /* those of all sites lie behind one another */
    size_t gpu_count;
    size_t ranks;
    bool wide; /* the PUs of another site are among its own */
};

/* A device of a rank; the one that it got before. */
struct map_hold {
    const struct profile_device *device;
    struct map_hold *before;
};

struct map_choice {
    struct map_arena *arena;
    const struct servet_profile *profile;
    const struct map_device_request *request;
    size_t *first;           /* by rank: where its threads begin in `pus` */
    uint32_t *pus;           /* the answer: PU numbers of the whole machine */
    struct map_hold **holds; /* by rank: its devices, the last one first */
    /* of the node at hand */
    const struct map_part *node;
    bool *used; /* by OS index: a rank is there */
    struct map_node_view view;
    struct map_site *sites; /* by lowest PU */
    size_t site_count;
};

/* Gives a device to a rank. 0 or -ENOMEM. */
int map_choice_hold(struct map_choice *c, size_t rank, const struct profile_device *device);

/* How far a PU is from the PUs that a device is near to, and a device from the nearest PU of the
 * rank. */
enum map_distance { MAP_BESIDE, MAP_SAME_NODE, MAP_SAME_PACKAGE, MAP_ELSEWHERE };
enum map_distance map_distance_of(const struct profile_class *of, const struct profile_set *near,
                                  uint32_t pu);
enum map_distance map_choice_distance(const struct map_choice *c,
                                      const struct profile_device *device, size_t rank);

/* Deals GPUs out among ranks [begin, end), which have their PUs. 0 or -ENOMEM. */
int map_choice_deal(struct map_choice *c, const struct profile_device *const *gpus,
                    size_t gpu_count, size_t begin, size_t end);

/* Less is better: packages, then NUMA nodes that ranks cross though no GPU of theirs makes them,
 * then pairs of a rank and a GPU that are far from one another. 0 or -ENOMEM. */
int map_choice_weigh(const struct map_choice *c, size_t begin, size_t end, uint64_t *out);

/* Gives network cards to ranks that have their PUs. 0; -EINVAL (there is none); -ENOMEM. */
int map_choose_nics(struct map_choice *c, struct servet_error *error);

/* The answer. 0 or -ENOMEM. */
int map_choice_devices(const struct map_choice *c, struct map_devices *out);
