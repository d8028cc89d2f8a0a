#include "check_fields.h"

#include <errno.h>
#include <math.h>

int profile_refuse(struct servet_error *error, const struct json_path *at, const char *key, const char *what)
{
    char path[JSON_PATH_SIZE];
    struct json_path here = JSON_PATH_KEY(at, key);
    return profile_error(error, -EINVAL, "%s: %s", json_path_text(key ? &here : at, path, sizeof path), what);
}

int profile_check_number(const struct json_path *at, const char *key, double value, bool zero_allowed,
                         struct servet_error *error)
{
    if (isfinite(value) && (value > 0 || (zero_allowed && value >= 0))) {
        return 0;
    }
    char path[JSON_PATH_SIZE];
    struct json_path here = JSON_PATH_KEY(at, key);
    return profile_error(error, -EINVAL, "%s: found %g, expected a %s number", json_path_text(&here, path, sizeof path),
                         value, zero_allowed ? "finite, not negative" : "finite, positive");
}

int profile_check_integer(const struct json_path *at, const char *key, uint64_t value, uint64_t low, uint64_t high,
                          struct servet_error *error)
{
    if (value >= low && value <= high) {
        return 0;
    }
    char path[JSON_PATH_SIZE];
    struct json_path here = JSON_PATH_KEY(at, key);
    return profile_error(error, -EINVAL, "%s: found %llu, expected an integer from %llu to %llu",
                         json_path_text(&here, path, sizeof path), (unsigned long long)value, (unsigned long long)low,
                         (unsigned long long)high);
}

int profile_check_spread(const struct json_path *at, double spread, struct servet_error *error)
{
    return spread < 0 ? 0 : profile_check_number(at, "spread", spread, true, error);
}

int profile_check_quality(const struct json_path *at, const struct profile_quality *quality, struct servet_error *error)
{
    struct json_path here = JSON_PATH_KEY(at, "quality");
    if ((unsigned)quality->origin > PROFILE_INFERRED) {
        return profile_refuse(error, &here, "origin", "expected declared, measured or inferred");
    }
    return profile_check_spread(&here, quality->spread, error);
}

int profile_check_subset(const struct json_path *at, const struct profile_set *part, const struct profile_set *whole,
                         struct servet_error *error)
{
    return profile_set_subset(part, whole) ? 0
                                           : profile_refuse(error, at, "pus", "expected only PUs of the node class");
}
