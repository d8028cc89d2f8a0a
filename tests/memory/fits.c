/* Fits the caches of a machine of two levels, and prints what it finds, always the same: under
 * `failing` what does it print where memory runs out? Status 1 and a line: there was none. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probes/cache/fit.h"

enum { POINTS_MAX = 96, KIB = 1024 };

static const struct cache_shape shapes[] = {
    {48 * KIB, 12, CACHE_LRU, 0, 0},
    {1024 * KIB, 16, CACHE_PLRU, 16, 0},
};
static const double beyond_ns[] = {4, 60};

/* Some points are 2 % late, so that the curve is made to rise. */
static double latency_s(double bytes, size_t point)
{
    double ns = 1.2, before = ns;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        ns += (beyond_ns[i] - before) * probe_cache_miss_share(&shapes[i], bytes);
        before = beyond_ns[i];
    }
    return ns * (point % 5 == 0 ? 1.02 : 1) * 1e-9;
}

static int fit(struct cache_level_fit levels[CACHE_LEVELS_MAX], size_t *count)
{
    static double bytes[POINTS_MAX], seconds[POINTS_MAX];
    struct cache_curve curve = {.bytes = bytes, .seconds = seconds, .page_bytes = 4096};
    for (double size = 4 * KIB; size <= 4.0 * KIB * KIB; size *= exp2(1.0 / 8)) {
        bytes[curve.count] = floor(size / 512) * 512;
        seconds[curve.count] = latency_s(bytes[curve.count], curve.count);
        curve.count++;
    }
    int rc = probe_cache_isotonic(seconds, NULL, curve.count);
    return rc < 0 ? rc : probe_cache_fit(&curve, levels, count, NULL);
}

int main(void)
{
    static char buffer[BUFSIZ];
    struct cache_level_fit levels[CACHE_LEVELS_MAX];
    size_t count;
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    int rc = fit(levels, &count);
    if (rc < 0) {
        fprintf(stderr, "%s\n", strerrordesc_np(-rc));
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        printf("%zu KiB in %zu to %zu, %.2f ns\n", (size_t)levels[i].shape.bytes / KIB,
               (size_t)levels[i].low_bytes / KIB, (size_t)levels[i].high_bytes / KIB,
               1e9 * levels[i].seconds);
    }
    return 0;
}
