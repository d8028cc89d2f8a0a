/* Runs a built command as a user does. */
#ifndef SERVET_TESTS_MAPPER_COMMAND_H
#define SERVET_TESTS_MAPPER_COMMAND_H

#include <stddef.h>

struct run {
    int status;
    char *out, *err; /* what it wrote; free with run_free() */
};

/* `line` is split at blanks; 'single quotes' keep them. The first word is the path of the
 * command. */
struct run run_command(const char *line);
void run_free(struct run *run);
size_t count_lines(const char *text);

#endif
