/* Placing, for programs: the mapper's answers behind servet.h. Nothing is decided here; PU numbers
 * are checked and translated, so that a program and servet-map(1) that ask one question get one
 * answer. Only the mapper's core is linked: no MPI. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "mapper/map.h"
#include "mapper/traffic/traffic.h"
#include "mapper/worth/worth.h"
#include "profile/base/control_groups.h"
#include "profile/query.h"
#include "profile/scope.h"
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

int servet_map(const servet_profile *profile, const struct servet_map_request *request,
               uint32_t *pus, struct servet_error *error)
{
    FREED_BY(profile_set_free) struct profile_set allowed = {0}, taken = {0};
    if (!profile || !request) {
        return profile_error(error, -EINVAL, "%s: expected one, got NULL",
                             profile ? "request" : "profile");
    }
    if (request->priority != SERVET_MEMORY && request->priority != SERVET_COMMUNICATION) {
        return profile_error(error, -EINVAL,
                             "priority: expected SERVET_MEMORY or "
                             "SERVET_COMMUNICATION");
    }
    TRY(set_of(profile, "allowed", request->allowed, request->allowed ? request->allowed_count : 0,
               &allowed, error));
    TRY(set_of(profile, "taken", request->taken, request->taken ? request->taken_count : 0, &taken,
               error));
    const struct map_request asked = {
        .priority = request->priority == SERVET_COMMUNICATION ? MAP_COMMUNICATION : MAP_MEMORY,
        .workers = request->ranks,
        .threads = request->threads,
        .allowed = request->allowed ? &allowed : NULL,
        .taken = &taken,
        .known = !request->one_by_one};
    return request->threads ? map_domains(profile, &asked, pus, error)
                            : map_workers(profile, &asked, pus, NULL, error);
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
    FREED uint32_t *places = calloc(group->count, sizeof *places);
    if (!places) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    struct map_worth worth;
    TRY(map_worth(place.node_class, group, places, &worth, error));
    for (size_t i = 0; pus && i < worth.workers; i++) {
        pus[i] = pu - place.os_index + places[i];
    }
    *out = (struct servet_worth){(uint32_t)worth.workers, worth.bytes_per_s, worth.most_bytes_per_s,
                                 worth.measured_workers};
    return 0;
}

uint32_t servet_messages_worth(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b)
{
    struct profile_link link;
    return servet_measured(profile) && profile_link_of(profile, pu_a, pu_b, &link)
               ? map_messages_worth(link.layer, NULL)
               : 0;
}

uint32_t servet_quota_workers(void)
{
    double cpus;
    return profile_quota_read("", &cpus) == 0 ? profile_quota_workers(cpus) : 0;
}

/* -- new numbers for the ranks of a running program, for callers of MPI_Comm_split and
 * MPI_Cart_create -- */

/* Ranks above this are refused: the callers' matrices have a number for every pair. Larger jobs are
 * mapped before they start, by servet-map --matrix. */
#define RANKS_LIMIT 16384u

/* Without traffic ranks that follow each other talk. 0 or -ENOMEM. */
static int matrix_of(const double *traffic, uint32_t ranks, struct map_matrix *out)
{
    const size_t all = traffic ? (size_t)ranks * ranks : ranks - 1;
    size_t some = traffic ? 0 : all, count = 0;
    for (size_t i = 0; traffic && i < all; i++) {
        some += traffic[i] > 0;
    }
    FREED struct map_entry *entries = calloc(some + 1, sizeof *entries);
    for (size_t i = 0; entries && i < all; i++) {
        if (!traffic) {
            entries[count++] = (struct map_entry){(uint32_t)i, (uint32_t)i + 1, 1};
        } else if (traffic[i] > 0) {
            entries[count++] =
                (struct map_entry){(uint32_t)(i / ranks), (uint32_t)(i % ranks), traffic[i]};
        }
    }
    return entries ? map_matrix_make(ranks, entries, count, out) : -ENOMEM;
}

static int order_ranks(struct map_view *view, const uint32_t *pus, const struct map_matrix *matrix,
                       uint32_t *order)
{
    const uint32_t ranks = matrix->ranks;
    uint32_t *leaves = map_arena_get(&view->arena, ranks, sizeof *leaves);
    uint32_t *placed = map_arena_get(&view->arena, ranks, sizeof *placed);
    struct map_traffic_seconds seconds;
    if (!leaves || !placed) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < ranks; i++) {
        leaves[i] = map_view_leaf(view, pus[i]);
    }
    view->latencies_known = false; /* traffic has any unit: it is weighed by latency, not timed */
    if (map_place_ranks(view, matrix, leaves, placed, &seconds) < 0) {
        return -ENOMEM;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        order[placed[r]] = r;
    }
    return 0;
}

static int check_ranks(const servet_profile *profile, const uint32_t *pus, uint32_t ranks,
                       const double *traffic, struct servet_error *error)
{
    struct profile_place place;
    if (!ranks || ranks > RANKS_LIMIT) {
        return profile_error(error, -EINVAL, "%u ranks: expected 1 to %u", ranks, RANKS_LIMIT);
    }
    for (size_t i = 0; traffic && i < (size_t)ranks * ranks; i++) {
        if (!(traffic[i] >= 0) || !isfinite(traffic[i])) {
            return profile_error(error, -EINVAL,
                                 "traffic from rank %zu to rank %zu: expected a number from 0",
                                 i / ranks, i % ranks);
        }
    }
    for (uint32_t i = 0; i < ranks; i++) {
        if (!profile_locate(profile, pus[i], &place)) {
            return profile_error(error, -EINVAL, "rank %u: expected a PU of the profile, got %u", i,
                                 pus[i]);
        }
    }
    return 0;
}

int servet_rank_order(const servet_profile *profile, const uint32_t *pus, uint32_t ranks,
                      const double *traffic, uint32_t *order, struct servet_error *error)
{
    FREED_BY(map_matrix_free) struct map_matrix matrix = {0};
    FREED_BY(map_view_free) struct map_view view = {0};
    TRY(check_ranks(profile, pus, ranks, traffic, error));
    TRY(map_view_make(profile, MAP_COMMUNICATION, ranks, &view, error));
    if (matrix_of(traffic, ranks, &matrix) < 0 || order_ranks(&view, pus, &matrix, order) < 0) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    return 0;
}
