/* Where a latency curve ends. What is declared says how far to look at first; what nobody declared,
 * or declared too small, shows in one working set several times larger: where loads take longer
 * there, the curve has not come to memory, and goes on. One look costs less than the curve up to
 * there would on each of the many machines where nothing comes. */
#include "probes/cache/probe.h"

#include <math.h>

static const size_t largest_bytes =
    (size_t)768
    << 20; /* three times the largest L3 slice group built so far (256 MiB of one CCD) */
static const size_t least_span =
    64u << 20; /* measure at least up to here: some L3 is effective at twice its declared size */
/* Times the largest declared cache: the plateau of memory must be seen. A look goes so much
 * farther: what is declared half as large, or not at all, has its plateau of memory there. */
static const double farther = 3;
/* So many times as long is no plateau yet. A smaller rise than a level's, since a knee of which
 * only the foot is seen is told too small: 71,680 KiB as 61,440 where it was 1.17 times, 53,248 as
 * 44,032 at 1.21. Page walks of 4 KiB pages make up to 1.13 of a virtual Zen 4. */
static const double no_plateau = 1.15;

/* Interference only slows down: of so many samples the fastest counts. */
enum { FAR_SAMPLES = 3 };

/* The pool is larger than the working set. */
static size_t memory_for(const struct machine *machine)
{
    return machine->memory_limit_bytes / 2;
}

/* The declared sizes only say how far to look; without any, as far as memory lets us. */
size_t probe_cache_end(const struct probe *probe, bool *cut_short)
{
    const struct machine *machine = probe->machine;
    double declared = farther * (double)probe_cache_declared_largest(probe_cache_declared(machine));
    size_t wanted = declared > 0 ? (size_t)fmax(declared, (double)least_span) : largest_bytes / 2;
    wanted = wanted < largest_bytes ? wanted : largest_bytes;
    wanted = probe->largest_bytes ? probe->largest_bytes : wanted;
    *cut_short = memory_for(machine) < wanted;
    return *cut_short ? memory_for(machine) : wanted;
}

size_t probe_cache_far(const struct probe *probe, size_t end)
{
    const double most = fmin((double)largest_bytes, (double)memory_for(probe->machine));
    const double far = fmin(farther * (double)end, most);
    return probe->largest_bytes > 0 || far <= (double)end ? 0 : (size_t)far;
}

/* The fastest of some loads in so many bytes, or the least that translation takes there. */
static int least_of(struct probe *probe, uint32_t pu, size_t bytes, const struct cache_far *beyond,
                    double *seconds)
{
    *seconds = INFINITY;
    for (int i = 0; i < FAR_SAMPLES; i++) {
        double one;
        TRY(beyond ? probe_tlb_extra(probe, pu, bytes, beyond->line_bytes, &one)
                   : probe_cache_point(probe, pu, bytes, 0, &one));
        *seconds = fmin(*seconds, one);
    }
    return 0;
}

/* Page tables fall out of the caches where much memory is visited, and TLBs reach as far as they
 * do: what translation takes longer than up to the end is no level's. */
int probe_cache_goes_on(const struct probe *probe, uint32_t pu, const struct cache_far *far,
                        bool *goes_on)
{
    double end_s, far_s, end_tlb_s = 0, far_tlb_s = 0;
    struct probe apart = *probe; /* whose seeds are others than those that count up */
    apart.seed = (probe->seed << 32) - far->end;
    TRY(least_of(&apart, pu, far->end, NULL, &end_s));
    TRY(least_of(&apart, pu, far->far, NULL, &far_s));
    if (far_s >= no_plateau * end_s) {
        TRY(least_of(&apart, pu, far->end, far, &end_tlb_s));
        TRY(least_of(&apart, pu, far->far, far, &far_tlb_s));
    }
    *goes_on = far_s - fmax(0, far_tlb_s - end_tlb_s) >= no_plateau * end_s;
    return 0;
}
