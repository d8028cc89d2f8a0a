/* Short texts put together without printf(), whose first call in a process takes as long as fifty
 * system calls: five pages of libc are touched for it. For what every program under the shim does.
 *
 *     char *end = path + sizeof path, *at = profile_format_text(path, end, "/dev/shm/servet-");
 *     at = profile_format_number(at, end, user);
 */
#ifndef SERVET_PROFILE_BASE_FORMAT_SAFE_H
#define SERVET_PROFILE_BASE_FORMAT_SAFE_H

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

/* The same with a number, in decimal digits. */
static inline char *profile_format_number(char *at, const char *end, uint64_t number)
{
    char digits[sizeof "18446744073709551615"];
    size_t first = sizeof digits - 1;
    digits[first] = '\0';
    do {
        digits[--first] = (char)('0' + number % 10);
    } while (number /= 10);
    return profile_format_text(at, end, digits + first);
}

#endif
