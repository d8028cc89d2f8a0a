/* Checks of formats: a mapping that its consumer would carry out otherwise is refused before
 * anything is written. */
#include "mapper/formats/formats.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/cli.h"
#include "profile/query.h"
#include "profile/scope.h"

const struct map_format *map_format_find(const char *name)
{
    for (const struct map_format *format = map_formats; format->name; format++) {
        if (strcmp(format->name, name) == 0) {
            return format;
        }
    }
    return NULL;
}

static int print_processes(FILE *out, const struct map_format *format,
                           const struct map_mapping *mapping, struct servet_error *error)
{
    if (!mapping->hybrid && !map_mapping_one_node(mapping)) {
        return profile_error(
            error, -EINVAL,
            "--format %s: expected a mapping on one node (this one spans several); rankfile, "
            "hostfile, list and json can say it",
            format->name);
    }
    for (size_t r = 0, end; r < mapping->rank_count; r = end) {
        end = mapping->hybrid ? r + 1 : mapping->rank_count;
        map_print_words(out, format, mapping, mapping->first[r], mapping->first[end]);
    }
    return 0;
}

size_t map_mapping_next_node(const struct map_mapping *mapping, size_t rank)
{
    uint32_t node = mapping->places[mapping->first[rank]].node;
    while (rank < mapping->rank_count && mapping->places[mapping->first[rank]].node == node) {
        rank++;
    }
    return rank;
}

/* Ranks [begin, end) have the OS indices of the first ranks, of which there are `first_ranks`. */
static bool alike(const struct map_mapping *mapping, size_t first_ranks, size_t begin, size_t end)
{
    if (end - begin > first_ranks) {
        return false;
    }
    for (size_t r = 0; r < end - begin; r++) {
        const size_t *first = &mapping->first[r], *other = &mapping->first[begin + r];
        size_t count = first[1] - first[0];
        if (other[1] - other[0] != count) {
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            if (mapping->places[*first + i].os_index != mapping->places[*other + i].os_index) {
                return false;
            }
        }
    }
    return true;
}

/* Open MPI 4 takes the list for a set of hwloc's logical cores and hands them out in ascending
 * order, whatever the order in the list. To see it:
 *
 *     mpirun --bind-to cpu-list:ordered --cpu-list 1,0 -np 1 grep Cpus /proc/self/status
 */
static bool is_hwloc_order(const struct map_mapping *mapping, size_t ranks)
{
    const struct profile_class *class =
        profile_node_class(mapping->profile, mapping->places[mapping->first[0]].node);
    FREED uint32_t *logical = map_logical_indices(class);
    bool same = !class->cores.group_count;
    for (size_t i = 0; i < class->pus.count; i++) {
        same = same && logical[i] == class->pus.ids[i];
    }
    for (size_t r = 1; r < ranks; r++) {
        same = same && mapping->places[mapping->first[r]].os_index >
                           mapping->places[mapping->first[r - 1]].os_index;
    }
    return same;
}

static int print_each_node(FILE *out, const struct map_format *format,
                           const struct map_mapping *mapping, struct servet_error *error)
{
    size_t end = map_mapping_next_node(mapping, 0);
    for (size_t rank = end; rank < mapping->rank_count;) {
        size_t next = map_mapping_next_node(mapping, rank);
        if (!alike(mapping, end, rank, next)) {
            return profile_error(error, -EINVAL,
                                 "--format %s: expected the same placement on every node, by "
                                 "blocks of ranks; rankfile, "
                                 "hostfile, list and json can say it",
                                 format->name);
        }
        rank = next;
    }
    if (format->ascending && !is_hwloc_order(mapping, end)) {
        return profile_error(error, -EINVAL,
                             "--format %s: Open MPI 4 reads it as a set of hwloc's numbers: "
                             "expected ascending PUs that are numbered as hwloc counts cores; "
                             "rankfile can say this mapping",
                             format->name);
    }
    map_print_words(out, format, mapping, 0, end);
    return 0;
}

/* Only what no shell interprets and no launcher takes for an option. */
static bool plain_name(const char *name)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return name[0] && name[0] != '-' && name[strspn(name, safe)] == '\0';
}

/* Can the format say this mapping, in words that reach its consumer as they are? */
static int check_format(const struct map_format *format, const struct map_mapping *mapping,
                        struct servet_error *error)
{
    if (format->with_threads && mapping->place_count > mapping->rank_count) {
        return profile_error(error, -EINVAL,
                             "--format %s: expected one PU per rank (these ranks have threads); %s "
                             "can say it",
                             format->name, format->with_threads);
    }
    for (size_t r = 0; format->names && r < mapping->rank_count; r++) {
        char name[256];
        map_mapping_node_name(mapping, mapping->places[mapping->first[r]].node, name, sizeof name);
        if (!plain_name(name)) {
            return profile_error(
                error, -EINVAL,
                "--format %s: node name of rank %zu: expected letters, digits, '.', "
                "'_' and '-' only",
                format->name, r);
        }
    }
    return 0;
}

int map_format_print(FILE *out, const struct map_format *format, const struct map_mapping *mapping,
                     struct servet_error *error)
{
    assert(mapping->rank_count > 0 && (format->print || format->reach != MAP_FORMAT_ANYTHING));
    TRY(check_format(format, mapping, error));
    if (format->print) {
        format->print(out, format, mapping);
        return 0;
    }
    return format->reach == MAP_FORMAT_PER_PROCESS ? print_processes(out, format, mapping, error)
                                                   : print_each_node(out, format, mapping, error);
}

/* -- mappings: places by node and OS index, and the numbers that hwloc counts PUs by -- */

struct map_mapping map_mapping_make(const struct servet_profile *profile, const uint32_t *pus,
                                    size_t ranks, const uint32_t *threads)
{
    struct map_mapping mapping = {
        .profile = profile, .rank_count = ranks, .hybrid = threads != NULL};
    assert(ranks > 0);
    mapping.first = cli_needed(calloc(ranks + 1, sizeof *mapping.first));
    for (size_t r = 0; r < ranks; r++) {
        mapping.first[r + 1] = mapping.first[r] + (threads ? threads[r] : 1);
    }
    mapping.place_count = mapping.first[ranks];
    mapping.places = cli_needed(calloc(mapping.place_count, sizeof *mapping.places));
    for (size_t i = 0; i < mapping.place_count; i++) {
        struct profile_place place = {0};
        (void)profile_locate(profile, pus[i], &place);
        mapping.places[i] = (struct map_place){pus[i], place.node, place.os_index};
    }
    return mapping;
}

void map_mapping_free(struct map_mapping *mapping)
{
    free(mapping->places);
    free(mapping->first);
    *mapping = (struct map_mapping){0};
}

bool map_mapping_one_node(const struct map_mapping *mapping)
{
    return map_mapping_next_node(mapping, 0) == mapping->rank_count;
}

void map_mapping_node_name(const struct map_mapping *mapping, uint32_t node, char *name,
                           size_t size)
{
    uint32_t first = 0;
    for (size_t r = 0; r < mapping->profile->node_range_count; r++) {
        const struct profile_node_range *range = &mapping->profile->nodes[r];
        if (node - first < range->count) {
            if (range->names &&
                profile_hostlist_name(range->names, node - first, name, size) == 0) {
                return;
            }
            break;
        }
        first += range->count;
    }
    snprintf(name, size, "node%u", node);
}

/* -- hwloc's numbers -- */

/* Deepest trees of today have package, die, NUMA node, L3, L2, L1 and core. */
#define MOST_DEPTHS 16

/* A PU, and for each depth of the tree the lowest PU of the group that it is in. A PU that is in no
 * group of some depth (caches of two sizes are two relations, and some cores have no last-level
 * cache) stands there with the group of the next depth, as in hwloc's tree. */
struct leaf {
    uint32_t lowest[MOST_DEPTHS + 1];
    size_t at; /* in the class's PUs */
};

/* The group of a PU at a depth: package, NUMA node, caches from the outermost inwards, core; NULL:
 * none. */
static const struct profile_set *group_of_pu(const struct profile_class *class, size_t depth,
                                             uint32_t pu)
{
    if (depth == 0) {
        return profile_group_of(&class->packages, pu);
    }
    for (size_t n = class->numa_count; depth == 1 && n-- > 0;) {
        if (profile_set_has(&class->numa[n].pus, pu)) {
            return &class->numa[n].pus;
        }
    }
    size_t inner = depth - 1;
    if (depth > 1 && inner <= class->cache_count) {
        return profile_group_of(&class->caches[class->cache_count - inner].sharing, pu);
    }
    return inner == class->cache_count + 1 ? profile_group_of(&class->cores, pu) : NULL;
}

static int by_tree(const void *a, const void *b)
{
    const struct leaf *x = a, *y = b;
    for (size_t d = 0; d <= MOST_DEPTHS; d++) {
        if (x->lowest[d] != y->lowest[d]) {
            return x->lowest[d] < y->lowest[d] ? -1 : 1;
        }
    }
    return 0;
}

uint32_t *map_logical_indices(const struct profile_class *class)
{
    FREED struct leaf *leaves = cli_needed(calloc(class->pus.count, sizeof *leaves));
    uint32_t *logical = cli_needed(calloc(class->pus.count, sizeof *logical));
    for (size_t i = 0; i < class->pus.count; i++) {
        uint32_t pu = class->pus.ids[i];
        leaves[i].lowest[MOST_DEPTHS] = pu;
        leaves[i].at = i;
        for (size_t d = MOST_DEPTHS; d-- > 0;) {
            const struct profile_set *group = group_of_pu(class, d, pu);
            leaves[i].lowest[d] = group ? group->ids[0] : leaves[i].lowest[d + 1];
        }
    }
    qsort(leaves, class->pus.count, sizeof *leaves, by_tree);
    for (size_t i = 0; i < class->pus.count; i++) {
        logical[leaves[i].at] = (uint32_t)i;
    }
    return logical;
}
