#include <errno.h>

#include "mapper/map.h"
#include "mapper/weights/plain.h"
#include "mapper/weights/tree.h"

static int map_plainly(struct map_view *view, struct map_slots *slots, size_t workers,
                       uint32_t *out)
{
    struct map_plain plain;
    if (map_plain_make(&view->arena, view, false, &plain) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < slots->taken_count; i++) {
        map_plain_choose(&plain, slots->taken[i]);
    }
    for (size_t w = 0; w < workers; w++) {
        uint32_t leaf = map_slots_lowest(slots, plain.rule[0]);
        out[w] = view->pu[leaf];
        map_slots_choose(slots, leaf);
        map_plain_choose(&plain, leaf);
    }
    return 0;
}

static int map_by_tree(struct map_view *view, struct map_slots *slots, size_t workers,
                       uint32_t *out)
{
    struct map_tree *tree;
    int rc = map_tree_make(view, slots, &tree);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < slots->taken_count; i++) {
        map_tree_choose(tree, slots->taken[i]);
    }
    for (size_t w = 0; w < workers; w++) {
        uint32_t leaf = map_tree_lowest(tree);
        out[w] = view->pu[leaf];
        map_slots_choose(slots, leaf);
        map_tree_choose(tree, leaf);
    }
    return 0;
}

/* Nested groups go through the tree; anything else through the plain engine, which gives the
 * same. */
static int choose_all(struct map_view *view, struct map_slots *slots, size_t workers, uint32_t *out)
{
    int rc = map_by_tree(view, slots, workers, out);
    return rc == -ENOTSUP ? map_plainly(view, slots, workers, out) : rc;
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

int map_workers(const struct servet_profile *profile, const struct map_request *request,
                uint32_t *out, const struct map_trace *trace, struct servet_error *error)
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
    struct map_slots slots;
    rc = map_slots_make(&view, request->allowed, request->taken, request->workers, &slots, error);
    if (rc == 0) {
        rc = trace ? map_traced(&view, &slots, request->workers, out, trace)
                   : choose_all(&view, &slots, request->workers, out);
        if (rc == -ENOMEM) {
            profile_error(error, rc, "out of memory");
        }
    }
    map_view_free(&view);
    return rc;
}

const struct servet_profile *map_one_node(const struct profile_class *node_class,
                                          struct map_node_view *view)
{
    *view = (struct map_node_view){.range = {.count = 1}};
    /* The model has no const pointers; nothing here writes through this one. */
    view->profile.classes = (struct profile_class *)(uintptr_t)node_class;
    view->profile.class_count = 1;
    view->profile.nodes = &view->range;
    view->profile.node_range_count = 1;
    return &view->profile;
}
