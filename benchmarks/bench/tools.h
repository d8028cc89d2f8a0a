/* Where the programs are that servet-bench runs, and memory that is there. */
#pragma once

#include <regex.h>
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
/* `count` zeroed things of `size` bytes (one, where count is 0), a copy of a text, and a text as
 * printf() writes it. Where there is no memory the command ends: one line, status 1. */
void *bench_memory(size_t count, size_t size);
char *bench_copy(const char *text);
char *bench_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* regexec(3): does `text` match? It needs memory, too. */
bool bench_matches(const regex_t *compiled, const char *text, size_t count, regmatch_t *match,
                   int flags);
/* Makes the folder and those that it lies in. 0; -EEXIST: it is no folder; -errno. */
int bench_make_folder(const char *path);
/* PUs that this process may use. */
size_t bench_tools_pus(void);
/* CPUs that a quota lets it use at a time, 0 where there is none; in words, for a header. */
struct bench_quota {
    double cpus;
    char text[40];
};
struct bench_quota bench_tools_quota(void);
