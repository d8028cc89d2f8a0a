/* This machine as a `struct machine`: its PUs, pages and limits (of memory and of time on PUs), and
 * the operations of the other files of this folder. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probes/native/native.h"
#include "probes/probe.h"
#include "profile/base/control_groups.h"
#include "profile/base/file.h"
#include "profile/base/mask.h"

/* -- limits of memory: the system's, and those of the control groups -- */

static double headroom(double most, double used)
{
    return isinf(most) || isinf(used) ? most : fmax(most - used, 0);
}

static double unified_memory(const char *folder, int *rc)
{
    return headroom(profile_group_number(folder, "memory.max", rc),
                    profile_group_number(folder, "memory.current", rc));
}

static double own_memory(const char *folder, int *rc)
{
    return headroom(profile_group_number(folder, "memory.limit_in_bytes", rc),
                    profile_group_number(folder, "memory.usage_in_bytes", rc));
}

static double available_memory(void)
{
    static const char key[] = "MemAvailable:";
    char text[4096];
    profile_read_small("/proc/meminfo", text, sizeof text);
    const char *at = strstr(text, key);
    const double bytes = at ? strtod(at + sizeof key - 1, NULL) * 1024 : 0;
    return bytes > 0 ? bytes : (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

/* Memory of the run besides its working sets: the fit's candidates, 9 MB, their columns, two of 7
 * MB, and what libraries are mapped. */
static const size_t own_bytes = (size_t)26 << 20;

/* Memory that this process may still take: the smallest of MemAvailable and the limits of its
 * control groups, halved. */
static size_t memory_limit(void)
{
    int rc = 0; /* what is hidden limits nothing that could be known */
    const double group = profile_group_least("", "memory", unified_memory, own_memory, &rc);
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE),
                 bytes = (size_t)fmin(available_memory(), group);
    return bytes > own_bytes + page_bytes ? (bytes - own_bytes) / 2 : page_bytes;
}

/* -- the machine -- */

static const double newest_share = 0.3; /* of a mean of counts, what the newest one weighs */

static int allowed_pus(struct profile_set *out)
{
    struct profile_mask mask;
    TRY(profile_mask_get(0, &mask));
    return profile_mask_to_set(&mask, out);
}

static int choose_pus(const struct profile_set *wanted, struct profile_set *out,
                      struct servet_error *error)
{
    FREED_BY(profile_set_free) struct profile_set allowed = {0};
    int rc = allowed_pus(&allowed);
    if (rc < 0) {
        return profile_error(error, rc, "cannot read the allowed PUs of this process: %s",
                             strerror(-rc));
    }
    if (!wanted || wanted->count == 0) {
        *out = TAKE(allowed);
        return 0;
    }
    for (size_t i = 0; i < wanted->count; i++) {
        if (!profile_set_has(&allowed, wanted->ids[i])) {
            FREED char *text = profile_set_text(&allowed);
            return profile_error(error, -EPERM,
                                 "--cpuset: expected PUs that this process may use (%s), got %u",
                                 text ? text : "?", wanted->ids[i]);
        }
    }
    return profile_set_copy(wanted, out);
}

static int run_nothing(struct native_worker *worker, struct native_job *job)
{
    (void)worker;
    (void)job;
    return 0;
}

/* Sandboxes forbid sched_setaffinity in various ways; better to know now than after a minute. */
static int try_pinning(struct native *native, struct servet_error *error)
{
    for (size_t i = 0; i < native->machine->pus.count; i++) {
        struct native_job job = {.run = run_nothing};
        int rc = probe_native_run(native, &job, &native->machine->pus.ids[i], 1);
        if (rc < 0) {
            return profile_error(error, rc, "cannot measure on PU %u: %s",
                                 native->machine->pus.ids[i], probe_machine_strerror(rc));
        }
    }
    return 0;
}

static double native_elapsed(struct machine *machine)
{
    const struct native *native = machine->state;
    return (double)(profile_now_ns() - native->started_ns) * 1e-9;
}

/* Only between jobs: workers count while they have one. */
static struct machine_times native_times(struct machine *machine)
{
    const struct native *native = machine->state;
    struct machine_times all = {0};
    for (size_t i = 0; i < machine->pus.count; i++) {
        const struct native_worker *worker = native->workers[i];
        all.waited += worker ? (double)worker->waited_ns * 1e-9 : 0;
        all.ran += worker ? (double)worker->ran_ns * 1e-9 : 0;
    }
    all.throttled = machine->cpu_quota > 0 ? profile_quota_throttled("") : 0;
    return all;
}

/* For each PU, beside the one that asks; < 0: not known. */
static double count_others(void)
{
    const uint32_t running = profile_running_tasks();
    return running > 0 ? (running - 1) / (double)sysconf(_SC_NPROCESSORS_ONLN) : -1;
}

/* A single count finds a few more or fewer: a mean of some, which the newest ones move. Those who
 * ask several times for one decision get one count for it. */
static double native_others(struct machine *machine)
{
    enum { AT_FIRST = 8, APART_NS = 5 * 1000 * 1000 };
    static const struct timespec apart = {.tv_nsec = APART_NS};
    struct native *native = machine->state;
    if (native->others_counted_ns && profile_now_ns() - native->others_counted_ns < APART_NS) {
        return native->others;
    }
    const bool first = native->others_counted_ns == 0;
    for (int i = 0; i < (first ? AT_FIRST : 1); i++) {
        if (i > 0) {
            nanosleep(&apart, NULL);
        }
        const double now = count_others();
        if (now < 0) {
            break;
        }
        const double newest = first && i == 0 ? 1 : newest_share;
        native->others += newest * (now - native->others);
    }
    native->others_counted_ns = profile_now_ns();
    return native->others;
}

static void native_close(struct machine *machine)
{
    struct native *native = machine->state;
    probe_native_end_workers(native);
    sem_destroy(&native->finished);
    profile_set_free(&native->folded);
    free(native->workers);
    free(native);
}

static const struct machine_ops native_ops = {
    .traverse = probe_native_traverse,
    .copy = probe_native_copy,
    .exchange = probe_native_exchange,
    .transfer = probe_native_transfer,
    .elapsed = native_elapsed,
    .times = native_times,
    .others = native_others,
    .daxpy = probe_native_daxpy,
    .superstep = probe_native_superstep,
    .close = native_close,
};

/* Takes over the PUs of the machine. */
static int take_over_pus(struct machine *machine, struct machine *out, struct servet_error *error)
{
    struct native *native = calloc(1, sizeof *native);
    FREED struct native_worker **workers =
        calloc(machine->pus.count, sizeof(struct native_worker *));
    if (!native || !workers) {
        free(native);
        profile_set_free(&machine->pus);
        return profile_error(error, -ENOMEM, "cannot open this machine: %s", strerror(ENOMEM));
    }
    machine->state = native;
    native->workers = TAKE(workers);
    sem_init(&native->finished, 0, 0);
    machine->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    machine->huge_page_bytes = probe_native_huge_page_bytes();
    machine->memory_limit_bytes = memory_limit();
    (void)profile_quota_read("", &machine->cpu_quota);
    machine->copy_method = probe_native_copy_method();
    native->machine = machine;
    native->started_ns = profile_now_ns();
    probe_native_clock_calibrate(&native->clock_cost_s, &native->batch_s);
    int rc = try_pinning(native, error);
    if (rc == 0) {
        rc = probe_topology_own(&machine->declared, error);
    }
    if (rc < 0) {
        probe_machine_close(machine);
        return rc;
    }
    *out = *machine;
    native->machine = out;
    return 0;
}

int probe_machine_open_native(const struct profile_set *pus, const volatile sig_atomic_t *cancel,
                              struct machine *out, struct servet_error *error)
{
    struct machine machine = {.ops = &native_ops, .name = "native", .cancel = cancel};
    TRY(choose_pus(pus, &machine.pus, error));
    return take_over_pus(&machine, out, error);
}
