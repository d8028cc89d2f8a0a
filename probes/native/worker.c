/* Pinned threads, one for each PU that was asked for, which sleep between operations and begin and
 * end them together; and the clock. They are kept, because making and pinning a thread takes
 * longer than many operations. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "probes/native/native.h"
#include "probes/probe.h"
#include "profile/base/file.h"
#include "profile/base/mask.h"

void probe_native_clock_calibrate(double *cost_s, double *batch_s)
{
    enum { BATCHES = 64, READS = 64, STEPS_PER_BATCH = 100 };
    double cost[BATCHES], step = 1;
    for (size_t i = 0; i < BATCHES; i++) {
        uint64_t start = profile_now_ns(), last = start;
        for (size_t j = 1; j < READS; j++) {
            uint64_t now = profile_now_ns();
            if (now > last && (double)(now - last) * 1e-9 < step) {
                step = (double)(now - last) * 1e-9;
            }
            last = now;
        }
        cost[i] = (double)(last - start) * 1e-9 / (READS - 1);
    }
    *cost_s = profile_quantile(cost, BATCHES, 0.25);
    *batch_s = 1e-6;
    /* A step no longer than the call itself does not show the clock's grain. */
    if (step < 1 && step > 1.5 * *cost_s && step * STEPS_PER_BATCH > *batch_s) {
        *batch_s = step * STEPS_PER_BATCH;
    }
}

/* The kernel moves the threads of a PU that goes offline, and widens their masks: then the figures
 * are of another PU. */
static bool on_own_pu(const struct native_worker *worker)
{
    return sched_getcpu() == (int)worker->pu;
}

/* A job never sleeps: what it neither ran nor waited for its PU it stood still, stopped by a signal
 * or with the whole machine. Page faults are waited for as well, for milliseconds. */
static uint64_t stood_still_ns(uint64_t wall, uint64_t ran, uint64_t waited)
{
    static const uint64_t least = 50u * 1000000u;
    return wall > ran + waited + least ? wall - ran - waited : 0;
}

void probe_native_fail(struct native_job *job, int rc)
{
    int none = 0;
    atomic_compare_exchange_strong(&job->failed, &none, rc);
}

static int run_watched(struct native_worker *worker, struct native_job *job)
{
    uint64_t waited = probe_waited_ns(), wall = profile_clock_ns(CLOCK_BOOTTIME),
             ran = profile_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int rc = on_own_pu(worker) ? job->run(worker, job) : -ENODEV;
    rc = rc == 0 && !on_own_pu(worker) ? -ENODEV : rc;
    waited = probe_waited_ns() - waited;
    wall = profile_clock_ns(CLOCK_BOOTTIME) - wall;
    ran = profile_clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
    worker->still_ns = stood_still_ns(wall, ran, waited);
    worker->waited_ns += waited + worker->still_ns;
    worker->ran_ns += ran;
    return rc;
}

static void *work(void *argument)
{
    struct native_worker *worker = argument;
    for (;;) {
        while (sem_wait(&worker->start) < 0) {
        }
        struct native_job *job = worker->job;
        if (!job) {
            return NULL;
        }
        int rc = run_watched(worker, job);
        if (rc < 0) {
            probe_native_fail(job, rc);
        }
        sem_post(&worker->native->finished);
    }
}

static bool pu_is_offline(uint32_t pu)
{
    char path[96], line[8];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/online", pu);
    /* PU 0 often has no such file: it cannot go offline */
    return profile_first_line(path, line, sizeof line) && line[0] == '0';
}

static int start_pinned(struct native_worker *worker)
{
    struct profile_mask mask = {0};
    pthread_attr_t attributes;
    TRY(pthread_attr_init(&attributes) == 0 ? 0 : -ENOMEM);
    profile_mask_add(&mask, worker->pu);
    int rc = pthread_attr_setaffinity_np(&attributes, sizeof mask, (const void *)&mask);
    if (rc == 0) {
        /* Signals are the main thread's business. */
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        rc = pthread_create(&worker->thread, &attributes, work, worker);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    if (rc == EINVAL) { /* none of the mask's PUs is allowed or online */
        return pu_is_offline(worker->pu) ? -ENODEV : -EPERM;
    }
    return -rc;
}

static struct native_worker **worker_of(const struct native *native, uint32_t pu)
{
    return &native->workers[profile_set_position(&native->machine->pus, pu)];
}

static int make_worker(struct native *native, uint32_t pu)
{
    struct native_worker **slot = worker_of(native, pu), *worker;
    if (*slot) {
        return 0;
    }
    worker = calloc(1, sizeof *worker);
    TRY(worker ? 0 : -ENOMEM);
    const struct profile_set *folded = &native->folded;
    worker->pu =
        folded->count > 0 ? folded->ids[(size_t)(slot - native->workers) % folded->count] : pu;
    worker->native = native;
    for (size_t kind = 0; kind < NATIVE_REGIONS; kind++) {
        worker->regions[kind].numa = -1;
    }
    worker->regions[NATIVE_HUGE_POOL].pages = MACHINE_PAGES_HUGE;
    sem_init(&worker->start, 0, 0);
    int rc = start_pinned(worker);
    if (rc < 0) {
        sem_destroy(&worker->start);
        free(worker);
        return rc;
    }
    *slot = worker;
    return 0;
}

int probe_native_run(struct native *native, struct native_job *job, const uint32_t *pus,
                     size_t count)
{
    uint64_t still = 0;
    for (size_t i = 0; i < count; i++) {
        TRY(make_worker(native, pus[i]));
    }
    native->jobs++;
    job->count = count;
    for (size_t i = 0; i < count; i++) {
        struct native_worker *worker = *worker_of(native, pus[i]);
        worker->job = job;
        worker->index = i;
        worker->last_used = native->jobs;
    }
    for (size_t i = 0; i < count; i++) {
        sem_post(&(*worker_of(native, pus[i]))->start);
    }
    for (size_t i = 0; i < count; i++) {
        while (sem_wait(&native->finished) <
               0) { /* a signal; the workers see the flag themselves */
        }
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t of = (*worker_of(native, pus[i]))->still_ns;
        still = of > still ? of : still;
    }
    native->machine->guard.still_s += (double)still * 1e-9;
    return atomic_load(&job->failed);
}

bool probe_native_cancelled(const struct native_worker *worker)
{
    struct machine *machine = worker->native->machine;
    const volatile sig_atomic_t *cancel = machine->cancel;
    return (cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED)) ||
           (machine->until_s > 0 && probe_machine_elapsed(machine) >= machine->until_s);
}

bool probe_native_meet(struct native_worker *worker, struct native_job *job)
{
    atomic_fetch_add(&job->arrived, 1);
    while (atomic_load(&job->arrived) < job->count) {
        if (atomic_load(&job->failed) || probe_native_cancelled(worker)) {
            return false;
        }
    }
    return true;
}

/* If other tasks want the PU, a yield costs a turn of each, and two workers that yield hardly ever
 * run at the same time. A worker that sleeps has its PU soon after it wakes, and both meet:
 * messages of a pair beside 14 tasks on each PU had a figure after 4 s, not 12. */
bool probe_native_give_way(const struct native_worker *worker, struct native_job *job,
                           uint32_t looks)
{
    static const struct timespec nap = {.tv_nsec = 100 * 1000};
    if (job->patience == 0) {
        sched_yield();
    } else if (looks / NATIVE_LOOKS_BEFORE_YIELD >= job->patience) {
        nanosleep(&nap, NULL);
    }
    return !atomic_load(&job->failed) && !probe_native_cancelled(worker);
}

void probe_native_done(struct native_job *job)
{
    atomic_fetch_add(&job->done, 1);
}

bool probe_native_others_busy(struct native_worker *worker, struct native_job *job)
{
    return atomic_load(&job->done) < job->count && !atomic_load(&job->failed) &&
           !probe_native_cancelled(worker);
}

void probe_native_end_workers(struct native *native)
{
    for (size_t i = 0; i < native->machine->pus.count; i++) {
        struct native_worker *worker = native->workers[i];
        if (!worker) {
            continue;
        }
        worker->job = NULL;
        sem_post(&worker->start);
        pthread_join(worker->thread, NULL);
        sem_destroy(&worker->start);
        probe_native_regions_free(worker, NATIVE_REGIONS);
        free(worker);
    }
}
