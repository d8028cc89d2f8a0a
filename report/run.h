/* Another program as a filter: text in, picture out. */
#ifndef SERVET_REPORT_RUN_H
#define SERVET_REPORT_RUN_H

#include "error.h"

#include <stddef.h>

/* Runs argv[0] (looked for in PATH) with `length` bytes of `input` on its standard input and returns what it wrote on
 * its standard output, terminated by a zero that *out_length does not count; free() it. Nothing touches the disk.
 * 0; -ENOENT (not installed); -EIO with the program's first line on stderr (it failed, or wrote nothing); -ENOMEM. */
int run_filter(char *const argv[], const char *input, size_t length, char **out, size_t *out_length,
               struct servet_error *error);

#endif
