/* Writes and reads what servet-pin hands over to the rank it becomes. */
#include "preload/place/places.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/place/options.h"
#include "profile/base/file.h"
#include "profile/base/launchers.h"
#include "profile/base/nearness.h"

static const char places_name[] = "OMP_PLACES", bind_name[] = "OMP_PROC_BIND";
/* Thread i of a team on place i. */
static const char bind_value[] = "close";

const char *pin_users_places(void)
{
    const char *const *name = profile_users_places;
    while (*name && !pin_is_set(*name)) {
        name++;
    }
    return *name;
}

/* "{2},{0},{3}": every PU of the plan once. */
static char *format_places(const struct pin_plan *plan)
{
    char *text = NULL;
    size_t size;
    struct profile_mask used = {0};
    FILE *out = profile_stream_open(&text, &size);
    for (size_t i = 0; out && i < plan->count; i++) {
        if (profile_mask_has(&used, plan->pus[i])) {
            continue;
        }
        profile_mask_add(&used, plan->pus[i]);
        fprintf(out, "%s{%" PRIu32 "}", i > 0 ? "," : "", plan->pus[i]);
    }
    return out && fclose(out) == 0 ? text : NULL;
}

/* The rank, the mask before, the places. */
static char *format_marker(const struct pin_launcher *launcher, const struct profile_mask *before,
                           const char *places)
{
    char rank[64], *list, *text;
    size_t size = PROFILE_MASK_PUS * sizeof "8191";
    if (!(list = malloc(size))) {
        return NULL;
    }
    pin_launcher_format(launcher, rank, sizeof rank);
    profile_mask_format(before, list, size);
    if (asprintf(&text, "%s%s %s", rank, list, places) < 0) {
        text = NULL;
    }
    free(list);
    return text;
}

int pin_places_export(const struct pin_launcher *launcher, const struct profile_mask *before,
                      const struct pin_plan *plan)
{
    char *places = format_places(plan);
    char *marker = places ? format_marker(launcher, before, places) : NULL;
    int code = -ENOMEM;
    if (marker && setenv(pin_option_table[PIN_RANK].name, marker, 1) == 0 &&
        setenv(bind_name, bind_value, 1) == 0 && setenv(places_name, places, 1) == 0) {
        code = 0;
    }
    free(marker);
    free(places);
    return code;
}

/* Reads a cpulist of `length` characters. */
static bool read_list(const char *text, size_t length, struct profile_mask *out)
{
    char *list = strndup(text, length);
    const bool good = list && profile_mask_parse(list, out) && !profile_mask_empty(out);
    free(list);
    return good;
}

bool pin_places_read(const struct pin_launcher *launcher, struct profile_mask *before)
{
    if (!launcher->name) {
        return false;
    }
    const char *marker = pin_environment(pin_option_table[PIN_RANK].name),
               *places = pin_environment(places_name);
    const char *bind = pin_environment(bind_name);
    char rank[64];
    if (!marker || !places || !bind || strcmp(bind, bind_value) != 0) {
        return false;
    }
    int length = pin_launcher_format(launcher, rank, sizeof rank);
    if (strncmp(marker, rank, (size_t)length) != 0) {
        return false;
    }
    const char *list = marker + length, *end = strchr(list, ' ');
    return end && strcmp(end + 1, places) == 0 && read_list(list, (size_t)(end - list), before);
}
