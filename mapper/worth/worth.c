/* How many workers are worth having, and what a placement gives them (2010 paper, Sections III-C
 * and V: limit the number of cores that access memory at once, where more of them get no more
 * together). Nothing is measured here: workers are added in the order in which memory priority
 * places them, each number is predicted as --compare predicts it, and the curve is read from its
 * beginning, so that the answer is the smallest number even where the curve falls behind its
 * peak. */
#include "mapper/worth/worth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/query.h"
#include "profile/scope.h"

int map_part_of_node(const struct servet_profile *profile, uint32_t number,
                     const struct profile_set *allowed, struct map_part *out)
{
    const struct profile_class *of = profile_node_class(profile, number);
    uint32_t first_pu = profile_node_first_pu(profile, number);
    struct profile_set own = {calloc(of->pus.count + 1, sizeof *own.ids), 0};
    for (size_t i = 0; own.ids && i < of->pus.count; i++) {
        if (!allowed || profile_set_has(allowed, first_pu + of->pus.ids[i])) {
            own.ids[own.count++] = of->pus.ids[i];
        }
    }
    *out = (struct map_part){.of = of, .first_pu = first_pu, .allowed = own};
    return own.ids ? 0 : -ENOMEM;
}

void map_part_free(struct map_part *part)
{
    profile_set_free(&part->allowed);
}

/* -- is enough known? -- */

/* PUs of the set in the group that has most of them. */
static size_t most_members(const struct profile_relation *relation, const struct profile_set *pus)
{
    size_t most = 0;
    for (size_t g = 0; g < relation->group_count; g++) {
        size_t members = 0;
        for (size_t i = 0; i < pus->count; i++) {
            members += profile_set_has(&relation->groups[g], pus->ids[i]);
        }
        most = members > most ? members : most;
    }
    return most;
}

/* The last worker of a level whose bandwidth was measured: of the curve, else of the pair. */
static uint32_t measured_workers(const struct profile_memory_level *level)
{
    size_t points = level->scaling_count;
    return points ? level->scaling[points - 1].workers : level->bytes_per_s > 0 ? 2 : 0;
}

static int check_memory_measured(const struct profile_memory *memory,
                                 const struct profile_set *allowed, uint32_t *out,
                                 struct servet_error *error)
{
    uint32_t whole = 0, part = 0; /* of levels measured up to their groups' size, and of others */
    if (!(memory->reference_bytes_per_s > 0)) {
        return profile_error(error, -ENODATA,
                             "memory bandwidth: expected to be measured "
                             "(servet-probe)");
    }
    for (size_t l = 0; l < memory->level_count; l++) {
        const struct profile_memory_level *level = &memory->levels[l];
        const uint32_t workers = measured_workers(level);
        const size_t members = most_members(&level->collisions, allowed);
        if (level->collisions.pair_count) {
            return profile_error(error, -ENODATA,
                                 "overhead level %zu: expected groups, it is known as single pairs",
                                 l);
        }
        if (members < 2) {
            continue;
        }
        if (!workers) {
            return profile_error(error, -ENODATA,
                                 "overhead level %zu: expected its bandwidth to be measured", l);
        }
        if (workers >= members) {
            whole = members > whole ? (uint32_t)members : whole;
        } else if (!part || workers < part) {
            part = workers;
        }
    }
    *out = part ? part : whole;
    return 0;
}

/* -- workers -- */

static void choose_number(const double *totals, size_t count, struct map_worth *out)
{
    for (size_t n = 0; n < count; n++) {
        out->most_bytes_per_s =
            totals[n] > out->most_bytes_per_s ? totals[n] : out->most_bytes_per_s;
    }
    while (totals[out->workers] < MAP_WORTH_SHARE * out->most_bytes_per_s) {
        out->workers++;
    }
    out->bytes_per_s = totals[out->workers];
    out->workers++;
}

/* `pus` in order of choice; they become the leaves of a view. */
static int count_worth(const struct servet_profile *node, uint32_t *pus, size_t count,
                       struct map_worth *out, struct servet_error *error)
{
    FREED_BY(map_view_free) struct map_view view = {0};
    TRY(map_view_make(node, MAP_MEMORY, count, &view, error));
    double *totals = map_arena_get(&view.arena, count, sizeof *totals); /* of 1, 2, … leaves */
    TRY(map_arena_check(&view.arena));
    for (size_t i = 0; i < count; i++) {
        pus[i] = map_view_leaf(&view, pus[i]);
    }
    for (size_t n = 1; n <= count; n++) {
        struct map_figures figures;
        TRY(map_figures_of(&view, pus, n, &figures));
        totals[n - 1] = figures.memory_mean_bytes_per_s * (double)n;
    }
    choose_number(totals, count, out);
    return map_ordinary_copies(&view, out->workers, out->bytes_per_s, &out->ordinary_bytes_per_s);
}

int map_worth(const struct profile_class *node_class, const struct profile_set *allowed,
              uint32_t *out_pus, struct map_worth *out, struct servet_error *error)
{
    struct map_worth found = {0};
    TRY(check_memory_measured(&node_class->memory, allowed, &found.measured_workers, error));
    FREED uint32_t *pus = calloc(allowed->count + 1, sizeof *pus);
    struct map_node_view view;
    const struct servet_profile *node = map_one_node(node_class, &view);
    struct map_request request = {.workers = allowed->count, .allowed = allowed};
    TRY(map_out_of_memory(pus ? 0 : -ENOMEM, error));
    TRY(map_workers(node, &request, pus, NULL, error));
    TRY(map_out_of_memory(count_worth(node, pus, allowed->count, &found, error), error));
    request.workers = found.workers;
    request.known = true;
    TRY(map_workers(node, &request, out_pus, NULL, error));
    *out = found;
    return 0;
}

int map_worth_keep(const struct servet_profile *profile, enum map_priority priority, size_t most,
                   struct profile_set *allowed, struct servet_error *error)
{
    struct profile_set kept = {0};
    struct map_request request = map_request_of(priority, most);
    request.allowed = allowed;
    if (most >= allowed->count) {
        return 0;
    }
    FREED uint32_t *pus = calloc(most, sizeof *pus);
    TRY(map_out_of_memory(pus ? 0 : -ENOMEM, error));
    TRY(map_workers(profile, &request, pus, NULL, error));
    TRY(map_out_of_memory(profile_set_from_array(pus, most, &kept), error));
    profile_set_free(allowed);
    *allowed = kept;
    return 0;
}

/* -- messages -- */

uint32_t map_messages_worth(const struct profile_layer *layer, uint32_t *most)
{
    uint32_t last = layer->concurrency_count > 1
                        ? layer->concurrency[layer->concurrency_count - 1].messages
                        : 0;
    double peak = 0;
    for (uint32_t m = 1; m <= last; m++) {
        double rate = m / profile_messages_slower(layer, m);
        peak = rate > peak ? rate : peak;
    }
    uint32_t worth = last ? 1 : 0;
    while (worth < last && worth / profile_messages_slower(layer, worth) < MAP_WORTH_SHARE * peak) {
        worth++;
    }
    /* where nothing queues, a share of the rate is but that share of the messages */
    if (worth >= MAP_WORTH_SHARE * MAP_WORTH_SHARE * last) {
        worth = last;
    }
    if (most) {
        *most = last;
    }
    return worth;
}

/* -- what a placement gives its workers: how far neighbours are -- */

static const struct map_family *farther(const struct map_family *than,
                                        const struct map_family *families, size_t count)
{
    for (size_t f = 0; f < count; f++) {
        if (families[f].distance > (than ? than->distance : 0)) {
            than = &families[f];
        }
    }
    return than;
}

const struct map_family *map_between(const struct map_view *view, uint32_t a, uint32_t b)
{
    const struct map_family *found = map_latency_between(view, a, b);
    if (found || a == b) {
        return found;
    }
    for (size_t c = 0; c < view->class_count; c++) {
        found = farther(found, view->classes[c].families, view->classes[c].family_count);
    }
    return farther(found, view->network, view->network_count);
}

double map_pair_distance(const struct map_view *view, uint32_t a, uint32_t b)
{
    const struct map_family *between = map_between(view, a, b);
    return between ? between->distance : 0;
}

static void neighbours(const struct map_view *view, const uint32_t *leaves, size_t count,
                       struct map_figures *out)
{
    double sum = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        double distance = map_pair_distance(view, leaves[i], leaves[i + 1]);
        sum += distance;
        out->neighbour_worst = distance > out->neighbour_worst ? distance : out->neighbour_worst;
    }
    out->neighbour_mean = count > 1 ? sum / (double)(count - 1) : 0;
}

/* -- the same: how many share each memory domain and cache, and what that leaves to each -- */

struct counting {
    const struct map_view *view;
    const uint32_t *leaves;
    size_t workers;
    uint32_t *count; /* by leaf: workers in the group that it is the lowest of */
    double *memory;  /* by worker: the least of all levels so far; < 0: nothing known */
};

/* Workers by the lowest leaf of their group. */
static void count_workers(struct counting *c, int which)
{
    memset(c->count, 0, c->view->leaf_count * sizeof *c->count);
    for (size_t w = 0; w < c->workers; w++) {
        c->count[map_lowest_leaf(c->view, c->leaves[w], which)]++;
    }
}

static void look_at_memory(struct counting *c, size_t worker, uint32_t level, uint32_t workers,
                           struct map_figures *out)
{
    const struct profile_memory *memory = &map_view_class(c->view, c->leaves[worker])->of->memory;
    if (level < MAP_FIGURE_LEVELS) {
        out->memory_levels = level + 1 > out->memory_levels ? level + 1 : out->memory_levels;
        out->memory_most[level] =
            workers > out->memory_most[level] ? workers : out->memory_most[level];
    }
    double bandwidth = profile_memory_bandwidth(memory, &memory->levels[level], workers) / workers;
    if (bandwidth > 0 && (c->memory[worker] < 0 || bandwidth < c->memory[worker])) {
        c->memory[worker] = bandwidth;
    }
}

static void look_at_cache(const struct profile_cache *cache, uint32_t workers,
                          struct map_figures *out, size_t *holders)
{
    size_t level = cache->level - 1;
    if (cache->level < 1 || level >= MAP_FIGURE_LEVELS) {
        return;
    }
    double share = (double)cache->size_bytes / workers;
    bool least = !holders[level] || share < out->cache_worst_bytes[level];
    out->cache_worst_bytes[level] = least ? share : out->cache_worst_bytes[level];
    out->cache_mean_bytes[level] += share;
    out->cache_most[level] = workers > out->cache_most[level] ? workers : out->cache_most[level];
    holders[level]++;
}

static uint32_t os_index_of(const struct map_view *view, uint32_t leaf)
{
    const uint32_t first = view->nodes[view->node_of[leaf]].first_leaf;
    return map_view_class(view, leaf)->of->pus.ids[leaf - first];
}

static void look_at_relation(struct counting *c, int which, struct map_figures *out,
                             size_t *holders)
{
    count_workers(c, which);
    for (size_t w = 0; w < c->workers; w++) {
        const struct map_class *class = map_view_class(c->view, c->leaves[w]);
        const size_t caches = class->of->cache_count;
        if (!map_class_groups(class, which)) {
            continue;
        }
        uint32_t workers = c->count[map_lowest_leaf(c->view, c->leaves[w], which)];
        if (which == MAP_CORES) {
            out->core_most = workers > out->core_most ? workers : out->core_most;
        } else if ((size_t)which < caches) {
            const struct profile_cache *cache = &class->of->caches[which];
            if (!cache->pus.count ||
                profile_set_has(&cache->pus, os_index_of(c->view, c->leaves[w]))) {
                look_at_cache(cache, workers, out, holders);
            }
        } else if (class->families[which].rule == MAP_RULE_MEMORY) {
            look_at_memory(c, w, (uint32_t)((size_t)which - caches), workers, out);
        }
    }
}

static void sum_memory(const struct counting *c, struct map_figures *out)
{
    double sum = 0;
    for (size_t w = 0; w < c->workers; w++) {
        const double alone = profile_memory_alone(map_view_class(c->view, c->leaves[w])->of,
                                                  os_index_of(c->view, c->leaves[w]));
        double share = c->memory[w] < 0 || c->memory[w] > alone ? alone : c->memory[w];
        sum += share;
        bool least = w == 0 || share < out->memory_worst_bytes_per_s;
        out->memory_worst_bytes_per_s = least ? share : out->memory_worst_bytes_per_s;
    }
    out->memory_mean_bytes_per_s = sum / (double)c->workers;
}

int map_figures_of(struct map_view *view, const uint32_t *leaves, size_t count,
                   struct map_figures *out)
{
    struct counting c = {.view = view, .leaves = leaves, .workers = count};
    c.count = map_arena_get(&view->arena, view->leaf_count, sizeof *c.count);
    c.memory = map_arena_get(&view->arena, count, sizeof *c.memory);
    TRY(map_arena_check(&view->arena));
    struct map_figures figures = {0};
    size_t holders[MAP_FIGURE_LEVELS] = {0}, families = 0;
    for (size_t w = 0; w < count; w++) {
        c.memory[w] = -1;
    }
    for (size_t i = 0; i < view->class_count; i++) {
        families =
            view->classes[i].family_count > families ? view->classes[i].family_count : families;
    }
    for (int which = MAP_CORES; which < (int)families; which++) {
        look_at_relation(&c, which, &figures, holders);
    }
    for (size_t level = 0; level < MAP_FIGURE_LEVELS; level++) {
        figures.cache_mean_bytes[level] /= holders[level] ? (double)holders[level] : 1;
    }
    sum_memory(&c, &figures);
    neighbours(view, leaves, count, &figures);
    *out = figures;
    return 0;
}

int map_ordinary_copies(struct map_view *view, size_t workers, double bytes_per_s, double *out)
{
    const struct profile_memory *memory = &view->classes[0].of->memory;
    const struct profile_kernel_rate *copy = profile_kernel_rate(memory, PROFILE_COPY);
    const size_t together = memory->kernel_pus.count;
    struct map_figures levels = {.memory_mean_bytes_per_s = memory->reference_bytes_per_s};
    *out = 0;
    if (!copy || !(bytes_per_s > 0)) {
        return 0;
    }
    double each = copy->bytes_per_s;
    if (together && copy->together_bytes_per_s > 0) {
        uint32_t *leaves = map_arena_get(&view->arena, together, sizeof *leaves);
        TRY(map_arena_check(&view->arena));
        for (size_t i = 0; i < together; i++) {
            leaves[i] = map_view_leaf(view, memory->kernel_pus.ids[i]);
        }
        TRY(map_figures_of(view, leaves, together, &levels));
        each = copy->together_bytes_per_s / (double)together;
    }
    const double part = bytes_per_s * each / levels.memory_mean_bytes_per_s;
    const double alone = copy->bytes_per_s * (double)workers;
    *out = part < alone ? part : alone;
    return 0;
}
