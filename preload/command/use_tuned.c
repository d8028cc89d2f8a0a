/* servet-pin --tuned: as servet-bench --tune found the program to be the fastest. */
#include <stdio.h>

#include "preload/command/command.h"
#include "preload/command/tuned.h"
#include "preload/place/plan.h"
#include "profile/base/cli.h"

/* Without an entry the program runs as it would without the option: a batch job must not fail for a
 * file that is missing. */
static bool say_untuned(const struct pin_command *command, const struct servet_error *why)
{
    for (char **word = command->program + 1; *word; word++) {
        if (pin_tuned_is_open(*word)) {
            cli_usage("--tuned: %s, expected it to be: '%s' has no number", why->text, *word);
        }
    }
    if (pin_command_speaks(command)) {
        cli_note("--tuned: %s (servet-bench --tune does it): placed as without it", why->text);
    }
    return true;
}

bool pin_command_use_tuned(struct pin_command *command)
{
    const struct pin_launcher *launcher = &command->launcher;
    char **argv = command->program;
    char path[PATH_MAX], number[16];
    struct profile_mask mask;
    struct servet_error why;
    struct pin_tuned tuned = {.ranks = launcher->name ? launcher->node_ranks : 0,
                              .threads = pin_plan_threads()};
    if (command->may_place && !launcher->name && profile_mask_get(0, &mask) == 0) {
        tuned.pus = (uint32_t)profile_mask_count(&mask);
    }
    if (pin_tuned_find(argv[0], argv + 1, &tuned, path, &why) < 0) {
        return say_untuned(command, &why);
    }
    if (pin_command_explains(command)) {
        cli_note("--tuned: threads %u, placement %s%s%s (%s)", tuned.threads,
                 pin_tuned_names[tuned.placement], tuned.memory ? ", memory " : "",
                 tuned.memory ? pin_tuned_memories[tuned.memory] : "", path);
    }
    snprintf(number, sizeof number, "%u", tuned.threads);
    pin_command_set("OMP_NUM_THREADS", number);
    for (char **word = argv + 1; *word; word++) {
        *word = cli_needed(pin_tuned_fill(*word, &tuned));
    }
    if (tuned.placement == PIN_TUNED_DEFAULT) {
        return false;
    }
    bool memory = tuned.placement == PIN_TUNED_MEMORY;
    pin_command_set(pin_option_table[PIN_MEM_PRIOR].name, memory ? "1" : "0");
    pin_command_set(pin_option_table[PIN_COMM_PRIOR].name, memory ? "0" : "1");
    if (tuned.memory != PIN_TUNED_FIRST_TOUCH && command->options.membind == PIN_MEMBIND_NONE) {
        pin_command_set(pin_option_table[PIN_MEMBIND].name, pin_tuned_memories[tuned.memory]);
    }
    pin_command_read_environment(command);
    return true;
}
