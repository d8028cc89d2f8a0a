/* Common to all commands: argp for options, one line on stderr, exit status 2 for bad usage and 1
 * for a failure. For commands only: a library never ends the program. */
#include "profile/base/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/base/error.h"
#include "profile/base/file.h"
#include "profile/base/guess.h"

/* Visible, because it is glibc that reads it: in a room built with hidden visibility --version
 * would be missing. */
__attribute__((visibility("default"))) const char *argp_program_version = "servet " SERVET_VERSION;

static void say_note(const char *format, va_list args)
{
    char line[1024];
    vsnprintf(line, sizeof line, format, args);
    /* The text may hold any bytes; one line stays one line, and no control sequence reaches a
     * terminal. */
    profile_clean_text(line);
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
}

_Noreturn void cli_end(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_note(format, args);
    va_end(args);
    exit(status);
}

void cli_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_note(format, args);
    va_end(args);
}

/* With a standard stream closed, the next file that is opened would get its number, and what is
 * meant for the stream would be written into it: a profile with an error message inside. Opened the
 * other way round, so that using it fails as it did before. */
static void hold_standard_streams(void)
{
    struct stat status;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &status) < 0) {
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

/* jansson 2.14 frees what it has not made when an allocation fails midway; a command can end
 * before that. */
static void *allocate_or_end(size_t bytes)
{
    return cli_needed(malloc(bytes));
}

/* The command's argp wrapped as a child: this is the only place where argp lets us take away its
 * error stream before it parses anything. getopt still prints its one line ("unrecognized option
 * '--x'"). */
static error_t parse_wrapper(int key, char *argument, struct argp_state *state)
{
    (void)argument;
    if (key != ARGP_KEY_INIT) {
        return ARGP_ERR_UNKNOWN;
    }
    state->child_inputs[0] = state->input;
    state->err_stream = NULL;
    return 0;
}

/* -- options that were misspelt -- */

/* The option that the word, or the beginning of it, names; NULL: none. */
static const struct argp_option *find_option(const struct argp *argp, struct profile_guess *search)
{
    const struct argp_option *o = argp->options;
    for (; o && (o->name || o->key || o->doc); o++) {
        if (o->name && strncmp(o->name, search->word, search->length) == 0) {
            return o;
        }
        if (o->name) {
            profile_guess(search, o->name);
        }
    }
    for (const struct argp_child *child = argp->children; child && child->argp; child++) {
        const struct argp_option *found = find_option(child->argp, search);
        if (found) {
            return found;
        }
    }
    return NULL;
}

/* The argument of such an option is behind a "=": the next word would be taken for a file, or for
 * the program where one follows and that is no number. */
static void refuse_apart(const struct argp_option *option, const char *next, unsigned flags)
{
    const bool apart = next && *next != '-' &&
                       (!(flags & ARGP_IN_ORDER) || next[strspn(next, "0123456789")] == '\0');
    if (apart) {
        cli_usage("--%s %s: expected --%s=%s", option->name, next, option->name, next);
    }
}

/* Only what is near a known option is refused here; for the rest getopt has its line. The first
 * options are argp's own. */
static void refuse_misspelt(const struct argp *argp, int argc, char **argv, unsigned flags)
{
    static const struct argp_option every[] = {
        {.name = "help"}, {.name = "usage"}, {.name = "version"}, {0}};
    const struct argp_child children[] = {{argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
    const struct argp all = {.options = every, .children = children};
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            if (*argv[i] != '-' && flags & ARGP_IN_ORDER) {
                return; /* from here on they are the program's own */
            }
            continue;
        }
        struct profile_guess search = {.word = argv[i] + 2};
        search.length = strcspn(search.word, "=");
        const struct argp_option *option = find_option(&all, &search);
        if (!option && search.name) {
            cli_usage("unrecognized option '%s', did you mean '--%s'?", argv[i], search.name);
        }
        if (!option || !option->arg || search.word[search.length]) {
            continue;
        }
        if (option->flags & OPTION_ARG_OPTIONAL) {
            refuse_apart(option, argv[i + 1], flags);
            continue;
        }
        i++; /* the next word is its argument */
    }
}

/* --help and --version end the program within argp. */
static void finish_at_exit(void)
{
    if (cli_finish(CLI_OK) != CLI_OK) {
        _exit(CLI_FAILED);
    }
}

void cli_parse(const struct argp *argp, int argc, char **argv, unsigned flags, int *first_argument,
               void *input)
{
    struct argp command = *argp;
    command.args_doc = NULL;
    command.doc = NULL;
    const struct argp_child children[] = {{&command, 0, NULL, 0}, {NULL, 0, NULL, 0}};
    const struct argp outer = {.parser = parse_wrapper,
                               .args_doc = argp->args_doc,
                               .doc = argp->doc,
                               .children = children};
    hold_standard_streams();
    (void)atexit(finish_at_exit);
    json_set_alloc_funcs(allocate_or_end, free);
    argp_err_exit_status = CLI_USAGE;
    /* getopt words its errors by it. */
    argv[0] = program_invocation_short_name;
    refuse_misspelt(argp, argc, argv, flags);
    int rest = argc;
    error_t err = argp_parse(&outer, argc, argv, flags, &rest, input);
    cli_done(err == ENOMEM ? -ENOMEM : 0);
    if (err) {
        exit(CLI_USAGE);
    }
    if (first_argument) {
        *first_argument = rest;
    } else if (rest < argc) {
        cli_usage("unexpected argument '%s'", argv[rest]);
    }
}

bool cli_set_member(int key, const char *argument, void *members)
{
    if (key >= CLI_FLAGS && key < CLI_TEXTS) {
        *((bool *)members + (key - CLI_FLAGS)) = true;
        return true;
    }
    if (key >= CLI_TEXTS && key < CLI_KEYS_END) {
        memcpy((char *)members + (key - CLI_TEXTS), &argument, sizeof argument);
        return true;
    }
    return false;
}

void *cli_needed(void *memory)
{
    if (!memory) {
        cli_fail("out of memory");
    }
    return memory;
}

void cli_done(int rc)
{
    (void)cli_needed(rc < 0 ? NULL : &rc);
}

void cli_check(int rc, const struct servet_error *error)
{
    if (rc == -ENOMEM || rc == -EIO) {
        cli_fail("%s", error->text);
    }
    if (rc < 0) {
        cli_usage("%s", error->text);
    }
}

/* XML begins with '<', JSON never does. */
static bool is_xml(const char *path)
{
    char first[2];
    return profile_read_small(path, first, sizeof first) && first[0] == '<';
}

struct servet_profile *cli_load(const char *path)
{
    struct servet_profile *profile;
    struct servet_error error;
    const bool xml = is_xml(path);
    int rc =
        xml ? profile_from_hwloc(path, &profile, &error) : profile_load(path, &profile, &error);
    if (xml && rc == -EINVAL) {
        cli_usage("%s", error.text);
    }
    cli_check(rc, &error);
    cli_note_unknown(profile);
    return profile;
}

void cli_note_unknown(const struct servet_profile *profile)
{
    if (profile->unknown) {
        cli_note("%s: not known to servet " SERVET_VERSION ", ignored and kept", profile->unknown);
    }
}

long cli_integer(const char *option, const char *text, long low, long high)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < low || value > high) {
        cli_usage("%s: expected an integer from %ld to %ld, got '%s'", option, low, high, text);
    }
    return value;
}

double cli_number(const char *option, const char *text, double low, double high)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || *end || !isfinite(value) || value < low || value > high) {
        cli_usage("%s: expected a number from %g to %g, got '%s'", option, low, high, text);
    }
    return value;
}

double cli_seconds(const char *option, const char *text)
{
    char number[32];
    const size_t length = strlen(text);
    const char unit = length > 0 ? text[length - 1] : '\0';
    snprintf(number, sizeof number, "%.*s", (int)(length - (unit == 's' || unit == 'm')), text);
    char *end;
    const double value = strtod(number, &end);
    if (end == number || *end || !(value >= 0.001 && value <= 1e9)) {
        cli_usage("%s: expected a time in seconds or minutes, such as 90, 90s or 10m, got '%s'",
                  option, text);
    }
    return value * (unit == 'm' ? 60 : 1);
}

struct profile_set cli_set(const char *option, const char *text)
{
    struct profile_set set;
    int rc = profile_set_parse(text, &set);
    if (rc == -ENOMEM) {
        cli_fail("%s: %s", option, strerror(ENOMEM));
    }
    if (rc < 0) {
        cli_usage("%s: expected a list of PUs such as 0-3,8, got '%s'", option, text);
    }
    return set;
}

int cli_finish(int status)
{
    static bool told;
    if (!told && (fflush(stdout) != 0 || ferror(stdout))) {
        told = true;
        cli_note("cannot write to standard output: %s", strerror(errno));
        return status ? status : CLI_FAILED;
    }
    return status;
}
