/* The environment of the program: variables that the line of servet-pin sets, and what all of them
 * say. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/command/command.h"
#include "profile/base/cli.h"

void pin_command_set(const char *name, const char *value)
{
    if (setenv(name, value, 1) < 0) {
        cli_fail("cannot set %s: %s", name, strerror(errno));
    }
}

/* A profile that is asked for and cannot be used is refused here; one that is only looked for is
 * not missed. The program may change its folder before it makes a thread: the name is absolute. */
static void set_profile(const char *profile)
{
    char absolute[PATH_MAX];
    struct servet_profile *loaded;
    struct servet_error error;
    if (profile_load_node(profile, &loaded, &error) < 0) {
        cli_usage("--profile%s%s", *profile ? ": " : ": expected the name of a file, got ''",
                  *profile ? error.text : "");
    }
    if (profile_matches(loaded, "", NULL, &error) < 0) {
        cli_usage("--profile: %s: expected a profile of this machine, %s", profile, error.text);
    }
    profile_free(loaded);
    pin_command_set(pin_option_table[PIN_PROFILE].name,
                    realpath(profile, absolute) ? absolute : profile);
}

/* --local-rank and --local-size go together, and the variables that they name have to be set: else
 * the process would be no rank, unnoticed. */
static void check_local(const struct pin_command *command)
{
    static const struct {
        size_t variable;
        const char *option, *is;
    } both[] = {
        {PIN_LOCAL_RANK, "--local-rank", "the name of a variable with the local rank"},
        {PIN_LOCAL_SIZE, "--local-size", "a number from 1, or the name of a variable with it"}};
    for (size_t i = 0; i < 2; i++) {
        const char *value = command->values[both[i].variable],
                   *other = getenv(pin_option_table[both[1 - i].variable].name);
        char *end;
        const char *number = value && !isdigit((unsigned char)*value) ? getenv(value) : value;
        if (value && (!number || !isdigit((unsigned char)*number) ||
                      strtoul(number, &end, 10) < i || *end)) {
            cli_usage("%s: expected %s, got '%s'%s%s", both[i].option, both[i].is, value,
                      number == value ? ""
                      : number        ? " = "
                                      : ", which is not set",
                      number && number != value ? number : "");
        }
        if (value && !other) {
            cli_usage("%s: expected %s with it", both[i].option, both[1 - i].option);
        }
    }
}

void pin_command_set_variables(const struct pin_command *command)
{
    const char *const *values = command->values;
    /* Either priority turns the other off. */
    if (values[PIN_MEM_PRIOR] || values[PIN_COMM_PRIOR]) {
        pin_command_set(pin_option_table[PIN_MEM_PRIOR].name, values[PIN_MEM_PRIOR] ? "1" : "0");
        pin_command_set(pin_option_table[PIN_COMM_PRIOR].name, values[PIN_COMM_PRIOR] ? "1" : "0");
    }
    for (size_t i = 0; i < PIN_OPTION_COUNT; i++) {
        if (i == PIN_PROFILE && values[i]) {
            set_profile(values[i]);
        } else if (values[i]) {
            pin_command_set(pin_option_table[i].name, values[i]);
        }
    }
    check_local(command);
}

void pin_command_read_environment(struct pin_command *command)
{
    command->options = (struct pin_options){0};
    pin_options_read(&command->options);
    pin_launcher_read(command->options.rebind, &command->launcher);
}

void pin_command_refuse_misspelt(const struct pin_command *command)
{
    for (char **variable = environ; *variable;) {
        const char *right;
        size_t length = pin_options_misspelt(*variable, &right);
        if (!right) {
            variable++;
            continue;
        }
        char *name = strndup(*variable, length);
        if (!name || unsetenv(name) < 0) {
            cli_fail("%s", strerror(errno));
        }
        if (pin_command_speaks(command)) {
            cli_note("%s: not known, did you mean %s?", name, right);
        }
        free(name);
        variable = environ;
    }
}
