/* The topology from /sys and /proc, for the shim: libc only, no stdio, no large buffers on the
 * stack, since the calling thread may have a small one. */
#include "profile/topology/topology.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/file.h"
#include "profile/scope.h"

/* A read of less than that from a file of sysfs, or from a captured one, ends the file (the kernel
 * gives up to a page at once, and pages are at least so long); /proc/cpuinfo comes in pieces. */
#define WHOLE_BYTES 4096

static bool comes_whole(const struct sysfs *fs)
{
    static const char folder[] = "/sys/";
    return strncmp(fs->path + strlen(fs->root), folder, sizeof folder - 1) == 0;
}

static int read_text(struct sysfs *fs)
{
    int fd = profile_open_plain(fs->path);
    if (fd < 0) {
        return fd;
    }
    size_t used = 0;
    ssize_t got;
    bool more;
    do {
        got = read(fd, fs->text + used, sizeof fs->text - 1 - used);
        used += got > 0 ? (size_t)got : 0;
        more = got > 0 && used < sizeof fs->text - 1 && (got >= WHOLE_BYTES || !comes_whole(fs));
    } while (more || (got < 0 && errno == EINTR));
    int rc = got < 0 ? -errno : 0;
    close(fd);
    fs->text[used] = '\0';
    if (used && fs->text[used - 1] == '\n') {
        fs->text[used - 1] = '\0';
    }
    return rc;
}

static int read_path(struct sysfs *fs, const char *format, va_list args)
{
    int root = snprintf(fs->path, sizeof fs->path, "%s", fs->root);
    if (root < 0 || (size_t)root >= sizeof fs->path) {
        return -ENAMETOOLONG;
    }
    size_t room = sizeof fs->path - (size_t)root;
    int n = vsnprintf(fs->path + root, room, format, args);
    return n < 0 || (size_t)n >= room ? -ENAMETOOLONG : read_text(fs);
}

int profile_sysfs_read(struct sysfs *fs, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = read_path(fs, format, args);
    va_end(args);
    return rc;
}

int profile_sysfs_read_set(struct sysfs *fs, struct profile_set *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = read_path(fs, format, args);
    va_end(args);
    if (rc == 0 && !*fs->text) {
        *out = (struct profile_set){0};
        return 0;
    }
    return rc < 0 ? rc : profile_set_parse(fs->text, out);
}

int profile_sysfs_read_u32(struct sysfs *fs, uint32_t *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = read_path(fs, format, args);
    va_end(args);
    if (rc < 0) {
        return rc;
    }
    char *end;
    errno = 0;
    unsigned long value = strtoul(fs->text, &end, 10);
    if (errno || end == fs->text || *fs->text == '-' || value > UINT32_MAX) {
        return -EINVAL;
    }
    *out = (uint32_t)value;
    return 0;
}

char *profile_sysfs_value(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0) {
            continue;
        }
        const char *at = line + length + strspn(line + length, " \t");
        if (*at == ':') {
            at += 1 + strspn(at + 1, " \t");
            return strndup(at, strcspn(at, "\n"));
        }
    }
    return NULL;
}

/* The topology profile from /sys alone: the fallback of the shim, so it uses neither hwloc
 * (milliseconds, and a library in the program's process) nor stdio. A file of sysfs costs several
 * microseconds, and a machine of 256 PUs has 10,000 of them: a resource that an earlier PU shares
 * is not read again. */

#define CPU "/sys/devices/system/cpu"
#define NODE "/sys/devices/system/node"

/* More than any processor has (x86: 4, POWER: 5). */
#define CACHE_INDEX_LIMIT 10

/* Cache `index` (index0, index1 …) of the PUs read so far. */
struct cache_index {
    bool instruction;
    /* of the last one read; line and ways are read again only when the size differs */
    struct profile_cache kind;
};

struct reader {
    struct profile_class *node_class;
    struct topology_groupings groupings;
    struct cache_index caches[CACHE_INDEX_LIMIT];
    struct sysfs fs; /* large, and hardly used: not made zeros, so that few pages are touched */
};

/* Neighbours come after one another: the last group is the likeliest. */
static bool has_group(const struct profile_relation *relation, uint32_t pu)
{
    size_t i = relation->group_count;
    while (i > 0 && !profile_set_has(&relation->groups[i - 1], pu)) {
        i--;
    }
    return i > 0;
}

/* Lists name offline PUs in some kernels' files; the profile speaks of those that are online. */
static int read_online(struct reader *reader, struct profile_set *out, const char *format,
                       uint32_t number, uint32_t index)
{
    FREED_BY(profile_set_free) struct profile_set listed = {0};
    char path[128];
    snprintf(path, sizeof path, format, number, index);
    TRY(profile_sysfs_read_set(&reader->fs, &listed, "%s", path));
    return profile_set_intersect(&listed, &reader->node_class->pus, out);
}

/* -- cores and packages -- */

/* `newer` is the name since Linux 5.3, `older` the one that all kernels have, or NULL for
 * clusters: where the first PU's group is one that its core or a cache is already, all are, and a
 * file for each core would be read in vain. (They add information only where their cores share
 * something that no cache shows, as on a Kunpeng 920.) No file: nothing is known to be shared. */
static int read_groups(struct reader *reader, struct profile_relation *relation, const char *newer,
                       const char *older)
{
    const struct profile_set *pus = &reader->node_class->pus;
    const char *format = newer;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < pus->count; i++) {
        struct profile_set group;
        if (has_group(relation, pus->ids[i])) {
            continue;
        }
        rc = read_online(reader, &group, format, pus->ids[i], 0);
        if (rc == -ENOENT && older && format == newer) {
            format = older;
            rc = read_online(reader, &group, format, pus->ids[i], 0);
        }
        if (rc < 0) {
            return rc == -ENOENT ? 0 : rc;
        }
        if (!older && i == 0 &&
            (group.count < 2 || profile_topology_says(reader->node_class, &group))) {
            profile_set_free(&group);
            return 0;
        }
        rc = profile_topology_add_group(relation, group);
    }
    return rc;
}

/* Dies and clusters of cores. A memory-side cache is in front of one NUMA node, whose PUs are
 * known. */
static int read_groupings(struct reader *reader)
{
    struct topology_groupings *groupings = &reader->groupings;
    static const char dies[] = CPU "/cpu%u/topology/die_cpus_list";
    TRY(read_groups(reader, &groupings->of[groupings->count++], dies, dies));
    return read_groups(reader, &groupings->of[groupings->count++],
                       CPU "/cpu%u/topology/cluster_cpus_list", NULL);
}

/* -- caches -- */

/* "48K", "32768K", "1M". */
static uint64_t size_of_text(const char *text)
{
    char *end;
    uint64_t size = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return size <= (UINT64_MAX >> 1 >> shift) ? size << shift : 0;
}

/* Size, line and ways of cache `index` of `pu` into known->kind. Attributes that a kernel does not
 * tell stay 0. */
static void read_kind(struct reader *reader, struct cache_index *known, uint32_t pu, uint32_t index)
{
    struct sysfs *fs = &reader->fs;
    bool said = profile_sysfs_read(fs, CPU "/cpu%u/cache/index%u/size", pu, index) == 0;
    uint64_t size = said ? size_of_text(fs->text) : 0;
    if (known->kind.level && size == known->kind.size_bytes) {
        return;
    }
    known->kind.size_bytes = size;
    known->kind.line_bytes = known->kind.associativity = 0;
    (void)profile_sysfs_read_u32(fs, &known->kind.line_bytes,
                                 CPU "/cpu%u/cache/index%u/coherency_line_size", pu, index);
    (void)profile_sysfs_read_u32(fs, &known->kind.associativity,
                                 CPU "/cpu%u/cache/index%u/ways_of_associativity", pu, index);
}

/* 0; 1: the PU has no such index; -errno. index3 of one PU has the same level and type as index3 of
 * another one: the kernel numbers them so (drivers/base/cacheinfo.c: by level, data before
 * instruction). */
static int read_cache(struct reader *reader, uint32_t pu, uint32_t index)
{
    struct cache_index *known = &reader->caches[index];
    struct sysfs *fs = &reader->fs;
    struct profile_set group;
    int rc = read_online(reader, &group, CPU "/cpu%u/cache/index%u/shared_cpu_list", pu, index);
    if (rc < 0) {
        return rc == -ENOENT || rc == -ENOTDIR ? 1 : rc;
    }
    uint32_t level = known->kind.level;
    if (!level) {
        rc = profile_sysfs_read(fs, CPU "/cpu%u/cache/index%u/type", pu, index);
        known->instruction = rc == 0 && strcmp(fs->text, "Instruction") == 0;
        if (rc == 0) {
            rc = profile_sysfs_read_u32(fs, &level, CPU "/cpu%u/cache/index%u/level", pu, index);
        }
    }
    if (rc < 0 || known->instruction || !profile_set_has(&group, pu)) {
        profile_set_free(&group);
        return rc == -ENOMEM ? rc : 0; /* a cache without any attribute is not described */
    }
    read_kind(reader, known, pu, index);
    known->kind.level = level;
    return profile_topology_add_cache(reader->node_class, &known->kind, group);
}

/* Does an earlier PU share its cache of this index with it, or is that one of instructions? */
static bool is_read(const struct reader *reader, const struct cache_index *known, uint32_t pu)
{
    bool read = known->instruction;
    for (size_t i = 0; !read && i < reader->node_class->cache_count; i++) {
        const struct profile_cache *cache = &reader->node_class->caches[i];
        read = cache->level == known->kind.level && profile_set_has(&cache->pus, pu);
    }
    return read;
}

/* The caches of one PU. If no PU so far has a cache of that index, a PU that shares all lower
 * caches with earlier ones has none either. */
static int read_caches_of(struct reader *reader, uint32_t pu)
{
    bool alone = false; /* has it a cache that was not known before? */
    int rc = 0;
    for (uint32_t index = 0; rc == 0 && index < CACHE_INDEX_LIMIT; index++) {
        const struct cache_index *known = &reader->caches[index];
        bool seen = is_read(reader, known, pu);
        if (index && !alone && !known->kind.level && !known->instruction) {
            break;
        }
        alone = alone || !seen;
        rc = seen ? 0 : read_cache(reader, pu, index);
    }
    return rc < 0 ? rc : 0;
}

static int read_caches(struct reader *reader)
{
    const struct profile_set *pus = &reader->node_class->pus;
    for (size_t i = 0; i < pus->count; i++) {
        TRY(read_caches_of(reader, pus->ids[i]));
    }
    return 0;
}

/* -- NUMA nodes -- */

/* "…MemTotal:  8061300 kB" */
static uint64_t memory_total(const char *text)
{
    const char *at = strstr(text, "MemTotal:");
    return at ? strtoull(at + strlen("MemTotal:"), NULL, 10) << 10 : 0;
}

/* A kernel without NUMA support has one node that it does not list. */
static int add_only_numa(struct reader *reader)
{
    struct profile_set pus;
    uint64_t memory =
        profile_sysfs_read(&reader->fs, "/proc/meminfo") == 0 ? memory_total(reader->fs.text) : 0;
    TRY(profile_set_copy(&reader->node_class->pus, &pus));
    return profile_topology_add_numa(reader->node_class,
                                     (struct profile_numa){.pus = pus, .memory_bytes = memory});
}

#define TIERS "/sys/devices/virtual/memory_tiering"

/* The PUs next to a node that has only memory: those of the nodes that HMAT names as its
 * initiators. `pus` stays empty where it names none. */
static int read_initiators(struct reader *reader, const struct profile_set *nodes, uint32_t node,
                           struct profile_set *pus)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < nodes->count; i++) {
        struct profile_set here, both;
        if (read_online(reader, &here, NODE "/node%u/access0/initiators/node%u/cpulist", node,
                        nodes->ids[i]) < 0) {
            continue;
        }
        rc = profile_set_union(pus, &here, &both);
        profile_set_free(&here);
        if (rc == 0) {
            profile_set_free(pus);
            *pus = both;
        }
    }
    return rc;
}

/* Names the nodes of a tier after it. 0 or -ENOMEM. */
static int name_tier(struct profile_class *node_class, const struct profile_set *nodes,
                     const char *tier)
{
    for (size_t i = 0; i < node_class->numa_count; i++) {
        struct profile_numa *numa = &node_class->numa[i];
        if (profile_set_has(nodes, numa->os_index)) {
            free(numa->kind);
            numa->kind = strdup(tier);
            if (!numa->kind) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

/* The tiers of Linux 6.1 and later are numbered from the fastest, with gaps: a folder each. A
 * machine with a single tier has no kinds of memory, as hwloc sees it too. */
static int read_tiers(struct reader *reader, const struct profile_set *known)
{
    struct sysfs *fs = &reader->fs;
    struct profile_class *node_class = reader->node_class;
    size_t tiers = 0;
    int rc = 0;
    snprintf(fs->path, sizeof fs->path, "%s" TIERS, fs->root);
    DIR *folder = opendir(fs->path);
    for (struct dirent *entry; rc == 0 && folder && (entry = readdir(folder));) {
        struct profile_set nodes;
        if (strncmp(entry->d_name, "memory_tier", strlen("memory_tier")) == 0 &&
            profile_sysfs_read_set(fs, &nodes, TIERS "/%.64s/nodelist", entry->d_name) == 0) {
            tiers += profile_set_overlaps(&nodes, known);
            rc = name_tier(node_class, &nodes, entry->d_name);
            profile_set_free(&nodes);
        }
    }
    if (folder) {
        closedir(folder);
    }
    for (size_t i = 0; tiers == 1 && i < node_class->numa_count; i++) {
        free(node_class->numa[i].kind);
        node_class->numa[i].kind = NULL;
    }
    return rc;
}

static int read_nodes(struct reader *reader, const struct profile_set *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        const uint32_t node = nodes->ids[i];
        struct profile_numa numa = {.os_index = node};
        uint32_t bandwidth = 0;
        TRY(read_online(reader, &numa.pus, NODE "/node%u/cpulist", node, 0));
        bool said = profile_sysfs_read(&reader->fs, NODE "/node%u/meminfo", node) == 0;
        numa.memory_bytes = said ? memory_total(reader->fs.text) : 0;
        if (nodes->count > 1) {
            (void)profile_sysfs_read_u32(&reader->fs, &bandwidth,
                                         NODE "/node%u/access0/initiators/read_bandwidth", node);
            numa.declared_bytes_per_s = bandwidth * TOPOLOGY_MIB_PER_S;
        }
        if ((numa.pus.count == 0 && read_initiators(reader, nodes, node, &numa.pus) < 0) ||
            profile_topology_add_numa(reader->node_class, numa) < 0) {
            return -ENOMEM;
        }
    }
    return nodes->count == 1 ? 0 : read_tiers(reader, nodes);
}

static int read_numa(struct reader *reader)
{
    FREED_BY(profile_set_free) struct profile_set nodes = {0};
    const int rc = profile_sysfs_read_set(&reader->fs, &nodes, NODE "/online");
    if (rc < 0) {
        return rc == -ENOMEM ? rc : add_only_numa(reader);
    }
    profile_topology_drop_device_nodes(&reader->fs, &nodes);
    return read_nodes(reader, &nodes);
}

/* -- kinds -- */

/* Intel's hybrid processors: one perf device for each kind. 1: not one. */
static int read_hybrid(struct reader *reader)
{
    static const char *const devices[] = {"/sys/devices/cpu_atom/cpus",
                                          "/sys/devices/cpu_core/cpus"};
    for (uint32_t kind = 0; kind < 2; kind++) {
        struct profile_set pus;
        int rc = read_online(reader, &pus, devices[kind], 0, 0);
        if (rc < 0) {
            return rc == -ENOMEM ? rc : 1;
        }
        if (pus.count) {
            TRY(profile_topology_add_kind(reader->node_class, (struct profile_kind){kind, pus}));
        }
    }
    return 0;
}

/* The PUs of one capacity, and the next higher one; 0: there is none. */
static size_t members_of(const struct profile_set *pus, const uint32_t *capacity, uint32_t wanted,
                         uint32_t *members, uint32_t *next)
{
    size_t count = 0;
    *next = 0;
    for (size_t i = 0; i < pus->count; i++) {
        if (capacity[i] == wanted) {
            members[count++] = pus->ids[i];
        } else if (capacity[i] > wanted && (!*next || capacity[i] < *next)) {
            *next = capacity[i];
        }
    }
    return count;
}

/* One kind for each capacity, the least capable first; none when all are alike. `members` is room
 * for the PUs of one. 0 or -ENOMEM. */
static int add_capacities(struct reader *reader, const uint32_t *capacity, uint32_t *members)
{
    struct profile_class *of = reader->node_class;
    uint32_t wanted = 0, next = 0;
    do {
        size_t count = members_of(&of->pus, capacity, wanted, members, &next);
        struct profile_kind kind = {.efficiency = (uint32_t)of->kind_count};
        if (count > 0 && count < of->pus.count) {
            TRY(profile_set_from_array(members, count, &kind.pus));
            TRY(profile_topology_add_kind(of, kind));
        }
        wanted = next;
    } while (next);
    return 0;
}

/* Arm: relative computing capacity of each PU, 1024 for the biggest. Most machines do not have the
 * file. */
static int read_kinds(struct reader *reader)
{
    const int rc = read_hybrid(reader);
    if (rc <= 0) {
        return rc;
    }
    const struct profile_set *pus = &reader->node_class->pus;
    FREED uint32_t *capacity = calloc(pus->count, 2 * sizeof *capacity);
    if (!capacity) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < pus->count; i++) {
        if (profile_sysfs_read_u32(&reader->fs, &capacity[i], CPU "/cpu%u/cpu_capacity",
                                   pus->ids[i]) < 0) {
            return 0;
        }
    }
    return add_capacities(reader, capacity, capacity + pus->count);
}

static int read_class(struct reader *reader)
{
    struct profile_class *node_class = reader->node_class;
    TRY(profile_sysfs_read_set(&reader->fs, &node_class->pus, CPU "/online"));
    TRY(node_class->pus.count ? 0 : -ENODATA);
    TRY(read_groups(reader, &node_class->cores, CPU "/cpu%u/topology/core_cpus_list",
                    CPU "/cpu%u/topology/thread_siblings_list"));
    TRY(read_groups(reader, &node_class->packages, CPU "/cpu%u/topology/package_cpus_list",
                    CPU "/cpu%u/topology/core_siblings_list"));
    TRY(read_caches(reader));
    TRY(read_groupings(reader));
    TRY(read_numa(reader));
    return read_kinds(reader);
}

int profile_from_sysfs(const char *root, struct servet_profile **out, struct servet_error *error)
{
    FREED struct reader *reader = malloc(sizeof *reader);
    struct servet_profile *profile = profile_topology_new();
    if (!reader || !profile) {
        profile_free(profile);
        return profile_error(error, -ENOMEM, "topology: %s", strerrordesc_np(ENOMEM));
    }
    memset(reader, 0, offsetof(struct reader, fs));
    reader->fs.root = root;
    reader->node_class = &profile->classes[0];
    int rc = read_class(reader);
    rc = rc < 0 ? profile_error(error, rc, "%s: %s", reader->fs.path, strerrordesc_np(-rc))
                : profile_topology_finish(profile, &reader->groupings, error);
    profile_topology_groupings_free(&reader->groupings);
    if (rc < 0) {
        profile_free(profile);
        return rc;
    }
    *out = profile;
    return 0;
}
