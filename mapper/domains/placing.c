#include "mapper/domains/placing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/domains/containers.h"

static void set_open(struct map_placing *p, uint32_t node, uint32_t leaf, bool open)
{
    if (p->open[leaf] == open) {
        return;
    }
    p->open[leaf] = open;
    const struct map_containers *containers = map_containers_of(p, node);
    uint32_t item = leaf - p->view->nodes[node].first_leaf;
    for (uint32_t i = containers->start[item]; i < containers->start[item + 1]; i++) {
        p->open_in[node][containers->of[i]] += open ? 1 : -1u;
    }
}

/* Decides anew which PUs of the leaf's core are open: the lowest ones, as many as the core may
 * still take. */
static void open_core(struct map_placing *p, uint32_t leaf)
{
    uint32_t node = map_view_node(p->view, leaf);
    struct map_core core = map_core_of(p->view, leaf);
    uint32_t alone = leaf - p->view->nodes[node].first_leaf;
    const uint32_t *members = core.members ? core.members : &alone;
    uint32_t count = core.members ? core.count : 1;
    uint32_t first_leaf = p->view->nodes[node].first_leaf, opened = 0;
    for (uint32_t i = 0; i < count; i++) {
        map_key key = p->slots.key[first_leaf + members[i]];
        bool free = key != MAP_KEY_NEVER && map_key_workers(key) <= p->round;
        bool room = p->round || opened + map_key_core_workers(key) < p->smt;
        set_open(p, node, first_leaf + members[i], free && room);
        opened += free && room;
    }
}

void map_placing_open(struct map_placing *p)
{
    for (uint32_t leaf = 0; leaf < p->view->leaf_count; leaf++) {
        open_core(p, leaf);
    }
}

static void choose(struct map_placing *p, uint32_t leaf)
{
    map_slots_choose(&p->slots, leaf);
    map_exact_raise(&p->exact, leaf);
    open_core(p, leaf);
}

/* -- which container -- */

static bool better_leaf(const struct map_placing *p, uint32_t a, uint32_t b)
{
    if (p->slots.key[a] != p->slots.key[b]) {
        return p->slots.key[a] < p->slots.key[b];
    }
    const map_weight *weight = p->exact.weight;
    return weight[a] != weight[b] ? weight[a] < weight[b] : a < b;
}

struct choice {
    uint32_t node, container, seed;
};

static const struct map_container *chosen_container(const struct map_placing *p,
                                                    const struct choice *choice)
{
    return &map_containers_of(p, choice->node)->list[choice->container];
}

static bool may_take(const struct map_placing *p, uint32_t node,
                     const struct map_container *container)
{
    return !p->packing ||
           (container->domain != MAP_NONE && p->suits[p->first_domain[node] + container->domain]);
}

static void look_at(const struct map_placing *p, uint32_t node, uint32_t index, struct choice *best)
{
    const struct map_container *container = &map_containers_of(p, node)->list[index];
    uint32_t first_leaf = p->view->nodes[node].first_leaf;
    for (uint32_t i = 0; i < container->count; i++) {
        uint32_t leaf = first_leaf + container->members[i];
        if (p->open[leaf] && (best->seed == MAP_NONE || better_leaf(p, leaf, best->seed))) {
            *best = (struct choice){node, index, leaf};
        }
    }
}

/* The most wanted containers of a node with room for `threads`: looks at those that are as good as
 * `best`'s. */
static void look_in_node(const struct map_placing *p, uint32_t node, uint32_t threads,
                         struct choice *best)
{
    const struct map_containers *containers = map_containers_of(p, node);
    const struct map_container *wanted = NULL;
    for (uint32_t c = 0; c < containers->count; c++) {
        const struct map_container *container = &containers->list[c];
        if (wanted && !map_containers_equal(container, wanted)) {
            return;
        }
        if (p->open_in[node][c] < threads || !may_take(p, node, container)) {
            continue;
        }
        if (!wanted && best->seed != MAP_NONE) {
            const struct map_container *held = chosen_container(p, best);
            bool worse = container->straddles != held->straddles
                             ? container->straddles > held->straddles
                             : container->count > held->count;
            if (worse) {
                return;
            }
            if (!map_containers_equal(container, held)) {
                best->seed = MAP_NONE;
            }
        }
        wanted = container;
        look_at(p, node, c, best);
    }
}

/* The PU with the lowest weight among those with the best container around them. Opens further
 * rounds until there is one. */
static struct choice find_container(struct map_placing *p, uint32_t threads)
{
    for (;;) {
        struct choice best = {.seed = MAP_NONE};
        for (uint32_t node = 0; node < p->view->node_count; node++) {
            look_in_node(p, node, threads, &best);
        }
        if (best.seed != MAP_NONE) {
            return best;
        }
        p->round++;
        map_placing_open(p);
    }
}

/* -- which PUs of it -- */

static void reach_from(struct map_placing *p, uint32_t node, uint32_t item)
{
    const struct map_containers *containers = map_containers_of(p, node);
    p->in[item] = true;
    for (uint32_t i = containers->start[item]; i < containers->start[item + 1]; i++) {
        const struct map_container *container = &containers->list[containers->of[i]];
        if (p->reached[containers->of[i]]) {
            continue;
        }
        p->reached[containers->of[i]] = true;
        for (uint32_t m = 0; m < container->count; m++) {
            uint32_t *distance = &p->distance[container->members[m]];
            *distance = container->count < *distance ? container->count : *distance;
        }
    }
}

/* Workers on the PU decide first (only a round after the first has PUs that differ), then how near
 * it is. */
static bool nearer(const struct map_placing *p, uint32_t first_leaf, uint32_t a, uint32_t b)
{
    uint32_t workers_a = map_key_workers(p->slots.key[first_leaf + a]);
    uint32_t workers_b = map_key_workers(p->slots.key[first_leaf + b]);
    if (workers_a != workers_b) {
        return workers_a < workers_b;
    }
    if (p->distance[a] != p->distance[b]) {
        return p->distance[a] < p->distance[b];
    }
    return better_leaf(p, first_leaf + a, first_leaf + b);
}

/* All open PUs of the container, when the domain needs them all. */
static void take_all(struct map_placing *p, const struct choice *choice)
{
    const struct map_container *container = chosen_container(p, choice);
    uint32_t first_leaf = p->view->nodes[choice->node].first_leaf, used = 0;
    for (uint32_t i = 0; i < container->count; i++) {
        if (p->open[first_leaf + container->members[i]]) {
            p->domain[used++] = first_leaf + container->members[i];
        }
    }
}

/* Grows the domain from its seed, always by the nearest open PU of the container. */
static void grow(struct map_placing *p, const struct choice *choice, uint32_t threads)
{
    const struct map_container *container = chosen_container(p, choice);
    uint32_t first_leaf = p->view->nodes[choice->node].first_leaf;
    uint32_t items = map_node_size(p, choice->node);
    memset(p->distance, 0xff, items * sizeof *p->distance);
    memset(p->in, 0, items * sizeof *p->in);
    memset(p->reached, 0, map_containers_of(p, choice->node)->count * sizeof *p->reached);
    p->domain[0] = choice->seed;
    reach_from(p, choice->node, choice->seed - first_leaf);
    for (uint32_t t = 1; t < threads; t++) {
        uint32_t next = MAP_NONE;
        for (uint32_t i = 0; i < container->count; i++) {
            uint32_t item = container->members[i];
            if (p->open[first_leaf + item] && !p->in[item] &&
                (next == MAP_NONE || nearer(p, first_leaf, item, next))) {
                next = item;
            }
        }
        p->domain[t] = first_leaf + next;
        reach_from(p, choice->node, next);
    }
}

/* Threads in the order of the weights; more threads than PUs go round again. */
static void order_threads(struct map_placing *p, uint32_t size, uint32_t threads, uint32_t *out)
{
    for (uint32_t t = 0; t < threads; t++) {
        uint32_t best = p->domain[0];
        for (uint32_t i = 1; i < size; i++) {
            best = better_leaf(p, p->domain[i], best) ? p->domain[i] : best;
        }
        out[t] = p->view->pu[best];
        choose(p, best);
    }
}

static uint32_t widest_node(const struct map_placing *p)
{
    uint32_t widest = 0;
    for (uint32_t node = 0; node < p->view->node_count; node++) {
        uint32_t usable = 0;
        for (uint32_t i = 0; i < map_node_size(p, node); i++) {
            usable += p->slots.key[p->view->nodes[node].first_leaf + i] != MAP_KEY_NEVER;
        }
        widest = usable > widest ? usable : widest;
    }
    return widest;
}

static void count_room(struct map_placing *p)
{
    memset(p->room, 0, p->domains * sizeof *p->room);
    for (uint32_t node = 0; node < p->view->node_count; node++) {
        const struct map_groups *domains = map_containers_of(p, node)->domains;
        for (uint32_t i = 0; i < map_node_size(p, node); i++) {
            bool in = domains->group_count && domains->group_of[i] != MAP_NONE;
            if (in && p->open[p->view->nodes[node].first_leaf + i]) {
                p->room[p->first_domain[node] + domains->group_of[i]]++;
            }
        }
    }
}

/* Finds the memory domains that rank 0 of `sizes` may take; gives packing up when there is none. */
static void look_ahead(struct map_placing *p, const uint32_t *sizes, size_t count)
{
    bool any = false;
    count_room(p);
    for (size_t d = 0; d < p->domains; d++) {
        p->suits[d] = false;
        bool known = false;
        for (size_t before = 0; before < d && !known; before++) {
            known = p->room[before] == p->room[d];
            p->suits[d] = known && p->suits[before];
        }
        if (!known && p->room[d] >= sizes[0]) {
            p->room[d] -= sizes[0];
            p->suits[d] = map_packing_fits(sizes + 1, count - 1, p->room, p->domains);
            p->room[d] += sizes[0];
        }
        any = any || p->suits[d];
    }
    p->packing = any;
}

void map_placing_run(struct map_placing *p, const struct map_rank *ranks, const uint32_t *sizes,
                     size_t count, uint32_t *out)
{
    uint32_t widest = widest_node(p);
    for (size_t r = 0; r < count; r++) {
        uint32_t size = ranks[r].threads < widest ? ranks[r].threads : widest;
        if (p->packing) {
            look_ahead(p, sizes + r, count - r);
        }
        struct choice choice = find_container(p, size);
        if (p->open_in[choice.node][choice.container] == size) {
            take_all(p, &choice);
        } else {
            grow(p, &choice, size);
        }
        order_threads(p, size, ranks[r].threads, out + ranks[r].at);
    }
}
