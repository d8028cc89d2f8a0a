// Chooses a tile from the effective cache sizes, as tile_size.c, in C++ without extensions.
//
//   tile_size_cpp [PROFILE]
#include <servet.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>

namespace
{
constexpr std::uint32_t level = 2;
constexpr std::size_t fallback = 64;

struct closes {
    void operator()(servet_profile *profile) const { servet_profile_close(profile); }
};
} // namespace

int main(int argc, char **argv)
{
    servet_profile *opened = nullptr;
    servet_error error = {};
    const char *path = argc > 1 ? argv[1] : nullptr;
    const int status = servet_profile_open(path, &opened, &error);
    if (status < 0 && (path || servet_topology_open(&opened, &error) < 0)) {
        std::fprintf(stderr, "tile_size_cpp: %s\n", error.text);
        return 2;
    }
    const std::unique_ptr<servet_profile, closes> profile(opened);
    std::uint32_t pu = 0;
    servet_pus(profile.get(), &pu, 1);
    const std::uint32_t sharers = std::max(servet_cache_sharers(profile.get(), level, pu), 1U);
    std::uint64_t bytes = servet_cache_bytes(profile.get(), level, pu);
    if (bytes == 0)
        servet_cache_interval(profile.get(), level, pu, &bytes, nullptr);
    const auto root = static_cast<std::size_t>(std::sqrt(static_cast<double>(bytes) / sharers / (3 * sizeof(double))));
    std::printf("L%u, shared by %u: tile %zu\n", level, sharers, root < 1 ? fallback : root);
    return 0;
}
