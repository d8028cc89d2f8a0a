#include "profile/base/error.h"

#include <stdarg.h>
#include <stdio.h>

/* Names come from files and from the user: a newline or an escape sequence in one must not reach
 * the terminal. */
static void keep_one_line(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) {
            *text = '?';
        }
    }
}

int profile_error(struct servet_error *error, int code, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
        keep_one_line(error->text);
    }
    return code;
}
