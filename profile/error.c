#include "error.h"

#include <stdarg.h>
#include <stdio.h>

int profile_error(struct servet_error *error, int code, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    return code;
}
