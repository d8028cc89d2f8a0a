/* The plan of this process. */
#include "preload/place/plan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mapper/map.h"
#include "preload/node/foreign_load.h"
#include "preload/node/log.h"
#include "preload/node/registry.h"
#include "preload/place/places.h"
#include "profile/base/format_safe.h"
#include "profile/base/launchers.h"
#include "profile/query.h"

/* Workers of all ranks of a node; what says more is a mistake in the environment that would take
 * seconds to work out, and each rank's threads then share the PUs of the whole node. */
#define MOST_WORKERS (4u * PROFILE_MASK_PUS)

/* One request: what may be used, and what the profile says of it. */
struct planning {
    const struct pin_options *options;
    const struct pin_launcher *launcher;
    uint32_t threads;
    bool is_team, exported;
    struct pin_registry *registry;
    struct profile_mask may_use; /* as asked; `allowed`: what of that the profile knows */
    struct profile_set allowed, taken;
    char found[PATH_MAX];           /* where the look-up finds a profile */
    const char *path;               /* of the profile; NULL: there is none */
    struct servet_profile *profile; /* NULL: not read yet */
    size_t usable;                  /* PUs allowed that the profile knows */
    size_t known_workers;           /* ranks or threads that will come; 0: one by one, any number */
    struct map_node_view view;
    enum map_priority priority;
};

/* Figures of single NUMA nodes are left aside unless memory goes by them. */
static int load_profile(const struct planning *planning, struct servet_profile **out,
                        struct servet_error *error)
{
    struct servet_profile *profile;
    int code = planning->options->membind >= PIN_MEMBIND_FAST
                   ? profile_load(planning->path, &profile, error)
                   : profile_load_node(planning->path, &profile, error);
    if (code < 0) {
        return code;
    }
    code = profile_matches(profile, "", &planning->allowed, error);
    if (code < 0) {
        profile_free(profile);
        return code;
    }
    *out = profile;
    return 0;
}

static int topology_profile(const struct planning *planning, const char *why, struct pin_plan *plan,
                            struct servet_profile **out)
{
    struct servet_error error = {0};
    int code = profile_from_sysfs("", out, &error);
    if (code < 0 && planning->launcher->node_rank == 0) {
        pin_log(planning->options->verbose, "threads are not pinned: %s", error.text);
    }
    snprintf(plan->source, sizeof plan->source, "declared topology, %s", why);
    return code;
}

static void find_path(struct planning *planning)
{
    planning->path = planning->options->profile;
    if (!planning->path && profile_find(planning->found, sizeof planning->found) == 0) {
        planning->path = planning->found;
    }
}

/* The profile there, or the declared topology; what is wrong with it is said by each program. */
static int read_profile(struct planning *planning, struct pin_plan *plan)
{
    struct servet_error error = {0};
    if (!planning->path) {
        return topology_profile(planning, "no profile found", plan, &planning->profile);
    }
    if (load_profile(planning, &planning->profile, &error) == 0) {
        snprintf(plan->source, sizeof plan->source, "%.200s", planning->path);
        return 0;
    }
    if (planning->launcher->node_rank == 0) { /* else said once for all */
        pin_failure("%s; using the declared topology instead%s", error.text,
                    planning->launcher->node_ranks > 1 ? " (as all ranks of the job here)" : "");
    }
    return topology_profile(planning, "profile not usable", plan, &planning->profile);
}

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

/* Every usable PU once: those of `workers` workers as the mapper orders them, then the other free
 * ones (the mapper's answer for few workers is not always the beginning of that for many: it keeps
 * few on one kind of core), then, by number, those that other programs hold. An answer is kept.
 * `scratch` and `out` have room for planning->usable. */
static int order_once(const struct planning *planning, size_t workers, uint32_t *scratch,
                      uint32_t *out, struct servet_error *error)
{
    const size_t free_pus = planning->usable - planning->taken.count;
    const size_t asked[] = {workers < free_pus ? workers : free_pus, free_pus};
    struct profile_mask used = {0};
    size_t count = 0;
    for (size_t i = 0; i < sizeof asked / sizeof *asked && count < asked[i]; i++) {
        int code = map_order(planning, asked[i], scratch, error);
        if (code < 0) {
            return code;
        }
        count = append_new(scratch, asked[i], &used, out, count);
    }
    append_new(planning->allowed.ids, planning->allowed.count, &used, out, count);
    return 0;
}

/* `out` gets `total` PUs: the mapper's own answer where it is asked for more workers than PUs, else
 * every PU once. */
static int order_pus(const struct planning *planning, size_t workers, size_t total, uint32_t *out,
                     struct servet_error *error)
{
    if (total > planning->usable) {
        return map_order(planning, total, out, error);
    }
    uint32_t *scratch = malloc(total * sizeof *scratch);
    if (!scratch) {
        return -ENOMEM;
    }
    int code = order_once(planning, workers, scratch, out, error);
    free(scratch);
    return code;
}

/* PUs for a rank that shares its mask and may have any number of threads; 0: it has all of them. */
static size_t share_of(const struct planning *planning, uint32_t threads)
{
    const struct pin_launcher *launcher = planning->launcher;
    if (threads > 0 || !launcher->name || launcher->row->workers || launcher->sharers <= 1) {
        return 0;
    }
    const size_t share = planning->usable / launcher->sharers;
    return share > 0 ? share : 1;
}

/* Slots r, r + L, r + 2L … of the whole order; ranks share PUs where there are more of them than
 * PUs. */
static int deal_out(struct planning *planning, uint32_t threads, struct pin_plan *plan,
                    struct servet_error *error)
{
    const bool has_part = planning->launcher->name && planning->launcher->row->workers;
    const size_t share = share_of(planning, threads);
    size_t rank = has_part ? 0 : planning->launcher->local_rank,
           ranks = planning->launcher->local_size && !has_part ? planning->launcher->local_size : 1;
    size_t workers = ranks > 1 ? ranks : share ? share : threads, sure;
    /* Without a number of threads any number may come, one at a time; of a team the main thread is
     * there already. */
    sure = workers == 0 ? planning->is_team : workers;
    if (workers == 0 || (ranks == 1 && workers > planning->usable)) {
        workers = planning->usable;
    }
    planning->known_workers = sure <= 1 && ranks == 1 ? 0 : workers;
    size_t total = workers > planning->usable ? workers : planning->usable, count = 0;
    uint32_t *order = malloc(total * sizeof *order);
    if (!order) {
        return -ENOMEM;
    }
    int code = order_pus(planning, workers, total, order, error);
    for (size_t slot = 0; code == 0 && slot < sure && slot < total; slot++) {
        profile_mask_add(&plan->held, order[slot]);
    }
    for (size_t slot = rank; code == 0 && slot < total; slot += ranks) {
        order[count++] = order[slot];
    }
    if (code < 0) {
        free(order);
        return code;
    }
    plan->pus = order;
    plan->count = share && share < count ? share : count;
    return 0;
}

/* The region of this rank when each of the node's ranks has `threads` threads. */
static int take_region(const struct planning *planning, uint32_t threads, struct pin_plan *plan,
                       struct servet_error *error)
{
    size_t ranks = planning->launcher->local_size;
    uint32_t *all = malloc(ranks * threads * sizeof *all);
    if (!all) {
        return -ENOMEM;
    }
    struct map_domain_request request = {.priority = planning->priority,
                                         .ranks = ranks,
                                         .threads_each = threads,
                                         .allowed = &planning->allowed,
                                         .taken = &planning->taken};
    int code = map_domains(&planning->view.profile, &request, all, error);
    if (code < 0) {
        free(all);
        return code;
    }
    for (size_t i = 0; i < ranks * threads; i++) {
        profile_mask_add(&plan->held, all[i]);
    }
    memmove(all, all + (size_t)planning->launcher->local_rank * threads, threads * sizeof *all);
    plan->pus = all;
    plan->count = threads;
    return 0;
}

/* Where others hold every PU, those that have more company than the least: of jobs, then of their
 * main threads. None where all are alike, or where ranks divide the PUs, each of which would count
 * at another moment. */
static int find_crowded(const struct planning *planning, struct profile_set *out)
{
    struct profile_mask crowded = {0};
    unsigned least = UINT_MAX, jobs, mains;
    const struct profile_set *pus = &planning->allowed;
    for (size_t i = 0; planning->launcher->local_size <= 1 && i < pus->count; i++) {
        pin_registry_count(planning->registry, pus->ids[i], &jobs, &mains);
        least = 2 * jobs + (mains > 0) < least ? 2 * jobs + (mains > 0) : least;
    }
    for (size_t i = 0; planning->launcher->local_size <= 1 && i < pus->count; i++) {
        pin_registry_count(planning->registry, pus->ids[i], &jobs, &mains);
        if (2 * jobs + (mains > 0) > least) {
            profile_mask_add(&crowded, pus->ids[i]);
        }
    }
    return profile_mask_to_set(&crowded, out);
}

/* Leaves in `allowed` what of it is in `pus`, and in `taken` what of that others hold. */
static int restrict_to(const struct profile_set *pus, struct planning *planning)
{
    struct profile_set allowed, taken;
    int code = profile_set_intersect(&planning->allowed, pus, &allowed);
    if (code < 0) {
        return code;
    }
    code = profile_set_intersect(&planning->taken, &allowed, &taken);
    profile_set_free(&planning->allowed);
    planning->allowed = allowed;
    planning->usable = allowed.count;
    if (code < 0) {
        return code;
    }
    profile_set_free(&planning->taken);
    planning->taken = taken;
    if (taken.count == allowed.count) {
        profile_set_free(&planning->taken);
        code = find_crowded(planning, &planning->taken);
    }
    return code;
}

uint32_t pin_plan_cores(const struct profile_class *node_class, const struct profile_set *pus)
{
    uint32_t cores = 0;
    for (size_t i = 0; i < pus->count; i++) {
        const struct profile_set *core = profile_group_of(&node_class->cores, pus->ids[i]);
        size_t first = 0;
        while (core && !profile_set_has(pus, core->ids[first])) {
            first++;
        }
        cores += !core || core->ids[first] == pus->ids[i];
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
static int take_part(const struct profile_class *node_class, struct planning *planning,
                     struct servet_error *error)
{
    const uint32_t ranks = planning->launcher->local_size, rank = planning->launcher->local_rank,
                   cores = pin_plan_cores(node_class, &planning->allowed),
                   each = cores > ranks ? cores / ranks : 1;
    struct profile_mask part = {0};
    uint32_t *all = malloc((size_t)ranks * each * sizeof *all);
    if (!all) {
        return -ENOMEM;
    }
    const struct map_domain_request request = {.priority = planning->priority,
                                               .ranks = ranks,
                                               .threads_each = each,
                                               .allowed = &planning->allowed};
    int code = map_domains(&planning->view.profile, &request, all, error);
    if (code == 0 && cores >= ranks) {
        pin_plan_add_cores(node_class, all + (size_t)rank * each, each, &part);
    } else if (code == 0) {
        profile_mask_add(&part, all[rank]);
    }
    free(all);
    struct profile_set pus = {0};
    if (code == 0) {
        code = profile_mask_to_set(&part, &pus);
    }
    if (code == 0) {
        code = restrict_to(&pus, planning);
    }
    profile_set_free(&pus);
    return code;
}

/* A rank by itself is sure to use the first of the exported places, wherever it would go by now. */
static void keep_exported(const struct planning *planning, struct pin_plan *plan)
{
    const struct pin_launcher *launcher = planning->launcher;
    const size_t sure = planning->threads ? planning->threads : share_of(planning, 0) + 1;
    if (launcher->local_size > 1) {
        return;
    }
    plan->held = (struct profile_mask){0};
    for (size_t i = 0; i < plan->count && i < sure; i++) {
        profile_mask_add(&plan->held, plan->pus[i]);
    }
}

/* The order that servet-pin exported holds. Else, over other jobs, the rank begins where the fewest
 * of them have their main threads. */
static void settle_order(const struct planning *planning, struct pin_plan *plan)
{
    unsigned jobs, mains, least = UINT_MAX;
    size_t first = 0;
    if (planning->exported) {
        plan->count = pin_places_order(plan->pus, plan->count);
        keep_exported(planning, plan);
        return;
    }
    for (size_t i = 0; i < plan->count && profile_mask_has(&plan->avoid, plan->pus[0]); i++) {
        pin_registry_count(planning->registry, plan->pus[i], &jobs, &mains);
        if (mains < least) {
            least = mains;
            first = i;
        }
    }
    for (; first > 0; first--) {
        const uint32_t pu = plan->pus[0];
        memmove(plan->pus, plan->pus + 1, (plan->count - 1) * sizeof *plan->pus);
        plan->pus[plan->count - 1] = pu;
    }
}

static int place_workers(struct planning *planning, struct pin_plan *plan)
{
    struct servet_error error = {.text = "no memory"};
    const uint32_t threads = planning->threads;
    const struct profile_class *node_class = profile_class_here(planning->profile);
    const bool workers = planning->launcher->name && planning->launcher->row->workers;
    int code = restrict_to(&node_class->pus, planning);
    map_one_node(node_class, &planning->view);
    if (code == 0 && workers && planning->launcher->local_size > 1) {
        code = take_part(node_class, planning, &error);
    }
    if (code == 0) {
        bool regions = !workers && planning->launcher->local_size > 1 && threads > 1 &&
                       (uint64_t)planning->launcher->local_size * threads <= MOST_WORKERS;
        code = regions ? take_region(planning, threads, plan, &error)
                       : deal_out(planning, threads, plan, &error);
    }
    if (code < 0) {
        pin_log(planning->options->verbose, "threads are not pinned: %s", error.text);
        return code;
    }
    settle_order(planning, plan);
    plan->own = (struct profile_mask){0};
    for (size_t i = 0; i < plan->count; i++) {
        profile_mask_add(&plan->own, plan->pus[i]);
    }
    const struct pin_memory_request request = {
        .node_class = node_class, .own = &plan->own, .ranks = planning->launcher->node_ranks};
    return pin_memory_plan(planning->options->membind, &request, &plan->memory);
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
    const struct pin_launcher *launcher = planning->launcher;
    const bool ranks = launcher->node_ranks > 1;
    const uint64_t workers = (uint64_t)(planning->threads > 0 ? planning->threads : 1) *
                             (launcher->local_size ? launcher->local_size : 1);
    const pid_t process = ranks ? launcher->starter : 0;
    *out = (struct profile_mask){0};
    if (planning->is_team && !planning->options->no_watch &&
        workers < profile_mask_count(&planning->may_use) &&
        (planning->threads > 0 || launcher->name) && (!ranks || process > 0)) {
        (void)pin_foreign_load_pus(&planning->may_use, process, out);
    }
}

/* Adds `busy` to `taken`, unless that would leave nothing: on a node that is busy everywhere, the
 * PUs that others hold still tell PUs apart. */
static void add_busy(const struct planning *planning, const struct profile_mask *busy,
                     struct profile_mask *taken)
{
    struct profile_mask all = *taken;
    profile_mask_unite(&all, busy);
    if (!profile_mask_within(&planning->may_use, &all)) {
        *taken = all;
    }
}

/* In place of any plan made before. */
static int place_around(struct planning *planning, const struct profile_mask *taken,
                        struct pin_plan *plan)
{
    pin_plan_free(plan);
    profile_set_free(&planning->allowed);
    profile_set_free(&planning->taken);
    if (profile_mask_to_set(&planning->may_use, &planning->allowed) < 0 ||
        profile_mask_to_set(taken, &planning->taken) < 0) {
        pin_failure("no memory for the plan; threads are not pinned");
        return -ENOMEM;
    }
    int rc = planning->profile ? 0 : read_profile(planning, plan);
    plan->avoid = *taken;
    return rc < 0 ? rc : place_workers(planning, plan);
}

/* Takes the PUs of `pus` that are sure to be used and that no job was seen to hold. False: another
 * job has come meanwhile, and nothing is taken. */
static bool take_all(struct pin_registry *registry, struct pin_plan *plan)
{
    plan->ours = plan->held;
    profile_mask_subtract(&plan->ours, &plan->avoid);
    if (pin_registry_take_all(registry, &plan->ours, plan->pus[0], false)) {
        return true;
    }
    plan->ours = (struct profile_mask){0};
    return false;
}

/* So often another job may come between the look and the choice. */
#define MOST_TRIES 8
#define NAP_NS 250000

/* Others that choose at this moment, as ranks of a job do, take PUs and give them back again. */
static void nap(const struct planning *planning, int tries)
{
    const int longer = planning->launcher->node_ranks > 1 ? tries : 0;
    nanosleep(&(struct timespec){.tv_nsec = (long)NAP_NS << longer}, NULL);
}

/* Are fewer PUs free than the process has threads? */
static bool lacks_room(const struct planning *planning, const struct profile_mask *taken)
{
    struct profile_mask left = planning->may_use;
    profile_mask_subtract(&left, taken);
    return profile_mask_count(&left) < (planning->threads ? planning->threads : 1);
}

/* For a process by itself, and for the first rank of a job, whose look counts for all of them. */
static int place_first(struct planning *planning, struct pin_registry *registry,
                       const struct profile_mask *busy, struct pin_plan *plan)
{
    int rc = 0;
    for (int i = 0; i < MOST_TRIES; i++) {
        struct profile_mask taken;
        pin_registry_look(registry, &planning->may_use, &taken);
        if (i + 1 < MOST_TRIES && lacks_room(planning, &taken)) {
            nap(planning, i);
            continue;
        }
        add_busy(planning, busy, &taken);
        rc = place_around(planning, &taken, plan);
        if (rc < 0 || take_all(registry, plan)) {
            break;
        }
        nap(planning, i);
    }
    return rc;
}

/* A rank also holds its own PUs, of which the first rank of its job holds all: that may end
 * earlier. */
static void take_own(struct pin_registry *registry, struct pin_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (profile_mask_has(&plan->held, plan->pus[i])) {
            profile_mask_add(&plan->ours, plan->pus[i]);
        }
    }
    (void)pin_registry_take_all(registry, &plan->ours, plan->pus[0], true);
}

static int place_among_others(struct planning *planning, struct pin_registry *registry,
                              struct pin_plan *plan)
{
    struct profile_mask busy = {0}, taken = {0};
    const bool together = planning->launcher->job != 0 && planning->launcher->node_ranks > 1;
    if (planning->launcher->local_size > 1 && !registry->on) {
        return place_around(planning, &taken, plan);
    }
    if (together && !pin_registry_lead(registry, &planning->may_use, &taken)) {
        int rc = place_around(planning, &taken, plan);
        if (rc == 0) {
            take_own(registry, plan);
        }
        return rc;
    }
    find_busy(planning, &busy);
    int rc = place_first(planning, registry, &busy, plan);
    if (together) {
        pin_registry_publish(registry, &plan->avoid);
    }
    return rc;
}

bool pin_plan_meets_unseen(const struct pin_options *options, const struct pin_registry *registry,
                           const struct profile_mask *allowed)
{
    return registry->alone && !options->force &&
           profile_mask_count(allowed) >= (size_t)sysconf(_SC_NPROCESSORS_ONLN);
}

int pin_plan_make(const struct pin_plan_request *request, struct pin_registry *registry,
                  struct pin_plan *out)
{
    struct planning planning = {.options = request->options,
                                .launcher = request->launcher,
                                .threads = request->threads,
                                .is_team = request->is_team,
                                .exported = request->exported,
                                .registry = registry,
                                .may_use = *request->allowed,
                                .priority = priority_of(request->options, request->launcher)};
    struct pin_plan plan = {0};
    if (pin_plan_meets_unseen(request->options, registry, request->allowed)) {
        return -EXDEV;
    }
    find_path(&planning);
    int rc = place_among_others(&planning, registry, &plan);
    profile_free(planning.profile);
    profile_set_free(&planning.allowed);
    profile_set_free(&planning.taken);
    if (rc == 0) {
        *out = plan;
    } else {
        pin_plan_free(&plan);
    }
    return rc;
}

bool pin_plan_lacks_tier(const struct pin_options *options, const struct pin_launcher *launcher)
{
    struct pin_launcher quiet = *launcher;
    quiet.node_rank = 1; /* what the profile lacks is said when the plan is made */
    struct planning planning = {.options = options, .launcher = &quiet};
    struct pin_plan plan = {0};
    find_path(&planning);
    if (read_profile(&planning, &plan) < 0) {
        return false;
    }
    const struct profile_mask nowhere = {0};
    const struct pin_memory_request request = {.node_class = profile_class_here(planning.profile),
                                               .own = &nowhere};
    int rc = pin_memory_decide(options->membind, &request, &plan.memory);
    profile_free(planning.profile);
    return rc == 0 && plan.memory.no_tier;
}

void pin_plan_free(struct pin_plan *plan)
{
    free(plan->pus);
    plan->pus = NULL;
    plan->count = 0;
    plan->held = plan->avoid = plan->ours = plan->own = (struct profile_mask){0};
    plan->memory = (struct pin_memory){0};
}
