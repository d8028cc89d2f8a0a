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

/* Adds the PUs of a cpulist, or of places of one PU, which a blank ends. The first: -1 there is
 * none. */
static int32_t add_pus(const char *text, struct profile_mask *out)
{
    int32_t first_of_all = -1;
    while (*text && *text != ' ') {
        char *end = (char *)(uintptr_t)text + 1;
        if (*text >= '0' && *text <= '9') {
            const unsigned long first = strtoul(text, &end, 10),
                                last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
            for (unsigned long pu = first; pu <= last && pu < PROFILE_MASK_PUS; pu++) {
                first_of_all = first_of_all < 0 ? (int32_t)pu : first_of_all;
                profile_mask_add(out, (uint32_t)pu);
            }
        }
        text = end;
    }
    return first_of_all;
}

/* The exported places, if the three variables are still as they were set together. */
struct exported {
    const char *marker, *places;
    struct profile_mask before, pus;
    int32_t first;
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
    (void)add_pus(list, &out->before);
    out->first = add_pus(out->places, &out->pus);
    return out->first >= 0 && !profile_mask_empty(&out->before);
}

/* Is the mask still what was set, or the one from before? A runtime puts the main thread on
 * the first place. */
static bool is_ours(const struct exported *it, const struct profile_mask *mask, bool has_runtime)
{
    return profile_mask_equal(mask, &it->pus) || profile_mask_equal(mask, &it->before) ||
           (has_runtime && profile_mask_count(mask) == 1 &&
            profile_mask_has(mask, (uint32_t)it->first));
}

bool pin_places_read(const struct pin_launcher *launcher, bool has_runtime,
                     struct profile_mask *mask)
{
    struct exported it;
    char rank[64];
    if (!launcher->name || !read_exported(&it) || !is_ours(&it, mask, has_runtime)) {
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
    for (const char *at = pin_environment(places_name);
         at && (at = strchr(at, '{')) && count < room; at++) {
        const unsigned long pu = strtoul(at + 1, NULL, 10);
        if (pu < PROFILE_MASK_PUS) {
            out[count++] = (uint32_t)pu;
        }
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
    if (!read_exported(&it) || is_ours(&it, mask, false)) {
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
