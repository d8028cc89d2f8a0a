/* Which pairs are presumed to agree: those that have the same in common in the declared topology,
 * and are of the same two kinds of cores. Then refinement: PUs are put into groups by their pairs.
 * The pairs of two groups, and those inside of one, are classes from then on (sampling.c). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/layers.h"
#include "probes/pairs/sampling.h"
#include "profile/base/statistics.h"

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

/* -- refinement -- */

/* Constant       unit            source                       without it
 * LAYERS_APART   ratio           layers.h                     groups of noise
 * GROUP_LEAST    PUs             a pair shows itself          one odd pair of times is a group */
enum { GROUP_LEAST = 4 };

#define NO_GROUP UINT32_MAX

struct refinement {
    struct sampling_run *run;
    size_t n, asked;
    uint32_t *group_of; /* by PU */
    uint32_t groups;
    double *row, *sorted; /* by PU; NAN: not known */
    double limit;         /* of the last group; 0: there is none */
};

/* The value of a pair of the class that is refined; NAN: of one that is not asked about. Answers of
 * yes join two PUs and are asked twice. */
static int refine_ask(struct refinement *r, size_t i, size_t j, double *value)
{
    struct sampling_run *run = r->run;
    const struct pair_position pair = {i < j ? i : j, i < j ? j : i};
    const size_t at = probe_sampling_index(run, &pair);
    double figure;
    int rc = 0;
    if (run->sampling->class_of[at] != run->class || (run->wanted && !run->wanted[at])) {
        /* pairs of closer classes have their values */
        *value = run->sampling->class_of[at] < run->class ? run->outcome->values[at] : NAN;
        return 0;
    }
    if (!run->outcome->measured[at]) {
        rc = run->measure(run->argument, &pair, 1, &run->outcome->values[at], &figure);
        run->outcome->measured[at] = rc == 0;
        run->outcome->measured_count += rc == 0;
        r->asked++;
        if (rc == 0 && run->sampling->answers && run->outcome->values[at] <= PAIR_TOGETHER) {
            rc = probe_sampling_ask_again(run, &pair);
        }
    }
    *value = run->outcome->values[at];
    return rc;
}

/* The values of the PU and those that are in no group. */
static int refine_row(struct refinement *r, size_t pu, size_t *known)
{
    *known = 0;
    for (size_t other = 0; other < r->n; other++) {
        r->row[other] = NAN;
        if (other != pu && r->group_of[other] == NO_GROUP) {
            TRY(refine_ask(r, pu, other, &r->row[other]));
        }
        if (!isnan(r->row[other])) {
            r->sorted[(*known)++] = r->row[other];
        }
    }
    return 0;
}

/* Members of a group are nearer than this: the gap of the last group where the row has it too, else
 * the gap that makes a group nearest to sqrt(n) PUs. No PU lies beyond the last group, so its row
 * has no gap: then the last limit decides. 0: there is none. */
static double refine_limit(const struct refinement *r, size_t known)
{
    const double wanted = sqrt((double)r->n);
    double best = INFINITY, limit = r->limit;
    profile_sort(r->sorted, known);
    for (size_t i = 0; i + 1 < known; i++) {
        const size_t size = i + 2; /* the PU of the row is one of the group */
        const double low = r->sorted[i], high = r->sorted[i + 1],
                     away = fabs(log((double)size / wanted));
        if (high <= LAYERS_APART * low || size < GROUP_LEAST) {
            continue;
        }
        if (low < r->limit && r->limit < high) {
            return r->limit;
        }
        limit = away < best ? sqrt(low * high) : limit;
        best = fmin(away, best);
    }
    return limit;
}

/* Groups all PUs. r->groups 0: there are no useful groups, or to find them is to measure all. */
static int refine_by_rows(struct refinement *r)
{
    for (size_t pu = 0; pu < r->n; pu++) {
        size_t known = 0;
        if (r->group_of[pu] != NO_GROUP) {
            continue;
        }
        TRY(refine_row(r, pu, &known));
        r->limit = refine_limit(r, known);
        if (r->limit <= 0 || 2 * r->asked > r->run->count || probe_sampling_late(r->run)) {
            r->groups = 0;
            return 0;
        }
        for (size_t other = 0; other < r->n; other++) {
            if (other == pu || r->row[other] < r->limit) {
                r->group_of[other] = r->groups;
            }
        }
        r->groups++;
    }
    return 0;
}

/* The first answer of a member of the group that is decided; NAN: none is. */
static int refine_ask_group(struct refinement *r, size_t pu, uint32_t group, double *answer)
{
    *answer = NAN;
    for (size_t member = 0; isnan(*answer) && member < pu; member++) {
        TRY(r->group_of[member] == group ? refine_ask(r, pu, member, answer) : 0);
    }
    return 0;
}

/* The same of answers, of which one speaks for a group: those next to the last one first, since
 * numbers of PUs mostly repeat. */
static int refine_by_answers(struct refinement *r)
{
    for (size_t pu = 0; pu < r->n; pu++) {
        const uint32_t last = pu > 0 ? r->group_of[pu - 1] : 0;
        for (uint32_t g = 0; g < r->groups && r->group_of[pu] == NO_GROUP; g++) {
            const uint32_t group = (last + g) % r->groups;
            double answer;
            TRY(refine_ask_group(r, pu, group, &answer));
            r->group_of[pu] = answer <= PAIR_TOGETHER ? group : NO_GROUP;
        }
        if (r->group_of[pu] == NO_GROUP) {
            r->group_of[pu] = r->groups++;
        }
        if (2 * r->asked > r->run->count || probe_sampling_late(r->run)) {
            r->groups = 0;
            return 0;
        }
    }
    return 0;
}

/* The pairs of two groups, and those inside of one, are a class of their own from now on. */
static int refine_classes(struct refinement *r)
{
    struct sampling *sampling = r->run->sampling;
    const size_t all = (size_t)r->groups * r->groups;
    FREED uint32_t *number = malloc((all + 1) * sizeof *number);
    TRY(number ? 0 : -ENOMEM);
    memset(number, 0xff, all * sizeof *number);
    PROBE_EACH_PAIR(r->n, i, j, k)
    {
        const uint32_t a = r->group_of[i], b = r->group_of[j];
        uint32_t *of = &number[a < b ? a * r->groups + b : b * r->groups + a];
        if (sampling->class_of[k] == r->run->class) {
            *of = *of == UINT32_MAX ? (uint32_t)sampling->class_count++ : *of;
            sampling->class_of[k] = *of;
        }
    }
    TRY(probe_sampling_sort(r->run));
    for (size_t k = 0; k < all; k++) {
        if (number[k] != UINT32_MAX) {
            sampling->classes[number[k]].inside = k / r->groups == k % r->groups;
        }
    }
    return 0;
}

int probe_sampling_refine(struct sampling_run *run, bool *done)
{
    const size_t n = run->sampling->pus->count;
    FREED uint32_t *group_of = malloc((n + 1) * sizeof *group_of);
    FREED double *row = malloc(2 * (n + 1) * sizeof *row);
    TRY(group_of && row ? 0 : -ENOMEM);
    memset(group_of, 0xff, n * sizeof *group_of);
    struct refinement r = {
        .run = run, .n = n, .group_of = group_of, .row = row, .sorted = row + n + 1};
    TRY(run->sampling->answers ? refine_by_answers(&r) : refine_by_rows(&r));
    *done = r.groups > 0;
    return *done ? refine_classes(&r) : 0;
}
