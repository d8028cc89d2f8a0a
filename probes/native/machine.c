/* This machine as a `struct machine`: its PUs, pages and limits, and the operations of the other
 * files of this folder. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probes/native/native.h"
#include "probes/probe.h"
#include "profile/base/file.h"
#include "profile/topology/topology.h"

static const double newest_share = 0.3; /* of a mean of counts, what the newest one weighs */

/* Largest number of PUs a kernel is built for so far; the mask grows with it. */
enum { PUS_MAX = 8192 };

static int allowed_pus(struct profile_set *out)
{
    size_t size = CPU_ALLOC_SIZE(PUS_MAX);
    cpu_set_t *mask = CPU_ALLOC(PUS_MAX);
    uint32_t *ids = malloc(PUS_MAX * sizeof *ids);
    int rc = mask && ids ? 0 : -ENOMEM;
    if (rc == 0 && sched_getaffinity(0, size, mask) < 0) {
        rc = -errno;
    }
    size_t count = 0;
    for (uint32_t pu = 0; rc == 0 && pu < PUS_MAX; pu++) {
        if (CPU_ISSET_S(pu, size, mask)) {
            ids[count++] = pu;
        }
    }
    if (rc == 0) {
        rc = profile_set_from_array(ids, count, out);
    }
    free(ids);
    CPU_FREE(mask);
    return rc;
}

static int choose_pus(const struct profile_set *wanted, struct profile_set *out,
                      struct servet_error *error)
{
    struct profile_set allowed;
    int rc = allowed_pus(&allowed);
    if (rc < 0) {
        return profile_error(error, rc, "cannot read the allowed PUs of this process: %s",
                             strerror(-rc));
    }
    if (!wanted || wanted->count == 0) {
        *out = allowed;
        return 0;
    }
    rc = 0;
    for (size_t i = 0; i < wanted->count && rc == 0; i++) {
        if (!profile_set_has(&allowed, wanted->ids[i])) {
            char *text = profile_set_text(&allowed);
            rc = profile_error(error, -EPERM, "PU %u is not among those this process may use (%s)",
                               wanted->ids[i], text ? text : "?");
            free(text);
        }
    }
    profile_set_free(&allowed);
    return rc < 0 ? rc : profile_set_copy(wanted, out);
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
static double native_disturbed(struct machine *machine)
{
    const struct native *native = machine->state;
    uint64_t waited = 0;
    for (size_t i = 0; i < machine->pus.count; i++) {
        waited += native->workers[i] ? native->workers[i]->waited_ns : 0;
    }
    return (double)waited * 1e-9;
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
    if (!native) {
        return;
    }
    probe_native_end_workers(native);
    sem_destroy(&native->finished);
    profile_set_free(&native->folded);
    free(native->workers);
    free(native);
    machine->state = NULL;
}

/* Of a folded machine. */
static int declare_pus(struct machine *machine, struct servet_error *error)
{
    struct servet_profile *profile = profile_topology_new();
    int rc = profile ? profile_set_copy(&machine->pus, &profile->classes[0].pus) : -ENOMEM;
    rc = rc < 0 ? profile_error(error, rc, "cannot open this machine: %s", strerror(-rc))
                : profile_topology_finish(profile, NULL, error);
    if (rc < 0) {
        profile_free(profile);
        return rc;
    }
    machine->declared = profile;
    return 0;
}

static const struct machine_ops native_ops = {
    .traverse = probe_native_traverse,
    .copy = probe_native_copy,
    .exchange = probe_native_exchange,
    .elapsed = native_elapsed,
    .disturbed = native_disturbed,
    .others = native_others,
    .close = native_close,
};

/* Takes over the PUs of the machine, and those that stand for them. */
static int open_machine(struct machine *machine, struct profile_set folded, struct machine *out,
                        struct servet_error *error)
{
    struct native *native = calloc(1, sizeof *native);
    struct native_worker **workers = calloc(machine->pus.count, sizeof(struct native_worker *));
    if (!native || !workers) {
        free(native);
        free(workers);
        profile_set_free(&machine->pus);
        profile_set_free(&folded);
        return profile_error(error, -ENOMEM, "cannot open this machine: %s", strerror(ENOMEM));
    }
    machine->state = native;
    native->workers = workers;
    native->folded = folded;
    sem_init(&native->finished, 0, 0);
    machine->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    machine->huge_page_bytes = probe_native_huge_page_bytes();
    machine->memory_limit_bytes = probe_native_memory_limit();
    machine->cpu_quota = probe_native_cpu_quota("");
    machine->copy_method = probe_native_copy_method();
    native->machine = machine;
    native->started_ns = profile_now_ns();
    probe_native_clock_calibrate(&native->clock_cost_s, &native->batch_s);
    int rc = try_pinning(native, error);
    if (rc == 0) {
        rc = folded.count > 0 ? declare_pus(machine, error)
                              : probe_topology_own(&machine->declared, error);
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
    int rc = choose_pus(pus, &machine.pus, error);
    return rc < 0 ? rc : open_machine(&machine, (struct profile_set){0}, out, error);
}

int probe_machine_open_folded(uint32_t count, const volatile sig_atomic_t *cancel,
                              struct machine *out, struct servet_error *error)
{
    struct machine machine = {.ops = &native_ops, .name = "native", .cancel = cancel};
    struct profile_set allowed;
    char list[32];
    int rc = allowed_pus(&allowed);
    if (rc < 0) {
        return profile_error(error, rc, "cannot read the allowed PUs of this process: %s",
                             strerror(-rc));
    }
    snprintf(list, sizeof list, "0-%u", count - 1);
    rc = profile_set_parse(list, &machine.pus);
    if (rc < 0) {
        profile_set_free(&allowed);
        return profile_error(error, rc, "cannot open this machine: %s", strerror(-rc));
    }
    return open_machine(&machine, allowed, out, error);
}
