/* Situations and ways of gains, which runs them and makes a table of what it ran. */
#pragma once

#define GAINS_SITUATIONS 7
#define GAINS_WAYS 3
#define GAINS_FREE (-1)

/* Parts of a machine of n PUs: copies of n / `part` threads each, beside n / `loops` busy loops,
 * each bound to a PU of the first ones; GAINS_FREE: one that is not bound. */
struct bench_gains_situation {
    const char *name; /* in the lines */
    const char *text; /* in the table */
    int copies, part, loops;
};

extern const struct bench_gains_situation bench_gains_situations[GAINS_SITUATIONS];
extern const char *const bench_gains_ways[GAINS_WAYS];

/* Prints a row for each situation, from the lines of a file. The exit status: 2, with one line on
 * stderr, where a line is none of gains. */
int bench_gains_table(const char *path);
