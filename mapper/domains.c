#include "map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "containers.h"
#include "packing.h"
#include "plain.h"
#include "slots.h"

struct rank {
    size_t index; /* in the request */
    uint32_t threads;
    size_t at; /* where its threads begin in the output */
};

/* A PU is open when it may get one more thread in this round: it holds no more than `round` threads, and in the first
 * round its core has not reached `smt` threads. */
struct placing {
    struct map_view *view;
    struct map_slots slots;
    struct map_plain plain;
    struct map_containers *classes; /* by class */
    uint32_t **open_in;             /* by node, then by container: open PUs */
    bool *open;                     /* by leaf */
    uint32_t smt, round;
    /* Ranks of different widths: which memory domains the next one may take so that the rest still fits. */
    bool packing;
    uint32_t *first_domain; /* by node: number of its first memory domain */
    uint32_t *room;         /* by memory domain: open PUs */
    bool *suits;            /* by memory domain */
    size_t domains;
    /* of the domain that is being made, by position in its node */
    uint32_t *distance; /* size of the smallest container around the PU and one that is in; MAP_NONE: none */
    bool *reached;      /* by container */
    bool *in;
    uint32_t *domain; /* leaves */
};

static const struct map_containers *containers_of(const struct placing *p, uint32_t node)
{
    return &p->classes[p->view->nodes[node].class_index];
}

static uint32_t node_size(const struct placing *p, uint32_t node)
{
    return (uint32_t)p->view->classes[p->view->nodes[node].class_index].of->pus.count;
}

static void set_open(struct placing *p, uint32_t node, uint32_t leaf, bool open)
{
    if (p->open[leaf] == open) {
        return;
    }
    p->open[leaf] = open;
    const struct map_containers *containers = containers_of(p, node);
    uint32_t item = leaf - p->view->nodes[node].first_leaf;
    for (uint32_t i = containers->start[item]; i < containers->start[item + 1]; i++) {
        p->open_in[node][containers->of[i]] += open ? 1 : -1u;
    }
}

/* Decides anew which PUs of the leaf's core are open: the lowest ones, as many as the core may still take. */
static void open_core(struct placing *p, uint32_t leaf)
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

static void open_all(struct placing *p)
{
    for (uint32_t leaf = 0; leaf < p->view->leaf_count; leaf++) {
        open_core(p, leaf);
    }
}

static size_t count_open(const struct placing *p)
{
    size_t count = 0;
    for (uint32_t leaf = 0; leaf < p->view->leaf_count; leaf++) {
        count += p->open[leaf];
    }
    return count;
}

static void choose(struct placing *p, uint32_t leaf)
{
    map_slots_choose(&p->slots, leaf);
    map_plain_choose(&p->plain, leaf);
    open_core(p, leaf);
}

/* -- which container ------------------------------------------------------------------------------------------- */

static bool better_leaf(const struct placing *p, uint32_t a, uint32_t b)
{
    if (p->slots.key[a] != p->slots.key[b]) {
        return p->slots.key[a] < p->slots.key[b];
    }
    const int64_t *weight = p->plain.rule[0];
    return weight[a] != weight[b] ? weight[a] < weight[b] : a < b;
}

struct choice {
    uint32_t node, container, seed;
};

static const struct map_container *chosen_container(const struct placing *p, const struct choice *choice)
{
    return &containers_of(p, choice->node)->list[choice->container];
}

static bool may_take(const struct placing *p, uint32_t node, const struct map_container *container)
{
    return !p->packing || (container->domain != MAP_NONE && p->suits[p->first_domain[node] + container->domain]);
}

static void look_at(const struct placing *p, uint32_t node, uint32_t index, struct choice *best)
{
    const struct map_container *container = &containers_of(p, node)->list[index];
    uint32_t first_leaf = p->view->nodes[node].first_leaf;
    for (uint32_t i = 0; i < container->count; i++) {
        uint32_t leaf = first_leaf + container->members[i];
        if (p->open[leaf] && (best->seed == MAP_NONE || better_leaf(p, leaf, best->seed))) {
            *best = (struct choice){node, index, leaf};
        }
    }
}

/* The most wanted containers of a node with room for `threads`: looks at those that are as good as `best`'s. */
static void look_in_node(const struct placing *p, uint32_t node, uint32_t threads, struct choice *best)
{
    const struct map_containers *containers = containers_of(p, node);
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
            bool worse = container->straddles != held->straddles ? container->straddles > held->straddles
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

/* The PU with the lowest weight among those with the best container around them. Opens further rounds until there is
 * one. */
static struct choice find_container(struct placing *p, uint32_t threads)
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
        open_all(p);
    }
}

/* -- which PUs of it -------------------------------------------------------------------------------------------- */

static void reach_from(struct placing *p, uint32_t node, uint32_t item)
{
    const struct map_containers *containers = containers_of(p, node);
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

/* Workers on the PU decide first (only a round after the first has PUs that differ), then how near it is. */
static bool nearer(const struct placing *p, uint32_t first_leaf, uint32_t a, uint32_t b)
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

/* Grows the domain from its seed, always by the nearest open PU of the container. */
static void grow(struct placing *p, const struct choice *choice, uint32_t threads)
{
    const struct map_container *container = chosen_container(p, choice);
    uint32_t first_leaf = p->view->nodes[choice->node].first_leaf;
    uint32_t items = node_size(p, choice->node);
    memset(p->distance, 0xff, items * sizeof *p->distance);
    memset(p->in, 0, items * sizeof *p->in);
    memset(p->reached, 0, containers_of(p, choice->node)->count * sizeof *p->reached);
    p->domain[0] = choice->seed;
    reach_from(p, choice->node, choice->seed - first_leaf);
    for (uint32_t t = 1; t < threads; t++) {
        uint32_t next = MAP_NONE;
        for (uint32_t i = 0; i < container->count; i++) {
            uint32_t item = container->members[i];
            if (p->open[first_leaf + item] && !p->in[item] && (next == MAP_NONE || nearer(p, first_leaf, item, next))) {
                next = item;
            }
        }
        p->domain[t] = first_leaf + next;
        reach_from(p, choice->node, next);
    }
}

/* Threads in the order of the weights; more threads than PUs go round again. */
static void order_threads(struct placing *p, uint32_t size, uint32_t threads, uint32_t *out)
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

static uint32_t widest_node(const struct placing *p)
{
    uint32_t widest = 0;
    for (uint32_t node = 0; node < p->view->node_count; node++) {
        uint32_t usable = 0;
        for (uint32_t i = 0; i < node_size(p, node); i++) {
            usable += p->slots.key[p->view->nodes[node].first_leaf + i] != MAP_KEY_NEVER;
        }
        widest = usable > widest ? usable : widest;
    }
    return widest;
}

static void count_room(struct placing *p)
{
    memset(p->room, 0, p->domains * sizeof *p->room);
    for (uint32_t node = 0; node < p->view->node_count; node++) {
        const struct map_groups *domains = containers_of(p, node)->domains;
        for (uint32_t i = 0; i < node_size(p, node); i++) {
            bool in = domains->group_count && domains->group_of[i] != MAP_NONE;
            if (in && p->open[p->view->nodes[node].first_leaf + i]) {
                p->room[p->first_domain[node] + domains->group_of[i]]++;
            }
        }
    }
}

/* Finds the memory domains that rank 0 of `sizes` may take; gives packing up when there is none. */
static void look_ahead(struct placing *p, const uint32_t *sizes, size_t count)
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

static void place(struct placing *p, const struct rank *ranks, const uint32_t *sizes, size_t count, uint32_t *out)
{
    uint32_t widest = widest_node(p);
    for (size_t r = 0; r < count; r++) {
        uint32_t size = ranks[r].threads < widest ? ranks[r].threads : widest;
        if (p->packing) {
            look_ahead(p, sizes + r, count - r);
        }
        struct choice choice = find_container(p, size);
        grow(p, &choice, size);
        order_threads(p, size, ranks[r].threads, out + ranks[r].at);
    }
}

/* -- the request ------------------------------------------------------------------------------------------------ */

static uint32_t threads_of(const struct map_domain_request *request, size_t rank)
{
    return request->threads ? request->threads[rank] : request->threads_each;
}

static int sum_threads(const struct map_domain_request *request, size_t *total, uint32_t *most,
                       struct servet_error *error)
{
    size_t sum = 0;
    uint32_t highest = 0;
    if (request->ranks < 1 || request->ranks >= MAP_WORKER_LIMIT) {
        return profile_error(error, -EINVAL, "ranks: expected a number from 1 to %u, got %zu", MAP_WORKER_LIMIT - 1,
                             request->ranks);
    }
    for (size_t r = 0; r < request->ranks; r++) {
        uint32_t threads = threads_of(request, r);
        sum += threads;
        highest = threads > highest ? threads : highest;
        if (threads < 1 || sum >= MAP_WORKER_LIMIT) {
            return profile_error(error, -EINVAL, "threads of rank %zu: expected at least 1 and fewer than %u in all", r,
                                 MAP_WORKER_LIMIT);
        }
    }
    *total = sum;
    *most = highest;
    return 0;
}

static int compare_ranks(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->threads != y->threads) {
        return x->threads > y->threads ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

/* Widest first: a wide rank that comes last finds only remainders of memory domains. */
static struct rank *sort_ranks(struct map_arena *arena, const struct map_domain_request *request)
{
    struct rank *ranks = map_arena_get(arena, request->ranks, sizeof *ranks);
    size_t at = 0;
    for (size_t r = 0; ranks && r < request->ranks; r++) {
        ranks[r] = (struct rank){r, threads_of(request, r), at};
        at += ranks[r].threads;
    }
    if (ranks && request->threads) {
        qsort(ranks, request->ranks, sizeof *ranks, compare_ranks);
    }
    return ranks;
}

static int make_placing(struct placing *p)
{
    struct map_view *view = p->view;
    struct map_arena *arena = &view->arena;
    uint32_t widest = 0, most = 0;
    p->classes = map_arena_get(arena, view->class_count, sizeof *p->classes);
    p->open_in = map_arena_get(arena, view->node_count, sizeof *p->open_in);
    p->open = map_arena_get(arena, view->leaf_count, sizeof *p->open);
    if (!p->classes || !p->open_in || !p->open || map_plain_make(arena, view, false, &p->plain) < 0) {
        return -ENOMEM;
    }
    for (size_t c = 0; c < view->class_count; c++) {
        if (view->classes[c].of->pus.count && map_containers_make(arena, &view->classes[c], &p->classes[c]) < 0) {
            return -ENOMEM;
        }
        most = p->classes[c].count > most ? p->classes[c].count : most;
    }
    for (uint32_t node = 0; node < view->node_count; node++) {
        p->open_in[node] = map_arena_get(arena, containers_of(p, node)->count, sizeof *p->open_in[node]);
        widest = node_size(p, node) > widest ? node_size(p, node) : widest;
        if (!p->open_in[node]) {
            return -ENOMEM;
        }
    }
    p->distance = map_arena_get(arena, widest, sizeof *p->distance);
    p->in = map_arena_get(arena, widest, sizeof *p->in);
    p->domain = map_arena_get(arena, widest, sizeof *p->domain);
    p->reached = map_arena_get(arena, most, sizeof *p->reached);
    return p->distance && p->in && p->domain && p->reached ? 0 : -ENOMEM;
}

/* Ranks of one width need no looking ahead: whatever they leave of a memory domain is too small for any of them. */
static int make_packing(struct placing *p, const struct rank *ranks, size_t count, uint32_t **sizes)
{
    struct map_arena *arena = &p->view->arena;
    *sizes = map_arena_get(arena, count, sizeof **sizes);
    p->first_domain = map_arena_get(arena, p->view->node_count, sizeof *p->first_domain);
    if (!*sizes || !p->first_domain) {
        return -ENOMEM;
    }
    for (size_t r = 0; r < count; r++) {
        (*sizes)[r] = ranks[r].threads;
    }
    for (uint32_t node = 0; node < p->view->node_count; node++) {
        const struct map_groups *domains = containers_of(p, node)->domains;
        p->first_domain[node] = (uint32_t)p->domains;
        p->domains += domains ? domains->group_count : 0;
    }
    p->room = map_arena_get(arena, p->domains, sizeof *p->room);
    p->suits = map_arena_get(arena, p->domains, sizeof *p->suits);
    p->packing = ranks[0].threads != ranks[count - 1].threads;
    return p->room && p->suits ? 0 : -ENOMEM;
}

/* The fewest threads on one core with which all threads find an open PU. */
static void set_smt(struct placing *p, size_t total)
{
    size_t before = 0;
    for (p->smt = 1;; p->smt++) {
        open_all(p);
        size_t open = count_open(p);
        if (open >= total || (p->smt > 1 && open == before)) {
            return;
        }
        before = open;
    }
}

static int map_wide(struct map_view *view, const struct map_domain_request *request, size_t total, uint32_t *out,
                    struct servet_error *error)
{
    struct placing p = {.view = view};
    int rc = map_slots_make(view, request->allowed, request->taken, total, &p.slots, error);
    if (rc < 0) {
        return rc;
    }
    struct rank *ranks = sort_ranks(&view->arena, request);
    uint32_t *sizes;
    if (!ranks || make_placing(&p) < 0 || make_packing(&p, ranks, request->ranks, &sizes) < 0) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < p.slots.taken_count; i++) {
        map_plain_choose(&p.plain, p.slots.taken[i]);
    }
    set_smt(&p, total);
    place(&p, ranks, sizes, request->ranks, out);
    return 0;
}

int map_domains(const struct servet_profile *profile, const struct map_domain_request *request, uint32_t *out,
                struct servet_error *error)
{
    size_t total = 0;
    uint32_t most = 0;
    int rc = sum_threads(request, &total, &most, error);
    if (rc < 0) {
        return rc;
    }
    if (most == 1) {
        struct map_request narrow = {request->priority, request->ranks, request->allowed, request->taken};
        return map_workers(profile, &narrow, out, NULL, error);
    }
    struct map_view view;
    rc = map_view_make(profile, request->priority, total + (request->taken ? request->taken->count : 0), &view, error);
    if (rc < 0) {
        return rc;
    }
    rc = map_wide(&view, request, total, out, error);
    map_view_free(&view);
    return rc;
}
