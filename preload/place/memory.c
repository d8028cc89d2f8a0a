/* Memory policies: system calls only, libnuma's meanings. */
#include "preload/place/memory.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "preload/node/log.h"
#include "profile/base/syscall.h"
#include "profile/scope.h"
#include "profile/tiers.h"
#include "profile/topology/topology.h"

/* The kernel's, by position of the node: Linux 6.9 and later have them, and only root sets them.
 * NULL: it does not weigh. */
static uint32_t *read_weights(const struct pin_memory_request *request)
{
    const struct profile_class *node_class = request->node_class;
    FREED uint32_t *weights = calloc(node_class->numa_count + 1, sizeof *weights);
    struct sysfs fs;
    fs.root = request->root ? request->root : "";
    for (size_t i = 0; weights && i < node_class->numa_count; i++) {
        if (profile_sysfs_read_u32(&fs, &weights[i],
                                   "/sys/kernel/mm/mempolicy/weighted_interleave/node%u",
                                   node_class->numa[i].os_index) < 0) {
            return NULL;
        }
    }
    return TAKE(weights);
}

/* Unknown bandwidths are all 0, and no weights deal as they do. */
static void weigh_nodes(const struct pin_memory_request *request, const struct profile_tiers *tiers,
                        const uint32_t *chosen, size_t count, struct pin_memory *out)
{
    FREED uint32_t *weights = NULL;
    out->mode = MPOL_INTERLEAVE;
    if (count == 0 || profile_tiers_dealt(tiers, NULL, chosen, count)) {
        return;
    }
    if (tiers->nodes[chosen[0]].weight == 0) {
        out->instead = "bandwidths of the nodes are not known";
    } else if (!(weights = read_weights(request))) {
        out->instead = "this kernel has no weighted interleave";
    } else if (!profile_tiers_dealt(tiers, weights, chosen, count)) {
        out->instead = "/sys/kernel/mm/mempolicy/weighted_interleave has other weights";
    } else {
        out->mode = PIN_WEIGHTED_INTERLEAVE;
    }
}

static int decide_membind(enum pin_membind membind, const struct pin_memory_request *request,
                          const struct profile_tiers *tiers, struct pin_memory *out)
{
    const bool by_tier = membind == PIN_MEMBIND_FAST || membind == PIN_MEMBIND_CAPACITY;
    const uint32_t tier = !by_tier                      ? PROFILE_NO_TIER
                          : membind == PIN_MEMBIND_FAST ? 0
                                                        : tiers->capacity;
    out->no_tier = by_tier && tiers->count < 2;
    if (out->no_tier) {
        return 0;
    }
    FREED uint32_t *chosen = calloc(request->node_class->numa_count + 1, sizeof *chosen);
    if (!chosen) {
        return -ENOMEM;
    }
    size_t count = profile_tiers_near(request->node_class, tiers, tier, request->own, chosen);
    for (size_t i = 0; i < count; i++) {
        profile_mask_add(&out->nodes, request->node_class->numa[chosen[i]].os_index);
    }
    profile_mask_format(&out->nodes, out->text, sizeof out->text);
    if (membind == PIN_MEMBIND_LOCAL) {
        out->mode = MPOL_LOCAL;
    } else if (membind == PIN_MEMBIND_WEIGHTED) {
        weigh_nodes(request, tiers, chosen, count, out);
    } else {
        out->mode = by_tier ? PIN_PREFERRED_MANY : MPOL_INTERLEAVE;
    }
    if (by_tier) {
        out->share_bytes = profile_tier_bytes(request->node_class, tiers, tier) /
                           (request->ranks ? request->ranks : 1);
    }
    return 0;
}

int pin_memory_plan(enum pin_membind membind, const struct pin_memory_request *request,
                    struct pin_memory *out)
{
    FREED_BY(profile_tiers_free) struct profile_tiers tiers = {0};
    *out = (struct pin_memory){.mode = MPOL_DEFAULT};
    if (membind == PIN_MEMBIND_NONE || membind == PIN_MEMBIND_UNKNOWN) {
        return 0;
    }
    TRY(profile_tiers_make(request->node_class, &tiers));
    return decide_membind(membind, request, &tiers, out);
}

/* The number of bits that the kernel reads: it takes one off. MAX_NUMNODES is at most 1 << 10 in
 * every configuration of it. */
#define NODE_BITS (1024 + 1)

static long set_policy(int mode, const struct profile_mask *nodes)
{
    return profile_syscall(SYS_set_mempolicy, mode, (long)nodes, nodes ? NODE_BITS : 0, 0, 0, 0);
}

/* Kernels before 5.15 prefer one node alone: the first. */
static long prefer(const struct profile_mask *nodes)
{
    struct profile_mask first = {0};
    long code = set_policy(PIN_PREFERRED_MANY, nodes);
    if (code != -EINVAL) {
        return code;
    }
    profile_mask_add(&first, profile_mask_next(nodes, 0));
    return set_policy(MPOL_PREFERRED, &first);
}

/* Pages that are there already move, from everywhere, which the kernel reads as "from nodes that
 * exist", to the plan's nodes. */
static void move_here(const struct profile_mask *nodes)
{
    struct profile_mask all;
    profile_mask_all(&all);
    long code = profile_syscall(SYS_migrate_pages, 0, NODE_BITS, (long)&all, (long)nodes, 0, 0);
    if (code < 0) {
        pin_failure("SERVET_MEMBIND=local: migrate_pages: %s", strerrordesc_np((int)-code));
    }
}

static void say_put(const char *word, const struct pin_memory *memory)
{
    char share[48] = "";
    if (memory->share_bytes) {
        snprintf(share, sizeof share, ", its share is %llu MiB",
                 (unsigned long long)memory->share_bytes >> 20);
    }
    pin_log(true, "memory %s, nodes %s%s%s%s", word, memory->text, share,
            memory->instead ? ", as plain interleave: " : "",
            memory->instead ? memory->instead : "");
}

static long set_as_planned(const struct pin_memory *memory)
{
    if (memory->mode == MPOL_LOCAL) {
        return set_policy(MPOL_LOCAL, NULL);
    }
    return memory->mode == PIN_PREFERRED_MANY ? prefer(&memory->nodes)
                                              : set_policy(memory->mode, &memory->nodes);
}

void pin_memory_put(const struct pin_options *options, const struct pin_memory *memory, bool speaks)
{
    if (options->membind == PIN_MEMBIND_UNKNOWN && speaks) {
        pin_failure("SERVET_MEMBIND: " PIN_MEMBIND_EXPECTED);
    }
    if (options->membind == PIN_MEMBIND_UNKNOWN || options->membind == PIN_MEMBIND_NONE) {
        return;
    }
    const bool local = memory->mode == MPOL_LOCAL;
    const char *word = pin_membind_words[options->membind];
    if (memory->no_tier && speaks) {
        pin_failure("SERVET_MEMBIND=%s: " PIN_MEMORY_ALIKE, word);
    }
    if (memory->no_tier || (!local && !*memory->text)) {
        return;
    }
    long code = set_as_planned(memory);
    if (code < 0) {
        pin_failure("SERVET_MEMBIND=%s: set_mempolicy: %s", word, strerrordesc_np((int)-code));
        return;
    }
    if (local && *memory->text) {
        move_here(&memory->nodes);
    }
    if (options->verbose) {
        say_put(word, memory);
    }
}

uint64_t pin_memory_peak(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) < 0 ? 0 : (uint64_t)usage.ru_maxrss << 10;
}

void pin_memory_say_peak(const struct pin_options *options, const struct pin_memory *memory)
{
    const unsigned long long peak = pin_memory_peak(), share = memory->share_bytes;
    pin_log(options->verbose && share && peak > share,
            "%llu MiB do not fit into its share of the %s memory, %llu MiB", peak >> 20,
            pin_membind_words[options->membind], share >> 20);
}
