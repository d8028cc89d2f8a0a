/* Scotch's static mapping onto the machine as a regular tree, which Scotch knows as one ("tleaf"):
 * its default answer, which is that of scotch_gmap with one thread, so that ours is never worse.
 * Scotch balances within a tolerance, and a leaf has exactly one place: a rank that is too many
 * moves to a free leaf nearby. A machine that is no regular tree is divided level by level instead.
 */
#include <errno.h>
#include <math.h>
#include <scotch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/traffic/traffic.h"

/* Loads are integers there, of 32 bits in Debian's build, and so is their sum times the links that
 * they cross: where that overflows Scotch silently gives answers that are 1.5 % worse. */
#define MOST_SUM 0x1p30

struct lists {
    SCOTCH_Num *start, *with, *load, *part;
};

/* The power of two that makes loads of bytes: 1 where they are whole numbers and small enough, so
 * that Scotch sees what scotch_gmap sees; else as fine as they can be. Powers of two of the same
 * loads give the same answer, other factors another one. */
static double load_of_byte(const struct map_matrix *m, double most_link)
{
    double sum = 0;
    bool whole = true;
    for (size_t e = 0; e < m->start[m->ranks]; e++) {
        sum += m->entries[e].bytes;
        whole = whole && m->entries[e].bytes <= floor(m->entries[e].bytes);
    }
    int exponent;
    frexp(MOST_SUM / (sum * most_link), &exponent);
    return whole && exponent > 0 ? 1 : ldexp(0.5, exponent);
}

static int make_lists(struct map_arena *arena, const struct map_matrix *m, double most_link,
                      struct lists *out)
{
    size_t edges = m->start[m->ranks];
    struct lists lists = {
        .start = map_arena_get(arena, (size_t)m->ranks + 1, sizeof *lists.start),
        .with = map_arena_get(arena, edges, sizeof *lists.with),
        .load = map_arena_get(arena, edges, sizeof *lists.load),
        .part = map_arena_get(arena, m->ranks, sizeof *lists.part),
    };
    if (!lists.start || !lists.with || !lists.load || !lists.part) {
        return -ENOMEM;
    }
    double factor = load_of_byte(m, most_link);
    for (size_t e = 0; e < edges; e++) {
        lists.with[e] = (SCOTCH_Num)m->entries[e].to;
        double load = factor * m->entries[e].bytes;
        lists.load[e] = load < 1 ? 1 : (SCOTCH_Num)load;
    }
    for (uint32_t r = 0; r <= m->ranks; r++) {
        lists.start[r] = (SCOTCH_Num)m->start[r];
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

/* The architecture is made already. */
static bool map_graph(SCOTCH_Num ranks, SCOTCH_Arch *arch, struct lists *lists)
{
    SCOTCH_Graph graph;
    SCOTCH_Strat strategy;
    SCOTCH_graphInit(&graph);
    SCOTCH_stratInit(&strategy);
    bool done = SCOTCH_graphBuild(&graph, 0, ranks, lists->start, NULL, NULL, NULL,
                                  lists->start[ranks], lists->with, lists->load) == 0 &&
                map_bound(&graph, arch, &strategy, lists->part);
    SCOTCH_stratExit(&strategy);
    SCOTCH_graphExit(&graph);
    return done;
}

/* -- onto the tree of the machine -- */

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

/* The distance of siblings of a level, for a message of `bytes`. */
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
        bytes += t->matrix->entries[e].bytes / (double)entries;
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
    map_sort_by_groups(view, tree->leaves, count);
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

static int place_on_tree(struct map_traffic *t, const struct tree *tree, struct lists *lists)
{
    uint32_t ranks = t->matrix->ranks;
    bool *used = map_arena_get(&t->view->arena, ranks, sizeof *used);
    SCOTCH_Arch arch;
    SCOTCH_archInit(&arch);
    SCOTCH_randomReset(); /* the same matrix gives the same placement */
    bool done = used && SCOTCH_archTleaf(&arch, tree->depth, tree->sizes, tree->links) == 0 &&
                map_graph((SCOTCH_Num)ranks, &arch, lists);
    SCOTCH_archExit(&arch);
    for (uint32_t r = 0; done && r < ranks; r++) {
        bool known = lists->part[r] >= 0 && lists->part[r] < (SCOTCH_Num)ranks;
        lists->part[r] = known ? lists->part[r] : 0;
        t->place[r] = used[lists->part[r]] ? MAP_NONE : tree->leaves[lists->part[r]];
        used[lists->part[r]] = true;
    }
    if (done) {
        place_second_ones(t, tree, lists->part, used);
    }
    return done ? 0 : -ENOMEM;
}

int map_place_by_scotch(struct map_traffic *t)
{
    struct tree tree;
    struct lists lists;
    int rc = make_tree(t, &tree);
    if (rc == -ENOTSUP || (rc == 0 && !t->matrix->start[t->matrix->ranks])) {
        return map_place_by_descent(t);
    }
    if (rc < 0 || make_lists(&t->view->arena, t->matrix, tree.links[0], &lists) < 0 ||
        place_on_tree(t, &tree, &lists) < 0) {
        return -ENOMEM;
    }
    return map_improve_nearby(t);
}
