/* Hybrid programs: the machine is divided among the ranks, then each rank's threads are placed
 * inside its region by the same weights that place workers.
 *
 * The 2012 paper runs one process a node and spreads its threads over the node (Section 4.5, Figure
 * 5). With more processes a node the same holds for what each of them gets: memory priority spreads
 * a rank's threads over its region. Communication priority packs: ranks fill the groups of the
 * smallest group that holds all threads, one after the other. A process cannot leave its node, so
 * nodes come first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/domains/domains.h"
#include "mapper/map.h"
#include "mapper/weights/weights.h"
#include "profile/scope.h"

/* Where the kinds of PUs begin when their ranks are summed: caches of 2^24 workers stay below. */
#define KIND_SHIFT 48

struct hybrid {
    const struct map_request *request;
    struct map_view *view;
    struct map_slots slots;
    bool *usable;                 /* by leaf */
    struct map_machine *machines; /* by class */
    struct map_share *shares;     /* by rank at first, then by node, which is the box */
    size_t *first;                /* by rank: where its threads begin in the output */
    size_t threads;               /* of all ranks */
    uint32_t *out;
    /* of the node that is being filled, by place in the order of the tree or by share */
    uint32_t *items, *starts, *units, *chosen, *spread, *aligned;
    struct map_share *cut; /* its ranks in the order of their regions */
};

/* A node and its ranks, which are to be placed. */
struct filling {
    const struct map_node *at;
    struct map_machine *machine;
    struct map_share *shares; /* in rank order; threads: those that are placed, or cores */
    size_t ranks, threads;
    uint32_t item_count; /* in hybrid.items: the PUs that may be used, in the order of the tree */
    struct map_units units;
    bool pack;    /* one rank after the other */
    bool divided; /* threads of shares are cores: map_divide_cores() */
};

/* -- which PUs -- */

/* Is it the first usable PU of its core? */
static bool first_of_core(const struct hybrid *h, uint32_t leaf)
{
    return h->usable[leaf] && !map_core_mates_before(h->view, leaf, h->usable);
}

/* Uses PUs up to this kind; gives the cores that makes, and the next kind. */
static size_t use_up_to(struct hybrid *h, map_key kind, bool held_too, map_key *next)
{
    size_t cores = 0;
    *next = MAP_KEY_NEVER;
    for (uint32_t leaf = 0; leaf < h->view->leaf_count; leaf++) {
        map_key key = h->slots.key[leaf];
        bool open = key != MAP_KEY_NEVER && (held_too || !map_key_workers(key));
        h->usable[leaf] = open && map_key_kind(key) <= kind;
        cores += first_of_core(h, leaf);
        if (open && map_key_kind(key) > kind && map_key_kind(key) < *next) {
            *next = map_key_kind(key);
        }
    }
    return cores;
}

/* The PUs that nobody holds when they suffice, else all; of the most capable kinds no more than are
 * needed to give every thread a core. */
static void find_usable(struct hybrid *h)
{
    size_t free_pus = 0;
    for (uint32_t leaf = 0; leaf < h->view->leaf_count; leaf++) {
        map_key key = h->slots.key[leaf];
        free_pus += key != MAP_KEY_NEVER && !map_key_workers(key);
    }
    bool held_too = free_pus < h->threads;
    map_key kind = 0, next = 0;
    while (use_up_to(h, kind, held_too, &next) < h->threads && next != MAP_KEY_NEVER) {
        kind = next;
    }
}

/* -- nodes -- */

/* Room of each node, in the order of the tree. */
static void count_room(const struct hybrid *h, const struct map_order *nodes, bool cores,
                       uint64_t *room)
{
    for (uint32_t leaf = 0; leaf < h->view->leaf_count; leaf++) {
        uint32_t place = nodes->place[h->view->node_of[leaf]];
        room[place] += cores ? first_of_core(h, leaf) : h->usable[leaf];
    }
}

/* Communication priority: the smallest node that holds all, else one node after the other. */
static int pack_nodes(struct hybrid *h, const uint64_t *room, uint32_t count)
{
    uint32_t least = MAP_NONE;
    for (uint32_t n = 0; n < count; n++) {
        if (room[n] >= h->threads && (least == MAP_NONE || room[n] < room[least])) {
            least = n;
        }
    }
    if (least == MAP_NONE) {
        return map_share_out(h->shares, h->request->workers, room, count, MAP_PACK_THREADS);
    }
    for (size_t r = 0; r < h->request->workers; r++) {
        h->shares[r].box = least;
    }
    return 0;
}

/* Gives every rank a node: by cores where they suffice, else by PUs, else overfull alike. */
static int choose_nodes(struct hybrid *h, const struct map_order *nodes)
{
    uint32_t count = h->view->node_count;
    int rc = -ENOSPC;
    for (int by = 0; rc == -ENOSPC && by < 3; by++) {
        uint64_t *room = map_arena_get(&h->view->arena, count, sizeof *room);
        TRY(map_arena_check(&h->view->arena));
        count_room(h, nodes, by == 0, room);
        rc = h->request->priority == MAP_COMMUNICATION && by < 2
                 ? pack_nodes(h, room, count)
                 : map_share_out(h->shares, h->request->workers, room, count,
                                 by < 2 ? MAP_FIT_THREADS : MAP_FIT_NOTHING);
    }
    TRY(rc);
    for (size_t r = 0; r < h->request->workers; r++) {
        h->shares[r].box = nodes->item[h->shares[r].box];
    }
    return 0;
}

/* -- inside a node -- */

static int make_machine(struct hybrid *h, uint32_t class_index, struct map_machine **out)
{
    struct map_machine *m = &h->machines[class_index];
    *out = m;
    if (m->made) {
        return 0;
    }
    const struct servet_profile *profile = map_one_node(h->view->classes[class_index].of, &m->node);
    size_t load = h->threads + h->slots.taken_count;
    TRY(map_view_make(profile, h->request->priority, load, &m->view, NULL));
    m->made = true;
    m->load = map_arena_get(&m->view.arena, m->view.leaf_count, sizeof *m->load);
    for (size_t i = 0; i < 2; i++) {
        size_t families = m->view.classes[0].family_count;
        m->most[i] = map_arena_get(&m->view.arena, families, sizeof *m->most[i]);
    }
    TRY(map_arena_check(&m->view.arena));
    m->view.sums = h->request->paper;
    const struct map_class *class = &m->view.classes[0];
    TRY(map_slots_make(&m->view, NULL, NULL, &m->slots, NULL));
    TRY(map_engine_make(&m->view, &m->engine));
    TRY(map_order_by_all(&m->view.arena, class, h->request->priority, &m->tree));
    return map_order_by_layers(&m->view.arena, class, &m->layers);
}

static int by_place(const void *a, const void *b, void *context)
{
    const struct map_order *order = context;
    uint32_t x = order->place[*(const uint32_t *)a], y = order->place[*(const uint32_t *)b];
    return x < y ? -1 : x > y;
}

/* The first of every PU before any second one: workers that share a region of PUs take them in
 * turn. */
static void place_threads(struct hybrid *h, struct map_machine *m, const struct map_share *share,
                          const uint32_t *items, uint32_t count)
{
    uint32_t *out = h->out + h->first[share->rank];
    memcpy(out, items, count * sizeof *out);
    qsort_r(out, count, sizeof *out, by_place, &m->layers);
    for (uint32_t t = 0; t < share->threads; t++) {
        out[t] = out[t % count];
        m->load[out[t]]++;
    }
}

/* How many ranks of the cut, from `low` on, have one region that holds all their threads; at least
 * one. */
static size_t count_together(const struct hybrid *h, size_t low, size_t ranks, size_t *threads)
{
    const struct map_share *first = &h->cut[low];
    uint32_t room = h->starts[first->end] - h->starts[first->begin];
    size_t high = low + 1;
    *threads = first->threads;
    while (high < ranks && h->cut[high].begin == first->begin && h->cut[high].end == first->end &&
           *threads + h->cut[high].threads <= room) {
        *threads += h->cut[high++].threads;
    }
    return high - low;
}

/* The sharing with these threads besides those placed so far. */
static uint64_t sharing_with(struct map_machine *m, const uint32_t *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        m->load[items[i]]++;
    }
    struct map_sharing sharing = {0};
    map_machine_sharing(m, &sharing);
    for (size_t i = 0; i < count; i++) {
        m->load[items[i]]--;
    }
    return sharing.all;
}

/* Kinds, memory of its own and last-level caches of all of them: less is better. */
static map_weight rank_items(const struct hybrid *h, const struct filling *f, const uint32_t *items,
                             size_t count)
{
    map_weight sum = {0};
    for (size_t i = 0; i < count; i++) {
        int64_t kind = (int64_t)map_key_kind(h->slots.key[f->at->first_leaf + items[i]]);
        sum = map_weight_plus(sum, map_weight_of(kind, KIND_SHIFT));
        sum = map_weight_plus(sum, map_view_first_weight(&f->machine->view, items[i]));
    }
    return sum;
}

/* Are these PUs as good as `others`, and, where that matters, share they no more? */
static bool is_as_good(const struct hybrid *h, const struct filling *f, const uint32_t *items,
                       const uint32_t *others, size_t count, bool sharing)
{
    return !map_weight_less(rank_items(h, f, others, count), rank_items(h, f, items, count)) &&
           (!sharing ||
            sharing_with(f->machine, items, count) <= sharing_with(f->machine, others, count));
}

/* Units of the region of the cut's rank `low` at equal distances, where they are as good as what
 * the weights have chosen; else that. */
static const uint32_t *spread_if_as_good(struct hybrid *h, const struct filling *f, size_t low,
                                         uint32_t threads)
{
    uint64_t begin = h->cut[low].begin, units = h->cut[low].end - begin;
    for (uint32_t t = 0; t < threads; t++) {
        h->spread[t] = h->units[begin + units * t / threads];
    }
    return is_as_good(h, f, h->spread, h->chosen, threads, true) ? h->spread : h->chosen;
}

/* Units that lie better where ranks end, instead of `items`: what parts the threads of ranks comes
 * first, then what parts a rank from the next. They are as good; and where ranks are not packed
 * they share no more. */
static int align_if_nearer(struct hybrid *h, const struct filling *f, size_t low, size_t high,
                           const uint32_t **items)
{
    const struct map_order *layers = &f->machine->layers;
    const struct map_share *ranks = h->cut + low;
    size_t count = high - low, units = ranks->end - ranks->begin;
    struct map_share all = {.threads = 0};
    int rc = map_region_align(layers, h->units + ranks->begin, units, ranks, count, h->aligned);
    for (size_t r = 0; r < count; r++) {
        all.threads += ranks[r].threads;
    }
    uint64_t now = map_region_parting(layers, *items, ranks, count);
    uint64_t aligned = rc < 0 ? now : map_region_parting(layers, h->aligned, ranks, count);
    bool nearer =
        aligned < now || (aligned == now && map_region_parting(layers, h->aligned, &all, 1) <
                                                map_region_parting(layers, *items, &all, 1));
    bool good = nearer && is_as_good(h, f, h->aligned, *items, all.threads, !f->pack);
    *items = good ? h->aligned : *items;
    return rc;
}

/* Ranks [low, high) of the cut get what the weights choose in their region, as of so many workers,
 * each its part of it in the order of the tree. Several ranks get units at equal distances where
 * that shares no more: odd threads then lie where the ranks' shares end, not in the first
 * groups. */
static int place_together(struct hybrid *h, const struct filling *f, size_t low, size_t high,
                          size_t threads)
{
    struct map_machine *m = f->machine;
    uint32_t first = h->starts[h->cut[low].begin], count = h->starts[h->cut[low].end] - first;
    const uint32_t *items = h->items + first;
    int rc = 0;
    if (threads < count) {
        struct map_region region = {&h->slots, f->at->first_leaf, items, count};
        map_region_choose(m, &region, threads, h->chosen);
        count = (uint32_t)threads;
        qsort_r(h->chosen, count, sizeof *h->chosen, by_place, &m->tree);
        items = h->chosen;
        if (high - low > 1) {
            items = f->pack ? h->chosen : spread_if_as_good(h, f, low, count);
            rc = align_if_nearer(h, f, low, high, &items);
        }
    }
    for (size_t r = low; r < high; r++) {
        uint32_t part = h->cut[r].threads < count ? h->cut[r].threads : count;
        place_threads(h, m, &h->cut[r], items, part);
        items += part;
    }
    return rc;
}

/* Ranks that were given all cores, and are alike but for one, take them in order. */
static bool take_in_order(struct hybrid *h, const struct filling *f)
{
    uint32_t least = UINT32_MAX, most = 0, begin = 0;
    for (size_t r = 0; r < f->ranks; r++) {
        least = f->shares[r].threads < least ? f->shares[r].threads : least;
        most = f->shares[r].threads > most ? f->shares[r].threads : most;
        h->cut[r].begin = begin;
        h->cut[r].end = begin += f->shares[r].threads;
    }
    return f->divided && most == least + 1;
}

/* Gives every rank of a node its items (positions in the class), with so many levels kept whole. */
static int place_ranks(struct hybrid *h, const struct filling *f, uint32_t whole)
{
    struct map_cut cut = {whole, f->pack};
    memcpy(h->cut, f->shares, f->ranks * sizeof *f->shares);
    TRY(take_in_order(h, f) ? 0 : map_split(&f->units, cut, h->cut, f->ranks));
    memset(f->machine->load, 0, f->machine->view.leaf_count * sizeof *f->machine->load);
    for (size_t low = 0, high, threads; low < f->ranks; low = high) {
        high = low + count_together(h, low, f->ranks, &threads);
        TRY(place_together(h, f, low, high, threads));
    }
    return 0;
}

/* The same, and what they share. */
static int try_regions(struct hybrid *h, const struct filling *f, uint32_t whole,
                       struct map_sharing *out)
{
    TRY(place_ranks(h, f, whole));
    map_machine_sharing(f->machine, out);
    out->crowd = map_machine_crowd(f->machine, h->out, h->first, f->shares, f->ranks);
    return 0;
}

/* Whole groups are a rank's own; but where ranks do not divide them, some ranks share a group while
 * others have two. Memory priority then keeps only so many of the upper levels whole that no rank
 * gets less memory or less cache than as many workers do: a rank straddles groups where its share
 * does. */
static int choose_regions(struct hybrid *h, const struct filling *f)
{
    struct map_machine *m = f->machine;
    struct map_sharing sharing = {.most = m->most[0]}, least = {.most = m->most[1]};
    uint32_t whole = f->units.order->depth;
    if (f->pack || f->ranks < 2 || f->threads > f->item_count || h->request->whole) {
        return place_ranks(h, f, whole);
    }
    TRY(try_regions(h, f, 0, &least));
    do {
        TRY(try_regions(h, f, whole, &sharing));
    } while (!map_sharing_no_worse(m, &sharing, &least) && whole-- > 0);
    return 0;
}

/* Communication priority packs; but where no PU is nearer than another that gains nothing, and what
 * is shared decides, as it does for workers: while there are cores to spare, ranks are spread. */
static bool packs(const struct hybrid *h, const struct filling *f)
{
    return h->request->priority == MAP_COMMUNICATION &&
           (h->request->paper || f->threads == f->units.count ||
            map_region_parted(f->machine, MAP_LAYERS, &f->units) ||
            !map_region_parted(f->machine, MAP_SHARING, &f->units));
}

/* Communication priority divides the smallest group that holds all threads. */
static int keep_smallest_group(struct hybrid *h, struct map_machine *m, uint32_t first_leaf,
                               size_t threads, uint32_t *count)
{
    const struct map_region all = {&h->slots, first_leaf, h->items, *count};
    uint32_t open = 0;
    map_region_open(m, &all);
    TRY(map_order_limit(&m->view, &m->slots, threads));
    for (uint32_t i = 0; i < *count; i++) {
        if (m->slots.key[h->items[i]] != MAP_KEY_NEVER) {
            h->items[open++] = h->items[i];
        }
    }
    *count = open;
    return 0;
}

/* Cores, or PUs: starts[unit] is its place in `items`. Gives the fewest PUs of one. */
static uint32_t make_units(struct hybrid *h, struct filling *f, bool by_core)
{
    const struct map_class *class = &f->machine->view.classes[0];
    const struct map_groups *cores = &class->cores;
    uint32_t units = 0, least = f->item_count;
    for (uint32_t i = 0; i < f->item_count; i++) {
        uint32_t core = cores->group_of[h->items[i]];
        bool mate = i && core != MAP_NONE && core == cores->group_of[h->items[i - 1]];
        if (!by_core || !mate) {
            h->units[units] = h->items[i];
            h->starts[units++] = i;
        }
    }
    h->starts[units] = f->item_count;
    for (uint32_t u = 0; u < units; u++) {
        uint32_t size = h->starts[u + 1] - h->starts[u];
        least = size < least ? size : least;
    }
    f->units = (struct map_units){&f->machine->tree, h->units, units, NULL};
    if (class->of->memory.level_count) {
        f->units.memory = &class->families[class->of->cache_count].groups;
    }
    return least;
}

/* Cores are divided before threads; where they do not suffice, the PUs that as many workers get
 * are. */
static void choose_units(struct hybrid *h, struct filling *f)
{
    const uint32_t least = make_units(h, f, true), cores = f->units.count;
    const struct map_region all = {&h->slots, f->at->first_leaf, h->items, f->item_count};
    f->divided = map_divide_cores(f->shares, f->ranks, cores, f->item_count, least);
    if (f->divided) {
        f->threads = cores;
        return;
    }
    if (f->threads > cores && f->threads < f->item_count) {
        map_region_choose(f->machine, &all, f->threads, h->chosen);
        f->item_count = (uint32_t)f->threads;
        memcpy(h->items, h->chosen, f->threads * sizeof *h->items);
        qsort_r(h->items, f->threads, sizeof *h->items, by_place, &f->machine->tree);
    }
    make_units(h, f, f->threads <= cores);
}

/* A rank that got cores takes their PUs: one of each core before any second one. */
static void fill_cores(struct hybrid *h, const struct filling *f, struct map_share *share)
{
    const struct map_groups *cores = &f->machine->view.classes[0].cores;
    const uint32_t *own = h->out + h->first[share->rank];
    uint32_t threads = map_threads_of(h->request, share->rank), count = 0;
    if (threads == share->threads) {
        return;
    }
    for (uint32_t i = 0; i < f->item_count; i++) {
        bool mine = false;
        for (uint32_t c = 0; c < share->threads && !mine; c++) {
            uint32_t core = cores->group_of[own[c]];
            mine =
                own[c] == h->items[i] || (core != MAP_NONE && core == cores->group_of[h->items[i]]);
        }
        h->spread[count] = h->items[i];
        count += mine;
    }
    share->threads = threads;
    const struct map_region region = {&h->slots, f->at->first_leaf, h->spread, count};
    if (threads < count) {
        map_region_choose(f->machine, &region, threads, h->chosen);
    }
    place_threads(h, f->machine, share, threads < count ? h->chosen : h->spread,
                  threads < count ? threads : count);
}

static int fill_node(struct hybrid *h, uint32_t node, struct map_share *shares, size_t ranks)
{
    const struct map_node *at = &h->view->nodes[node];
    struct filling f = {.at = at, .shares = shares, .ranks = ranks};
    TRY(make_machine(h, at->class_index, &f.machine));
    struct map_machine *m = f.machine;
    for (size_t r = 0; r < ranks; r++) {
        f.threads += shares[r].threads;
    }
    for (uint32_t i = 0; i < m->view.leaf_count; i++) {
        if (h->usable[at->first_leaf + m->tree.item[i]]) {
            h->items[f.item_count++] = m->tree.item[i];
        }
    }
    if (h->request->priority == MAP_COMMUNICATION && !h->request->paper) {
        TRY(keep_smallest_group(h, m, at->first_leaf, f.threads, &f.item_count));
    }
    choose_units(h, &f);
    f.pack = packs(h, &f);
    TRY(choose_regions(h, &f));
    for (size_t r = 0; r < ranks; r++) {
        fill_cores(h, &f, &shares[r]);
        uint32_t *out = h->out + h->first[shares[r].rank];
        for (uint32_t t = 0; t < shares[r].threads; t++) {
            out[t] = h->view->pu[at->first_leaf + out[t]];
        }
    }
    return 0;
}

/* -- the request -- */

static int sum_threads(struct hybrid *h, struct servet_error *error)
{
    const struct map_request *request = h->request;
    if (request->workers < 1 || request->workers >= MAP_WORKER_LIMIT) {
        return profile_error(error, -EINVAL, "ranks: expected a number from 1 to %u, got %zu",
                             MAP_WORKER_LIMIT - 1, request->workers);
    }
    for (size_t r = 0; r < request->workers; r++) {
        uint32_t threads = map_threads_of(request, r);
        h->threads += threads;
        if (threads < 1 || h->threads >= MAP_WORKER_LIMIT) {
            return profile_error(
                error, -EINVAL, "threads of rank %zu: expected at least 1 and fewer than %u in all",
                r, MAP_WORKER_LIMIT);
        }
    }
    return 0;
}

static int make_hybrid(struct hybrid *h)
{
    struct map_arena *arena = &h->view->arena;
    size_t ranks = h->request->workers;
    uint32_t widest = 0;
    for (size_t c = 0; c < h->view->class_count; c++) {
        uint32_t pus = (uint32_t)h->view->classes[c].of->pus.count;
        widest = pus > widest ? pus : widest;
    }
    h->usable = map_arena_get(arena, h->view->leaf_count, sizeof *h->usable);
    h->machines = map_arena_get(arena, h->view->class_count, sizeof *h->machines);
    h->shares = map_arena_get(arena, ranks, sizeof *h->shares);
    h->first = map_arena_get(arena, ranks, sizeof *h->first);
    h->items = map_arena_get(arena, widest, sizeof *h->items);
    h->units = map_arena_get(arena, widest, sizeof *h->units);
    h->starts = map_arena_get(arena, (size_t)widest + 1, sizeof *h->starts);
    h->chosen = map_arena_get(arena, widest, sizeof *h->chosen);
    h->spread = map_arena_get(arena, widest, sizeof *h->spread);
    h->aligned = map_arena_get(arena, widest, sizeof *h->aligned);
    h->cut = map_arena_get(arena, ranks, sizeof *h->cut);
    TRY(map_arena_check(arena));
    size_t at = 0;
    for (size_t r = 0; r < ranks; r++) {
        h->shares[r] =
            (struct map_share){.rank = (uint32_t)r, .threads = map_threads_of(h->request, r)};
        h->first[r] = at;
        at += h->shares[r].threads;
    }
    return 0;
}

static int fill_nodes(struct hybrid *h, struct servet_error *error)
{
    const struct map_request *request = h->request;
    struct map_order nodes;
    TRY(map_slots_make(h->view, request->allowed, request->taken, &h->slots, error));
    TRY(make_hybrid(h));
    TRY(map_order_of_nodes(h->view, &nodes));
    find_usable(h);
    TRY(choose_nodes(h, &nodes));
    for (size_t low = 0, high; low < request->workers; low = high) {
        uint32_t node = h->shares[low].box;
        for (high = low + 1; high < request->workers && h->shares[high].box == node; high++) {
        }
        TRY(fill_node(h, node, h->shares + low, high - low));
    }
    return 0;
}

int map_domains(const struct servet_profile *profile, const struct map_request *request,
                uint32_t *out, struct servet_error *error)
{
    struct hybrid h = {.request = request, .out = out};
    FREED_BY(map_view_free) struct map_view view = {0};
    TRY(sum_threads(&h, error));
    if (h.threads == request->workers) {
        struct map_request narrow = *request;
        narrow.known = true;
        return map_workers(profile, &narrow, out, NULL, error);
    }
    size_t load = h.threads + (request->taken ? request->taken->count : 0);
    TRY(map_view_make(profile, request->priority, load, &view, error));
    h.view = &view;
    const int rc = fill_nodes(&h, error);
    for (size_t c = 0; h.machines && c < view.class_count; c++) {
        map_view_free(&h.machines[c].view);
    }
    return map_out_of_memory(rc, error);
}
