/* Short texts put together and taken apart without printf(), whose first call in a process takes as
 * long as fifty system calls: five pages of libc are touched for it. For what every program under
 * the shim does.
 *
 *     char *end = path + sizeof path, *at = profile_format_text(path, end, folder);
 *     at = profile_format_text(at, end, name);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Puts `text` and a zero there, which the next one replaces. Where that is; NULL: `at` is, or there
 * is no room before `end`, and nothing was written. */
static inline char *profile_format_text(char *at, const char *end, const char *text)
{
    const size_t length = strlen(text);
    if (!at || (size_t)(end - at) <= length) {
        return NULL;
    }
    memcpy(at, text, length + 1);
    return at + length;
}

/* The next word of a list with blanks between (NULL: an empty one), cut to fit; `*at` goes on.
 * False: there is none. */
static inline bool profile_next_word(const char **at, char *out, size_t size)
{
    *at = *at ? *at + strspn(*at, " ") : "";
    const size_t length = strcspn(*at, " "), kept = length < size ? length : size - 1;
    memcpy(out, *at, kept);
    out[kept] = '\0';
    *at += length;
    return length > 0;
}
