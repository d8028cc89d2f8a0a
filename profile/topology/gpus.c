/* GPUs as their runtimes count them, where hwloc has no plugin for the runtime.
 *
 * CUDA counts the fastest GPU first, which orders equal models by bus, or all by bus where
 * CUDA_DEVICE_ORDER=PCI_BUS_ID; it takes "MIG-GPU-UUID/GI/CI" for an instance of a divided GPU, of
 * which it counts none (CUDA C++ Programming Guide, "CUDA Environment Variables"). The driver names
 * UUIDs in /proc/driver/nvidia/gpus and instances in /proc/driver/nvidia/capabilities (NVIDIA
 * Multi-Instance GPU User Guide, "Device Nodes and Capabilities"). ROCm counts the GPUs of
 * /sys/class/kfd/kfd/topology in order, each partition of a card by itself (Linux, kfd_topology.c;
 * ROCm documentation, "GPU isolation techniques"). Level Zero counts tiles, unless
 * ZE_FLAT_DEVICE_HIERARCHY says otherwise (specification, "Device Hierarchy"). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/scope.h"
#include "profile/topology/topology.h"

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

int profile_topology_device_order(const void *a, const void *b)
{
    const struct profile_device *x = a, *y = b;
    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    if (x->number != y->number) {
        return x->number < y->number ? -1 : 1;
    }
    int bus = compare_text(x->bus_id, y->bus_id);
    return bus ? bus : compare_text(x->name, y->name);
}

static bool is_gpu_of(const struct profile_device *device, uint32_t vendor)
{
    return device->kind == PROFILE_GPU && device->pci_vendor == vendor && device->bus_id;
}

/* -- devices that are divided -- */

/* Takes the text: another name or UUID. 0 or -ENOMEM. */
static int take_text(char **member, char *text)
{
    free(*member);
    *member = text;
    return text ? 0 : -ENOMEM;
}

/* Another device like it, without what is its own. NULL: memory is short. */
static struct profile_device *add_like(struct profile_class *of, size_t index)
{
    struct profile_device *more =
        reallocarray(of->devices, of->device_count + 1, sizeof *of->devices);
    if (!more) {
        return NULL;
    }
    of->devices = more;
    const struct profile_device *like = &more[index];
    struct profile_device *device = &more[of->device_count];
    *device = *like;
    device->aliases = device->uuid = NULL;
    device->transfers = NULL;
    device->transfer_count = 0;
    device->pus = (struct profile_set){0};
    device->name = strdup(like->name);
    device->bus_id = strdup(like->bus_id);
    device->model = like->model ? strdup(like->model) : NULL;
    of->device_count++;
    bool whole = device->name && device->bus_id && (device->model || !like->model);
    return whole && profile_set_copy(&like->pus, &device->pus) == 0 ? device : NULL;
}

/* -- NVIDIA -- */

/* Most instances of a GPU, and numbers of them (nvidia-smi's profiles). */
enum { MOST_GPU_INSTANCES = 16, MOST_COMPUTE_INSTANCES = 8 };

static int name_instance(struct profile_device *device, const char *name, const char *uuid,
                         const unsigned instance[2])
{
    char *text = NULL;
    device->number = PROFILE_NOT_SAID;
    if (asprintf(&text, "%s.%u.%u", name, instance[0], instance[1]) < 0 ||
        take_text(&device->name, text) < 0) {
        return -ENOMEM;
    }
    return asprintf(&text, "MIG-%s/%u/%u", uuid, instance[0], instance[1]) < 0
               ? -ENOMEM
               : take_text(&device->uuid, text);
}

/* The instances of a GPU take its place. 0 or -ENOMEM. */
static int divide_gpu(struct sysfs *fs, struct profile_class *of, size_t index, uint32_t minor)
{
    FREED char *name = strdup(of->devices[index].name), *uuid = strdup(of->devices[index].uuid);
    size_t found = 0;
    TRY(name && uuid ? 0 : -ENOMEM);
    for (unsigned i = 0; i < MOST_GPU_INSTANCES * MOST_COMPUTE_INSTANCES; i++) {
        const unsigned instance[] = {i / MOST_COMPUTE_INSTANCES, i % MOST_COMPUTE_INSTANCES};
        snprintf(fs->path, sizeof fs->path,
                 "%s/proc/driver/nvidia/capabilities/gpu%u/mig/gi%u/ci%u/access", fs->root, minor,
                 instance[0], instance[1]);
        if (access(fs->path, F_OK) < 0) {
            continue;
        }
        struct profile_device *device = found++ ? add_like(of, index) : &of->devices[index];
        TRY(device ? name_instance(device, name, uuid, instance) : -ENOMEM);
    }
    return 0;
}

static int read_nvidia(struct sysfs *fs, struct profile_class *of, size_t index)
{
    struct profile_device *device = &of->devices[index];
    if (profile_sysfs_read(fs, "/proc/driver/nvidia/gpus/%s/information", device->bus_id) < 0) {
        return 0;
    }
    FREED char *uuid = profile_sysfs_value(fs->text, "GPU UUID"),
               *minor = profile_sysfs_value(fs->text, "Device Minor");
    if (uuid && !device->uuid) {
        device->uuid = uuid;
        uuid = NULL;
    }
    return minor && device->uuid ? divide_gpu(fs, of, index, (uint32_t)strtoul(minor, NULL, 10))
                                 : 0;
}

/* Numbers by bus where no runtime has numbered any and CUDA orders them so. */
static void number_by_bus(struct profile_class *of)
{
    const struct profile_device *first = NULL;
    for (size_t i = 0; i < of->device_count; i++) {
        const struct profile_device *device = &of->devices[i];
        if (!is_gpu_of(device, PROFILE_PCI_NVIDIA)) {
            continue;
        }
        first = first ? first : device;
        if (device->number != PROFILE_NOT_SAID || device->pci_device != first->pci_device) {
            return;
        }
    }
    uint32_t next = 0;
    for (size_t i = 0; i < of->device_count; i++) {
        struct profile_device *device = &of->devices[i];
        device->number = is_gpu_of(device, PROFILE_PCI_NVIDIA) ? next++ : device->number;
    }
}

/* -- AMD -- */

/* "key value" lines: the value; 0: it is missing. */
static uint64_t kfd_value(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            return strtoull(line + length, NULL, 10);
        }
    }
    return 0;
}

/* The device at that bus; of->device_count: none. Partitions differ in the function's bits. */
static size_t find_at(const struct profile_class *of, const char *bus)
{
    size_t i = 0;
    while (i < of->device_count && !(is_gpu_of(&of->devices[i], PROFILE_PCI_AMD) &&
                                     strncmp(of->devices[i].bus_id, bus, strlen(bus)) == 0)) {
        i++;
    }
    return i;
}

static int take_kfd_node(struct profile_class *of, const char *text, uint32_t number)
{
    uint64_t at = kfd_value(text, "location_id"), id = kfd_value(text, "unique_id");
    char bus[32];
    snprintf(bus, sizeof bus, "%04x:%02x:%02x.", (unsigned)kfd_value(text, "domain"),
             (unsigned)(at >> 8 & 0xff), (unsigned)(at >> 3 & 0x1f));
    size_t index = find_at(of, bus);
    if (index == of->device_count) {
        return 0;
    }
    struct profile_device *device = &of->devices[index];
    if (device->number != PROFILE_NOT_SAID) {
        device = add_like(of, index);
        char *name = NULL;
        if (!device ||
            asprintf(&name, "renderD%u", (unsigned)kfd_value(text, "drm_render_minor")) < 0 ||
            take_text(&device->name, name) < 0) {
            return -ENOMEM;
        }
    }
    device->number = number;
    if (id && !device->uuid && asprintf(&device->uuid, "GPU-%016" PRIx64, id) < 0) {
        device->uuid = NULL;
        return -ENOMEM;
    }
    return 0;
}

static bool amd_are_numbered(const struct profile_class *of)
{
    bool numbered = false;
    for (size_t i = 0; i < of->device_count; i++) {
        numbered = numbered || (is_gpu_of(&of->devices[i], PROFILE_PCI_AMD) &&
                                of->devices[i].number != PROFILE_NOT_SAID);
    }
    return numbered;
}

static int read_kfd(struct sysfs *fs, struct profile_class *of)
{
    uint32_t number = 0;
    for (uint32_t node = 0;
         profile_sysfs_read(fs, "/sys/class/kfd/kfd/topology/nodes/%u/properties", node) == 0;
         node++) {
        if (kfd_value(fs->text, "simd_count")) {
            TRY(take_kfd_node(of, fs->text, number++));
        }
    }
    return 0;
}

/* -- all -- */

/* Partitions of a card may share its UUID, which then names none of them. */
static void drop_common_uuids(struct profile_class *of)
{
    for (size_t i = 0; i < of->device_count; i++) {
        bool common = false;
        for (size_t k = i + 1; of->devices[i].uuid && k < of->device_count; k++) {
            if (compare_text(of->devices[k].uuid, of->devices[i].uuid) == 0) {
                common = true;
                free(of->devices[k].uuid);
                of->devices[k].uuid = NULL;
            }
        }
        if (common) {
            free(of->devices[i].uuid);
            of->devices[i].uuid = NULL;
        }
    }
}

/* Tiles "ze0.0", "ze0.1", "ze1.0" … by their place among all tiles. */
static void number_tiles(struct profile_class *of)
{
    uint32_t next = 0;
    for (size_t i = 0; i < of->device_count; i++) {
        struct profile_device *device = &of->devices[i];
        bool tile = is_gpu_of(device, PROFILE_PCI_INTEL) && strncmp(device->name, "ze", 2) == 0 &&
                    strchr(device->name, '.');
        device->number = tile ? next++ : device->number;
    }
}

int profile_topology_count_gpus(struct sysfs *fs, struct profile_class *node_class)
{
    const size_t whole = node_class->device_count;
    number_by_bus(node_class);
    number_tiles(node_class);
    int rc = fs && !amd_are_numbered(node_class) ? read_kfd(fs, node_class) : 0;
    for (size_t i = 0; fs && rc == 0 && i < whole; i++) {
        rc = is_gpu_of(&node_class->devices[i], PROFILE_PCI_NVIDIA) ? read_nvidia(fs, node_class, i)
                                                                    : 0;
    }
    drop_common_uuids(node_class);
    if (node_class->device_count) {
        qsort(node_class->devices, node_class->device_count, sizeof *node_class->devices,
              profile_topology_device_order);
    }
    return rc;
}
