/* GPUs that were given.
 *
 * A runtime counts the GPUs that this process may open: a batch system gives task 3 its GPU as
 * number 0 of a device cgroup. Lists of variables are one behind the other: HIP's numbers are those
 * of ROCR's list ("GPU isolation techniques" of the ROCm documentation). An entry is a number, the
 * beginning of a UUID (CUDA C++ Programming Guide, "CUDA Environment Variables"), or a tile
 * (ZE_AFFINITY_MASK in the specification of Level Zero).
 *
 * No rank sees the variables of the others, and each has to find PUs of its own. So GPUs have the
 * PUs: every GPU of the job gets so many equal parts as ranks may have it, and a rank takes the
 * parts of its GPUs. Which of a GPU's ranks it is, its local rank tells: ranks are dealt out in
 * blocks or in turn. */
#include "preload/command/devices.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/base/launchers.h"
#include "profile/scope.h"
#include "profile/topology/gpu_makers.h"

/* They hold the node's numbers, not the cgroup's. */
static const char *const step_lists[] = {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"};

/* -- those that may be opened -- */

/* access(2) asks the device cgroup as open(2) does, and wakes no device. */
static bool nvidia_opens(const char *root, const char *bus_id)
{
    char path[PATH_MAX], text[2048];
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus", root);
    if (access(path, F_OK) < 0) {
        return true;
    }
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%s/information", root, bus_id);
    const char *minor =
        profile_read_small(path, text, sizeof text) ? strstr(text, "Device Minor:") : NULL;
    if (!minor) {
        return false; /* a container shows its own GPUs alone */
    }
    snprintf(path, sizeof path, "%s/dev/nvidia%d", root,
             atoi(minor + strcspn(minor, "0123456789")));
    return access(path, R_OK | W_OK) == 0;
}

/* AMD's and Intel's, by the render nodes of the device; one that has none counts. */
static bool renders(const char *root, const char *bus_id)
{
    char path[PATH_MAX];
    struct dirent *entry;
    bool any = false, opens = false;
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/drm", root, bus_id);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        if (strncmp(entry->d_name, "renderD", 7) == 0) {
            snprintf(path, sizeof path, "%s/dev/dri/%s", root, entry->d_name);
            any = true;
            opens = opens || access(path, R_OK | W_OK) == 0;
        }
    }
    if (folder) {
        closedir(folder);
    }
    return opens || !any;
}

static bool may_be_opened(const char *root, const struct profile_device *device)
{
    if (!device->bus_id) {
        return true;
    }
    return device->pci_vendor == PROFILE_PCI_NVIDIA ? nvidia_opens(root, device->bus_id)
                                                    : renders(root, device->bus_id);
}

static int by_bus(const void *a, const void *b)
{
    const struct profile_device *x = *(const struct profile_device *const *)a,
                                *y = *(const struct profile_device *const *)b;
    int order = strcmp(x->bus_id ? x->bus_id : "", y->bus_id ? y->bus_id : "");
    return order ? order : (x > y) - (x < y);
}

/* CUDA counts by bus where CUDA_DEVICE_ORDER=PCI_BUS_ID; else the fastest comes first and only CUDA
 * orders those of several models: a profile has its numbers where hwloc could ask it (CUDA
 * Programming Guide, "CUDA Environment Variables"). */
static void order_as_cuda(struct pin_gpus *gpus)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    if (order && strcmp(order, "PCI_BUS_ID") == 0) {
        qsort(gpus->list, gpus->count, sizeof *gpus->list, by_bus);
        return;
    }
    for (size_t i = 0; i < gpus->count; i++) {
        gpus->uncounted |= gpus->list[i]->pci_device != gpus->list[0]->pci_device &&
                           strncmp(gpus->list[i]->name, "cuda", 4) != 0;
    }
}

/* In the order of the runtime, as the class has them. `root` NULL: all. */
static void find_gpus(const struct profile_class *of, uint32_t vendor, const char *root,
                      struct pin_gpus *out)
{
    out->count = 0;
    for (size_t i = 0; i < of->device_count; i++) {
        const struct profile_device *device = &of->devices[i];
        if (device->kind == PROFILE_GPU && device->pci_vendor == vendor &&
            (!root || may_be_opened(root, device))) {
            out->list[out->count++] = device;
        }
    }
    out->uncounted = false;
    if (vendor == PROFILE_PCI_NVIDIA) {
        order_as_cuda(out);
    }
}

/* -- lists -- */

/* "1" of a tile that is called ze1.0, or "1.0". */
static bool names_tile(const struct profile_device *device, const char *entry)
{
    const size_t length = strlen(entry);
    return strncmp(device->name, "ze", 2) == 0 && strchr(device->name, '.') &&
           strncmp(device->name + 2, entry, length) == 0 &&
           (device->name[2 + length] == '.' || !device->name[2 + length]);
}

/* Adds what the entry means. False: nothing. */
static bool add_given(const struct pin_gpus *from, const char *entry, struct pin_gpus *out)
{
    const size_t before = out->count, length = strlen(entry);
    const bool number = *entry && strspn(entry, "0123456789") == length;
    bool tiles = false;
    for (size_t i = 0; i < from->count; i++) {
        const struct profile_device *device = from->list[i];
        tiles = tiles || names_tile(device, entry);
        if (names_tile(device, entry) ||
            (!number && *entry && device->uuid && strncasecmp(device->uuid, entry, length) == 0)) {
            out->list[out->count++] = device;
            if (!tiles) {
                break; /* a beginning that is not unique means the first */
            }
        }
    }
    if (number && !tiles && !from->uncounted && strtoul(entry, NULL, 10) < from->count) {
        out->list[out->count++] = from->list[strtoul(entry, NULL, 10)];
    }
    return out->count > before;
}

/* Words by which all are hidden. */
static bool hides_all(const char *text)
{
    static const char *const words[] = {"", "-1", "NoDevFiles", "none", "void"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Leaves in `gpus` what the variable names. */
static int apply_list(const char *name, struct pin_gpus *gpus, struct servet_error *error)
{
    const char *value = getenv(name);
    FREED char *copy = cli_needed(strdup(value));
    FREED const struct profile_device **list = cli_needed(calloc(gpus->count + 1, sizeof *list));
    struct pin_gpus found = {.list = list};
    char *rest = copy;
    for (char *entry; !hides_all(value) && (entry = strsep(&rest, ","));) {
        if (found.count == gpus->count || !add_given(gpus, entry, &found)) {
            return profile_error(error, -ENOENT,
                                 "%s=%s: expected %s of the %zu GPUs that this process may open, "
                                 "got '%s'",
                                 name, value,
                                 gpus->uncounted ? "UUIDs, as models differ," : "numbers or UUIDs",
                                 gpus->count, entry);
        }
    }
    memcpy(gpus->list, list, found.count * sizeof *list);
    gpus->count = found.count;
    return 0;
}

/* Slurm's list of numbers of the node: "0,2-3". False, and `gpus` as it was: none is there. */
static bool apply_step(const char *text, struct pin_gpus *gpus)
{
    FREED_BY(profile_set_free) struct profile_set numbers = {0};
    size_t count = 0;
    if (!text || profile_set_parse(text, &numbers) < 0) {
        return false;
    }
    for (size_t i = 0; i < numbers.count && numbers.ids[i] < gpus->count; i++) {
        gpus->list[count++] = gpus->list[numbers.ids[i]];
    }
    gpus->count = count ? count : gpus->count;
    return count > 0;
}

static const char *step_list(void)
{
    for (size_t i = 0; i < sizeof step_lists / sizeof *step_lists; i++) {
        const char *text = getenv(step_lists[i]);
        if (text && *text) {
            return text;
        }
    }
    return NULL;
}

/* The GPUs of one vendor that the process sees. `given`: a variable says so. */
static int find_visible(const struct profile_class *of, uint32_t vendor, const char *root,
                        struct pin_gpus *gpus, bool *given, struct servet_error *error)
{
    const struct profile_gpu_maker *maker = profile_gpu_maker(vendor);
    *given = false;
    find_gpus(of, vendor, root, gpus);
    for (size_t l = 0; l < PROFILE_GPU_LISTS; l++) {
        bool is_set = false;
        for (size_t v = 0; v < 3 && !is_set; v++) {
            const char *name = maker->lists[l][v];
            is_set = name && getenv(name);
            TRY(is_set ? apply_list(name, gpus, error) : 0);
        }
        *given = *given || is_set;
    }
    if (!*given && step_list()) {
        find_gpus(of, vendor, NULL, gpus);
        *given = apply_step(step_list(), gpus);
    }
    return 0;
}

/* -- whose -- */

/* The GPUs of all ranks of this node: those of the step, else those that may be opened; where these
 * are no more than this process's own, they are not known, and all count. */
static void find_job(const struct profile_class *of, uint32_t vendor, const char *root,
                     bool is_alone, const struct pin_gpus *own, struct pin_gpus *job)
{
    find_gpus(of, vendor, NULL, job);
    if (apply_step(step_list(), job)) {
        return;
    }
    find_gpus(of, vendor, root, job);
    if (job->count <= own->count && !is_alone) {
        struct pin_gpus all = {.list = job->list};
        find_gpus(of, vendor, NULL, &all);
        job->count = all.count;
    }
}

static size_t place_in(const struct pin_gpus *gpus, const struct profile_device *device)
{
    size_t at = 0;
    while (at < gpus->count && gpus->list[at] != device) {
        at++;
    }
    return at;
}

/* Ranks that all see the same GPUs take them by their local ranks, in turn. */
static void take_in_turn(size_t rank, size_t ranks, struct pin_gpus *own, struct pin_gpus *job)
{
    memcpy(job->list, own->list, own->count * sizeof *own->list);
    job->count = own->count < ranks ? own->count : ranks;
    own->list[0] = job->list[rank % job->count];
    own->count = 1;
}

/* Which of the `shares` ranks of a GPU `rank` is. Those that a deal in blocks gives to it count
 * as they follow; those of a deal in turn that are not among these take what is left. So ranks of
 * either deal differ. */
static size_t turn_of_rank(size_t rank, size_t at, size_t gpus, size_t shares)
{
    const size_t first = at * shares;
    size_t before = 0;
    if (rank - first < shares || rank % gpus != at) {
        return rank % shares;
    }
    for (size_t other = at; other < rank; other += gpus) {
        before += other - first >= shares;
    }
    for (size_t share = 0; share < shares; share++) {
        bool used = (first + share) % gpus == at;
        if (!used && before-- == 0) {
            return share;
        }
    }
    return rank % shares;
}

static void divide_pus(const struct pin_launcher *launcher, struct pin_given *out)
{
    const size_t rank = launcher->node_rank, ranks = launcher->node_ranks,
                 at = place_in(&out->job, out->own.list[0]);
    out->shares = (ranks * out->own.count + out->job.count - 1) / out->job.count;
    out->shares = out->shares ? out->shares : 1;
    out->share = turn_of_rank(rank, at, out->job.count, out->shares);
}

/* The first vendor of which a variable speaks, or whose GPUs the workers take. */
static int find_own(const struct profile_class *of, const char *root, bool takes,
                    struct pin_gpus *own, uint32_t *vendor, struct servet_error *error)
{
    for (size_t i = 0; i < PROFILE_GPU_MAKERS; i++) {
        const uint32_t of_maker = profile_gpu_makers[i].vendor;
        bool given;
        find_gpus(of, of_maker, NULL, own);
        TRY(own->count ? find_visible(of, of_maker, root, own, &given, error) : 0);
        if (own->count && (given || (takes && !own->uncounted))) {
            *vendor = of_maker;
            return 0;
        }
    }
    own->count = 0;
    return 0;
}

int pin_given_read(const struct profile_class *of, const char *root,
                   const struct pin_launcher *launcher, struct pin_given *out,
                   struct servet_error *error)
{
    const bool takes = launcher->name && launcher->row->takes;
    const size_t ranks = launcher->node_ranks;
    struct pin_gpus *own = &out->own, *job = &out->job;
    uint32_t vendor = 0;
    *out = (struct pin_given){0};
    own->list = cli_needed(calloc(of->device_count + 1, sizeof *own->list));
    job->list = cli_needed(calloc(of->device_count + 1, sizeof *job->list));
    const int rc = find_own(of, root, takes, own, &vendor, error);
    if (rc < 0 || !own->count || !launcher->name) {
        pin_given_free(out);
        return rc;
    }
    find_job(of, vendor, root, ranks == 1, own, job);
    if (place_in(job, own->list[0]) == job->count) {
        find_gpus(of, vendor, NULL, job);
    }
    if (ranks == 1) {
        memcpy(job->list, own->list, own->count * sizeof *own->list);
        job->count = own->count;
    }
    if (takes || (own->count > 1 && own->count * ranks > job->count)) {
        take_in_turn(launcher->node_rank, ranks, own, job);
    }
    divide_pus(launcher, out);
    return 0;
}

void pin_given_free(struct pin_given *given)
{
    free(given->own.list);
    free(given->job.list);
    *given = (struct pin_given){0};
}
