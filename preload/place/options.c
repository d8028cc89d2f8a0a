/* Every SERVET_* variable that the shim and servet-pin know.
 *
 * The only place of this room that reads the environment: a privileged program's belongs to the
 * user who started it, so there every variable counts as not set. */
#include "preload/place/options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "preload/node/log.h"
#include "profile/base/format_safe.h"
#include "profile/base/guess.h"

const struct pin_option pin_option_table[PIN_OPTION_COUNT] = {
    [PIN_MEM_PRIOR] = {"SERVET_MEM_PRIOR", "on unless SERVET_COMM_PRIOR is",
                       "place threads and ranks to collide least in caches and memory"},
    [PIN_COMM_PRIOR] = {"SERVET_COMM_PRIOR", "off",
                        "place threads and ranks to exchange messages fastest"},
    [PIN_PROFILE] = {"SERVET_PROFILE", "~/.config/servet/HOST.json, /etc/servet/",
                     "file with the machine's profile"},
    [PIN_VERBOSE] = {"SERVET_VERBOSE", "off",
                     "say on stderr where every thread and rank goes, and who decided"},
    [PIN_FORCE] = {"SERVET_FORCE", "off",
                   "place threads even where the user or the program has chosen already"},
    [PIN_DISABLE] = {"SERVET_DISABLE", "off", "do nothing at all"},
    [PIN_HELPERS] = {"SERVET_HELPERS", "none",
                     "pattern,…: libraries (or programs) whose threads are helpers and get no PU"},
    [PIN_REGISTRY] = {"SERVET_REGISTRY", "the shim's own",
                      "file of the locks by which programs avoid each other's PUs"},
    [PIN_MEMBIND] = {"SERVET_MEMBIND", "none",
                     "fast, capacity: memory from that tier of the NUMA nodes; local: memory "
                     "touched before threads had places follows them; interleave: over their "
                     "nodes; weighted: by the nodes' bandwidths"},
    [PIN_REPORT] = {"SERVET_REPORT", "none",
                    "file (appended to; .json: JSON lines) or stderr: at exit, where every thread "
                    "was and why"},
    [PIN_TRACE] = {"SERVET_TRACE", "none",
                   "file: at MPI_Finalize, the bytes sent between ranks, for servet-map --matrix "
                   "(needs libservet_trace.so)"},
    [PIN_TRACE_TIMES] = {"SERVET_TRACE_TIMES", "off",
                         "the trace also says how long each rank was in MPI"},
    [PIN_AUTO] = {"SERVET_AUTO", "off",
                  "remember whether the program was communication intensive and choose its "
                  "priority by that next time "
                  "(needs libservet_trace.so)"},
    [PIN_REBIND] = {"SERVET_REBIND", "off",
                    "Slurm's binding of tasks is its own: place them anywhere in the step's PUs "
                    "(set by the Slurm plugin)"},
    [PIN_RANK] = {"SERVET_RANK", "none",
                  "which rank servet-pin made OMP_PLACES and OMP_PROC_BIND for (set by servet-pin, "
                  "not by users)"},
    [PIN_WATCH] =
        {"SERVET_WATCH", "on",
         "0: do not look at what other programs keep busy, neither when places are chosen "
         "nor, to move threads that wait for their PU, while the program runs"},
    [PIN_BESIDE] = {"SERVET_BESIDE", "none",
                    "which rank servet-pin placed, beside which GPUs: its PUs are its own (set by "
                    "servet-pin, not by users)"},
    [PIN_LOCAL_RANK] = {"SERVET_LOCAL_RANK", "the launcher's",
                        "number, or the variable that has it: which of the job's processes on "
                        "this node it is, from 0"},
    [PIN_LOCAL_SIZE] = {"SERVET_LOCAL_SIZE", "the launcher's",
                        "number, or the variable that has it: how many these are"},
    [PIN_GPUS] = {"SERVET_GPUS", "none",
                  "follow: when the process takes a GPU, it goes near that one (needs "
                  "libservet_follow.so)"},
    [PIN_WORKERS] = {"SERVET_WORKERS", "none",
                     "pattern,…: libraries (or programs) whose threads are workers"},
};

bool pin_options_privileged(void)
{
    return getauxval(AT_SECURE) != 0;
}

const char *pin_environment(const char *name)
{
    return pin_options_privileged() ? NULL : getenv(name);
}

bool pin_is_set(const char *name)
{
    const char *value = pin_environment(name);
    return value && *value;
}

static const char prefix[] = "SERVET_";

static bool is_ours(const char *variable)
{
    return strncmp(variable, prefix, sizeof prefix - 1) == 0;
}

/* Goes through the environment once: most programs have nothing of ours there, and getenv(), which
 * a program may have of its own (bash), would cost one pass for each option at its start. Of a name
 * that is there twice the first value holds, as there. False: none is set. */
static bool find_values(const char *values[PIN_OPTION_COUNT])
{
    char **variable = pin_options_privileged() ? NULL : environ;
    bool any = false;
    for (; variable && *variable; variable++) {
        for (size_t id = 0; is_ours(*variable) && id < PIN_OPTION_COUNT; id++) {
            const char *name = pin_option_table[id].name;
            const size_t length = strlen(name);
            if (!values[id] && strncmp(*variable, name, length) == 0 &&
                (*variable)[length] == '=') {
                values[id] = *variable + length + 1;
                any = true;
            }
        }
    }
    return any;
}

static bool is_zero(const char *value)
{
    return value && strcmp(value, "0") == 0;
}

static bool is_on(const char *value)
{
    return value && *value && !is_zero(value);
}

static bool is_patterns(enum pin_option_id id)
{
    return id == PIN_HELPERS || id == PIN_WORKERS;
}

static size_t room_of(enum pin_option_id id)
{
    return is_patterns(id) ? PIN_PATTERNS_SIZE : PATH_MAX;
}

/* A copy, because programs that change their title write over the environment's memory. A file's
 * name is absolute: the program may change its folder before the file is needed. Two words name no
 * file: of a report, and of a trace, which refuses it later. */
static const char *copy_text(const char *value, enum pin_option_id id, struct pin_options *options)
{
    static char copies[PIN_OPTION_COUNT][PATH_MAX]; /* most of these pages are never touched */
    char *copy = copies[id], *at = copy;
    const char *end = copy + room_of(id);
    if (!value || !*value || (!is_patterns(id) && id != PIN_PROFILE && strcmp(value, "0") == 0)) {
        return NULL;
    }
    if (!is_patterns(id) && *value != '/' && strcmp(value, "stderr") != 0 &&
        strcmp(value, "-") != 0 && getcwd(copy, PATH_MAX)) {
        at = profile_format_text(copy + strlen(copy), end, "/");
    }
    if (!profile_format_text(at, end, value)) {
        options->too_long = id;
        return NULL;
    }
    return copy;
}

const char *const pin_membind_words[PIN_MEMBIND_UNKNOWN] = {
    "none", "local", "interleave", "fast", "capacity", "weighted",
};

static enum pin_membind membind_of(const char *value)
{
    unsigned membind = PIN_MEMBIND_NONE;
    if (!is_on(value)) {
        return PIN_MEMBIND_NONE;
    }
    while (membind < PIN_MEMBIND_UNKNOWN && strcmp(value, pin_membind_words[membind]) != 0) {
        membind++;
    }
    return membind;
}

void pin_options_read(struct pin_options *out)
{
    const char *values[PIN_OPTION_COUNT] = {NULL};
    if (!find_values(values)) {
        return;
    }
    out->mem_prior = is_on(values[PIN_MEM_PRIOR]);
    out->comm_prior = is_on(values[PIN_COMM_PRIOR]);
    out->verbose = is_on(values[PIN_VERBOSE]);
    out->force = is_on(values[PIN_FORCE]);
    out->disable = is_on(values[PIN_DISABLE]);
    out->rebind = is_on(values[PIN_REBIND]);
    out->no_watch = is_zero(values[PIN_WATCH]);
    out->follow = values[PIN_GPUS] && strcmp(values[PIN_GPUS], "follow") == 0;
    out->membind = membind_of(values[PIN_MEMBIND]);
    out->trace_times = is_on(values[PIN_TRACE_TIMES]);
    out->auto_priority = is_on(values[PIN_AUTO]);
    int saved = errno;
    out->no_registry = is_zero(values[PIN_REGISTRY]);
    out->profile = copy_text(values[PIN_PROFILE], PIN_PROFILE, out);
    out->registry = copy_text(values[PIN_REGISTRY], PIN_REGISTRY, out);
    out->report = copy_text(values[PIN_REPORT], PIN_REPORT, out);
    out->trace = copy_text(values[PIN_TRACE], PIN_TRACE, out);
    out->helpers = copy_text(values[PIN_HELPERS], PIN_HELPERS, out);
    out->workers = copy_text(values[PIN_WORKERS], PIN_WORKERS, out);
    errno = saved;
}

size_t pin_options_misspelt(const char *variable, const char **right)
{
    struct profile_guess guess = {.word = variable, .length = strcspn(variable, "=")};
    *right = NULL;
    if (!is_ours(variable)) {
        return guess.length;
    }
    for (size_t id = 0; id < PIN_OPTION_COUNT; id++) {
        profile_guess(&guess, pin_option_table[id].name);
    }
    *right = guess.apart ? guess.name : NULL;
    return guess.length;
}

static void say_misspelt(void)
{
    const char *right;
    for (char **variable = environ; variable && *variable; variable++) {
        size_t length = pin_options_misspelt(*variable, &right);
        if (right) {
            pin_failure("%.*s: not known, did you mean %s?", (int)length, *variable, right);
        }
    }
}

void pin_options_say_refused(const struct pin_options *options)
{
    say_misspelt();
    if (options->too_long) {
        pin_failure("%s: too long, expected less than %zu characters; it counts as not set",
                    pin_option_table[options->too_long].name, room_of(options->too_long));
    }
}
