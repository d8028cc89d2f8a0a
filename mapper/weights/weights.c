/* Algorithm 1 of the 2012 paper: one loop that chooses, by keys (who is where) and weights, with
 * the engine behind it, and the rows of the papers' tables beside it. The rows are sums of their
 * own: what is printed is what the paper adds up, whatever decided. */
#include <errno.h>
#include <string.h>

#include "mapper/map.h"
#include "mapper/weights/weights.h"

/* -- Keys: who is where. A key changes only for the chosen PU and those of its core, so that keys
 * are kept and never worked out again. -- */

struct map_core map_core_of(const struct map_view *view, uint32_t leaf)
{
    const struct map_node *node = &view->nodes[map_view_node(view, leaf)];
    const struct map_groups *cores = &view->classes[node->class_index].cores;
    uint32_t group = cores->group_of[leaf - node->first_leaf];
    if (group == MAP_NONE) {
        return (struct map_core){node->first_leaf, NULL, 0};
    }
    uint32_t start = cores->start[group];
    return (struct map_core){node->first_leaf, cores->members + start,
                             cores->start[group + 1] - start};
}

uint32_t map_core_mates_before(const struct map_view *view, uint32_t leaf, const bool *in)
{
    const struct map_core core = map_core_of(view, leaf);
    uint32_t mates = 0;
    for (uint32_t i = 0; i < core.count && core.first_leaf + core.members[i] < leaf; i++) {
        mates += !in || in[core.first_leaf + core.members[i]];
    }
    return mates;
}

map_key map_slots_node_key(const struct map_slots *slots, uint32_t node)
{
    if (!slots->in_node) {
        return 0;
    }
    const struct map_view *view = slots->view;
    uint32_t room = view->classes[view->nodes[node].class_index].memory_room;
    return slots->in_node[node] && slots->in_node[node] < room ? 0 : MAP_KEY_OTHER_NODE;
}

void map_slots_choose(struct map_slots *slots, uint32_t leaf)
{
    if (slots->in_node) {
        slots->in_node[map_view_node(slots->view, leaf)]++;
    }
    struct map_core core = map_core_of(slots->view, leaf);
    if (slots->key[leaf] != MAP_KEY_NEVER) {
        slots->key[leaf] += MAP_KEY_WORKER + (core.count ? 0 : MAP_KEY_CORE_WORKER);
    }
    for (uint32_t i = 0; i < core.count; i++) {
        map_key *key = &slots->key[core.first_leaf + core.members[i]];
        *key += *key != MAP_KEY_NEVER ? MAP_KEY_CORE_WORKER : 0;
    }
}

static map_key first_key(const struct map_view *view, uint32_t leaf)
{
    const struct map_node *node = &view->nodes[map_view_node(view, leaf)];
    const struct map_class *class = &view->classes[node->class_index];
    uint32_t item = leaf - node->first_leaf;
    return (class->far[item] ? MAP_KEY_FAR : 0) + class->kind[item];
}

/* Both lists ascend, so one walk finds the common PUs. */
static uint32_t allow(const struct map_view *view, const struct profile_set *allowed, map_key *key)
{
    uint32_t count = 0;
    size_t i = 0;
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        while (allowed && i < allowed->count && allowed->ids[i] < view->pu[leaf]) {
            i++;
        }
        bool in = !allowed || (i < allowed->count && allowed->ids[i] == view->pu[leaf]);
        key[leaf] = in ? first_key(view, leaf) : MAP_KEY_NEVER;
        count += in;
    }
    return count;
}

/* PUs that the view does not have are passed over. */
static void take_listed(const struct map_view *view, const struct profile_set *taken,
                        struct map_slots *slots)
{
    for (size_t i = 0; taken && i < taken->count; i++) {
        uint32_t leaf = map_view_leaf(view, taken->ids[i]);
        if (leaf != MAP_NONE) {
            slots->taken[slots->taken_count++] = leaf;
            map_slots_choose(slots, leaf);
        }
    }
}

int map_slots_make(struct map_view *view, const struct profile_set *allowed,
                   const struct profile_set *taken, struct map_slots *out,
                   struct servet_error *error)
{
    struct map_slots slots = {.view = view};
    bool by_node = view->node_count > 1 && view->priority == MAP_MEMORY && !view->sums;
    slots.key = map_arena_get(&view->arena, view->leaf_count, sizeof *slots.key);
    slots.taken = map_arena_get(&view->arena, taken ? taken->count : 0, sizeof *slots.taken);
    uint32_t *in_node = map_arena_get(&view->arena, view->node_count, sizeof *in_node);
    if (view->arena.is_short) {
        return -ENOMEM;
    }
    if (!allow(view, allowed, slots.key)) {
        return profile_error(error, -EINVAL,
                             "allowed PUs: expected at least one PU of the profile");
    }
    take_listed(view, taken, &slots);
    slots.in_node = by_node ? in_node : NULL;
    *out = slots;
    return 0;
}

/* -- the rows of the papers' tables -- */

struct rows {
    const struct map_explainer *explainer;
    const struct map_view *view;
    struct map_slots slots; /* as they were asked for: the limit to a group shows in no table */
    /* The rest by place in the row: what each rule added since the last row; all of them so far. */
    int64_t *sum[MAP_RULE_COUNT + 1];
    uint32_t *leaves, *pus;
    size_t count;
    bool *taken;
};

static int make_rows(struct map_view *view, const struct map_slots *slots, struct rows *rows)
{
    struct map_arena *arena = &view->arena;
    uint32_t leaves = view->leaf_count;
    rows->view = view;
    rows->slots = (struct map_slots){.view = view};
    rows->slots.key = map_arena_get(arena, leaves, sizeof *rows->slots.key);
    rows->leaves = map_arena_get(arena, leaves, sizeof *rows->leaves);
    rows->pus = map_arena_get(arena, leaves, sizeof *rows->pus);
    rows->taken = map_arena_get(arena, leaves, sizeof *rows->taken);
    for (int r = 0; r <= MAP_RULE_COUNT; r++) {
        rows->sum[r] = map_arena_get(arena, leaves, sizeof *rows->sum[r]);
    }
    if (arena->is_short) {
        return -ENOMEM;
    }
    memcpy(rows->slots.key, slots->key, leaves * sizeof *slots->key);
    for (uint32_t leaf = 0; leaf < leaves; leaf++) {
        if (slots->key[leaf] != MAP_KEY_NEVER) {
            rows->pus[rows->count] = view->pu[leaf];
            rows->leaves[rows->count++] = leaf;
        }
    }
    return 0;
}

/* Takes over what was added since the last row. */
static void fill_row(struct rows *rows)
{
    uint32_t fewest = UINT32_MAX;
    for (size_t i = 0; i < rows->count; i++) {
        uint32_t workers = map_key_workers(rows->slots.key[rows->leaves[i]]);
        fewest = workers < fewest ? workers : fewest;
    }
    for (size_t i = 0; i < rows->count; i++) {
        rows->taken[i] = map_key_workers(rows->slots.key[rows->leaves[i]]) > fewest;
        for (int r = 0; r < MAP_RULE_COUNT; r++) {
            rows->sum[MAP_RULE_COUNT][i] += rows->sum[r][i];
        }
    }
}

/* The leaf that the paper's sums would choose: lowest key, then lowest sum, then lowest PU. */
static uint32_t lowest_sum(const struct rows *rows)
{
    const int64_t *total = rows->sum[MAP_RULE_COUNT];
    size_t best = 0;
    for (size_t i = 1; i < rows->count; i++) {
        map_key key = rows->slots.key[rows->leaves[i]], least = rows->slots.key[rows->leaves[best]];
        if (key < least || (key == least && total[i] < total[best])) {
            best = i;
        }
    }
    return rows->leaves[best];
}

/* Adds what the choice does to all others, pair by pair. A class's families end with the packages,
 * which are no rule, and the layers. */
static void sum_up(struct rows *rows, uint32_t chosen)
{
    const struct map_view *view = rows->view;
    const uint32_t node = map_view_node(view, chosen), first = view->nodes[node].first_leaf;
    const struct map_class *class = map_view_class(view, chosen);
    for (size_t i = 0; i < rows->count; i++) {
        const uint32_t leaf = rows->leaves[i];
        const struct map_family *layer = map_latency_between(view, chosen, leaf);
        rows->sum[MAP_RULE_LATENCY][i] += layer ? layer->value : 0;
        bool beside = leaf != chosen && map_view_node(view, leaf) == node;
        const struct map_family *family = class->families, *end = family + class->family_count;
        for (; beside && family < end && family->rule < MAP_RULE_LATENCY; family++) {
            bool related = map_groups_related(&family->groups, chosen - first, leaf - first);
            rows->sum[family->rule][i] += related ? family->value : 0;
        }
    }
}

static void report_row(struct rows *rows, size_t worker, uint32_t chosen)
{
    const struct map_view *view = rows->view;
    fill_row(rows);
    struct map_row row = {.worker = worker,
                          .pus = rows->pus,
                          .pu_count = rows->count,
                          .denominator = view->denominator,
                          .rule1 = rows->sum[MAP_RULE_CACHE],
                          .rule2 = rows->sum[MAP_RULE_MEMORY],
                          .rule3 = rows->sum[MAP_RULE_LATENCY],
                          .total = rows->sum[MAP_RULE_COUNT],
                          .taken = rows->taken,
                          .chosen = view->pu[chosen],
                          .by_sum = view->pu[lowest_sum(rows)]};
    rows->explainer->row(rows->explainer->context, &row);
    for (int r = 0; r < MAP_RULE_COUNT; r++) {
        memset(rows->sum[r], 0, rows->count * sizeof *rows->sum[r]);
    }
}

/* -- choosing -- */

struct choosing {
    struct map_slots slots;
    struct map_engine *engine;
    struct rows rows; /* its explainer is NULL: not asked for */
};

static void choose_all(struct choosing *c, size_t workers, uint32_t *out)
{
    for (size_t i = 0; i < c->slots.taken_count; i++) {
        map_engine_raise(c->engine, c->slots.taken[i]);
        if (c->rows.explainer) {
            sum_up(&c->rows, c->slots.taken[i]);
        }
    }
    for (size_t w = 0; w < workers; w++) {
        out[w] = map_engine_lowest(c->engine);
        if (c->rows.explainer) {
            report_row(&c->rows, w, out[w]);
            sum_up(&c->rows, out[w]);
            map_slots_choose(&c->rows.slots, out[w]);
        }
        map_slots_choose(&c->slots, out[w]);
        map_engine_raise(c->engine, out[w]);
    }
}

static int map_in_view(struct map_view *view, const struct map_request *request, uint32_t *out,
                       const struct map_explainer *explainer, struct servet_error *error)
{
    struct choosing choosing = {.rows.explainer = explainer};
    int rc = map_slots_make(view, request->allowed, request->taken, &choosing.slots, error);
    if (rc < 0) {
        return rc;
    }
    bool limit = request->known && request->priority == MAP_COMMUNICATION && !request->paper;
    if ((explainer && make_rows(view, &choosing.slots, &choosing.rows) < 0) ||
        (limit && map_order_limit(view, &choosing.slots, request->workers) < 0) ||
        map_engine_make(view, &choosing.engine) < 0) {
        return -ENOMEM;
    }
    map_engine_restart(choosing.engine, &choosing.slots);
    choose_all(&choosing, request->workers, out);
    if (request->known && map_order_workers(view, out, request->workers) < 0) {
        return -ENOMEM;
    }
    for (size_t w = 0; w < request->workers; w++) {
        out[w] = view->pu[out[w]];
    }
    return 0;
}

struct map_request map_request_of(enum map_priority priority, size_t workers)
{
    return (struct map_request){.priority = priority, .workers = workers, .known = true};
}

int map_workers(const struct servet_profile *profile, const struct map_request *request,
                uint32_t *out, const struct map_explainer *explainer, struct servet_error *error)
{
    if (!profile || request->workers < 1 || request->workers >= MAP_WORKER_LIMIT) {
        return profile_error(error, -EINVAL, "workers: expected a number from 1 to %u, got %zu",
                             MAP_WORKER_LIMIT - 1, request->workers);
    }
    struct map_view view;
    size_t load = request->workers + (request->taken ? request->taken->count : 0);
    int rc = map_view_make(profile, request->priority, load, &view, error);
    if (rc < 0) {
        return rc;
    }
    view.sums = request->paper;
    rc = map_in_view(&view, request, out, explainer, error);
    map_view_free(&view);
    return map_out_of_memory(rc, error);
}

const struct servet_profile *map_one_node(const struct profile_class *node_class,
                                          struct map_node_view *view)
{
    *view = (struct map_node_view){.range = {.count = 1}, .node_class = *node_class};
    view->profile.classes = &view->node_class;
    view->profile.class_count = 1;
    view->profile.nodes = &view->range;
    view->profile.node_range_count = 1;
    return &view->profile;
}
