/* What servet-pin hands over to the rank it becomes. */
#include "handover.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

static const char places_name[] = "OMP_PLACES", bind_name[] = "OMP_PROC_BIND";
/* Thread i of a team on place i. */
static const char bind_value[] = "close";

bool pin_users_places_set(void)
{
    static const char *const names[] = {places_name, bind_name, "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return true;
    }
    return false;
}

/* "{2},{0},{3}": every PU of the plan once. */
static char *format_places(const struct pin_plan *plan)
{
    char *text = NULL;
    size_t size;
    struct pin_mask used = {0};
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; out && i < plan->count; i++) {
        if (pin_mask_has(&used, plan->pus[i]))
            continue;
        pin_mask_add(&used, plan->pus[i]);
        fprintf(out, "%s{%" PRIu32 "}", i > 0 ? "," : "", plan->pus[i]);
    }
    return out && fclose(out) == 0 ? text : NULL;
}

/* "JOB RANK/SIZE " of this rank: job 0 stands for a rank that the user has bound. */
static int format_rank(const struct pin_launcher *launcher, char *out, size_t size)
{
    return snprintf(out, size, "%" PRIx64 " %" PRIu32 "/%" PRIu32 " ", launcher->job, launcher->local_rank,
                    launcher->local_size);
}

/* The rank, the mask before, the places. */
static char *format_marker(const struct pin_launcher *launcher, const struct pin_mask *before, const char *places)
{
    char rank[64], *list, *text;
    size_t size = PIN_MASK_PUS * sizeof "8191";
    if (!(list = malloc(size)))
        return NULL;
    format_rank(launcher, rank, sizeof rank);
    pin_mask_format(before, list, size);
    if (asprintf(&text, "%s%s %s", rank, list, places) < 0)
        text = NULL;
    free(list);
    return text;
}

int pin_handover_export(const struct pin_launcher *launcher, const struct pin_mask *before, const struct pin_plan *plan)
{
    char *places = format_places(plan);
    char *marker = places ? format_marker(launcher, before, places) : NULL;
    int code = -ENOMEM;
    if (marker && setenv(pin_option_table[PIN_RANK].name, marker, 1) == 0 && setenv(bind_name, bind_value, 1) == 0 &&
        setenv(places_name, places, 1) == 0)
        code = 0;
    free(marker);
    free(places);
    return code;
}

/* Reads a cpulist of `length` characters. */
static bool read_list(const char *text, size_t length, struct pin_mask *out)
{
    struct profile_set set;
    char *list = strndup(text, length);
    if (!list)
        return false;
    int code = profile_set_parse(list, &set);
    free(list);
    if (code < 0)
        return false;
    *out = (struct pin_mask){0};
    pin_mask_from_set(&set, out);
    profile_set_free(&set);
    return !pin_mask_empty(out);
}

bool pin_handover_read(const struct pin_launcher *launcher, struct pin_mask *before)
{
    const char *marker = getenv(pin_option_table[PIN_RANK].name), *places = getenv(places_name);
    const char *bind = getenv(bind_name);
    char rank[64];
    if (!launcher->name || !marker || !places || !bind || strcmp(bind, bind_value) != 0)
        return false;
    int length = format_rank(launcher, rank, sizeof rank);
    if (strncmp(marker, rank, (size_t)length) != 0)
        return false;
    const char *list = marker + length, *end = strchr(list, ' ');
    return end && strcmp(end + 1, places) == 0 && read_list(list, (size_t)(end - list), before);
}
