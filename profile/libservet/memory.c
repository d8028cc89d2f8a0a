/* What libservet answers of memory: bandwidth of one PU, a pair, several; NUMA nodes; and how sure
 * that is. */
#include <assert.h>
#include <errno.h>

#include "profile/libservet/answers.h"

/* The level that the bandwidth of several workers around the PU comes from; NULL: none is known.
 * More than a pair of them is only known where it was measured. */
static const struct profile_memory_level *find_level(const struct profile_place *place,
                                                     uint32_t workers)
{
    const struct profile_memory *memory = &place->node_class->memory;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        bool known = level->scaling_count > 0 || (workers == 2 && level->bytes_per_s > 0);
        if (known && profile_group_of(&level->collisions, place->os_index)) {
            return level;
        }
    }
    return NULL;
}

double servet_memory_bandwidth(const servet_profile *profile, uint32_t pu, uint32_t workers)
{
    struct profile_place place;
    if (!workers || !profile->measured || !profile_locate(profile, pu, &place)) {
        return 0;
    }
    const struct profile_memory *memory = &place.node_class->memory;
    if (workers == 1) {
        return memory->reference_bytes_per_s;
    }
    const struct profile_memory_level *level = find_level(&place, workers);
    return level ? profile_memory_bandwidth(memory, level, workers) : 0;
}

/* The worst level at which two PUs of one node collide: its number; -1: none. False: not two PUs of
 * the profile. */
static bool find_collision(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                           const struct profile_memory **memory, int *level)
{
    struct profile_place a, b;
    if (pu_a == pu_b || !profile_locate(profile, pu_a, &a) || !profile_locate(profile, pu_b, &b)) {
        return false;
    }
    *memory = &a.node_class->memory;
    *level = -1;
    for (size_t i = 0; *level < 0 && a.node == b.node && i < (*memory)->level_count; i++) {
        if (profile_related(&(*memory)->levels[i].collisions, a.os_index, b.os_index)) {
            *level = (int)i;
        }
    }
    return true;
}

int servet_overhead_level(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    const struct profile_memory *memory;
    int level;
    return find_collision(profile, pu_a, pu_b, &memory, &level) ? level : -1;
}

double servet_overhead_bandwidth(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    const struct profile_memory *memory;
    int level;
    if (!profile->measured || !find_collision(profile, pu_a, pu_b, &memory, &level)) {
        return 0;
    }
    return level < 0 ? memory->reference_bytes_per_s : memory->levels[level].bytes_per_s;
}

static_assert((int)SERVET_NT_COPY == PROFILE_NT_COPY && (int)SERVET_COPY == PROFILE_COPY &&
                  (int)SERVET_READ == PROFILE_READ && (int)SERVET_TRIAD == PROFILE_TRIAD,
              "the public names of the kernels are the profile's");

/* NULL: not measured. `place` is the PU's. */
static const struct profile_kernel_rate *find_kernel(const servet_profile *profile, uint32_t pu,
                                                     enum servet_kernel kernel,
                                                     struct profile_place *place)
{
    if (!profile->measured || !profile_locate(profile, pu, place)) {
        return NULL;
    }
    const struct profile_memory *memory = &place->node_class->memory;
    for (size_t i = 0; i < memory->kernel_count; i++) {
        if ((int)memory->kernels[i].kernel == (int)kernel) {
            return &memory->kernels[i];
        }
    }
    return NULL;
}

double servet_kernel_bandwidth(const servet_profile *profile, uint32_t pu,
                               enum servet_kernel kernel, uint32_t *workers)
{
    struct profile_place place;
    const struct profile_kernel_rate *rate = find_kernel(profile, pu, kernel, &place);
    if (rate && workers && rate->together_bytes_per_s > 0) {
        *workers = (uint32_t)place.node_class->memory.kernel_pus.count;
    }
    return !rate ? 0 : workers ? rate->together_bytes_per_s : rate->bytes_per_s;
}

uint64_t servet_numa_memory_bytes(const servet_profile *profile, uint32_t pu, uint32_t numa_node)
{
    struct profile_place place;
    if (!profile_locate(profile, pu, &place)) {
        return 0;
    }
    for (size_t i = 0; i < place.node_class->numa_count; i++) {
        const struct profile_numa *numa = &place.node_class->numa[i];
        if (numa->os_index == numa_node) {
            return numa->memory_bytes;
        }
    }
    return 0;
}

double servet_pair_bandwidth(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    struct profile_place a, b;
    if (!profile_find_pair(profile, pu_a, pu_b, &a, &b)) {
        return 0;
    }
    const struct profile_memory *memory = &a.node_class->memory;
    return profile_pair_figure(memory->pair_rates, memory->pair_rate_count, a.os_index, b.os_index);
}

int64_t servet_numa_node(const servet_profile *profile, uint32_t pu)
{
    struct profile_place place;
    if (!profile_locate(profile, pu, &place)) {
        return -1;
    }
    for (size_t i = 0; i < place.node_class->numa_count; i++) {
        const struct profile_numa *numa = &place.node_class->numa[i];
        if (numa->memory_bytes && profile_set_has(&numa->pus, place.os_index)) {
            return numa->os_index;
        }
    }
    return -1;
}

static const struct profile_numa_access *find_access(const servet_profile *profile, uint32_t pu,
                                                     uint32_t numa_node)
{
    struct profile_place place;
    if (!profile->measured || !profile_locate(profile, pu, &place)) {
        return NULL;
    }
    for (size_t i = 0; i < place.node_class->numa_access_count; i++) {
        const struct profile_numa_access *row = &place.node_class->numa_access[i];
        if (row->node == numa_node && profile_set_has(&row->pus, place.os_index)) {
            return row;
        }
    }
    return NULL;
}

double servet_numa_bandwidth(const servet_profile *profile, uint32_t pu, uint32_t numa_node)
{
    const struct profile_numa_access *row = find_access(profile, pu, numa_node);
    return row ? row->bytes_per_s : 0;
}

double servet_numa_seconds(const servet_profile *profile, uint32_t pu, uint32_t numa_node)
{
    const struct profile_numa_access *row = find_access(profile, pu, numa_node);
    return row ? row->seconds_per_access : 0;
}

/* Of the points around a number of workers, or the last one. */
static void less_sure(const struct profile_memory_level *level, uint32_t workers,
                      struct servet_quality *out)
{
    size_t next = 0;
    while (next + 1 < level->scaling_count && level->scaling[next].workers < workers) {
        next++;
    }
    bool between = next > 0 && level->scaling[next].workers > workers;
    for (size_t i = between ? next - 1 : next; i <= next; i++) {
        const struct profile_scaling_point *point = &level->scaling[i];
        bool first = i == next - between;
        out->repetitions =
            first || point->repetitions < out->repetitions ? point->repetitions : out->repetitions;
        out->spread = first || point->spread > out->spread ? point->spread : out->spread;
    }
}

int servet_memory_quality(const servet_profile *profile, uint32_t pu, uint32_t workers,
                          struct servet_quality *out)
{
    struct profile_place place;
    if (servet_memory_bandwidth(profile, pu, workers) <= 0 ||
        !profile_locate(profile, pu, &place)) {
        return -ENOENT;
    }
    const struct profile_memory_level *level = workers > 1 ? find_level(&place, workers) : NULL;
    if (!level) {
        return profile_answer(&place.node_class->memory.quality, true, out);
    }
    /* Scaling was measured in the level's first group; the others are like it. */
    bool scaled = level->scaling_count > 0;
    bool there = !scaled || profile_set_has(&level->collisions.groups[0], place.os_index);
    profile_answer(&level->quality, there, out);
    if (scaled) {
        less_sure(level, workers, out);
    }
    return 0;
}

int servet_numa_quality(const servet_profile *profile, uint32_t pu, uint32_t numa_node,
                        struct servet_quality *out)
{
    struct profile_place place;
    const struct profile_numa_access *row = find_access(profile, pu, numa_node);
    if (!row || !profile_locate(profile, pu, &place)) {
        return -ENOENT;
    }
    return profile_answer(&row->quality, row->pus.ids[0] == place.os_index, out);
}

int servet_kernel_quality(const servet_profile *profile, uint32_t pu, enum servet_kernel kernel,
                          struct servet_quality *out)
{
    struct profile_place place;
    const struct profile_kernel_rate *rate = find_kernel(profile, pu, kernel, &place);
    if (!rate) {
        return -ENOENT;
    }
    const struct profile_class *node_class = place.node_class;
    bool there = place.os_index == node_class->pus.ids[0] ||
                 profile_set_has(&node_class->memory.kernel_pus, place.os_index);
    return profile_answer(&rate->quality, there, out);
}
