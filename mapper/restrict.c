#include "restrict.h"

#include <errno.h>
#include <stdlib.h>

#include "view.h"

/* Kind of a leaf, with MAP_KIND_LAST standing for the highest number that its class has. */
static bool kind_wanted(const struct map_class *class, uint32_t item, int kind)
{
    if (kind < 0 || !class->of->kind_count) {
        return kind <= 0 || kind == MAP_KIND_LAST; /* all cores are of one kind */
    }
    int last = (int)class->of->kind_count - 1;
    return class->kind[item] == (kind == MAP_KIND_LAST ? last : kind);
}

/* PUs of the leaf's core before it that are in already. */
static uint32_t mates_before(const struct map_class *class, uint32_t first_leaf, uint32_t item, const bool *in)
{
    uint32_t group = class->cores.group_of[item], mates = 0;
    for (uint32_t i = group == MAP_NONE ? 0 : class->cores.start[group];
         group != MAP_NONE && i < class->cores.start[group + 1] && class->cores.members[i] < item; i++) {
        mates += in[first_leaf + class->cores.members[i]];
    }
    return mates;
}

static int restrict_view(struct map_view *view, const struct map_limits *limits, struct profile_set *out,
                         struct servet_error *error)
{
    bool *in = map_arena_get(&view->arena, view->leaf_count, sizeof *in);
    uint32_t *pus = map_arena_get(&view->arena, view->leaf_count, sizeof *pus);
    size_t count = 0;
    if (!in || !pus) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        const struct map_node *node = &view->nodes[map_view_node(view, leaf)];
        const struct map_class *class = &view->classes[node->class_index];
        uint32_t item = leaf - node->first_leaf;
        bool listed = !limits->pus || profile_set_has(limits->pus, view->pu[leaf]);
        in[leaf] = listed && kind_wanted(class, item, limits->kind) &&
                   (!limits->smt || mates_before(class, node->first_leaf, item, in) < limits->smt);
        if (in[leaf]) {
            pus[count++] = view->pu[leaf];
        }
    }
    if (!count) {
        return profile_error(error, -EINVAL, "allowed PUs: expected at least one PU of the profile%s",
                             limits->kind >= 0 ? " of the kind asked for" : "");
    }
    int rc = profile_set_from_array(pus, count, out);
    return rc < 0 ? profile_error(error, rc, "out of memory") : 0;
}

int map_restrict(const struct servet_profile *profile, const struct map_limits *limits, struct profile_set *out,
                 struct servet_error *error)
{
    struct map_view view;
    int rc = map_view_make(profile, MAP_MEMORY, 1, &view, error);
    if (rc < 0) {
        return rc;
    }
    rc = restrict_view(&view, limits, out, error);
    map_view_free(&view);
    return rc;
}
