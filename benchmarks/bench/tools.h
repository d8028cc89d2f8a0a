/* Where the programs are that servet-bench runs. */
#ifndef SERVET_BENCHMARKS_BENCH_TOOLS_H
#define SERVET_BENCHMARKS_BENCH_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

/* Path of a command of this project, as a new string: beside this program, in the build tree around
 * it, or in $PATH. NULL when it is nowhere. */
char *bench_tools_ours(const char *name);
/* Path of any command in $PATH (or of a name with a slash that can be executed), as a new string,
 * or NULL. */
char *bench_tools_find(const char *name);
/* The folder of our kernels, as a new string, or NULL. */
char *bench_tools_kernels(void);
/* A program, script or folder of the build folder by its path from that of servet-bench, as a new
 * string, or NULL. */
char *bench_tools_built(const char *path);
/* PUs that this process may use. */
size_t bench_tools_pus(void);

#endif
