/* The topology profile from hwloc: this machine, one in an XML file, or one that is only
 * described. */
#include <errno.h>
#include <hwloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/base/child.h"
#include "profile/scope.h"
#include "profile/topology/topology.h"

struct source {
    hwloc_topology_t topology;
    struct profile_class *node_class;
    struct topology_groupings groupings;
    struct sysfs *fs; /* of this system, or NULL: it is another one's topology */
};

/* -- sets -- */

static int set_from_bitmap(hwloc_const_bitmap_t bitmap, struct profile_set *out)
{
    int weight = hwloc_bitmap_weight(bitmap);
    *out = (struct profile_set){0};
    if (weight <= 0) {
        return weight < 0 ? -EINVAL : 0; /* < 0: infinite */
    }
    if ((unsigned)hwloc_bitmap_last(bitmap) >= PROFILE_SET_LIMIT) {
        return -ERANGE;
    }
    out->ids = malloc((size_t)weight * sizeof *out->ids);
    if (!out->ids) {
        return -ENOMEM;
    }
    for (int id = hwloc_bitmap_first(bitmap); id >= 0; id = hwloc_bitmap_next(bitmap, id)) {
        out->ids[out->count++] = (uint32_t)id;
    }
    return 0;
}

/* hwloc's own number for Groups that it makes to hang a device on: they join PUs that nothing else
 * joins. */
#define GROUP_FOR_IO 1000

static int add_group(hwloc_obj_t object, struct profile_relation *relation)
{
    struct profile_set group;
    if (object->type == HWLOC_OBJ_GROUP && object->attr->group.kind == GROUP_FOR_IO) {
        return 0;
    }
    TRY(set_from_bitmap(object->cpuset, &group));
    return profile_topology_add_group(relation, group);
}

static int add_cache(const struct source *source, hwloc_obj_t object)
{
    const struct hwloc_cache_attr_s *attr = &object->attr->cache;
    struct profile_cache cache = {.level = attr->depth,
                                  .size_bytes = attr->size,
                                  .line_bytes = attr->linesize,
                                  .associativity =
                                      attr->associativity > 0 ? (uint32_t)attr->associativity : 0};
    struct profile_set group;
    TRY(set_from_bitmap(object->cpuset, &group));
    return group.count ? profile_topology_add_cache(source->node_class, &cache, group) : 0;
}

/* Where the groups of a depth belong: dies, Groups (clusters of cores, NUMA nodes that are near one
 * another; there may be several depths of them) and the PUs in front of whose memory the same cache
 * is are a relation each. NULL: nowhere. */
static struct profile_relation *relation_of(struct source *source, hwloc_obj_type_t type)
{
    struct topology_groupings *groupings = &source->groupings;
    switch (type) {
    case HWLOC_OBJ_CORE:
        return &source->node_class->cores;
    case HWLOC_OBJ_PACKAGE:
        return &source->node_class->packages;
    case HWLOC_OBJ_GROUP:
    case HWLOC_OBJ_DIE:
    case HWLOC_OBJ_MEMCACHE:
        return groupings->count < TOPOLOGY_MOST_GROUPINGS ? &groupings->of[groupings->count++]
                                                          : NULL;
    default:
        return NULL;
    }
}

/* hwloc 1, and hwloc 2 where HWLOC_KNL_MSCACHE_L3 asks for it, call the fast memory of a KNL in
 * cache mode its L3 cache: GiB of memory, of which no thread has a share as of a cache. */
static hwloc_obj_type_t type_of(hwloc_obj_t object)
{
    const bool memory = object->subtype && strcmp(object->subtype, "MemorySideCache") == 0;
    return memory ? HWLOC_OBJ_MEMCACHE : object->type;
}

/* All objects of one depth. A type may be on several: cores are when caches of one thread are above
 * them in a core with one thread left (the other is offline) and below them elsewhere. */
static int read_depth(struct source *source, int depth)
{
    hwloc_obj_t object = hwloc_get_obj_by_depth(source->topology, depth, 0);
    if (!object) {
        return 0;
    }
    const hwloc_obj_type_t type = type_of(object);
    struct profile_relation *relation = relation_of(source, type);
    for (; object; object = object->next_cousin) {
        TRY(hwloc_obj_type_is_dcache(type) ? add_cache(source, object)
            : relation                     ? add_group(object, relation)
                                           : 0);
    }
    return 0;
}

static int read_objects(struct source *source)
{
    for (int depth = 0; depth < hwloc_topology_get_depth(source->topology); depth++) {
        TRY(read_depth(source, depth));
    }
    return read_depth(source, HWLOC_TYPE_DEPTH_MEMCACHE);
}

/* The kind of memory of a NUMA node, and its bandwidth by the firmware, to the PUs that reach it
 * fastest. */
static int describe_memory(const struct source *source, hwloc_obj_t object,
                           struct profile_numa *numa)
{
    struct hwloc_location from;
    hwloc_uint64_t bandwidth = 0;
    if (hwloc_memattr_get_best_initiator(source->topology, HWLOC_MEMATTR_ID_BANDWIDTH, object, 0,
                                         &from, &bandwidth) == 0) {
        numa->declared_bytes_per_s = (double)bandwidth * TOPOLOGY_MIB_PER_S;
    }
    numa->kind = object->subtype ? strdup(object->subtype) : NULL;
    return object->subtype && !numa->kind ? -ENOMEM : 0;
}

/* Is it the memory of a GPU? hwloc says so, or hides such nodes; before version 2 it did neither: a
 * node without PUs, as large as the memory of one. */
static bool is_gpu_memory(const struct source *source, hwloc_obj_t node)
{
    static const char key[] = "CUDAGlobalMemorySize"; /* KiB */
    bool said = node->subtype && strstr(node->subtype, "GPUMemory");
    if (said || !hwloc_bitmap_iszero(node->cpuset)) {
        return said;
    }
    for (hwloc_obj_t o = NULL; !said && (o = hwloc_get_next_osdev(source->topology, o));) {
        const char *size = hwloc_obj_get_info_by_name(o, key);
        said = size && strtoull(size, NULL, 10) << 10 == node->attr->numanode.local_memory;
    }
    return said;
}

/* Has it no memory where another node has? Firmware keeps such nodes for MIG instances of a GPU. */
static bool is_spare(hwloc_obj_t first, hwloc_obj_t node)
{
    bool beside = false;
    for (hwloc_obj_t other = first; other; other = other->next_cousin) {
        beside = beside || (other->attr->numanode.local_memory &&
                            hwloc_bitmap_isincluded(node->cpuset, other->cpuset));
    }
    return beside && !node->attr->numanode.local_memory;
}

/* The nodes that PUs use: of this system its own files say it, too. */
static int find_used_nodes(const struct source *source, struct profile_set *out)
{
    hwloc_obj_t first = hwloc_get_obj_by_type(source->topology, HWLOC_OBJ_NUMANODE, 0);
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    if (!nodes) {
        return -ENOMEM;
    }
    for (hwloc_obj_t object = first; object; object = object->next_cousin) {
        if (!is_gpu_memory(source, object) && !is_spare(first, object)) {
            hwloc_bitmap_set(nodes, object->os_index);
        }
    }
    int rc = set_from_bitmap(nodes, out);
    hwloc_bitmap_free(nodes);
    if (rc == 0 && source->fs) {
        profile_topology_drop_device_nodes(source->fs, out);
    }
    return rc;
}

static int add_numa(const struct source *source, const struct profile_set *nodes)
{
    struct profile_class *node_class = source->node_class;
    for (hwloc_obj_t object = hwloc_get_obj_by_type(source->topology, HWLOC_OBJ_NUMANODE, 0);
         object; object = object->next_cousin) {
        struct profile_numa numa = {.os_index = object->os_index,
                                    .memory_bytes = object->attr->numanode.local_memory};
        if (profile_set_has(nodes, object->os_index)) {
            TRY(set_from_bitmap(object->cpuset, &numa.pus));
            TRY(profile_topology_add_numa(node_class, numa));
            TRY(describe_memory(source, object, &node_class->numa[node_class->numa_count - 1]));
        }
    }
    return 0;
}

static int read_numa(const struct source *source)
{
    FREED_BY(profile_set_free) struct profile_set nodes = {0};
    TRY(find_used_nodes(source, &nodes));
    return add_numa(source, &nodes);
}

/* -- kinds -- */

/* One kind, or kinds that hwloc cannot rank (efficiency -1), do not tell where work should go. */
static bool kinds_ranked(const struct source *source, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        int efficiency;
        if (hwloc_cpukinds_get_info(source->topology, i, NULL, &efficiency, NULL, NULL, 0) < 0 ||
            efficiency < 0) {
            return false;
        }
    }
    return count > 1;
}

/* `cpuset` is room for its PUs. */
static int add_kind(const struct source *source, unsigned index, hwloc_bitmap_t cpuset)
{
    hwloc_topology_t from = source->topology;
    int efficiency = 0;
    struct profile_kind kind;
    if (hwloc_cpukinds_get_info(from, index, cpuset, &efficiency, NULL, NULL, 0) < 0 ||
        hwloc_bitmap_and(cpuset, cpuset, hwloc_topology_get_topology_cpuset(from)) < 0) {
        return -errno;
    }
    kind.efficiency = (uint32_t)efficiency;
    TRY(set_from_bitmap(cpuset, &kind.pus));
    return kind.pus.count ? profile_topology_add_kind(source->node_class, kind) : 0;
}

static int read_kinds(const struct source *source)
{
    int count = hwloc_cpukinds_get_nr(source->topology, 0);
    if (count < 0 || !kinds_ranked(source, (unsigned)count)) {
        return 0;
    }
    hwloc_bitmap_t cpuset = hwloc_bitmap_alloc();
    int rc = cpuset ? 0 : -ENOMEM;
    for (unsigned i = 0; rc == 0 && i < (unsigned)count; i++) {
        rc = add_kind(source, i, cpuset);
    }
    hwloc_bitmap_free(cpuset);
    return rc;
}

/* -- the whole -- */

static char *info(hwloc_obj_t object, const char *name)
{
    const char *value = object ? hwloc_obj_get_info_by_name(object, name) : NULL;
    return value ? strdup(value) : NULL;
}

static void read_host(const struct source *source, struct servet_profile *profile)
{
    hwloc_obj_t root = hwloc_get_root_obj(source->topology);
    profile->host_name = info(root, "HostName");
    profile->architecture = info(root, "Architecture");
    profile->kernel = info(root, "OSRelease");
    profile->cpu_model =
        info(hwloc_get_obj_by_type(source->topology, HWLOC_OBJ_PACKAGE, 0), "CPUModel");
    /* hwloc knows no names of Arm's processors. */
    if (source->fs && !profile->cpu_model) {
        profile->cpu_model = profile_sysfs_processor(source->fs);
    }
    char signature[PROFILE_SIGNATURE_SIZE];
    if (source->fs && profile_signature("", signature) == 0) {
        profile->topology_signature = strdup(signature);
    }
}

static int read_class(struct source *source)
{
    struct profile_class *node_class = source->node_class;
    TRY(set_from_bitmap(hwloc_topology_get_topology_cpuset(source->topology), &node_class->pus));
    TRY(node_class->pus.count ? 0 : -ENODATA);
    TRY(read_objects(source));
    TRY(read_numa(source));
    TRY(read_kinds(source));
    TRY(profile_topology_read_devices(source->topology, node_class));
    return profile_topology_count_gpus(source->fs, node_class);
}

/* hwloc's bitmaps cost the square of the PUs: 16,384 take two seconds and 32,768 ten. Larger
 * machines are clusters, and a cluster's profile has a line for a thousand nodes alike. */
#define MOST_PUS 16384

/* PUs of a description such as "package:2 core:4(memory=1GB) pu:2": the product of its levels, what
 * stands in brackets left out. Other text, such as a file's name, gives at least 1. */
static double count_synthetic_pus(const char *text)
{
    double product = 1;
    while (*text) {
        text += strspn(text, " \t\n");
        if (*text == '[' || *text == '(') {
            text += strcspn(text, "])");
            text += *text != '\0';
            continue;
        }
        size_t length = strcspn(text, " \t\n(["), name = strcspn(text, ":");
        const char *number = name < length ? text + name + 1 : text;
        size_t digits = strspn(number, "0123456789");
        if (digits && number + digits == text + length) {
            product *= strtod(number, NULL);
        }
        text += length;
    }
    return product;
}

static bool is_regular(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* More PUs in an XML file than hwloc should be asked to read? Its tags are counted, as far as it
 * takes; what can be read only once is left to hwloc. */
static bool has_many_xml_pus(const char *path)
{
    FILE *file = is_regular(path) ? fopen(path, "re") : NULL;
    char *tag = NULL;
    size_t room = 0, count = 0;
    while (file && count <= MOST_PUS && getdelim(&tag, &room, '>', file) >= 0) {
        count += strstr(tag, "type=\"PU\"") != NULL;
    }
    free(tag);
    if (file) {
        fclose(file);
    }
    return count > MOST_PUS;
}

/* The error on a file that hwloc does not read; for hwloc's newer format, how to get the older
 * one. */
static int refuse_xml(const char *path, struct servet_error *error)
{
    char head[1024] = "";
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(head, 1, sizeof head - 1, file) : 0;
    head[length] = '\0';
    if (file) {
        fclose(file);
    }
    if (strstr(head, "<topology version=\"3")) {
        return profile_error(error, -EINVAL,
                             "%s: hwloc XML of version 3, expected version 2: export it with "
                             "'lstopo --export-xml-flags v2 FILE.xml'",
                             path);
    }
    return profile_error(error, -EINVAL, "%s: expected a topology in hwloc's XML", path);
}

static bool is_file(const char *text)
{
    return access(text, F_OK) == 0;
}

/* The profile of this machine has all online PUs, whatever this process may use: another process
 * may use others. The profile of another machine has the PUs that its file allows. */
static int load_topology(hwloc_topology_t topology, const char *text, struct servet_error *error)
{
    bool xml = text && is_file(text);
    bool large = xml && has_many_xml_pus(text);
    int failed = hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    errno = 0;
    if (failed) {
        return profile_error(error, -EIO, "hwloc reads no devices");
    }
    if (!text) {
        failed = hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    } else if (xml) {
        failed = large ? 0 : hwloc_topology_set_xml(topology, text);
    } else {
        large = count_synthetic_pus(text) > MOST_PUS;
        failed = large ? 0 : hwloc_topology_set_synthetic(topology, text);
    }
    if (large) {
        return profile_error(error, -EINVAL, "'%s': expected at most %d PUs", text, MOST_PUS);
    }
    failed = failed || hwloc_topology_load(topology) < 0;
    if (failed && errno == ENOMEM) {
        return profile_error(error, -ENOMEM, "topology: %s", strerrordesc_np(ENOMEM));
    }
    if (failed) {
        return !text ? profile_error(error, -EIO, "hwloc cannot read the topology of this machine")
               : xml ? refuse_xml(text, error)
                     : profile_error(
                           error, -EINVAL,
                           "'%s': expected a file with hwloc's XML, or a description such as "
                           "\"package:2 core:4 pu:2\"",
                           text);
    }
    return 0;
}

static int read_profile(hwloc_topology_t topology, const char *text, struct servet_profile *profile,
                        struct servet_error *error)
{
    struct source source = {.topology = topology, .node_class = &profile->classes[0]};
    TRY(load_topology(topology, text, error));
    FREED struct sysfs *fs = calloc(1, sizeof *fs);
    if (fs) {
        fs->root = "";
        source.fs = !text && hwloc_topology_is_thissystem(topology) ? fs : NULL;
    }
    int rc = fs ? read_class(&source) : -ENOMEM;
    if (rc < 0) {
        profile_error(error, rc, "%s: %s", text ? text : "topology", strerrordesc_np(-rc));
    } else {
        read_host(&source, profile);
        rc = profile_topology_finish(profile, &source.groupings, error);
    }
    profile_topology_groupings_free(&source.groupings);
    return rc;
}

static int new_profile(const char *text, struct servet_profile **out, struct servet_error *error)
{
    hwloc_topology_t topology;
    struct servet_profile *profile = profile_topology_new();
    if (!profile || hwloc_topology_init(&topology) < 0) {
        profile_free(profile);
        return profile_error(error, -ENOMEM, "topology: %s", strerrordesc_np(ENOMEM));
    }
    int rc = read_profile(topology, text, profile, error);
    hwloc_topology_destroy(topology);
    if (rc < 0) {
        profile_free(profile);
        return rc;
    }
    *out = profile;
    return 0;
}

static int read_once(void *text)
{
    struct servet_profile *profile;
    return new_profile(text, &profile, NULL) == -ENOMEM ? -ENOMEM : 0;
}

/* libhwloc crashes on XML that is damaged in the right place, and where memory ends: foreign files
 * are read in a child first, except pipes, which can be read only once. A file on which it crashes
 * is taken for damaged. */
int profile_from_hwloc(const char *text, struct servet_profile **out, struct servet_error *error)
{
    const bool first = text && (!is_file(text) || is_regular(text));
    int rc = first ? profile_child_call(read_once, (void *)(uintptr_t)text, NULL, 0) : 0;
    if (rc == -EFAULT && is_file(text)) {
        return refuse_xml(text, error);
    }
    return rc < 0 ? profile_error(error, -ENOMEM, "'%s': %s", text, strerrordesc_np(ENOMEM))
                  : new_profile(text, out, error);
}
