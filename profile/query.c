#include "profile/query.h"

#include <string.h>

bool profile_locate(const struct servet_profile *profile, uint32_t pu, struct profile_place *place)
{
    uint32_t first = 0, node = 0;
    for (size_t i = 0; i < profile->node_range_count; i++) {
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

/* A class may have several caches of one level; those that name no PUs hold whom their groups hold,
 * and the only one of its level holds everybody. */
const struct profile_cache *profile_cache_of(const struct profile_class *node_class, uint32_t level,
                                             uint32_t os_index)
{
    const struct profile_cache *found = NULL;
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        if (cache->level != level) {
            continue;
        }
        if (cache->pus.count ? profile_set_has(&cache->pus, os_index)
                             : profile_group_of(&cache->sharing, os_index) != NULL) {
            return cache;
        }
        if (!cache->pus.count && !found) {
            found = cache;
        }
    }
    return found;
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

static double line_through(double x0, double y0, double x1, double y1, double x)
{
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

double profile_message_seconds(const struct profile_layer *layer, uint64_t bytes)
{
    const struct profile_message_point *curve = layer->curve;
    size_t count = layer->curve_count;
    if (layer->quality.origin == PROFILE_DECLARED) {
        return 0; /* its "seconds" are a rank */
    }
    if (count < 2) {
        return count ? curve[0].seconds : layer->seconds;
    }
    if (bytes <= curve[0].bytes) {
        return curve[0].seconds;
    }
    size_t next = 1;
    while (next + 1 < count && curve[next].bytes < bytes) {
        next++;
    }
    double seconds = line_through((double)curve[next - 1].bytes, curve[next - 1].seconds,
                                  (double)curve[next].bytes, curve[next].seconds, (double)bytes);
    /* A falling last segment (noise) must not make long messages free. */
    return bytes > curve[next].bytes && seconds < curve[next].seconds ? curve[next].seconds
                                                                      : seconds;
}

double profile_scaled_bandwidth(const struct profile_memory_level *level, uint32_t workers)
{
    const struct profile_scaling_point *points = level->scaling;
    size_t count = level->scaling_count;
    if (!count) {
        return 0;
    }
    size_t next = 0;
    while (next < count && points[next].workers < workers) {
        next++;
    }
    if (next == 0 || next == count) {
        return points[next ? count - 1 : 0].bytes_per_s;
    }
    return line_through(points[next - 1].workers, points[next - 1].bytes_per_s,
                        points[next].workers, points[next].bytes_per_s, workers);
}

static bool of_backend(const struct profile_bsp *bsp, const char *backend)
{
    return bsp->backend ? strcmp(bsp->backend, backend) == 0 : *backend == '\0';
}

static double mix(double a, double b, double part)
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
    out.r_flop_per_s = mix(a->r_flop_per_s, b->r_flop_per_s, part);
    out.g_flops = mix(a->g_flops, b->g_flops, part);
    out.g_packets_flops = a->g_packets_flops > 0 && b->g_packets_flops > 0
                              ? mix(a->g_packets_flops, b->g_packets_flops, part)
                              : 0;
    out.l_flops = mix(l_of(a), l_of(b), part);
    out.t0_flops = mix(a->t0_flops, b->t0_flops, part);
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
