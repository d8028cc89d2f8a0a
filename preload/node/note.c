/* Writing without the signals that a write can raise. */
#include "preload/node/node.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profile/base/raw.h"

#define BIT(signal) ((uint64_t)1 << ((signal)-1))

/* Of the thread that writes, not of the process. */
#define RAISED_BY_WRITING (BIT(SIGPIPE) | BIT(SIGXFSZ))

void pin_signals_hold(struct pin_signals *before)
{
    /* A terminal takes what comes from the background when this signal is blocked. */
    uint64_t held = RAISED_BY_WRITING | BIT(SIGTTOU);
    *before = (struct pin_signals){0};
    profile_raw(SYS_rt_sigpending, (long)&before->pending, sizeof before->pending, 0, 0, 0, 0);
    profile_raw(SYS_rt_sigprocmask, SIG_BLOCK, (long)&held, (long)&before->mask, sizeof held, 0, 0);
}

void pin_signals_release(const struct pin_signals *before)
{
    struct timespec at_once = {0};
    uint64_t now = 0;
    profile_raw(SYS_rt_sigpending, (long)&now, sizeof now, 0, 0, 0, 0);
    uint64_t ours = now & ~before->pending & RAISED_BY_WRITING;
    while (ours != 0 && profile_raw(SYS_rt_sigtimedwait, (long)&ours, (long)NULL, (long)&at_once,
                                    sizeof ours, 0, 0) > 0) {
        ;
    }
    profile_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before->mask, 0, sizeof before->mask, 0, 0);
}

/* What the shim says. */

/* Longest line, with its newline; longer ones are cut. */
#define LINE_BYTES 512
#define DELETE 0x7f

static bool started, had_stderr;
static dev_t stderr_device;
static ino_t stderr_number;

void pin_note_start(void)
{
    struct stat about;
    had_stderr = fstat(STDERR_FILENO, &about) == 0;
    if (had_stderr) {
        stderr_device = about.st_dev;
        stderr_number = about.st_ino;
    }
    started = true;
}

bool pin_note_stderr_is_ours(void)
{
    struct stat about;
    if (!started) {
        return true;
    }
    return had_stderr && fstat(STDERR_FILENO, &about) == 0 && about.st_dev == stderr_device &&
           about.st_ino == stderr_number;
}

/* A closed or full stderr is not this program's trouble. */
static void write_line(const char *line, size_t length)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct timespec at_once = {0};
    struct pin_signals before;
    if (profile_raw(SYS_ppoll, (long)&ready, 1, (long)&at_once, 0, 0, 0) == 0) {
        return;
    }
    pin_signals_hold(&before);
    (void)profile_raw(SYS_write, STDERR_FILENO, (long)line, (long)length, 0, 0, 0);
    pin_signals_release(&before);
}

static void say(const char *format, va_list arguments)
{
    static const char prefix[] = "servet: ";
    char line[LINE_BYTES];
    size_t used = sizeof prefix - 1;
    if (!pin_note_stderr_is_ours()) {
        return;
    }
    memcpy(line, prefix, used);
    int length = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    if (length < 0) {
        return;
    }
    used += (size_t)length < sizeof line - used - 1 ? (size_t)length : sizeof line - used - 2;
    /* Names of files, programs and threads may hold what a terminal obeys. */
    for (size_t i = 0; i < used; i++) {
        unsigned char byte = (unsigned char)line[i];
        line[i] = byte < ' ' || byte == DELETE ? '?' : line[i];
    }
    line[used++] = '\n';
    write_line(line, used);
}

void pin_failure(const char *format, ...)
{
    static atomic_uint said;
    if (atomic_fetch_add_explicit(&said, 1, memory_order_relaxed) >= PIN_FAILURE_CAP) {
        return;
    }
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
