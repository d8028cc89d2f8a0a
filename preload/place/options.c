/* Every SERVET_* variable that the shim and servet-pin know. */
#include "preload/place/options.h"

#include <stdlib.h>
#include <string.h>

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
    [PIN_WORKERS] = {"SERVET_WORKERS", "none",
                     "pattern,…: libraries (or programs) whose threads are workers"},
};

static const char *value_of(enum pin_option_id id)
{
    return getenv(pin_option_table[id].name);
}

static bool is_on(enum pin_option_id id)
{
    const char *value = value_of(id);
    return value && *value && strcmp(value, "0") != 0;
}

/* Copied, because programs that change their title write over the environment's memory. */
static void copy_value(enum pin_option_id id, char *out, size_t size)
{
    const char *value = value_of(id);
    if (value && strlen(value) < size) {
        strcpy(out, value);
    }
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
    out->verbose = is_on(PIN_VERBOSE);
    out->force = is_on(PIN_FORCE);
    out->disable = is_on(PIN_DISABLE);
    out->rebind = is_on(PIN_REBIND);
    out->membind = membind_of(value_of(PIN_MEMBIND));
    copy_value(PIN_PROFILE, out->profile, sizeof out->profile);
    copy_value(PIN_REGISTRY, out->registry, sizeof out->registry);
    out->no_registry = strcmp(out->registry, "0") == 0;
    copy_value(PIN_REPORT, out->report, sizeof out->report);
    if (strcmp(out->report, "0") == 0) {
        out->report[0] = '\0';
    }
    copy_value(PIN_TRACE, out->trace, sizeof out->trace);
    if (strcmp(out->trace, "0") == 0) {
        out->trace[0] = '\0';
    }
    out->trace_times = is_on(PIN_TRACE_TIMES);
    out->auto_priority = is_on(PIN_AUTO);
    copy_value(PIN_HELPERS, out->helpers, sizeof out->helpers);
    copy_value(PIN_WORKERS, out->workers, sizeof out->workers);
}
