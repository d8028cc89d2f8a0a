/* Other programs: started with what they need, waited for, and their output kept. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "profile/base/error.h"

/* Where a file is that is installed with this program: in the first of `places` (folders, from this
 * program's own or absolute; the last is NULL) in which it may be read or run (`mode`: R_OK, X_OK).
 * 0, or -ENOENT. */
int profile_child_find(const char *const *places, const char *name, int mode, char path[PATH_MAX]);

/* In the place of a descriptor: /dev/null. */
#define PROFILE_CHILD_NOTHING (-1)

struct profile_child {
    char *const *argv; /* argv[0] is looked for in PATH */
    /* "NAME=VALUE" is set, "NAME" is taken away; ends with NULL; may be NULL. */
    const char *const *environment;
    const char *folder;  /* it starts there; NULL: in ours */
    int in, out, errors; /* its standard streams: descriptors, or PROFILE_CHILD_NOTHING */
    bool own_group;      /* Ctrl-C on the terminal does not reach it */
    int dies_with_us;    /* the signal that it gets when our thread ends; 0: none */
    void (*prepare)(void *context); /* in the child, before the program; may be NULL */
    void *context;
};

/* Starts it, with the default action for the signals that end a command. 0 and its number in *pid;
 * -ENOENT: there is no such program; -EACCES …: it cannot be started; -EAGAIN, -ENOMEM, -EMFILE. */
int profile_child_start(const struct profile_child *child, pid_t *pid);

/* Starts it and waits: as wait_for(), or what profile_child_start() says. */
int profile_child_run(const struct profile_child *child);

/* Calls it in a copy of this process, so that a library that crashes on its input takes only the
 * copy with it. The content of `memory`, `size` bytes (both may be 0), is as if it had been called
 * here; all other changes and its output on stderr are lost. Returns the value of the call (0 or
 * less); -EFAULT: it crashed; -EAGAIN, -ENOMEM. */
int profile_child_call(int (*call)(void *context), void *context, void *memory, size_t size);

/* A file in memory for an output: the writer never waits for a reader. The descriptor, or
 * -errno. */
int profile_child_file(void);
/* Reads the file: its content, with a 0 behind; free() it. 0, -ENOMEM, -EIO. */
int profile_child_read(int fd, char **text);
/* The first line in it that says something (mpirun frames its messages with dashes), or "". */
void profile_child_complaint(int fd, char *line, size_t size);
