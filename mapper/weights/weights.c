/* Algorithm 1 of the 2012 paper: one loop that chooses, with one of two engines behind it, and the
 * rows of the papers' tables beside it. The rows are sums of their own: what is printed is what the
 * paper adds up, whatever decided. */
#include <errno.h>
#include <string.h>

#include "mapper/map.h"
#include "mapper/weights/weights.h"

/* -- the rows of the papers' tables -- */

struct rows {
    const struct map_explainer *explainer;
    struct map_slots slots; /* as they were asked for: the limit to a group shows in no table */
    struct map_exact exact; /* its sums: what was added since the last row */
    int64_t *total;         /* by leaf: the sum of all rules so far */
    uint32_t *leaves;       /* the allowed ones, in the order of the row */
    size_t count;
    uint32_t *pus;
    bool *taken;
    int64_t *shown[MAP_RULE_COUNT + 1]; /* rules 1 to 3 and total, by place in the row */
};

static int make_rows(struct map_view *view, const struct map_slots *slots, struct rows *rows)
{
    struct map_arena *arena = &view->arena;
    uint32_t leaves = view->leaf_count;
    if (map_exact_make(view, true, &rows->exact) < 0) {
        return -ENOMEM;
    }
    rows->slots = (struct map_slots){.view = view};
    rows->slots.key = map_arena_get(arena, leaves, sizeof *rows->slots.key);
    rows->total = map_arena_get(arena, leaves, sizeof *rows->total);
    rows->leaves = map_arena_get(arena, leaves, sizeof *rows->leaves);
    rows->pus = map_arena_get(arena, leaves, sizeof *rows->pus);
    rows->taken = map_arena_get(arena, leaves, sizeof *rows->taken);
    bool all = rows->slots.key && rows->total && rows->leaves && rows->pus && rows->taken;
    for (int r = 0; r <= MAP_RULE_COUNT; r++) {
        rows->shown[r] = map_arena_get(arena, leaves, sizeof *rows->shown[r]);
        all = all && rows->shown[r];
    }
    if (!all) {
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

/* Takes over what was added since the last row; a PU that cannot be chosen now shows nothing. */
static void fill_row(struct rows *rows)
{
    uint32_t fewest = UINT32_MAX;
    for (size_t i = 0; i < rows->count; i++) {
        uint32_t workers = map_key_workers(rows->slots.key[rows->leaves[i]]);
        fewest = workers < fewest ? workers : fewest;
    }
    for (size_t i = 0; i < rows->count; i++) {
        uint32_t leaf = rows->leaves[i];
        rows->taken[i] = map_key_workers(rows->slots.key[leaf]) > fewest;
        for (int r = 0; r < MAP_RULE_COUNT; r++) {
            rows->total[leaf] += rows->exact.sum[r][leaf];
            rows->shown[r][i] = rows->taken[i] ? 0 : rows->exact.sum[r][leaf];
        }
        rows->shown[MAP_RULE_COUNT][i] = rows->taken[i] ? 0 : rows->total[leaf];
    }
    for (int r = 0; r < MAP_RULE_COUNT; r++) {
        memset(rows->exact.sum[r], 0, rows->exact.view->leaf_count * sizeof *rows->exact.sum[r]);
    }
}

/* The leaf that the paper's sums would choose: lowest key, then lowest sum, then lowest PU. */
static uint32_t lowest_sum(const struct rows *rows)
{
    uint32_t best = rows->leaves[0];
    for (size_t i = 1; i < rows->count; i++) {
        uint32_t leaf = rows->leaves[i];
        map_key key = rows->slots.key[leaf], least = rows->slots.key[best];
        if (key < least || (key == least && rows->total[leaf] < rows->total[best])) {
            best = leaf;
        }
    }
    return best;
}

static void report_row(struct rows *rows, size_t worker, uint32_t chosen)
{
    const struct map_view *view = rows->exact.view;
    fill_row(rows);
    struct map_row row = {.worker = worker,
                          .pus = rows->pus,
                          .pu_count = rows->count,
                          .denominator = view->denominator,
                          .rule1 = rows->shown[MAP_RULE_CACHE],
                          .rule2 = rows->shown[MAP_RULE_MEMORY],
                          .rule3 = rows->shown[MAP_RULE_LATENCY],
                          .total = rows->shown[MAP_RULE_COUNT],
                          .taken = rows->taken,
                          .chosen = view->pu[chosen],
                          .by_sum = view->pu[lowest_sum(rows)]};
    rows->explainer->row(rows->explainer->context, &row);
}

/* -- choosing -- */

struct choosing {
    struct map_view *view;
    struct map_slots slots;
    struct map_tree *tree; /* NULL: the relations do not nest, `exact` is used */
    struct map_exact exact;
    struct rows rows; /* its explainer is NULL: nobody asked */
};

static int make_choosing(struct choosing *c)
{
    int rc = map_tree_make(c->view, &c->slots, &c->tree);
    if (rc == -ENOTSUP) {
        rc = map_exact_make(c->view, false, &c->exact);
    }
    return rc;
}

static void raise_others(struct choosing *c, uint32_t leaf)
{
    if (c->tree) {
        map_tree_raise(c->tree, leaf);
    } else {
        map_exact_raise(&c->exact, leaf);
    }
    if (c->rows.explainer) {
        map_exact_raise(&c->rows.exact, leaf);
    }
}

static void choose_all(struct choosing *c, size_t workers, uint32_t *out)
{
    for (size_t i = 0; i < c->slots.taken_count; i++) {
        raise_others(c, c->slots.taken[i]);
    }
    for (size_t w = 0; w < workers; w++) {
        uint32_t leaf =
            c->tree ? map_tree_lowest(c->tree) : map_slots_lowest(&c->slots, c->exact.weight);
        if (c->rows.explainer) {
            report_row(&c->rows, w, leaf);
        }
        out[w] = leaf;
        map_slots_choose(&c->slots, leaf);
        if (c->rows.explainer) {
            map_slots_choose(&c->rows.slots, leaf);
        }
        raise_others(c, leaf);
    }
}

static int check_request(const struct servet_profile *profile, const struct map_request *request,
                         struct servet_error *error)
{
    if (!profile || request->workers < 1 || request->workers >= MAP_WORKER_LIMIT) {
        return profile_error(error, -EINVAL, "workers: expected a number from 1 to %u, got %zu",
                             MAP_WORKER_LIMIT - 1, request->workers);
    }
    return 0;
}

static int map_in_view(struct map_view *view, const struct map_request *request, uint32_t *out,
                       const struct map_explainer *explainer, struct servet_error *error)
{
    struct choosing choosing = {.view = view, .rows.explainer = explainer};
    int rc = map_slots_make(view, request->allowed, request->taken, &choosing.slots, error);
    if (rc < 0) {
        return rc;
    }
    bool limit = request->known && request->priority == MAP_COMMUNICATION && !request->paper;
    if (explainer && make_rows(view, &choosing.slots, &choosing.rows) < 0) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    if ((limit && map_order_limit(view, &choosing.slots, request->workers) < 0) ||
        make_choosing(&choosing) < 0) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    choose_all(&choosing, request->workers, out);
    if (request->known && map_order_workers(view, out, request->workers) < 0) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    for (size_t w = 0; w < request->workers; w++) {
        out[w] = view->pu[out[w]];
    }
    return 0;
}

int map_workers(const struct servet_profile *profile, const struct map_request *request,
                uint32_t *out, const struct map_explainer *explainer, struct servet_error *error)
{
    int rc = check_request(profile, request, error);
    if (rc < 0) {
        return rc;
    }
    struct map_view view;
    size_t load = request->workers + (request->taken ? request->taken->count : 0);
    rc = map_view_make(profile, request->priority, load, &view, error);
    if (rc < 0) {
        return rc;
    }
    if (request->paper) {
        map_view_use_sums(&view);
    }
    rc = map_in_view(&view, request, out, explainer, error);
    map_view_free(&view);
    return rc;
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
