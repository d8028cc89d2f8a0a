/* A program that tunes itself: a matrix product whose tile is chosen from the effective cache
 * sizes.
 *
 *   tile_size [PROFILE [N]]     without a profile this machine's, or what the operating system
 *                               declares; N x N matrices
 *
 * Three tiles (of A, B and C) fill one PU's share of its L2 cache: the effective size, or its least
 * where it is not settled, divided by the PUs that share it, by three and by the bytes of a number,
 * is the square of the tile. The result is compared with that of the plain product. Build it with
 *   cc tile_size.c $(pkg-config --cflags --libs servet) -lm
 */
#include "profile/scope.h"
#include <math.h>
#include <servet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEVEL 2     /* the last level that most machines give each core alone */
#define FALLBACK 64 /* nothing is known of that level */
#define N_MOST 4096
#define AGREEMENT 1e-9 /* sums of N products of numbers below 1, in another order */

static uint64_t size_of(const servet_profile *profile, uint32_t pu)
{
    uint64_t bytes = servet_cache_bytes(profile, LEVEL, pu), least = 0;
    if (bytes == 0) {
        servet_cache_interval(profile, LEVEL, pu, &least, NULL);
    }
    return bytes ? bytes : least;
}

static size_t choose_tile(const servet_profile *profile, uint32_t pu)
{
    uint32_t sharers = servet_cache_sharers(profile, LEVEL, pu);
    double bytes = (double)size_of(profile, pu);
    size_t tile = sharers ? (size_t)sqrt(bytes / sharers / (3 * sizeof(double))) : 0;
    return tile ? tile : FALLBACK;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Adds the product of `a` and `b` to `c`; the seconds that it takes. */
static double multiply(const double *a, const double *b, double *c, size_t n, size_t tile)
{
    clock_t begun = clock();
    for (size_t i0 = 0; i0 < n; i0 += tile) {
        for (size_t k0 = 0; k0 < n; k0 += tile) {
            for (size_t j0 = 0; j0 < n; j0 += tile) {
                for (size_t i = i0; i < least(i0 + tile, n); i++) {
                    for (size_t j = j0; j < least(j0 + tile, n); j++) {
                        for (size_t k = k0; k < least(k0 + tile, n); k++) {
                            c[i * n + j] += a[i * n + k] * b[k * n + j];
                        }
                    }
                }
            }
        }
    }
    return (double)(clock() - begun) / CLOCKS_PER_SEC;
}

static int agree(const double *x, const double *y, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fabs(x[i] - y[i]) > AGREEMENT * fabs(x[i])) {
            return 0;
        }
    }
    return 1;
}

static int compute(size_t n, size_t tile)
{
    FREED double *a = calloc(4 * n * n, sizeof *a);
    if (!a) {
        fputs("tile_size: out of memory\n", stderr);
        return 1;
    }
    double *b = a + n * n, *tiled = b + n * n, *plain = tiled + n * n;
    for (size_t i = 0; i < n * n; i++) {
        a[i] = 1 / (1 + (double)(i % 17));
        b[i] = 1 / (1 + (double)(i % 23));
    }
    double tiled_s = multiply(a, b, tiled, n, tile), plain_s = multiply(a, b, plain, n, n);
    int good = agree(tiled, plain, n * n);
    if (good) {
        printf("%zu x %zu: the same as without tiles, which takes %.2f times as long\n", n, n,
               plain_s / fmax(tiled_s, 1.0 / CLOCKS_PER_SEC));
    } else {
        printf("%zu x %zu: WRONG\n", n, n);
    }
    return !good;
}

int main(int argc, char **argv)
{
    servet_profile *profile;
    struct servet_error error;
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 200;
    if (n < 1 || n > N_MOST) {
        fprintf(stderr, "tile_size: expected N from 1 to %d\n", N_MOST);
        return 2;
    }
    const char *path = argc > 1 ? argv[1] : NULL;
    int rc = servet_profile_open(path, &profile, &error);
    if (rc < 0 && (path || servet_topology_open(&profile, &error) < 0)) {
        fprintf(stderr, "tile_size: %s\n", error.text);
        return 2;
    }
    uint32_t pu = 0;
    servet_pus(profile, &pu, 1);
    size_t tile = choose_tile(profile, pu);
    printf("L%d of PU %u: %s %llu bytes, shared by %u: tile %zu\n", LEVEL, pu,
           servet_measured(profile) ? "effective" : "declared",
           (unsigned long long)size_of(profile, pu), servet_cache_sharers(profile, LEVEL, pu),
           tile);
    servet_profile_close(profile);
    return compute(n, tile);
}
