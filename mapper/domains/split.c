/* Why top down: a rank whose region is a whole package, memory domain or cache shares it with
 * nobody, and its neighbour in rank order is in the group beside it. Why not by weights: the
 * weights see one worker at a time, and what is good for the first rank leaves crumbs to the
 * last. */
#include "mapper/domains/domains.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/scope.h"

/* -- shares into boxes -- */

struct split_box {
    uint64_t load, room;
    uint32_t index;
};

/* Which box is emptier with `threads` more in it. */
static bool emptier(const struct split_box *a, const struct split_box *b, uint32_t threads)
{
    uint64_t x = (a->load + threads) * b->room, y = (b->load + threads) * a->room;
    return x != y ? x < y : a->index < b->index;
}

static void sift_down(struct split_box *heap, size_t count, size_t at, uint32_t threads)
{
    for (;;) {
        size_t best = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            best = emptier(&heap[child], &heap[best], threads) ? child : best;
        }
        if (best == at) {
            return;
        }
        struct split_box kept = heap[at];
        heap[at] = heap[best];
        heap[best] = kept;
        at = best;
    }
}

static int widest_first(const void *a, const void *b)
{
    const struct map_share *x = a, *y = b;
    if (x->threads != y->threads) {
        return x->threads > y->threads ? -1 : 1;
    }
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Emptiest box first. A box that is too full for this share is too full for all of this width, and
 * shares come widest first, so what does not fit into the emptiest box of equal ones fits
 * nowhere. */
static bool share_evenly(struct map_share *shares, size_t share_count, struct split_box *heap,
                         size_t count, enum map_fit fit)
{
    uint32_t narrowest = shares[share_count - 1].threads, before = 0;
    for (size_t s = 0; s < share_count; s++) {
        const uint32_t threads = shares[s].threads;
        if (threads != before) {
            for (size_t i = count / 2 + 1; i-- > 0;) {
                sift_down(heap, count, i, threads);
            }
        }
        before = threads;
        while (fit != MAP_FIT_NOTHING && count && heap[0].load + threads > heap[0].room) {
            if (narrowest != threads) {
                return false; /* a narrower one may fit here: leave it to the other way */
            }
            heap[0] = heap[--count];
            sift_down(heap, count, 0, threads);
        }
        if (!count) {
            return false;
        }
        heap[0].load += threads;
        shares[s].box = heap[0].index;
        sift_down(heap, count, 0, threads);
    }
    return true;
}

/* The first box with room, in rank order. */
static bool share_in_order(struct map_share *shares, size_t share_count, struct split_box *boxes,
                           size_t count)
{
    uint32_t narrowest = UINT32_MAX;
    for (size_t s = 0; s < share_count; s++) {
        narrowest = shares[s].threads < narrowest ? shares[s].threads : narrowest;
    }
    for (size_t s = 0, full = 0; s < share_count; s++) {
        while (full < count && boxes[full].load + narrowest > boxes[full].room) {
            full++; /* for everybody that is still to come */
        }
        size_t at = full;
        while (at < count && boxes[at].load + shares[s].threads > boxes[at].room) {
            at++;
        }
        if (at == count) {
            return false;
        }
        boxes[at].load += shares[s].threads;
        shares[s].box = boxes[at].index;
    }
    return true;
}

/* Fullest box first (best fit decreasing): leaves the least unused. */
static bool share_tightly(struct map_share *shares, size_t share_count, struct split_box *boxes,
                          size_t count)
{
    for (size_t s = 0; s < share_count; s++) {
        struct split_box *best = NULL;
        for (size_t i = 0; i < count; i++) {
            uint64_t left = boxes[i].room - boxes[i].load;
            if (left >= shares[s].threads && (!best || left < best->room - best->load)) {
                best = &boxes[i];
            }
        }
        if (!best) {
            return false;
        }
        best->load += shares[s].threads;
        shares[s].box = best->index;
    }
    return true;
}

static size_t fill_boxes(struct split_box *boxes, const uint64_t *room, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (room[i]) {
            boxes[used++] = (struct split_box){0, room[i], (uint32_t)i};
        }
    }
    return used;
}

static int by_rank(const void *a, const void *b)
{
    const struct map_share *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_box_and_rank(const void *a, const void *b)
{
    const struct map_share *x = a, *y = b;
    return x->box != y->box ? (x->box < y->box ? -1 : 1) : by_rank(a, b);
}

/* Puts the boxes in order. Shares of one width are alike, so consecutive ranks get the same box. */
static int settle_shares(struct map_share *shares, size_t count)
{
    bool alike = true;
    for (size_t s = 1; s < count; s++) {
        alike = alike && shares[s].threads == shares[0].threads;
    }
    qsort(shares, count, sizeof *shares, by_box_and_rank);
    if (!alike) {
        return 0;
    }
    FREED uint32_t *boxes = calloc(count, sizeof *boxes);
    if (!boxes) {
        return -ENOMEM;
    }
    for (size_t s = 0; s < count; s++) {
        boxes[s] = shares[s].box;
    }
    qsort(shares, count, sizeof *shares, by_rank);
    for (size_t s = 0; s < count; s++) {
        shares[s].box = boxes[s];
    }
    return 0;
}

int map_share_out(struct map_share *shares, size_t share_count, const uint64_t *room, size_t count,
                  enum map_fit fit)
{
    FREED struct split_box *boxes = calloc(count, sizeof *boxes);
    bool done = false;
    if (!boxes) {
        return -ENOMEM;
    }
    size_t used = fill_boxes(boxes, room, count);
    if (fit == MAP_PACK_THREADS) {
        done = share_in_order(shares, share_count, boxes, used);
    }
    if (!done) {
        qsort(shares, share_count, sizeof *shares, widest_first);
    }
    if (fit != MAP_PACK_THREADS) {
        done = share_evenly(shares, share_count, boxes, used, fit);
    }
    if (!done && fit != MAP_FIT_NOTHING && shares[0].threads != shares[share_count - 1].threads) {
        used = fill_boxes(boxes, room, count);
        done = share_tightly(shares, share_count, boxes, used);
    }
    if (done) {
        return settle_shares(shares, share_count);
    }
    qsort(shares, share_count, sizeof *shares, by_rank);
    return -ENOSPC;
}

/* -- cores among shares -- */

static uint32_t cores_needed(const struct map_share *share, uint32_t least)
{
    return least ? (share->threads + least - 1) / least : 1;
}

bool map_divide_cores(struct map_share *shares, size_t count, uint64_t cores, uint64_t pus,
                      uint32_t least)
{
    uint64_t needed = 0, threads = 0, sum = 0;
    for (size_t s = 0; s < count; s++) {
        threads += shares[s].threads;
    }
    least = threads > pus ? 0 : least;
    for (size_t s = 0; s < count; s++) {
        needed += cores_needed(&shares[s], least);
    }
    if (threads <= cores || needed > cores || count == 1) {
        return false;
    }
    for (size_t s = 0; s < count; s++) {
        const uint32_t need = cores_needed(&shares[s], least);
        const uint64_t before = (cores - needed) * sum / (threads - needed);
        sum += shares[s].threads - need;
        shares[s].threads = need + (uint32_t)((cores - needed) * sum / (threads - needed) - before);
    }
    return true;
}

/* -- units among shares -- */

struct splitting {
    const struct map_units *units;
    struct map_share *shares;
    struct map_cut how;
};

/* A part of the machine and who gets it. */
struct part {
    uint32_t first, last; /* units, and one more */
    size_t low, high;     /* places in `shares`, and one more */
    uint32_t level;
};

static uint64_t threads_between(const struct splitting *s, size_t low, size_t high)
{
    uint64_t sum = 0;
    for (size_t i = low; i < high; i++) {
        sum += s->shares[i].threads;
    }
    return sum;
}

/* With more threads than units: as many units to each rank, else ranks take units in turn. */
static void divide_evenly(struct map_share *shares, size_t count, uint64_t units)
{
    for (size_t i = 0; i < count; i++) {
        shares[i].begin = (uint32_t)(count > units ? i % units : units * i / count);
        shares[i].end = (uint32_t)(count > units ? shares[i].begin + 1 : units * (i + 1) / count);
    }
}

static uint32_t group_of_unit(const struct splitting *s, uint32_t unit, uint32_t level)
{
    const struct map_order *order = s->units->order;
    return order->group[(size_t)s->units->item[unit] * order->depth + level];
}

/* Groups of a level inside a part: their number; cut[0 … number] are where they begin, and the end
 * of the last. */
static uint32_t cut_groups(const struct splitting *s, const struct part *part, uint32_t *cut)
{
    uint32_t count = 0;
    for (uint32_t u = part->first; u < part->last; u++) {
        if (u == part->first ||
            group_of_unit(s, u, part->level) != group_of_unit(s, u - 1, part->level)) {
            cut[count++] = u;
        }
    }
    cut[count] = part->last;
    return count;
}

/* At least as many groups as ranks: each rank gets some of them in a row, as near to its part of
 * all threads as whole groups go. False: some rank's threads would not fit. */
static bool deal_groups(struct splitting *s, const struct part *part, const uint32_t *cut,
                        uint32_t groups)
{
    const size_t ranks = part->high - part->low;
    const uint64_t threads = threads_between(s, part->low, part->high);
    uint64_t sum = 0;
    uint32_t at = 0;
    for (size_t i = 0; i < ranks; i++) {
        struct map_share *share = &s->shares[part->low + i];
        sum += share->threads;
        uint64_t ideal = (part->last - part->first) * sum / threads;
        uint32_t last = groups - (uint32_t)(ranks - 1 - i), next = at + 1;
        while (next < last && 2 * (part->first + ideal) >= (uint64_t)cut[next] + cut[next + 1]) {
            next++;
        }
        next = i + 1 == ranks ? groups : next;
        share->begin = cut[at];
        share->end = cut[next];
        if (cut[next] - cut[at] < share->threads) {
            return false;
        }
        at = next;
    }
    return true;
}

/* A group and its ranks. */
struct holding {
    uint64_t ranks;   /* of one width, that the groups inside hold without splitting one */
    uint32_t domains; /* of memory inside */
    uint32_t given;
};

static uint64_t hold_whole(const struct splitting *s, const struct part *part, uint32_t threads)
{
    const uint64_t size = part->last - part->first;
    uint64_t ranks = 0;
    for (uint32_t begin = part->first, u = begin;
         size >= threads && part->level < s->how.whole && u < part->last; u++) {
        if (u + 1 == part->last ||
            group_of_unit(s, u + 1, part->level) != group_of_unit(s, begin, part->level)) {
            struct part inner = {begin, u + 1, 0, 0, part->level + 1};
            ranks += hold_whole(s, &inner, threads);
            begin = u + 1;
        }
    }
    return ranks ? ranks : size / threads;
}

static uint32_t count_domains(const struct splitting *s, uint32_t first, uint32_t last)
{
    const struct map_groups *memory = s->units->memory;
    uint32_t count = 1;
    for (uint32_t u = first + 1; memory && u < last; u++) {
        count += memory->group_of[s->units->item[u]] != memory->group_of[s->units->item[u - 1]];
    }
    return count;
}

/* Ranks of one width, in order: no more of them are split than the groups inside of the groups
 * cannot hold whole, and those in the first groups that have units left for them. One group after
 * the other is filled, or the one with fewest ranks in a memory domain gets the next. */
static int share_whole(struct splitting *s, const struct part *part, const uint32_t *cut,
                       uint32_t groups, struct holding *held)
{
    struct map_share *shares = s->shares + part->low;
    const size_t count = part->high - part->low;
    const uint32_t threads = shares[0].threads;
    uint64_t missing = count;
    for (size_t i = 1; i < count; i++) {
        if (shares[i].threads != threads) {
            return -ENOSPC;
        }
    }
    for (uint32_t g = 0; g < groups; g++) {
        struct part inner = {cut[g], cut[g + 1], 0, 0, part->level + 1};
        held[g] = (struct holding){hold_whole(s, &inner, threads),
                                   count_domains(s, cut[g], cut[g + 1]), 0};
        missing -= held[g].ranks < missing ? held[g].ranks : missing;
    }
    for (uint32_t g = 0; g < groups; g++) {
        uint64_t left = (cut[g + 1] - cut[g]) / threads - held[g].ranks;
        left = left < missing ? left : missing;
        held[g].ranks += left;
        missing -= left;
    }
    for (size_t i = 0; !missing && i < count; i++) {
        struct holding *best = NULL;
        for (struct holding *h = held; h < held + groups && !(best && s->how.pack); h++) {
            bool less = !best || (h->given + 1) * best->domains < (best->given + 1) * h->domains;
            best = h->given < h->ranks && less ? h : best;
        }
        best->given++;
    }
    for (uint32_t g = 0, i = 0; !missing && g < groups; g++) {
        for (; held[g].given; held[g].given--) {
            shares[i++].box = g;
        }
    }
    return missing ? -ENOSPC : 0;
}

static int split_part(struct splitting *s, struct part part);

/* Fewer groups than ranks: ranks are shared out to groups, each of which is then divided. -ENOSPC:
 * some rank's threads would not fit. */
static int share_groups(struct splitting *s, const struct part *part, const uint32_t *cut,
                        uint32_t groups)
{
    size_t count = part->high - part->low;
    struct map_share *shares = s->shares + part->low;
    FREED uint64_t *room = calloc(groups, sizeof *room); /* of each group */
    FREED struct holding *held = calloc(groups, sizeof *held);
    if (!room || !held) {
        return -ENOMEM;
    }
    for (uint32_t g = 0; g < groups; g++) {
        room[g] = cut[g + 1] - cut[g];
    }
    if (share_whole(s, part, cut, groups, held) < 0) {
        TRY(map_share_out(shares, count, room, groups,
                          s->how.pack ? MAP_PACK_THREADS : MAP_FIT_THREADS));
    }
    for (size_t low = 0, high; low < count; low = high) {
        uint32_t group = shares[low].box;
        for (high = low + 1; high < count && shares[high].box == group; high++) {
        }
        struct part inner = {cut[group], cut[group + 1], part->low + low, part->low + high,
                             part->level + 1};
        TRY(split_part(s, inner));
    }
    return 0;
}

static int split_part(struct splitting *s, struct part part)
{
    const size_t ranks = part.high - part.low;
    uint32_t groups = 1;
    FREED uint32_t *cut = calloc(part.last - part.first + 1, sizeof *cut);
    if (!cut) {
        return -ENOMEM;
    }
    for (; ranks > 1 && groups == 1 && part.level < s->how.whole; part.level++) {
        groups = cut_groups(s, &part, cut);
    }
    part.level -= groups > 1;
    if (groups > 1 && ranks <= groups && !s->how.pack && deal_groups(s, &part, cut, groups)) {
        return 0;
    }
    const int rc = groups > 1 ? share_groups(s, &part, cut, groups) : -ENOSPC;
    for (size_t i = part.low; rc == -ENOSPC && i < part.high; i++) {
        s->shares[i].begin = part.first;
        s->shares[i].end = part.last;
    }
    return rc == -ENOSPC ? 0 : rc;
}

int map_split(const struct map_units *units, struct map_cut cut, struct map_share *shares,
              size_t count)
{
    struct splitting s = {.units = units, .shares = shares, .how = cut};
    if (threads_between(&s, 0, count) > units->count) {
        divide_evenly(shares, count, units->count);
        return 0;
    }
    return split_part(&s, (struct part){0, units->count, 0, count, 0});
}
