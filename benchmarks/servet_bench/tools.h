/* Where the programs are that servet-bench runs. */
#ifndef SERVET_BENCH_TOOLS_H
#define SERVET_BENCH_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

/* Path of a command of this project, as a new string: beside this program, in the build tree around
 * it, or in $PATH. NULL when it is nowhere. */
char *tools_ours(const char *name);
/* Path of any command in $PATH (or of a name with a slash that can be executed), as a new string,
 * or NULL. */
char *tools_find(const char *name);
/* The folder of our kernels, as a new string, or NULL. */
char *tools_kernels(void);
/* A program, script or folder of the build folder by its path from that of servet-bench, as a new
 * string, or NULL. */
char *tools_built(const char *path);
/* A program of the benchmarks that lies with servet-bench or with the kernels, or NULL. */
char *tools_beside(const char *name);
/* A profile of one of the papers' machines by its file name: its path, as a new string, or NULL. */
char *tools_machine(const char *name);
/* PUs that this process may use. */
size_t tools_pus(void);

#endif
