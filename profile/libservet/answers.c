/* Answers of libservet on caches, memory, messages and cache lines between two PUs, with their
 * quality, and on devices. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "profile/query.h"
#include "profile/servet.h"

/* Where the PU is; on no node, of a class without anything, where it is not known. */
static struct profile_place place_of(const servet_profile *profile, uint32_t pu)
{
    static const struct profile_class nothing;
    struct profile_place place;
    if (!profile_locate(profile, pu, &place)) {
        place = (struct profile_place){.node_class = &nothing, .node = UINT32_MAX};
    }
    return place;
}

/* The same of a profile that was measured. */
static struct profile_place measured_place(const servet_profile *profile, uint32_t pu)
{
    return place_of(servet_measured(profile) ? profile : NULL, pu);
}

/* The places of two different PUs of one node of a measured profile; false: they are none. */
static bool find_pair(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                      struct profile_place *a, struct profile_place *b)
{
    return pu_a != pu_b && servet_measured(profile) && profile_locate(profile, pu_a, a) &&
           profile_locate(profile, pu_b, b) && a->node == b->node;
}

static enum servet_origin origin_of(enum profile_origin origin)
{
    return origin == PROFILE_MEASURED   ? SERVET_MEASURED
           : origin == PROFILE_INFERRED ? SERVET_INFERRED
                                        : SERVET_DECLARED;
}

/* How sure a figure is. `there`: it was measured on the PUs that were asked for; else what was
 * measured is inferred for them. Returns 0. */
static int answer_quality(const struct profile_quality *quality, bool there,
                          struct servet_quality *out)
{
    enum servet_origin origin = origin_of(quality->origin);
    out->origin = origin == SERVET_MEASURED && !there ? SERVET_INFERRED : origin;
    out->repetitions = quality->repetitions;
    out->spread = quality->spread;
    return 0;
}

/* The same of evidence, whose spread is 0 where it is not known. */
static int answer_evidence(const struct profile_quality *evidence, bool there,
                           struct servet_quality *out)
{
    answer_quality(evidence, there, out);
    out->spread = out->spread > 0 ? out->spread : -1;
    return 0;
}

/* -- caches and TLBs -- */

uint32_t servet_cache_levels(const servet_profile *profile)
{
    uint32_t levels = 0;
    for (size_t i = 0; profile && i < profile->class_count; i++) {
        const struct profile_class *node_class = &profile->classes[i];
        uint32_t last =
            node_class->cache_count ? node_class->caches[node_class->cache_count - 1].level : 0;
        levels = last > levels ? last : levels;
    }
    return levels;
}

/* One of zeros, if it is not known. */
static const struct profile_cache *find_cache(const servet_profile *profile, uint32_t level,
                                              uint32_t pu)
{
    static const struct profile_cache unknown;
    const struct profile_place place = place_of(profile, pu);
    const struct profile_cache *cache = profile_cache_of(place.node_class, level, place.os_index);
    return cache ? cache : &unknown;
}

uint64_t servet_cache_bytes(const servet_profile *profile, uint32_t level, uint32_t pu)
{
    const struct profile_cache *cache = find_cache(profile, level, pu);
    return profile_size_settled(cache) ? cache->size_bytes : 0;
}

uint32_t servet_cache_line_bytes(const servet_profile *profile, uint32_t level, uint32_t pu)
{
    return find_cache(profile, level, pu)->line_bytes;
}

uint64_t servet_cache_declared_bytes(const servet_profile *profile, uint32_t level, uint32_t pu)
{
    return find_cache(profile, level, pu)->declared_size_bytes;
}

int servet_cache_interval(const servet_profile *profile, uint32_t level, uint32_t pu,
                          uint64_t *low_bytes, uint64_t *high_bytes)
{
    const struct profile_cache *cache = find_cache(profile, level, pu);
    if (cache->size_high_bytes == 0) {
        return -ENOENT;
    }
    if (low_bytes) {
        *low_bytes = cache->size_low_bytes;
    }
    if (high_bytes) {
        *high_bytes = cache->size_high_bytes;
    }
    return 0;
}

uint32_t servet_cache_ways(const servet_profile *profile, uint32_t level, uint32_t pu)
{
    return find_cache(profile, level, pu)->associativity;
}

uint64_t servet_tlb_bytes(const servet_profile *profile, uint32_t level, uint64_t page_bytes,
                          uint32_t pu)
{
    const struct profile_class *of = place_of(profile, pu).node_class;
    for (size_t i = 0; level && i < of->tlb_count; i++) {
        const struct profile_tlb *tlb = &of->tlb[i];
        level -= tlb->page_bytes == page_bytes; /* they are in the order of their reach */
        if (!level) {
            return tlb->reach_bytes;
        }
    }
    return 0;
}

int servet_cache_shared(const servet_profile *profile, uint32_t level, uint32_t pu_a, uint32_t pu_b)
{
    const struct profile_place a = place_of(profile, pu_a), b = place_of(profile, pu_b);
    const struct profile_cache *cache = find_cache(profile, level, pu_a);
    return cache->level && find_cache(profile, level, pu_b) == cache && a.node == b.node &&
           (pu_a == pu_b || profile_related(&cache->sharing, a.os_index, b.os_index));
}

uint32_t servet_cache_sharers(const servet_profile *profile, uint32_t level, uint32_t pu)
{
    const struct profile_place place = place_of(profile, pu);
    const struct profile_cache *cache = find_cache(profile, level, pu);
    uint32_t count = cache->level > 0;
    for (size_t i = 0; count && i < place.node_class->pus.count; i++) {
        count += profile_related(&cache->sharing, place.os_index, place.node_class->pus.ids[i]);
    }
    return count;
}

int servet_cache_quality(const servet_profile *profile, uint32_t level, uint32_t pu,
                         struct servet_quality *out)
{
    const struct profile_cache *cache = find_cache(profile, level, pu);
    return cache->level ? answer_quality(&cache->quality, true, out) : -ENOENT;
}

int servet_sharing_quality(const servet_profile *profile, uint32_t level, uint32_t pu,
                           struct servet_quality *out)
{
    const struct profile_cache *cache = find_cache(profile, level, pu);
    return cache->level ? answer_evidence(&cache->sharing_quality, true, out) : -ENOENT;
}

/* -- memory: bandwidth of one PU, a pair, several; NUMA nodes -- */

/* Is it known what several workers in one group of the level get? More than a pair of them only
 * where it was measured. */
static bool level_knows(const struct profile_memory_level *level, uint32_t workers)
{
    return level->scaling_count > 0 || (workers == 2 && level->bytes_per_s > 0);
}

/* The level that the bandwidth of several workers around the PU comes from; NULL: none is known. */
static const struct profile_memory_level *find_level(const struct profile_place *place,
                                                     uint32_t workers)
{
    const struct profile_memory *memory = &place->node_class->memory;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        if (level_knows(level, workers) && profile_group_of(&level->collisions, place->os_index)) {
            return level;
        }
    }
    return NULL;
}

/* The bandwidth of several workers around the PU by `level`; one alone gets what it gets. */
static double bandwidth_at(const struct profile_place *place,
                           const struct profile_memory_level *level, uint32_t workers)
{
    if (workers == 1) {
        return profile_memory_alone(place->node_class, place->os_index);
    }
    return level ? profile_memory_bandwidth(&place->node_class->memory, level, workers) : 0;
}

double servet_memory_bandwidth(const servet_profile *profile, uint32_t pu, uint32_t workers)
{
    const struct profile_place place = measured_place(profile, pu);
    return workers ? bandwidth_at(&place, find_level(&place, workers), workers) : 0;
}

uint32_t servet_overhead_levels(const servet_profile *profile)
{
    uint32_t most = 0;
    for (uint32_t node = 0; node < servet_node_count(profile); node++) {
        const uint32_t count = (uint32_t)profile_node_class(profile, node)->memory.level_count;
        most = count > most ? count : most;
    }
    return most;
}

double servet_level_bandwidth(const servet_profile *profile, uint32_t level, uint32_t pu,
                              uint32_t workers)
{
    const struct profile_place place = measured_place(profile, pu);
    const struct profile_memory *memory = &place.node_class->memory;
    if (!workers || level >= memory->level_count) {
        return 0;
    }
    const struct profile_memory_level *asked = &memory->levels[level];
    return profile_group_of(&asked->collisions, place.os_index)
               ? bandwidth_at(&place, level_knows(asked, workers) ? asked : NULL, workers)
               : 0;
}

/* The worst level at which two PUs of one node collide, by its number; -1: none. */
static int find_collision(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                          const struct profile_memory **memory)
{
    const struct profile_place a = place_of(profile, pu_a), b = place_of(profile, pu_b);
    *memory = &a.node_class->memory;
    for (size_t i = 0; a.node == b.node && i < (*memory)->level_count; i++) {
        if (profile_related(&(*memory)->levels[i].collisions, a.os_index, b.os_index)) {
            return (int)i;
        }
    }
    return -1;
}

int servet_overhead_level(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    const struct profile_memory *memory;
    return find_collision(profile, pu_a, pu_b, &memory);
}

double servet_overhead_bandwidth(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    const struct profile_memory *memory;
    const int level = find_collision(profile, pu_a, pu_b, &memory);
    if (!servet_measured(profile) || pu_a == pu_b) {
        return 0;
    }
    /* One figure speaks for both, so that it is the lesser one; that of a level, which may be of
     * faster cores, too. */
    const double a = servet_memory_bandwidth(profile, pu_a, 1),
                 b = servet_memory_bandwidth(profile, pu_b, 1), alone = a < b ? a : b;
    const double together = level < 0 ? alone : memory->levels[level].bytes_per_s;
    return alone > 0 && alone < together ? alone : together;
}

static_assert((int)SERVET_NT_COPY == PROFILE_NT_COPY && (int)SERVET_COPY == PROFILE_COPY &&
                  (int)SERVET_READ == PROFILE_READ && (int)SERVET_TRIAD == PROFILE_TRIAD,
              "the public names of the kernels are the profile's");

/* NULL: not measured. */
static const struct profile_kernel_rate *find_kernel(const struct profile_place *place,
                                                     enum servet_kernel kernel)
{
    return profile_kernel_rate(&place->node_class->memory, (enum profile_kernel)kernel);
}

double servet_kernel_bandwidth(const servet_profile *profile, uint32_t pu,
                               enum servet_kernel kernel, uint32_t *workers)
{
    const struct profile_place place = measured_place(profile, pu);
    const struct profile_kernel_rate *rate = find_kernel(&place, kernel);
    if (rate && workers && rate->together_bytes_per_s > 0) {
        *workers = (uint32_t)place.node_class->memory.kernel_pus.count;
    }
    return !rate ? 0 : workers ? rate->together_bytes_per_s : rate->bytes_per_s;
}

uint64_t servet_numa_memory_bytes(const servet_profile *profile, uint32_t pu, uint32_t numa_node)
{
    const struct profile_numa *numa = profile_numa_of(place_of(profile, pu).node_class, numa_node);
    return numa ? numa->memory_bytes : 0;
}

double servet_pair_bandwidth(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    struct profile_place a, b;
    if (!find_pair(profile, pu_a, pu_b, &a, &b)) {
        return 0;
    }
    const struct profile_memory *memory = &a.node_class->memory;
    return profile_pair_figure(memory->pair_rates, memory->pair_rate_count, a.os_index, b.os_index);
}

size_t servet_numa_nodes(const servet_profile *profile, uint32_t pu, uint32_t *nodes, size_t room)
{
    const struct profile_class *of = place_of(profile, pu).node_class;
    for (size_t i = 0; i < of->numa_count && i < room; i++) {
        nodes[i] = of->numa[i].os_index;
    }
    return of->numa_count;
}

int64_t servet_numa_node(const servet_profile *profile, uint32_t pu)
{
    const struct profile_place place = place_of(profile, pu);
    for (size_t i = 0; i < place.node_class->numa_count; i++) {
        const struct profile_numa *numa = &place.node_class->numa[i];
        if (numa->memory_bytes && profile_set_has(&numa->pus, place.os_index)) {
            return numa->os_index;
        }
    }
    return -1;
}

/* One of zeros, if it is not known. */
static const struct profile_numa_access *find_access(const struct profile_place *place,
                                                     uint32_t numa_node)
{
    static const struct profile_numa_access unknown;
    for (size_t i = 0; i < place->node_class->numa_access_count; i++) {
        const struct profile_numa_access *row = &place->node_class->numa_access[i];
        if (row->node == numa_node && profile_set_has(&row->pus, place->os_index)) {
            return row;
        }
    }
    return &unknown;
}

double servet_numa_bandwidth(const servet_profile *profile, uint32_t pu, uint32_t numa_node)
{
    const struct profile_place place = measured_place(profile, pu);
    return find_access(&place, numa_node)->bytes_per_s;
}

double servet_numa_seconds(const servet_profile *profile, uint32_t pu, uint32_t numa_node)
{
    const struct profile_place place = measured_place(profile, pu);
    return find_access(&place, numa_node)->seconds_per_access;
}

/* Quality of the points around a number of workers, or of the last point. */
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
    const struct profile_place place = place_of(profile, pu);
    if (servet_memory_bandwidth(profile, pu, workers) <= 0) {
        return -ENOENT;
    }
    const struct profile_numa_access *lesser =
        workers > 1 ? NULL : profile_memory_lesser(place.node_class, place.os_index);
    if (lesser) {
        return answer_quality(&lesser->quality, lesser->pus.ids[0] == place.os_index, out);
    }
    const struct profile_memory_level *level = workers > 1 ? find_level(&place, workers) : NULL;
    if (!level) {
        return answer_quality(&place.node_class->memory.quality, true, out);
    }
    /* Scaling was measured in the level's first group; the others are like it. */
    bool scaled = level->scaling_count > 0;
    bool there = !scaled || profile_set_has(&level->collisions.groups[0], place.os_index);
    answer_quality(&level->quality, there, out);
    if (scaled) {
        less_sure(level, workers, out);
    }
    return 0;
}

int servet_numa_quality(const servet_profile *profile, uint32_t pu, uint32_t numa_node,
                        struct servet_quality *out)
{
    const struct profile_place place = measured_place(profile, pu);
    const struct profile_numa_access *row = find_access(&place, numa_node);
    return row->pus.count ? answer_quality(&row->quality, row->pus.ids[0] == place.os_index, out)
                          : -ENOENT;
}

int servet_kernel_quality(const servet_profile *profile, uint32_t pu, enum servet_kernel kernel,
                          struct servet_quality *out)
{
    const struct profile_place place = measured_place(profile, pu);
    const struct profile_kernel_rate *rate = find_kernel(&place, kernel);
    if (!rate) {
        return -ENOENT;
    }
    const struct profile_class *node_class = place.node_class;
    bool there = place.os_index == node_class->pus.ids[0] ||
                 profile_set_has(&node_class->memory.kernel_pus, place.os_index);
    return answer_quality(&rate->quality, there, out);
}

/* -- messages and cache lines between two PUs -- */

double servet_message_seconds(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                              uint64_t bytes)
{
    struct profile_link link;
    if (!servet_measured(profile) || !profile_link_of(profile, pu_a, pu_b, &link)) {
        return 0;
    }
    return profile_message_seconds(link.layer, link.communication->message_bytes, (double)bytes);
}

double servet_pair_seconds(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                           uint64_t *bytes)
{
    struct profile_place a, b;
    if (!find_pair(profile, pu_a, pu_b, &a, &b)) {
        return 0;
    }
    const struct profile_communication *messages = &a.node_class->communication;
    double seconds = profile_pair_figure(messages->message_times, messages->message_time_count,
                                         a.os_index, b.os_index);
    if (seconds > 0 && bytes) {
        *bytes = messages->message_bytes;
    }
    return seconds;
}

/* The pair's own figure; 0: not measured. *layer: the pair's, or NULL. */
static double find_line(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                        const struct profile_layer **layer)
{
    struct profile_place a, b;
    *layer = NULL;
    if (!find_pair(profile, pu_a, pu_b, &a, &b)) {
        return 0;
    }
    const struct profile_communication *lines = &a.node_class->communication;
    *layer = profile_layer_of(lines, a.os_index, b.os_index, NULL);
    return profile_pair_figure(lines->line_times, lines->line_time_count, a.os_index, b.os_index);
}

double servet_line_seconds(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    const struct profile_layer *layer;
    double own = find_line(profile, pu_a, pu_b, &layer);
    return own > 0 ? own : layer ? layer->line_seconds : 0;
}

double servet_messages_slower(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                              uint32_t messages)
{
    struct profile_link link;
    if (!messages || !servet_measured(profile) || !profile_link_of(profile, pu_a, pu_b, &link) ||
        link.layer->concurrency_count < 2) {
        return 0;
    }
    return profile_messages_slower(link.layer, messages);
}

int servet_message_layer(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    struct profile_link link;
    return profile_link_of(profile, pu_a, pu_b, &link) ? (int)link.rank - 1 : -1;
}

int servet_message_quality(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                           struct servet_quality *out)
{
    struct profile_link link;
    if (!profile_link_of(profile, pu_a, pu_b, &link)) {
        return -ENOENT;
    }
    const struct profile_relation *measured = &link.communication->measured;
    bool listed = measured->group_count + measured->pair_count == 0 ||
                  profile_related(measured, link.a, link.b);
    return answer_quality(&link.layer->quality, listed, out);
}

int servet_line_quality(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                        struct servet_quality *out)
{
    const struct profile_layer *layer;
    double own = find_line(profile, pu_a, pu_b, &layer);
    const bool of_layer = layer && layer->line_seconds > 0;
    if (!of_layer && !(own > 0)) {
        return -ENOENT;
    }
    const struct profile_quality unsaid = {.origin = PROFILE_MEASURED};
    return answer_evidence(of_layer ? &layer->line_quality : &unsaid, own > 0, out);
}

/* -- GPUs, network cards and disks -- */

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
    const struct profile_place place = place_of(profile, pu);
    const struct profile_class *node_class = place.node_class;
    size_t count = 0, next = 0;
    while (next != SIZE_MAX) {
        const size_t least = next;
        next = SIZE_MAX;
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
    const struct profile_transfer *row =
        device ? find_transfer(measured_place(profile, pu).node_class, device, numa_node) : NULL;
    if (!row) {
        return -ENOENT;
    }
    *out = (struct servet_transfer){row->to_device_bytes_per_s, row->from_device_bytes_per_s,
                                    row->seconds, row->quality.spread};
    return 0;
}
