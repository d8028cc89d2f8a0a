/* GPUs, network cards and disks from hwloc's I/O objects.
 *
 * A device is a PCI function with all names that drivers and runtimes gave it (cuda0, nvml0,
 * card0); an OS device that is on no PCI bus is one by itself, and so is each part of a GPU that
 * its runtime counts: tiles of Intel (ze0.1, or ze0 and ze1 in the flat hierarchy), partitions of
 * AMD (rsmi0 to rsmi5 of an MI300A in CPX mode). Its PUs and its NUMA node are those of the object
 * that hwloc has hung it on. */
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "profile/codec/codec.h"
#include "profile/query.h"
#include "profile/scope.h"
#include "profile/topology/gpu_makers.h"
#include "profile/topology/topology.h"

/* PCI: the vendor of Slingshot's cards; classes. */
enum { CRAY = 0x17db };
enum { CLASS_INFINIBAND = 0x0207, CLASS_VGA = 0x0300, CLASS_ACCELERATOR = 0x1200 };
enum { BASE_DISPLAY = 0x03 };

/* Names by which a device is called are ranked, the best first: those of the runtimes that compute
 * (gpu_makers.c), those of the makers' tools, OpenCL's. */
enum {
    RANK_OPENCL = PROFILE_GPU_NAMES * PROFILE_GPU_MAKERS,
    RANK_UNKNOWN,
};

/* One device that is being read; the model's, and what it was made of. */
struct found {
    struct profile_device device;
    hwloc_obj_t object; /* the PCI function, or the OS device */
    hwloc_obj_t pci;    /* NULL: on no PCI bus */
    char serial[64];    /* of its card; "": not known */
    size_t rank;        /* of the best name so far */
    bool runtime;       /* a runtime that computes sees it */
};

struct devices {
    struct found *found;
    size_t count, room;
};

static const struct profile_gpu_maker *maker_of(size_t rank)
{
    return rank < RANK_OPENCL ? &profile_gpu_makers[rank % PROFILE_GPU_MAKERS] : NULL;
}

/* Of a maker's rank: the name without its number, or NULL. */
static const char *prefix_of(size_t rank)
{
    return maker_of(rank)->names[rank / PROFILE_GPU_MAKERS];
}

static size_t rank_of(const char *name)
{
    for (size_t rank = 0; rank < RANK_OPENCL; rank++) {
        const char *prefix = prefix_of(rank);
        if (prefix && strncmp(name, prefix, strlen(prefix)) == 0) {
            return rank;
        }
    }
    return strncmp(name, "opencl", strlen("opencl")) == 0 ? RANK_OPENCL : RANK_UNKNOWN;
}

/* "ze0.1": a tile of an Intel GPU in the composite hierarchy, which has "ze0", too. */
static bool is_tile(hwloc_obj_t object)
{
    return strncmp(object->name, "ze", 2) == 0 && strchr(object->name, '.');
}

/* Is it one of several that a runtime counts on this PCI function? Several of OpenCL are only
 * several OpenCLs. */
static bool is_part(hwloc_obj_t object, hwloc_obj_t pci)
{
    size_t rank = object->name ? rank_of(object->name) : RANK_UNKNOWN, tiles = 0, alike = 0;
    if (!maker_of(rank)) {
        return false;
    }
    for (hwloc_obj_t child = pci ? pci->io_first_child : NULL; child; child = child->next_sibling) {
        bool same =
            child->type == HWLOC_OBJ_OS_DEVICE && child->name && rank_of(child->name) == rank;
        alike += same;
        tiles += same && is_tile(child);
    }
    return tiles ? is_tile(object) : alike > 1;
}

static bool has_parts(hwloc_obj_t pci)
{
    bool parts = false;
    for (hwloc_obj_t child = pci ? pci->io_first_child : NULL; child; child = child->next_sibling) {
        parts = parts || (child->type == HWLOC_OBJ_OS_DEVICE && is_part(child, pci));
    }
    return parts;
}

static hwloc_obj_t pci_above(hwloc_obj_t object)
{
    while (object && object->type != HWLOC_OBJ_PCI_DEVICE) {
        object = object->parent;
    }
    return object;
}

static struct found *find_device(struct devices *devices, hwloc_obj_t object, hwloc_obj_t pci)
{
    for (size_t i = 0; i < devices->count; i++) {
        if (devices->found[i].object == object) {
            return &devices->found[i];
        }
    }
    if (devices->count == devices->room) {
        size_t room = devices->room ? 2 * devices->room : 16;
        struct found *more = reallocarray(devices->found, room, sizeof *more);
        if (!more) {
            return NULL;
        }
        devices->found = more;
        devices->room = room;
    }
    struct found *found = &devices->found[devices->count++];
    *found = (struct found){.object = object, .pci = pci, .rank = SIZE_MAX};
    found->device.kind = PROFILE_DEVICE_KINDS;
    found->device.number = found->device.numa_node = PROFILE_NOT_SAID;
    return found;
}

/* -- one device -- */

/* Appends a name to a list with blanks. */
static int append_alias(char **list, char *name)
{
    char *longer;
    if (!name) {
        return 0;
    }
    int length = asprintf(&longer, "%s%s%s", *list ? *list : "", *list ? " " : "", name);
    free(name);
    if (length < 0) {
        return -ENOMEM;
    }
    free(*list);
    *list = longer;
    return 0;
}

/* The best name comes first; a network card is called as message passing libraries call it. */
static int add_name(struct found *found, hwloc_obj_t object)
{
    size_t rank = object->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK ? 1 : rank_of(object->name);
    rank = object->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS ? 0 : rank;
    char *name = strdup(object->name), *other = name;
    if (!name) {
        return -ENOMEM;
    }
    if (rank < found->rank) {
        other = found->device.name;
        found->device.name = name;
        found->rank = rank;
    }
    return append_alias(&found->device.aliases, other);
}

/* Only zeros: taken out for privacy, or the driver has none. */
static const char *info_of(hwloc_obj_t object, const char *key)
{
    const char *value = hwloc_obj_get_info_by_name(object, key);
    return value && value[strspn(value, "0:- ")] ? value : NULL;
}

static void keep_first(char **member, const char *value)
{
    if (!*member && value && *value) {
        *member = strdup(value);
    }
}

static void read_gpu(struct found *found, hwloc_obj_t object)
{
    const char *serial = info_of(object, "NVIDIASerial"), *uuid = info_of(object, "AMDUUID");
    size_t rank = rank_of(object->name);
    struct profile_device *device = &found->device;
    keep_first(&device->model, info_of(object, "GPUModel"));
    keep_first(&device->uuid, info_of(object, "NVIDIAUUID"));
    serial = serial ? serial : info_of(object, "AMDSerial");
    if (serial) {
        snprintf(found->serial, sizeof found->serial, "%s", serial);
    }
    if (uuid && !device->uuid && strlen(uuid) <= 16) {
        /* ROCm writes all sixteen digits. */
        char text[32];
        snprintf(text, sizeof text, "GPU-%016llx", strtoull(uuid, NULL, 16));
        keep_first(&device->uuid, text);
    }
    found->runtime |= rank < RANK_UNKNOWN || object->attr->osdev.type == HWLOC_OBJ_OSDEV_COPROC;
    if (!maker_of(rank)) {
        return;
    }
    device->pci_vendor = device->pci_vendor ? device->pci_vendor : maker_of(rank)->vendor;
    if (rank <= found->rank) {
        unsigned number;
        const char *digits = object->name + strlen(prefix_of(rank));
        device->number = sscanf(digits, "%u", &number) == 1 ? number : device->number;
    }
}

static void read_nic(struct found *found, hwloc_obj_t object)
{
    bool fabric = object->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
    const char *state = hwloc_obj_get_info_by_name(object, "Port1State");
    found->device.fabric |=
        fabric || (object->subtype && strcasecmp(object->subtype, "Slingshot") == 0);
    found->device.down |= fabric && state && strcmp(state, "4") != 0; /* 4: active */
}

static int read_os_device(struct devices *devices, hwloc_obj_t object)
{
    static const enum profile_device_kind kinds[] = {
        [HWLOC_OBJ_OSDEV_BLOCK] = PROFILE_DISK,       [HWLOC_OBJ_OSDEV_GPU] = PROFILE_GPU,
        [HWLOC_OBJ_OSDEV_NETWORK] = PROFILE_NIC,      [HWLOC_OBJ_OSDEV_OPENFABRICS] = PROFILE_NIC,
        [HWLOC_OBJ_OSDEV_DMA] = PROFILE_DEVICE_KINDS, [HWLOC_OBJ_OSDEV_COPROC] = PROFILE_GPU,
    };
    unsigned type = (unsigned)object->attr->osdev.type;
    enum profile_device_kind kind =
        type < sizeof kinds / sizeof *kinds ? kinds[type] : PROFILE_DEVICE_KINDS;
    hwloc_obj_t pci = pci_above(object);
    bool part = is_part(object, pci);
    if (kind == PROFILE_DEVICE_KINDS || !object->name || (!part && has_parts(pci))) {
        return 0;
    }
    struct found *found = find_device(devices, pci && !part ? pci : object, pci);
    int rc = found ? 0 : -ENOMEM;
    if (rc == 0 && kind < found->device.kind) {
        found->device.kind = kind;
    }
    if (rc == 0 && kind == PROFILE_GPU) {
        read_gpu(found, object);
    } else if (rc == 0 && kind == PROFILE_NIC) {
        read_nic(found, object);
    } else if (rc == 0) {
        keep_first(&found->device.model, hwloc_obj_get_info_by_name(object, "Model"));
    }
    return rc < 0 ? rc : add_name(found, object);
}

/* How sure a PCI function is a GPU that computes: not at all, as graphics of a maker of GPUs, or as
 * an accelerator, which has no screen. A board's management has graphics of other makers. */
enum sure { NO_GPU, GRAPHICS, ACCELERATOR, HAS_RUNTIME };

static enum sure is_sure(hwloc_obj_t pci)
{
    const struct hwloc_pcidev_attr_s *attr = &pci->attr->pcidev;
    bool display = attr->class_id >> 8 == BASE_DISPLAY;
    const struct profile_gpu_maker *maker = profile_gpu_maker(attr->vendor_id);
    if (!maker || (maker->displays && !display)) {
        return NO_GPU;
    }
    return attr->class_id == CLASS_VGA                      ? GRAPHICS
           : display || attr->class_id == CLASS_ACCELERATOR ? ACCELERATOR
                                                            : NO_GPU;
}

/* GPUs that no runtime and no driver has a name for. */
static int read_pci_device(struct devices *devices, hwloc_obj_t pci)
{
    if (is_sure(pci) == NO_GPU || has_parts(pci)) {
        return 0;
    }
    struct found *found = find_device(devices, pci, pci);
    if (!found) {
        return -ENOMEM;
    }
    found->device.kind = PROFILE_GPU;
    return 0;
}

static void read_pci(struct found *found)
{
    const struct hwloc_pcidev_attr_s *attr = &found->pci->attr->pcidev;
    struct profile_device *device = &found->device;
    char bus[32];
    snprintf(bus, sizeof bus, "%04x:%02x:%02x.%01x", (unsigned)attr->domain, attr->bus, attr->dev,
             attr->func);
    device->bus_id = strdup(bus);
    device->pci_vendor = attr->vendor_id;
    device->pci_device = attr->device_id;
    keep_first(&device->model, hwloc_obj_get_info_by_name(found->pci, "PCIDevice"));
    device->fabric |= device->kind == PROFILE_NIC &&
                      (attr->class_id == CLASS_INFINIBAND || attr->vendor_id == CRAY);
    if (!device->name) {
        device->name = strdup(bus);
    }
}

/* The node, where all of the locality's memory that PUs are local to is one. */
static uint32_t node_of(hwloc_topology_t topology, const struct profile_class *node_class,
                        hwloc_obj_t place)
{
    uint32_t out = PROFILE_NOT_SAID;
    for (hwloc_obj_t node = NULL;
         (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));) {
        if (!hwloc_bitmap_isset(place->nodeset, node->os_index) ||
            hwloc_bitmap_iszero(node->cpuset) || !profile_numa_of(node_class, node->os_index)) {
            continue;
        }
        if (out != PROFILE_NOT_SAID) {
            return PROFILE_NOT_SAID;
        }
        out = node->os_index;
    }
    return out;
}

static int read_place(hwloc_topology_t topology, const struct profile_class *node_class,
                      struct found *found)
{
    hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology, found->object);
    struct profile_device *device = &found->device;
    uint32_t *pus = malloc(node_class->pus.count * sizeof *pus);
    size_t count = 0;
    if (!pus) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < node_class->pus.count; i++) {
        if (!place || hwloc_bitmap_isset(place->cpuset, node_class->pus.ids[i])) {
            pus[count++] = node_class->pus.ids[i];
        }
    }
    device->numa_node = place && count ? node_of(topology, node_class, place) : PROFILE_NOT_SAID;
    if (!count) { /* near to PUs that are offline */
        free(pus);
        return profile_set_copy(&node_class->pus, &device->pus);
    }
    device->pus = (struct profile_set){pus, count};
    return 0;
}

/* -- all of them -- */

/* Dies with the serial number of one card, and functions of one PCI device. */
static bool one_card(const struct found *a, const struct found *b)
{
    const struct profile_device *x = &a->device, *y = &b->device;
    bool bus =
        a->pci && b->pci && strncmp(x->bus_id, y->bus_id, strlen(x->bus_id) - strlen(".0")) == 0;
    return x->kind == y->kind && (bus || (a->serial[0] && strcmp(a->serial, b->serial) == 0));
}

static void number_cards(struct devices *devices)
{
    uint32_t next = 0;
    for (size_t i = 0; i < devices->count; i++) {
        struct profile_device *device = &devices->found[i].device;
        size_t same = 0;
        next = i && device->kind != devices->found[i - 1].device.kind ? 0 : next;
        while (same < i && !one_card(&devices->found[i], &devices->found[same])) {
            same++;
        }
        device->card = same < i ? devices->found[same].device.card : next++;
        /* RSMI gives the model of the first partition only. */
        keep_first(&device->model, devices->found[same].device.model);
    }
}

static enum sure how_sure(const struct found *found)
{
    return found->runtime ? HAS_RUNTIME : found->pci ? is_sure(found->pci) : GRAPHICS;
}

/* Leaves the devices that are kept: of the GPUs those that most surely compute. */
static void drop_others(struct devices *devices)
{
    enum sure most = GRAPHICS;
    size_t kept = 0;
    for (size_t i = 0; i < devices->count; i++) {
        const struct found *found = &devices->found[i];
        most = found->device.kind == PROFILE_GPU && how_sure(found) > most ? how_sure(found) : most;
    }
    for (size_t i = 0; i < devices->count; i++) {
        struct found *found = &devices->found[i];
        const bool other = found->device.kind == PROFILE_GPU && how_sure(found) < most;
        if (other || found->device.kind == PROFILE_DEVICE_KINDS) {
            profile_device_free(&found->device);
        } else {
            devices->found[kept++] = *found;
        }
    }
    devices->count = kept;
}

static int finish_devices(hwloc_topology_t topology, struct devices *devices,
                          struct profile_class *node_class)
{
    drop_others(devices);
    const size_t kept = devices->count;
    for (size_t i = 0; i < kept; i++) {
        struct found *found = &devices->found[i];
        if (found->pci) {
            read_pci(found);
        }
        if (!found->device.name || (found->pci && !found->device.bus_id) ||
            read_place(topology, node_class, found) < 0) {
            return -ENOMEM;
        }
    }
    struct profile_device *out = kept ? calloc(kept, sizeof *out) : NULL;
    if (!out) {
        return kept ? -ENOMEM : 0;
    }
    qsort(devices->found, kept, sizeof *devices->found, profile_topology_device_order);
    number_cards(devices);
    for (size_t i = 0; i < kept; i++) {
        out[i] = devices->found[i].device;
    }
    node_class->devices = out;
    node_class->device_count = kept;
    devices->count = 0;
    return 0;
}

static void free_devices(struct devices *devices)
{
    for (size_t i = 0; i < devices->count; i++) {
        profile_device_free(&devices->found[i].device);
    }
    free(devices->found);
}

int profile_topology_read_devices(hwloc_topology_t topology, struct profile_class *node_class)
{
    FREED_BY(free_devices) struct devices devices = {0};
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_osdev(topology, o));) {
        TRY(read_os_device(&devices, o));
    }
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(topology, o));) {
        TRY(read_pci_device(&devices, o));
    }
    return finish_devices(topology, &devices, node_class);
}
