/* Every SERVET_* variable that the shim and servet-pin know.
 *
 * The only place of this room that reads the environment: a privileged program's belongs to whoever
 * started it, so there every variable counts as not set.
 */
#include "preload/place/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "preload/node/node.h"

const struct pin_option pin_option_table[PIN_OPTION_COUNT] = {
    [PIN_MEM_PRIOR] = {"SERVET_MEM_PRIOR", "on unless SERVET_COMM_PRIOR is",
                       "place threads and ranks to collide least in caches and memory"},
    [PIN_COMM_PRIOR] = {"SERVET_COMM_PRIOR", "off",
                        "place threads and ranks to exchange messages fastest"},
    [PIN_PAPER] = {"SERVET_PAPER", "off",
                   "choose by the paper's sums of weights instead of comparing them in order"},
    [PIN_PROFILE] = {"SERVET_PROFILE", "~/.config/servet/HOST.json, /etc/servet/",
                     "file with the machine's profile"},
    [PIN_VERBOSE] = {"SERVET_VERBOSE", "off",
                     "say on stderr where every thread and rank goes, and who decided"},
    [PIN_FORCE] = {"SERVET_FORCE", "off",
                   "place threads even where the user or the program has chosen already"},
    [PIN_DISABLE] = {"SERVET_DISABLE", "off", "do nothing at all"},
    [PIN_HELPERS] =
        {"SERVET_HELPERS", "none",
         "pattern,…: libraries (or programs) whose threads help and get no PU of their own"},
    [PIN_REGISTRY] = {"SERVET_REGISTRY", "/dev/shm/servet-UID",
                      "file in which the programs of one user keep apart on a node"},
    [PIN_MEMBIND] = {"SERVET_MEMBIND", "none",
                     "local: memory touched before threads had places follows them; interleave: "
                     "over their nodes"},
    [PIN_REPORT] = {"SERVET_REPORT", "none",
                    "file (appended to; .json: JSON lines) or stderr: at exit, where every thread "
                    "was and why"},
    [PIN_TRACE] = {"SERVET_TRACE", "none",
                   "file: at MPI_Finalize, who sent how much to whom, for servet-map --matrix "
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
    [PIN_STRANGERS] = {"SERVET_STRANGERS", "on",
                       "0: PUs that are busy with other people's work count as free when places "
                       "are chosen"},
    [PIN_WATCH] = {"SERVET_WATCH", "off",
                   "while the program runs, move threads that wait for their PU to one that idles, "
                   "and let the kernel place them where none does"},
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

static const char *value_of(enum pin_option_id id)
{
    return pin_environment(pin_option_table[id].name);
}

static bool is_on(enum pin_option_id id)
{
    const char *value = value_of(id);
    return value && *value && strcmp(value, "0") != 0;
}

/* Copied, because programs that change their title write over the environment's memory. */
static void copy_value(enum pin_option_id id, struct pin_options *options, char *out, size_t size)
{
    const char *value = value_of(id);
    if (!value) {
        return;
    }
    if (strlen(value) >= size) {
        options->too_long = pin_option_table[id].name;
        return;
    }
    strcpy(out, value);
}

/* A file's name, absolute: the program may change its folder before the file is needed. `words` are
 * those that name no file. */
static void copy_path(enum pin_option_id id, struct pin_options *options, char *out,
                      const char *const *words)
{
    char folder[PATH_MAX];
    copy_value(id, options, out, PATH_MAX);
    if (out[0] == '\0' || out[0] == '/') {
        return;
    }
    for (; *words; words++) {
        if (strcmp(out, *words) == 0) {
            return;
        }
    }
    size_t length = strlen(out), before;
    if (!getcwd(folder, sizeof folder)) {
        return;
    }
    before = strlen(folder);
    if (before + 1 + length >= PATH_MAX) {
        options->too_long = pin_option_table[id].name;
        out[0] = '\0';
        return;
    }
    memmove(out + before + 1, out, length + 1);
    memcpy(out, folder, before);
    out[before] = '/';
}

static enum pin_membind membind_of(const char *value)
{
    if (!value || !*value || strcmp(value, "0") == 0 || strcmp(value, "none") == 0) {
        return PIN_MEMBIND_NONE;
    }
    if (strcmp(value, "local") == 0) {
        return PIN_MEMBIND_LOCAL;
    }
    return strcmp(value, "interleave") == 0 ? PIN_MEMBIND_INTERLEAVE : PIN_MEMBIND_UNKNOWN;
}

void pin_options_read(struct pin_options *out)
{
    out->mem_prior = is_on(PIN_MEM_PRIOR);
    out->comm_prior = is_on(PIN_COMM_PRIOR);
    out->paper = is_on(PIN_PAPER);
    out->verbose = is_on(PIN_VERBOSE);
    out->force = is_on(PIN_FORCE);
    out->disable = is_on(PIN_DISABLE);
    out->rebind = is_on(PIN_REBIND);
    const char *strangers = value_of(PIN_STRANGERS);
    out->no_strangers = strangers && strcmp(strangers, "0") == 0;
    out->watch = is_on(PIN_WATCH);
    out->membind = membind_of(value_of(PIN_MEMBIND));
    static const char *const none[] = {NULL}, *const off[] = {"0", NULL},
                             *const streams[] = {"0", "stderr", NULL},
                             *const dash[] = {"0", "-", NULL};
    int saved = errno;
    copy_path(PIN_PROFILE, out, out->profile, none);
    copy_path(PIN_REGISTRY, out, out->registry, off);
    out->no_registry = strcmp(out->registry, "0") == 0;
    copy_path(PIN_REPORT, out, out->report, streams);
    if (strcmp(out->report, "0") == 0) {
        out->report[0] = '\0';
    }
    copy_path(PIN_TRACE, out, out->trace, dash);
    if (strcmp(out->trace, "0") == 0) {
        out->trace[0] = '\0';
    }
    out->trace_times = is_on(PIN_TRACE_TIMES);
    out->auto_priority = is_on(PIN_AUTO);
    copy_value(PIN_HELPERS, out, out->helpers, sizeof out->helpers);
    copy_value(PIN_WORKERS, out, out->workers, sizeof out->workers);
    errno = saved;
}

void pin_options_say_refused(const struct pin_options *options)
{
    if (options->too_long) {
        pin_failure("%s: too long, expected less than %d characters; it counts as not set",
                    options->too_long,
                    strcmp(options->too_long, pin_option_table[PIN_HELPERS].name) == 0 ||
                            strcmp(options->too_long, pin_option_table[PIN_WORKERS].name) == 0
                        ? PIN_PATTERNS_SIZE
                        : PATH_MAX);
    }
}
