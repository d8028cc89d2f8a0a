/* Output of the shim and the tracer: lines on stderr, and small files, both without the signals
 * that a write can raise. */
#include "preload/node/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profile/base/file.h"
#include "profile/base/syscall.h"
#include "profile/text/record.h"

/* -- signals and lines -- */

#define BIT(signal) ((uint64_t)1 << ((signal)-1))

/* A line to a pipe without a reader raises SIGPIPE, a file beyond `ulimit -f` SIGXFSZ, a terminal
 * in the background SIGTTOU: each would end or stop the program for output of ours. */

/* Signals of the thread that writes, not of the process. */
#define RAISED_BY_WRITING (BIT(SIGPIPE) | BIT(SIGXFSZ))

void pin_signals_hold(struct pin_signals *before)
{
    /* A terminal takes what comes from the background when this signal is blocked. */
    uint64_t held = RAISED_BY_WRITING | BIT(SIGTTOU);
    *before = (struct pin_signals){0};
    profile_syscall(SYS_rt_sigpending, (long)&before->pending, sizeof before->pending, 0, 0, 0, 0);
    profile_syscall(SYS_rt_sigprocmask, SIG_BLOCK, (long)&held, (long)&before->mask, sizeof held, 0,
                    0);
}

void pin_signals_release(const struct pin_signals *before)
{
    struct timespec at_once = {0};
    uint64_t now = 0;
    profile_syscall(SYS_rt_sigpending, (long)&now, sizeof now, 0, 0, 0, 0);
    uint64_t ours = now & ~before->pending & RAISED_BY_WRITING;
    while (ours != 0 && profile_syscall(SYS_rt_sigtimedwait, (long)&ours, (long)NULL,
                                        (long)&at_once, sizeof ours, 0, 0) > 0) {
        ;
    }
    profile_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before->mask, 0, sizeof before->mask, 0,
                    0);
}

/* Lines on stderr. */

/* Longest line, with its newline; longer ones are cut. */
#define LINE_BYTES 512
#define DELETE 0x7f

static bool started;
static struct stat at_start; /* all zeros: it was closed */

void pin_log_start(void)
{
    if (!started) {
        (void)fstat(STDERR_FILENO, &at_start);
        started = true;
    }
}

static bool stderr_is_ours(void)
{
    struct stat now;
    return !started || (fstat(STDERR_FILENO, &now) == 0 && now.st_dev == at_start.st_dev &&
                        now.st_ino == at_start.st_ino);
}

static int write_all(int file, const char *text, size_t length)
{
    struct pin_signals before;
    long done = 1;
    pin_signals_hold(&before);
    while (length > 0 && (done > 0 || done == -EINTR)) {
        done = profile_syscall(SYS_write, file, (long)text, (long)length, 0, 0, 0);
        const size_t written = done > 0 ? (size_t)done : 0;
        text += written;
        length -= written;
    }
    pin_signals_release(&before);
    return length == 0 ? 0 : done < 0 ? (int)done : -EIO;
}

/* A closed or full stderr is not this program's trouble. */
static void write_line(const char *line, size_t length)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct timespec at_once = {0};
    if (profile_syscall(SYS_ppoll, (long)&ready, 1, (long)&at_once, 0, 0, 0) != 0) {
        (void)write_all(STDERR_FILENO, line, length);
    }
}

/* process 0: the line is the whole program's. */
static void say_bounded(int process, const char *format, va_list arguments)
{
    char line[LINE_BYTES];
    if (!stderr_is_ours()) {
        return;
    }
    size_t used = (size_t)(process ? snprintf(line, sizeof line, "servet: process %d: ", process)
                                   : snprintf(line, sizeof line, "servet: "));
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
    say_bounded(0, format, arguments);
    va_end(arguments);
}

void pin_log(bool verbose, const char *format, ...)
{
    if (verbose) {
        va_list arguments;
        va_start(arguments, format);
        say_bounded(getpid(), format, arguments);
        va_end(arguments);
    }
}

/* -- small files -- */

#define FILE_MODE 0666 /* before the umask */

/* A pipe that is full, or has no reader, must not hold the program up. */
static int open_to_append(const char *path)
{
    struct stat info, entry;
    int file =
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, FILE_MODE);
    if (file < 0) {
        return -errno;
    }
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
        (lstat(path, &entry) < 0 || profile_planted(path, &entry))) {
        close(file);
        return -EACCES;
    }
    return file;
}

void pin_file_append(const char *where, const char *text, size_t length)
{
    static atomic_bool said;
    bool standard = strcmp(where, "stderr") == 0;
    if (standard && !stderr_is_ours()) {
        return;
    }
    int file = standard ? STDERR_FILENO : open_to_append(where);
    int code = file < 0 ? file : write_all(file, text, length);
    if (code < 0 && !standard && !atomic_exchange(&said, true)) {
        pin_failure("SERVET_REPORT: %s: %s", where, strerrordesc_np(-code));
    }
    if (!standard && file >= 0) {
        close(file);
    }
}

bool pin_file_is_json(const char *where)
{
    const char *end = strrchr(where, '.');
    return end && (strcmp(end, ".json") == 0 || strcmp(end, ".jsonl") == 0);
}

void pin_record(const char *where, bool verbose, const char *sentence,
                const struct profile_fact *facts)
{
    char *text;
    size_t length;
    FILE *out = verbose ? profile_stream_open(&text, &length) : NULL;
    if (out) {
        profile_record_say(out, sentence, facts);
        fclose(out);
        pin_log(text, "%s", text);
        free(text);
    }
    out = where ? profile_stream_open(&text, &length) : NULL;
    if (out) {
        profile_record_print(out, pin_file_is_json(where), getpid(), sentence, facts);
        fclose(out);
        pin_file_append(where, text ? text : "", length);
        free(text);
    }
}

static int check_own(int file, size_t size)
{
    struct stat info;
    if (fstat(file, &info) < 0) {
        return -errno;
    }
    if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        (info.st_mode & (S_IWGRP | S_IWOTH))) {
        return -EPERM;
    }
    return info.st_size < (off_t)size ? 0 : -EFBIG;
}

int pin_file_get_own(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        return -errno;
    }
    int code = check_own(file, size);
    ssize_t got = code < 0 ? 0 : read(file, text, size - 1);
    if (got < 0) {
        code = -errno;
    }
    close(file);
    text[code == 0 ? got : 0] = '\0';
    return code;
}
