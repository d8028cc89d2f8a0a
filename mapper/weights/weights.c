/* Algorithm 1 of the 2012 paper: one loop that chooses, by keys (who is where) and weights, with
 * the engine behind it, and the rows of the papers' tables beside it. The rows are sums of their
 * own: what is printed is what the paper adds up, whatever decided. */
#include <errno.h>
#include <string.h>

#include "mapper/map.h"
#include "mapper/weights/weights.h"
#include "profile/scope.h"

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
    TRY(map_arena_check(arena));
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
    const uint32_t node = view->node_of[chosen], first = view->nodes[node].first_leaf;
    const struct map_class *class = map_view_class(view, chosen);
    for (size_t i = 0; i < rows->count; i++) {
        const uint32_t leaf = rows->leaves[i];
        const struct map_family *layer = map_latency_between(view, chosen, leaf);
        rows->sum[MAP_RULE_LATENCY][i] += layer ? layer->value : 0;
        bool beside = leaf != chosen && view->node_of[leaf] == node;
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
        out[w] = map_engine_take(c->engine);
        if (c->rows.explainer) {
            report_row(&c->rows, w, out[w]);
            sum_up(&c->rows, out[w]);
            map_slots_choose(&c->rows.slots, out[w]);
        }
    }
}

static int map_in_view(struct map_view *view, const struct map_request *request, uint32_t *out,
                       const struct map_explainer *explainer, struct servet_error *error)
{
    struct choosing choosing = {.rows.explainer = explainer};
    TRY(map_slots_make(view, request->allowed, request->taken, &choosing.slots, error));
    bool limit = request->known && request->priority == MAP_COMMUNICATION && !request->paper;
    TRY(explainer ? make_rows(view, &choosing.slots, &choosing.rows) : 0);
    TRY(limit ? map_order_limit(view, &choosing.slots, request->workers) : 0);
    TRY(map_engine_make(view, &choosing.engine));
    map_engine_restart(choosing.engine, &choosing.slots);
    choose_all(&choosing, request->workers, out);
    TRY(request->known ? map_order_workers(view, out, request->workers) : 0);
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
    FREED_BY(map_view_free) struct map_view view = {0};
    size_t load = request->workers + (request->taken ? request->taken->count : 0);
    TRY(map_view_make(profile, request->priority, load, &view, error));
    view.sums = request->paper;
    return map_out_of_memory(map_in_view(&view, request, out, explainer, error), error);
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
