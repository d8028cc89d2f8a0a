/* Drawn machines, and how good an answer is: for regions.c. */
#pragma once

#include "mapper/devices/devices.h"

#define MOST_PUS 512
#define MOST_LEVELS 12
#define MOST_GPUS 8
#define MOST_RANKS 40
#define NONE UINT32_MAX

struct machine {
    char name[128];
    struct servet_profile *profile;
    uint32_t pu_count, core_count, smt; /* smt: least PUs of a core */
    uint32_t core[MOST_PUS];            /* by OS index; NONE: no PU */
    bool drawn;
    bool has_gpus;                            /* of its own */
    struct profile_device gpus[2][MOST_GPUS]; /* drawn ones, and their mirror image */
    uint32_t gpu_count;
    uint32_t level_count;
    struct level {
        const struct profile_set *groups;
        size_t count;
        bool memory;           /* domains of the narrowest level, or caches */
        uint32_t of[MOST_PUS]; /* by OS index: its group; NONE */
    } level[MOST_LEVELS];
};

struct request {
    uint32_t ranks, threads;
    enum map_priority priority;
    struct profile_set allowed;
    bool gpus;
};

/* The worth of an answer: equal for mirror images. */
struct quality {
    uint32_t doubled, shared, near, crossed[MOST_LEVELS], beside;
};

/* Fills in cores and levels from the profile. */
void quality_levels(struct machine *m);
uint32_t quality_gpus(const struct machine *m);
/* Cores that may be used. */
uint32_t quality_cores(const struct machine *m, const struct request *request);

/* `devices`: NULL without GPUs. */
void quality_weigh(const struct machine *m, const struct request *request, const uint32_t *pus,
                   const struct map_devices *devices, struct quality *out);

/* Do whole groups of some level not hold all ranks, or is more gained by crossing? */
bool quality_must_cross(const struct machine *m, const struct request *request,
                        const uint32_t *pus);

/* Threads that could be near the GPUs, if every rank stays where its share of them is. */
uint32_t quality_most_near(const struct machine *m, const struct request *request);
