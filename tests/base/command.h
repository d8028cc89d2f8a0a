/* Runs a program as a user does, and keeps what it wrote. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct run {
    int status;      /* exit status; 128 + signal; 127 if it could not be started */
    char *out, *err; /* what it wrote; they stay */
};

/* Runs argv (ended by NULL, found by $PATH) with nothing to read. `prepare`, which may be NULL, is
 * called with `context` in the new process before the program starts. */
struct run run_program(const char *const *argv, void (*prepare)(const void *context),
                       const void *context);

/* The same for a line as printf() makes it, split at blanks; 'single quotes' keep them. */
struct run run_command(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Bad input: the command ends with status 2 and one line on stderr, which has `named` in it. */
void expect_refused(const char *named, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Runs it in a copy of this process, which must end well: what() returned, and no signal within the
 * minute. */
void in_a_process(void (*what)(void));

/* A copy of this process that has done its part, and waits until it is ended. */
struct other {
    pid_t pid;
    int said; /* the answer of `what` */
};

struct other start_process(int (*what)(void));
void end_process(const struct other *other); /* by SIGKILL */

size_t count_lines(const char *text);
size_t count_of(const char *text, const char *word);

/* Is there such a tool in $PATH, or such a program of ours? If not, a line says what is not
 * checked. */
bool is_installed(const char *tool);
bool is_built(const char *path);

/* Is there a loopback, by which MPI's launchers speak to their ranks? If not, a line says so. */
bool has_loopback(void);
