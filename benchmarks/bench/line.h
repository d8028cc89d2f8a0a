/* The user's line of the tuner: where the program is in it, what it fixes itself, and the same line
 * with other numbers. */
#pragma once

#include "benchmarks/bench/run.h"
#include "preload/command/tuned.h"

struct bench_line {
    char **words;     /* ended by NULL */
    size_t program;   /* its place among them */
    bool ranks;       /* a launcher starts it: {ranks} is one of the words before it */
    uint32_t threads; /* OMP_NUM_THREADS where a word before the program sets it; 0: none does */
};

/* cli_usage() for a line without a program, one of a launcher whose ranks are fixed, and one that
 * places the program itself. */
void bench_line_read(char **words, struct bench_line *out);

/* The line with these numbers. Without `servet_pin` that which takes them from the entry, which
 * knows the program by its arguments as they were given. */
void bench_line_build(const struct bench_line *line, const struct pin_tuned *with,
                      const char *servet_pin, struct words *out);

/* The same as a text for a shell, a new string. */
char *bench_line_text(const struct bench_line *line, const struct pin_tuned *with,
                      const char *servet_pin);
