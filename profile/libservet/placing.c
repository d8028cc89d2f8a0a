/* Placing, for programs: the mapper's answers behind servet.h. Nothing is decided here; PU numbers
 * are checked and translated, so that a program and servet-map(1) that ask one question get one
 * answer. Only the mapper's core is linked: no MPI, no Scotch. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    struct map_request workers = map_request_of(priority, request->ranks);
    workers.allowed = allowed;
    workers.taken = taken;
    workers.known = !request->one_by_one;
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

/* -- new numbers for the ranks of a running program, for callers of MPI_Comm_split and
 * MPI_Cart_create. All pairs are looked at, so the number of ranks is bounded; larger jobs are
 * mapped before they start, by servet-map --matrix. -- */

/* Ranks above this are refused: the latencies of all their pairs are looked at. */
#define RANKS_LIMIT 16384u

struct ordering {
    const struct servet_profile *profile;
    const struct profile_place *places; /* by old rank */
    const double *traffic;              /* of new ranks; NULL: neighbours talk */
    double farthest;                    /* distance of a pair that no layer has */
    bool known;                         /* latencies: distances are seconds; else ranks of layers */
    uint32_t ranks;
};

static double distance(const struct ordering *ordering, uint32_t a, uint32_t b)
{
    const struct profile_place *x = &ordering->places[a], *y = &ordering->places[b];
    if (x->node == y->node && x->os_index == y->os_index) {
        return 0;
    }
    struct profile_link link;
    if (!profile_link_of(ordering->profile, x, y, &link)) {
        return ordering->farthest;
    }
    return ordering->known ? link.layer->seconds : link.rank;
}

static double traffic_between(const struct ordering *ordering, uint32_t i, uint32_t j)
{
    if (!ordering->traffic) {
        return i + 1 == j || j + 1 == i;
    }
    return ordering->traffic[(size_t)i * ordering->ranks + j] +
           ordering->traffic[(size_t)j * ordering->ranks + i];
}

/* Cost if old rank sits[i] is new rank i; each pair once. */
static double cost_of(const struct ordering *ordering, const uint32_t *sits)
{
    double cost = 0;
    for (uint32_t i = 0; i < ordering->ranks; i++) {
        uint32_t last = ordering->traffic         ? ordering->ranks
                        : i + 2 < ordering->ranks ? i + 2
                                                  : ordering->ranks;
        for (uint32_t j = i + 1; j < last; j++) {
            double traffic = traffic_between(ordering, i, j);
            cost += traffic > 0 ? traffic * distance(ordering, sits[i], sits[j]) : 0;
        }
    }
    return cost;
}

/* The new rank that talks most to those that have a place; the lowest of equals. `talk` holds these
 * sums. */
static uint32_t next_rank(const struct ordering *ordering, const bool *placed, const double *talk)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < ordering->ranks; i++) {
        if (!placed[i] && (best == UINT32_MAX || talk[i] > talk[best])) {
            best = i;
        }
    }
    return best;
}

/* The free place with the least seconds to the partners; the lowest of equals. */
static uint32_t nearest_place(const struct ordering *ordering, uint32_t rank,
                              const uint32_t *partners, uint32_t count, const uint32_t *sits,
                              const bool *used)
{
    uint32_t best = UINT32_MAX;
    double least = INFINITY;
    for (uint32_t place = 0; place < ordering->ranks; place++) {
        double seconds = 0;
        for (uint32_t k = 0; !used[place] && k < count; k++) {
            seconds += traffic_between(ordering, rank, partners[k]) *
                       distance(ordering, place, sits[partners[k]]);
        }
        if (!used[place] && (best == UINT32_MAX || seconds < least)) {
            best = place;
            least = seconds;
        }
    }
    return best;
}

/* Greedy: the rank with most traffic to the placed ones comes next, as near to them as possible. */
static int place_all(const struct ordering *ordering, uint32_t *sits)
{
    uint32_t n = ordering->ranks;
    bool *placed = calloc(n, sizeof *placed), *used = calloc(n, sizeof *used);
    double *talk = calloc(n, sizeof *talk);
    uint32_t *partners = calloc(n, sizeof *partners), *done = calloc(n, sizeof *done);
    int rc = placed && used && talk && partners && done ? 0 : -ENOMEM;
    for (uint32_t step = 0; rc == 0 && step < n; step++) {
        uint32_t rank = next_rank(ordering, placed, talk), count = 0;
        for (uint32_t k = 0; k < step; k++) {
            if (traffic_between(ordering, rank, done[k]) > 0) {
                partners[count++] = done[k];
            }
        }
        sits[rank] = nearest_place(ordering, rank, partners, count, sits, used);
        used[sits[rank]] = placed[rank] = true;
        done[step] = rank;
        for (uint32_t i = 0; i < n; i++) {
            talk[i] += placed[i] ? 0 : traffic_between(ordering, rank, i);
        }
    }
    free(placed);
    free(used);
    free(talk);
    free(partners);
    free(done);
    return rc;
}

static int check(const double *traffic, uint32_t ranks, struct servet_error *error)
{
    for (size_t i = 0; traffic && i < (size_t)ranks * ranks; i++) {
        if (!(traffic[i] >= 0) || !isfinite(traffic[i])) {
            return profile_error(error, -EINVAL,
                                 "traffic from rank %zu to rank %zu: expected a number from 0",
                                 i / ranks, i % ranks);
        }
    }
    return 0;
}

int servet_rank_order(const servet_profile *profile, const uint32_t *pus, uint32_t ranks,
                      const double *traffic, uint32_t *order, struct servet_error *error)
{
    if (!ranks || ranks > RANKS_LIMIT) {
        return profile_error(error, -EINVAL, "%u ranks: expected 1 to %u", ranks, RANKS_LIMIT);
    }
    struct profile_place *places = calloc(ranks, sizeof *places);
    uint32_t *sits = calloc(ranks, sizeof *sits), *as_is = calloc(ranks, sizeof *as_is);
    int rc = places && sits && as_is ? check(traffic, ranks, error)
                                     : profile_error(error, -ENOMEM, "out of memory");
    for (uint32_t i = 0; rc == 0 && i < ranks; i++) {
        as_is[i] = i;
        if (!profile_locate(profile, pus[i], &places[i])) {
            rc = profile_error(error, -EINVAL, "rank %u: expected a PU of the profile, got %u", i,
                               pus[i]);
        }
    }
    const struct ordering ordering = {
        profile, places, traffic, map_farthest(profile).distance, profile_latencies_known(profile),
        ranks};
    if (rc == 0 && place_all(&ordering, sits) < 0) {
        rc = profile_error(error, -ENOMEM, "out of memory");
    }
    if (rc == 0) {
        bool better = cost_of(&ordering, sits) < cost_of(&ordering, as_is);
        for (uint32_t i = 0; i < ranks; i++) {
            order[better ? sits[i] : i] = i;
        }
    }
    free(places);
    free(sits);
    free(as_is);
    return rc;
}
