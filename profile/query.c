/* The answers are looked up in lists that are as short as a machine's levels and layers, and every
 * number that lies between two measured ones is made here and nowhere else: two commands that are
 * asked one question have to give one answer. */
#include "profile/query.h"

#include <string.h>

/* -- nodes, and PU numbers, which count through the nodes by the span of their class, so that a
 * thousand nodes alike need no table -- */

uint32_t profile_class_span(const struct profile_class *node_class)
{
    return node_class->pus.count ? node_class->pus.ids[node_class->pus.count - 1] + 1 : 0;
}

uint32_t profile_node_count(const struct servet_profile *profile)
{
    uint32_t count = 0;
    for (size_t i = 0; i < profile->node_range_count; i++) {
        count += profile->nodes[i].count;
    }
    return count;
}

const struct profile_class *profile_node_class(const struct servet_profile *profile, uint32_t node)
{
    for (size_t i = 0; i < profile->node_range_count; i++) {
        const struct profile_node_range *range = &profile->nodes[i];
        if (node < range->count) {
            return &profile->classes[range->class_index];
        }
        node -= range->count;
    }
    return NULL;
}

const char *profile_condition(const struct servet_profile *profile, const char *key)
{
    for (size_t i = 0; i < profile->condition_count; i++) {
        if (strcmp(profile->conditions[i].key, key) == 0) {
            return profile->conditions[i].value;
        }
    }
    return NULL;
}

uint32_t profile_node_first_pu(const struct servet_profile *profile, uint32_t node)
{
    uint32_t first = 0;
    for (size_t i = 0; i < profile->node_range_count; i++) {
        const struct profile_node_range *range = &profile->nodes[i];
        uint32_t span = profile_class_span(&profile->classes[range->class_index]);
        if (node < range->count) {
            return first + node * span;
        }
        node -= range->count;
        first += range->count * span;
    }
    return first;
}

bool profile_locate(const struct servet_profile *profile, uint32_t pu, struct profile_place *place)
{
    uint32_t first = 0, node = 0;
    for (size_t i = 0; profile && i < profile->node_range_count; i++) {
        const struct profile_node_range *range = &profile->nodes[i];
        const struct profile_class *node_class = &profile->classes[range->class_index];
        uint32_t span = profile_class_span(node_class);
        if (pu - first >= range->count * span) {
            first += range->count * span;
            node += range->count;
            continue;
        }
        *place =
            (struct profile_place){node_class, node + (pu - first) / span, (pu - first) % span};
        return profile_set_has(&node_class->pus, place->os_index);
    }
    return false;
}

/* -- relations and lists -- */

const struct profile_set *profile_group_of(const struct profile_relation *relation, uint32_t member)
{
    for (size_t i = 0; i < relation->group_count; i++) {
        if (profile_set_has(&relation->groups[i], member)) {
            return &relation->groups[i];
        }
    }
    return NULL;
}

bool profile_related(const struct profile_relation *relation, uint32_t a, uint32_t b)
{
    if (a == b) {
        return false;
    }
    const struct profile_set *group = profile_group_of(relation, a);
    if (group && profile_set_has(group, b)) {
        return true;
    }
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    for (size_t i = 0; i < relation->pair_count && relation->pairs[i].a <= low; i++) {
        if (relation->pairs[i].a == low && relation->pairs[i].b == high) {
            return true;
        }
    }
    return false;
}

static bool group_within(const struct profile_set *group, const struct profile_relation *outer)
{
    const struct profile_set *around =
        group->count > 0 ? profile_group_of(outer, group->ids[0]) : NULL;
    bool within = group->count < 2 || (around && profile_set_subset(group, around));
    if (within || outer->pair_count == 0) {
        return within;
    }
    within = true;
    for (size_t i = 0; within && i < group->count; i++) {
        for (size_t j = i + 1; within && j < group->count; j++) {
            within = profile_related(outer, group->ids[i], group->ids[j]);
        }
    }
    return within;
}

bool profile_relation_within(const struct profile_relation *inner,
                             const struct profile_relation *outer)
{
    bool within = true;
    for (size_t g = 0; within && g < inner->group_count; g++) {
        within = group_within(&inner->groups[g], outer);
    }
    for (size_t i = 0; within && i < inner->pair_count; i++) {
        within = profile_related(outer, inner->pairs[i].a, inner->pairs[i].b);
    }
    return within;
}

bool profile_relation_equal(const struct profile_relation *a, const struct profile_relation *b)
{
    return profile_relation_within(a, b) && profile_relation_within(b, a);
}

double profile_pair_figure(const struct profile_pair_figure *list, size_t count, uint32_t a,
                           uint32_t b)
{
    const uint64_t wanted = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t there = (uint64_t)list[middle].a << 32 | list[middle].b;
        if (there == wanted) {
            return list[middle].value;
        }
        low = there < wanted ? middle + 1 : low;
        high = there < wanted ? high : middle;
    }
    return 0;
}

const struct profile_numa *profile_numa_of(const struct profile_class *node_class,
                                           uint32_t os_index)
{
    for (size_t i = 0; i < node_class->numa_count; i++) {
        if (node_class->numa[i].os_index == os_index) {
            return &node_class->numa[i];
        }
    }
    return NULL;
}

bool profile_cache_holds(const struct profile_cache *cache, uint32_t os_index)
{
    return cache->pus.count ? profile_set_has(&cache->pus, os_index)
                            : profile_group_of(&cache->sharing, os_index) != NULL;
}

/* A class may have several caches of one level, and the only one of its level holds everybody. */
const struct profile_cache *profile_cache_of(const struct profile_class *node_class, uint32_t level,
                                             uint32_t os_index)
{
    const struct profile_cache *found = NULL;
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        if (cache->level != level) {
            continue;
        }
        if (profile_cache_holds(cache, os_index)) {
            return cache;
        }
        if (!cache->pus.count && !found) {
            found = cache;
        }
    }
    return found;
}

bool profile_size_settled(const struct profile_cache *cache)
{
    const struct profile_quality *quality = &cache->quality;
    if (quality->origin == PROFILE_DECLARED || quality->origin == PROFILE_QUOTED) {
        return true;
    }
    return quality->repetitions != 1 && quality->spread <= PROFILE_SETTLED_SPREAD &&
           (cache->size_high_bytes / 2 <= cache->size_low_bytes ||
            cache->size_bytes == cache->declared_size_bytes);
}

const struct profile_layer *profile_layer_of(const struct profile_communication *communication,
                                             uint32_t a, uint32_t b, size_t *index)
{
    for (size_t i = 0; i < communication->layer_count; i++) {
        if (profile_related(&communication->layers[i].members, a, b)) {
            if (index) {
                *index = i;
            }
            return &communication->layers[i];
        }
    }
    return NULL;
}

/* -- what lies between two PUs -- */

static uint32_t most_inner_layers(const struct servet_profile *profile)
{
    size_t most = 0;
    for (size_t i = 0; i < profile->class_count; i++) {
        size_t layers = profile->classes[i].communication.layer_count;
        most = layers > most ? layers : most;
    }
    return (uint32_t)most;
}

uint32_t profile_layer_rank(const struct servet_profile *profile,
                            const struct profile_communication *communication, size_t index)
{
    bool between = communication == &profile->network;
    return (uint32_t)index + 1 + (between ? most_inner_layers(profile) : 0);
}

static bool all_known(const struct profile_communication *communication)
{
    for (size_t i = 0; i < communication->layer_count; i++) {
        if (!(communication->layers[i].seconds > 0)) {
            return false;
        }
    }
    return true;
}

bool profile_latencies_known(const struct servet_profile *profile)
{
    size_t layers = profile->network.layer_count;
    bool known = all_known(&profile->network);
    for (size_t i = 0; known && i < profile->class_count; i++) {
        known = all_known(&profile->classes[i].communication);
        layers += profile->classes[i].communication.layer_count;
    }
    return known && layers > 0;
}

double profile_layer_distance(const struct servet_profile *profile,
                              const struct profile_communication *communication, size_t index)
{
    return profile_latencies_known(profile) ? communication->layers[index].seconds
                                            : profile_layer_rank(profile, communication, index);
}

bool profile_link_of(const struct servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                     struct profile_link *out)
{
    struct profile_place a, b;
    size_t index;
    if (!profile_locate(profile, pu_a, &a) || !profile_locate(profile, pu_b, &b)) {
        return false;
    }
    const bool inside = a.node == b.node;
    struct profile_link link = {.communication =
                                    inside ? &a.node_class->communication : &profile->network,
                                .a = inside ? a.os_index : a.node,
                                .b = inside ? b.os_index : b.node};
    link.layer = profile_layer_of(link.communication, link.a, link.b, &index);
    if (!link.layer) {
        return false;
    }
    link.rank = profile_layer_rank(profile, link.communication, index);
    *out = link;
    return true;
}

/* -- interpolation: nowhere else -- */

static double line_through(double x0, double y0, double x1, double y1, double x)
{
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

/* Time of a message that was measured at one size: latency up to that size, bandwidth above. */
static double by_one_size(double seconds, uint64_t measured_bytes, double bytes)
{
    static const uint64_t usual_bytes = 32768; /* L1 of the papers' machines: 2010 paper, III-D */
    double size = (double)(measured_bytes ? measured_bytes : usual_bytes);
    return bytes > size ? seconds * (bytes / size) : seconds;
}

double profile_message_seconds(const struct profile_layer *layer, uint64_t message_bytes,
                               double bytes)
{
    const struct profile_message_point *curve = layer->curve;
    size_t count = layer->curve_count, next = 1;
    if (!(layer->seconds > 0)) {
        return 0;
    }
    if (count < 2) {
        return count ? by_one_size(curve[0].seconds, curve[0].bytes, bytes)
                     : by_one_size(layer->seconds, message_bytes, bytes);
    }
    if (bytes <= (double)curve[0].bytes) {
        return curve[0].seconds;
    }
    while (next + 1 < count && (double)curve[next].bytes < bytes) {
        next++;
    }
    double seconds = line_through((double)curve[next - 1].bytes, curve[next - 1].seconds,
                                  (double)curve[next].bytes, curve[next].seconds, bytes);
    bool beyond = bytes > (double)curve[next].bytes;
    return beyond && seconds < curve[next].seconds ? curve[next].seconds : seconds;
}

double profile_messages_slower(const struct profile_layer *layer, uint64_t messages)
{
    size_t count = layer->concurrency_count, next = 1;
    const struct profile_concurrency_point *points = layer->concurrency;
    if (count < 2 || messages <= points[0].messages) {
        return 1;
    }
    while (next < count && points[next].messages < messages) {
        next++;
    }
    if (next == count) {
        const struct profile_concurrency_point *last = &points[count - 1];
        return last->seconds / points[0].seconds * (double)messages / last->messages;
    }
    return line_through(points[next - 1].messages, points[next - 1].seconds, points[next].messages,
                        points[next].seconds, (double)messages) /
           points[0].seconds;
}

/* Is the PU of the reference's kind of cores? False if the kinds cannot be ranked.
 */
static bool is_most_capable(const struct profile_class *node_class, uint32_t os_index)
{
    uint32_t mine = 0, most = 0, least = UINT32_MAX;
    for (size_t k = 0; k < node_class->kind_count; k++) {
        const struct profile_kind *kind = &node_class->kinds[k];
        mine = profile_set_has(&kind->pus, os_index) ? kind->efficiency : mine;
        most = kind->efficiency > most ? kind->efficiency : most;
        least = kind->efficiency < least ? kind->efficiency : least;
    }
    return mine == most && least < most;
}

const struct profile_numa_access *profile_memory_lesser(const struct profile_class *node_class,
                                                        uint32_t os_index)
{
    const struct profile_numa_access *best = NULL;
    const bool other = node_class->kind_count > 1 && !is_most_capable(node_class, os_index);
    for (size_t i = 0; other && i < node_class->numa_access_count; i++) {
        const struct profile_numa_access *row = &node_class->numa_access[i];
        if (row->bytes_per_s > (best ? best->bytes_per_s : 0) &&
            profile_set_has(&row->pus, os_index)) {
            best = row;
        }
    }
    return best && best->bytes_per_s < node_class->memory.reference_bytes_per_s ? best : NULL;
}

double profile_memory_alone(const struct profile_class *node_class, uint32_t os_index)
{
    const struct profile_numa_access *lesser = profile_memory_lesser(node_class, os_index);
    return lesser ? lesser->bytes_per_s : node_class->memory.reference_bytes_per_s;
}

/* A level's figures are one curve: one worker, the pair, the scaling. Its points below a number of
 * workers, and at it or above it; beyond the last one both are that. */
static void points_around(const struct profile_memory *memory,
                          const struct profile_memory_level *level, uint32_t workers,
                          struct profile_scaling_point *below, struct profile_scaling_point *above)
{
    const struct profile_scaling_point *points = level->scaling;
    const struct profile_scaling_point pair = {.workers = 2, .bytes_per_s = 2 * level->bytes_per_s};
    bool has_pair = pair.bytes_per_s > 0 && (!level->scaling_count || points[0].workers > 2);
    size_t next = 0;
    *below =
        (struct profile_scaling_point){.workers = 1, .bytes_per_s = memory->reference_bytes_per_s};
    if (has_pair && workers <= pair.workers) {
        *above = pair;
        return;
    }
    *below = has_pair ? pair : *below;
    for (; next < level->scaling_count && points[next].workers < workers; next++) {
        *below = points[next];
    }
    *above = next < level->scaling_count ? points[next] : *below;
}

double profile_memory_bandwidth(const struct profile_memory *memory,
                                const struct profile_memory_level *level, uint32_t workers)
{
    struct profile_scaling_point below, above;
    if (workers <= 1) {
        return workers ? memory->reference_bytes_per_s : 0;
    }
    if (!level->scaling_count && !(level->bytes_per_s > 0)) {
        return 0;
    }
    points_around(memory, level, workers, &below, &above);
    if (above.workers <= workers) {
        return above.bytes_per_s;
    }
    return below.bytes_per_s > 0 ? line_through(below.workers, below.bytes_per_s, above.workers,
                                                above.bytes_per_s, workers)
                                 : 0;
}

const struct profile_kernel_rate *profile_kernel_rate(const struct profile_memory *memory,
                                                      enum profile_kernel kernel)
{
    for (size_t i = 0; i < memory->kernel_count; i++) {
        if (memory->kernels[i].kernel == kernel) {
            return &memory->kernels[i];
        }
    }
    return NULL;
}

/* -- supersteps -- */

static bool of_backend(const struct profile_bsp *bsp, const char *backend)
{
    return bsp->backend ? strcmp(bsp->backend, backend) == 0 : *backend == '\0';
}

static double mix_values(double a, double b, double part)
{
    return a + part * (b - a);
}

static double l_of(const struct profile_bsp *bsp)
{
    return bsp->l_flops < 0 ? bsp->t0_flops : bsp->l_flops;
}

static struct profile_bsp between(const struct profile_bsp *a, const struct profile_bsp *b,
                                  uint32_t processors)
{
    struct profile_bsp out = *a;
    double part = a->processors == b->processors
                      ? 0
                      : (processors - a->processors) / (double)(b->processors - a->processors);
    out.processors = processors;
    out.r_flop_per_s = mix_values(a->r_flop_per_s, b->r_flop_per_s, part);
    out.g_flops = mix_values(a->g_flops, b->g_flops, part);
    out.g_packets_flops = a->g_packets_flops > 0 && b->g_packets_flops > 0
                              ? mix_values(a->g_packets_flops, b->g_packets_flops, part)
                              : 0;
    out.l_flops = mix_values(l_of(a), l_of(b), part);
    out.t0_flops = mix_values(a->t0_flops, b->t0_flops, part);
    return out;
}

static bool at_of_backend(const struct servet_profile *profile, const char *backend,
                          uint32_t processors, struct profile_bsp *out)
{
    const struct profile_bsp *below = NULL, *above = NULL;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        if (!of_backend(bsp, backend)) {
            continue;
        }
        if (bsp->processors <= processors && (!below || bsp->processors > below->processors)) {
            below = bsp;
        }
        if (bsp->processors >= processors && (!above || bsp->processors < above->processors)) {
            above = bsp;
        }
    }
    if (!below || !above) {
        return false;
    }
    *out = between(below, above, processors);
    return true;
}

bool profile_bsp_at(const struct servet_profile *profile, const char *backend, uint32_t processors,
                    struct profile_bsp *out)
{
    if (backend) {
        return at_of_backend(profile, backend, processors, out);
    }
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const char *name = profile->bsp[i].backend;
        if (at_of_backend(profile, name ? name : "", processors, out)) {
            return true;
        }
    }
    return false;
}
