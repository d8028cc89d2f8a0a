/* Caches in the profile's form: each measured level stands in the place of a declared one, with a
 * note on how the two differ. Each kind of cores has its own sizes, so that a level may stand there
 * once for each. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/run/result.h"
#include "profile/base/file.h"
#include "profile/codec/codec.h"
#include "profile/query.h"
#include "profile/text/text.h"

/* -- notes -- */

static void note_sharing(FILE *stream, const struct probe_sharing_level *sharing)
{
    if (sharing->limited_bytes > 0) {
        fprintf(stream,
                "%ssharing measured with %zu KiB each, as memory is limited: PUs that share it may "
                "be missing",
                probe_separator(stream, "; "), sharing->limited_bytes >> 10);
    }
    if (sharing->as_declared > 0) {
        fprintf(stream, "%ssharing as declared (%u of %zu pairs): other processes used the cache",
                probe_separator(stream, "; "), sharing->as_declared, sharing->pairs);
    }
    if (sharing->undecided > sharing->as_declared) {
        fprintf(stream, "%ssharing of %u of %zu pairs is undecided", probe_separator(stream, "; "),
                sharing->undecided - sharing->as_declared, sharing->pairs);
    }
    if (sharing->contradictions > 0) {
        fprintf(stream, "%s%zu pairs contradict that sharing is an equivalence",
                probe_separator(stream, "; "), sharing->contradictions);
    }
    if (sharing->measured < sharing->pairs) {
        fprintf(stream, "%s%s%zu of %zu pairs measured, the others inferred from %s",
                probe_separator(stream, "; "),
                sharing->cut_short ? "cut short by the budget: " : "", sharing->measured,
                sharing->pairs,
                sharing->refined ? "PUs that share it with them"
                                 : "pairs in similar places of the topology");
    }
    if (sharing->at_once > 1) {
        fprintf(stream, "%sup to %zu disjoint pairs measured at a time",
                probe_separator(stream, "; "), sharing->at_once);
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
        fprintf(stream, "%sshared by %s as measured, by %s as declared%s",
                probe_separator(stream, "; "), profile_figure_sharers(&sharing->sharing).text,
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
        fprintf(stream, "%s%s%s%s as declared, not measured", probe_separator(stream, "; "),
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
    TRY(stream ? 0 : -ENOMEM);
    note_mismatch(stream, level, cache, sharing, where);
    note_other_sharing(stream, cache, sharing, where->guest);
    note_geometry(stream, level, cache);
    if (sharing) {
        note_sharing(stream, sharing);
    } else if (cache && (cache->sharing.group_count || cache->sharing.pair_count)) {
        fprintf(stream, "%ssharing as declared, not measured", probe_separator(stream, "; "));
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

/* -- caches of one kind of cores -- */

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
    TRY(cache_note(caches, i, declared, sharing, where, &out->quality.note));
    if (sharing) {
        out->sharing_quality = quality_of_sharing(sharing);
        out->sharing = TAKE(sharing->sharing);
        out->pair_ratios = TAKE(sharing->ratios);
        out->pair_ratio_count = sharing->ratio_count;
        return 0;
    }
    return declared ? probe_result_copy_relation(&declared->sharing, &out->sharing) : 0;
}

/* A declared cache as it is; who shares it moves over. */
static int keep_declared(struct profile_cache *declared, struct profile_cache *out)
{
    *out = *declared;
    out->pus = (struct profile_set){0};
    out->pair_ratios = NULL;
    out->pair_ratio_count = 0;
    out->quality.note = strdup("not seen in the measured latency curve");
    declared->sharing = (struct profile_relation){0};
    return out->quality.note ? profile_set_copy(&declared->pus, &out->pus) : -ENOMEM;
}

/* Adds the measured levels, and the declared ones of `view` that were not seen. */
static int add_levels(struct profile_class *view, struct kind_results *results,
                      const struct measured_on *where, struct profile_class *made)
{
    const struct probe_cache *caches = &results->caches;
    struct probe_sharing_level *sharing =
        results->sharing.count > 0 ? results->sharing.levels : NULL;
    struct probe_cache_pairing pairs;
    uint32_t last = 0;
    probe_cache_pair(caches, view, NULL, &pairs);
    for (size_t i = 0, next = 0; i <= caches->count; i++) {
        const uint32_t number = i < caches->count ? pairs.numbers[i] : UINT32_MAX;
        for (; next < view->cache_count && view->caches[next].level < number; next++) {
            if (view->caches[next].level > last) {
                TRY(keep_declared(&view->caches[next], &made->caches[made->cache_count++]));
            }
        }
        if (i < caches->count) {
            struct profile_cache *cache = &made->caches[made->cache_count++];
            cache->level = number;
            TRY(make_cache(caches, i, pairs.declared[i], sharing ? &sharing[i] : NULL, where,
                           cache));
        }
        last = number;
    }
    return 0;
}

/* -- kinds of cores -- */

static bool has(const struct profile_cache *cache, uint32_t pu)
{
    return cache->pus.count == 0 || profile_set_has(&cache->pus, pu);
}

/* The kinds of these PUs, by bit. */
static unsigned kinds_among(const struct kinds *kinds, const uint32_t *pus, size_t count)
{
    unsigned among = 0;
    for (size_t i = 0; i < count; i++) {
        among |= 1u << probe_kinds_find(kinds, pus[i]);
    }
    return among;
}

static bool are_several(unsigned kinds)
{
    return kinds & (kinds - 1);
}

/* PUs of several kinds share one: an L3 of all. Caches that are alike but not shared are each
 * kind's own: who shares one of them differs, and so may what is left of it. */
static bool is_common(const struct profile_cache *cache, const struct kinds *kinds)
{
    bool common = false;
    for (size_t i = 0; i < cache->sharing.group_count; i++) {
        const struct profile_set *group = &cache->sharing.groups[i];
        common |= are_several(kinds_among(kinds, group->ids, group->count));
    }
    for (size_t i = 0; i < cache->sharing.pair_count; i++) {
        common |= are_several(kinds_among(kinds, machine_pair_pus(&cache->sharing.pairs[i]), 2));
    }
    return common;
}

/* Caches of two kinds of which nothing is declared may be one where both are the last, and may be
 * as large. */
static bool may_be_one(const struct probe_cache *one, const struct probe_cache *other)
{
    if (one->count == 0 || other->count == 0) {
        return false;
    }
    const struct probe_cache_level *a = &one->levels[one->count - 1],
                                   *b = &other->levels[other->count - 1];
    return a->low_bytes <= b->high_bytes && b->low_bytes <= a->high_bytes;
}

static size_t first_holder(const struct profile_cache *declared, const struct kinds *kinds)
{
    size_t kind = 0;
    while (kind + 1 < kinds->count && !has(declared, kinds->pus[kind].ids[0])) {
        kind++;
    }
    return kind;
}

/* The declared caches as a PU of the kind sees them. Who shares one is of this kind's PUs, unless
 * kinds share it; all else that they hold is the class'. */
static int view_of(const struct profile_class *node_class, const struct kinds *kinds, size_t kind,
                   struct profile_class *out)
{
    *out =
        (struct profile_class){.caches = calloc(node_class->cache_count + 1, sizeof *out->caches)};
    TRY(out->caches ? 0 : -ENOMEM);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        const struct profile_cache *cache = &node_class->caches[i];
        if (kinds->count > 1 && !has(cache, kinds->pus[kind].ids[0])) {
            continue;
        }
        struct profile_cache *seen = &out->caches[out->cache_count++];
        *seen = *cache;
        seen->sharing = (struct profile_relation){0};
        TRY(probe_result_copy_relation(&cache->sharing, &seen->sharing));
        if (!is_common(cache, kinds)) {
            probe_relation_narrow(&seen->sharing, &kinds->pus[kind]);
        }
    }
    return 0;
}

static void free_view(struct profile_class *view)
{
    for (size_t i = 0; i < view->cache_count; i++) {
        profile_relation_free(&view->caches[i].sharing);
    }
    free(view->caches);
}

void probe_result_holders(const struct profile_class *node_class, const struct kinds *kinds,
                          const struct kind_results *results, const struct profile_set **holders)
{
    const struct probe_cache *caches = &results[0].caches;
    struct probe_cache_pairing pairs;
    probe_cache_pair(caches, node_class, &kinds->pus[0].ids[0], &pairs);
    for (size_t i = 0; i < caches->count; i++) {
        const struct profile_cache *declared = pairs.declared[i];
        bool common = declared && is_common(declared, kinds);
        for (size_t kind = 1; !declared && i + 1 == caches->count && kind < kinds->count; kind++) {
            common |= may_be_one(caches, &results[kind].caches);
        }
        holders[i] = common ? NULL : &kinds->pus[0];
    }
}

static int by_place(const void *a, const void *b)
{
    const struct profile_cache *x = a, *y = b;
    if (x->level != y->level) {
        return x->level < y->level ? -1 : 1;
    }
    uint32_t first = x->pus.count ? x->pus.ids[0] : 0, second = y->pus.count ? y->pus.ids[0] : 0;
    return (first > second) - (first < second);
}

/* Only pairs of its own PUs: others were asked whether it is theirs, too. */
static void narrow_ratios(struct profile_cache *cache)
{
    size_t count = 0;
    for (size_t i = 0; i < cache->pair_ratio_count; i++) {
        const struct profile_pair_figure *pair = &cache->pair_ratios[i];
        if (has(cache, pair->a) && has(cache, pair->b)) {
            cache->pair_ratios[count++] = *pair;
        }
    }
    cache->pair_ratio_count = count;
}

/* The PUs of the kinds of which some PU shares the cache; none are named where that is all. */
static int set_holders(struct profile_cache *cache, const struct kinds *kinds)
{
    const struct profile_relation *sharing = &cache->sharing;
    const unsigned all = (1u << kinds->count) - 1;
    unsigned hold = kinds_among(kinds, machine_pair_pus(sharing->pairs), 2 * sharing->pair_count);
    for (size_t i = 0; i < sharing->group_count; i++) {
        hold |= kinds_among(kinds, sharing->groups[i].ids, sharing->groups[i].count);
    }
    for (size_t kind = 0; hold != all && kind < kinds->count; kind++) {
        struct profile_set more;
        if (hold & 1u << kind) {
            TRY(profile_set_union(&cache->pus, &kinds->pus[kind], &more));
            profile_set_free(&cache->pus);
            cache->pus = more;
        }
    }
    return 0;
}

/* Nothing is declared of the last cache of this kind, and the first kind's was found to be of its
 * PUs, too. */
static bool is_of_the_first(const struct profile_class *made, size_t before,
                            const struct kinds *kinds, size_t kind)
{
    bool known = false;
    for (size_t i = 0; kind > 0 && i < before; i++) {
        const struct profile_cache *cache = &made->caches[i];
        known |= is_common(cache, kinds) && cache->declared_size_bytes == 0 &&
                 has(cache, kinds->pus[kind].ids[0]);
    }
    return known;
}

/* The PUs that have the cache of the kind; `declared` (may be NULL): the one of its number. */
static int set_cache_pus(const struct profile_cache *declared, const struct kinds *kinds,
                         size_t kind, struct profile_cache *cache)
{
    int rc;
    profile_set_free(&cache->pus);
    if (is_common(declared ? declared : cache, kinds)) {
        rc = declared ? profile_set_copy(&declared->pus, &cache->pus) : set_holders(cache, kinds);
    } else {
        /* Sharing that was not measured is as declared, for all kinds together. */
        rc = profile_set_copy(&kinds->pus[kind], &cache->pus);
        probe_relation_narrow(&cache->sharing, &kinds->pus[kind]);
    }
    narrow_ratios(cache);
    return rc;
}

/* The kind's caches, from `from` on: those that an earlier kind has, too, go. */
static int place_caches(const struct profile_class *node_class, const struct kinds *kinds,
                        size_t kind, size_t from, struct profile_class *made)
{
    const size_t end = made->cache_count;
    int rc = 0;
    made->cache_count = from;
    for (size_t i = from; i < end; i++) {
        struct profile_cache cache = made->caches[i];
        const struct profile_cache *declared =
            profile_cache_of(node_class, cache.level, kinds->pus[kind].ids[0]);
        const bool known =
            declared ? is_common(declared, kinds) && first_holder(declared, kinds) != kind
                     : i + 1 == end && is_of_the_first(made, made->cache_count, kinds, kind);
        if (known) {
            profile_cache_free(&cache);
        } else {
            rc = rc == 0 ? set_cache_pus(declared, kinds, kind, &cache) : rc;
            made->caches[made->cache_count++] = cache;
        }
    }
    return rc;
}

static int make_caches(const struct profile_class *node_class, const struct kinds *kinds,
                       struct kind_results *results, const struct measured_on *where,
                       struct profile_class *made)
{
    TRY(made->caches ? 0 : -ENOMEM);
    for (size_t kind = 0; kind < kinds->count; kind++) {
        const struct measured_on here = {kinds->pus[kind].ids[0], where->guest, where->busy};
        const size_t from = made->cache_count;
        FREED_BY(free_view) struct profile_class view;
        TRY(view_of(node_class, kinds, kind, &view));
        TRY(add_levels(&view, &results[kind], &here, made));
        TRY(kinds->count > 1 ? place_caches(node_class, kinds, kind, from, made) : 0);
    }
    return 0;
}

int probe_result_set_caches(struct profile_class *node_class, const struct kinds *kinds,
                            struct kind_results *results, const struct measured_on *where)
{
    const size_t room = kinds->count * (node_class->cache_count + CACHE_LEVELS_MAX);
    FREED_BY(profile_class_free)
    struct profile_class made = {.caches = calloc(room + 1, sizeof *made.caches)};
    TRY(make_caches(node_class, kinds, results, where, &made));
    qsort(made.caches, made.cache_count, sizeof *made.caches, by_place);
    const struct profile_class declared = {.caches = node_class->caches,
                                           .cache_count = node_class->cache_count};
    node_class->caches = made.caches;
    node_class->cache_count = made.cache_count;
    made = declared;
    return 0;
}
