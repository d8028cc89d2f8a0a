/* Ranks beside their GPUs: which ranks go where GPUs are, and their PUs. */
#include "mapper/devices/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/devices/choice.h"
#include "mapper/weights/weights.h"
#include "mapper/worth/worth.h"
#include "profile/query.h"

/* -- sharing out -- */

/* Shares `total` out in proportion to the weights (D'Hondt), the lower site first on ties; each
 * gets one before any gets a second where there is enough. */
static void share_out(size_t total, const size_t *weight, size_t count, size_t *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = total >= count ? 1 : 0;
    }
    for (size_t given = total >= count ? count : 0; given < total; given++) {
        size_t best = 0;
        for (size_t i = 1; i < count; i++) {
            best = weight[i] * (out[best] + 1) > weight[best] * (out[i] + 1) ? i : best;
        }
        out[best]++;
    }
}

/* -- sites -- */

/* The NUMA node of a site, or PROFILE_NOT_SAID. */
static uint32_t node_of(const struct map_site *site)
{
    return site->gpus[0]->numa_node;
}

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
    if (node_of(x) != node_of(y)) {
        return node_of(x) < node_of(y) ? -1 : 1;
    }
    return x->pus.ids[0] < y->pus.ids[0] ? -1 : x->pus.ids[0] > y->pus.ids[0];
}

/* The PUs of `set` that may be used. */
static int allowed_of(struct map_arena *arena, const struct profile_set *set,
                      const struct profile_set *allowed, struct profile_set *out)
{
    *out = (struct profile_set){map_arena_get(arena, set->count, sizeof *out->ids), 0};
    for (size_t i = 0; out->ids && i < set->count; i++) {
        if (profile_set_has(allowed, set->ids[i])) {
            out->ids[out->count++] = set->ids[i];
        }
    }
    return out->ids ? 0 : -ENOMEM;
}

/* The sites of the node's GPUs: GPUs with one locality are together. */
static int find_sites(struct map_choice *c)
{
    const struct profile_class *of = c->node_class;
    c->sites = map_arena_get(c->arena, of->device_count + 1, sizeof *c->sites);
    int rc = c->sites ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < of->device_count; i++) {
        const struct profile_device *device = &of->devices[i];
        struct profile_set pus;
        size_t s = 0;
        if (device->kind != PROFILE_GPU) {
            continue;
        }
        rc = allowed_of(c->arena, &device->pus, c->allowed, &pus);
        while (rc == 0 && s < c->site_count && !profile_set_equal(&c->sites[s].pus, &pus)) {
            s++;
        }
        struct map_site *site = &c->sites[s];
        if (rc == 0 && s == c->site_count) {
            *site = (struct map_site){
                .pus = pus, .gpus = map_arena_get(c->arena, of->device_count, sizeof *site->gpus)};
            rc = site->gpus ? 0 : -ENOMEM;
            c->site_count++;
        }
        if (rc == 0) {
            site->gpus[site->gpu_count++] = device;
        }
    }
    for (size_t s = 0; s < c->site_count; s++) {
        for (size_t t = 0; t < c->site_count; t++) {
            const struct profile_set *part = &c->sites[t].pus;
            c->sites[s].wide |= t != s && part->count && profile_set_subset(part, &c->sites[s].pus);
        }
    }
    if (rc == 0) {
        qsort(c->sites, c->site_count, sizeof *c->sites, by_first_pu);
    }
    return rc;
}

static size_t count_gpus(const struct map_choice *c)
{
    size_t count = 0;
    for (size_t s = 0; s < c->site_count; s++) {
        count += c->sites[s].gpu_count;
    }
    return count;
}

/* Leaves `keep` of a site's GPUs, at equal distances: dies of one card are neighbours. */
static void thin_out(struct map_site *site, size_t keep)
{
    for (size_t i = 0; i < keep; i++) {
        site->gpus[i] = site->gpus[i * site->gpu_count / keep];
    }
    site->gpu_count = keep;
}

/* Leaves so many GPUs of the node: near ones before far ones, evenly over the sites. */
static int keep_gpus(struct map_choice *c, size_t total)
{
    size_t far = c->site_count && !c->sites[c->site_count - 1].pus.count ? 1 : 0;
    size_t sites = c->site_count - far, near = 0, kept = 0;
    size_t *weight = map_arena_get(c->arena, c->site_count, sizeof *weight);
    size_t *share = map_arena_get(c->arena, c->site_count, sizeof *share);
    if (!weight || !share) {
        return -ENOMEM;
    }
    for (size_t s = 0; s < sites; s++) {
        weight[s] = c->sites[s].gpu_count;
        near += weight[s];
    }
    size_t of_near = total < near ? total : near;
    if (of_near >= sites) {
        share_out(of_near, weight, sites, share);
    }
    for (size_t i = 0; of_near < sites && i < of_near; i++) {
        share[i * sites / of_near] = 1;
    }
    if (far) {
        size_t most = c->sites[sites].gpu_count;
        share[sites] = total - of_near < most ? total - of_near : most;
    }
    for (size_t s = 0; s < c->site_count; s++) {
        if (share[s]) {
            c->sites[kept] = c->sites[s];
            thin_out(&c->sites[kept++], share[s]);
        }
    }
    c->site_count = kept;
    return 0;
}

/* Makes one site of two. 0 or -ENOMEM. */
static int join(struct map_choice *c, struct map_site *to, const struct map_site *from)
{
    uint32_t *pus = map_arena_get(c->arena, to->pus.count + from->pus.count, sizeof *pus);
    const struct profile_device **gpus =
        map_arena_get(c->arena, to->gpu_count + from->gpu_count, sizeof *gpus);
    size_t used = 0;
    if (!pus || !gpus) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < to->gpu_count; i++) {
        gpus[i] = to->gpus[i];
    }
    for (size_t i = 0; i < from->gpu_count; i++) {
        gpus[to->gpu_count++] = from->gpus[i];
    }
    to->gpus = gpus;
    for (size_t i = 0; i < c->allowed->count; i++) {
        uint32_t pu = c->allowed->ids[i];
        if (profile_set_has(&to->pus, pu) || profile_set_has(&from->pus, pu)) {
            pus[used++] = pu;
        }
    }
    to->pus = (struct profile_set){pus, used};
    return 0;
}

/* Shares `ranks` out over neighbouring sites and appends these to `parts`; where there are fewer
 * ranks, each gets several sites as one. */
static int divide(struct map_choice *c, const struct map_site *sites, size_t count, size_t ranks,
                  struct map_site *parts, size_t *part_count)
{
    struct map_site *out = parts + *part_count;
    size_t *weight = map_arena_get(c->arena, count, sizeof *weight);
    size_t *share = map_arena_get(c->arena, count, sizeof *share);
    int rc = weight && share ? 0 : -ENOMEM;
    if (rc < 0 || ranks < count) {
        for (size_t s = 0; rc == 0 && s < count; s++) {
            struct map_site *part = &out[s * ranks / count];
            part->ranks = 1;
            rc = join(c, part, &sites[s]);
        }
        *part_count += ranks;
        return rc;
    }
    for (size_t s = 0; s < count; s++) {
        weight[s] = sites[s].gpu_count;
    }
    share_out(ranks, weight, count, share);
    for (size_t s = 0; s < count; s++) {
        out[s] = sites[s];
        out[s].ranks = share[s];
    }
    *part_count += count;
    return 0;
}

static size_t end_of_node(const struct map_choice *c, size_t s)
{
    uint32_t node = node_of(&c->sites[s]);
    bool wide = c->sites[s].wide;
    do {
        s++;
    } while (s < c->site_count && node != PROFILE_NOT_SAID && node_of(&c->sites[s]) == node &&
             c->sites[s].wide == wide);
    return s;
}

/* Fewer ranks than sites: NUMA nodes first, so that no rank has a GPU of one and a GPU of another
 * while there are enough nodes, then the sites of each. */
static int divide_nodes(struct map_choice *c, size_t ranks, struct map_site *parts,
                        size_t *part_count)
{
    struct map_site *nodes = map_arena_get(c->arena, c->site_count, sizeof *nodes);
    struct map_site *shares = map_arena_get(c->arena, c->site_count, sizeof *shares);
    size_t count = 0, share_count = 0;
    int rc = nodes && shares ? 0 : -ENOMEM;
    for (size_t s = 0, end; rc == 0 && s < c->site_count; s = end) {
        end = end_of_node(c, s);
        for (size_t i = s; rc == 0 && i < end; i++) {
            rc = join(c, &nodes[count], &c->sites[i]);
        }
        count++;
    }
    if (rc < 0 || ranks < count) {
        return rc < 0 ? rc : divide(c, nodes, count, ranks, parts, part_count);
    }
    rc = divide(c, nodes, count, ranks, shares, &share_count);
    for (size_t n = 0, s = 0, end; rc == 0 && n < count; n++, s = end) {
        end = end_of_node(c, s);
        rc = divide(c, &c->sites[s], end - s, shares[n].ranks, parts, part_count);
    }
    return rc;
}

/* -- ranks of a site -- */

/* Cores of the set of which no PU is used; its PUs that are not used. */
static size_t count_free(const struct map_choice *c, const struct profile_set *set, bool cores)
{
    const struct profile_relation *relation = &c->node_class->cores;
    size_t free_pus = 0, doubled = 0;
    for (size_t i = 0; i < set->count; i++) {
        free_pus += !c->used[set->ids[i]];
    }
    for (size_t g = 0; cores && g < relation->group_count; g++) {
        size_t open = 0, held = 0;
        for (size_t i = 0; i < relation->groups[g].count; i++) {
            uint32_t pu = relation->groups[g].ids[i];
            held += c->used[pu];
            open += !c->used[pu] && profile_set_has(set, pu);
        }
        doubled += held ? open : open ? open - 1 : 0;
    }
    return free_pus - doubled;
}

/* Maps ranks [begin, end) of the node onto PUs of the set, beside those that are placed. */
static int map_ranks(struct map_choice *c, const struct profile_set *set, const size_t *ranks,
                     size_t count, struct servet_error *error)
{
    const struct map_domain_request *all = &c->request->ranks;
    uint32_t *threads = map_arena_get(c->arena, count, sizeof *threads);
    struct profile_set taken = {
        map_arena_get(c->arena, c->node_class->pus.count, sizeof *taken.ids), 0};
    size_t total = 0;
    for (size_t i = 0; threads && i < count; i++) {
        threads[i] = map_threads_of(all, ranks[i]);
        total += threads[i];
    }
    uint32_t *pus = map_arena_get(c->arena, total, sizeof *pus);
    if (!threads || !taken.ids || !pus) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < set->count; i++) {
        if (c->used[set->ids[i]]) {
            taken.ids[taken.count++] = set->ids[i];
        }
    }
    struct map_domain_request request = *all;
    request.ranks = count;
    request.threads = threads;
    request.allowed = set;
    request.taken = &taken;
    int rc = count ? map_domains(&c->view.profile, &request, pus, error) : 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        uint32_t *out = c->pus + c->first[ranks[i]];
        for (uint32_t t = 0; t < threads[i]; t++) {
            c->used[*pus] = true;
            out[t] = c->first_pu + *pus++;
        }
    }
    return rc;
}

/* Deals GPUs out among `ranks` ranks from `first` on, in order. */
static int deal(struct map_choice *c, const struct profile_device *const *gpus, size_t count,
                size_t first, size_t ranks)
{
    int rc = 0;
    for (size_t r = 0; r < ranks; r++) {
        size_t begin = r * count / ranks, end = (r + 1) * count / ranks;
        end = end > begin ? end : begin + 1;
        for (size_t g = begin; rc == 0 && g < end; g++) {
            rc = map_choice_hold(c, first + r, gpus[g]);
        }
    }
    return rc;
}

/* The GPUs of a site: card by card where there are ranks for all cards, so that no rank has dies
 * of two. */
static int deal_gpus(struct map_choice *c, const struct map_site *site, size_t first)
{
    size_t *dies = map_arena_get(c->arena, site->gpu_count, sizeof *dies);
    size_t *share = map_arena_get(c->arena, site->gpu_count, sizeof *share);
    size_t cards = 0;
    if (!dies || !share) {
        return -ENOMEM;
    }
    for (size_t g = 0; g < site->gpu_count; g++) {
        cards += g && site->gpus[g]->card != site->gpus[g - 1]->card;
        dies[cards]++;
    }
    cards++;
    if (site->ranks < cards || site->ranks >= site->gpu_count) {
        return deal(c, site->gpus, site->gpu_count, first, site->ranks);
    }
    int rc = 0;
    share_out(site->ranks, dies, cards, share);
    for (size_t card = 0, g = 0; rc == 0 && card < cards; card++) {
        rc = deal(c, site->gpus + g, dies[card], first, share[card]);
        g += dies[card];
        first += share[card];
    }
    return rc;
}

/* Is it the first PU that may be used of a core of which none is used? */
static bool opens_core(const struct map_choice *c, uint32_t pu)
{
    const struct profile_set *core = profile_group_of(&c->node_class->cores, pu);
    for (size_t i = 0; core && i < core->count; i++) {
        uint32_t other = core->ids[i];
        if (c->used[other] || (other < pu && profile_set_has(c->allowed, other))) {
            return false;
        }
    }
    return true;
}

/* Places a rank that does not fit where its GPUs are: on what is free there and on the PUs that
 * follow, from the last one on the first; on whole cores if these suffice for all ranks. A rank
 * whose GPUs are far from all PUs, or for which there is no room, may go everywhere. */
static int place_away(struct map_choice *c, const struct map_site *site, size_t rank, bool cores,
                      struct servet_error *error)
{
    const struct profile_set *all = c->allowed;
    const size_t wants = map_threads_of(&c->request->ranks, rank);
    bool *chosen = map_arena_get(c->arena, all->count, sizeof *chosen);
    struct profile_set near = {map_arena_get(c->arena, all->count, sizeof *near.ids), 0};
    size_t found = 0;
    if (!chosen || !near.ids) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; site->pus.count && i < all->count && found < wants; i++) {
        size_t at = (profile_set_position(all, site->pus.ids[0]) + i) % all->count;
        uint32_t pu = all->ids[at];
        chosen[at] = !c->used[pu] && (!cores || opens_core(c, pu));
        c->used[pu] |= chosen[at];
        found += chosen[at];
    }
    for (size_t at = 0; at < all->count; at++) {
        c->used[all->ids[at]] &= !chosen[at];
        if (chosen[at]) {
            near.ids[near.count++] = all->ids[at];
        }
    }
    return map_ranks(c, found < wants ? all : &near, &rank, 1, error);
}

/* Every rank that finds room where its GPUs are is placed there; then the others: by cores where
 * these suffice for all, else by PUs. */
static int place_ranks(struct map_choice *c, size_t begin, size_t end, struct servet_error *error)
{
    size_t *here = map_arena_get(c->arena, end - begin, sizeof *here);
    const struct map_site **away = map_arena_get(c->arena, end - begin, sizeof *away);
    size_t threads = 0, rank = begin;
    if (!here || !away) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    for (size_t r = begin; r < end; r++) {
        threads += map_threads_of(&c->request->ranks, r);
    }
    bool cores = threads <= count_free(c, c->allowed, true);
    bool limited = cores || threads <= count_free(c, c->allowed, false);
    int rc = 0;
    for (size_t s = 0; rc == 0 && s < c->site_count; s++) {
        const struct map_site *site = &c->sites[s];
        size_t room = limited ? count_free(c, &site->pus, cores) : SIZE_MAX, here_count = 0;
        rc = deal_gpus(c, site, rank);
        for (size_t r = 0; rc == 0 && r < site->ranks; r++, rank++) {
            uint32_t wants = map_threads_of(&c->request->ranks, rank);
            if (site->pus.count && wants <= room) {
                here[here_count++] = rank;
                room -= limited ? wants : 0;
            } else {
                away[rank - begin] = site;
            }
        }
        rc = rc < 0 ? rc : map_ranks(c, &site->pus, here, here_count, error);
    }
    for (size_t r = begin; rc == 0 && r < end; r++) {
        rc = away[r - begin] ? place_away(c, away[r - begin], r, cores, error) : 0;
    }
    return rc;
}

/* -- a node -- */

static int place_node(struct map_choice *c, size_t begin, size_t end, struct servet_error *error)
{
    size_t ranks = end - begin, near = 0;
    size_t count = count_gpus(c);
    for (size_t s = 0; s < c->site_count; s++) {
        near += c->sites[s].pus.count ? c->sites[s].gpu_count : 0;
    }
    /* Those that are far are there for ranks beyond the near ones. */
    if (near && near < count) {
        count = ranks <= near ? near : ranks < count ? ranks : count;
    }
    struct map_site *parts = map_arena_get(c->arena, c->site_count, sizeof *parts);
    size_t part_count = 0;
    int rc = parts ? keep_gpus(c, count) : -ENOMEM;
    if (rc == 0 && ranks < c->site_count) {
        rc = divide_nodes(c, ranks, parts, &part_count);
    } else if (rc == 0) {
        rc = divide(c, c->sites, c->site_count, ranks, parts, &part_count);
    }
    if (rc < 0) {
        return profile_error(error, rc, "out of memory");
    }
    c->sites = parts;
    c->site_count = part_count;
    return place_ranks(c, begin, end, error);
}

/* The part of a node that may be used, and its GPUs. */
struct node {
    struct map_part part;
    size_t gpus;
};

/* Those that have both; their parts are to be freed, also on failure. */
static int find_nodes(const struct servet_profile *profile, const struct profile_set *allowed,
                      struct node *nodes, size_t *count)
{
    int rc = 0;
    *count = 0;
    for (uint32_t n = 0; rc == 0 && n < profile_node_count(profile); n++) {
        struct node node = {.gpus = 0};
        rc = map_part_of_node(profile, n, allowed, &node.part);
        for (size_t i = 0; rc == 0 && i < node.part.of->device_count; i++) {
            node.gpus += node.part.of->devices[i].kind == PROFILE_GPU;
        }
        if (node.part.allowed.count && node.gpus) {
            nodes[(*count)++] = node;
        } else {
            profile_set_free(&node.part.allowed);
        }
    }
    return rc;
}

static int choose_node(struct map_choice *c, const struct node *node, size_t begin, size_t end,
                       struct servet_error *error)
{
    c->node_class = node->part.of;
    c->allowed = &node->part.allowed;
    c->first_pu = node->part.first_pu;
    c->site_count = 0;
    c->used = map_arena_get(c->arena, profile_class_span(c->node_class), sizeof *c->used);
    map_one_node(c->node_class, &c->view);
    const struct profile_set *taken = c->request->ranks.taken;
    for (size_t i = 0; c->used && taken && i < c->node_class->pus.count; i++) {
        uint32_t pu = c->node_class->pus.ids[i];
        c->used[pu] = profile_set_has(taken, c->first_pu + pu);
    }
    int rc = c->used ? find_sites(c) : -ENOMEM;
    rc = rc == 0 && c->request->gpus != MAP_ALL_GPUS ? keep_gpus(c, c->request->gpus) : rc;
    return rc < 0 ? profile_error(error, rc, "out of memory") : place_node(c, begin, end, error);
}

static int refuse(const struct map_device_request *request, const struct node *nodes, size_t count,
                  struct servet_error *error)
{
    size_t gpus = 0;
    if (!count) {
        return profile_error(error, -EINVAL, "--gpus: expected a machine with GPUs, none is known");
    }
    for (size_t n = 0; n < count; n++) {
        if (request->gpus != MAP_ALL_GPUS && request->gpus > nodes[n].gpus) {
            return profile_error(error, -EINVAL,
                                 "--gpus: expected at most %zu, the GPUs of a node, got %u",
                                 nodes[n].gpus, request->gpus);
        }
        gpus += request->gpus == MAP_ALL_GPUS ? nodes[n].gpus : request->gpus;
    }
    if (request->exclusive && request->ranks.ranks > gpus) {
        return profile_error(error, -EINVAL,
                             "--gpus=exclusive: expected at most %zu ranks, one for each GPU, got "
                             "%zu",
                             gpus, request->ranks.ranks);
    }
    return 0;
}

/* Ranks go to nodes in blocks, in proportion to their GPUs. */
static int place_on_nodes(struct map_choice *c, const struct node *nodes, size_t count,
                          struct servet_error *error)
{
    const struct map_device_request *request = c->request;
    size_t *weight = map_arena_get(c->arena, count, sizeof *weight);
    size_t *share = map_arena_get(c->arena, count, sizeof *share);
    size_t rank = 0;
    int rc = weight && share ? refuse(request, nodes, count, error)
                             : profile_error(error, -ENOMEM, "out of memory");
    if (rc < 0) {
        return rc;
    }
    count = request->ranks.ranks < count ? request->ranks.ranks : count;
    for (size_t n = 0; n < count; n++) {
        weight[n] = request->gpus == MAP_ALL_GPUS ? nodes[n].gpus : request->gpus;
    }
    share_out(request->ranks.ranks, weight, count, share);
    for (size_t n = 0; rc == 0 && n < count; n++) {
        rc = choose_node(c, &nodes[n], rank, rank + share[n], error);
        rank += share[n];
    }
    return rc;
}

static int place_by_gpus(struct map_choice *c, const struct servet_profile *profile,
                         struct servet_error *error)
{
    struct node *nodes = map_arena_get(c->arena, profile_node_count(profile), sizeof *nodes);
    size_t count = 0;
    int rc = nodes ? find_nodes(profile, c->request->ranks.allowed, nodes, &count) : -ENOMEM;
    rc =
        rc < 0 ? profile_error(error, rc, "out of memory") : place_on_nodes(c, nodes, count, error);
    for (size_t n = 0; n < count; n++) {
        profile_set_free(&nodes[n].part.allowed);
    }
    return rc;
}

static int choose(struct map_choice *c, const struct servet_profile *profile,
                  struct servet_error *error)
{
    const struct map_domain_request *ranks = &c->request->ranks;
    int rc = c->request->gpus ? place_by_gpus(c, profile, error)
                              : map_domains(profile, ranks, c->pus, error);
    return rc == 0 && c->request->nics ? map_choose_nics(c, profile, error) : rc;
}

/* -- the request -- */

int map_devices(const struct servet_profile *profile, const struct map_device_request *request,
                uint32_t *pus, struct map_devices *out, struct servet_error *error)
{
    struct map_arena arena = {0};
    const size_t ranks = request->ranks.ranks;
    struct map_choice c = {.arena = &arena, .request = request, .pus = pus};
    if (ranks < 1 || ranks >= MAP_WORKER_LIMIT) {
        return profile_error(error, -EINVAL, "ranks: expected a number from 1 to %u, got %zu",
                             MAP_WORKER_LIMIT - 1, ranks);
    }
    c.first = map_arena_get(&arena, ranks + 1, sizeof *c.first);
    c.holds = map_arena_get(&arena, ranks, sizeof *c.holds);
    int rc = c.first && c.holds ? 0 : profile_error(error, -ENOMEM, "out of memory");
    for (size_t r = 0; rc == 0 && r < ranks; r++) {
        c.first[r + 1] = c.first[r] + map_threads_of(&request->ranks, r);
    }
    rc = rc < 0 ? rc : choose(&c, profile, error);
    if (rc == 0 && map_choice_devices(&c, profile, out) < 0) {
        rc = profile_error(error, -ENOMEM, "out of memory");
    }
    map_arena_free(&arena);
    return rc;
}
