/* Lists of host names as batch systems write them. They are walked, never expanded:
 * "node[1-100000]" is one run of names. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/model.h"

/* Nine digits fit 32 bits. */
#define DIGITS_LIMIT 9
#define HOST_NAME_SIZE 256 /* DNS: 255 bytes and a terminator */

/* Called for each run of equal-shaped names: prefix, number from first to last with at least
 * `width` digits, suffix. width < 0: a name without a number. Non-zero stops the walk. */
struct run {
    const char *prefix, *suffix;
    int prefix_length, suffix_length, width;
    uint32_t first, last;
};
typedef int run_fn(const struct run *run, void *context);

static int parse_number(const char **text, uint32_t *out, int *digits)
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

static int walk_bracket(const char *text, const char *end, struct run *run, run_fn *fn,
                        void *context)
{
    for (;;) {
        int digits;
        int rc = parse_number(&text, &run->first, &run->width);
        run->last = run->first;
        if (rc == 0 && *text == '-') {
            text++;
            rc = parse_number(&text, &run->last, &digits);
        }
        if (rc < 0) {
            return rc;
        }
        if (run->last < run->first) {
            return -EINVAL;
        }
        rc = fn(run, context);
        if (rc) {
            return rc;
        }
        if (text == end) {
            return 0;
        }
        if (*text++ != ',') {
            return -EINVAL;
        }
    }
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

static int walk_item(const char *item, size_t length, run_fn *fn, void *context)
{
    const char *open = memchr(item, '[', length), *end = item + length;
    struct run run = {.prefix = item, .suffix = end, .prefix_length = (int)length, .width = -1};
    if (!open) {
        return length && plain(item, length) ? fn(&run, context) : -EINVAL;
    }
    const char *close = memchr(open, ']', (size_t)(end - open));
    if (!close || !plain(item, (size_t)(open - item)) ||
        !plain(close + 1, (size_t)(end - close - 1))) {
        return -EINVAL;
    }
    run.prefix_length = (int)(open - item);
    run.suffix = close + 1;
    run.suffix_length = (int)(end - close - 1);
    return walk_bracket(open + 1, close, &run, fn, context);
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

static int walk(const char *list, run_fn *fn, void *context)
{
    for (;;) {
        size_t length = item_length(list);
        if (length > PROFILE_SET_LIMIT) {
            return -ERANGE;
        }
        int rc = walk_item(list, length, fn, context);
        if (rc || !list[length]) {
            return rc;
        }
        list += length + 1;
    }
}

static int count_run(const struct run *run, void *context)
{
    uint32_t *count = context;
    uint32_t more = run->last - run->first + 1;
    if (more > PROFILE_SET_LIMIT - *count) {
        return -ERANGE;
    }
    *count += more;
    return 0;
}

int profile_hostlist_count(const char *list, uint32_t *count)
{
    uint32_t total = 0;
    int rc = walk(list, count_run, &total);
    if (rc == 0) {
        *count = total;
    }
    return rc;
}

struct wanted_name {
    uint32_t index;
    char *name;
    size_t size;
};

static int write_name(const struct run *run, uint32_t number, char *name, size_t size)
{
    int n = run->width < 0 ? snprintf(name, size, "%.*s", run->prefix_length, run->prefix)
                           : snprintf(name, size, "%.*s%0*u%.*s", run->prefix_length, run->prefix,
                                      run->width, number, run->suffix_length, run->suffix);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* 1: found. */
static int name_in_run(const struct run *run, void *context)
{
    struct wanted_name *wanted = context;
    uint32_t count = run->last - run->first + 1;
    if (wanted->index >= count) {
        wanted->index -= count;
        return 0;
    }
    int rc = write_name(run, run->first + wanted->index, wanted->name, wanted->size);
    return rc < 0 ? rc : 1;
}

int profile_hostlist_name(const char *list, uint32_t index, char *name, size_t size)
{
    struct wanted_name wanted = {index, name, size};
    int rc = walk(list, name_in_run, &wanted);
    return rc == 0 ? -ERANGE : rc < 0 ? rc : 0;
}

struct searched_name {
    const char *name;
    int64_t before; /* names in the runs before this one */
};

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

/* 1: found. */
static int find_in_run(const struct run *run, void *context)
{
    struct searched_name *searched = context;
    uint32_t number;
    if (number_in_name(run, searched->name, &number)) {
        searched->before += number - run->first;
        return 1;
    }
    searched->before += run->last - run->first + 1;
    return 0;
}

int64_t profile_hostlist_find(const char *list, const char *name)
{
    struct searched_name searched = {.name = name};
    return walk(list, find_in_run, &searched) == 1 ? searched.before : -1;
}
