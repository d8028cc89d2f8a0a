/* Every SERVET_* variable that the shim and servet-pin know, in one table: the only reader of these
 * variables, and what `servet-pin --help`, `servet-pin --variables` and the tables of the README
 * and the man page are printed from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum pin_option_id {
    PIN_MEM_PRIOR,
    PIN_COMM_PRIOR,
    PIN_PROFILE,
    PIN_VERBOSE,
    PIN_FORCE,
    PIN_DISABLE,
    PIN_HELPERS,
    PIN_WORKERS,
    PIN_REGISTRY,
    PIN_MEMBIND,
    PIN_REPORT,
    PIN_TRACE,
    PIN_TRACE_TIMES,
    PIN_AUTO,
    PIN_REBIND,
    PIN_RANK,
    PIN_WATCH,
    PIN_BESIDE,
    PIN_LOCAL_RANK, /* these two are read as a launcher's are */
    PIN_LOCAL_SIZE,
    PIN_GPUS,
    PIN_OPTION_COUNT,
};

struct pin_option {
    const char *name;     /* of the environment variable */
    const char *fallback; /* what holds when it is not set, in words */
    const char *meaning;  /* one line */
};

extern const struct pin_option pin_option_table[PIN_OPTION_COUNT];

/* Longest list of patterns; a longer one counts as not set. */
#define PIN_PATTERNS_SIZE 1024

enum pin_membind {
    PIN_MEMBIND_NONE,
    PIN_MEMBIND_LOCAL,
    PIN_MEMBIND_INTERLEAVE,
    PIN_MEMBIND_FAST, /* from here on by what nodes do, which a profile says */
    PIN_MEMBIND_CAPACITY,
    PIN_MEMBIND_WEIGHTED,
    PIN_MEMBIND_UNKNOWN
};

#define PIN_MEMBIND_EXPECTED "expected fast, capacity, local, interleave, weighted or none"
extern const char *const pin_membind_words[PIN_MEMBIND_UNKNOWN];

struct pin_options {
    bool mem_prior, comm_prior, verbose, force, disable, no_registry, rebind, trace_times,
        auto_priority, no_watch, follow;
    enum pin_option_id too_long; /* a text whose value was, 0: none */
    enum pin_membind membind;
    const char *helpers, *workers;                   /* NULL when not set, as all texts here */
    const char *profile, *registry, *report, *trace; /* files, by absolute path */
};

/* Reads the environment. A switch is on when it is set to anything but "" and "0". Opens nothing,
 * allocates nothing. `out` must be all zeros; its texts hold until the next call. */
void pin_options_read(struct pin_options *out);

/* Says on stderr which value was too long, if one was. */
void pin_options_say_refused(const struct pin_options *options);

/* The variable ("NAME=VALUE") that may be a misspelt one of ours, if it is. `right`: the name that
 * is meant; NULL: it is none. Returns the length of its name. */
size_t pin_options_misspelt(const char *variable, const char **right);

/* Has the kernel started this program with more rights than its caller has (set-user-ID,
 * set-group-ID, file capabilities)? */
bool pin_options_privileged(void);

/* getenv(), but NULL in a privileged program. */
const char *pin_environment(const char *name);
/* Is it there, and not empty? */
bool pin_is_set(const char *name);
