/* The devices of a rank: all ranks of a node compute the same answer from the same profile, as they
 * do for PUs, and each takes its part. */
#include "preload/command/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mapper/devices/devices.h"
#include "preload/place/plan.h"
#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/base/mask.h"
#include "profile/query.h"

/* The variable that says which devices a process has, and those that say it otherwise: of GPUs by
 * their vendor, of cards by the beginning of their names. Slingshot's interface hsi0 is the device
 * cxi0; UCX has ports, and ours have one each. */
static const struct runtime {
    enum profile_device_kind kind;
    uint32_t vendor;
    const char *variable;
    const char *others[2];
    const char *name, *device, *port; /* of cards */
} runtimes[] = {
    {PROFILE_GPU, PROFILE_PCI_NVIDIA, "CUDA_VISIBLE_DEVICES", {NULL}, "", "", ""},
    {PROFILE_GPU,
     PROFILE_PCI_AMD,
     "ROCR_VISIBLE_DEVICES",
     {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
     "",
     "",
     ""},
    {PROFILE_GPU, PROFILE_PCI_INTEL, "ZE_AFFINITY_MASK", {"ONEAPI_DEVICE_SELECTOR"}, "", "", ""},
    {PROFILE_NIC, 0, "FI_CXI_DEVICE_NAME", {NULL}, "hsi", "cxi", ""},
    {PROFILE_NIC, 0, "FI_EFA_IFACE", {NULL}, "rdmap", "rdmap", ""},
    {PROFILE_NIC, 0, "UCX_NET_DEVICES", {NULL}, "", "", ":1"},
};
#define RUNTIMES (sizeof runtimes / sizeof *runtimes)

struct choice {
    const struct pin_device_wish *wish;
    struct pin_launcher *launcher;
    struct servet_profile *profile;
    const struct profile_class *node_class;
    struct map_node_view view;
    struct profile_set allowed; /* PUs that the ranks may use */
    uint32_t ranks, rank;
    uint32_t *pus; /* of all ranks */
    uint32_t threads;
    struct map_devices devices;
};

/* An empty list of devices hides them all: it is a choice too. */
static bool is_set(const char *name)
{
    return name && getenv(name);
}

static void set_default(const char *name, const char *value)
{
    if (*value && !is_set(name) && setenv(name, value, 1) < 0) {
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
    snprintf(path, sizeof path, "%s", options->profile);
    if ((*path || profile_find(path, sizeof path) == 0) &&
        profile_load(path, &c->profile, &error) == 0 &&
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
static const struct runtime *runtime_of(const struct profile_device *device)
{
    const bool gpu = device->kind == PROFILE_GPU;
    for (size_t i = 0; i < RUNTIMES; i++) {
        const struct runtime *runtime = &runtimes[i];
        if (runtime->kind == device->kind &&
            (gpu ? runtime->vendor == device->pci_vendor
                 : device->fabric &&
                       strncmp(device->name, runtime->name, strlen(runtime->name)) == 0)) {
            return runtime;
        }
    }
    return NULL;
}

static bool are_given(const struct runtime *runtime)
{
    bool given = is_set(runtime->variable);
    for (size_t i = 0; i < sizeof runtime->others / sizeof *runtime->others; i++) {
        given = given || is_set(runtime->others[i]);
    }
    return given;
}

/* Has the user or the batch system said which of this node's GPUs the rank has? */
static bool gpus_are_given(const struct choice *c)
{
    for (size_t i = 0; i < c->node_class->device_count; i++) {
        const struct profile_device *device = &c->node_class->devices[i];
        const struct runtime *runtime = runtime_of(device);
        if (device->kind == PROFILE_GPU && runtime && are_given(runtime)) {
            return true;
        }
    }
    return false;
}

/* -- the choice -- */

static void choose_for_threads(struct choice *c, uint32_t threads)
{
    struct servet_error error;
    struct map_device_request request = {
        .ranks = {.ranks = c->ranks, .threads_each = threads, .allowed = &c->allowed},
        .gpus = c->wish->gpus,
        .exclusive = c->wish->exclusive,
        .nics = c->wish->nics};
    map_devices_free(&c->devices);
    free(c->pus);
    c->threads = threads;
    c->pus = calloc((size_t)c->ranks * threads, sizeof *c->pus);
    int rc =
        c->pus ? map_devices(&c->view.profile, &request, c->pus, &c->devices, &error) : -ENOMEM;
    if (rc == -EINVAL) {
        refuse_choice(c, error.text);
    }
    if (rc < 0) {
        cli_fail("out of memory");
    }
}

static size_t count_far(const struct choice *c)
{
    size_t far = 0;
    for (size_t i = 0; i < c->devices.count; i++) {
        far += c->devices.held[i].far;
    }
    return far;
}

static uint32_t count_cores(const struct choice *c)
{
    uint32_t cores = 0;
    for (size_t i = 0; i < c->allowed.count; i++) {
        const struct profile_set *core = profile_group_of(&c->node_class->cores, c->allowed.ids[i]);
        size_t first = 0;
        while (core && !profile_set_has(&c->allowed, core->ids[first])) {
            first++;
        }
        cores += !core || core->ids[first] == c->allowed.ids[i];
    }
    return cores;
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
    for (threads = count_cores(c) / c->ranks; threads > 1; threads -= (threads + 7) / 8) {
        choose_for_threads(c, threads);
        if (count_far(c) <= least) {
            return;
        }
    }
    choose_for_threads(c, 1);
}

/* The mask of this rank is its own from here on. */
static void mark(const struct choice *c, const struct pin_options *options)
{
    pin_launcher_mark_own(c->launcher);
    pin_launcher_read(options->rebind, c->launcher);
}

/* The rank's PUs become its own: SERVET_BESIDE says so to the library. */
static void narrow(const struct choice *c, const struct pin_options *options)
{
    struct profile_mask mask = {0};
    for (uint32_t t = 0; t < c->threads; t++) {
        profile_mask_add(&mask, c->pus[(size_t)c->rank * c->threads + t]);
    }
    if (profile_mask_set(0, &mask) == 0) {
        mark(c, options);
    }
}

/* -- the variables -- */

/* As the runtime takes it: of a GPU the UUID; of a tile "0.1", unless tiles are counted flat; else
 * the number. */
static void print(FILE *out, const struct runtime *runtime, const struct profile_device *device)
{
    const char *hierarchy = getenv("ZE_FLAT_DEVICE_HIERARCHY");
    bool intel = strncmp(device->name, "ze", 2) == 0;
    bool tile = intel && (!hierarchy || strcmp(hierarchy, "COMPOSITE") == 0);
    if (runtime->kind == PROFILE_NIC) {
        fprintf(out, "%s%s%s", runtime->device, device->name + strlen(runtime->name),
                runtime->port);
    } else if (device->uuid && !intel) {
        fputs(device->uuid, out);
    } else if (tile) {
        fputs(device->name + 2, out);
    } else {
        fprintf(out, "%u", device->number);
    }
}

/* The rank's devices for one variable, or "": separated by commas. */
static char *list(const struct choice *c, const struct runtime *runtime)
{
    char *text = NULL;
    size_t size, count = 0;
    FILE *out = profile_stream_open(&text, &size);
    for (size_t i = c->devices.first[c->rank]; out && i < c->devices.first[c->rank + 1]; i++) {
        const struct profile_device *device = c->devices.held[i].device;
        if (runtime_of(device) == runtime &&
            (device->kind == PROFILE_NIC || device->uuid || device->number != PROFILE_NOT_SAID)) {
            fputs(count++ ? "," : "", out);
            print(out, runtime, device);
        }
    }
    if (!out || fclose(out) != 0) {
        cli_fail("out of memory");
    }
    return text;
}

static void set_variables(const struct choice *c)
{
    for (const struct runtime *runtime = runtimes; runtime < runtimes + RUNTIMES; runtime++) {
        if (runtime->kind == PROFILE_GPU ? !c->wish->gpus : !c->wish->nics) {
            continue;
        }
        char *text = list(c, runtime);
        if (!are_given(runtime)) {
            set_default(runtime->variable, text);
        }
        if (*text && strcmp(runtime->name, "hsi") == 0) {
            set_default("MPICH_OFI_NIC_POLICY", "NUMA");
        }
        free(text);
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
    free(c->pus);
    profile_set_free(&c->allowed);
    profile_free(c->profile);
}

void pin_devices_apply(const struct pin_device_wish *wish, const struct pin_options *options,
                       struct pin_launcher *launcher)
{
    struct choice c = {.wish = wish, .launcher = launcher, .ranks = 1};
    struct pin_device_wish cards = {.nics = wish->nics};
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
    bool bound = own.name && (own.binding == PIN_USERS_CHOICE || own.local_size == 1);
    bool given = wish->gpus && gpus_are_given(&c);
    if (given) {
        c.wish = &cards;
        bound = true;
    }
    if (own.name) {
        c.ranks = bound ? own.node_ranks : own.local_size;
        c.rank = bound ? own.node_rank : own.local_rank;
    }
    int rc = bound && !given ? profile_set_copy(&c.node_class->pus, &c.allowed)
                             : profile_mask_to_set(&allowed, &c.allowed);
    if (rc < 0) {
        cli_fail("out of memory");
    }
    if (c.wish->gpus || c.wish->nics) {
        choose_devices(&c);
        bool users = pin_users_places_set() && !options->force;
        if (own.name && !bound && c.wish->gpus && !users) {
            narrow(&c, options);
        }
        if (!bound || are_near(&c, &start)) {
            set_variables(&c);
        }
    }
    if (given && own.binding == PIN_LAUNCHERS_CHOICE) {
        mark(&c, options);
    }
    free_choice(&c);
}
