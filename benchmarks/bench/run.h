/* Command lines, and running them: how long one took and what it printed. Memory that is not there
 * ends the command. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* An argument vector or an environment under construction. */
struct words {
    char **list; /* ended by NULL */
    size_t count;
};

void bench_words_add(struct words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void bench_words_add_all(struct words *words, char *const *list);
void bench_words_free(struct words *words);
/* All words with blanks between, quoted for a shell where they need it, as a new string. */
char *bench_words_text(const struct words *words);

struct bench_run {
    int status;      /* exit status; 128 + signal; 127 when it cannot be started */
    bool timed_out;  /* it, and its process group, were ended */
    double seconds;  /* wall time from before fork to after wait */
    char *out;       /* what it wrote on stdout */
    char *complaint; /* why, from stderr: see run.c; or NULL */
};

/* A launcher that is asked to end its ranks gets so long for it before it is killed. */
#define BENCH_GRACE_SECONDS 0.5

/* Runs `copies` of the command at the same time and fills runs[copies]; after `limit_seconds` they
 * are asked to end, and killed if they do not. The environment, which they inherit, loses whatever
 * places programs (see comparator.h). */
void bench_run(const struct words *argv, const struct words *environment, size_t copies,
               double limit_seconds, struct bench_run *runs);
void bench_run_free(struct bench_run *run);

/* From now on SIGINT, SIGTERM and SIGHUP end a run as its limit does, and not this command; and
 * what a run that was ended leaves behind, in whatever process group, is killed. */
void bench_run_hold_signals(void);
/* The signal that came; 0: none. */
int bench_run_interrupted(void);
