/* Fields of a machine description, each refused with its place where it is not as expected. */
#include "probes/simulated/simulated.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void probe_sim_refuse(struct sim_reader *reader, const char *format, ...)
{
    char text[256];
    va_list args;
    if (reader->failed) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    reader->failed = profile_error(reader->error, -EINVAL, "%s: %s", reader->path, text);
}

/* -- fields -- */

/* A missing field takes `missing`; NAN there makes it required. */
double probe_sim_number(struct sim_reader *reader, const json_t *object, const char *where,
                        const char *key, double missing, double low, double high)
{
    const json_t *value = json_object_get(object, key);
    if (!value && !isnan(missing)) {
        return missing;
    }
    if (!json_is_number(value) || json_number_value(value) < low ||
        json_number_value(value) > high) {
        probe_sim_refuse(reader, "%s.%s: expected a number from %g to %g", where, key, low, high);
        return low;
    }
    return json_number_value(value);
}

uint64_t probe_sim_whole(struct sim_reader *reader, const json_t *object, const char *where,
                         const char *key, double missing, double low, double high)
{
    double value = probe_sim_number(reader, object, where, key, missing, low, high);
    if (value != floor(value)) {
        probe_sim_refuse(reader, "%s.%s: expected an integer", where, key);
    }
    return (uint64_t)value;
}

int probe_sim_choice(struct sim_reader *reader, const json_t *object, const char *where,
                     const char *key, const char *const *names, int missing)
{
    const json_t *value = json_object_get(object, key);
    char all[128] = "";
    if (!value) {
        return missing;
    }
    for (int i = 0; names[i]; i++) {
        if (json_is_string(value) && strcmp(json_string_value(value), names[i]) == 0) {
            return i;
        }
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
    }
    probe_sim_refuse(reader, "%s.%s: expected one of %s", where, key, all);
    return missing;
}

void probe_sim_known_keys(struct sim_reader *reader, const json_t *object, const char *where,
                          const char *const *keys)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object)) {
        probe_sim_refuse(reader, "%s: expected an object", where);
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0) {
            i++;
        }
        if (!keys[i]) {
            probe_sim_refuse(reader, "%s.%s: unknown field", where, key);
        }
    }
}

struct profile_set probe_sim_pu_list(struct sim_reader *reader, const json_t *value,
                                     const char *where, const struct profile_set *within)
{
    struct profile_set set = {0};
    if (!json_is_string(value) || profile_set_parse(json_string_value(value), &set) < 0) {
        probe_sim_refuse(reader, "%s: expected a list of PUs such as \"0-3,8\"", where);
    } else if (within && !profile_set_subset(&set, within)) {
        probe_sim_refuse(reader, "%s: names a PU that the machine does not have", where);
    }
    return set;
}

/* An array of disjoint lists; a missing one is empty. */
struct profile_set *probe_sim_groups(struct sim_reader *reader, const json_t *object,
                                     const char *where, const char *key,
                                     const struct profile_set *within, size_t *count)
{
    const json_t *array = json_object_get(object, key);
    size_t n = json_array_size(array), members = 0;
    char place[96];
    *count = 0;
    snprintf(place, sizeof place, "%s.%s", where, key);
    if (array && !json_is_array(array)) {
        probe_sim_refuse(reader, "%s: expected an array", place);
    }
    struct profile_set *sets = calloc(n + 1, sizeof *sets), all = {0};
    if (!sets) {
        probe_sim_refuse(reader, "%s: %s", place, strerror(ENOMEM));
        return NULL;
    }
    for (size_t i = 0; i < n && !reader->failed; i++) {
        struct profile_set sum = {0};
        sets[(*count)++] = probe_sim_pu_list(reader, json_array_get(array, i), place, within);
        members += sets[i].count;
        if (!reader->failed && profile_set_union(&all, &sets[i], &sum) == 0) {
            profile_set_free(&all);
            all = sum;
        }
    }
    if (!reader->failed && all.count != members) {
        probe_sim_refuse(reader, "%s: expected groups without a common PU", place);
    }
    profile_set_free(&all);
    return sets;
}
