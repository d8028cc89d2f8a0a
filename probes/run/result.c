/* From what the probes found to a profile. The declared topology gives the names of things and
 * the declared sizes; every figure that was measured stands beside the declared one and says so,
 * neither for the other. */
#include "probes/run/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/codec/codec.h"
#include "profile/query.h"

int probe_result_copy_relation(const struct profile_relation *from, struct profile_relation *out)
{
    FREED_BY(profile_relation_free)
    struct profile_relation copy = {.groups = calloc(from->group_count + 1, sizeof *copy.groups),
                                    .pairs = calloc(from->pair_count + 1, sizeof *copy.pairs)};
    TRY(copy.groups && copy.pairs ? 0 : -ENOMEM);
    for (; copy.group_count < from->group_count; copy.group_count++) {
        TRY(profile_set_copy(&from->groups[copy.group_count], &copy.groups[copy.group_count]));
    }
    if (from->pair_count) {
        memcpy(copy.pairs, from->pairs, from->pair_count * sizeof *copy.pairs);
        copy.pair_count = from->pair_count;
    }
    *out = TAKE(copy);
    return 0;
}

/* The latency curve that the sizes came from. */
static int set_cache_curve(struct profile_class *node_class, const struct cache_curve *curve)
{
    struct profile_cache_point *points = calloc(curve->count + 1, sizeof *points);
    TRY(points ? 0 : -ENOMEM);
    size_t count = 0;
    for (size_t i = 0; i < curve->count; i++) {
        uint64_t bytes = (uint64_t)curve->bytes[i];
        /* The grid has a size twice where its steps are finer than the nodes of the cycle. */
        if (count == 0 || bytes > points[count - 1].bytes) {
            points[count++] = (struct profile_cache_point){
                .bytes = bytes,
                .seconds_per_access = curve->seconds[i],
                .repetitions = curve->repetitions ? curve->repetitions[i] : 1,
                .spread = curve->spread ? curve->spread[i] : -1};
        }
    }
    node_class->cache_curve = points;
    node_class->cache_curve_count = count;
    return 0;
}

/* A reach is a number of ordinary pages, whatever the memory behind it. */
static size_t fill_tlb(const struct probe_tlb *found, uint64_t page_bytes, uint64_t grain,
                       struct profile_tlb *out)
{
    for (size_t i = 0; i < found->count; i++) {
        out[i] = (struct profile_tlb){
            .page_bytes = page_bytes,
            .reach_bytes = (found->levels[i].reach_bytes + grain / 2) / grain * grain,
            .seconds = found->levels[i].seconds,
            .quality = {.origin = PROFILE_MEASURED,
                        .repetitions = found->repetitions,
                        .spread = found->levels[i].spread},
        };
    }
    return found->count;
}

/* The reaches of the TLB's levels: on ordinary pages, and on huge ones if the caches were measured
 * in those. */
static int set_tlb(struct profile_class *node_class, const struct probe_cache *caches,
                   size_t ordinary_page_bytes)
{
    struct profile_tlb *levels = calloc(2 * CACHE_TLBS_MAX, sizeof *levels);
    TRY(levels ? 0 : -ENOMEM);
    size_t count =
        fill_tlb(&caches->ordinary_tlb, ordinary_page_bytes, ordinary_page_bytes, levels);
    count += fill_tlb(&caches->tlb, caches->page_bytes, ordinary_page_bytes, levels + count);
    node_class->tlb = levels;
    node_class->tlb_count = count;
    return 0;
}

/* -- memory -- */

/* Where the level belongs among those that nest; SIZE_MAX: nowhere, or it is there. */
static size_t place_of_level(const struct profile_memory *memory,
                             const struct profile_relation *level)
{
    size_t place = 0;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_relation *other = &memory->levels[i].collisions;
        const bool inside = profile_relation_within(other, level),
                   around = profile_relation_within(level, other);
        if (inside == around) {
            return SIZE_MAX;
        }
        place = inside ? i + 1 : place;
    }
    return place;
}

int probe_result_keep_levels(const struct profile_memory *declared, struct profile_memory *found)
{
    const size_t most = found->level_count + declared->level_count;
    struct profile_memory_level *levels = realloc(found->levels, (most + 1) * sizeof *levels);
    TRY(levels ? 0 : -ENOMEM);
    found->levels = levels;
    for (size_t i = 0; i < declared->level_count; i++) {
        const struct profile_relation *level = &declared->levels[i].collisions;
        const size_t place = place_of_level(found, level);
        struct profile_memory_level kept = {.quality = {.origin = PROFILE_DECLARED, .spread = -1}};
        if (place == SIZE_MAX) {
            continue;
        }
        TRY(probe_result_copy_relation(level, &kept.collisions));
        memmove(levels + place + 1, levels + place, (found->level_count - place) * sizeof *levels);
        levels[place] = kept;
        found->level_count++;
    }
    return 0;
}

static void set_numa(struct profile_class *node_class, struct probe_numa *found)
{
    node_class->numa_access = TAKE(found->rows);
    node_class->numa_access_count = TAKE(found->count);
    for (size_t i = 0; found->together_bytes_per_s && i < node_class->numa_count; i++) {
        node_class->numa[i].together_bytes_per_s = found->together_bytes_per_s[i];
    }
}

static void set_devices(struct profile_class *node_class, struct probe_devices *found)
{
    for (size_t i = 0; i < found->count; i++) {
        struct profile_device *device = &node_class->devices[i];
        device->transfer_count = found->of[i].count;
        device->transfers = device->transfer_count ? TAKE(found->of[i].transfers) : NULL;
    }
}

/* -- layers -- */

/* What PUs may have in common; NULL: the node. */
struct thing {
    char name[8];
    const struct profile_relation *of;
};

/* The nearest first: a core, each cache, a package, the node. */
static void list_things(const struct profile_class *node_class, struct thing *out)
{
    *out++ = (struct thing){"core", &node_class->cores};
    for (size_t i = 0; i < node_class->cache_count; i++) {
        snprintf(out->name, sizeof out->name, "L%u", node_class->caches[i].level);
        out++->of = &node_class->caches[i].sharing;
    }
    *out++ = (struct thing){"package", &node_class->packages};
    *out = (struct thing){"node", NULL};
}

/* pairs[layer * count + i]: how many pairs of the layer have thing i in common, and nothing
 * nearer. */
static void count_common_pairs(const struct profile_set *pus,
                               const struct profile_communication *found,
                               const struct thing *things, size_t count, size_t *pairs)
{
    for (size_t i = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++) {
            const uint32_t a = pus->ids[i], b = pus->ids[j];
            size_t layer, nearest = 0;
            while (things[nearest].of && !profile_related(things[nearest].of, a, b)) {
                nearest++;
            }
            if (profile_layer_of(found, a, b, &layer)) {
                pairs[layer * count + nearest]++;
            }
        }
    }
}

/* The nearest thing that more than half of a layer's pairs have in common: one pair that was put
 * into a wrong layer, or one PU in another package, does not name it. */
static size_t usual_thing(const size_t *pairs, size_t things)
{
    size_t all = 0, nearer = 0, i = 0;
    for (size_t k = 0; k < things; k++) {
        all += pairs[k];
    }
    while (i < things && 2 * (nearer += pairs[i]) <= all) {
        i++;
    }
    return i;
}

/* A layer without pairs has no name. */
static int name_layers(const struct profile_class *node_class, struct profile_communication *found)
{
    const size_t count = node_class->cache_count + 3;
    FREED struct thing *things = calloc(count, sizeof *things);
    FREED size_t *pairs = calloc(found->layer_count * count + 1, sizeof *pairs);
    TRY(things && pairs ? 0 : -ENOMEM);
    list_things(node_class, things);
    count_common_pairs(&node_class->pus, found, things, count, pairs);
    for (size_t i = 0; i < found->layer_count; i++) {
        const size_t usual = usual_thing(pairs + i * count, count);
        if (usual < count) {
            found->layers[i].name = strdup(things[usual].name);
            TRY(found->layers[i].name ? 0 : -ENOMEM);
        }
    }
    return 0;
}

int probe_result_set_layers(struct profile_class *node_class, struct profile_communication *found)
{
    TRY(name_layers(node_class, found));
    profile_communication_free(&node_class->communication);
    node_class->communication = TAKE(*found);
    return 0;
}

/* Every layer was measured between threads. */
static int note_threads(struct profile_class *node_class)
{
    for (size_t i = 0; i < node_class->communication.layer_count; i++) {
        struct profile_quality *quality = &node_class->communication.layers[i].quality;
        quality->through_threads = true;
        TRY(probe_note(quality, PROBE_WORDS_THROUGH_THREADS));
    }
    return 0;
}

/* The figures of these probes (enum probe_run_probes) were cut short by the budget. */
static void set_cut_short(struct profile_class *node_class, unsigned probes)
{
    for (size_t i = 0; i < node_class->cache_count; i++) {
        struct profile_cache *cache = &node_class->caches[i];
        cache->quality.cut_short = (probes & PROBE_CACHE) != 0;
        cache->sharing_quality.cut_short = (probes & PROBE_SHARING) != 0;
    }
    node_class->memory.quality.cut_short = (probes & PROBE_MEMORY) != 0;
    for (size_t i = 0; i < node_class->communication.layer_count; i++) {
        node_class->communication.layers[i].quality.cut_short = (probes & PROBE_MESSAGE) != 0;
    }
}

/* -- all of it -- */

static int set_caches(struct probe_results *results, const struct servet_profile *profile)
{
    const char *guest = profile_condition(profile, "virtual_machine");
    /* a simulated machine has neither guests nor other programs */
    const struct measured_on where = {.guest = guest && strcmp(guest, "yes") == 0,
                                      .busy = probe_conditions_others_ran(profile)};
    struct kind_results *of = results->of;
    TRY(probe_result_set_caches(results->node_class, &results->kinds, of, &where));
    TRY(set_cache_curve(results->node_class, &of->caches.curve));
    return set_tlb(results->node_class, &of->caches, results->probe.machine->page_bytes);
}

int probe_run_assemble(struct probe_results *results, const struct servet_profile *profile)
{
    struct profile_class *node_class = results->node_class;
    struct profile_memory *memory = &results->memory.memory;
    TRY(probe_topology_restrict(node_class, &results->run->machine->pus));
    if ((results->run->probes & PROBE_CACHE) && results->of[0].caches.count > 0) {
        TRY(set_caches(results, profile));
    }
    if (results->done & PROBE_MEMORY) {
        TRY(results->memory.searched ? 0 : probe_result_keep_levels(&node_class->memory, memory));
        profile_memory_free(&node_class->memory);
        node_class->memory = TAKE(*memory);
        set_numa(node_class, &results->numa);
    }
    if (results->done & PROBE_DEVICE) {
        set_devices(node_class, &results->devices);
    }
    if (results->done & PROBE_MESSAGE) {
        TRY(probe_result_set_layers(node_class, &results->messages));
        TRY(results->through_threads ? note_threads(node_class) : 0);
    }
    set_cut_short(node_class, results->shortened);
    return 0;
}
