/* Sets: sorted arrays, small, walked in the order that ties are broken by, and bounded, whatever a
 * hostile list says. */
#include "profile/set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/scope.h"

void profile_set_free(struct profile_set *set)
{
    free(set->ids);
    *set = (struct profile_set){0};
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* As nearly every list is: sorting those anew was a fifth of reading a large topology. */
static bool is_ascending(const uint32_t *ids, size_t count)
{
    size_t at = 1;
    while (at < count && ids[at - 1] <= ids[at]) {
        at++;
    }
    return at >= count;
}

int profile_set_from_array(const uint32_t *ids, size_t count, struct profile_set *out)
{
    struct profile_set set = {0};
    if (count) {
        set.ids = malloc(count * sizeof *set.ids);
        if (!set.ids) {
            return -ENOMEM;
        }
        memcpy(set.ids, ids, count * sizeof *ids);
        if (!is_ascending(ids, count)) {
            qsort(set.ids, count, sizeof *set.ids, compare_ids);
        }
        for (size_t i = 0; i < count; i++) {
            if (!set.count || set.ids[set.count - 1] != set.ids[i]) {
                set.ids[set.count++] = set.ids[i];
            }
        }
    }
    *out = set;
    return 0;
}

/* One number of a list; moves *text behind it. strtoul would take signs and spaces that a cpulist
 * never has. */
static int parse_id(const char **text, uint32_t *out)
{
    const char *p = *text;
    if (*p < '0' || *p > '9') {
        return -EINVAL;
    }
    uint32_t value = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (uint32_t)(*p - '0');
        if (value >= PROFILE_SET_LIMIT) {
            return -ERANGE;
        }
    }
    *text = p;
    *out = value;
    return 0;
}

static int parse_range(const char **text, uint32_t *first, uint32_t *last)
{
    TRY(parse_id(text, first));
    *last = *first;
    if (**text == '-') {
        (*text)++;
        TRY(parse_id(text, last));
    }
    return *last < *first ? -EINVAL : 0;
}

/* Walks the list; with `ids` NULL only counts. */
static int walk_list(const char *text, uint32_t *ids, size_t *count)
{
    *count = 0;
    for (;;) {
        uint32_t first, last;
        TRY(parse_range(&text, &first, &last));
        for (uint32_t id = first; id <= last; id++) {
            if (ids) {
                ids[*count] = id;
            }
            (*count)++;
        }
        if (*count > 2 * (size_t)PROFILE_SET_LIMIT) {
            return -ERANGE; /* "0-16777215,0-16777215,…" */
        }
        if (*text == ',') {
            text++;
            continue;
        }
        if (*text == '\n') {
            text++;
        }
        return *text ? -EINVAL : 0;
    }
}

int profile_set_parse(const char *text, struct profile_set *out)
{
    size_t count;
    TRY(walk_list(text, NULL, &count));
    FREED uint32_t *ids = malloc(count * sizeof *ids);
    if (!ids) {
        return -ENOMEM;
    }
    walk_list(text, ids, &count);
    return profile_set_from_array(ids, count, out);
}

int profile_set_copy(const struct profile_set *from, struct profile_set *out)
{
    return profile_set_from_array(from->ids, from->count, out);
}

size_t profile_set_format(const struct profile_set *set, char *buffer, size_t size)
{
    size_t used = 0;
    if (size) {
        buffer[0] = '\0';
    }
    for (size_t i = 0; i < set->count;) {
        size_t last = i;
        while (last + 1 < set->count && set->ids[last + 1] == set->ids[last] + 1) {
            last++;
        }
        char *at = used < size ? buffer + used : NULL;
        size_t room = used < size ? size - used : 0;
        const char *comma = i ? "," : "";
        int n = last == i ? snprintf(at, room, "%s%u", comma, set->ids[i])
                          : snprintf(at, room, "%s%u-%u", comma, set->ids[i], set->ids[last]);
        used += (size_t)n;
        i = last + 1;
    }
    return used;
}

char *profile_set_text(const struct profile_set *set)
{
    size_t length = profile_set_format(set, NULL, 0);
    char *text = malloc(length + 1);
    if (text) {
        profile_set_format(set, text, length + 1);
    }
    return text;
}

/* Most sets that are searched are all PUs of a machine, without a gap: there the number says it. */
size_t profile_set_position(const struct profile_set *set, uint32_t id)
{
    if (set->count && set->ids[set->count - 1] - set->ids[0] == set->count - 1) {
        size_t place = (size_t)id - set->ids[0];
        return place < set->count ? place : set->count;
    }
    const uint32_t *found =
        set->count ? bsearch(&id, set->ids, set->count, sizeof id, compare_ids) : NULL;
    return found ? (size_t)(found - set->ids) : set->count;
}

bool profile_set_has(const struct profile_set *set, uint32_t id)
{
    return profile_set_position(set, id) < set->count;
}

bool profile_set_equal(const struct profile_set *a, const struct profile_set *b)
{
    return a->count == b->count &&
           (!a->count || memcmp(a->ids, b->ids, a->count * sizeof *a->ids) == 0);
}

bool profile_set_subset(const struct profile_set *part, const struct profile_set *whole)
{
    size_t i = 0;
    while (i < part->count && profile_set_has(whole, part->ids[i])) {
        i++;
    }
    return i == part->count;
}

bool profile_set_overlaps(const struct profile_set *a, const struct profile_set *b)
{
    size_t i = 0;
    while (i < a->count && !profile_set_has(b, a->ids[i])) {
        i++;
    }
    return i < a->count;
}

int profile_set_intersect(const struct profile_set *a, const struct profile_set *b,
                          struct profile_set *out)
{
    size_t count = 0;
    FREED uint32_t *ids = malloc((a->count + 1) * sizeof *ids);
    if (!ids) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (profile_set_has(b, a->ids[i])) {
            ids[count++] = a->ids[i];
        }
    }
    return profile_set_from_array(ids, count, out);
}

int profile_set_union(const struct profile_set *a, const struct profile_set *b,
                      struct profile_set *out)
{
    size_t count = a->count + b->count;
    FREED uint32_t *ids = malloc((count + 1) * sizeof *ids);
    if (!ids) {
        return -ENOMEM;
    }
    if (a->count) {
        memcpy(ids, a->ids, a->count * sizeof *ids);
    }
    if (b->count) {
        memcpy(ids + a->count, b->ids, b->count * sizeof *ids);
    }
    return profile_set_from_array(ids, count, out);
}
