/* Lists of host names as batch systems write them. They are walked, never expanded:
 * "node[1-100000]" is one run of names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/model.h"

/* Nine digits fit 32 bits. */
#define DIGITS_LIMIT 9
#define HOST_NAME_SIZE 256 /* DNS: 255 bytes and a terminator */

/* A run of names of one shape: prefix, number from first to last with at least `width` digits,
 * suffix. width < 0: a name without a number. */
struct run {
    const char *prefix, *suffix;
    int prefix_length, suffix_length, width;
    uint32_t first, last;
    const char *next;  /* the rest of the list; NULL: it has ended */
    const char *close; /* end of the bracket that the rest begins in; NULL: in none */
    const char *after; /* the item behind that bracket, or NULL */
};

static int take_number(const char **text, uint32_t *out, int *digits)
{
    const char *p = *text;
    *out = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (p - *text == DIGITS_LIMIT) {
            return -ERANGE;
        }
        *out = *out * 10 + (uint32_t)(*p - '0');
    }
    *digits = (int)(p - *text);
    *text = p;
    return *digits ? 0 : -EINVAL;
}

static bool plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] <= ' ' || strchr("[],\x7f", text[i])) {
            return false;
        }
    }
    return true;
}

/* Length of the first item: up to a comma outside brackets. */
static size_t item_length(const char *list)
{
    bool inside = false;
    size_t n = 0;
    for (; list[n] && (inside || list[n] != ','); n++) {
        inside = list[n] == '[' || (inside && list[n] != ']');
    }
    return n;
}

/* The next item: a name, or what stands before and behind a bracket. */
static int read_item(struct run *run)
{
    const char *item = run->next;
    const size_t length = item_length(item);
    if (length > PROFILE_SET_LIMIT) {
        return -ERANGE;
    }
    const char *open = memchr(item, '[', length), *end = item + length;
    run->after = *end ? end + 1 : NULL;
    if (!open) {
        *run = (struct run){.prefix = item,
                            .suffix = end,
                            .prefix_length = (int)length,
                            .width = -1,
                            .next = run->after};
        return length && plain(item, length) ? 0 : -EINVAL;
    }
    run->close = memchr(open, ']', (size_t)(end - open));
    if (!run->close || !plain(item, (size_t)(open - item)) ||
        !plain(run->close + 1, (size_t)(end - run->close - 1))) {
        return -EINVAL;
    }
    run->prefix = item;
    run->prefix_length = (int)(open - item);
    run->suffix = run->close + 1;
    run->suffix_length = (int)(end - run->suffix);
    run->next = open + 1;
    return 0;
}

static int read_range(struct run *run)
{
    int digits, rc = take_number(&run->next, &run->first, &run->width);
    run->last = run->first;
    if (rc == 0 && *run->next == '-') {
        run->next++;
        rc = take_number(&run->next, &run->last, &digits);
    }
    if (rc < 0) {
        return rc;
    }
    if (run->next == run->close) {
        run->next = run->after;
        run->close = NULL;
    } else if (*run->next++ != ',') {
        return -EINVAL;
    }
    return run->last < run->first ? -EINVAL : 0;
}

/* The next run of names. 1; 0: the list has ended; -EINVAL, -ERANGE. */
static int next_run(struct run *run)
{
    int rc = 0;
    if (!run->next) {
        return 0;
    }
    if (!run->close) {
        rc = read_item(run);
    }
    if (rc == 0 && run->close) {
        rc = read_range(run);
    }
    return rc < 0 ? rc : 1;
}

static uint32_t length_of(const struct run *run)
{
    return run->last - run->first + 1;
}

int profile_hostlist_count(const char *list, uint32_t *count)
{
    struct run run = {.next = list};
    uint32_t total = 0;
    int rc;
    while ((rc = next_run(&run)) > 0) {
        if (length_of(&run) > PROFILE_SET_LIMIT - total) {
            return -ERANGE;
        }
        total += length_of(&run);
    }
    if (rc == 0) {
        *count = total;
    }
    return rc;
}

static int write_name(const struct run *run, uint32_t number, char *name, size_t size)
{
    int n = run->width < 0 ? snprintf(name, size, "%.*s", run->prefix_length, run->prefix)
                           : snprintf(name, size, "%.*s%0*u%.*s", run->prefix_length, run->prefix,
                                      run->width, number, run->suffix_length, run->suffix);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int profile_hostlist_name(const char *list, uint32_t index, char *name, size_t size)
{
    struct run run = {.next = list};
    int rc;
    while ((rc = next_run(&run)) > 0) {
        if (index < length_of(&run)) {
            return write_name(&run, run.first + index, name, size);
        }
        index -= length_of(&run);
    }
    return rc < 0 ? rc : -ERANGE;
}

static bool same_host(const char *a, const char *b)
{
    if (strcmp(a, b) == 0) {
        return true;
    }
    size_t n = strcspn(a, ".");
    return n == strcspn(b, ".") && memcmp(a, b, n) == 0;
}

static bool is_name(const struct run *run, uint32_t number, const char *name)
{
    char own[HOST_NAME_SIZE];
    return write_name(run, number, own, sizeof own) == 0 && same_host(own, name);
}

/* Only the number in the right place of the searched name is tried, not every one of the run; with
 * as many digits as it may have there, for the suffix may begin with one ("n[1-12]0"). */
static bool number_in_name(const struct run *run, const char *name, uint32_t *number)
{
    if (run->width < 0) {
        *number = run->first;
        return is_name(run, *number, name);
    }
    if (strncmp(name, run->prefix, (size_t)run->prefix_length) != 0) {
        return false;
    }
    const char *at = name + run->prefix_length;
    uint32_t value = 0;
    for (int i = 0; i < DIGITS_LIMIT && at[i] >= '0' && at[i] <= '9'; i++) {
        value = value * 10 + (uint32_t)(at[i] - '0');
        if (value >= run->first && value <= run->last && is_name(run, value, name)) {
            *number = value;
            return true;
        }
    }
    return false;
}

int64_t profile_hostlist_find(const char *list, const char *name)
{
    struct run run = {.next = list};
    int64_t before = 0; /* names in the runs before this one */
    while (next_run(&run) > 0) {
        uint32_t number;
        if (number_in_name(&run, name, &number)) {
            return before + (number - run.first);
        }
        before += length_of(&run);
    }
    return -1;
}
