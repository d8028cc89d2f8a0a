/* Writes and reads what servet-pin hands over to the rank it becomes. */
#include "preload/place/places.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/place/options.h"
#include "profile/base/file.h"
#include "profile/base/launchers.h"

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
    static char list[PROFILE_MASK_PUS * sizeof "8191"];
    char rank[64], *text;
    pin_launcher_format(launcher, rank, sizeof rank);
    profile_mask_format(before, list, sizeof list);
    return asprintf(&text, "%s%s %s", rank, list, places) < 0 ? NULL : text;
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

/* The PU of the next place, which has one; `*at` goes on behind it. */
static bool next_place(const char **at, uint32_t *pu)
{
    const char *place = *at ? strchr(*at, '{') : NULL;
    if (!place) {
        return false;
    }
    *at = place + 1;
    *pu = (uint32_t)strtoul(*at, NULL, 10);
    return *pu < PROFILE_MASK_PUS;
}

/* The exported places, if the three variables are still as they were set together. */
struct exported {
    const char *marker, *places;
    struct profile_mask before, pus;
    uint32_t first;
};

static bool read_exported(struct exported *out)
{
    const char *bind = pin_environment(bind_name), *list;
    *out = (struct exported){.marker = pin_environment(pin_option_table[PIN_RANK].name),
                             .places = pin_environment(places_name)};
    if (!out->marker || !out->places || !bind || strcmp(bind, bind_value) != 0 ||
        !(list = strchr(out->marker, ' ')) || !(list = strchr(list + 1, ' '))) {
        return false;
    }
    const char *end = strchr(++list, ' ');
    if (!end || strcmp(end + 1, out->places) != 0) {
        return false;
    }
    const char *at = out->places, *rest = out->places;
    for (uint32_t pu; next_place(&rest, &pu);) {
        profile_mask_add(&out->pus, pu);
    }
    return next_place(&at, &out->first) && profile_mask_parse(list, &out->before);
}

/* Is the mask still what was set, or the one from before? A runtime puts the main thread on
 * the first place. */
static bool is_our_mask(const struct exported *it, const struct profile_mask *mask,
                        bool has_runtime)
{
    return profile_mask_equal(mask, &it->pus) || profile_mask_equal(mask, &it->before) ||
           (has_runtime && profile_mask_count(mask) == 1 && profile_mask_has(mask, it->first));
}

bool pin_places_read(const struct pin_launcher *launcher, bool has_runtime,
                     struct profile_mask *mask)
{
    struct exported it;
    char rank[64];
    if (!launcher->name || !read_exported(&it) || !is_our_mask(&it, mask, has_runtime)) {
        return false;
    }
    const int length = pin_launcher_format(launcher, rank, sizeof rank);
    if (strncmp(it.marker, rank, (size_t)length) != 0) {
        return false;
    }
    *mask = it.before;
    return true;
}

size_t pin_places_order(uint32_t *out, size_t room)
{
    size_t count = 0;
    const char *at = pin_environment(places_name);
    while (count < room && next_place(&at, &out[count])) {
        count++;
    }
    return count;
}

/* Is it one of the three? */
static bool is_exported(const char *variable)
{
    const char *const names[] = {places_name, bind_name, pin_option_table[PIN_RANK].name};
    const size_t length = strcspn(variable, "=");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == length && strncmp(variable, names[i], length) == 0) {
            return true;
        }
    }
    return false;
}

void pin_places_drop(const struct profile_mask *mask)
{
    static struct exported it; /* the stack of who calls exec may be small */
    if (!read_exported(&it) || is_our_mask(&it, mask, false)) {
        return;
    }
    char **to = environ;
    for (char **from = environ; *from; from++) {
        if (!is_exported(*from)) {
            *to++ = *from;
        }
    }
    *to = NULL;
}
