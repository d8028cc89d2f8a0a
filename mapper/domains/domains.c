#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/domains/containers.h"
#include "mapper/domains/placing.h"
#include "mapper/map.h"

struct making {
    struct map_arena *arena;
    const struct map_class *of;
    uint32_t items;
    struct map_groups numa;
    const struct map_groups *domains;
    uint32_t *all; /* every position: the node */
};

static int make_groups(struct making *m)
{
    const struct profile_class *of = m->of->of;
    uint32_t span = of->pus.ids[of->pus.count - 1] + 1;
    uint32_t *position_of = map_arena_get(m->arena, span, sizeof *position_of);
    struct profile_set *sets = map_arena_get(m->arena, of->numa_count, sizeof *sets);
    m->all = map_arena_get(m->arena, m->items, sizeof *m->all);
    if (!position_of || !sets || !m->all) {
        return -ENOMEM;
    }
    memset(position_of, 0xff, span * sizeof *position_of);
    for (uint32_t i = 0; i < m->items; i++) {
        position_of[of->pus.ids[i]] = i;
        m->all[i] = i;
    }
    for (size_t n = 0; n < of->numa_count; n++) {
        sets[n] = of->numa[n].pus;
    }
    struct profile_relation numa = {.groups = sets, .group_count = of->numa_count};
    return map_groups_make(m->arena, &numa, position_of, span, m->items, &m->numa);
}

static bool inside_one_group(const struct map_container *container, const struct map_groups *groups)
{
    uint32_t group = groups->group_of[container->members[0]];
    if (group == MAP_NONE) {
        return container->count == 1;
    }
    for (uint32_t i = 1; i < container->count; i++) {
        if (groups->group_of[container->members[i]] != group) {
            return false;
        }
    }
    return true;
}

static uint32_t count_straddles(const struct making *m, const struct map_container *container)
{
    uint32_t straddles = 0;
    for (size_t f = 0; f < m->of->family_count; f++) {
        const struct map_family *family = &m->of->families[f];
        bool domain = family->rule == MAP_RULE_MEMORY && family->groups.group_count;
        straddles += domain && !inside_one_group(container, &family->groups);
    }
    return straddles + (m->numa.group_count && !inside_one_group(container, &m->numa));
}

static void add(const struct making *m, struct map_containers *out, const uint32_t *members,
                uint32_t count)
{
    struct map_container *container = &out->list[out->count++];
    *container = (struct map_container){.members = members, .count = count};
    container->straddles = count_straddles(m, container);
    bool inside = m->domains->group_count && inside_one_group(container, m->domains);
    container->domain = inside ? m->domains->group_of[members[0]] : MAP_NONE;
}

static void add_groups(const struct making *m, struct map_containers *out,
                       const struct map_groups *groups)
{
    for (uint32_t g = 0; g < groups->group_count; g++) {
        uint32_t count = groups->start[g + 1] - groups->start[g];
        if (count > 1) {
            add(m, out, groups->members + groups->start[g], count);
        }
    }
}

/* Levels are ordered from the worst collision, so the first one has the smallest groups. */
static int find_domains(struct making *m)
{
    for (size_t f = 0; f < m->of->family_count; f++) {
        const struct map_family *family = &m->of->families[f];
        if (family->rule == MAP_RULE_MEMORY && family->groups.group_count) {
            m->domains = &family->groups;
            return 0;
        }
    }
    struct map_groups *numa = map_arena_get(m->arena, 1, sizeof *numa);
    if (numa) {
        *numa = m->numa;
    }
    m->domains = numa;
    return numa ? 0 : -ENOMEM;
}

static int compare(const void *a, const void *b)
{
    const struct map_container *x = a, *y = b;
    if (x->straddles != y->straddles) {
        return x->straddles < y->straddles ? -1 : 1;
    }
    if (x->count != y->count) {
        return x->count < y->count ? -1 : 1;
    }
    return memcmp(x->members, y->members, x->count * sizeof *x->members);
}

static void drop_repeats(struct map_containers *out)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        if (kept == 0 || compare(&out->list[kept - 1], &out->list[i]) != 0) {
            out->list[kept++] = out->list[i];
        }
    }
    out->count = kept;
}

static int index_members(const struct making *m, struct map_containers *out)
{
    size_t total = 0;
    for (uint32_t c = 0; c < out->count; c++) {
        total += out->list[c].count;
    }
    out->start = map_arena_get(m->arena, (size_t)m->items + 2, sizeof *out->start);
    out->of = map_arena_get(m->arena, total, sizeof *out->of);
    if (!out->start || !out->of) {
        return -ENOMEM;
    }
    for (uint32_t c = 0; c < out->count; c++) {
        for (uint32_t i = 0; i < out->list[c].count; i++) {
            out->start[out->list[c].members[i] + 2]++;
        }
    }
    for (uint32_t i = 2; i < m->items + 2; i++) {
        out->start[i] += out->start[i - 1];
    }
    for (uint32_t c = 0; c < out->count; c++) {
        for (uint32_t i = 0; i < out->list[c].count; i++) {
            out->of[out->start[out->list[c].members[i] + 1]++] = c;
        }
    }
    return 0;
}

int map_containers_make(struct map_arena *arena, const struct map_class *of,
                        struct map_containers *out)
{
    struct making m = {.arena = arena, .of = of, .items = (uint32_t)of->of->pus.count};
    if (make_groups(&m) < 0 || find_domains(&m) < 0) {
        return -ENOMEM;
    }
    size_t most =
        (size_t)of->cores.group_count + of->packages.group_count + m.numa.group_count + 1 + m.items;
    for (size_t f = 0; f < of->family_count; f++) {
        most += of->families[f].groups.group_count;
    }
    struct map_containers made = {.list = map_arena_get(arena, most, sizeof *made.list),
                                  .domains = m.domains};
    if (!made.list) {
        return -ENOMEM;
    }
    for (size_t f = 0; f < of->family_count; f++) {
        add_groups(&m, &made, &of->families[f].groups);
    }
    add_groups(&m, &made, &of->cores);
    add_groups(&m, &made, &of->packages);
    add_groups(&m, &made, &m.numa);
    add(&m, &made, m.all, m.items);
    for (uint32_t i = 0; i < m.items; i++) {
        add(&m, &made, m.all + i, 1); /* a rank of one thread fits into a PU */
    }
    qsort(made.list, made.count, sizeof *made.list, compare);
    drop_repeats(&made);
    int rc = index_members(&m, &made);
    if (rc == 0) {
        *out = made;
    }
    return rc;
}

struct search {
    const uint32_t *sizes;
    size_t count, domains;
    uint32_t *room;
    size_t steps;
};

/* The smallest room above `last` (by room, then index) that holds `size`: tight domains first,
 * equal ones once. */
static size_t next_tightest(const struct search *s, uint32_t size, uint32_t above)
{
    size_t best = s->domains;
    for (size_t d = 0; d < s->domains; d++) {
        bool fits = s->room[d] >= size && s->room[d] > above;
        if (fits && (best == s->domains || s->room[d] < s->room[best])) {
            best = d;
        }
    }
    return best;
}

static bool fits_from(struct search *s, size_t index)
{
    if (index == s->count) {
        return true;
    }
    uint32_t size = s->sizes[index], above = 0;
    for (;;) {
        size_t domain = next_tightest(s, size, above);
        if (domain == s->domains || ++s->steps > MAP_PACKING_STEPS) {
            return false;
        }
        above = s->room[domain];
        s->room[domain] -= size;
        bool fits = fits_from(s, index + 1);
        s->room[domain] += size;
        if (fits) {
            return true;
        }
    }
}

bool map_packing_fits(const uint32_t *sizes, size_t count, uint32_t *room, size_t domains)
{
    uint64_t need = 0, have = 0;
    for (size_t i = 0; i < count; i++) {
        need += sizes[i];
    }
    for (size_t d = 0; d < domains; d++) {
        have += room[d];
    }
    struct search search = {sizes, count, domains, room, 0};
    return need <= have && fits_from(&search, 0);
}

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
        return profile_error(error, -EINVAL, "ranks: expected a number from 1 to %u, got %zu",
                             MAP_WORKER_LIMIT - 1, request->ranks);
    }
    for (size_t r = 0; r < request->ranks; r++) {
        uint32_t threads = threads_of(request, r);
        sum += threads;
        highest = threads > highest ? threads : highest;
        if (threads < 1 || sum >= MAP_WORKER_LIMIT) {
            return profile_error(
                error, -EINVAL, "threads of rank %zu: expected at least 1 and fewer than %u in all",
                r, MAP_WORKER_LIMIT);
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
static struct map_rank *sort_ranks(struct map_arena *arena,
                                   const struct map_domain_request *request)
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
    if (!p->classes || !p->open_in || !p->open || map_exact_make(view, false, &p->exact) < 0) {
        return -ENOMEM;
    }
    for (size_t c = 0; c < view->class_count; c++) {
        if (view->classes[c].of->pus.count &&
            map_containers_make(arena, &view->classes[c], &p->classes[c]) < 0) {
            return -ENOMEM;
        }
        most = p->classes[c].count > most ? p->classes[c].count : most;
    }
    for (uint32_t node = 0; node < view->node_count; node++) {
        p->open_in[node] =
            map_arena_get(arena, map_containers_of(p, node)->count, sizeof *p->open_in[node]);
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

/* Ranks of one width need no looking ahead: whatever they leave of a memory domain is too small for
 * any of them. */
static int make_packing(struct map_placing *p, const struct map_rank *ranks, size_t count,
                        uint32_t **sizes)
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

static int map_wide(struct map_view *view, const struct map_domain_request *request, size_t total,
                    uint32_t *out, struct servet_error *error)
{
    struct map_placing p = {.view = view};
    int rc = map_slots_make(view, request->allowed, request->taken, &p.slots, error);
    if (rc < 0) {
        return rc;
    }
    struct map_rank *ranks = sort_ranks(&view->arena, request);
    uint32_t *sizes;
    if (!ranks || make_placing(&p) < 0 || make_packing(&p, ranks, request->ranks, &sizes) < 0) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < p.slots.taken_count; i++) {
        map_exact_raise(&p.exact, p.slots.taken[i]);
    }
    set_smt(&p, total);
    map_placing_run(&p, ranks, sizes, request->ranks, out);
    return 0;
}

int map_domains(const struct servet_profile *profile, const struct map_domain_request *request,
                uint32_t *out, struct servet_error *error)
{
    size_t total = 0;
    uint32_t most = 0;
    int rc = sum_threads(request, &total, &most, error);
    if (rc < 0) {
        return rc;
    }
    if (most == 1) {
        struct map_request narrow = {.priority = request->priority,
                                     .workers = request->ranks,
                                     .allowed = request->allowed,
                                     .taken = request->taken};
        return map_workers(profile, &narrow, out, NULL, error);
    }
    struct map_view view;
    rc = map_view_make(profile, request->priority,
                       total + (request->taken ? request->taken->count : 0), &view, error);
    if (rc < 0) {
        return rc;
    }
    rc = map_wide(&view, request, total, out, error);
    map_view_free(&view);
    return rc;
}
