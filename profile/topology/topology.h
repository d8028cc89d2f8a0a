/* Common to both sources of a topology profile (sysfs, hwloc): they know which PUs share a core, a
 * package, a cache, a NUMA node; memory and messages follow from that in the same way. */
#pragma once

#include "profile/model.h"

/* An empty profile of one node with one class, or NULL. */
struct servet_profile *profile_topology_new(void);

/* Append a group, a cache that the PUs of `group` share (or one PU has) with the level, declared
 * size, line and ways of `like`, a NUMA node, a kind of PUs. The sets are the profile's, also on
 * failure. Groups of one and empty ones are dropped. 0 or -ENOMEM. */
int profile_topology_add_group(struct profile_relation *relation, struct profile_set group);
int profile_topology_add_cache(struct profile_class *node_class, const struct profile_cache *like,
                               struct profile_set group);
int profile_topology_add_numa(struct profile_class *node_class, struct profile_numa numa);
int profile_topology_add_kind(struct profile_class *node_class, struct profile_kind kind);

/* The unit of hwloc's memory attributes and of the bandwidths in /sys. */
#define TOPOLOGY_MIB_PER_S 0x1p20

/* Groups of PUs that something joins which is no core, cache, package or NUMA node: clusters of
 * cores, dies, groups of nodes that are near one another. One relation for each kind and depth. */
#define TOPOLOGY_MOST_GROUPINGS 16

struct topology_groupings {
    struct profile_relation of[TOPOLOGY_MOST_GROUPINGS]; /* owned, see ..._free() */
    size_t count;
};

/* Is the group that of a core, a cache or a package, or everybody? Kernels and hwloc differ in
 * whether they list it again as a cluster or a die. */
bool profile_topology_says(const struct profile_class *node_class, const struct profile_set *group);

void profile_topology_groupings_free(struct topology_groupings *groupings);

/* Orders what was added, derives the memory overhead levels and the communication layers, names the
 * node after profile->host_name, and checks the whole. What `groupings` tell besides is a layer,
 * and a memory overhead level where it nests with the others; they are ordered, and groups that a
 * core, cache, package or NUMA node says already are taken out. 0, -ENOMEM, -EINVAL. */
int profile_topology_finish(struct servet_profile *profile, struct topology_groupings *groupings,
                            struct servet_error *error);

/* -- devices.c -- */

struct hwloc_topology;

/* Appends the GPUs, network cards and disks that the topology has I/O objects for. NUMA nodes have
 * been read. 0 or -ENOMEM. */
int profile_topology_read_devices(struct hwloc_topology *topology,
                                  struct profile_class *node_class);

/* -- the small text files of /sys and /proc (sysfs.c), of this machine or of a captured tree. libc
 * only, no stdio, and no large buffers on the stack: the shim may be called on a thread with a
 * small one. -- */

/* A cpulist of 4,096 PUs at its longest ("0,2,4,…") has 10,000 bytes. */
#define SYSFS_TEXT_SIZE 16384
#define SYSFS_PATH_SIZE 1024

struct sysfs {
    const char *root; /* "" or the folder of a captured tree */
    char path[SYSFS_PATH_SIZE];
    char text[SYSFS_TEXT_SIZE]; /* of the file read last, without the newline at its end; cut when
                                   longer */
};

/* Reads root + path into fs->text. 0 or -errno. */
int profile_sysfs_read(struct sysfs *fs, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, parsed: 0, -errno, -EINVAL. An empty list is the empty set. */
int profile_sysfs_read_set(struct sysfs *fs, struct profile_set *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int profile_sysfs_read_u32(struct sysfs *fs, uint32_t *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* In text of lines "key : value" (cpuinfo, meminfo): the value of the first `key`, as a new string,
 * or NULL. */
char *profile_sysfs_value(const char *text, const char *key);

/* -- gpus.c -- */

/* For qsort() of devices, or of structs that begin with one: by kind, number, bus and name. */
int profile_topology_device_order(const void *a, const void *b);

/* Completes the GPUs of a class by what their drivers say of this system (fs; NULL: it is another
 * one's): numbers and UUIDs as the runtimes take them, MIG instances and partitions as devices of
 * their own. The devices stay in order. 0 or -ENOMEM. */
int profile_topology_count_gpus(struct sysfs *fs, struct profile_class *node_class);

/* -- device_memory.c -- */

/* Takes NUMA nodes (OS indices) that are the memory of a device out of the set. */
void profile_topology_drop_device_nodes(struct sysfs *fs, struct profile_set *nodes);

/* The name of the first processor, or else of the board, as a new string; NULL: it is not known. Of
 * /proc/cpuinfo only the first bytes are read, which costs one PU's worth. fs->text is not kept. */
char *profile_sysfs_processor(struct sysfs *fs);
