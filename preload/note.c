/* What the shim says. */
#include "note.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "raw.h"

/* Longest line, with its newline; longer ones are cut. */
#define LINE_BYTES 512

static void say(const char *format, va_list arguments)
{
    static const char prefix[] = "servet: ";
    char line[LINE_BYTES];
    size_t used = sizeof prefix - 1;
    memcpy(line, prefix, used);
    int length = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    if (length < 0)
        return;
    used += (size_t)length < sizeof line - used - 1 ? (size_t)length : sizeof line - used - 2;
    line[used++] = '\n';
    /* A closed or full stderr is not this program's trouble. */
    (void)pin_raw(SYS_write, STDERR_FILENO, (long)line, (long)used, 0, 0, 0);
}

void pin_failure(const char *format, ...)
{
    static atomic_uint said;
    if (atomic_fetch_add_explicit(&said, 1, memory_order_relaxed) >= PIN_FAILURE_CAP)
        return;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void pin_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}
