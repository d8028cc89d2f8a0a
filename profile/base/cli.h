/* Common to all commands: argp for options, one line on stderr and exit status 2 for bad usage, 1
 * for a failure, --help and --version from the same table. Not part of the shim. */
#pragma once

#include <argp.h>
#include <stddef.h>

#include "profile/model.h"

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* Parses argv by `argp`. Bad usage ends the program with status 2 after exactly one line on stderr
 * (argp's own second line, "Try …", is left out). Parsers report their own findings with
 * cli_usage().
 * Standard streams that are closed are held, so that no file gets their numbers.
 * With ARGP_IN_ORDER in `flags`, options end at the first argument that is none (commands that run
 * another). */
void cli_parse(const struct argp *argp, int argc, char **argv, unsigned flags, int *first_argument,
               void *input);

/* Keys of options that do no more than to set a member of a command's structure: a bool becomes
 * true, a const char * is the argument. They are options of their long name only. */
enum { CLI_FLAGS = 0x1000, CLI_TEXTS = 0x2000, CLI_KEYS_END = 0x3000 };
#define CLI_FLAG(type, member) (CLI_FLAGS + (int)offsetof(type, member))
#define CLI_TEXT(type, member) (CLI_TEXTS + (int)offsetof(type, member))
/* Sets it; false: the key is none of these. */
bool cli_set_member(int key, const char *argument, void *members);

/* "servet-map: …" on stderr, and the end. */
_Noreturn void cli_end(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define cli_usage(...) cli_end(CLI_USAGE, __VA_ARGS__)
#define cli_fail(...) cli_end(CLI_FAILED, __VA_ARGS__)
/* "servet-map: …" on stderr, goes on. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program on an error: with status 1 where it is one of the system's (no memory, input or
 * output), else 2. */
void cli_check(int rc, const struct servet_error *error);

/* For what cannot fail but for want of memory: the memory, or 0, or the end of the program. */
void *cli_needed(void *memory);
void cli_done(int rc);

/* The profile in a file, or the end of the program. */
struct servet_profile *cli_load(const char *path);

/* Says once that a profile has keys which are not known, if it has. */
void cli_note_unknown(const struct servet_profile *profile);

/* The argument of `option` as an integer in [low, high], or cli_usage(). */
long cli_integer(const char *option, const char *text, long low, long high);
/* The argument of `option` as a number in [low, high], or cli_usage(). */
double cli_number(const char *option, const char *text, double low, double high);
/* The same as seconds: "90", "90s" or "1.5m". */
double cli_seconds(const char *option, const char *text);
/* The argument of `option` as a cpulist, or cli_usage(). */
struct profile_set cli_set(const char *option, const char *text);

/* Flushes and closes stdout; a full disk or a closed pipe is a failure (status 1), not silence.
 * Call it last. */
int cli_finish(int status);
