/* The file that SERVET_TRACE names: a matrix in Matrix Market's form, which servet-map --matrix reads. */
#ifndef SERVET_PRELOAD_TRACE_FILE_H
#define SERVET_PRELOAD_TRACE_FILE_H

#include "trace_gather.h"

/* Entry (i, j), counted from 1, is the bytes that rank i - 1 sent to rank j - 1. Comments before the size line hold the
 * rest, numbered in the same way: "% messages I J N", "% rank I …". 0, -ENOMEM, -EINVAL (not a regular file), -errno.
 */
int trace_file_write(const char *path, const struct trace_sum *sum);

#endif
