/* Makes the view: PUs of all nodes as leaves without gaps, relations as arrays over them, and what
 * each relation adds. Latencies become whole quanta here, once, so that everything after it is
 * integer arithmetic and the same on every machine. */
#include "mapper/weights/weights.h"

#include <stdint.h>
#include <stdlib.h>

#include "profile/query.h"
#include "profile/scope.h"

/* Weight of the rules that the priority favours, and of the others (2012 paper, Section 3: "ten
 * times larger"). */
#define FAVOURED 10
#define OTHER 1

#define QUANTA_PER_SECOND (1 / MAP_LATENCY_QUANTUM_SECONDS)

/* Half of the 64-bit range for a weight, so that the difference of two also fits. */
#define WEIGHT_LIMIT (UINT64_C(1) << 62)

static int64_t quanta_of(double seconds)
{
    const double most = (double)((int64_t)1 << 53); /* exact in a double; eleven days */
    double quanta = seconds * QUANTA_PER_SECOND + 0.5;
    return quanta < most ? (int64_t)quanta : (int64_t)1 << 53;
}

static int64_t weight_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* -- latencies -- */

struct latencies {
    int64_t lowest, highest; /* quanta, shifted */
    int64_t divisor;         /* of all differences */
    int shift;
};

static int64_t denominator_of(const struct latencies *all)
{
    return all->highest > all->lowest ? (all->highest - all->lowest) / all->divisor : 1;
}

/* Goes over every layer of every class and of the network. The divisor of the differences to the
 * lowest so far is that of all differences. */
static struct latencies scan_latencies(const struct servet_profile *profile, int shift)
{
    struct latencies all = {.shift = shift};
    bool any = false;
    for (size_t c = 0; c <= profile->class_count; c++) {
        const struct profile_communication *in =
            c < profile->class_count ? &profile->classes[c].communication : &profile->network;
        for (size_t i = 0; i < in->layer_count; i++) {
            int64_t quanta = quanta_of(profile_layer_distance(profile, in, i)) >> shift;
            all.lowest = any ? all.lowest : quanta;
            all.divisor = weight_gcd(all.divisor, llabs(quanta - all.lowest));
            all.lowest = quanta < all.lowest ? quanta : all.lowest;
            all.highest = quanta > all.highest || !any ? quanta : all.highest;
            any = true;
        }
    }
    return all;
}

static size_t most_families(const struct servet_profile *profile)
{
    size_t most = 0;
    for (size_t c = 0; c < profile->class_count; c++) {
        size_t count = profile->classes[c].cache_count + profile->classes[c].memory.level_count;
        most = count > most ? count : most;
    }
    return most;
}

/* Latencies in units that keep every sum of `load` choices inside a 64-bit weight. */
static struct latencies bounded_latencies(const struct servet_profile *profile, size_t load)
{
    uint64_t per_choice = FAVOURED * ((uint64_t)most_families(profile) + 1);
    int64_t most = (int64_t)(WEIGHT_LIMIT / per_choice / ((uint64_t)load + 1));
    int shift = 0;
    struct latencies all = scan_latencies(profile, shift);
    while (denominator_of(&all) > most && denominator_of(&all) > 1) {
        all = scan_latencies(profile, ++shift);
    }
    return all;
}

static int64_t rule3_value(const struct latencies *all, int64_t factor, double distance)
{
    if (all->highest == all->lowest) {
        return 0; /* one latency: no pair is below the highest */
    }
    return -factor * ((all->highest - (quanta_of(distance) >> all->shift)) / all->divisor);
}

/* -- classes and nodes -- */

/* Where the figures of a weight begin. Rule 3 sums to less than 2^62 quanta (WEIGHT_LIMIT), sharing
 * to less than 2^40 groups (2^24 choices, fewer than 2^16 relations), ranks of last-level caches
 * stay below 2^7 and the workers of a package below 2^16. Memory priority: sharing, latency, ties;
 * communication priority: latency, sharing, ties. */
#define RANK_SHIFT 16
#define LOWER_SHIFT 23
#define SHARING_FIRST_SHIFT 86
#define LATENCY_FIRST_SHIFT 64
#define RANK_MOST ((1u << (LOWER_SHIFT - RANK_SHIFT)) - 1)
/* More workers than that break no tie by packages. */
#define TIE_LOAD_MOST ((1u << RANK_SHIFT) - 1)

struct making {
    struct map_view *view;
    struct latencies latencies;
    int64_t collide, approach; /* A x denominator, B */
    size_t load;
};

static map_weight weight_of_rule(const struct making *making, enum map_rule rule, int64_t value)
{
    bool memory = making->view->priority == MAP_MEMORY;
    if (rule == MAP_TIE_PACKAGE) {
        return map_weight_of(making->load <= TIE_LOAD_MOST, 0);
    }
    if (rule == MAP_RULE_LATENCY) {
        return map_weight_of(value, memory ? LOWER_SHIFT : LATENCY_FIRST_SHIFT);
    }
    return map_weight_of(1, memory ? SHARING_FIRST_SHIFT : LOWER_SHIFT);
}

map_weight map_view_first_weight(const struct map_view *view, uint32_t leaf)
{
    const struct map_node *node = &view->nodes[view->node_of[leaf]];
    uint32_t rank = view->classes[node->class_index].cache_rank[leaf - node->first_leaf];
    rank = rank < RANK_MOST ? rank : RANK_MOST;
    return map_weight_of(view->sums ? 0 : rank, RANK_SHIFT);
}

static int add_family(struct making *making, enum map_rule rule, int64_t value,
                      const struct profile_relation *relation, const struct profile_set *ids,
                      struct map_family *family)
{
    family->rule = rule;
    family->value = value;
    family->weight = weight_of_rule(making, rule, value);
    return map_groups_make(&making->view->arena, relation, ids, &family->groups);
}

static int add_layer_families(struct making *making,
                              const struct profile_communication *communication,
                              const struct profile_set *ids, struct map_family *families)
{
    for (size_t i = 0; i < communication->layer_count; i++) {
        const struct profile_layer *layer = &communication->layers[i];
        double distance = profile_layer_distance(making->view->profile, communication, i);
        int64_t value = rule3_value(&making->latencies, making->approach, distance);
        TRY(add_family(making, MAP_RULE_LATENCY, value, &layer->members, ids, &families[i]));
        families[i].in = communication;
        families[i].layer = layer;
        families[i].distance = distance;
    }
    return 0;
}

/* The packages break ties: of PUs that share nothing else the one whose package has the fewest
 * workers. (The 2012 paper's Superdome, Section 4.4, has two processors on a bus, and "one core
 * per processor" on 64 cores, which its three rules leave open.) */
static int add_families(struct making *making, const struct profile_class *of,
                        struct map_class *out)
{
    size_t count = of->cache_count + of->memory.level_count + 1 + of->communication.layer_count,
           used = 0;
    out->families = map_arena_get(&making->view->arena, count, sizeof *out->families);
    TRY(map_arena_check(&making->view->arena));
    out->family_count = count;
    for (; used < of->cache_count + of->memory.level_count; used++) {
        bool cache = used < of->cache_count;
        TRY(add_family(making, cache ? MAP_RULE_CACHE : MAP_RULE_MEMORY, making->collide,
                       cache ? &of->caches[used].sharing
                             : &of->memory.levels[used - of->cache_count].collisions,
                       &of->pus, &out->families[used]));
    }
    TRY(add_layer_families(making, &of->communication, &of->pus, &out->families[used + 1]));
    out->packages = &out->families[used].groups;
    return add_family(making, MAP_TIE_PACKAGE, 0, &of->packages, &of->pus, &out->families[used]);
}

/* Kinds get the ranks 0, 1, … from the most efficient; PUs of no kind come last. */
static void add_kinds(const struct profile_class *of, struct map_class *out)
{
    for (size_t i = 0; i < of->pus.count; i++) {
        out->kind[i] = (uint16_t)of->kind_count;
    }
    for (size_t k = 0; k < of->kind_count; k++) {
        uint16_t rank = 0;
        for (size_t other = 0; other < of->kind_count; other++) {
            bool better = of->kinds[other].efficiency > of->kinds[k].efficiency;
            bool equal = of->kinds[other].efficiency == of->kinds[k].efficiency;
            rank = (uint16_t)(rank + (better || (equal && other < k)));
        }
        for (size_t i = 0; i < of->kinds[k].pus.count; i++) {
            size_t at = profile_set_position(&of->pus, of->kinds[k].pus.ids[i]);
            if (at < of->pus.count) {
                out->kind[at] = rank;
            }
        }
    }
}

static uint64_t last_cache_bytes(const struct profile_class *of, uint32_t os_index)
{
    uint32_t last = of->cache_count ? of->caches[of->cache_count - 1].level : 0;
    for (size_t i = 0; i < of->cache_count; i++) {
        const struct profile_cache *cache = &of->caches[i];
        if (cache->level == last && (!cache->pus.count || profile_set_has(&cache->pus, os_index))) {
            return cache->size_bytes;
        }
    }
    return 0;
}

/* The caches that hold the last level, most of a class have one: so PUs are compared with the
 * caches and not with each other. A PU without a last level comes last. */
static void rank_caches(const struct profile_class *of, struct map_class *out)
{
    uint32_t last = of->cache_count ? of->caches[of->cache_count - 1].level : 0;
    for (size_t i = 0; i < of->pus.count; i++) {
        uint64_t bytes = last_cache_bytes(of, of->pus.ids[i]);
        for (size_t c = 0; c < of->cache_count; c++) {
            out->cache_rank[i] =
                (uint16_t)(out->cache_rank[i] +
                           (of->caches[c].level == last && of->caches[c].size_bytes > bytes));
        }
    }
}

/* PUs that are local to no memory (two dies of four on a Threadripper 2990WX, a node whose memory
 * is offline) where the profile knows the memory of others. */
static void find_far(const struct profile_class *of, struct map_class *out)
{
    bool known = false;
    for (size_t n = 0; n < of->numa_count; n++) {
        known = known || (of->numa[n].memory_bytes && of->numa[n].pus.count);
    }
    for (size_t i = 0; known && i < of->pus.count; i++) {
        out->far[i] = true;
        for (size_t n = 0; n < of->numa_count; n++) {
            bool local = profile_set_has(&of->numa[n].pus, of->pus.ids[i]);
            out->far[i] = out->far[i] && !(local && of->numa[n].memory_bytes);
        }
    }
}

/* A worker that keeps this share of the bandwidth of one alone has not lost any to speak of. */
#define BANDWIDTH_KEPT 0.9

/* Workers in a group of this size until the next one would lose bandwidth: by the measured curve; a
 * level without one is a collision of pairs, as in the papers. */
static uint32_t room_in_group(const struct profile_class *of,
                              const struct profile_memory_level *level, uint32_t size)
{
    uint32_t room = 1;
    double enough = BANDWIDTH_KEPT * of->memory.reference_bytes_per_s;
    while (level->scaling_count && room < size &&
           profile_memory_bandwidth(&of->memory, level, room + 1) / (room + 1) >= enough) {
        room++;
    }
    return room;
}

/* The same of the whole node: of the level that leaves least. 1: not measured, or a level is known
 * as single pairs only. */
static uint32_t room_in_node(const struct profile_class *of)
{
    size_t least = of->memory.reference_bytes_per_s > 0 ? of->pus.count : 1;
    for (size_t l = 0; l < of->memory.level_count; l++) {
        const struct profile_memory_level *level = &of->memory.levels[l];
        size_t room = of->pus.count;
        for (size_t g = 0; g < level->collisions.group_count; g++) {
            uint32_t size = (uint32_t)level->collisions.groups[g].count;
            room -= size - room_in_group(of, level, size);
        }
        room = level->collisions.pair_count ? 1 : room;
        least = room < least ? room : least;
    }
    return (uint32_t)least;
}

static int make_class(struct making *making, const struct profile_class *of, struct map_class *out)
{
    struct map_arena *arena = &making->view->arena;
    uint32_t items = (uint32_t)of->pus.count;
    out->of = of;
    out->memory_room = room_in_node(of);
    out->kind = map_arena_get(arena, items, sizeof *out->kind);
    out->far = map_arena_get(arena, items, sizeof *out->far);
    out->cache_rank = map_arena_get(arena, items, sizeof *out->cache_rank);
    TRY(map_arena_check(arena));
    TRY(add_families(making, of, out));
    TRY(map_groups_of_cores(arena, of, &out->cores));
    rank_caches(of, out);
    find_far(of, out);
    add_kinds(of, out);
    return 0;
}

static int make_network(struct making *making)
{
    struct map_view *view = making->view;
    size_t count = view->profile->network.layer_count;
    if (!count) {
        return 0;
    }
    struct profile_set nodes = {map_arena_get(&view->arena, view->node_count, sizeof *nodes.ids),
                                view->node_count};
    view->network = map_arena_get(&view->arena, count, sizeof *view->network);
    TRY(map_arena_check(&view->arena));
    for (uint32_t n = 0; n < view->node_count; n++) {
        nodes.ids[n] = n;
    }
    view->network_count = count;
    return add_layer_families(making, &view->profile->network, &nodes, view->network);
}

static void number_leaves(struct map_view *view)
{
    uint32_t first_pu = 0, leaf = 0, node = 0;
    for (size_t r = 0; r < view->profile->node_range_count; r++) {
        const struct profile_node_range *range = &view->profile->nodes[r];
        const struct profile_class *of = &view->profile->classes[range->class_index];
        for (uint32_t n = 0; n < range->count; n++, node++) {
            view->nodes[node] = (struct map_node){range->class_index, first_pu, leaf};
            for (size_t i = 0; i < of->pus.count; i++, leaf++) {
                view->pu[leaf] = first_pu + of->pus.ids[i];
                view->node_of[leaf] = node;
            }
            first_pu += profile_class_span(of);
        }
    }
}

static int make_nodes(struct map_view *view)
{
    const struct servet_profile *profile = view->profile;
    view->class_count = profile->class_count;
    for (size_t r = 0; r < profile->node_range_count; r++) {
        const struct profile_node_range *range = &profile->nodes[r];
        const size_t pus = profile->classes[range->class_index].pus.count;
        view->node_count += range->count;
        view->leaf_count += range->count * (uint32_t)pus;
    }
    view->nodes = map_arena_get(&view->arena, view->node_count, sizeof *view->nodes);
    view->pu = map_arena_get(&view->arena, view->leaf_count, sizeof *view->pu);
    view->classes = map_arena_get(&view->arena, view->class_count, sizeof *view->classes);
    view->node_of = map_arena_get(&view->arena, view->leaf_count, sizeof *view->node_of);
    TRY(map_arena_check(&view->arena));
    number_leaves(view);
    return 0;
}

static int make_parts(struct making *making)
{
    struct map_view *view = making->view;
    TRY(make_nodes(view));
    for (size_t c = 0; c < view->class_count; c++) {
        TRY(make_class(making, &view->profile->classes[c], &view->classes[c]));
    }
    return make_network(making);
}

int map_view_make(const struct servet_profile *profile, enum map_priority priority, size_t load,
                  struct map_view *view, struct servet_error *error)
{
    struct map_view made = {.profile = profile,
                            .latencies_known = profile_latencies_known(profile),
                            .priority = priority};
    struct making making = {
        .view = &made, .latencies = bounded_latencies(profile, load), .load = load};
    made.denominator = denominator_of(&making.latencies);
    making.collide = (priority == MAP_MEMORY ? FAVOURED : OTHER) * made.denominator;
    making.approach = priority == MAP_MEMORY ? OTHER : FAVOURED;
    const int rc = make_parts(&making);
    if (rc < 0) {
        map_arena_free(&made.arena);
        return map_out_of_memory(rc, error);
    }
    *view = made;
    return 0;
}

void map_view_free(struct map_view *view)
{
    map_arena_free(&view->arena);
}

uint32_t map_view_leaf(const struct map_view *view, uint32_t pu)
{
    const struct profile_set pus = {view->pu, view->leaf_count};
    size_t leaf = profile_set_position(&pus, pu);
    return leaf < pus.count ? (uint32_t)leaf : MAP_NONE;
}
