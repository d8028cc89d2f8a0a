#include "check_relation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Groups above this size have to nest as a whole; smaller ones may be covered by explicit pairs, which takes
 * size² / 2 look-ups to see. */
#define PAIRWISE_LIMIT 512

static int refuse(struct servet_error *error, const struct json_path *at, const char *what)
{
    char path[JSON_PATH_SIZE];
    return profile_error(error, -EINVAL, "%s: %s", json_path_text(at, path, sizeof path), what);
}

/* Position of `id` in the set, or its count. */
static size_t position(const struct profile_set *set, uint32_t id)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < set->count && set->ids[low] == id ? low : set->count;
}

static int check_group(const struct json_path *at, const struct profile_relation *relation, size_t group,
                       const struct profile_set *members, uint32_t *owner, struct servet_error *error)
{
    char path[JSON_PATH_SIZE];
    const struct profile_set *set = &relation->groups[group];
    if (!set->count) {
        return refuse(error, at, "found an empty group, expected at least one member");
    }
    if (group && set->ids[0] < relation->groups[group - 1].ids[0]) {
        return refuse(error, at, "expected groups in the order of their lowest members");
    }
    for (size_t i = 0; i < set->count; i++) {
        size_t place = position(members, set->ids[i]);
        if (place == members->count) {
            return profile_error(error, -EINVAL, "%s: found %u, expected only numbers that the profile speaks of",
                                 json_path_text(at, path, sizeof path), set->ids[i]);
        }
        if (owner[place]) {
            return profile_error(error, -EINVAL, "%s: found %u, which is in group %u too; expected disjoint groups",
                                 json_path_text(at, path, sizeof path), set->ids[i], owner[place] - 1);
        }
        owner[place] = (uint32_t)group + 1;
    }
    return 0;
}

static int compare_pairs(const struct profile_pair *x, const struct profile_pair *y)
{
    int a = (x->a > y->a) - (x->a < y->a);
    return a ? a : (x->b > y->b) - (x->b < y->b);
}

static int check_pair(const struct json_path *at, const struct profile_relation *relation, size_t index,
                      const struct profile_set *members, struct servet_error *error)
{
    char path[JSON_PATH_SIZE];
    const struct profile_pair *pair = &relation->pairs[index];
    if (pair->a >= pair->b) {
        return profile_error(error, -EINVAL, "%s: found [%u, %u], expected the lower number first",
                             json_path_text(at, path, sizeof path), pair->a, pair->b);
    }
    if (!profile_set_has(members, pair->a) || !profile_set_has(members, pair->b)) {
        return profile_error(error, -EINVAL, "%s: found [%u, %u], expected only numbers that the profile speaks of",
                             json_path_text(at, path, sizeof path), pair->a, pair->b);
    }
    if (index && compare_pairs(&relation->pairs[index - 1], pair) >= 0) {
        return refuse(error, at, "expected pairs in ascending order, each once");
    }
    return 0;
}

int profile_check_relation(const struct json_path *at, const struct profile_relation *relation,
                           const struct profile_set *members, struct relation_owners *out, struct servet_error *error)
{
    struct json_path groups = JSON_PATH_KEY(at, "groups"), pairs = JSON_PATH_KEY(at, "pairs");
    uint32_t *owner = calloc(members->count + 1, sizeof *owner);
    if (!owner) {
        return profile_error(error, -ENOMEM, "%s", strerrordesc_np(ENOMEM));
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < relation->group_count; i++) {
        rc = check_group(&JSON_PATH_ITEM(&groups, i), relation, i, members, owner, error);
    }
    for (size_t i = 0; rc == 0 && i < relation->pair_count; i++) {
        rc = check_pair(&JSON_PATH_ITEM(&pairs, i), relation, i, members, error);
    }
    if (rc < 0) {
        free(owner);
        return rc;
    }
    out->owner = owner;
    return 0;
}

static bool listed(const struct profile_relation *relation, uint32_t a, uint32_t b)
{
    struct profile_pair wanted = {a < b ? a : b, a < b ? b : a};
    size_t low = 0, high = relation->pair_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_pairs(&relation->pairs[middle], &wanted);
        if (order == 0) {
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

static bool related(const struct profile_relation *relation, const struct relation_owners *owners,
                    const struct profile_set *members, uint32_t a, uint32_t b)
{
    uint32_t owner = owners->owner[position(members, a)];
    return (owner && owner == owners->owner[position(members, b)]) || listed(relation, a, b);
}

static bool group_nests(const struct profile_set *group, const struct profile_relation *milder,
                        const struct relation_owners *owners, const struct profile_set *members)
{
    bool whole = true;
    for (size_t i = 1; whole && i < group->count; i++) {
        uint32_t owner = owners->owner[position(members, group->ids[i])];
        whole = owner && owner == owners->owner[position(members, group->ids[0])];
    }
    if (whole || group->count > PAIRWISE_LIMIT) {
        return whole;
    }
    for (size_t i = 0; i < group->count; i++) {
        for (size_t k = i + 1; k < group->count; k++) {
            if (!related(milder, owners, members, group->ids[i], group->ids[k])) {
                return false;
            }
        }
    }
    return true;
}

int profile_check_nesting(const struct json_path *at, const struct profile_relation *worse,
                          const struct profile_relation *milder, const struct relation_owners *owners,
                          const struct profile_set *members, struct servet_error *error)
{
    static const char expected[] = "expected members that collide in every milder level too";
    struct json_path groups = JSON_PATH_KEY(at, "groups"), pairs = JSON_PATH_KEY(at, "pairs");
    for (size_t i = 0; i < worse->group_count; i++) {
        if (!group_nests(&worse->groups[i], milder, owners, members)) {
            return refuse(error, &JSON_PATH_ITEM(&groups, i), expected);
        }
    }
    for (size_t i = 0; i < worse->pair_count; i++) {
        if (!related(milder, owners, members, worse->pairs[i].a, worse->pairs[i].b)) {
            return refuse(error, &JSON_PATH_ITEM(&pairs, i), expected);
        }
    }
    return 0;
}
