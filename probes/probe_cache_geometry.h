/* What belongs to cache levels whose sizes and latencies are known: line size, ways, and the TLB of ordinary pages. */
#ifndef SERVET_PROBES_PROBE_CACHE_GEOMETRY_H
#define SERVET_PROBES_PROBE_CACHE_GEOMETRY_H

#include "probe_cache.h"

/* Line size of the first level, ways of the first two; what is not told has its reason. 0 or the machine's -errno. */
int probe_cache_geometry(struct probe *probe, uint32_t pu, struct probe_cache *out, struct servet_error *error);

/* What the cache sizes were measured in has its TLB measured already; where that was huge pages, programs may not have
 * them. So many passes, or fewer when late. 0 or the machine's -errno. */
int probe_cache_ordinary_tlb(struct probe *probe, uint32_t pu, int passes, struct probe_cache *out,
                             struct servet_error *error);

#endif
