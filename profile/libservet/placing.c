/* Placing, for programs: the mapper's answers behind servet.h. Nothing is decided here; PU numbers
 * are checked and translated, so that a program and servet-map(1) that ask one question get one
 * answer. Only the mapper's core is linked: no MPI, no Scotch. */
#include <errno.h>
#include <stdlib.h>

#include "mapper/map.h"
#include "mapper/worth/worth.h"
#include "profile/query.h"
#include "profile/servet.h"

/* -- mapping -- */

static int set_of(const servet_profile *profile, const char *name, const uint32_t *pus,
                  size_t count, struct profile_set *out, struct servet_error *error)
{
    struct profile_place place;
    for (size_t i = 0; i < count; i++) {
        if (!profile_locate(profile, pus[i], &place)) {
            return profile_error(error, -EINVAL, "%s: expected PUs of the profile, got %u", name,
                                 pus[i]);
        }
    }
    int rc = profile_set_from_array(pus, count, out);
    return rc < 0 ? profile_error(error, rc, "out of memory") : 0;
}

static int map_sets(const servet_profile *profile, const struct servet_map_request *request,
                    const struct profile_set *allowed, const struct profile_set *taken,
                    uint32_t *pus, struct servet_error *error)
{
    enum map_priority priority =
        request->priority == SERVET_COMMUNICATION ? MAP_COMMUNICATION : MAP_MEMORY;
    if (request->threads) {
        const struct map_domain_request ranks = {.priority = priority,
                                                 .ranks = request->ranks,
                                                 .threads = request->threads,
                                                 .allowed = allowed,
                                                 .taken = taken};
        return map_domains(profile, &ranks, pus, error);
    }
    const struct map_request workers = {.priority = priority,
                                        .workers = request->ranks,
                                        .allowed = allowed,
                                        .taken = taken,
                                        .known = !request->one_by_one};
    return map_workers(profile, &workers, pus, NULL, error);
}

int servet_map(const servet_profile *profile, const struct servet_map_request *request,
               uint32_t *pus, struct servet_error *error)
{
    struct profile_set allowed = {0}, taken = {0};
    if (request->priority != SERVET_MEMORY && request->priority != SERVET_COMMUNICATION) {
        return profile_error(error, -EINVAL,
                             "priority: expected SERVET_MEMORY or "
                             "SERVET_COMMUNICATION");
    }
    int rc = set_of(profile, "allowed", request->allowed,
                    request->allowed ? request->allowed_count : 0, &allowed, error);
    if (rc == 0) {
        rc = set_of(profile, "taken", request->taken, request->taken ? request->taken_count : 0,
                    &taken, error);
    }
    if (rc == 0) {
        rc = map_sets(profile, request, request->allowed ? &allowed : NULL, &taken, pus, error);
    }
    profile_set_free(&allowed);
    profile_set_free(&taken);
    return rc;
}

/* -- how many -- */

/* The PUs (OS indices) whose memory is meant; NULL: the PU is in no such group. */
static const struct profile_set *scope_of(const struct profile_place *place, int scope)
{
    const struct profile_class *of = place->node_class;
    if (scope == SERVET_NODE) {
        return &of->pus;
    }
    if (scope == SERVET_PACKAGE) {
        return profile_group_of(&of->packages, place->os_index);
    }
    return scope >= 0 && (size_t)scope < of->memory.level_count
               ? profile_group_of(&of->memory.levels[scope].collisions, place->os_index)
               : NULL;
}

int servet_workers_worth(const servet_profile *profile, uint32_t pu, int scope, uint32_t *pus,
                         struct servet_worth *out, struct servet_error *error)
{
    struct profile_place place;
    if (!profile_locate(profile, pu, &place)) {
        return profile_error(error, -ENOENT, "expected a PU of the profile, got %u", pu);
    }
    const struct profile_set *group = scope_of(&place, scope);
    if (!group) {
        return profile_error(error, -ENOENT, "PU %u: expected a PU of a %s, scope %d", pu,
                             scope < 0 ? "package" : "memory overhead level", scope);
    }
    uint32_t *places = calloc(group->count, sizeof *places);
    if (!places) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    struct map_worth worth;
    int rc = map_worth(place.node_class, group, places, &worth, error);
    uint32_t first = pu - place.os_index;
    for (size_t i = 0; rc == 0 && pus && i < worth.workers; i++) {
        pus[i] = first + places[i];
    }
    free(places);
    if (rc == 0) {
        *out = (struct servet_worth){(uint32_t)worth.workers, worth.bytes_per_s,
                                     worth.most_bytes_per_s, worth.measured_workers};
    }
    return rc;
}

uint32_t servet_messages_worth(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    struct profile_place a, b;
    struct profile_link link;
    bool found = profile_locate(profile, pu_a, &a) && profile_locate(profile, pu_b, &b) &&
                 profile_link_of(profile, &a, &b, &link);
    return found && profile->measured ? map_messages_worth(link.layer, NULL) : 0;
}
