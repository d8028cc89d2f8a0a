/* NUMA nodes that are the memory of a device: allocations that land there take it from the
 * device's programs, and no PU is near them. They are left out of a profile, so that nothing runs
 * there, binds memory to them, or takes them for the fast tier of a CPU.
 *
 * NVIDIA's driver names a GPU's node in /proc/driver/nvidia/gpus/BUS/numa_status (POWER9 with V100,
 * Grace-Hopper; hwloc reads it, too). Grace-Hopper's firmware gives each GPU eight nodes, for as
 * many MIG instances, and calls the GPU the initiator of each (ACPI 6.3, 5.2.16.6 "Generic
 * Initiator Affinity Structure"); Linux lists such nodes in has_generic_initiator
 * (drivers/base/node.c). CXL memory has no initiator of its own and stays. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/topology/topology.h"

#define NODES "/sys/devices/system/node"
#define NVIDIA_GPUS "/proc/driver/nvidia/gpus"

static void remove_node(struct profile_set *nodes, uint32_t node)
{
    size_t at = profile_set_position(nodes, node);
    if (at < nodes->count) {
        nodes->count--;
        memmove(nodes->ids + at, nodes->ids + at + 1, (nodes->count - at) * sizeof *nodes->ids);
    }
}

static void remove_initiators(struct sysfs *fs, struct profile_set *nodes)
{
    struct profile_set devices;
    if (profile_sysfs_read_set(fs, &devices, NODES "/has_generic_initiator") < 0) {
        return;
    }
    for (size_t i = 0; i < devices.count; i++) {
        uint32_t node = devices.ids[i];
        if (profile_sysfs_read(fs, NODES "/node%u/cpulist", node) == 0 && !*fs->text) {
            remove_node(nodes, node);
        }
    }
    profile_set_free(&devices);
}

static void remove_named(struct sysfs *fs, struct profile_set *nodes)
{
    static const char key[] = "Node:";
    snprintf(fs->path, sizeof fs->path, "%s" NVIDIA_GPUS, fs->root);
    DIR *folder = opendir(fs->path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (profile_sysfs_read(fs, NVIDIA_GPUS "/%.64s/numa_status", entry->d_name) < 0) {
            continue;
        }
        const char *node = strstr(fs->text, key);
        if (node) {
            remove_node(nodes, (uint32_t)strtoul(node + sizeof key - 1, NULL, 10));
        }
    }
    if (folder) {
        closedir(folder);
    }
}

void profile_topology_drop_device_nodes(struct sysfs *fs, struct profile_set *nodes)
{
    if (nodes->count > 1) {
        remove_initiators(fs, nodes);
        remove_named(fs, nodes);
    }
}
