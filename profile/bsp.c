#include "bsp.h"

#include <string.h>

static bool of_backend(const struct profile_bsp *bsp, const char *backend)
{
    return bsp->backend ? strcmp(bsp->backend, backend) == 0 : *backend == '\0';
}

static double mix(double a, double b, double part)
{
    return a + part * (b - a);
}

static double l_of(const struct profile_bsp *bsp)
{
    return bsp->l_flops < 0 ? bsp->t0_flops : bsp->l_flops;
}

static struct profile_bsp between(const struct profile_bsp *a, const struct profile_bsp *b, uint32_t processors)
{
    struct profile_bsp out = *a;
    double part =
        a->processors == b->processors ? 0 : (processors - a->processors) / (double)(b->processors - a->processors);
    out.processors = processors;
    out.r_flop_per_s = mix(a->r_flop_per_s, b->r_flop_per_s, part);
    out.g_flops = mix(a->g_flops, b->g_flops, part);
    out.g_packets_flops =
        a->g_packets_flops > 0 && b->g_packets_flops > 0 ? mix(a->g_packets_flops, b->g_packets_flops, part) : 0;
    out.l_flops = mix(l_of(a), l_of(b), part);
    out.t0_flops = mix(a->t0_flops, b->t0_flops, part);
    return out;
}

static bool at_of_backend(const struct servet_profile *profile, const char *backend, uint32_t processors,
                          struct profile_bsp *out)
{
    const struct profile_bsp *below = NULL, *above = NULL;
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        if (!of_backend(bsp, backend)) {
            continue;
        }
        if (bsp->processors <= processors && (!below || bsp->processors > below->processors)) {
            below = bsp;
        }
        if (bsp->processors >= processors && (!above || bsp->processors < above->processors)) {
            above = bsp;
        }
    }
    if (!below || !above) {
        return false;
    }
    *out = between(below, above, processors);
    return true;
}

bool profile_bsp_at(const struct servet_profile *profile, const char *backend, uint32_t processors,
                    struct profile_bsp *out)
{
    if (backend) {
        return at_of_backend(profile, backend, processors, out);
    }
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const char *name = profile->bsp[i].backend;
        if (at_of_backend(profile, name ? name : "", processors, out)) {
            return true;
        }
    }
    return false;
}
