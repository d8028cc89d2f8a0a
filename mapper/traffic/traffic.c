/* Places ranks by the bytes that they send one another: from the top of the machine down, and by
 * changes of places. The time of a pair is that of one message with all its bytes.
 *
 * Ranks are cut in two, and the halves again, where the machine is: at the dearest boundary, the
 * network, first. Within a level all groups are equally far from one another (pairs of one layer
 * have one latency), so that each cut is a plain graph partition into two parts of given sizes, and
 * the whole costs n log n on any machine, also where the chosen PUs do not form a regular tree. */
#include "mapper/traffic/traffic.h"

#include <stdlib.h>
#include <string.h>

#include "mapper/worth/worth.h"
#include "profile/query.h"
#include "profile/scope.h"

/* Ranks that are being placed; all but `place` is borrowed. */
struct traffic {
    struct map_view *view;
    const struct map_matrix *matrix;
    const uint32_t *leaves; /* to be used, one each */
    uint32_t *place;        /* by rank: its leaf */
    uint32_t *rank_at;      /* by leaf: the rank that was placed there last; MAP_NONE */
};

/* Changes of places: rounds, and how far each looks. */
#define MOST_ROUNDS 8
#define MOST_PARTNERS 8
#define MOST_NEAR 16

/* A round that saves less than this part of the time is the last. */
#define WORTH_A_ROUND 1e-3

/* Passes over a cut, and moves without a gain after which a pass ends. */
#define MOST_PASSES 8
#define MOST_IDLE_MOVES 128

/* Rounds of swaps; each looks at all pairs of ranks. Gains after the third were nowhere seen. */
#define MOST_SWAP_ROUNDS 3

/* Above this many ranks the swaps (ranks x ranks x partners) take seconds, and what is left to gain
 * is near the partners. */
#define MOST_SWAPPED_RANKS 256

/* A gain smaller than this part of the cost is rounding. */
#define LEAST_GAIN 1e-9

/* -- the time of a message -- */

double map_message_seconds(const struct map_view *view, uint32_t a, uint32_t b, double bytes)
{
    const struct map_family *between = map_between(view, a, b);
    if (!between) {
        return 0;
    }
    return view->latencies_known
               ? profile_message_seconds(between->layer, between->in->message_bytes, bytes)
               : between->distance * bytes;
}

/* -- the time of a placement -- */

/* Predicted time of what the rank exchanges with the others, if it were on `leaf`. */
static double seconds_of_rank(const struct traffic *t, uint32_t rank, uint32_t leaf)
{
    double seconds = 0;
    for (size_t e = t->matrix->start[rank]; e < t->matrix->start[rank + 1]; e++) {
        const struct map_entry *entry = &t->matrix->entries[e];
        seconds += map_message_seconds(t->view, leaf, t->place[entry->to], entry->bytes);
    }
    return seconds;
}

static double seconds_in_all(const struct traffic *t)
{
    double seconds = 0;
    for (uint32_t r = 0; r < t->matrix->ranks; r++) {
        seconds += seconds_of_rank(t, r, t->place[r]);
    }
    return seconds / 2; /* every pair was seen from both ends */
}

/* -- changing places -- */

/* Ranks of different numbers of threads have regions of different sizes, and do not change places:
 * `leaves` are then those of rank 0, rank 1, … */
static bool are_alike(const struct traffic *t, uint32_t a, uint32_t b)
{
    const uint32_t *threads = t->matrix->threads;
    return !threads || threads[a] == threads[b];
}

static double seconds_of_two(const struct traffic *t, uint32_t a, uint32_t b)
{
    return seconds_of_rank(t, a, t->place[a]) + seconds_of_rank(t, b, t->place[b]);
}

/* Do the two ranks save time in each other's place? Then they are there. */
static bool exchange_ranks(struct traffic *t, uint32_t a, uint32_t b)
{
    const uint32_t of_a = t->place[a], of_b = t->place[b];
    const double before = seconds_of_two(t, a, b);
    t->place[a] = of_b;
    t->place[b] = of_a;
    const bool saves = seconds_of_two(t, a, b) < before * (1 - LEAST_GAIN);
    t->place[a] = saves ? of_b : of_a;
    t->place[b] = saves ? of_a : of_b;
    t->rank_at[t->place[a]] = a;
    t->rank_at[t->place[b]] = b;
    return saves;
}

void map_exchange_all(void *context, uint32_t count, int rounds,
                      bool (*exchange)(void *context, uint32_t a, uint32_t b))
{
    bool improved = true;
    for (int round = 0; improved && round < rounds; round++) {
        improved = false;
        for (uint32_t a = 0; a < count; a++) {
            for (uint32_t b = a + 1; b < count; b++) {
                improved |= exchange(context, a, b);
            }
        }
    }
}

static bool exchange_two(void *context, uint32_t a, uint32_t b)
{
    return are_alike(context, a, b) && exchange_ranks(context, a, b);
}

static const struct map_groups *layer_groups(const struct map_class *class, size_t layer)
{
    size_t first = class->family_count - class->of->communication.layer_count;
    return &class->families[first + layer].groups;
}

/* Tries to bring rank `a` into the nearest groups of its partner's place: only where `a` itself
 * would be better off, which nearly all pairs are not, and which one rank's messages tell. */
static bool move_near(struct traffic *t, uint32_t a, uint32_t partner)
{
    const struct map_view *view = t->view;
    uint32_t leaf = t->place[partner], node = view->node_of[leaf];
    uint32_t first = view->nodes[node].first_leaf;
    const struct map_class *class = &view->classes[view->nodes[node].class_index];
    double now = seconds_of_rank(t, a, t->place[a]);
    for (size_t layer = 0; layer < class->of->communication.layer_count; layer++) {
        const struct map_groups *groups = layer_groups(class, layer);
        uint32_t group = groups->group_of[leaf - first], tried = 0;
        if (group == MAP_NONE) {
            continue;
        }
        for (uint32_t m = groups->start[group]; m < groups->start[group + 1]; m++) {
            uint32_t other = t->rank_at[first + groups->members[m]];
            if (other == a) {
                return false; /* near enough already */
            }
            if (other == MAP_NONE || other == partner || !are_alike(t, a, other)) {
                continue;
            }
            if (!tried && seconds_of_rank(t, a, t->place[other]) >= now) {
                break;
            }
            if (tried++ == MOST_NEAR) {
                break;
            }
            if (exchange_ranks(t, a, other)) {
                return true;
            }
        }
    }
    return false;
}

/* The heaviest entries of a rank, heaviest first; their number. */
static size_t heaviest_entries(const struct map_matrix *matrix, uint32_t rank,
                               struct map_entry best[MOST_PARTNERS])
{
    size_t count = 0;
    for (size_t e = matrix->start[rank]; e < matrix->start[rank + 1]; e++) {
        size_t at = count;
        while (at > 0 && best[at - 1].bytes < matrix->entries[e].bytes) {
            at--;
        }
        if (at < MOST_PARTNERS) {
            count += count < MOST_PARTNERS;
            memmove(best + at + 1, best + at, (count - at - 1) * sizeof *best);
            best[at] = matrix->entries[e];
        }
    }
    return count;
}

/* Ranks change places with others near their partners while that saves time. */
static void improve_nearby(struct traffic *t)
{
    double before = seconds_in_all(t), now;
    memset(t->rank_at, 0xff, t->view->leaf_count * sizeof *t->rank_at); /* MAP_NONE */
    for (uint32_t r = 0; r < t->matrix->ranks; r++) {
        t->rank_at[t->place[r]] = r;
    }
    for (int round = 0; round < MOST_ROUNDS; round++) {
        for (uint32_t r = 0; r < t->matrix->ranks; r++) {
            struct map_entry heaviest[MOST_PARTNERS];
            size_t count = heaviest_entries(t->matrix, r, heaviest);
            for (size_t p = 0; p < count; p++) {
                move_near(t, r, heaviest[p].to);
            }
        }
        now = seconds_in_all(t);
        if (now >= before * (1 - WORTH_A_ROUND)) {
            break;
        }
        before = now;
    }
}

/* Ranks of one side that may move to the other, the one that saves most bytes first, the lowest
 * number on ties. */
struct heap {
    uint32_t *items, count;
};

struct descent {
    struct traffic *t;
    uint32_t *ranks;   /* all ranks; those of one part lie together */
    uint32_t *leaves;  /* the places; those of one group lie together */
    uint32_t *parting; /* by leaf: the outermost level that parts it from the one before it;
                          MAP_NONE: none does */
    uint32_t *room;    /* as long, for sorting */
    /* The subgraph at hand: some ranks, numbered from 0, and what they send to one another. */
    uint32_t *local;           /* by rank: its number; MAP_NONE: not in it */
    size_t *start;             /* by number, and one more: where its partners begin */
    struct map_entry *entries; /* from number to number */
    /* Its cut. */
    uint8_t *side;  /* 0 or 1 */
    double *saving; /* bytes over the cut that a move to the other side saves */
    uint32_t *at;   /* where it stands in its side's heap; MAP_NONE: it does not move */
    struct heap heaps[2];
    uint32_t *moved; /* in this pass, in order */
};

/* -- the heaps -- */

static bool saves_more(const struct descent *d, uint32_t a, uint32_t b)
{
    if (d->saving[a] > d->saving[b] || d->saving[a] < d->saving[b]) {
        return d->saving[a] > d->saving[b];
    }
    return a < b;
}

static void set_item(struct descent *d, struct heap *heap, uint32_t at, uint32_t item)
{
    heap->items[at] = item;
    d->at[item] = at;
}

/* Puts an item where it belongs, from the hole at `at`. */
static void sift(struct descent *d, struct heap *heap, uint32_t at, uint32_t item)
{
    for (; at > 0 && saves_more(d, item, heap->items[(at - 1) / 2]); at = (at - 1) / 2) {
        set_item(d, heap, at, heap->items[(at - 1) / 2]);
    }
    for (uint32_t child = 2 * at + 1; child < heap->count; child = 2 * at + 1) {
        child +=
            child + 1 < heap->count && saves_more(d, heap->items[child + 1], heap->items[child]);
        if (!saves_more(d, heap->items[child], item)) {
            break;
        }
        set_item(d, heap, at, heap->items[child]);
        at = child;
    }
    set_item(d, heap, at, item);
}

static uint32_t take_first(struct descent *d, struct heap *heap)
{
    uint32_t first = heap->items[0], last = heap->items[--heap->count];
    if (heap->count) {
        sift(d, heap, 0, last);
    }
    d->at[first] = MAP_NONE;
    return first;
}

/* All items of the subgraph may move. */
static void fill_heaps(struct descent *d, uint32_t count)
{
    d->heaps[0].count = d->heaps[1].count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct heap *heap = &d->heaps[d->side[i]];
        sift(d, heap, heap->count++, i);
    }
}

/* -- cutting -- */

static void move_over(struct descent *d, uint32_t item)
{
    const uint8_t to = d->side[item] ^= 1;
    d->saving[item] = -d->saving[item];
    for (size_t e = d->start[item]; e < d->start[item + 1]; e++) {
        const uint32_t other = d->entries[e].to;
        d->saving[other] += (d->side[other] == to ? -2 : 2) * d->entries[e].bytes;
        if (d->at[other] != MAP_NONE) {
            sift(d, &d->heaps[d->side[other]], d->at[other], other);
        }
    }
}

/* Side 0 grows from nothing to `size` ranks; next is always the one that leaves the fewest bytes
 * between the sides, which begins in a corner. */
static void cut_by_growth(struct descent *d, uint32_t count, uint32_t size)
{
    for (uint32_t i = 0; i < count; i++) {
        d->side[i] = 1;
        d->saving[i] = 0;
        for (size_t e = d->start[i]; e < d->start[i + 1]; e++) {
            d->saving[i] -= d->entries[e].bytes;
        }
    }
    fill_heaps(d, count);
    for (uint32_t n = 0; n < size; n++) {
        move_over(d, take_first(d, &d->heaps[1]));
    }
}

/* Ranks change sides in pairs, each once, the best ones first even where that costs bytes; the pass
 * then goes back to its best moment (Kernighan and Lin 1970, with the heaps of Fiduccia and
 * Mattheyses 1982). True: it saved bytes. */
static bool improve_cut(struct descent *d, uint32_t count)
{
    uint32_t moves = 0, best_moves = 0;
    double saved = 0, best = 0;
    fill_heaps(d, count);
    while (d->heaps[0].count && d->heaps[1].count && moves - best_moves < MOST_IDLE_MOVES) {
        for (int side = 0; side < 2; side++) {
            const uint32_t item = take_first(d, &d->heaps[side]);
            saved += d->saving[item];
            move_over(d, item);
            d->moved[moves++] = item;
        }
        if (saved > best) {
            best = saved;
            best_moves = moves;
        }
    }
    while (moves > best_moves) {
        move_over(d, d->moved[--moves]);
    }
    return best > 0;
}

/* -- the machine, level by level -- */

/* Levels in all: layers between nodes, the node itself, the layers of the class with the most. */
static size_t count_levels(const struct map_view *view)
{
    size_t most = 0;
    for (size_t c = 0; c < view->class_count; c++) {
        size_t layers = view->classes[c].of->communication.layer_count;
        most = layers > most ? layers : most;
    }
    return view->network_count + 1 + most;
}

/* By a number above all groups where it is alone. */
static uint64_t group_at(const struct map_view *view, size_t level, uint32_t leaf)
{
    uint32_t node = view->node_of[leaf], group = MAP_NONE, item = leaf;
    if (level < view->network_count) {
        group = view->network[view->network_count - 1 - level].groups.group_of[node];
        item = node;
    } else if (level == view->network_count) {
        return node;
    } else {
        const struct map_class *class = &view->classes[view->nodes[node].class_index];
        size_t inside = level - view->network_count - 1;
        size_t layers = class->of->communication.layer_count;
        if (inside >= layers) {
            return 0;
        }
        const struct map_groups *groups = layer_groups(class, layers - 1 - inside);
        group = groups->group_of[leaf - view->nodes[node].first_leaf];
    }
    return group == MAP_NONE ? (uint64_t)MAP_NONE + 1 + item : group;
}

/* The outermost level that parts two leaves; MAP_NONE: none does. */
static uint32_t parting_level(const struct map_view *view, uint32_t a, uint32_t b)
{
    const size_t levels = count_levels(view);
    for (size_t level = 0; level < levels; level++) {
        if (group_at(view, level, a) != group_at(view, level, b)) {
            return (uint32_t)level;
        }
    }
    return MAP_NONE;
}

static int by_groups(const void *a, const void *b, void *context)
{
    const struct map_view *view = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const size_t level = parting_level(view, x, y);
    const uint64_t p = group_at(view, level, x), q = group_at(view, level, y);
    return p != q ? (p < q ? -1 : 1) : (x > y) - (x < y);
}

/* -- level by level -- */

/* The subgraph at hand is that of the ranks [begin, end). */
static void take_subgraph(struct descent *d, uint32_t begin, uint32_t end)
{
    const struct map_matrix *matrix = d->t->matrix;
    size_t used = 0;
    for (uint32_t i = begin; i < end; i++) {
        d->local[d->ranks[i]] = i - begin;
    }
    for (uint32_t i = begin; i < end; i++) {
        uint32_t rank = d->ranks[i];
        d->start[i - begin] = used;
        for (size_t e = matrix->start[rank]; e < matrix->start[rank + 1]; e++) {
            uint32_t to = d->local[matrix->entries[e].to];
            if (to != MAP_NONE) {
                d->entries[used++] = (struct map_entry){i - begin, to, matrix->entries[e].bytes};
            }
        }
    }
    d->start[end - begin] = used;
    for (uint32_t i = begin; i < end; i++) {
        d->local[d->ranks[i]] = MAP_NONE;
    }
}

/* Where [begin, end) is cut: at the outermost level that parts it, nearest to the middle. `end`:
 * nowhere, it is one group on all levels. */
static uint32_t find_cut(const struct descent *d, uint32_t begin, uint32_t end)
{
    uint32_t level = MAP_NONE, best = end;
    int64_t nearest = 0;
    for (uint32_t i = begin + 1; i < end; i++) {
        const int64_t off = llabs(2 * (int64_t)i - begin - end);
        if (d->parting[i] < level || (d->parting[i] == level && best < end && off < nearest)) {
            level = d->parting[i];
            best = i;
            nearest = off;
        }
    }
    return best;
}

/* The ranks of side 0 first, in their order on each side. */
static void sort_ranks(struct descent *d, uint32_t begin, uint32_t middle, uint32_t end)
{
    uint32_t at[2] = {begin, middle};
    memcpy(d->room + begin, d->ranks + begin, (end - begin) * sizeof *d->ranks);
    for (uint32_t i = begin; i < end; i++) {
        d->ranks[at[d->side[i - begin]]++] = d->room[i];
    }
}

static void descend(struct descent *d, uint32_t begin, uint32_t end)
{
    const uint32_t middle = find_cut(d, begin, end);
    if (middle == end) {
        return;
    }
    take_subgraph(d, begin, end);
    cut_by_growth(d, end - begin, middle - begin);
    for (int pass = 0; pass < MOST_PASSES && improve_cut(d, end - begin); pass++) {
    }
    sort_ranks(d, begin, middle, end);
    descend(d, begin, middle);
    descend(d, middle, end);
}

/* The leaves, sorted, and the levels that part them. */
static void sort_leaves(struct descent *d, uint32_t count)
{
    struct map_view *view = d->t->view;
    memcpy(d->leaves, d->t->leaves, count * sizeof *d->leaves);
    qsort_r(d->leaves, count, sizeof *d->leaves, by_groups, view);
    for (uint32_t i = 1; i < count; i++) {
        d->parting[i] = parting_level(view, d->leaves[i - 1], d->leaves[i]);
    }
}

static int place_by_descent(struct traffic *t)
{
    struct map_arena *arena = &t->view->arena;
    const uint32_t ranks = t->matrix->ranks;
    struct descent d = {
        .t = t,
        .ranks = map_arena_get(arena, ranks, sizeof *d.ranks),
        .leaves = map_arena_get(arena, ranks, sizeof *d.leaves),
        .parting = map_arena_get(arena, ranks, sizeof *d.parting),
        .room = map_arena_get(arena, ranks, sizeof *d.room),
        .local = map_arena_get(arena, ranks, sizeof *d.local),
        .start = map_arena_get(arena, (size_t)ranks + 1, sizeof *d.start),
        .entries = map_arena_get(arena, t->matrix->start[ranks], sizeof *d.entries),
        .side = map_arena_get(arena, ranks, sizeof *d.side),
        .saving = map_arena_get(arena, ranks, sizeof *d.saving),
        .at = map_arena_get(arena, ranks, sizeof *d.at),
        .heaps = {{map_arena_get(arena, ranks, sizeof *d.heaps->items), 0},
                  {map_arena_get(arena, ranks, sizeof *d.heaps->items), 0}},
        .moved = map_arena_get(arena, ranks, sizeof *d.moved),
    };
    TRY(map_arena_check(arena));
    for (uint32_t r = 0; r < ranks; r++) {
        d.ranks[r] = r;
        d.local[r] = MAP_NONE;
    }
    sort_leaves(&d, ranks);
    descend(&d, 0, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        t->place[d.ranks[i]] = d.leaves[i];
    }
    return 0;
}

/* -- all -- */

/* Ranks are cut level by level, but not with uneven numbers of threads: the cuts know nothing of
 * sizes. Few ranks change places while that saves time, from there on and from rank order, as
 * programs often number their ranks well already; the better end counts. */
static int place_greedily(struct traffic *t)
{
    uint32_t ranks = t->matrix->ranks;
    uint32_t *other = map_arena_get(&t->view->arena, ranks, sizeof *other);
    TRY(map_arena_check(&t->view->arena));
    TRY(t->matrix->threads ? 0 : place_by_descent(t));
    improve_nearby(t);
    if (ranks > MOST_SWAPPED_RANKS) {
        return 0;
    }
    map_exchange_all(t, ranks, MOST_SWAP_ROUNDS, exchange_two);
    double seconds = seconds_in_all(t);
    memcpy(other, t->place, ranks * sizeof *other);
    memcpy(t->place, t->leaves, ranks * sizeof *t->place);
    map_exchange_all(t, ranks, MOST_SWAP_ROUNDS, exchange_two);
    if (seconds_in_all(t) > seconds) {
        memcpy(t->place, other, ranks * sizeof *other);
    }
    return 0;
}

/* Leaves become their numbers in t->leaves, each once. Several regions may begin on one leaf, and
 * keep their size. */
static int number_places(struct traffic *t)
{
    const uint32_t ranks = t->matrix->ranks;
    uint32_t *first = map_arena_get(&t->view->arena, t->view->leaf_count, sizeof *first);
    uint32_t *next = map_arena_get(&t->view->arena, ranks, sizeof *next);
    TRY(map_arena_check(&t->view->arena));
    memset(first, 0xff, t->view->leaf_count * sizeof *first); /* MAP_NONE */
    for (uint32_t i = ranks; i-- > 0;) {
        next[i] = first[t->leaves[i]];
        first[t->leaves[i]] = i;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t *at = &first[t->place[r]];
        while (!are_alike(t, r, *at)) {
            at = &next[*at];
        }
        t->place[r] = *at;
        *at = next[*at];
    }
    return 0;
}

int map_place_ranks(struct map_view *view, const struct map_matrix *matrix, const uint32_t *leaves,
                    uint32_t *out, struct map_traffic_seconds *seconds)
{
    struct traffic t = {.view = view, .matrix = matrix, .leaves = leaves, .place = out};
    t.rank_at = map_arena_get(&view->arena, view->leaf_count, sizeof *t.rank_at);
    TRY(map_arena_check(&view->arena));
    memcpy(out, leaves, matrix->ranks * sizeof *out);
    seconds->in_order = seconds_in_all(&t);
    TRY(place_greedily(&t));
    seconds->greedy = seconds_in_all(&t);
    if (!(seconds->greedy < seconds->in_order)) {
        memcpy(out, leaves, matrix->ranks * sizeof *out);
    }
    return number_places(&t);
}
