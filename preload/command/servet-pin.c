/* servet-pin: runs a command with the shim loaded and the SERVET_* variables set. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mapper/devices/devices.h"
#include "preload/base/filter.h"
#include "preload/command/devices.h"
#include "preload/command/preloadable.h"
#include "preload/command/quota.h"
#include "preload/command/tuned.h"
#include "preload/node/log.h"
#include "preload/node/registry.h"
#include "preload/place/options.h"
#include "preload/place/places.h"
#include "preload/place/process.h"
#include "profile/base/child.h"
#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/base/launchers.h"
#include "profile/base/mask.h"
#include "profile/text/record.h"

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

struct request {
    const char *values[PIN_OPTION_COUNT]; /* for the variables; NULL: not asked for */
    bool tuned, no_quota, variables, dry_run;
    struct pin_device_wish devices;
};

/* As the environment says, with what the command line adds to it. */
static struct pin_options options;
static struct pin_launcher launcher, planned; /* planned: by whose mask the plan was made */

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
    {"dry-run", CLI_FLAG(struct request, dry_run), NULL, 0,
     "Say where the ranks would go, as --verbose does, and start nothing", 0},
    {"tuned", CLI_FLAG(struct request, tuned), NULL, 0,
     "Use the threads and the placement that servet-bench --tune found to be the fastest", 0},
    {"no-quota", CLI_FLAG(struct request, no_quota), NULL, 0,
     "Start as many threads as there are PUs even where a quota lets fewer run", 0},
    {"membind", KEY_MEMBIND, "POLICY", 0,
     "Memory from the fast or the capacity tier, local, interleave or weighted", 0},
    {"gpus", KEY_GPUS, "N|exclusive|follow", OPTION_ARG_OPTIONAL,
     "Place each rank beside its share of the node's GPUs (or N of them), and tell it which; or a "
     "process near the GPU that it takes",
     0},
    {"nics", CLI_FLAG(struct request, devices.nics), NULL, 0,
     "Tell each rank which network cards are nearest", 0},
    {"local-rank", KEY_LOCAL_RANK, "VARIABLE", 0,
     "Where no launcher is known: the variable that counts the processes on this node, from 0", 0},
    {"local-size", KEY_LOCAL_SIZE, "VARIABLE|NUMBER", 0, "How many processes that are", 0},
    {"variables", CLI_FLAG(struct request, variables), NULL, 0,
     "Print the table of environment variables (Markdown) and exit", 1},
    {0},
};

static error_t parse_pin(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (sets[i].key == key) {
            request->values[sets[i].variable] = argument ? argument : "1";
            return 0;
        }
    }
    if (key == KEY_GPUS && argument && strcmp(argument, "follow") == 0) {
        request->values[PIN_GPUS] = argument;
        return 0;
    }
    if (key == KEY_GPUS) {
        bool exclusive = argument && strcmp(argument, "exclusive") == 0;
        request->devices.exclusive = exclusive;
        request->devices.gpus =
            !argument || exclusive
                ? MAP_ALL_GPUS
                : (uint32_t)cli_integer("--gpus", argument, 1, MAP_WORKER_LIMIT - 1);
        return 0;
    }
    return cli_set_member(key, argument, request) ? 0 : ARGP_ERR_UNKNOWN;
}

/* The table of variables, below the options in --help. */
static struct argp_option variables[PIN_OPTION_COUNT + 1];

static char *with_fallback(int key, const char *text, void *input)
{
    char *line;
    const int id = key - KEY_VARIABLE;
    (void)input;
    if (id < 0 || id >= PIN_OPTION_COUNT) {
        return (char *)(uintptr_t)text;
    }
    return asprintf(&line, "%s [%s]", text, pin_option_table[id].fallback) < 0 ? NULL : line;
}

static void list_variables(void)
{
    for (int i = 0; i < PIN_OPTION_COUNT; i++) {
        variables[i] = (struct argp_option){.name = pin_option_table[i].name,
                                            .key = KEY_VARIABLE + i,
                                            .flags = OPTION_DOC | OPTION_NO_USAGE,
                                            .doc = pin_option_table[i].meaning};
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

static void set_variable(const char *name, const char *value)
{
    if (setenv(name, value, 1) < 0) {
        cli_fail("cannot set %s: %s", name, strerror(errno));
    }
}

/* The loader splits LD_PRELOAD at these; it has no way to quote them (ld.so(8)). */
static const char separators[] = " :";

/* Makes `path` a link to `target`, in one step: another servet-pin may be about to use it. */
static int put_link(const char *target, const char *path)
{
    char beside[PATH_MAX];
    if (snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid()) >= (int)sizeof beside) {
        return -ENAMETOOLONG;
    }
    if (symlink(target, beside) < 0 || rename(beside, path) < 0) {
        int rc = -errno;
        unlink(beside);
        return rc;
    }
    return 0;
}

/* A library whose path LD_PRELOAD cannot hold is reached by a link in the user's own cache, in a
 * folder for each installation. */
static void link_library(const char *name, char library[PATH_MAX])
{
    static const char cannot[] = "LD_PRELOAD cannot hold a path with a blank or a colon";
    char folder[PATH_MAX], path[PATH_MAX + NAME_MAX];
    int rc = pin_cache_path("preload", library, folder);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (rc < 0 || strlen(path) >= PATH_MAX || strpbrk(path, separators)) {
        cli_fail("%s: %s, and there is no cache without one for a link to it (XDG_CACHE_HOME)",
                 library, cannot);
    }
    rc = pin_cache_make_folders(path);
    if (rc == 0) {
        rc = put_link(library, path);
    }
    if (rc < 0) {
        cli_fail("%s: %s, nor can a link be made at %s: %s", library, cannot, path, strerror(-rc));
    }
    strcpy(library, path);
}

static void find_library(const char *name, char library[PATH_MAX])
{
    /* beside it (build tree), and where `meson install` put them relative to the command, so that a
     * moved installation still works */
    static const char *const places[] = {".", SERVET_LIBRARIES_FROM_BIN, NULL};
    if (profile_child_find(places, name, R_OK, library) < 0) {
        cli_fail("%s not found beside this command or in its library folder", name);
    }
}

static const char shim[] = "libservet_pin.so";

/* Puts a library before what LD_PRELOAD holds already. */
static void set_preload(const char *name)
{
    char library[PATH_MAX];
    find_library(name, library);
    if (strpbrk(library, separators)) {
        link_library(name, library);
    }
    const char *before = getenv("LD_PRELOAD");
    if (!before || !*before) {
        set_variable("LD_PRELOAD", library);
        return;
    }
    char *both;
    if (asprintf(&both, "%s:%s", library, before) < 0) {
        cli_fail("out of memory");
    }
    set_variable("LD_PRELOAD", both);
    free(both);
}

/* The tracer only where it has something to do: every MPI call goes through it. The same holds of
 * calls for GPUs. */
static void set_preloads(void)
{
    const char *gpus = getenv(pin_option_table[PIN_GPUS].name);
    if (gpus && *gpus && strcmp(gpus, "0") != 0 && !options.follow) {
        cli_usage("%s=%s: expected follow", pin_option_table[PIN_GPUS].name, gpus);
    }
    if (options.trace || options.auto_priority) {
        set_preload("libservet_trace.so");
    }
    if (options.follow) {
        set_preload("libservet_follow.so");
    }
    set_preload(shim);
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
    set_variable(pin_option_table[PIN_PROFILE].name,
                 realpath(profile, absolute) ? absolute : profile);
}

static void read_environment(void)
{
    options = (struct pin_options){0};
    pin_options_read(&options);
    pin_launcher_read(options.rebind, &launcher);
}

/* One rank of each node does. */
static bool speaks(void)
{
    return launcher.node_rank == 0;
}

/* Takes them away, or the shim in the program would say it once more. */
static void refuse_misspelt(void)
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
        if (speaks()) {
            cli_note("%s: not known, did you mean %s?", name, right);
        }
        free(name);
        variable = environ;
    }
}

/* Either priority turns the other off. */
static void set_variables(const struct request *request)
{
    const char *const *values = request->values;
    if (values[PIN_MEM_PRIOR] || values[PIN_COMM_PRIOR]) {
        set_variable(pin_option_table[PIN_MEM_PRIOR].name, values[PIN_MEM_PRIOR] ? "1" : "0");
        set_variable(pin_option_table[PIN_COMM_PRIOR].name, values[PIN_COMM_PRIOR] ? "1" : "0");
    }
    for (size_t i = 0; i < PIN_OPTION_COUNT; i++) {
        if (i == PIN_PROFILE && values[i]) {
            set_profile(values[i]);
        } else if (values[i]) {
            set_variable(pin_option_table[i].name, values[i]);
        }
    }
}

static void check_membind(const struct request *request)
{
    const char *name =
        request->values[PIN_MEMBIND] ? "--membind" : pin_option_table[PIN_MEMBIND].name;
    const bool unknown = options.membind == PIN_MEMBIND_UNKNOWN;
    if (!unknown &&
        (options.membind < PIN_MEMBIND_FAST || !pin_plan_lacks_tier(&options, &launcher))) {
        return;
    }
    if (!speaks()) {
        exit(CLI_USAGE);
    }
    if (unknown) {
        cli_usage("%s: " PIN_MEMBIND_EXPECTED, name);
    }
    cli_usage("%s=%s: " PIN_MEMORY_ALIKE, name, pin_membind_words[options.membind]);
}

static int make_plan(const struct profile_mask *start, struct pin_plan *plan)
{
    static struct pin_registry registry;
    struct profile_mask allowed;
    const struct pin_plan_request request = {.options = &options,
                                             .launcher = &planned,
                                             .threads = pin_plan_threads(),
                                             .is_team = true,
                                             .allowed = &allowed};
    planned = launcher;
    pin_launcher_allowed(&planned, start, &allowed);
    if (!options.no_registry && pin_registry_open(&registry, options.registry, planned.job) == 0) {
        pin_registry_release(&registry);
        registry.over_exec = planned.job != 0;
    }
    return pin_plan_make(&request, &registry, plan);
}

static void export_places(const struct profile_mask *start, const struct pin_plan *plan)
{
    int code = profile_mask_set(0, &plan->own);
    if (code == 0) {
        code = pin_places_export(&launcher, start, plan);
    }
    if (code == 0) {
        return;
    }
    profile_mask_set(0, start);
    pin_failure("cannot export the rank's places: %s", strerrordesc_np(-code));
}

/* Where exec would find `command`: false, and nothing is known of it, when nowhere. */
static bool find_command(const char *command, char *path, size_t size)
{
    if (strchr(command, '/')) {
        return snprintf(path, size, "%s", command) < (int)size;
    }
    for (const char *at = getenv("PATH"); at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        int length = (int)strcspn(at, ":");
        if (snprintf(path, size, "%.*s%s%s", length, at, length ? "/" : "", command) < (int)size &&
            access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* --local-rank and --local-size go together, and the variables that they name have to be set: else
 * the process would be no rank, unnoticed. */
static void check_local(const struct request *request)
{
    static const struct {
        size_t variable;
        const char *option, *is;
    } both[] = {
        {PIN_LOCAL_RANK, "--local-rank", "the name of a variable with the local rank"},
        {PIN_LOCAL_SIZE, "--local-size", "a number from 1, or the name of a variable with it"}};
    for (size_t i = 0; i < 2; i++) {
        const char *value = request->values[both[i].variable],
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

/* Such a command runs as without this one: -v and the report give the reason. */
static void say_not_preloadable(const char *command)
{
    char path[PATH_MAX];
    const char *why =
        find_command(command, path, sizeof path) ? pin_why_not_preloadable(path) : NULL;
    if (!why) {
        return;
    }
    if (options.verbose) {
        cli_note("nothing is placed or traced: %s %s", path, why);
    }
    pin_record(options.report, false, "nothing was placed: the command {nothing_placed}",
               PROFILE_FACTS(PROFILE_WORD("nothing_placed", why)));
}

/* With SERVET_AUTO, the priority of a program behind another command (env, a script) is not known
 * here. */
static bool priority_is_known(const char *command)
{
    char path[PATH_MAX];
    struct pin_priority_cache recalled;
    if (!options.auto_priority || options.mem_prior || options.comm_prior) {
        return true;
    }
    return find_command(command, path, sizeof path) &&
           pin_priority_cache_apply(&options, path, &recalled);
}

/* A worker that the user has not bound starts on its part of the node. Places are not exported: a
 * runtime would bind the main thread to the first, and what it starts would be born there. */
static void give_part(const struct profile_mask *start, const struct pin_plan *plan)
{
    if (profile_mask_set(0, &plan->own) == 0 && !profile_mask_equal(&plan->own, start)) {
        pin_launcher_mark_own(&launcher, "");
    }
}

/* ", 2 ranks a NUMA node", where all that have PUs of the ranks have as many. */
static void add_nodes(const struct profile_class *here, const struct profile_mask *pus, char *out,
                      size_t size)
{
    const size_t ranks = launcher.node_ranks;
    size_t nodes = 0, least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < here->numa_count; i++) {
        size_t count = 0;
        for (size_t k = 0; k < here->numa[i].pus.count; k++) {
            count += profile_mask_has(pus, here->numa[i].pus.ids[k]);
        }
        nodes += count > 0;
        least = count && count < least ? count : least;
        most = count > most ? count : most;
    }
    if (nodes > 1 && least == most && ranks % nodes == 0) {
        snprintf(out, size, ", %zu rank%s a NUMA node", ranks / nodes, ranks > nodes ? "s" : "");
    } else if (nodes > 1 && least == most && nodes % ranks == 0) {
        snprintf(out, size, ", %zu NUMA nodes a rank", nodes / ranks);
    }
}

/* The whole job on this node, as `mpirun --report-bindings` shows it. */
static void say_ranks(const struct pin_plan *plan)
{
    struct servet_profile *here;
    struct servet_error error;
    struct profile_set set;
    const uint32_t ranks = launcher.node_ranks, each = pin_plan_threads();
    const bool apart = launcher.row->workers || planned.local_size < ranks;
    const struct profile_mask *pus = apart ? &plan->own : &plan->held;
    const size_t count = profile_mask_count(pus), most = (apart ? 1 : ranks) * (each ? each : 1);
    char list[256], threads[32] = "", nodes[64] = "", crowd[64] = "";
    if (!options.verbose || !speaks() || profile_mask_to_set(pus, &set) < 0 ||
        profile_from_sysfs("", &here, &error) < 0) {
        return;
    }
    profile_mask_format(pus, list, sizeof list);
    if (each > 1) {
        snprintf(threads, sizeof threads, " x %u threads", each);
    }
    if (most > count) {
        snprintf(crowd, sizeof crowd, ", up to %zu threads a PU", (most + count - 1) / count);
    }
    if (!apart) {
        add_nodes(&here->classes[0], pus, nodes, sizeof nodes);
    }
    const uint32_t cores = pin_plan_cores(&here->classes[0], &set);
    cli_note("%u %s%s%s (%s)%s %u core%s (PU %s)%s%s", ranks,
             launcher.row->workers ? "worker" : "rank", ranks == 1 ? "" : "s", threads,
             launcher.name,
             !apart                                ? " on"
             : planned.mask_of == PIN_MASK_OF_RANK ? ", each on its own mask, the first on"
                                                   : ", each on its own part, the first on",
             cores, cores == 1 ? "" : "s", list, nodes, crowd);
    profile_set_free(&set);
    profile_free(here);
}

/* If the environment says that this process is a rank, and the user has not placed OpenMP threads
 * (or SERVET_FORCE is on): makes the rank's plan from the SERVET_* variables as the shim in it
 * will, exports its places (place.h), and moves this process onto the plan's PUs. Else, and
 * where that fails (one line on stderr), nothing is changed: the program runs under the shim alone.
 * `command` is what will be executed; SERVET_AUTO remembers it. Returns why not, NULL: said. */
static const char *place_rank(const struct request *request, const char *command)
{
    struct profile_mask start;
    struct pin_plan plan;
    const char *users;
    refuse_misspelt();
    if (options.disable) {
        return "nothing is placed: SERVET_DISABLE is set";
    }
    if (launcher.contradicts) {
        cli_note("%s=%u: expected a local rank below the size that %s gives", launcher.row->rank,
                 launcher.node_rank, launcher.row->size);
    }
    check_membind(request);
    pin_devices_apply(&request->devices, &options, &launcher);
    if (profile_mask_get(0, &start) < 0 || pin_places_read(&launcher, false, &start)) {
        return NULL; /* servet-pin in front of servet-pin */
    }
    pin_places_drop(&start);
    users = options.force ? NULL : pin_users_places();
    if (users) {
        static char text[96];
        snprintf(text, sizeof text,
                 "OpenMP threads stay where %s wants them (--force overrides it)", users);
        return text;
    }
    if (!launcher.name) {
        return "one process: its threads are placed as it makes them";
    }
    if (!launcher.row->workers && !priority_is_known(command)) {
        return "ranks are placed as they begin: the command is not the program";
    }
    options.no_registry |= launcher.row->workers; /* parts are the same whatever other jobs hold */
    if (make_plan(&start, &plan) < 0) {
        return NULL;
    }
    if (launcher.row->workers) {
        give_part(&start, &plan);
    } else {
        export_places(&start, &plan);
    }
    say_ranks(&plan);
    pin_plan_free(&plan);
    return NULL;
}

/* -- tuned -- */

/* Without an entry the program runs as it would without the option: a batch job must not fail for a
 * file that is missing. */
static bool say_untuned(const struct servet_error *why, char *const *arguments)
{
    for (; *arguments; arguments++) {
        if (pin_tuned_is_open(*arguments)) {
            cli_usage("--tuned: %s, expected it to be: '%s' has no number", why->text, *arguments);
        }
    }
    if (speaks()) {
        cli_note("--tuned: %s (servet-bench --tune does it): placed as without it", why->text);
    }
    return true;
}

/* The ranks are the launcher's, threads the user's where OMP_NUM_THREADS is set; the rest is as it
 * was fastest with these. False: the fastest was not to place. */
static bool apply_tuned(char **argv, bool may_place)
{
    char path[PATH_MAX], number[16];
    struct profile_mask mask;
    struct servet_error why;
    struct pin_tuned tuned = {.ranks = launcher.name ? launcher.node_ranks : 0,
                              .threads = pin_plan_threads()};
    if (may_place && !launcher.name && profile_mask_get(0, &mask) == 0) {
        tuned.pus = (uint32_t)profile_mask_count(&mask);
    }
    if (pin_tuned_find(argv[0], argv + 1, &tuned, path, &why) < 0) {
        return say_untuned(&why, argv + 1);
    }
    if (options.verbose && speaks()) {
        cli_note("--tuned: threads %u, placement %s%s%s (%s)", tuned.threads,
                 pin_tuned_names[tuned.placement], tuned.memory ? ", memory " : "",
                 tuned.memory ? pin_tuned_memories[tuned.memory] : "", path);
    }
    snprintf(number, sizeof number, "%u", tuned.threads);
    set_variable("OMP_NUM_THREADS", number);
    for (char **word = argv + 1; *word; word++) {
        *word = pin_tuned_fill(*word, &tuned);
        if (!*word) {
            cli_fail("out of memory");
        }
    }
    if (tuned.placement == PIN_TUNED_DEFAULT) {
        return false;
    }
    bool memory = tuned.placement == PIN_TUNED_MEMORY;
    set_variable(pin_option_table[PIN_MEM_PRIOR].name, memory ? "1" : "0");
    set_variable(pin_option_table[PIN_COMM_PRIOR].name, memory ? "0" : "1");
    if (tuned.memory != PIN_TUNED_FIRST_TOUCH && options.membind == PIN_MEMBIND_NONE) {
        set_variable(pin_option_table[PIN_MEMBIND].name, pin_tuned_memories[tuned.memory]);
    }
    read_environment();
    return true;
}

/* A program of this folder is looked for in the PATH alone; of a script that is there the kernel
 * says, too, that there is no such file. */
static void say_why_not(const char *program, int error)
{
    bool is_here = error == ENOENT && *program && access(program, F_OK) == 0;
    if (is_here && !strchr(program, '/')) {
        cli_note("%s: not in the PATH; expected ./%s?", program, program);
    } else if (is_here) {
        cli_note("%s: it is there, but its interpreter or loader is not", program);
    } else {
        cli_note("%s: %s", program, strerror(error));
    }
}

int main(int argc, char **argv)
{
    static const struct argp environment = {.options = variables, .help_filter = with_fallback};
    static const struct argp_child children[] = {
        {&environment, 0, "Environment (also read without servet-pin; 0 is off):", 2}, {0}};
    static const struct argp argp = {
        .options = choices,
        .parser = parse_pin,
        .args_doc = "[--] COMMAND [ARGUMENT...]",
        .doc = "Run a command with its threads and ranks placed as the machine's profile says.",
        .children = children,
    };
    struct request request = {0};
    int first;
    list_variables();
    cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &first, &request);
    if (request.variables) {
        return print_variables();
    }
    if (request.values[PIN_MEM_PRIOR] && request.values[PIN_COMM_PRIOR]) {
        cli_usage("--mem-prior and --comm-prior exclude each other");
    }
    const char *program = argv[first];
    if (!program) { /* argv ends with it */
        cli_usage("no command to run; expected: servet-pin [OPTION...] -- COMMAND [ARGUMENT...]");
    }
    if (request.tuned && (request.values[PIN_MEM_PRIOR] || request.values[PIN_COMM_PRIOR] ||
                          request.values[PIN_AUTO])) {
        cli_usage("--tuned and --mem-prior, --comm-prior, --auto exclude each other");
    }
    const char *trace = request.values[PIN_TRACE];
    if (trace && (!*trace || strcmp(trace, "-") == 0)) {
        cli_usage("--trace: '%s', expected the name of a file", trace);
    }
    request.values[PIN_VERBOSE] = request.dry_run ? "1" : request.values[PIN_VERBOSE];
    set_variables(&request);
    check_local(&request);
    read_environment();
    const bool may_place = pin_filter_spares_us();
    if (!request.tuned || apply_tuned(argv + first, may_place)) {
        if (may_place && !request.no_quota && !options.disable) {
            pin_quota_apply(&launcher, options.verbose && speaks());
        }
        set_preloads();
        say_not_preloadable(program);
        /* Under such a filter the program runs as without this command: the shim finds the same. */
        const char *why =
            may_place ? place_rank(&request, program)
                      : "a filter (seccomp) kills for calls that placing takes: nothing is placed";
        if (why && options.verbose && speaks()) {
            cli_note("%s", why);
        }
    }
    if (request.dry_run) {
        return CLI_OK;
    }
    execvp(program, argv + first);
    int error = errno;
    say_why_not(program, error);
    return error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}
