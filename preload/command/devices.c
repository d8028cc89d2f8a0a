/* The devices of a rank: all ranks of a node compute the same answer from the same profile, as they
 * do for PUs, and each takes its part. */
#include "preload/command/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mapper/devices/devices.h"
#include "preload/place/places.h"
#include "preload/place/plan.h"
#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/base/launchers.h"
#include "profile/base/mask.h"
#include "profile/scope.h"
#include "profile/topology/gpu_makers.h"

/* Cards, by the beginning of their names, and the variable that says which a process has.
 * Slingshot's interface hsi0 is the device cxi0; UCX has ports, and ours have one each. */
static const struct card {
    const char *variable, *name, *device, *port;
} card_kinds[] = {
    {"FI_CXI_DEVICE_NAME", "hsi", "cxi", ""},
    {"FI_EFA_IFACE", "rdmap", "rdmap", ""},
    {"UCX_NET_DEVICES", "", "", ":1"},
};
#define CARDS (sizeof card_kinds / sizeof *card_kinds)

struct choice {
    struct pin_device_wish wish;
    struct pin_launcher *launcher;
    struct servet_profile *profile;
    const struct profile_class *node_class;
    struct profile_class of_job; /* the same with the GPUs of the job alone */
    struct map_node_view view;
    struct profile_set allowed; /* PUs that the ranks may use */
    uint32_t ranks, rank;
    uint32_t *pus; /* of all ranks */
    uint32_t threads;
    struct map_devices devices;
    struct pin_given given; /* own.count > 0: the ranks asked for are its parts */
    bool mistaken;          /* what was said of GPUs or ranks cannot be */
};

/* An empty list of devices hides them all: it is a choice too. */
static bool is_chosen(const char *name)
{
    return name && getenv(name);
}

static void set_default(const char *name, const char *value)
{
    if (*value && !is_chosen(name) && setenv(name, value, 1) < 0) {
        cli_fail("cannot set %s: %s", name, strerror(errno));
    }
}

/* One rank of each node speaks. */
static void refuse_choice(const struct choice *c, const char *text)
{
    if (c->launcher->node_rank > 0) {
        _exit(CLI_USAGE);
    }
    cli_usage("%s", text);
}

/* -- what there is -- */

/* A profile of before has no devices: the topology has. */
static void read_profile(struct choice *c, const struct pin_options *options)
{
    struct servet_error error;
    char path[PATH_MAX];
    const char *file = options->profile;
    if (!file && profile_find(path, sizeof path) == 0) {
        file = path;
    }
    if (file && profile_load(file, &c->profile, &error) == 0 &&
        profile_matches(c->profile, "", NULL, &error) == 0) {
        c->node_class = profile_class_here(c->profile);
    }
    if (c->node_class && c->node_class->device_count) {
        return;
    }
    profile_free(c->profile);
    if (profile_from_hwloc(NULL, &c->profile, &error) < 0) {
        cli_fail("%s", error.text);
    }
    c->node_class = &c->profile->classes[0];
}

/* NULL: no variable is for it. */
static const struct card *card_of(const struct profile_device *device)
{
    for (const struct card *card = card_kinds; card < card_kinds + CARDS; card++) {
        if (device->kind == PROFILE_NIC && device->fabric &&
            strncmp(device->name, card->name, strlen(card->name)) == 0) {
            return card;
        }
    }
    return NULL;
}

/* Has a variable said which GPUs of this maker the process has? */
static bool are_given(const struct profile_gpu_maker *maker)
{
    bool given = is_chosen(maker->selector);
    for (size_t i = 0; i < PROFILE_GPU_LISTS * 3; i++) {
        given = given || is_chosen(maker->lists[i / 3][i % 3]);
    }
    return given;
}

/* Has the user or the batch system said which of this node's GPUs the rank has, or does a rank of
 * its launcher take them? */
static bool gpus_are_given(const struct choice *c)
{
    const bool takes = c->launcher->name && c->launcher->row->takes;
    for (size_t i = 0; i < c->node_class->device_count; i++) {
        const struct profile_device *device = &c->node_class->devices[i];
        const struct profile_gpu_maker *maker = profile_gpu_maker(device->pci_vendor);
        if (device->kind == PROFILE_GPU && (takes || (maker && are_given(maker)))) {
            return true;
        }
    }
    return getenv("SLURM_STEP_GPUS") || getenv("SLURM_JOB_GPUS");
}

/* -- the choice -- */

static void choose_for_threads(struct choice *c, uint32_t threads)
{
    struct servet_error error;
    struct map_device_request request = {
        .ranks = {.workers = c->ranks, .threads_each = threads, .allowed = &c->allowed},
        .gpus = c->wish.gpus,
        .exclusive = c->wish.exclusive,
        .nics = c->wish.nics};
    map_devices_free(&c->devices);
    free(c->pus);
    c->threads = threads;
    c->pus = cli_needed(calloc((size_t)c->ranks * threads, sizeof *c->pus));
    int rc = map_devices(&c->view.profile, &request, c->pus, &c->devices, &error);
    if (rc == -EINVAL) {
        refuse_choice(c, error.text);
    }
    cli_done(rc);
}

static size_t count_far(const struct choice *c)
{
    size_t far = 0;
    for (size_t i = 0; i < c->devices.count; i++) {
        far += c->devices.held[i].far;
    }
    return far;
}

/* With OMP_NUM_THREADS regions of as many PUs; without, the largest that take no more ranks away
 * from their devices than single PUs do. */
static void choose_devices(struct choice *c)
{
    uint32_t threads = pin_plan_threads();
    if (threads) {
        choose_for_threads(c, threads);
        return;
    }
    choose_for_threads(c, 1);
    const size_t least = count_far(c);
    for (threads = pin_plan_cores(c->node_class, &c->allowed) / c->ranks; threads > 1;
         threads -= (threads + 7) / 8) {
        choose_for_threads(c, threads);
        if (count_far(c) <= least) {
            return;
        }
    }
    choose_for_threads(c, 1);
}

/* -- GPUs that were given -- */

/* Leaves of the node's GPUs those of the job. */
static void keep_jobs(struct choice *c)
{
    struct profile_class *out = &c->of_job;
    *out = *c->node_class;
    out->device_count = 0;
    out->devices = cli_needed(calloc(c->node_class->device_count, sizeof *out->devices));
    for (size_t i = 0; i < c->node_class->device_count; i++) {
        const struct profile_device *device = &c->node_class->devices[i];
        bool keep = device->kind != PROFILE_GPU;
        for (size_t k = 0; k < c->given.job.count; k++) {
            keep = keep || device == c->given.job.list[k];
        }
        if (keep) {
            out->devices[out->device_count++] = *device;
        }
    }
}

/* The cores near each of the job's GPUs for each of its parts, where fewest are. */
static uint32_t near_cores(const struct choice *c)
{
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < c->given.job.count; i++) {
        const struct profile_set *pus = &c->given.job.list[i]->pus;
        FREED_BY(profile_set_free) struct profile_set near = {0};
        size_t beside = 0;
        for (size_t k = 0; k < c->given.job.count; k++) {
            beside += profile_set_equal(pus, &c->given.job.list[k]->pus);
        }
        cli_done(profile_set_intersect(pus, &c->allowed, &near));
        const uint32_t each =
            pin_plan_cores(c->node_class, &near) / (uint32_t)(beside * c->given.shares);
        least = near.count && each < least ? each : least;
    }
    return least == UINT32_MAX || least == 0 ? 1 : least;
}

/* A rank that has more threads than its parts have PUs, of a job that leaves GPUs, takes room of
 * these, if the ranks seem to have the first ones. */
static void leave_gpus(struct choice *c, uint32_t threads)
{
    struct pin_given *given = &c->given;
    const size_t used = given->own.count * c->launcher->node_ranks,
                 first = given->own.count * c->launcher->node_rank;
    if (given->shares > 1 || used >= given->job.count ||
        (size_t)threads * given->job.count <= c->allowed.count) {
        return;
    }
    for (size_t i = 0; i < given->own.count; i++) {
        if (given->own.list[i] != given->job.list[first + i]) {
            return;
        }
    }
    given->job.count = used;
}

/* PUs for a part: those of OMP_NUM_THREADS, else all that are near; of a worker at least all these:
 * torchrun sets OMP_NUM_THREADS=1 by itself, and it starts processes, too. */
static void choose_parts(struct choice *c)
{
    const uint32_t asked = pin_plan_threads(), own = (uint32_t)c->given.own.count,
                   threads = (asked + own - 1) / own;
    leave_gpus(c, threads);
    keep_jobs(c);
    map_one_node(&c->of_job, &c->view);
    c->wish.gpus = MAP_ALL_GPUS;
    c->wish.exclusive = false;
    c->ranks = (uint32_t)(c->given.job.count * c->given.shares);
    const size_t most = c->allowed.count / c->ranks ? c->allowed.count / c->ranks : 1;
    uint32_t wants = asked && !c->launcher->row->workers ? threads : near_cores(c);
    wants = wants < threads ? threads : wants;
    choose_for_threads(c, wants < most ? wants : (uint32_t)most);
}

/* The part of the job's ranks that is this rank's of a GPU; SIZE_MAX: there is none. */
static size_t part_of(const struct choice *c, const struct profile_device *gpu)
{
    size_t share = 0;
    for (size_t rank = 0; rank < c->ranks; rank++) {
        for (size_t i = c->devices.first[rank]; i < c->devices.first[rank + 1]; i++) {
            const struct profile_device *device = c->devices.held[i].device;
            if (device->kind == PROFILE_GPU && strcmp(device->name, gpu->name) == 0 &&
                share++ == c->given.share) {
                return rank;
            }
        }
    }
    return SIZE_MAX;
}

static void print_near(FILE *out, const struct profile_device *device)
{
    FREED char *pus = profile_set_text(&device->pus);
    if (pus && device->kind == PROFILE_GPU) {
        fprintf(out, "%s=%s ", device->name, pus);
    }
}

/* The mask of this rank is its own from here on, and it has these GPUs. */
static void mark(const struct choice *c, const struct pin_options *options)
{
    FREED char *text = NULL;
    size_t size;
    FILE *out = cli_needed(profile_stream_open(&text, &size));
    for (size_t i = 0; i < c->given.own.count; i++) {
        print_near(out, c->given.own.list[i]);
    }
    const bool are_held = !c->given.own.count && c->devices.first;
    for (size_t i = are_held ? c->devices.first[c->rank] : 0;
         are_held && i < c->devices.first[c->rank + 1]; i++) {
        print_near(out, c->devices.held[i].device);
    }
    cli_done(fclose(out));
    pin_launcher_mark_own(c->launcher, text);
    pin_launcher_read(options->rebind, c->launcher);
}

/* A worker has whole cores, as it has without GPUs. */
static void add_pus(const struct choice *c, size_t rank, struct profile_mask *out)
{
    const uint32_t *pus = c->pus + rank * c->threads;
    if (c->launcher->row->workers &&
        (size_t)c->ranks * c->threads <= pin_plan_cores(c->node_class, &c->allowed)) {
        pin_plan_add_cores(c->node_class, pus, c->threads, out);
        return;
    }
    for (uint32_t t = 0; t < c->threads; t++) {
        profile_mask_add(out, pus[t]);
    }
}

/* The rank's PUs become its own: SERVET_BESIDE says so to the library. */
static void narrow(const struct choice *c, const struct pin_options *options)
{
    struct profile_mask mask = {0};
    for (size_t i = 0; i < c->given.own.count; i++) {
        const size_t part = part_of(c, c->given.own.list[i]);
        if (part != SIZE_MAX) {
            add_pus(c, part, &mask);
        }
    }
    if (!c->given.own.count) {
        add_pus(c, c->rank, &mask);
    }
    if (!profile_mask_empty(&mask) && profile_mask_set(0, &mask) == 0) {
        mark(c, options);
    }
}

/* -- the variables -- */

/* As the runtime takes it: the UUID; of a tile "0.1", unless tiles are counted flat; else the
 * number. */
static void print_gpu_name(FILE *out, const struct profile_device *device)
{
    const char *hierarchy = getenv("ZE_FLAT_DEVICE_HIERARCHY");
    bool intel = strncmp(device->name, "ze", 2) == 0;
    bool tile = intel && (!hierarchy || strcmp(hierarchy, "COMPOSITE") == 0);
    if (device->uuid && !intel) {
        fputs(device->uuid, out);
    } else if (tile) {
        fputs(device->name + 2, out);
    } else {
        fprintf(out, "%u", device->number);
    }
}

/* The rank's devices for one variable, or "": separated by commas. One of the two is NULL. */
static char *list(const struct choice *c, const struct profile_gpu_maker *maker,
                  const struct card *card)
{
    char *text = NULL;
    size_t size, count = 0;
    FILE *out = cli_needed(profile_stream_open(&text, &size));
    for (size_t i = c->devices.first[c->rank]; i < c->devices.first[c->rank + 1]; i++) {
        const struct profile_device *device = c->devices.held[i].device;
        const char *comma = count ? "," : "";
        if (card && card_of(device) == card) {
            fprintf(out, "%s%s%s%s", comma, card->device, device->name + strlen(card->name),
                    card->port);
            count++;
        } else if (maker && device->kind == PROFILE_GPU && device->pci_vendor == maker->vendor &&
                   (device->uuid || device->number != PROFILE_NOT_SAID)) {
            fputs(comma, out);
            print_gpu_name(out, device);
            count++;
        }
    }
    cli_done(fclose(out));
    return text;
}

static void set_variables(const struct choice *c)
{
    for (size_t i = 0; c->wish.gpus && i < PROFILE_GPU_MAKERS; i++) {
        const struct profile_gpu_maker *maker = &profile_gpu_makers[i];
        FREED char *text = list(c, maker, NULL);
        if (!are_given(maker)) {
            set_default(maker->lists[0][0], text);
        }
    }
    for (const struct card *card = card_kinds; c->wish.nics && card < card_kinds + CARDS; card++) {
        FREED char *text = list(c, NULL, card);
        set_default(card->variable, text);
        if (*text && strcmp(card->name, "hsi") == 0) {
            set_default("MPICH_OFI_NIC_POLICY", "NUMA");
        }
    }
}

/* Cards of the rank that no variable is for, said by one rank of each node. */
static void say_nameless_cards(const struct choice *c)
{
    for (size_t i = c->devices.first[c->rank]; i < c->devices.first[c->rank + 1]; i++) {
        const struct profile_device *device = c->devices.held[i].device;
        if (c->wish.nics && c->launcher->node_rank == 0 && device->kind == PROFILE_NIC &&
            !card_of(device)) {
            cli_note("--nics: %s: no variable is known for cards of its kind, none is set",
                     device->name);
        }
    }
}

/* -- the whole -- */

/* Ranks that the user has bound lie where they lie: their devices are those that as many ranks on
 * the whole node would have, if these are near; else nothing is said of them. */
static bool are_near(const struct choice *c, const struct profile_mask *start)
{
    bool near = false;
    for (size_t i = c->devices.first[c->rank]; i < c->devices.first[c->rank + 1]; i++) {
        const struct profile_set *pus = &c->devices.held[i].device->pus;
        for (size_t p = 0; p < pus->count; p++) {
            near = near || profile_mask_has(start, pus->ids[p]);
        }
    }
    return near;
}

static void free_choice(struct choice *c)
{
    map_devices_free(&c->devices);
    pin_given_free(&c->given);
    free(c->pus);
    free(c->of_job.devices);
    profile_set_free(&c->allowed);
    profile_free(c->profile);
}

/* Reads from the variables this rank's GPUs, or takes its local rank where its launcher means that;
 * after a mistake, which is reported, GPUs play no part. False: they are not known. */
static bool read_given(struct choice *c)
{
    struct servet_error error;
    if (pin_given_read(c->node_class, "", c->launcher, &c->given, &error) < 0) {
        cli_note("%s; placed as without GPUs", error.text);
        c->mistaken = true;
    }
    return c->given.own.count;
}

/* The rank goes beside the GPUs that it has; cards are those nearest to it. */
static void go_beside(struct choice *c, const struct profile_mask *allowed,
                      const struct pin_options *options)
{
    cli_done(profile_mask_to_set(allowed, &c->allowed));
    if (c->wish.exclusive && c->given.shares > 1) {
        char text[128];
        snprintf(text, sizeof text,
                 "--gpus=exclusive: expected at most %zu ranks, one for each GPU, got %u",
                 c->given.job.count, c->launcher->node_ranks);
        refuse_choice(c, text);
    }
    choose_parts(c);
    narrow(c, options);
    const size_t part = part_of(c, c->given.own.list[0]);
    if (part != SIZE_MAX) {
        c->rank = (uint32_t)part;
        c->wish.gpus = 0;
        set_variables(c);
    }
}

/* GPUs were given to a process that no launcher has started, or that has a mask of its own. */
static const struct profile_launcher by_itself = {.name = "one process"};

void pin_devices_apply(const struct pin_device_wish *wish, const struct pin_options *options,
                       struct pin_launcher *launcher)
{
    FREED_BY(free_choice) struct choice c = {.wish = *wish, .launcher = launcher, .ranks = 1};
    struct profile_mask start, allowed;
    if ((!wish->gpus && !wish->nics) || profile_mask_get(0, &start) < 0) {
        return;
    }
    read_profile(&c, options);
    map_one_node(c.node_class, &c.view);
    allowed = start;
    struct pin_launcher own = *launcher;
    if (own.name) {
        pin_launcher_allowed(&own, &start, &allowed);
    }
    const bool users = pin_users_places() && !options->force;
    bool bound = own.name && own.local_size == 1;
    c.mistaken = own.name && own.contradicts;
    bool given = wish->gpus && (c.mistaken || gpus_are_given(&c));
    if (given && (!own.name || (own.mask_of == PIN_MASK_OF_RANK && own.sharers == 1))) {
        own = (struct pin_launcher){
            .name = by_itself.name, .row = &by_itself, .local_size = 1, .node_ranks = 1};
        c.launcher = &own;
    }
    if (given && !c.mistaken && read_given(&c) && own.mask_of <= PIN_MASK_BY_LAUNCHER && !users) {
        go_beside(&c, &allowed, options);
        return;
    }
    if (given) {
        c.wish = (struct pin_device_wish){.nics = wish->nics};
        bound = true;
    }
    if (own.name) {
        c.ranks = bound ? own.node_ranks : own.local_size;
        c.rank = bound ? own.node_rank : own.local_rank;
    }
    cli_done(bound && !given ? profile_set_copy(&c.node_class->pus, &c.allowed)
                             : profile_mask_to_set(&allowed, &c.allowed));
    if (c.wish.gpus || c.wish.nics) {
        choose_devices(&c);
        if (own.name && !bound && c.wish.gpus && !users) {
            narrow(&c, options);
        }
        if (!bound || are_near(&c, &start)) {
            set_variables(&c);
            say_nameless_cards(&c);
        }
    }
    if (given && !c.mistaken && own.mask_of == PIN_MASK_BY_LAUNCHER) {
        mark(&c, options);
    }
}
