// A program that tunes itself: a matrix product whose tile is chosen from the effective cache sizes, as tile_size.c, in
// C++ without extensions.
//
//   tile_size_cpp [PROFILE [N]]
#include <servet.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace
{
constexpr std::uint32_t level = 2;
constexpr std::size_t fallback = 64;
constexpr double agreement = 1e-9; // sums of N products of numbers below 1, in another order

struct closes {
    void operator()(servet_profile *profile) const { servet_profile_close(profile); }
};

std::size_t tile_of(const servet_profile &profile)
{
    std::uint32_t pu = 0;
    servet_pus(&profile, &pu, 1);
    const std::uint32_t sharers = std::max(servet_cache_sharers(&profile, level, pu), 1U);
    std::uint64_t bytes = servet_cache_bytes(&profile, level, pu);
    if (bytes == 0)
        servet_cache_interval(&profile, level, pu, &bytes, nullptr);
    const auto root = static_cast<std::size_t>(std::sqrt(static_cast<double>(bytes) / sharers / (3 * sizeof(double))));
    const std::size_t tile = root < 1 ? fallback : root;
    std::printf("L%u, shared by %u: tile %zu\n", level, sharers, tile);
    return tile;
}

using matrix = std::vector<double>;

matrix multiply(const matrix &a, const matrix &b, std::size_t n, std::size_t tile, double &seconds)
{
    matrix c(n * n);
    const auto begun = std::chrono::steady_clock::now();
    for (std::size_t i0 = 0; i0 < n; i0 += tile)
        for (std::size_t k0 = 0; k0 < n; k0 += tile)
            for (std::size_t j0 = 0; j0 < n; j0 += tile)
                for (std::size_t i = i0; i < std::min(i0 + tile, n); i++)
                    for (std::size_t j = j0; j < std::min(j0 + tile, n); j++)
                        for (std::size_t k = k0; k < std::min(k0 + tile, n); k++)
                            c[i * n + j] += a[i * n + k] * b[k * n + j];
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return c;
}
} // namespace

int main(int argc, char **argv)
{
    const std::size_t n = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 200;
    servet_profile *opened = nullptr;
    servet_error error = {};
    if (n < 1 || n > 4096) {
        std::fprintf(stderr, "tile_size_cpp: expected N from 1 to 4096\n");
        return 2;
    }
    const char *path = argc > 1 ? argv[1] : nullptr;
    const int status = servet_profile_open(path, &opened, &error);
    if (status < 0 && (path || servet_topology_open(&opened, &error) < 0)) {
        std::fprintf(stderr, "tile_size_cpp: %s\n", error.text);
        return 2;
    }
    const std::unique_ptr<servet_profile, closes> profile(opened);
    matrix a(n * n), b(n * n);
    for (std::size_t i = 0; i < n * n; i++) {
        a[i] = 1 / (1 + static_cast<double>(i % 17));
        b[i] = 1 / (1 + static_cast<double>(i % 23));
    }
    double tiled_s = 0, plain_s = 0;
    const matrix tiled = multiply(a, b, n, tile_of(*profile), tiled_s);
    const matrix plain = multiply(a, b, n, n, plain_s);
    for (std::size_t i = 0; i < n * n; i++) {
        if (std::abs(tiled[i] - plain[i]) > agreement * std::abs(plain[i])) {
            std::fprintf(stderr, "tile_size_cpp: WRONG\n");
            return 1;
        }
    }
    std::printf("%zu x %zu: the same as without tiles, which takes %.2f times as long\n", n, n, plain_s / tiled_s);
    return 0;
}
