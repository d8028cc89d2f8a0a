/* One line that says what went wrong: which thing, and what was expected of it.
 *
 * Functions that can be handed bad input take a `struct servet_error *` (may be NULL) beside their
 * 0 / -errno result. The first function that decides that something is an error fills it; callers
 * pass it on untouched.
 * The public type is declared in servet.h. */
#pragma once

#include "profile/servet.h"

/* Makes one line of a text that comes from a file or from the user: every control character becomes
 * '?', those of Latin-1 in UTF-8 too (U+009B begins a terminal's commands as ESC [ does). In
 * place. */
void profile_clean_text(char *text);

/* Fills `error` (if not NULL) and returns `code`, so that callers can write `return
 * profile_error(e, -EINVAL, …)`. */
int profile_error(struct servet_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
