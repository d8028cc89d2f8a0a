/* A program that chooses the tile of a matrix product from the effective cache sizes.
 *
 *   tile_size [PROFILE]     without a profile this machine's, or what the operating system declares
 *
 * Three tiles (of A, B and C) fill one PU's share of its L2 cache: the effective size, or its least
 * where it is not settled, divided by the PUs that share it, by three and by the bytes of a number,
 * is the square of the tile. Build it with
 *   cc tile_size.c $(pkg-config --cflags --libs servet) -lm
 */
#include <math.h>
#include <servet.h>
#include <stdio.h>

#define LEVEL 2     /* the last level that most machines give each core alone */
#define FALLBACK 64 /* nothing is known of that level */

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

int main(int argc, char **argv)
{
    servet_profile *profile;
    struct servet_error error;
    const char *path = argc > 1 ? argv[1] : NULL;
    int rc = servet_profile_open(path, &profile, &error);
    if (rc < 0 && (path || servet_topology_open(&profile, &error) < 0)) {
        fprintf(stderr, "tile_size: %s\n", error.text);
        return 2;
    }
    uint32_t pu = 0;
    servet_pus(profile, &pu, 1);
    printf("L%d of PU %u: %s %llu bytes, shared by %u: tile %zu\n", LEVEL, pu,
           servet_measured(profile) ? "effective" : "declared",
           (unsigned long long)size_of(profile, pu), servet_cache_sharers(profile, LEVEL, pu),
           choose_tile(profile, pu));
    servet_profile_close(profile);
    return 0;
}
