/* The plan of this process. */
#include "preload/place/plan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mapper/map.h"
#include "preload/node/log.h"
#include "preload/node/neighbours.h"
#include "preload/node/registry.h"
#include "preload/place/places.h"
#include "profile/base/launchers.h"
#include "profile/query.h"
#include "profile/scope.h"

/* Workers of all ranks of a node; what says more is a mistake in the environment that would take
 * seconds to work out, and each rank's threads then share the PUs of the whole node. */
#define MOST_WORKERS (4u * PROFILE_MASK_PUS)

/* -- the profile -- */

/* Figures of single NUMA nodes are left aside unless memory goes by them. */
static int load_matching(const char *path, bool all, const struct profile_set *allowed,
                         struct servet_profile **out, struct servet_error *error)
{
    struct servet_profile *profile;
    TRY(all ? profile_load(path, &profile, error) : profile_load_node(path, &profile, error));
    const int rc = profile_matches(profile, "", allowed, error);
    if (rc < 0) {
        profile_free(profile);
        return rc;
    }
    *out = profile;
    return 0;
}

int pin_profile_read(const struct pin_options *options, const struct pin_launcher *launcher,
                     const struct profile_set *allowed, struct servet_profile **out,
                     char source[PIN_SOURCE_SIZE])
{
    struct servet_error error = {0};
    char found[PATH_MAX];
    const char *path = options->profile, *why = "no profile found";
    if (!path && profile_find(found, sizeof found) == 0) {
        path = found;
    }
    if (path) {
        if (load_matching(path, options->membind >= PIN_MEMBIND_FAST, allowed, out, &error) == 0) {
            snprintf(source, PIN_SOURCE_SIZE, "%.200s", path);
            return 0;
        }
        if (launcher->node_rank == 0) { /* else said once for all */
            pin_failure("%s; using the declared topology instead%s", error.text,
                        launcher->node_ranks > 1 ? " (as all ranks of the job here)" : "");
        }
        why = "profile not usable";
    }
    snprintf(source, PIN_SOURCE_SIZE, "declared topology, %s", why);
    const int rc = profile_from_sysfs("", out, &error);
    pin_log(rc < 0 && launcher->node_rank == 0 && options->verbose, "threads are not pinned: %s",
            error.text);
    return rc;
}

/* -- the order of the PUs -- */

/* One request: what may be used, and what the profile says of it. */
struct planning {
    const struct pin_plan_request *asked;
    struct profile_mask left; /* what of the allowed PUs the profile knows, as is `allowed` */
    struct profile_set allowed, taken;
    struct pin_company *company;    /* on each of `allowed`; NULL: not counted */
    struct servet_profile *profile; /* NULL: not read yet */
    size_t known_workers;           /* ranks or threads that will come; 0: one by one, any number */
    struct map_node_view view;
    enum map_priority priority;
};

static int map_order(const struct planning *planning, size_t count, uint32_t *out,
                     struct servet_error *error)
{
    struct map_request request = {.priority = planning->priority,
                                  .workers = count,
                                  .allowed = &planning->allowed,
                                  .taken = &planning->taken,
                                  .known = count == planning->known_workers};
    return count == 0 ? 0 : map_workers(&planning->view.profile, &request, out, NULL, error);
}

/* Appends the PUs of `from` that are not in `used` yet. */
static size_t append_new(const uint32_t *from, size_t from_count, struct profile_mask *used,
                         uint32_t *out, size_t count)
{
    for (size_t i = 0; i < from_count; i++) {
        if (profile_mask_has(used, from[i])) {
            continue;
        }
        profile_mask_add(used, from[i]);
        out[count++] = from[i];
    }
    return count;
}

/* `out` gets `total` PUs: the mapper's own answer where it is asked for more workers than PUs. Else
 * every usable PU once: those of `workers` workers as the mapper orders them, then the other free
 * ones (the mapper's answer for few workers is not always the beginning of that for many: it keeps
 * few on one kind of core), then, by number, those that other programs hold. An answer is kept. */
static int order_pus(const struct planning *planning, size_t workers, size_t total, uint32_t *out,
                     struct servet_error *error)
{
    const size_t usable = planning->allowed.count, free_pus = usable - planning->taken.count;
    const size_t asked[] = {workers < free_pus ? workers : free_pus, free_pus};
    struct profile_mask used = {0};
    size_t count = 0;
    if (total > usable) {
        return map_order(planning, total, out, error);
    }
    FREED uint32_t *scratch = malloc(total * sizeof *scratch);
    if (!scratch) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < sizeof asked / sizeof *asked && count < asked[i]; i++) {
        TRY(map_order(planning, asked[i], scratch, error));
        count = append_new(scratch, asked[i], &used, out, count);
    }
    append_new(planning->allowed.ids, usable, &used, out, count);
    return 0;
}

static bool has_part(const struct planning *planning)
{
    return planning->asked->launcher->name && planning->asked->launcher->row->workers;
}

/* Ranks that divide the PUs. */
static size_t count_dividers(const struct planning *planning)
{
    const uint32_t ranks = planning->asked->launcher->local_size;
    return ranks > 1 && !has_part(planning) ? ranks : 1;
}

/* PUs for a rank that shares its mask and may have any number of threads; 0: it has all of them. */
static size_t share_of(const struct planning *planning, uint32_t threads)
{
    const struct pin_launcher *launcher = planning->asked->launcher;
    if (threads > 0 || has_part(planning) || launcher->sharers <= 1) {
        return 0;
    }
    const size_t share = planning->allowed.count / launcher->sharers;
    return share > 0 ? share : 1;
}

/* Who else is on the PUs that may be used. */
static bool count_company(struct planning *planning)
{
    const struct profile_set *pus = &planning->allowed;
    if (!planning->company &&
        (planning->company = malloc(pus->count * sizeof(struct pin_company)))) {
        pin_registry_count(planning->asked->registry, pus->ids, pus->count, planning->company);
    }
    return planning->company;
}

/* Over other jobs a main thread goes where the fewest of them have theirs: of the PUs of one rank,
 * each `step` of `count`. */
static void add_main(struct planning *planning, const uint32_t *pus, size_t count, size_t step,
                     struct pin_plan *plan)
{
    size_t best = 0;
    unsigned least = UINT_MAX;
    const bool is_over = profile_mask_has(&plan->avoid, pus[0]) && count_company(planning);
    for (size_t i = 0; is_over && i < count; i++) {
        const size_t at = profile_set_position(&planning->allowed, pus[i * step]);
        if (planning->company[at].mains < least) {
            least = planning->company[at].mains;
            best = i;
        }
    }
    profile_mask_add(&plan->mains, pus[best * step]);
}

/* Leaves this rank's PUs of `total` of all ranks, the first `sure` of which are used for sure: with
 * `threads` so many for one rank after the other, else one for each in turn. */
static void keep_own(struct planning *planning, uint32_t *all, size_t total, uint32_t threads,
                     size_t sure, struct pin_plan *plan)
{
    const size_t ranks = count_dividers(planning), step = threads ? 1 : ranks,
                 own = ranks > 1 ? planning->asked->launcher->local_rank : 0;
    for (size_t i = 0; i < sure && i < total; i++) {
        profile_mask_add(&plan->held, all[i]);
    }
    for (size_t rank = 0; rank < ranks; rank++) {
        const size_t count = threads ? threads : (total - rank + ranks - 1) / ranks;
        add_main(planning, &all[threads ? rank * threads : rank], count, step, plan);
        plan->count = rank == own ? count : plan->count;
    }
    for (size_t i = 0, at = threads ? own * threads : own; i < plan->count; i++, at += step) {
        all[i] = all[at];
    }
    plan->pus = all;
}

/* Slots r, r + L, r + 2L … of the whole order; ranks share PUs where there are more of them than
 * PUs. */
static int deal_out(struct planning *planning, struct pin_plan *plan, struct servet_error *error)
{
    const uint32_t threads = planning->asked->threads;
    const size_t share = share_of(planning, threads), ranks = count_dividers(planning),
                 usable = planning->allowed.count;
    size_t workers = ranks > 1 ? ranks : share ? share : threads, sure;
    /* Without a number of threads any number may come, one at a time; of a team the main thread is
     * there already. */
    sure = workers == 0 ? planning->asked->is_team : workers;
    if (workers == 0 || (ranks == 1 && workers > usable)) {
        workers = usable;
    }
    planning->known_workers = sure <= 1 && ranks == 1 ? 0 : workers;
    const size_t total = workers > usable ? workers : usable;
    FREED uint32_t *order = malloc(total * sizeof *order);
    if (!order) {
        return -ENOMEM;
    }
    TRY(order_pus(planning, workers, total, order, error));
    keep_own(planning, TAKE(order), share ? share : total, 0, sure, plan);
    return 0;
}

/* A region of `each` PUs, around those `taken`, for one of the node's ranks after the other. */
static int map_regions(const struct planning *planning, uint32_t each,
                       const struct profile_set *taken, uint32_t **out, struct servet_error *error)
{
    const struct map_request request = {.priority = planning->priority,
                                        .workers = planning->asked->launcher->local_size,
                                        .threads_each = each,
                                        .allowed = &planning->allowed,
                                        .taken = taken};
    FREED uint32_t *all = malloc(request.workers * each * sizeof *all);
    if (!all) {
        return -ENOMEM;
    }
    TRY(map_domains(&planning->view.profile, &request, all, error));
    *out = TAKE(all);
    return 0;
}

/* The region of this rank when each of the node's ranks has `threads` threads. */
static int take_region(struct planning *planning, struct pin_plan *plan, struct servet_error *error)
{
    const uint32_t threads = planning->asked->threads;
    const size_t total = (size_t)planning->asked->launcher->local_size * threads;
    uint32_t *all;
    TRY(map_regions(planning, threads, &planning->taken, &all, error));
    keep_own(planning, all, total, threads, total, plan);
    return 0;
}

/* Where others hold every PU, those that have more company than the least: of jobs, then of their
 * main threads. None where all are alike, or where ranks divide the PUs, each of which would count
 * at another moment. */
static void find_crowded(struct planning *planning, struct profile_mask *out)
{
    const struct profile_set *pus = &planning->allowed;
    const size_t count = count_dividers(planning) > 1 || !count_company(planning) ? 0 : pus->count;
    struct profile_mask seen = {0};
    unsigned least = UINT_MAX;
    *out = seen;
    for (size_t i = 0; i < count; i++) {
        const unsigned weight = 2 * planning->company[i].jobs + (planning->company[i].mains > 0);
        if (weight < least) {
            least = weight;
            *out = seen;
        } else if (weight > least) {
            profile_mask_add(out, pus->ids[i]);
        }
        profile_mask_add(&seen, pus->ids[i]);
    }
}

static int set_pus(struct planning *planning, const struct profile_mask *taken)
{
    free(planning->company);
    planning->company = NULL;
    profile_set_free(&planning->allowed);
    profile_set_free(&planning->taken);
    if (profile_mask_to_set(&planning->left, &planning->allowed) < 0 ||
        profile_mask_to_set(taken, &planning->taken) < 0) {
        pin_failure("no memory for the plan; threads are not pinned");
        return -ENOMEM;
    }
    return 0;
}

/* Leaves what is in `pus`; of that others hold those in `avoid`. */
static int restrict_to(const struct profile_mask *pus, const struct profile_mask *avoid,
                       struct planning *planning)
{
    struct profile_mask taken = *avoid;
    profile_mask_intersect(&planning->left, pus);
    profile_mask_intersect(&taken, &planning->left);
    const bool is_full = profile_mask_equal(&taken, &planning->left);
    const int rc = set_pus(planning, &taken);
    if (rc < 0 || !is_full) {
        return rc;
    }
    find_crowded(planning, &taken);
    profile_set_free(&planning->taken);
    return profile_mask_to_set(&taken, &planning->taken);
}

uint32_t pin_plan_cores(const struct profile_class *node_class, const struct profile_set *pus)
{
    struct profile_mask seen = {0};
    uint32_t cores = 0;
    for (size_t i = 0; i < pus->count; i++) {
        cores += !profile_mask_has(&seen, pus->ids[i]);
        pin_plan_add_cores(node_class, &pus->ids[i], 1, &seen);
    }
    return cores;
}

void pin_plan_add_cores(const struct profile_class *node_class, const uint32_t *pus, size_t count,
                        struct profile_mask *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct profile_set *core = profile_group_of(&node_class->cores, pus[i]);
        for (size_t k = 0; core && k < core->count; k++) {
            profile_mask_add(out, core->ids[k]);
        }
        profile_mask_add(out, pus[i]);
    }
}

/* A worker has an equal part of the node, whole cores while these suffice, however many
 * threads it makes: what it starts lives there, too. Leaves the part in `allowed`. */
static int take_part(const struct profile_class *node_class, const struct profile_mask *avoid,
                     struct planning *planning, struct servet_error *error)
{
    const uint32_t ranks = planning->asked->launcher->local_size,
                   rank = planning->asked->launcher->local_rank,
                   cores = pin_plan_cores(node_class, &planning->allowed),
                   each = cores > ranks ? cores / ranks : 1;
    struct profile_mask part = {0};
    FREED uint32_t *all = NULL;
    TRY(map_regions(planning, each, NULL, &all, error));
    if (cores >= ranks) {
        pin_plan_add_cores(node_class, all + (size_t)rank * each, each, &part);
    } else {
        profile_mask_add(&part, all[rank]);
    }
    return restrict_to(&part, avoid, planning);
}

/* A rank by itself is sure to use the first of the exported places, wherever it would go by now. */
static void keep_exported(const struct planning *planning, struct pin_plan *plan)
{
    const size_t sure =
        planning->asked->threads ? planning->asked->threads : share_of(planning, 0) + 1;
    plan->count = pin_places_order(plan->pus, plan->count);
    profile_mask_add(&plan->mains, plan->pus[0]);
    if (planning->asked->launcher->local_size > 1) {
        return;
    }
    plan->held = (struct profile_mask){0};
    for (size_t i = 0; i < plan->count && i < sure; i++) {
        profile_mask_add(&plan->held, plan->pus[i]);
    }
}

/* The order that servet-pin exported holds. Else it begins with the main thread's PU. */
static void settle_order(const struct planning *planning, struct pin_plan *plan)
{
    if (planning->asked->exported) {
        keep_exported(planning, plan);
        return;
    }
    for (size_t i = 1; i < plan->count && !profile_mask_has(&plan->mains, plan->pus[0]); i++) {
        const uint32_t pu = plan->pus[0];
        memmove(plan->pus, plan->pus + 1, (plan->count - 1) * sizeof *plan->pus);
        plan->pus[plan->count - 1] = pu;
    }
}

static void find_domains_of_places(const struct profile_class *node_class, struct pin_plan *plan)
{
    plan->own = (struct profile_mask){0};
    for (size_t i = 0; i < plan->count; i++) {
        uint32_t *domain = &plan->places[i].domain;
        profile_mask_add(&plan->own, plan->pus[i]);
        while (*domain < node_class->numa_count &&
               !profile_set_has(&node_class->numa[*domain].pus, plan->pus[i])) {
            ++*domain;
        }
    }
}

static int place_workers(struct planning *planning, struct pin_plan *plan)
{
    struct servet_error error = {.text = "no memory"};
    const uint32_t threads = planning->asked->threads;
    const struct profile_class *node_class = profile_class_here(planning->profile);
    struct profile_mask known = {0};
    profile_mask_from_set(&node_class->pus, &known);
    int code = restrict_to(&known, &plan->avoid, planning);
    map_one_node(node_class, &planning->view);
    if (code == 0 && has_part(planning) && planning->asked->launcher->local_size > 1) {
        code = take_part(node_class, &plan->avoid, planning, &error);
    }
    if (code == 0) {
        const size_t ranks = count_dividers(planning);
        const bool regions = ranks > 1 && threads > 1 && ranks * threads <= MOST_WORKERS;
        code = regions ? take_region(planning, plan, &error) : deal_out(planning, plan, &error);
    }
    plan->places = code == 0 ? calloc(plan->count, sizeof *plan->places) : NULL;
    if (!plan->places) {
        pin_log(planning->asked->options->verbose, "threads are not pinned: %s", error.text);
        return code < 0 ? code : -ENOMEM;
    }
    settle_order(planning, plan);
    find_domains_of_places(node_class, plan);
    const struct pin_memory_request request = {.node_class = node_class,
                                               .own = &plan->own,
                                               .ranks = planning->asked->launcher->node_ranks};
    return pin_memory_plan(planning->asked->options->membind, &request, &plan->memory);
}

static enum map_priority priority_of(const struct pin_options *options,
                                     const struct pin_launcher *launcher)
{
    if (options->mem_prior && options->comm_prior && launcher->node_rank == 0) {
        pin_failure("SERVET_MEM_PRIOR and SERVET_COMM_PRIOR are both set; using memory priority");
    }
    return options->comm_prior && !options->mem_prior ? MAP_COMMUNICATION : MAP_MEMORY;
}

uint32_t pin_plan_threads(void)
{
    const char *text = pin_environment("OMP_NUM_THREADS");
    unsigned long value = text ? strtoul(text, NULL, 10) : 0;
    return value <= PROFILE_MASK_PUS ? (uint32_t)value : 0;
}

/* PUs that strangers keep busy. Only a team or a rank that does not need every PU waits for that
 * look, and only where it is known which other processes are ranks of the same job. */
static void find_busy(const struct planning *planning, struct profile_mask *out)
{
    const struct pin_launcher *launcher = planning->asked->launcher;
    const bool ranks = launcher->node_ranks > 1;
    const uint64_t workers =
        (uint64_t)(planning->asked->threads > 0 ? planning->asked->threads : 1) *
        (launcher->local_size ? launcher->local_size : 1);
    const pid_t process = ranks ? launcher->starter : 0;
    *out = (struct profile_mask){0};
    if (planning->asked->is_team && !planning->asked->options->no_watch &&
        workers < profile_mask_count(planning->asked->allowed) &&
        (planning->asked->threads > 0 || launcher->name) && (!ranks || process > 0)) {
        (void)pin_foreign_load_pus(planning->asked->allowed, process, out);
    }
}

/* In place of any plan made before. */
static int place_around(struct planning *planning, const struct profile_mask *taken,
                        struct pin_plan *plan)
{
    pin_plan_free(plan);
    planning->left = *planning->asked->allowed;
    plan->avoid = *taken;
    return place_workers(planning, plan);
}

/* Takes the PUs that are sure to be used and that no job was seen to hold, and main threads' over
 * others. False: another job has come meanwhile, and nothing is taken. */
static bool take_all(const struct planning *planning, struct pin_plan *plan)
{
    struct profile_mask laid = plan->mains;
    profile_mask_intersect(&laid, &plan->avoid);
    plan->ours = plan->held;
    profile_mask_subtract(&plan->ours, &plan->avoid);
    if (!pin_registry_take_all(planning->asked->registry, &plan->ours, &plan->mains, false)) {
        plan->ours = (struct profile_mask){0};
        return false;
    }
    if (planning->asked->is_team &&
        pin_registry_take_all(planning->asked->registry, &laid, &laid, true)) {
        profile_mask_unite(&plan->ours, &laid);
    }
    return true;
}

/* So often a job that does not wait for its turn may come between the look and the choice. */
#define MOST_TRIES 8

/* For a process by itself, and for the first rank of a job, whose look counts for all of them. */
static int place_first(struct planning *planning, const struct profile_mask *busy,
                       struct pin_plan *plan)
{
    struct profile_mask taken, all;
    int rc = 0;
    for (int i = 0; i < MOST_TRIES; i++) {
        pin_registry_look(planning->asked->registry, planning->asked->allowed, &taken);
        all = taken;
        profile_mask_unite(&all, busy);
        /* On a node that is busy everywhere, the PUs that others hold still tell PUs apart. */
        const bool is_room = !profile_mask_within(planning->asked->allowed, &all);
        rc = place_around(planning, is_room ? &all : &taken, plan);
        if (rc < 0 || take_all(planning, plan)) {
            break;
        }
    }
    return rc;
}

/* A rank also holds its own PUs, of which the first rank of its job holds all: that may end
 * earlier. */
static void take_own(struct pin_registry *registry, struct pin_plan *plan)
{
    plan->ours = plan->held;
    profile_mask_intersect(&plan->ours, &plan->own);
    plan->mains = (struct profile_mask){0};
    profile_mask_add(&plan->mains, plan->pus[0]);
    (void)pin_registry_take_all(registry, &plan->ours, &plan->mains, true);
}

/* Ranks that divide the PUs plan together, workers each in its part. */
static int place_among_others(struct planning *planning, struct pin_plan *plan)
{
    struct pin_registry *registry = planning->asked->registry;
    struct profile_mask busy, taken = {0};
    const bool together = count_dividers(planning) > 1;
    TRY(set_pus(planning, &taken));
    TRY(pin_profile_read(planning->asked->options, planning->asked->launcher, &planning->allowed,
                         &planning->profile, plan->source));
    find_busy(planning, &busy);
    if (!pin_registry_begin_turn(registry, planning->asked->allowed, together, &taken)) {
        TRY(place_around(planning, &taken, plan));
        take_own(registry, plan);
        return 0;
    }
    const int rc = place_first(planning, &busy, plan);
    if (together) {
        pin_registry_publish(registry, &plan->avoid);
    }
    pin_registry_end_turn(registry);
    return rc;
}

bool pin_plan_meets_unseen(const struct pin_options *options, const struct pin_registry *registry,
                           const struct profile_mask *allowed)
{
    return registry->alone && !options->force &&
           profile_mask_count(allowed) >= (size_t)sysconf(_SC_NPROCESSORS_ONLN);
}

int pin_plan_make(const struct pin_plan_request *request, struct pin_plan *out)
{
    struct planning planning = {.asked = request,
                                .left = *request->allowed,
                                .priority = priority_of(request->options, request->launcher)};
    *out = (struct pin_plan){0};
    if (pin_plan_meets_unseen(request->options, request->registry, request->allowed)) {
        return -EXDEV;
    }
    const int rc = place_among_others(&planning, out);
    free(planning.company);
    profile_free(planning.profile);
    profile_set_free(&planning.allowed);
    profile_set_free(&planning.taken);
    if (rc < 0) {
        pin_plan_free(out);
    }
    return rc;
}

void pin_plan_free(struct pin_plan *plan)
{
    free(plan->pus);
    free(plan->places);
    memset(plan, 0, offsetof(struct pin_plan, source));
}
