/* Figures as people read them: one way to write a size, a time, a bandwidth, for all commands. */
#include "profile/text/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/codec/codec.h"
#include "profile/query.h"

struct figure profile_figure_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    struct figure out = {"-"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit < 4; unit++) {
        value /= 1024;
    }
    if (bytes) {
        snprintf(out.text, sizeof out.text, "%.4g %s", value, units[unit]);
    }
    return out;
}

struct figure profile_figure_size(const struct profile_cache *cache)
{
    struct figure out = {"not measured"};
    if (cache->quality.origin == PROFILE_DECLARED) {
        return out;
    }
    if (profile_size_settled(cache)) {
        out = profile_figure_bytes(cache->size_bytes);
    } else if (cache->quality.repetitions == 1) {
        snprintf(out.text, sizeof out.text, "%.24s, measured once",
                 profile_figure_bytes(cache->size_bytes).text);
    } else {
        snprintf(out.text, sizeof out.text, "not settled");
    }
    return out;
}

struct figure profile_figure_cache(const struct profile_cache *cache)
{
    struct figure out = profile_figure_size(cache);
    if (cache->quality.origin == PROFILE_DECLARED) {
        return out;
    }
    if (cache->size_high_bytes &&
        (cache->size_low_bytes < cache->size_high_bytes || !profile_size_settled(cache))) {
        size_t used = strlen(out.text);
        snprintf(out.text + used, sizeof out.text - used, " (%.24s to %.24s)",
                 profile_figure_bytes(cache->size_low_bytes).text,
                 profile_figure_bytes(cache->size_high_bytes).text);
    }
    return out;
}

static struct figure scaled(double value, double unit, const char *const *units, size_t count)
{
    struct figure out = {"-"};
    size_t i = 0;
    for (; i + 1 < count && value / unit >= 999.5; i++) {
        unit *= 1000;
    }
    if (value > 0) {
        snprintf(out.text, sizeof out.text, "%.3g %s", value / unit, units[i]);
    }
    return out;
}

struct figure profile_figure_seconds(double seconds)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return scaled(seconds, 1e-9, units, 4);
}

struct figure profile_figure_bandwidth(double bytes_per_s)
{
    static const char *const units[] = {"MB/s", "GB/s", "TB/s"};
    return scaled(bytes_per_s, 1e6, units, 3);
}

struct figure profile_figure_sharers(const struct profile_relation *relation)
{
    const bool none = !relation->group_count && !relation->pair_count;
    return none ? (struct figure){"nobody"} : profile_figure_relation(relation);
}

struct figure profile_figure_relation(const struct profile_relation *relation)
{
    struct figure out = {"-"};
    size_t used = 0;
    for (size_t i = 0; i < relation->group_count; i++) {
        size_t need = profile_set_format(&relation->groups[i], NULL, 0);
        if (used + need + 1 >= GROUPS_WIDTH) {
            snprintf(out.text + used, sizeof out.text - used, "%s... (%zu groups)", i ? " " : "",
                     relation->group_count);
            return out;
        }
        used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s", i ? " " : "");
        used += profile_set_format(&relation->groups[i], out.text + used, sizeof out.text - used);
    }
    for (size_t i = 0; i < relation->pair_count; i++) {
        if (used + 2 * sizeof "16777216" >= GROUPS_WIDTH) {
            snprintf(out.text + used, sizeof out.text - used, " ... (%zu pairs)",
                     relation->pair_count);
            return out;
        }
        used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%u+%u",
                                 used ? " " : "", relation->pairs[i].a, relation->pairs[i].b);
    }
    return out;
}

struct figure profile_figure_group(const struct profile_set *group)
{
    struct figure out;
    snprintf(out.text, sizeof out.text, "... (%zu in all)", group->count);
    if (profile_set_format(group, NULL, 0) + 1 < GROUPS_WIDTH) {
        profile_set_format(group, out.text, sizeof out.text);
    }
    return out;
}

struct figure profile_figure_spread(double spread)
{
    const double percent = 100 * spread, most = 1000, two_digits = 99.5;
    struct figure out;
    snprintf(out.text, sizeof out.text,
             percent > most         ? "over %.0f %%"
             : percent < two_digits ? "%.2g %%"
                                    : "%.0f %%",
             fmin(percent, most));
    return out;
}

struct figure profile_figure_quality(const struct profile_quality *quality)
{
    struct figure out;
    if (quality->origin == PROFILE_QUOTED) { /* how often others measured is theirs to say */
        snprintf(out.text, sizeof out.text, "from the paper");
        return out;
    }
    int n = snprintf(out.text, sizeof out.text, "%s", profile_origin_names[quality->origin]);
    if (quality->repetitions) {
        n += quality->repetitions == 1
                 ? snprintf(out.text + n, sizeof out.text - (size_t)n, " once")
                 : snprintf(out.text + n, sizeof out.text - (size_t)n, " %u times",
                            quality->repetitions);
    }
    if (quality->spread >= 0) {
        snprintf(out.text + n, sizeof out.text - (size_t)n, ", spread %s",
                 profile_figure_spread(quality->spread).text);
    }
    return out;
}
