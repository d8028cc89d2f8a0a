/* Tiers of memory: gaps in what NUMA nodes do. */
#include "profile/tiers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/scope.h"

/* Memory of one kind differs by a quarter between nodes (channels left empty, noise); HBM has twice
 * the bandwidth of DRAM and more, CXL half of it or twice the latency. */
#define APART 1.5

/* In the order in which they cut. One worker does not fill HBM, and all together do. */
enum figure { TOGETHER, WORKER, LATENCY, DECLARED, KERNEL, FIGURES };

/* Higher is faster in each; 0: not known. */
struct speeds {
    size_t node; /* position in profile_class.numa */
    double of[FIGURES];
};

/* The kernel numbers its tiers from the fastest. */
static double kernel_speed(const char *kind)
{
    static const char prefix[] = "memory_tier";
    unsigned long number = kind && strncmp(kind, prefix, sizeof prefix - 1) == 0
                               ? strtoul(kind + sizeof prefix - 1, NULL, 10)
                               : 0;
    return number ? 1.0 / (double)number : 0;
}

static struct speeds speeds_of(const struct profile_class *node_class, size_t node)
{
    const struct profile_numa *numa = &node_class->numa[node];
    struct speeds speeds = {.node = node};
    speeds.of[TOGETHER] = numa->together_bytes_per_s;
    speeds.of[DECLARED] = numa->declared_bytes_per_s;
    speeds.of[KERNEL] = kernel_speed(numa->kind);
    for (size_t i = 0; i < node_class->numa_access_count; i++) {
        const struct profile_numa_access *row = &node_class->numa_access[i];
        if (row->node != numa->os_index) {
            continue;
        }
        double pace = row->seconds_per_access > 0 ? 1 / row->seconds_per_access : 0;
        speeds.of[WORKER] =
            row->bytes_per_s > speeds.of[WORKER] ? row->bytes_per_s : speeds.of[WORKER];
        speeds.of[LATENCY] = pace > speeds.of[LATENCY] ? pace : speeds.of[LATENCY];
    }
    return speeds;
}

/* From the highest on. */
static void sort_by(struct speeds *speeds, size_t count, enum figure figure)
{
    for (size_t i = 1; i < count; i++) {
        struct speeds moved = speeds[i];
        size_t at = i;
        for (; at > 0 && speeds[at - 1].of[figure] < moved.of[figure]; at--) {
            speeds[at] = speeds[at - 1];
        }
        speeds[at] = moved;
    }
}

/* How many times the slowest the fastest is; 0: not known of all. */
static double range_of(const struct speeds *speeds, size_t count, enum figure figure)
{
    double most = 0, least = 0;
    for (size_t i = 0; i < count; i++) {
        double speed = speeds[i].of[figure];
        most = speed > most ? speed : most;
        least = i == 0 || speed < least ? speed : least;
    }
    return least > 0 ? most / least : 0;
}

/* Cuts a group of nodes at each gap of a figure, and the parts by the next one. A figure that is
 * not known of all of them tells nothing. */
static void cut(struct speeds *speeds, size_t count, enum figure figure, struct profile_tiers *out)
{
    size_t begin = 0;
    if (figure == FIGURES) {
        for (size_t i = 0; i < count; i++) {
            out->nodes[speeds[i].node].tier = out->count;
        }
        out->count++;
        return;
    }
    const bool known = range_of(speeds, count, figure) > 0;
    if (known) {
        sort_by(speeds, count, figure);
    }
    for (size_t i = 1; i <= count; i++) {
        if (i == count || (known && speeds[i - 1].of[figure] >= APART * speeds[i].of[figure])) {
            cut(speeds + begin, i - begin, figure + 1, out);
            begin = i;
        }
    }
}

static void weigh_speeds(const struct speeds *speeds, size_t count, struct profile_tiers *out)
{
    double worker = range_of(speeds, count, WORKER), declared = range_of(speeds, count, DECLARED);
    enum figure figure = range_of(speeds, count, TOGETHER) > 0 ? TOGETHER
                         : declared > worker                   ? DECLARED
                                                               : WORKER;
    for (size_t i = 0; i < count && range_of(speeds, count, figure) > 0; i++) {
        out->nodes[speeds[i].node].weight = speeds[i].of[figure];
    }
}

uint64_t profile_tier_bytes(const struct profile_class *node_class,
                            const struct profile_tiers *tiers, uint32_t tier)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < node_class->numa_count; i++) {
        bytes += tiers->nodes[i].tier == tier ? node_class->numa[i].memory_bytes : 0;
    }
    return bytes;
}

int profile_tiers_make(const struct profile_class *node_class, struct profile_tiers *out)
{
    const size_t most = node_class->numa_count + 1;
    struct profile_tiers tiers = {.nodes = calloc(most, sizeof *tiers.nodes)};
    FREED struct speeds *speeds = calloc(most, sizeof *speeds);
    size_t count = 0;
    if (!tiers.nodes || !speeds) {
        free(tiers.nodes);
        return -ENOMEM;
    }
    for (size_t i = 0; i < node_class->numa_count; i++) {
        tiers.nodes[i].tier = PROFILE_NO_TIER;
        if (node_class->numa[i].memory_bytes) {
            speeds[count++] = speeds_of(node_class, i);
        }
    }
    weigh_speeds(speeds, count, &tiers);
    if (count) {
        cut(speeds, count, 0, &tiers);
    }
    for (uint32_t tier = 1; tier < tiers.count; tier++) {
        bool larger = profile_tier_bytes(node_class, &tiers, tier) >
                      profile_tier_bytes(node_class, &tiers, tiers.capacity);
        tiers.capacity = !tiers.capacity || larger ? tier : tiers.capacity;
    }
    *out = tiers;
    return 0;
}

void profile_tiers_free(struct profile_tiers *tiers)
{
    free(tiers->nodes);
    tiers->nodes = NULL;
}

static bool is_near(const struct profile_numa *numa, const struct profile_mask *pus)
{
    for (size_t i = 0; i < numa->pus.count; i++) {
        if (profile_mask_has(pus, numa->pus.ids[i])) {
            return true;
        }
    }
    return false;
}

size_t profile_tiers_near(const struct profile_class *node_class, const struct profile_tiers *tiers,
                          uint32_t tier, const struct profile_mask *pus, uint32_t *out)
{
    const bool any = tier == PROFILE_NO_TIER;
    size_t count = 0;
    for (int far = 0; count == 0 && far <= !any; far++) {
        for (size_t i = 0; i < node_class->numa_count; i++) {
            if ((any || tiers->nodes[i].tier == tier) &&
                (far || is_near(&node_class->numa[i], pus))) {
                out[count++] = (uint32_t)i;
            }
        }
    }
    return count;
}

/* Weights are small whole numbers: each node's part of all pages may be off by this. */
#define PART_OFF 0.05

bool profile_tiers_dealt(const struct profile_tiers *tiers, const uint32_t *weights,
                         const uint32_t *positions, size_t count)
{
    double all = 0, all_weights = 0;
    for (size_t i = 0; i < count; i++) {
        all += tiers->nodes[positions[i]].weight;
        all_weights += weights ? weights[positions[i]] : 1;
    }
    for (size_t i = 0; i < count; i++) {
        double part = (weights ? weights[positions[i]] : 1) / all_weights,
               wanted = tiers->nodes[positions[i]].weight / all;
        if (!(part - wanted < PART_OFF && wanted - part < PART_OFF)) {
            return false;
        }
    }
    return true;
}

const char *profile_tier_word(const struct profile_tiers *tiers, uint32_t tier)
{
    if (tiers->count < 2 || tier >= tiers->count) {
        return "";
    }
    return tier == 0 ? "fast" : tier == tiers->capacity ? "capacity" : "";
}
