/* Network cards of ranks whose PUs are chosen, and the list of all devices that ranks got. */
#include <errno.h>
#include <stdlib.h>

#include "mapper/devices/choice.h"
#include "profile/query.h"
#include "profile/scope.h"

int map_choice_hold(struct map_choice *c, size_t rank, const struct profile_device *device)
{
    struct map_hold *hold = map_arena_get(c->arena, 1, sizeof *hold);
    TRY(map_arena_check(c->arena));
    *hold = (struct map_hold){device, c->holds[rank]};
    c->holds[rank] = hold;
    return 0;
}

/* -- how near -- */

enum map_distance map_distance_of(const struct profile_class *of, const struct profile_set *near,
                                  uint32_t pu)
{
    const struct profile_set *package = profile_group_of(&of->packages, pu);
    if (profile_set_has(near, pu)) {
        return MAP_BESIDE;
    }
    for (size_t n = 0; n < of->numa_count; n++) {
        if (profile_set_has(&of->numa[n].pus, pu) && profile_set_overlaps(&of->numa[n].pus, near)) {
            return MAP_SAME_NODE;
        }
    }
    return package && profile_set_overlaps(package, near) ? MAP_SAME_PACKAGE : MAP_ELSEWHERE;
}

enum map_distance map_choice_distance(const struct map_choice *c,
                                      const struct profile_device *device, size_t rank)
{
    enum map_distance least = MAP_ELSEWHERE;
    for (size_t i = c->first[rank]; i < c->first[rank + 1]; i++) {
        struct profile_place place;
        profile_locate(c->profile, c->pus[i], &place);
        enum map_distance distance =
            map_distance_of(place.node_class, &device->pus, place.os_index);
        least = distance < least ? distance : least;
    }
    return least;
}

/* -- cards -- */

/* The cards of a node, and its ranks [begin, end). */
struct cards {
    const struct profile_device **nics;
    size_t count;
    size_t *load; /* by card: its ranks */
    size_t begin, end;
    size_t *more; /* by rank: cards beyond its first */
};

/* The cards of a class that carry messages, or all where none is known to. */
static size_t find_nics(const struct profile_class *of, const struct profile_device **nics)
{
    size_t count = 0;
    for (int fabric = 1; fabric >= 0 && !count; fabric--) {
        for (size_t i = 0; i < of->device_count; i++) {
            const struct profile_device *device = &of->devices[i];
            if (device->kind == PROFILE_NIC && !device->down && (!fabric || device->fabric)) {
                nics[count++] = device;
            }
        }
    }
    return count;
}

static int give_nearest(struct map_choice *c, const struct cards *cards)
{
    for (size_t rank = cards->begin; rank < cards->end; rank++) {
        size_t best = 0;
        enum map_distance least = map_choice_distance(c, cards->nics[0], rank);
        for (size_t i = 1; i < cards->count; i++) {
            enum map_distance distance = map_choice_distance(c, cards->nics[i], rank);
            if (distance < least || (distance == least && cards->load[i] < cards->load[best])) {
                least = distance;
                best = i;
            }
        }
        cards->load[best]++;
        TRY(map_choice_hold(c, rank, cards->nics[best]));
    }
    return 0;
}

/* A card that no rank has goes to the rank beside it, or in its NUMA node, that has got fewest of
 * those that were left. */
static int give_left_over(struct map_choice *c, const struct cards *cards,
                          const struct profile_device *nic)
{
    size_t best = cards->end;
    enum map_distance least = MAP_SAME_PACKAGE;
    for (size_t rank = cards->begin; rank < cards->end; rank++) {
        enum map_distance distance = map_choice_distance(c, nic, rank);
        bool fewer = best < cards->end && cards->more[rank] < cards->more[best];
        if (distance < least || (distance == least && fewer)) {
            least = distance;
            best = rank;
        }
    }
    if (best == cards->end) {
        return 0;
    }
    cards->more[best]++;
    return map_choice_hold(c, best, nic);
}

/* Ranks of one node need not follow one another: single threads are placed one by one. Cards are
 * dealt out over each run of them. */
int map_choose_nics(struct map_choice *c, struct servet_error *error)
{
    const size_t ranks = c->request->ranks.workers;
    size_t *more = map_arena_get(c->arena, ranks, sizeof *more);
    for (size_t begin = 0, end; begin < ranks; begin = end) {
        struct profile_place here, there;
        profile_locate(c->profile, c->pus[c->first[begin]], &here);
        for (end = begin + 1; end < ranks; end++) {
            if (!profile_locate(c->profile, c->pus[c->first[end]], &there) ||
                there.node != here.node) {
                break;
            }
        }
        const struct profile_class *of = here.node_class;
        struct cards cards = {.nics = map_arena_get(c->arena, of->device_count + 1, sizeof(void *)),
                              .load =
                                  map_arena_get(c->arena, of->device_count + 1, sizeof *cards.load),
                              .begin = begin,
                              .end = end,
                              .more = more};
        TRY(map_arena_check(c->arena));
        cards.count = find_nics(of, cards.nics);
        if (!cards.count) {
            return profile_error(error, -EINVAL,
                                 "--nics: expected a machine with network cards, none is known");
        }
        TRY(give_nearest(c, &cards));
        for (size_t i = 0; i < cards.count; i++) {
            TRY(cards.load[i] ? 0 : give_left_over(c, &cards, cards.nics[i]));
        }
    }
    return 0;
}

/* -- the list -- */

int map_choice_devices(const struct map_choice *c, struct map_devices *out)
{
    const size_t ranks = c->request->ranks.workers;
    size_t count = 0;
    for (size_t r = 0; r < ranks; r++) {
        for (const struct map_hold *hold = c->holds[r]; hold; hold = hold->before) {
            count++;
        }
    }
    *out = (struct map_devices){.first = calloc(ranks + 1, sizeof *out->first),
                                .held = calloc(count + 1, sizeof *out->held),
                                .count = count};
    if (!out->first || !out->held) {
        map_devices_free(out);
        return -ENOMEM;
    }
    for (size_t r = ranks; r-- > 0;) {
        out->first[r + 1] = count;
        for (const struct map_hold *hold = c->holds[r]; hold; hold = hold->before) {
            bool far = map_choice_distance(c, hold->device, r) > MAP_BESIDE;
            out->held[--count] = (struct map_held){hold->device, far};
        }
    }
    return 0;
}

void map_devices_free(struct map_devices *devices)
{
    free(devices->first);
    free(devices->held);
    *devices = (struct map_devices){0};
}
