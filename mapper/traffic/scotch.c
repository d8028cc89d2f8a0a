/* Scotch's static mapping, level by level and onto the whole machine. Level by level the ranks of a
 * part are mapped onto the complete graph of the next parts, weighted by their sizes, which any
 * machine allows; a machine that is a regular tree Scotch knows as one ("tleaf"). Scotch balances
 * within a tolerance, and a part or leaf has exactly so many places: what is too many moves to the
 * part with room that it talks to most, or to a free leaf nearby.
 */
#include <errno.h>
#include <math.h>
#include <scotch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/traffic/traffic.h"

/* Loads are integers there, of 32 bits in Debian's build, and so is their sum times the links that
 * they cross: where that overflows Scotch gives answers that are 1.5 % worse and says nothing. */
#define MOST_SUM 0x1p30

struct lists {
    SCOTCH_Num *start, *with, *load, *part, *sizes;
};

static void free_lists(struct lists *lists)
{
    free(lists->start);
    free(lists->with);
    free(lists->load);
    free(lists->part);
    free(lists->sizes);
}

/* The power of two that makes loads of bytes: 1 where they are whole numbers and small enough, so
 * that Scotch sees what scotch_gmap sees; else as fine as they can be. Powers of two of the same
 * loads give the same answer, other factors another one. */
static double load_of_byte(const struct map_subgraph *graph, double most_link)
{
    double sum = 0;
    bool whole = true;
    for (size_t e = 0; e < graph->start[graph->count]; e++) {
        sum += graph->bytes[e];
        whole = whole && graph->bytes[e] <= floor(graph->bytes[e]);
    }
    int exponent;
    frexp(MOST_SUM / (sum * most_link), &exponent);
    return whole && exponent > 0 ? 1 : ldexp(0.5, exponent);
}

static int make_lists(const struct map_subgraph *graph, const uint32_t *sizes, uint32_t parts,
                      double most_link, struct lists *out)
{
    size_t edges = graph->start[graph->count];
    struct lists lists = {
        .start = calloc((size_t)graph->count + 1, sizeof *lists.start),
        .with = calloc(edges + 1, sizeof *lists.with),
        .load = calloc(edges + 1, sizeof *lists.load),
        .part = calloc(graph->count, sizeof *lists.part),
        .sizes = calloc(parts, sizeof *lists.sizes),
    };
    if (!lists.start || !lists.with || !lists.load || !lists.part || !lists.sizes) {
        free_lists(&lists);
        return -ENOMEM;
    }
    double factor = load_of_byte(graph, most_link);
    for (size_t e = 0; e < edges; e++) {
        lists.with[e] = (SCOTCH_Num)graph->with[e];
        double load = factor * graph->bytes[e];
        lists.load[e] = load < 1 ? 1 : (SCOTCH_Num)load;
    }
    for (uint32_t r = 0; r <= graph->count; r++) {
        lists.start[r] = (SCOTCH_Num)graph->start[r];
    }
    for (uint32_t p = 0; p < parts; p++) {
        lists.sizes[p] = (SCOTCH_Num)sizes[p];
    }
    *out = lists;
    return 0;
}

/* Scotch 7 works with as many threads as it finds, and gives another answer each time. */
static bool map_bound(SCOTCH_Graph *graph, SCOTCH_Arch *arch, SCOTCH_Strat *strategy,
                      SCOTCH_Num *part)
{
#if SCOTCH_VERSION >= 7
    SCOTCH_Context context;
    SCOTCH_Graph bound;
    SCOTCH_contextInit(&context);
    SCOTCH_graphInit(&bound);
    bool done = SCOTCH_contextThreadSpawn(&context, 1, NULL) == 0 &&
                SCOTCH_contextBindGraph(&context, graph, &bound) == 0 &&
                SCOTCH_graphMap(&bound, arch, strategy, part) == 0;
    SCOTCH_graphExit(&bound);
    SCOTCH_contextExit(&context);
    return done;
#else
    return SCOTCH_graphMap(graph, arch, strategy, part) == 0;
#endif
}

/* Ways to ask Scotch: its default strategy, which is scotch_gmap's; with a wider tolerance of the
 * balance, which is best on irregular matrices; with balance above all, which is best on grids. */
enum asking { BY_DEFAULT, LOOSELY, IN_BALANCE, ASKINGS };
static const struct {
    SCOTCH_Num flags;
    double tolerance;
} askings[ASKINGS] = {
    [LOOSELY] = {SCOTCH_STRATDEFAULT, 0.03}, [IN_BALANCE] = {SCOTCH_STRATBALANCE, 0.01}};

/* The architecture is made already. */
static bool map_graph(const struct map_subgraph *of, SCOTCH_Arch *arch, enum asking asking,
                      struct lists *lists)
{
    SCOTCH_Graph graph;
    SCOTCH_Strat strategy;
    SCOTCH_graphInit(&graph);
    SCOTCH_stratInit(&strategy);
    bool done = asking == BY_DEFAULT ||
                SCOTCH_stratGraphMapBuild(&strategy, askings[asking].flags, (SCOTCH_Num)of->count,
                                          askings[asking].tolerance) == 0;
    done = done &&
           SCOTCH_graphBuild(&graph, 0, (SCOTCH_Num)of->count, lists->start, NULL, NULL, NULL,
                             lists->start[of->count], lists->with, lists->load) == 0 &&
           map_bound(&graph, arch, &strategy, lists->part);
    SCOTCH_stratExit(&strategy);
    SCOTCH_graphExit(&graph);
    return done;
}

static int map_to_parts(const struct map_subgraph *graph, uint32_t parts, struct lists *lists)
{
    SCOTCH_Arch arch;
    SCOTCH_archInit(&arch);
    SCOTCH_randomReset(); /* the same matrix gives the same placement */
    bool done = SCOTCH_archCmpltw(&arch, (SCOTCH_Num)parts, lists->sizes) == 0 &&
                map_graph(graph, &arch, BY_DEFAULT, lists);
    SCOTCH_archExit(&arch);
    return done ? 0 : -ENOMEM;
}

/* Bytes of a rank to the ranks of one part. */
static double bytes_to(const struct map_subgraph *graph, uint32_t rank, const uint32_t *part,
                       uint32_t wanted)
{
    double bytes = 0;
    for (size_t e = graph->start[rank]; e < graph->start[rank + 1]; e++) {
        bytes += part[graph->with[e]] == wanted ? graph->bytes[e] : 0;
    }
    return bytes;
}

/* The part with room that the rank talks to most; the first with room where it talks to none. */
static uint32_t best_with_room(const struct map_subgraph *graph, uint32_t rank,
                               const uint32_t *part, const int64_t *room, uint32_t first)
{
    uint32_t best = first;
    double most = 0;
    for (size_t e = graph->start[rank]; e < graph->start[rank + 1]; e++) {
        uint32_t other = part[graph->with[e]];
        double bytes = room[other] > 0 ? bytes_to(graph, rank, part, other) : 0;
        if (bytes > most) {
            best = other;
            most = bytes;
        }
    }
    return best;
}

struct leaving {
    double loss;
    uint32_t rank;
};

static int by_loss(const void *a, const void *b)
{
    const struct leaving *x = a, *y = b;
    if (x->loss < y->loss || x->loss > y->loss) {
        return x->loss < y->loss ? -1 : 1;
    }
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Makes the parts exactly as large as they must be: whoever loses least leaves first. */
static int even_out(const struct map_subgraph *graph, const uint32_t *sizes, uint32_t parts,
                    uint32_t *part)
{
    int64_t *room = calloc(parts, sizeof *room);
    struct leaving *leaving = calloc(graph->count, sizeof *leaving);
    int rc = room && leaving ? 0 : -ENOMEM;
    size_t count = 0;
    for (uint32_t p = 0; rc == 0 && p < parts; p++) {
        room[p] = sizes[p];
    }
    for (uint32_t r = 0; rc == 0 && r < graph->count; r++) {
        room[part[r]]--;
    }
    for (uint32_t r = 0; rc == 0 && r < graph->count; r++) {
        if (room[part[r]] < 0) {
            leaving[count++] = (struct leaving){bytes_to(graph, r, part, part[r]), r};
        }
    }
    qsort(leaving, count, sizeof *leaving, by_loss);
    uint32_t first = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        uint32_t rank = leaving[i].rank;
        if (room[part[rank]] >= 0) {
            continue;
        }
        while (room[first] <= 0) {
            first++;
        }
        uint32_t to = best_with_room(graph, rank, part, room, first);
        room[part[rank]]++;
        room[to]--;
        part[rank] = to;
    }
    free(leaving);
    free(room);
    return rc;
}

static int cut_by_scotch(const struct map_subgraph *graph, const uint32_t *sizes, uint32_t parts,
                         uint32_t *part)
{
    struct lists lists;
    if (!graph->start[graph->count]) {
        return map_cut_by_growth(graph, sizes, parts, part);
    }
    int rc = make_lists(graph, sizes, parts, 1, &lists);
    if (rc < 0) {
        return rc;
    }
    rc = map_to_parts(graph, parts, &lists);
    for (uint32_t r = 0; rc == 0 && r < graph->count; r++) {
        bool known = lists.part[r] >= 0 && lists.part[r] < (SCOTCH_Num)parts;
        part[r] = known ? (uint32_t)lists.part[r] : 0;
    }
    free_lists(&lists);
    return rc < 0 ? rc : even_out(graph, sizes, parts, part);
}

/* -- onto the tree of the machine -- */

/* Answers of Scotch, of which the best is taken; each takes the time of scotch_gmap. Asking by
 * default again wins next to nothing. */
#define MOST_TRIES 6
#define LEAST_TRIES 3
#define TRIED_RANKS 4096 /* of all tries together, where that is between those */

/* Scotch's mapping onto a tree is quadratic in the ranks (nine tenths of more than 84 s of
 * 100,000); above this many the machine is gone through level by level, in 6 s. */
#define MOST_TREE_RANKS 32768

/* Levels of a machine: network layers, node, layers inside it. */
#define MOST_LEVELS 32

/* Costs of links are integers there, small ones (MOST_SUM): the nearest two leaves are so far
 * apart, before all are divided by what they have in common. */
#define NEAREST_STEPS 10
#define FARTHEST_STEPS 1000

/* The leaves as a regular tree: every group of a level has as many groups of the next. */
struct tree {
    uint32_t *leaves; /* in the order of the tree */
    SCOTCH_Num depth, sizes[MOST_LEVELS], links[MOST_LEVELS];
};

static int by_groups(const void *a, const void *b, void *context)
{
    const struct map_view *view = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    size_t levels = map_count_levels(view);
    for (size_t level = 0; level < levels; level++) {
        uint64_t p = map_group_at(view, level, x), q = map_group_at(view, level, y);
        if (p != q) {
            return p < q ? -1 : 1;
        }
    }
    return x < y ? -1 : x > y;
}

/* The outermost level on which two leaves are in different groups; below all: `levels`. */
static size_t parting_level(const struct map_view *view, size_t levels, uint32_t a, uint32_t b)
{
    size_t level = 0;
    while (level < levels && map_group_at(view, level, a) == map_group_at(view, level, b)) {
        level++;
    }
    return level;
}

/* Is there a new group on this level, or above, after every `each` leaves and nowhere else? */
static bool equal_groups(const uint8_t *parting, uint32_t count, uint32_t each, size_t level)
{
    for (uint32_t i = 1; i < count; i++) {
        if ((parting[i] <= level) != (i % each == 0)) {
            return false;
        }
    }
    return true;
}

/* What siblings of a level are apart, as the message of `bytes` sees it. */
static double apart(const struct map_traffic *t, const struct tree *tree, const uint8_t *parting,
                    size_t level, double bytes)
{
    for (uint32_t i = 1; i < t->matrix->ranks; i++) {
        if (parting[i] == level) {
            return map_message_seconds(t->view, tree->leaves[i - 1], tree->leaves[i], bytes);
        }
    }
    return 0;
}

/* Fills sizes and links of the levels on which something parts. False: not regular. */
static bool make_levels(const struct map_traffic *t, const uint8_t *parting, struct tree *tree)
{
    size_t levels = map_count_levels(t->view), entries = t->matrix->start[t->matrix->ranks];
    uint32_t count = t->matrix->ranks, before = 1;
    double bytes = 0, seconds[MOST_LEVELS];
    for (size_t e = 0; e < entries; e++) {
        bytes += t->matrix->bytes[e] / (double)entries;
    }
    for (size_t level = 0; level <= levels; level++) {
        uint32_t groups = 1;
        for (uint32_t i = 1; i < count; i++) {
            groups += parting[i] <= level;
        }
        if (groups == before) {
            continue;
        }
        if (count % groups || !equal_groups(parting, count, count / groups, level)) {
            return false;
        }
        seconds[tree->depth] = apart(t, tree, parting, level, bytes);
        tree->sizes[tree->depth++] = (SCOTCH_Num)(groups / before);
        before = groups;
    }
    SCOTCH_Num common = 0;
    for (SCOTCH_Num d = tree->depth; d-- > 0;) {
        double steps = NEAREST_STEPS * seconds[d] / seconds[tree->depth - 1] + 0.5;
        tree->links[d] = steps >= 1 && steps < FARTHEST_STEPS ? (SCOTCH_Num)steps : FARTHEST_STEPS;
        for (SCOTCH_Num a = tree->links[d], rest; a; a = rest) {
            rest = common % a;
            common = a;
        }
    }
    for (SCOTCH_Num d = 0; d < tree->depth; d++) {
        tree->links[d] /= common;
    }
    return tree->depth > 0;
}

/* 0; -ENOTSUP: the leaves are no regular tree; -ENOMEM. */
static int make_tree(struct map_traffic *t, struct tree *tree)
{
    struct map_view *view = t->view;
    uint32_t count = t->matrix->ranks;
    size_t levels = map_count_levels(view);
    uint8_t *parting = map_arena_get(&view->arena, count, sizeof *parting);
    *tree = (struct tree){.leaves = map_arena_get(&view->arena, count, sizeof *tree->leaves)};
    if (!parting || !tree->leaves) {
        return -ENOMEM;
    }
    if (levels >= MOST_LEVELS || count > MOST_TREE_RANKS) {
        return -ENOTSUP;
    }
    memcpy(tree->leaves, t->leaves, count * sizeof *tree->leaves);
    qsort_r(tree->leaves, count, sizeof *tree->leaves, by_groups, view);
    for (uint32_t i = 1; i < count; i++) {
        parting[i] = (uint8_t)parting_level(view, levels, tree->leaves[i - 1], tree->leaves[i]);
    }
    return make_levels(t, parting, tree) ? 0 : -ENOTSUP;
}

/* Free leaves that a rank looks at which Scotch has put on a leaf of another: the nearest ones in
 * the order of the tree. */
#define MOST_FREE 16

/* Scotch balances within a tolerance: who comes second on a leaf goes to a free one nearby. */
static void place_second_ones(struct map_traffic *t, const struct tree *tree,
                              const SCOTCH_Num *part, bool *used)
{
    uint32_t count = t->matrix->ranks;
    for (uint32_t r = 0; r < count; r++) {
        uint32_t best = MAP_NONE, seen = 0;
        double least = 0;
        for (uint32_t step = 1; t->place[r] == MAP_NONE && step < 2 * count && seen < MOST_FREE;
             step++) {
            uint32_t far = step / 2, at = (uint32_t)part[r] + (step % 2 ? 0 - far : far);
            if (at >= count || used[at]) {
                continue;
            }
            double seconds = map_traffic_of_rank(t, r, tree->leaves[at]);
            if (!seen++ || seconds < least) {
                best = at;
                least = seconds;
            }
        }
        if (best != MAP_NONE) {
            used[best] = true;
            t->place[r] = tree->leaves[best];
        }
    }
}

/* One answer of Scotch, which goes on with its random numbers, as a placement. */
static int place_on_tree(struct map_traffic *t, const struct tree *tree, SCOTCH_Arch *arch,
                         enum asking asking, struct lists *lists)
{
    const struct map_matrix *m = t->matrix;
    const struct map_subgraph graph = {m->ranks, m->start, m->with, m->bytes};
    bool *used = calloc(m->ranks, sizeof *used);
    if (!used || !map_graph(&graph, arch, asking, lists)) {
        free(used);
        return -ENOMEM;
    }
    for (uint32_t r = 0; r < m->ranks; r++) {
        bool known = lists->part[r] >= 0 && lists->part[r] < (SCOTCH_Num)m->ranks;
        lists->part[r] = known ? lists->part[r] : 0;
        t->place[r] = used[lists->part[r]] ? MAP_NONE : tree->leaves[lists->part[r]];
        used[lists->part[r]] = true;
    }
    place_second_ones(t, tree, lists->part, used);
    free(used);
    return 0;
}

/* The best placement so far. */
struct best {
    uint32_t *place;
    double seconds;
    uint32_t found; /* answers that are as good */
};

/* Totals that differ less are rounding. */
#define SAME_TOTAL 1e-9

/* Improves the placement at hand and keeps it when it is the best. 0 or -ENOMEM. */
static int keep_better(struct map_traffic *t, struct best *best)
{
    int rc = map_improve_nearby(t);
    double seconds = map_traffic_total(t);
    if (rc == 0 && (!best->found || seconds < best->seconds * (1 - SAME_TOTAL))) {
        *best = (struct best){best->place, seconds, 0};
        memcpy(best->place, t->place, t->matrix->ranks * sizeof *best->place);
    }
    best->found += seconds <= best->seconds * (1 + SAME_TOTAL);
    return rc;
}

/* The first answer is what scotch_gmap gives with one thread (also "-Cd"), so that ours is never
 * worse; others follow until the best has been found twice. */
static int place_best_on_tree(struct map_traffic *t, const struct tree *tree, struct best *best)
{
    const struct map_matrix *m = t->matrix;
    const struct map_subgraph graph = {m->ranks, m->start, m->with, m->bytes};
    uint32_t tries = TRIED_RANKS / m->ranks;
    tries = tries < LEAST_TRIES ? LEAST_TRIES : tries > MOST_TRIES ? MOST_TRIES : tries;
    struct lists lists;
    SCOTCH_Arch arch;
    int rc = make_lists(&graph, &m->ranks, 1, tree->links[0], &lists);
    if (rc < 0) {
        return rc;
    }
    SCOTCH_archInit(&arch);
    SCOTCH_randomReset();
    rc = SCOTCH_archTleaf(&arch, tree->depth, tree->sizes, tree->links) == 0 ? 0 : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < tries && best->found < 2; i++) {
        rc = place_on_tree(t, tree, &arch, i ? 1 + (i - 1) % (ASKINGS - 1) : BY_DEFAULT, &lists);
        if (rc == 0) {
            rc = keep_better(t, best);
        }
    }
    SCOTCH_archExit(&arch);
    free_lists(&lists);
    return rc;
}

int map_place_by_scotch(struct map_traffic *t)
{
    uint32_t ranks = t->matrix->ranks;
    struct tree tree;
    struct best best = {.place = map_arena_get(&t->view->arena, ranks, sizeof *best.place)};
    int rc = best.place ? make_tree(t, &tree) : -ENOMEM;
    if (rc == -ENOTSUP || (rc == 0 && !t->matrix->start[ranks])) {
        return map_place_by_descent(t, cut_by_scotch);
    }
    if (rc == 0) {
        rc = place_best_on_tree(t, &tree, &best);
    }
    if (rc == 0) {
        memcpy(t->place, best.place, ranks * sizeof *best.place);
    }
    return rc;
}
