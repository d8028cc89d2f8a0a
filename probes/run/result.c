/* From what the probes found to a profile. The declared topology gives the names of things and
 * the declared sizes; every figure that was measured stands beside the declared one and says so,
 * neither for the other. */
#include "probes/run/result.h"
#include "probes/run/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/messages.h"
#include "profile/base/file.h"
#include "profile/query.h"
#include "profile/text/text.h"

/* -- caches -- */

/* Before a further part of a note. */
static const char *separator(FILE *stream)
{
    return ftell(stream) > 0 ? "; " : "";
}

static void note_sharing(FILE *stream, const struct probe_sharing_level *sharing)
{
    if (sharing->limited_bytes > 0) {
        fprintf(stream,
                "%ssharing measured with %zu KiB each, as memory is limited: PUs that share it may "
                "be missing",
                separator(stream), sharing->limited_bytes >> 10);
    }
    if (sharing->as_declared > 0) {
        fprintf(stream, "%ssharing as declared (%u of %zu pairs): other processes used the cache",
                separator(stream), sharing->as_declared, sharing->pairs);
    }
    if (sharing->undecided > sharing->as_declared) {
        fprintf(stream, "%ssharing of %u of %zu pairs is undecided", separator(stream),
                sharing->undecided - sharing->as_declared, sharing->pairs);
    }
    if (sharing->contradictions > 0) {
        fprintf(stream, "%s%zu pairs contradict that sharing is an equivalence", separator(stream),
                sharing->contradictions);
    }
    if (sharing->measured < sharing->pairs) {
        fprintf(stream, "%s%s%zu of %zu pairs measured, the others inferred from %s",
                separator(stream), sharing->cut_short ? "cut short by the budget: " : "",
                sharing->measured, sharing->pairs,
                sharing->refined ? "PUs that share it with them"
                                 : "pairs in similar places of the topology");
    }
    if (sharing->at_once > 1) {
        fprintf(stream, "%sup to %zu disjoint pairs measured at a time", separator(stream),
                sharing->at_once);
    }
}

/* Is who shares it not what the system declares? */
static bool is_shared_otherwise(const struct profile_cache *declared,
                                const struct probe_sharing_level *sharing)
{
    return declared && sharing && !profile_relation_equal(&declared->sharing, &sharing->sharing);
}

static void note_other_sharing(FILE *stream, const struct profile_cache *declared,
                               const struct probe_sharing_level *sharing, bool pus_move)
{
    if (is_shared_otherwise(declared, sharing)) {
        fprintf(stream, "%sshared by %s as measured, by %s as declared%s", separator(stream),
                profile_figure_sharers(&sharing->sharing).text,
                profile_figure_sharers(&declared->sharing).text,
                pus_move ? ": " PROBE_WORDS_PUS_MOVE : "");
    }
}

/* Geometry taken from the declared cache: ways always, the line where it was not measured. */
static void note_geometry(FILE *stream, const struct probe_cache_level *level,
                          const struct profile_cache *declared)
{
    bool line = declared && !level->line_bytes && declared->line_bytes;
    bool ways = declared && declared->associativity;
    if (line || ways) {
        fprintf(stream, "%s%s%s%s as declared, not measured", separator(stream),
                line ? "line size" : "", line && ways ? " and " : "", ways ? "ways" : "");
    }
}

/* How many caches of `parts` the PUs have that share the PU's cache in `whole`. */
static size_t caches_within(const struct profile_relation *whole,
                            const struct profile_relation *parts, uint32_t pu)
{
    const struct profile_set *group = profile_group_of(whole, pu);
    size_t count = 1;
    for (size_t i = 1; group && i < group->count; i++) {
        const struct profile_set *part = profile_group_of(parts, group->ids[i]);
        bool seen = false;
        for (size_t j = 0; part && j < i; j++) {
            seen = seen || profile_set_has(part, group->ids[j]);
        }
        count += !seen;
    }
    return count;
}

/* Sizes agree that are no further apart than those of the grid. */
static bool agree(double a, double b)
{
    return fabs(log2(a / b)) * CACHE_STEPS_PER_OCTAVE <= 1;
}

/* A measured size that is not the declared one: both, and why if one of three reasons holds. */
static void note_mismatch(FILE *stream, const struct probe_cache_level *level,
                          const struct profile_cache *declared,
                          const struct probe_sharing_level *sharing,
                          const struct measured_on *where)
{
    const uint64_t size = declared ? declared->declared_size_bytes : 0;
    if (size == 0 || agree((double)level->size_bytes, (double)size)) {
        return;
    }
    const struct profile_relation *shared = sharing ? &sharing->sharing : &declared->sharing;
    const size_t parts = sharing ? caches_within(&declared->sharing, shared, where->pu) : 1;
    const bool taken = level->size_bytes < size && (declared->level > CACHE_CORE_LEVELS ||
                                                    profile_group_of(shared, where->pu) != NULL);
    fprintf(stream, "measured %s, declared %s", profile_figure_bytes(level->size_bytes).text,
            profile_figure_bytes(size).text);
    if (level->low_bytes <= size && size <= level->high_bytes) {
        fputs(": the measurement leaves room for the declared size", stream);
    } else if (parts > 1 && agree((double)(level->size_bytes * parts), (double)size)) {
        fprintf(stream, ": the declared size is the sum of %zu separate caches", parts);
    } else if (taken && (where->guest || where->busy)) {
        fprintf(stream, ": %s may hold part of it",
                where->guest ? "the host's other guests" : "other programs");
    }
}

/* 0 or -ENOMEM; *note NULL: there is nothing to say. */
static int cache_note(const struct probe_cache *caches, size_t i, const struct profile_cache *cache,
                      const struct probe_sharing_level *sharing, const struct measured_on *where,
                      char **note)
{
    const struct probe_cache_level *level = &caches->levels[i];
    size_t length;
    FILE *stream = profile_stream_open(note, &length);
    if (!stream) {
        return -ENOMEM;
    }
    note_mismatch(stream, level, cache, sharing, where);
    note_other_sharing(stream, cache, sharing, where->guest);
    note_geometry(stream, level, cache);
    if (sharing) {
        note_sharing(stream, sharing);
    } else if (cache && (cache->sharing.group_count || cache->sharing.pair_count)) {
        fprintf(stream, "%ssharing as declared, not measured", separator(stream));
    }
    if (fclose(stream) != 0) {
        return -ENOMEM;
    }
    if (length == 0) {
        free(*note);
        *note = NULL;
    }
    return 0;
}

int probe_result_copy_relation(const struct profile_relation *from, struct profile_relation *out)
{
    struct profile_relation copy = {0};
    copy.groups = calloc(from->group_count + 1, sizeof *copy.groups);
    copy.pairs = calloc(from->pair_count + 1, sizeof *copy.pairs);
    int rc = copy.groups && copy.pairs ? 0 : -ENOMEM;
    for (size_t i = 0; i < from->group_count && rc == 0; i++) {
        rc = profile_set_copy(&from->groups[i], &copy.groups[i]);
        copy.group_count += rc == 0;
    }
    if (rc < 0) {
        probe_relation_free(&copy);
        return rc;
    }
    if (from->pair_count) {
        memcpy(copy.pairs, from->pairs, from->pair_count * sizeof *copy.pairs);
        copy.pair_count = from->pair_count;
    }
    *out = copy;
    return 0;
}

/* Measured where every pair's answer comes of measuring it or pairs like it. */
static struct profile_quality quality_of_sharing(const struct probe_sharing_level *sharing)
{
    bool all_declared = sharing->measured > 0 && sharing->as_declared >= sharing->pairs;
    if (all_declared) {
        return (struct profile_quality){.origin = PROFILE_DECLARED};
    }
    bool measured = sharing->measured > 0 && sharing->undecided == 0;
    return (struct profile_quality){.origin = measured ? PROFILE_MEASURED : PROFILE_INFERRED,
                                    .repetitions = sharing->repetitions,
                                    .spread = fmax(sharing->spread, 0)};
}

/* `out->level` is set. */
static int make_cache(const struct probe_cache *caches, size_t i,
                      const struct profile_cache *declared, struct probe_sharing_level *sharing,
                      const struct measured_on *where, struct profile_cache *out)
{
    const struct probe_cache_level *level = &caches->levels[i];
    *out = (struct profile_cache){
        .level = out->level,
        .size_bytes = level->size_bytes,
        .size_low_bytes = level->low_bytes,
        .size_high_bytes = level->high_bytes,
        .declared_size_bytes = declared ? declared->declared_size_bytes : 0,
        .line_bytes = level->line_bytes ? level->line_bytes
                      : declared        ? declared->line_bytes
                                        : 0,
        .associativity = declared ? declared->associativity : 0,
        .page_bytes = caches->page_bytes,
        .quality = {.origin = PROFILE_MEASURED,
                    .repetitions = level->repetitions,
                    .spread = level->spread},
    };
    /* which of the host's PUs a guest's are on is the host's business */
    out->quality.pus_move = where->guest && is_shared_otherwise(declared, sharing);
    int rc = cache_note(caches, i, declared, sharing, where, &out->quality.note);
    if (rc < 0) {
        return rc;
    }
    if (sharing) {
        out->sharing_quality = quality_of_sharing(sharing);
        out->sharing = sharing->sharing;
        out->pair_ratios = sharing->ratios;
        out->pair_ratio_count = sharing->ratio_count;
        sharing->sharing = (struct profile_relation){0};
        sharing->ratios = NULL;
        return 0;
    }
    return declared ? probe_result_copy_relation(&declared->sharing, &out->sharing) : 0;
}

void probe_result_free_caches(struct profile_class *node_class)
{
    for (size_t i = 0; i < node_class->cache_count; i++) {
        struct profile_cache *cache = &node_class->caches[i];
        probe_relation_free(&cache->sharing);
        profile_set_free(&cache->pus);
        free(cache->pair_ratios);
        free(cache->quality.note);
    }
    free(node_class->caches);
    node_class->caches = NULL;
    node_class->cache_count = 0;
}

/* A declared cache moved over as it is. */
static int keep_declared(struct profile_cache *declared, struct profile_cache *out)
{
    *out = *declared;
    *declared = (struct profile_cache){.level = out->level};
    free(out->quality.note);
    out->quality.note = strdup("not seen in the measured latency curve");
    return out->quality.note ? 0 : -ENOMEM;
}

int probe_result_set_caches(struct profile_class *node_class, const struct probe_cache *caches,
                            struct probe_sharing *sharing, const struct measured_on *where)
{
    const size_t most = caches->count + node_class->cache_count;
    struct profile_class made = {.caches = calloc(most + 1, sizeof *made.caches)};
    struct probe_cache_pairing pairs;
    uint32_t last = 0;
    int rc = made.caches ? 0 : -ENOMEM;
    probe_cache_pair(caches, node_class, NULL, &pairs);
    for (size_t i = 0, next = 0; i <= caches->count && rc == 0; i++) {
        const uint32_t number = i < caches->count ? pairs.numbers[i] : UINT32_MAX;
        for (; next < node_class->cache_count && node_class->caches[next].level < number && rc == 0;
             next++) {
            if (node_class->caches[next].level > last) {
                rc = keep_declared(&node_class->caches[next], &made.caches[made.cache_count++]);
            }
        }
        if (i < caches->count && rc == 0) {
            struct profile_cache *cache = &made.caches[made.cache_count++];
            cache->level = number;
            rc = make_cache(caches, i, pairs.declared[i], sharing ? &sharing->levels[i] : NULL,
                            where, cache);
        }
        last = number;
    }
    probe_result_free_caches(rc < 0 ? &made : node_class);
    if (rc == 0) {
        node_class->caches = made.caches;
        node_class->cache_count = made.cache_count;
    }
    return rc;
}

int probe_result_set_cache_curve(struct profile_class *node_class, const struct cache_curve *curve)
{
    struct profile_cache_point *points = calloc(curve->count + 1, sizeof *points);
    if (!points) {
        return -ENOMEM;
    }
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
    free(node_class->cache_curve);
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

int probe_result_set_tlb(struct profile_class *node_class, const struct probe_cache *caches,
                         size_t ordinary_page_bytes)
{
    struct profile_tlb *levels = calloc(2 * CACHE_TLBS_MAX, sizeof *levels);
    if (!levels) {
        return -ENOMEM;
    }
    size_t count =
        fill_tlb(&caches->ordinary_tlb, ordinary_page_bytes, ordinary_page_bytes, levels);
    count += fill_tlb(&caches->tlb, caches->page_bytes, ordinary_page_bytes, levels + count);
    for (size_t i = 0; i < node_class->tlb_count; i++) {
        free(node_class->tlb[i].quality.note);
    }
    free(node_class->tlb);
    node_class->tlb = levels;
    node_class->tlb_count = count;
    return 0;
}

/* -- memory -- */

/* Where the level belongs among those that nest; SIZE_MAX: nowhere, or it is there. */
static size_t place_of(const struct profile_memory *memory, const struct profile_relation *level)
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
    struct profile_memory_level *levels = calloc(most + 1, sizeof *levels);
    int rc = levels ? 0 : -ENOMEM;
    if (rc == 0 && found->level_count > 0) {
        memcpy(levels, found->levels, found->level_count * sizeof *levels);
    }
    if (rc == 0) {
        free(found->levels);
        found->levels = levels;
    }
    for (size_t i = 0; rc == 0 && i < declared->level_count; i++) {
        const struct profile_relation *level = &declared->levels[i].collisions;
        const size_t place = place_of(found, level);
        struct profile_memory_level kept = {.quality = {.origin = PROFILE_DECLARED, .spread = -1}};
        rc = place < SIZE_MAX ? probe_result_copy_relation(level, &kept.collisions) : 0;
        if (rc == 0 && place < SIZE_MAX) {
            memmove(levels + place + 1, levels + place,
                    (found->level_count - place) * sizeof *levels);
            levels[place] = kept;
            found->level_count++;
        }
    }
    return rc;
}

void probe_result_set_memory(struct profile_class *node_class, struct probe_memory *found)
{
    struct probe_memory old = {.memory = node_class->memory};
    node_class->memory = found->memory;
    found->memory = (struct profile_memory){0};
    probe_memory_free(&old);
}

void probe_result_set_numa(struct profile_class *node_class, struct probe_numa *found)
{
    struct probe_numa old = {.rows = node_class->numa_access,
                             .count = node_class->numa_access_count};
    node_class->numa_access = found->rows;
    node_class->numa_access_count = found->count;
    for (size_t i = 0; found->together_bytes_per_s && i < node_class->numa_count; i++) {
        node_class->numa[i].together_bytes_per_s = found->together_bytes_per_s[i];
    }
    found->rows = NULL;
    found->count = 0;
    probe_numa_free(&old);
}

void probe_result_set_devices(struct profile_class *node_class, struct probe_devices *found)
{
    for (size_t i = 0; i < found->count; i++) {
        struct profile_device *device = &node_class->devices[i];
        free(device->transfers);
        device->transfers = found->of[i].count ? found->of[i].transfers : NULL;
        device->transfer_count = found->of[i].count;
        found->of[i].transfers = device->transfers ? NULL : found->of[i].transfers;
    }
}

/* -- layers -- */

/* What PUs may have in common, the nearest first: a core, each cache, a package, the node. */
static size_t things_of(const struct profile_class *node_class)
{
    return node_class->cache_count + 3;
}

static const struct profile_relation *thing(const struct profile_class *node_class, size_t index)
{
    if (index == 0) {
        return &node_class->cores;
    }
    return index <= node_class->cache_count ? &node_class->caches[index - 1].sharing
                                            : &node_class->packages;
}

static char *name_of(const struct profile_class *node_class, size_t index)
{
    char name[16];
    if (index == 0) {
        return strdup("core");
    }
    if (index <= node_class->cache_count) {
        snprintf(name, sizeof name, "L%u", node_class->caches[index - 1].level);
        return strdup(name);
    }
    return strdup(index + 1 < things_of(node_class) ? "package" : "node");
}

static size_t nearest_thing(const struct profile_class *node_class, uint32_t a, uint32_t b)
{
    size_t i = 0, node = things_of(node_class) - 1;
    while (i < node && !profile_related(thing(node_class, i), a, b)) {
        i++;
    }
    return i;
}

/* pairs[layer * things + i]: how many pairs of the layer have thing i in common, and nothing
 * nearer. */
static void count_pairs(const struct profile_class *node_class,
                        const struct profile_communication *found, size_t *pairs)
{
    const struct profile_set *pus = &node_class->pus;
    for (size_t i = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++) {
            size_t layer;
            if (profile_layer_of(found, pus->ids[i], pus->ids[j], &layer)) {
                pairs[layer * things_of(node_class) +
                      nearest_thing(node_class, pus->ids[i], pus->ids[j])]++;
            }
        }
    }
}

/* The nearest thing that more than half of a layer's pairs have in common: one pair that was put
 * into a wrong layer, or one PU in another package, does not name it. */
static size_t usual_thing(const size_t *pairs, size_t things)
{
    size_t all = 0, nearer = 0;
    for (size_t i = 0; i < things; i++) {
        all += pairs[i];
    }
    for (size_t i = 0; i < things; i++) {
        nearer += pairs[i];
        if (2 * nearer > all) {
            return i;
        }
    }
    return things;
}

/* A layer without pairs has no name. */
static int name_layers(const struct profile_class *node_class, struct profile_communication *found)
{
    size_t things = things_of(node_class);
    size_t *pairs = calloc(found->layer_count * things + 1, sizeof *pairs);
    if (!pairs) {
        return -ENOMEM;
    }
    count_pairs(node_class, found, pairs);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < found->layer_count; i++) {
        size_t usual = usual_thing(pairs + i * things, things);
        if (usual < things) {
            found->layers[i].name = name_of(node_class, usual);
            rc = found->layers[i].name ? 0 : -ENOMEM;
        }
    }
    free(pairs);
    return rc;
}

int probe_result_set_layers(struct profile_class *node_class, struct profile_communication *found)
{
    int rc = name_layers(node_class, found);
    if (rc < 0) {
        return rc;
    }
    profile_communication_free(&node_class->communication);
    node_class->communication = *found;
    memset(found, 0, sizeof *found);
    return 0;
}

int probe_result_through_threads(struct profile_class *node_class)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < node_class->communication.layer_count; i++) {
        struct profile_quality *quality = &node_class->communication.layers[i].quality;
        quality->through_threads = true;
        rc = probe_note(quality, PROBE_WORDS_THROUGH_THREADS);
    }
    return rc;
}

void probe_result_cut_short(struct profile_class *node_class, unsigned probes)
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
