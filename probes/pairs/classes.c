/* Which pairs are presumed to agree: those that have the same in common in the declared topology,
 * and are of the same two kinds of cores. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/layers.h"
#include "probes/pairs/sample.h"

/* The pairs inside of these groups are of the class, unless they are of a closer one. */
static void mark_groups(struct sampling *sampling, const struct profile_set *groups, size_t count,
                        uint32_t class)
{
    const struct profile_set *pus = sampling->pus;
    for (size_t g = 0; g < count; g++) {
        for (size_t a = 0; a < groups[g].count; a++) {
            const size_t i = profile_set_position(pus, groups[g].ids[a]);
            for (size_t b = a + 1; i < pus->count && b < groups[g].count; b++) {
                const size_t j = profile_set_position(pus, groups[g].ids[b]);
                uint32_t *of =
                    j < pus->count ? &sampling->presumed[probe_pair_index(pus->count, i, j)] : NULL;
                if (of && *of > class) {
                    *of = class;
                }
            }
        }
    }
}

/* Numbers the classes that occur, all below `limit`, 0, 1, 2 … */
static int renumber_classes(struct sampling *sampling, size_t limit)
{
    const size_t pairs = probe_pair_count(sampling->pus->count);
    FREED uint32_t *number = calloc(limit + 1, sizeof *number);
    TRY(number ? 0 : -ENOMEM);
    for (size_t k = 0; k < pairs; k++) {
        number[sampling->presumed[k]] = 1;
    }
    sampling->presumed_count = 0;
    for (size_t c = 0; c < limit; c++) {
        sampling->presumed_count += number[c];
        number[c] = (uint32_t)sampling->presumed_count - 1;
    }
    for (size_t k = 0; k < pairs; k++) {
        sampling->presumed[k] = number[sampling->presumed[k]];
    }
    return 0;
}

/* Two fast cores take the memory from one another where a fast and a slow one do not: classes are
 * divided by the kinds of the two. */
static void divide_by_kinds(struct sampling *sampling, const struct profile_class *declared)
{
    const struct profile_set *pus = sampling->pus;
    const size_t kinds = declared->kind_count + 1;
    PROBE_EACH_PAIR(pus->count, i, j, k)
    {
        const size_t first = probe_kinds_declared(declared, pus->ids[i]),
                     second = probe_kinds_declared(declared, pus->ids[j]),
                     more = first > second ? first : second, less = first + second - more;
        sampling->presumed[k] =
            (uint32_t)(sampling->presumed[k] * kinds * kinds + more * kinds + less);
    }
}

static size_t largest_set(const struct profile_set *sets, size_t count)
{
    size_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        largest = sets[i].count > largest ? sets[i].count : largest;
    }
    return largest;
}

static void mark_declared(struct sampling *sampling, const struct profile_class *declared)
{
    const size_t caches = declared->cache_count;
    const struct profile_relation *packages = &declared->packages;
    mark_groups(sampling, declared->cores.groups, declared->cores.group_count, 0);
    for (size_t i = 0; i < caches; i++) {
        const struct profile_relation *sharing = &declared->caches[i].sharing;
        mark_groups(sampling, sharing->groups, sharing->group_count, (uint32_t)i + 1);
    }
    /* The smaller lies within the other: a machine whose memory is interleaved has one node of all
     * packages. */
    const size_t package = largest_set(packages->groups, packages->group_count);
    bool nodes_inside = true;
    for (size_t i = 0; i < declared->numa_count; i++) {
        nodes_inside &= declared->numa[i].pus.count <= package;
    }
    for (size_t i = 0; i < declared->numa_count; i++) {
        mark_groups(sampling, &declared->numa[i].pus, 1, (uint32_t)caches + (nodes_inside ? 1 : 2));
    }
    mark_groups(sampling, packages->groups, packages->group_count,
                (uint32_t)caches + (nodes_inside ? 2 : 1));
}

int probe_sampling_init(struct sampling *sampling, const struct profile_set *pus,
                        const struct profile_class *declared)
{
    const size_t pairs = probe_pair_count(pus->count),
                 kinds = declared ? declared->kind_count + 1 : 1;
    const uint32_t outermost = declared ? (uint32_t)declared->cache_count + 3 : 0;
    *sampling = (struct sampling){.pus = pus,
                                  .agree = probe_layers_one_cluster,
                                  .presumed = malloc((pairs + 1) * sizeof *sampling->presumed),
                                  .class_of = malloc((pairs + 1) * sizeof *sampling->class_of)};
    TRY(sampling->presumed && sampling->class_of ? 0 : -ENOMEM);
    TRY(probe_concurrent_init(&sampling->concurrent, pus, declared));
    for (size_t k = 0; k < pairs; k++) {
        sampling->presumed[k] = outermost;
    }
    if (declared) {
        mark_declared(sampling, declared);
        divide_by_kinds(sampling, declared);
    }
    return renumber_classes(sampling, (outermost + 1) * kinds * kinds);
}

void probe_sampling_forget(struct sampling *sampling)
{
    memset(sampling->presumed, 0,
           probe_pair_count(sampling->pus->count) * sizeof *sampling->presumed);
    sampling->presumed_count = 1;
    sampling->strategy = SAMPLING_ROWS;
}

void probe_sampling_free(struct sampling *sampling)
{
    free(sampling->presumed);
    free(sampling->class_of);
    free(sampling->classes);
    probe_concurrent_free(&sampling->concurrent);
}
