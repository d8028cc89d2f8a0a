/* servet-pin: runs a command with the shim loaded and the SERVET_* variables set. Its options, and
 * the steps from its line to the program. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mapper/devices/devices.h"
#include "preload/base/filter.h"
#include "preload/command/command.h"
#include "profile/base/cli.h"

/* As a shell, env(1) and nohup(1): found but not executable, not found. */
enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

enum {
    KEY_TRACE = 0x100,
    KEY_AUTO,
    KEY_GPUS,
    KEY_MEMBIND,
    KEY_LOCAL_RANK,
    KEY_LOCAL_SIZE,
    KEY_VARIABLE = 0x200 /* and the number of one, in --help */
};

/* Which variable each option sets. */
static const struct {
    int key;
    size_t variable;
} sets[] = {
    {'m', PIN_MEM_PRIOR},
    {'c', PIN_COMM_PRIOR},
    {'p', PIN_PROFILE},
    {'v', PIN_VERBOSE},
    {'f', PIN_FORCE},
    {KEY_TRACE, PIN_TRACE},
    {KEY_AUTO, PIN_AUTO},
    {KEY_MEMBIND, PIN_MEMBIND},
    {KEY_LOCAL_RANK, PIN_LOCAL_RANK},
    {KEY_LOCAL_SIZE, PIN_LOCAL_SIZE},
};

static const struct argp_option choices[] = {
    {"mem-prior", 'm', NULL, 0, "Place threads and ranks to collide least in memory (default)", 0},
    {"comm-prior", 'c', NULL, 0, "Place threads and ranks to exchange messages fastest", 0},
    {"profile", 'p', "FILE", 0, "Profile of this machine", 0},
    {"verbose", 'v', NULL, 0, "Say on stderr where every thread and rank goes", 0},
    {"force", 'f', NULL, 0, "Place threads even where the user or the program has chosen already",
     0},
    {"trace", KEY_TRACE, "FILE", 0,
     "Write who sends how much to whom in an MPI program, for servet-map --matrix", 0},
    {"auto", KEY_AUTO, NULL, 0,
     "Choose the priority by what the last run of an MPI program was like", 0},
    {"dry-run", CLI_FLAG(struct pin_command, dry_run), NULL, 0,
     "Say where the ranks would go, as --verbose does, and start nothing", 0},
    {"tuned", CLI_FLAG(struct pin_command, tuned), NULL, 0,
     "Use the threads and the placement that servet-bench --tune found to be the fastest", 0},
    {"no-quota", CLI_FLAG(struct pin_command, no_quota), NULL, 0,
     "Start as many threads as there are PUs even where a quota lets fewer run", 0},
    {"membind", KEY_MEMBIND, "POLICY", 0,
     "Memory from the fast or the capacity tier, local, interleave or weighted", 0},
    {"gpus", KEY_GPUS, "N|exclusive|follow", OPTION_ARG_OPTIONAL,
     "Place each rank beside its share of the node's GPUs (or N of them), and tell it which; or a "
     "process near the GPU that it takes",
     0},
    {"nics", CLI_FLAG(struct pin_command, devices.nics), NULL, 0,
     "Tell each rank which network cards are nearest", 0},
    {"local-rank", KEY_LOCAL_RANK, "VARIABLE", 0,
     "Where no launcher is known: the variable that counts the processes on this node, from 0", 0},
    {"local-size", KEY_LOCAL_SIZE, "VARIABLE|NUMBER", 0, "How many processes that are", 0},
    {"variables", CLI_FLAG(struct pin_command, variables), NULL, 0,
     "Print the table of environment variables (Markdown) and exit", 1},
    {0},
};

static error_t parse_pin(int key, char *argument, struct argp_state *state)
{
    struct pin_command *command = state->input;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (sets[i].key == key) {
            command->values[sets[i].variable] = argument ? argument : "1";
            return 0;
        }
    }
    if (key == KEY_GPUS && argument && strcmp(argument, "follow") == 0) {
        command->values[PIN_GPUS] = argument;
        return 0;
    }
    if (key == KEY_GPUS) {
        bool exclusive = argument && strcmp(argument, "exclusive") == 0;
        command->devices.exclusive = exclusive;
        command->devices.gpus =
            !argument || exclusive
                ? MAP_ALL_GPUS
                : (uint32_t)cli_integer("--gpus", argument, 1, MAP_WORKER_LIMIT - 1);
        return 0;
    }
    return cli_set_member(key, argument, command) ? 0 : ARGP_ERR_UNKNOWN;
}

/* The table of variables, below the options in --help. */
static struct argp_option variables[PIN_OPTION_COUNT + 1];

static void list_variables(void)
{
    for (int i = 0; i < PIN_OPTION_COUNT; i++) {
        char *text; /* stays */
        cli_done(
            asprintf(&text, "%s [%s]", pin_option_table[i].meaning, pin_option_table[i].fallback));
        variables[i] = (struct argp_option){.name = pin_option_table[i].name,
                                            .key = KEY_VARIABLE + i,
                                            .flags = OPTION_DOC | OPTION_NO_USAGE,
                                            .doc = text};
    }
}

static int print_variables(void)
{
    printf("| variable | default | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < PIN_OPTION_COUNT; i++) {
        printf("| `%s` | %s | %s |\n", pin_option_table[i].name, pin_option_table[i].fallback,
               pin_option_table[i].meaning);
    }
    return cli_finish(CLI_OK);
}

/* A program of this folder is looked for in the PATH alone; of a script that is there the kernel
 * says, too, that there is no such file. */
static int start_program(const struct pin_command *command)
{
    const char *name = command->program[0];
    execvp(name, command->program);
    const int error = errno;
    const bool is_here = error == ENOENT && *name && access(name, F_OK) == 0;
    if (is_here && !strchr(name, '/')) {
        cli_note("%s: not in the PATH; expected ./%s?", name, name);
    } else if (is_here) {
        cli_note("%s: it is there, but its interpreter or loader is not", name);
    } else {
        cli_note("%s: %s", name, strerror(error));
    }
    return error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}

/* False: it asks for no program. */
static bool read_line(struct pin_command *command, int argc, char **argv)
{
    static const struct argp environment = {.options = variables};
    static const struct argp_child children[] = {
        {&environment, 0, "Environment (also read without servet-pin; 0 is off):", 2}, {0}};
    static const struct argp argp = {
        .options = choices,
        .parser = parse_pin,
        .args_doc = "[--] COMMAND [ARGUMENT...]",
        .doc = "Run a command with its threads and ranks placed as the machine's profile says.",
        .children = children,
    };
    const char *const *values = command->values;
    int first;
    list_variables();
    cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &first, command);
    command->program = argv + first;
    if (command->variables) {
        return false;
    }
    if (values[PIN_MEM_PRIOR] && values[PIN_COMM_PRIOR]) {
        cli_usage("--mem-prior and --comm-prior exclude each other");
    }
    if (!command->program[0]) { /* argv ends with it */
        cli_usage("no command to run; expected: servet-pin [OPTION...] -- COMMAND [ARGUMENT...]");
    }
    if (command->tuned && (values[PIN_MEM_PRIOR] || values[PIN_COMM_PRIOR] || values[PIN_AUTO])) {
        cli_usage("--tuned and --mem-prior, --comm-prior, --auto exclude each other");
    }
    const char *trace = values[PIN_TRACE];
    if (trace && (!*trace || strcmp(trace, "-") == 0)) {
        cli_usage("--trace: '%s', expected the name of a file", trace);
    }
    if (command->dry_run) {
        command->values[PIN_VERBOSE] = "1";
    }
    return true;
}

int main(int argc, char **argv)
{
    struct pin_command command = {0};
    bool may_speak;
    if (!read_line(&command, argc, argv)) {
        return print_variables();
    }
    pin_command_set_variables(&command);
    pin_command_read_environment(&command);
    command.may_place = pin_filter_spares_us(&may_speak);
    if (!command.tuned || pin_command_use_tuned(&command)) {
        pin_command_keep_quota(&command);
        pin_command_preload(&command);
        const char *why = pin_command_place(&command);
        if (why && may_speak && pin_command_explains(&command)) {
            cli_note("%s", why);
        }
    }
    return command.dry_run ? CLI_OK : start_program(&command);
}
