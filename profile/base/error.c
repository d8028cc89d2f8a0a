/* One line that says what went wrong: which thing, and what was expected of it. The first
 * function that decides that something is an error words it. */
#include "profile/base/error.h"

#include <stdarg.h>
#include <stdio.h>

void profile_clean_text(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == 0x7f) {
            *c = '?';
        } else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) {
            c[0] = c[1] = '?';
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
        profile_clean_text(error->text);
    }
    return code;
}
