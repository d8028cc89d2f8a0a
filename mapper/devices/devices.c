/* Ranks beside their GPUs: which ranks go where GPUs are, and their PUs. */
#include "mapper/devices/devices.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/devices/choice.h"
#include "mapper/weights/weights.h"
#include "profile/query.h"
#include "profile/scope.h"

/* -- sharing out -- */

static int64_t compare_shares(uint64_t a, uint64_t a_ranks, uint64_t b, uint64_t b_ranks)
{
    return (int64_t)(a * (b_ranks + 1)) - (int64_t)(b * (a_ranks + 1));
}

/* Shares ranks out in proportion to GPUs (D'Hondt), on ties to the site with more PUs, then the
 * lower one; each gets one before any gets a second where there is enough. */
static void share_out(size_t ranks, struct map_site *sites, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sites[i].ranks = ranks >= count ? 1 : 0;
    }
    for (size_t given = ranks >= count ? count : 0; given < ranks; given++) {
        struct map_site *best = sites;
        for (struct map_site *at = sites + 1; at < sites + count; at++) {
            int64_t more = compare_shares(at->gpu_count, at->ranks, best->gpu_count, best->ranks);
            more = more ? more
                        : compare_shares(at->pus.count, at->ranks, best->pus.count, best->ranks);
            best = more > 0 ? at : best;
        }
        best->ranks++;
    }
}

/* -- sites -- */

/* Sites by NUMA node, in the order of their PUs; those that hold others go after these, and those
 * that are far from all PUs last. */
static int by_first_pu(const void *a, const void *b)
{
    const struct map_site *x = a, *y = b;
    bool none = !x->pus.count, other = !y->pus.count;
    if (none != other || none) {
        return none - other;
    }
    if (x->wide != y->wide) {
        return x->wide - y->wide;
    }
    if (x->numa_node != y->numa_node) {
        return x->numa_node < y->numa_node ? -1 : 1;
    }
    return x->pus.ids[0] < y->pus.ids[0] ? -1 : x->pus.ids[0] > y->pus.ids[0];
}

/* The PUs near each device that may be used. 0 or -ENOMEM. */
static int find_pus_near(const struct map_choice *c, struct profile_set *near)
{
    for (size_t i = 0; i < c->node->of->device_count; i++) {
        const struct profile_set *pus = &c->node->of->devices[i].pus;
        near[i].ids = map_arena_get(c->arena, pus->count, sizeof *near[i].ids);
        TRY(map_arena_check(c->arena));
        for (size_t k = 0; k < pus->count; k++) {
            if (profile_set_has(&c->node->allowed, pus->ids[k])) {
                near[i].ids[near[i].count++] = pus->ids[k];
            }
        }
    }
    return 0;
}

/* The GPUs of all sites, one site after the other. */
static void fill_sites(struct map_choice *c, const struct profile_set *near,
                       const struct profile_device **gpus)
{
    const struct profile_class *of = c->node->of;
    for (struct map_site *site = c->sites; site < c->sites + c->site_count; site++) {
        site->gpus = gpus;
        for (size_t i = 0; i < of->device_count; i++) {
            if (of->devices[i].kind == PROFILE_GPU && profile_set_equal(&site->pus, &near[i])) {
                site->gpus[site->gpu_count++] = &of->devices[i];
            }
        }
        gpus += site->gpu_count;
    }
}

/* The sites of the node's GPUs: GPUs with one locality are together. */
static int find_sites(struct map_choice *c)
{
    const struct profile_class *of = c->node->of;
    struct profile_set *near = map_arena_get(c->arena, of->device_count, sizeof *near);
    const struct profile_device **gpus = map_arena_get(c->arena, of->device_count, sizeof *gpus);
    c->sites = map_arena_get(c->arena, of->device_count, sizeof *c->sites);
    c->site_count = 0;
    TRY(map_arena_check(c->arena));
    TRY(find_pus_near(c, near));
    for (size_t i = 0, s; i < of->device_count; i++) {
        for (s = 0; s < c->site_count && !profile_set_equal(&c->sites[s].pus, &near[i]); s++) {
        }
        if (of->devices[i].kind == PROFILE_GPU && s == c->site_count) {
            c->sites[c->site_count++] =
                (struct map_site){.pus = near[i], .numa_node = of->devices[i].numa_node};
        }
    }
    for (size_t s = 0; s < c->site_count; s++) {
        for (size_t t = 0; t < c->site_count; t++) {
            const struct profile_set *part = &c->sites[t].pus;
            c->sites[s].wide |= t != s && part->count && profile_set_subset(part, &c->sites[s].pus);
        }
    }
    qsort(c->sites, c->site_count, sizeof *c->sites, by_first_pu);
    fill_sites(c, near, gpus);
    return 0;
}

/* The GPUs of all sites, or of those that are near PUs. */
static size_t count_gpus(const struct map_choice *c, bool near)
{
    size_t count = 0;
    for (size_t s = 0; s < c->site_count; s++) {
        count += near && !c->sites[s].pus.count ? 0 : c->sites[s].gpu_count;
    }
    return count;
}

/* Leaves so many GPUs of the node: near ones before far ones, evenly over the sites; those of a
 * site at equal distances, as dies of one card are neighbours. */
static void keep_gpus(struct map_choice *c, size_t total)
{
    struct map_site *sites = c->sites;
    size_t far = c->site_count && !sites[c->site_count - 1].pus.count ? 1 : 0;
    size_t count = c->site_count - far, near = count_gpus(c, true), kept = 0;
    size_t of_near = total < near ? total : near;
    share_out(of_near >= count ? of_near : 0, sites, count);
    for (size_t i = 0; of_near < count && i < of_near; i++) {
        sites[i * count / of_near].ranks = 1;
    }
    if (far) {
        size_t most = sites[count].gpu_count;
        sites[count].ranks = total - of_near < most ? total - of_near : most;
    }
    const struct profile_device **gpus = sites->gpus;
    for (size_t s = 0; s < c->site_count; s++) {
        struct map_site site = sites[s];
        for (size_t i = 0; i < site.ranks; i++) {
            gpus[i] = site.gpus[i * site.gpu_count / site.ranks];
        }
        site.gpus = gpus;
        site.gpu_count = site.ranks;
        gpus += site.ranks;
        sites[kept] = site;
        kept += site.ranks > 0;
    }
    c->site_count = kept;
}

/* Makes one site of two neighbours. 0 or -ENOMEM. */
static int join_sites(struct map_choice *c, struct map_site *to, const struct map_site *from)
{
    if (!to->gpu_count) {
        *to = *from;
        return 0;
    }
    uint32_t *pus = map_arena_get(c->arena, to->pus.count + from->pus.count, sizeof *pus);
    size_t used = 0;
    TRY(map_arena_check(c->arena));
    for (size_t i = 0; i < c->node->allowed.count; i++) {
        uint32_t pu = c->node->allowed.ids[i];
        if (profile_set_has(&to->pus, pu) || profile_set_has(&from->pus, pu)) {
            pus[used++] = pu;
        }
    }
    to->pus = (struct profile_set){pus, used};
    to->gpu_count += from->gpu_count;
    return 0;
}

/* Shares `ranks` out over neighbouring sites and appends these to `parts`; where there are fewer
 * ranks, each gets several sites as one. */
static int divide_sites(struct map_choice *c, const struct map_site *sites, size_t count,
                        size_t ranks, struct map_site *parts, size_t *part_count)
{
    struct map_site *out = parts + *part_count;
    size_t out_count = ranks < count ? ranks : count;
    for (size_t s = 0; s < count; s++) {
        TRY(join_sites(c, &out[s * out_count / count], &sites[s]));
    }
    share_out(ranks, out, out_count);
    *part_count += out_count;
    return 0;
}

static size_t end_of_node(const struct map_choice *c, size_t s)
{
    uint32_t node = c->sites[s].numa_node;
    bool wide = c->sites[s].wide;
    do {
        s++;
    } while (s < c->site_count && node != PROFILE_NOT_SAID && c->sites[s].numa_node == node &&
             c->sites[s].wide == wide);
    return s;
}

/* Fewer ranks than sites: NUMA nodes first, so that no rank has a GPU of one and a GPU of another
 * while there are enough nodes, then the sites of each. */
static int divide_nodes(struct map_choice *c, size_t ranks, struct map_site *parts,
                        size_t *part_count)
{
    struct map_site *nodes = map_arena_get(c->arena, c->site_count, sizeof *nodes);
    size_t count = 0;
    TRY(map_arena_check(c->arena));
    for (size_t s = 0, end; s < c->site_count; s = end, count++) {
        end = end_of_node(c, s);
        for (size_t i = s; i < end; i++) {
            TRY(join_sites(c, &nodes[count], &c->sites[i]));
        }
    }
    if (ranks < count) {
        return divide_sites(c, nodes, count, ranks, parts, part_count);
    }
    share_out(ranks, nodes, count);
    for (size_t n = 0, s = 0, end; n < count; n++, s = end) {
        end = end_of_node(c, s);
        TRY(divide_sites(c, &c->sites[s], end - s, nodes[n].ranks, parts, part_count));
    }
    return 0;
}

/* -- ranks of a site -- */

/* Is it the first PU of the set of a core of which none is used? */
static bool opens_core(const struct map_choice *c, const struct profile_set *set, uint32_t pu)
{
    const struct profile_set *core = profile_group_of(&c->node->of->cores, pu);
    for (size_t i = 0; core && i < core->count; i++) {
        uint32_t other = core->ids[i];
        if (c->used[other] || (other < pu && profile_set_has(set, other))) {
            return false;
        }
    }
    return true;
}

/* Cores of the set of which no PU is used. */
static size_t count_free(const struct map_choice *c, const struct profile_set *set)
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        count += !c->used[set->ids[i]] && opens_core(c, set, set->ids[i]);
    }
    return count;
}

/* Maps ranks [begin, end) of the node onto PUs of the set, beside those that are placed. */
static int map_ranks(struct map_choice *c, const struct profile_set *set, const size_t *ranks,
                     size_t count, struct servet_error *error)
{
    const struct map_request *all = &c->request->ranks;
    uint32_t *threads = map_arena_get(c->arena, count, sizeof *threads);
    struct profile_set taken = {map_arena_get(c->arena, c->node->of->pus.count, sizeof *taken.ids),
                                0};
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += map_threads_of(all, ranks[i]);
    }
    uint32_t *pus = map_arena_get(c->arena, total, sizeof *pus);
    TRY(map_arena_check(c->arena));
    for (size_t i = 0; i < set->count; i++) {
        if (c->used[set->ids[i]]) {
            taken.ids[taken.count++] = set->ids[i];
        }
    }
    struct map_request request = *all;
    request.workers = count;
    request.threads = threads;
    request.allowed = set;
    request.taken = &taken;
    request.whole = true;
    for (size_t i = 0; i < count; i++) {
        threads[i] = map_threads_of(all, ranks[i]);
    }
    TRY(count ? map_domains(&c->view.profile, &request, pus, error) : 0);
    for (size_t i = 0; i < count; i++) {
        uint32_t *out = c->pus + c->first[ranks[i]];
        for (uint32_t t = 0; t < threads[i]; t++) {
            c->used[*pus] = true;
            out[t] = c->node->first_pu + *pus++;
        }
    }
    return 0;
}

/* Is the PU near GPUs of a rank that is still to be placed? */
static bool is_wanted(const struct map_site *const *away, size_t count, uint32_t pu)
{
    size_t i = 0;
    while (i < count && !(away[i] && profile_set_has(&away[i]->pus, pu))) {
        i++;
    }
    return i < count;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The NUMA node, or else the package, that has cores for the first of them and is nearest to its
 * site, of several one that no other wants; NULL: none has. */
static const struct profile_set *find_room(const struct map_choice *c,
                                           const struct map_site *const *away, size_t count,
                                           size_t wants)
{
    const struct profile_class *of = c->node->of;
    const struct profile_set *best = NULL;
    unsigned least = UINT_MAX;
    for (size_t i = 0; i < of->numa_count + of->packages.group_count; i++) {
        if (i == of->numa_count && best) {
            break;
        }
        const struct profile_set *group =
            i < of->numa_count ? &of->numa[i].pus : &of->packages.groups[i - of->numa_count];
        if (group->count && count_free(c, group) >= wants) {
            unsigned far = 2 * map_distance_of(of, &away[0]->pus, group->ids[0]) +
                           is_wanted(away + 1, count - 1, group->ids[0]);
            best = far < least ? group : best;
            least = far < least ? far : least;
        }
    }
    return best;
}

/* Places the first of the ranks that do not fit where their GPUs are (`away`: their sites; NULL: it
 * is placed), in a NUMA node or a package that has room; there on cores near its GPUs, then in
 * their NUMA node, their package, and elsewhere, and last on those near GPUs of the ranks behind
 * it. A rank whose GPUs are far from all PUs, or for which there is no room, may go everywhere. */
static int place_away(struct map_choice *c, const struct map_site *const *away, size_t count,
                      size_t rank, struct servet_error *error)
{
    const struct profile_set *all = &c->node->allowed;
    const size_t wants = map_threads_of(&c->request->ranks, rank);
    struct profile_set near = {map_arena_get(c->arena, all->count, sizeof *near.ids), 0};
    const bool somewhere = away[0]->pus.count;
    const struct profile_set *within = somewhere ? find_room(c, away, count, wants) : NULL;
    TRY(map_arena_check(c->arena));
    for (unsigned far = 0; somewhere && far <= 2 * MAP_ELSEWHERE + 1; far++) {
        for (size_t i = 0; i < all->count && near.count < wants; i++) {
            const uint32_t pu = all->ids[i];
            const enum map_distance distance = map_distance_of(c->node->of, &away[0]->pus, pu);
            if (opens_core(c, all, pu) && !c->used[pu] &&
                (!within || profile_set_has(within, pu)) &&
                2 * distance + (distance && is_wanted(away + 1, count - 1, pu)) == far) {
                near.ids[near.count++] = pu;
            }
        }
    }
    bool found = near.count == wants;
    qsort(near.ids, near.count, sizeof *near.ids, by_number);
    return map_ranks(c, found ? &near : all, &rank, 1, error);
}

/* Every rank that finds cores where its GPUs are is placed there; then the others. */
static int place_near_gpus(struct map_choice *c, const struct map_site *sites, size_t count,
                           size_t begin, size_t end, struct servet_error *error)
{
    size_t *here = map_arena_get(c->arena, end - begin, sizeof *here), rank = begin;
    const struct map_site **away = map_arena_get(c->arena, end - begin, sizeof *away);
    TRY(map_arena_check(c->arena));
    for (const struct map_site *site = sites; site < sites + count; site++) {
        size_t room = count_free(c, &site->pus), here_count = 0;
        for (size_t r = 0; r < site->ranks; r++, rank++) {
            const uint32_t wants = map_threads_of(&c->request->ranks, rank);
            if (site->pus.count && wants <= room) {
                here[here_count++] = rank;
                room -= wants;
            } else {
                away[rank - begin] = site;
            }
        }
        TRY(map_ranks(c, &site->pus, here, here_count, error));
    }
    for (size_t r = begin; r < end; r++) {
        TRY(away[r - begin] ? place_away(c, away + (r - begin), end - r, r, error) : 0);
    }
    return 0;
}

/* -- a node -- */

/* Beside GPUs: the ranks of each site, where they find room there. */
static int place_by_sites(struct map_choice *c, size_t begin, size_t end,
                          struct servet_error *error)
{
    const size_t ranks = end - begin, count = c->site_count;
    struct map_site *parts = map_arena_get(c->arena, count, sizeof *parts);
    size_t part_count = 0;
    TRY(map_arena_check(c->arena));
    TRY(ranks < count ? divide_nodes(c, ranks, parts, &part_count)
                      : divide_sites(c, c->sites, count, ranks, parts, &part_count));
    return place_near_gpus(c, parts, part_count, begin, end, error);
}

/* As without GPUs. */
static int place_freely(struct map_choice *c, size_t begin, size_t end, struct servet_error *error)
{
    size_t *ranks = map_arena_get(c->arena, end - begin, sizeof *ranks);
    TRY(map_arena_check(c->arena));
    for (size_t r = begin; r < end; r++) {
        ranks[r - begin] = r;
    }
    return map_ranks(c, &c->node->allowed, ranks, end - begin, error);
}

/* The PUs that other programs hold. */
static void mark_taken(struct map_choice *c)
{
    const struct profile_set *taken = c->request->ranks.taken, *pus = &c->node->of->pus;
    for (size_t i = 0; i < pus->count; i++) {
        c->used[pus->ids[i]] = taken && profile_set_has(taken, c->node->first_pu + pus->ids[i]);
    }
}

/* Ranks lie beside their GPUs, or, first where they fill the node, as without any: whichever way
 * crosses fewer packages, then NUMA nodes, then is nearer to GPUs. With more threads than cores
 * there is no other way. */
static int choose_better(struct map_choice *c, size_t begin, size_t end, struct servet_error *error)
{
    const size_t ranks = end - begin, threads = c->first[end] - c->first[begin];
    const size_t cores = count_free(c, &c->node->allowed);
    uint32_t *pus = map_arena_get(c->arena, threads, sizeof *pus);
    struct map_hold **holds = map_arena_get(c->arena, ranks, sizeof *holds);
    uint64_t best = 0, merit;
    TRY(map_arena_check(c->arena));
    for (size_t way = 0; way < (threads > cores ? 1 : 2); way++) {
        const bool beside = (way == 0) != (threads >= cores);
        memset(c->holds + begin, 0, ranks * sizeof(struct map_hold *));
        mark_taken(c);
        TRY((beside ? place_by_sites : place_freely)(c, begin, end, error));
        TRY(map_choice_deal(c, c->sites->gpus, count_gpus(c, false), begin, end));
        TRY(map_choice_weigh(c, begin, end, &merit));
        if (way == 0 || merit < best) {
            best = merit;
            memcpy(pus, c->pus + c->first[begin], threads * sizeof *pus);
            memcpy(holds, c->holds + begin, ranks * sizeof(struct map_hold *));
        }
    }
    memcpy(c->pus + c->first[begin], pus, threads * sizeof *pus);
    memcpy(c->holds + begin, holds, ranks * sizeof(struct map_hold *));
    return 0;
}

static int choose_on_node(struct map_choice *c, const struct map_part *node, size_t begin,
                          size_t end, struct servet_error *error)
{
    c->node = node;
    c->used = map_arena_get(c->arena, profile_class_span(node->of), sizeof *c->used);
    map_one_node(node->of, &c->view);
    TRY(map_arena_check(c->arena));
    mark_taken(c);
    TRY(find_sites(c));
    if (c->request->gpus != MAP_ALL_GPUS) {
        keep_gpus(c, c->request->gpus);
    }
    size_t ranks = end - begin, near = count_gpus(c, true), count = count_gpus(c, false);
    /* Those that are far are there for ranks beyond the near ones. */
    if (near && near < count) {
        count = ranks <= near ? near : ranks < count ? ranks : count;
    }
    keep_gpus(c, count);
    return choose_better(c, begin, end, error);
}

/* Nodes that have GPUs and PUs that may be used. */
struct nodes {
    struct map_part *parts;
    struct map_site *sites; /* of each: its GPUs that are used, its ranks */
    size_t count;
};

/* Their parts are to be freed, also on failure. */
static int find_nodes(const struct servet_profile *profile,
                      const struct map_device_request *request, struct nodes *out,
                      struct servet_error *error)
{
    size_t all = 0;
    for (uint32_t n = 0; n < profile_node_count(profile); n++) {
        struct map_part *part = &out->parts[out->count];
        TRY(map_part_of_node(profile, n, request->ranks.allowed, part));
        size_t gpus = 0;
        for (size_t i = 0; i < part->of->device_count; i++) {
            gpus += part->of->devices[i].kind == PROFILE_GPU;
        }
        if (!part->allowed.count || !gpus) {
            map_part_free(part);
            continue;
        }
        if (request->gpus != MAP_ALL_GPUS && request->gpus > gpus) {
            out->count++;
            return profile_error(error, -EINVAL,
                                 "--gpus: expected at most %zu, the GPUs of a node, got %u", gpus,
                                 request->gpus);
        }
        gpus = request->gpus == MAP_ALL_GPUS ? gpus : request->gpus;
        out->sites[out->count++].gpu_count = gpus;
        all += gpus;
    }
    if (!all) {
        return profile_error(error, -EINVAL, "--gpus: expected a machine with GPUs, none is known");
    }
    if (request->exclusive && request->ranks.workers > all) {
        return profile_error(error, -EINVAL,
                             "--gpus=exclusive: expected at most %zu ranks, one for each GPU, got "
                             "%zu",
                             all, request->ranks.workers);
    }
    return 0;
}

/* Ranks go to nodes in blocks, in proportion to their GPUs. */
static int place_by_gpus(struct map_choice *c, struct servet_error *error)
{
    size_t all = profile_node_count(c->profile), rank = 0, ranks = c->request->ranks.workers;
    struct nodes nodes = {.parts = map_arena_get(c->arena, all, sizeof *nodes.parts),
                          .sites = map_arena_get(c->arena, all, sizeof *nodes.sites)};
    TRY(map_arena_check(c->arena));
    int rc = find_nodes(c->profile, c->request, &nodes, error);
    size_t used = ranks < nodes.count ? ranks : nodes.count;
    share_out(rc == 0 ? ranks : 0, nodes.sites, used);
    for (size_t n = 0; rc == 0 && n < used; rank += nodes.sites[n++].ranks) {
        rc = choose_on_node(c, &nodes.parts[n], rank, rank + nodes.sites[n].ranks, error);
    }
    for (size_t n = 0; n < nodes.count; n++) {
        map_part_free(&nodes.parts[n]);
    }
    return rc;
}

/* -- the request -- */

static int choose_all_nodes(struct map_choice *c, struct map_devices *out,
                            struct servet_error *error)
{
    const struct map_device_request *request = c->request;
    const size_t ranks = request->ranks.workers;
    c->first = map_arena_get(c->arena, ranks + 1, sizeof *c->first);
    c->holds = map_arena_get(c->arena, ranks, sizeof *c->holds);
    TRY(map_arena_check(c->arena));
    for (size_t r = 0; r < ranks; r++) {
        c->first[r + 1] = c->first[r] + map_threads_of(&request->ranks, r);
    }
    TRY(request->gpus ? place_by_gpus(c, error)
                      : map_domains(c->profile, &request->ranks, c->pus, error));
    if (request->nics) {
        TRY(map_choose_nics(c, error));
    }
    return map_choice_devices(c, out);
}

int map_devices(const struct servet_profile *profile, const struct map_device_request *request,
                uint32_t *pus, struct map_devices *out, struct servet_error *error)
{
    FREED_BY(map_arena_free) struct map_arena arena = {0};
    const size_t ranks = request->ranks.workers;
    struct map_choice c = {.arena = &arena, .profile = profile, .request = request, .pus = pus};
    if (ranks < 1 || ranks >= MAP_WORKER_LIMIT) {
        return profile_error(error, -EINVAL, "ranks: expected a number from 1 to %u, got %zu",
                             MAP_WORKER_LIMIT - 1, ranks);
    }
    return map_out_of_memory(choose_all_nodes(&c, out, error), error);
}
