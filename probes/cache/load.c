/* One load: what every figure of this folder is made of. */
#include "probes/cache/probe.h"

/* Nodes are CACHE_NODE_LARGE from here on, where building the cycle would cost more than measuring
 * it. */
static const size_t large_from = 16u << 20;

int probe_cache_load(struct probe *probe, uint32_t pu, struct machine_traversal what,
                     double *seconds)
{
    what.warm_passes = MACHINE_WARM_PASSES;
    what.seed = what.seed ? what.seed : ++probe->seed;
    return probe_machine_traverse(probe->machine, &what, &pu, 1, seconds);
}

int probe_cache_point(struct probe *probe, uint32_t pu, size_t bytes, uint64_t seed,
                      double *seconds)
{
    const struct machine_traversal what = {.bytes = bytes,
                                           .stride_bytes = bytes >= large_from ? CACHE_NODE_LARGE
                                                                               : MACHINE_NODE_BYTES,
                                           .pages = machine_pages(probe->machine),
                                           .seed = seed};
    return probe_cache_load(probe, pu, what, seconds);
}
