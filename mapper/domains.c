#include "map.h"

#include <errno.h>
#include <stdlib.h>

#include "placing.h"

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
    const struct map_rank *x = a, *y = b;
    if (x->threads != y->threads) {
        return x->threads > y->threads ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

/* Widest first: a wide rank that comes last finds only remainders of memory domains. */
static struct map_rank *sort_ranks(struct map_arena *arena, const struct map_domain_request *request)
{
    struct map_rank *ranks = map_arena_get(arena, request->ranks, sizeof *ranks);
    size_t at = 0;
    for (size_t r = 0; ranks && r < request->ranks; r++) {
        ranks[r] = (struct map_rank){r, threads_of(request, r), at};
        at += ranks[r].threads;
    }
    if (ranks && request->threads) {
        qsort(ranks, request->ranks, sizeof *ranks, compare_ranks);
    }
    return ranks;
}

static int make_placing(struct map_placing *p)
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
        p->open_in[node] = map_arena_get(arena, map_containers_of(p, node)->count, sizeof *p->open_in[node]);
        widest = map_node_size(p, node) > widest ? map_node_size(p, node) : widest;
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
static int make_packing(struct map_placing *p, const struct map_rank *ranks, size_t count, uint32_t **sizes)
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
        const struct map_groups *domains = map_containers_of(p, node)->domains;
        p->first_domain[node] = (uint32_t)p->domains;
        p->domains += domains ? domains->group_count : 0;
    }
    p->room = map_arena_get(arena, p->domains, sizeof *p->room);
    p->suits = map_arena_get(arena, p->domains, sizeof *p->suits);
    p->packing = ranks[0].threads != ranks[count - 1].threads;
    return p->room && p->suits ? 0 : -ENOMEM;
}

static size_t count_open(const struct map_placing *p)
{
    size_t count = 0;
    for (uint32_t leaf = 0; leaf < p->view->leaf_count; leaf++) {
        count += p->open[leaf];
    }
    return count;
}

/* The fewest threads on one core with which all threads find an open PU. */
static void set_smt(struct map_placing *p, size_t total)
{
    size_t before = 0;
    for (p->smt = 1;; p->smt++) {
        map_placing_open(p);
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
    struct map_placing p = {.view = view};
    int rc = map_slots_make(view, request->allowed, request->taken, total, &p.slots, error);
    if (rc < 0) {
        return rc;
    }
    struct map_rank *ranks = sort_ranks(&view->arena, request);
    uint32_t *sizes;
    if (!ranks || make_placing(&p) < 0 || make_packing(&p, ranks, request->ranks, &sizes) < 0) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < p.slots.taken_count; i++) {
        map_plain_choose(&p.plain, p.slots.taken[i]);
    }
    set_smt(&p, total);
    map_placing_run(&p, ranks, sizes, request->ranks, out);
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
