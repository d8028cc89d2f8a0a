/* Refusals that name the place, and checks that hold in every part of a profile: numbers in range,
 * groups disjoint and ordered, pairs in order. */
#include "profile/codec/codec.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/model.h"
#include "profile/scope.h"

#define ERROR_WORDS 256 /* of what is wrong, besides the path */

static size_t append_path(const struct json_path *path, char *buffer, size_t size)
{
    if (!path->parent) {
        return (size_t)snprintf(buffer, size, "$");
    }
    size_t used = append_path(path->parent, buffer, size);
    if (used >= size) {
        return used;
    }
    int n = path->key ? snprintf(buffer + used, size - used, ".%s", path->key)
                      : snprintf(buffer + used, size - used, "[%zu]", path->index);
    return used + (size_t)n;
}

const char *profile_json_path_text(const struct json_path *path, char *buffer, size_t size)
{
    append_path(path, buffer, size);
    return buffer;
}

int profile_refuse(struct servet_error *error, const struct json_path *at, const char *key,
                   const char *format, ...)
{
    char path[JSON_PATH_SIZE], what[ERROR_WORDS];
    struct json_path here = JSON_PATH_KEY(at, key);
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return profile_error(error, -EINVAL, "%s: %s",
                         profile_json_path_text(key ? &here : at, path, sizeof path), what);
}

int profile_check_number(const struct json_path *at, const char *key, double value,
                         bool zero_allowed, struct servet_error *error)
{
    return isfinite(value) && (value > 0 || (zero_allowed && value >= 0))
               ? 0
               : profile_refuse(error, at, key, "found %g, expected a %s number", value,
                                zero_allowed ? "finite, not negative" : "finite, positive");
}

int profile_check_integer(const struct json_path *at, const char *key, uint64_t value, uint64_t low,
                          uint64_t high, struct servet_error *error)
{
    return value >= low && value <= high
               ? 0
               : profile_refuse(error, at, key, "found %llu, expected an integer from %llu to %llu",
                                (unsigned long long)value, (unsigned long long)low,
                                (unsigned long long)high);
}

static int check_group(const struct json_path *at, const struct profile_relation *relation,
                       size_t group, const struct profile_set *members, uint32_t *owner,
                       struct servet_error *error)
{
    const struct profile_set *set = &relation->groups[group];
    if (!set->count) {
        return profile_refuse(error, at, NULL,
                              "found an empty group, expected at least one member");
    }
    if (group && set->ids[0] < relation->groups[group - 1].ids[0]) {
        return profile_refuse(error, at, NULL,
                              "expected groups in the order of their lowest members");
    }
    for (size_t i = 0; i < set->count; i++) {
        size_t place = profile_set_position(members, set->ids[i]);
        if (place == members->count) {
            return profile_refuse(error, at, NULL,
                                  "found %u, expected only numbers that the profile speaks of",
                                  set->ids[i]);
        }
        if (owner[place]) {
            return profile_refuse(error, at, NULL,
                                  "found %u, which is in group %u too; expected disjoint groups",
                                  set->ids[i], owner[place] - 1);
        }
        owner[place] = (uint32_t)group + 1;
    }
    return 0;
}

int profile_check_pairs(const struct json_path *at, const void *items, size_t size, size_t count,
                        const struct profile_set *members, struct servet_error *error)
{
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        const struct profile_pair *pair = (const void *)((const char *)items + i * size);
        const uint64_t place = (uint64_t)pair->a << 32 | pair->b;
        struct json_path item = JSON_PATH_ITEM(at, i);
        if (pair->a >= pair->b) {
            return profile_refuse(error, &item, NULL,
                                  "found [%u, %u], expected the lower number first", pair->a,
                                  pair->b);
        }
        if (!profile_set_has(members, pair->a) || !profile_set_has(members, pair->b)) {
            return profile_refuse(
                error, &item, NULL,
                "found [%u, %u], expected only numbers that the profile speaks of", pair->a,
                pair->b);
        }
        if (place <= before) {
            return profile_refuse(error, &item, NULL,
                                  "expected pairs in ascending order, each once");
        }
        before = place;
    }
    return 0;
}

int profile_check_relation(const struct json_path *at, const struct profile_relation *relation,
                           const struct profile_set *members, struct servet_error *error)
{
    struct json_path groups = JSON_PATH_KEY(at, "groups"), pairs = JSON_PATH_KEY(at, "pairs");
    FREED uint32_t *owner = calloc(members->count + 1, sizeof *owner);
    if (!owner) {
        return profile_error(error, -ENOMEM, "%s", strerrordesc_np(ENOMEM));
    }
    for (size_t i = 0; i < relation->group_count; i++) {
        TRY(check_group(&JSON_PATH_ITEM(&groups, i), relation, i, members, owner, error));
    }
    return profile_check_pairs(&pairs, relation->pairs, sizeof *relation->pairs,
                               relation->pair_count, members, error);
}
