/* Inside of the native backend: pinned workers, their memory, and the clock. Only native/machine.c
 * and the files beside it. */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "probes/machine.h"
#include "profile/base/clock.h"
#include "profile/base/statistics.h"

/* A region that grows on demand and keeps its pages: first touch costs some 3.5 ms per MB in a
 * virtual machine. */
struct native_region {
    unsigned char *start;
    size_t reserved, touched; /* bytes */
    size_t claimed; /* bytes that count against the limit, from before they are touched; under a
                       lock */
    enum machine_pages pages;
    int32_t numa; /* < 0: where it is first touched */
};

/* Distance of data that must not share a line: adjacent-line prefetchers fetch pairs of 64 bytes,
 * POWER's lines have 128, those of A64FX and IBM Z 256. */
#if defined(__aarch64__) || defined(__s390x__)
enum { NATIVE_LINE_BYTES = 256 };
#else
enum { NATIVE_LINE_BYTES = 128 };
#endif

/* Scalable vectors that are longer than the 16 bytes of the ordinary ones. */
#if defined(__aarch64__)
bool probe_native_has_long_vectors(void);
#endif

/* Chases take a pool, copies and what is on a node NATIVE_COPY. */
enum native_kind_of_region { NATIVE_POOL, NATIVE_HUGE_POOL, NATIVE_COPY, NATIVE_REGIONS };

struct native_job;

struct native_worker {
    pthread_t thread;
    uint32_t pu; /* that it is pinned to */
    struct native *native;
    struct native_job *job; /* what to do next; NULL: end */
    size_t index;           /* within the job */
    sem_t start;
    struct native_region regions[NATIVE_REGIONS];
    size_t copied_to;   /* of each array of a copy: where the next copy begins */
    uint64_t waited_ns; /* during all jobs: ready and without its PU, or stood still */
    uint64_t still_ns;  /* during the last job: stopped, or the machine asleep */
    uint64_t ran_ns;    /* during all jobs */
    uint64_t last_used; /* number of the job; decides whose memory goes first */
};

struct native {
    struct machine *machine;
    struct native_worker **workers; /* one slot per PU of machine->pus, made when first needed */
    /* tests of many workers on few PUs: the PUs that stand for all; else empty. Owned */
    struct profile_set folded;
    sem_t finished;
    uint64_t jobs;
    uint64_t started_ns;
    double others;              /* tasks for each PU, beside this one; of some counts */
    uint64_t others_counted_ns; /* when last; 0: not yet */
    double clock_cost_s;        /* of reading the clock once */
    double batch_s;             /* shortest stretch that is worth timing */
};

/* One operation on several PUs. `run` is called by every worker; it uses probe_native_meet() for
 * the common start. */
struct native_job {
    int (*run)(struct native_worker *worker, struct native_job *job);
    const void *what;
    double *result; /* one per PU, or what the operation makes of it */
    size_t count;
    /* > 0: who waits for another worker sleeps after so many times NATIVE_LOOKS_BEFORE_YIELD looks,
     * longer than a partner that runs takes; 0: it yields */
    uint32_t patience;
    void *shared;
    atomic_size_t arrived, warm, done; /* workers */
    atomic_int failed;                 /* first -errno */
};

/* -- worker.c -- */
/* Runs the job on all `pus` at once and waits. 0 or the first -errno. */
int probe_native_run(struct native *native, struct native_job *job, const uint32_t *pus,
                     size_t count);
/* The job has failed, at first for this reason: nobody waits for this worker any more. */
void probe_native_fail(struct native_job *job, int rc);
/* All workers of the job wait here for each other, once. False: a worker failed, give up. */
bool probe_native_meet(struct native_worker *worker, struct native_job *job);
/* Says that this worker has its figure; true while others still need the noise of this one. */
void probe_native_done(struct native_job *job);
bool probe_native_others_busy(struct native_worker *worker, struct native_job *job);
/* Is the job to end: by a signal, or because the machine's time is over? */
bool probe_native_cancelled(const struct native_worker *worker);
/* Gives way as the job says. False: it has failed or is cancelled. */
bool probe_native_give_way(const struct native_worker *worker, struct native_job *job,
                           uint32_t looks);
/* Called at every look of a worker that spins for another one, `looks` counted from 1. False: the
 * job has failed or is cancelled. A worker that is alone on its PU goes on spinning; after 10 to 50
 * us, longer than any partner that runs takes, it gives way, so that a PU taken by another program
 * does not cost a whole time slice of the kernel. */
enum { NATIVE_LOOKS_BEFORE_YIELD = 1 << 14 };
static inline bool native_wait_on(const struct native_worker *worker, struct native_job *job,
                                  uint32_t looks)
{
    return looks % NATIVE_LOOKS_BEFORE_YIELD != 0 || probe_native_give_way(worker, job, looks);
}
void probe_native_end_workers(struct native *native);

/* -- memory.c -- */
/* At least `bytes` of touched memory, or -ENOMEM. Memory of workers that are idle is given back
 * first. */
int probe_native_region_grow(struct native_worker *worker, struct native_region *region,
                             size_t bytes);
/* The same on a NUMA node (< 0: where it is first touched) and with pages of a kind; what it held
 * before is lost when either is another. -ENOMEM also when the node has less than twice that free,
 * -EACCES when it is out of reach. */
int probe_native_region_place(struct native_worker *worker, struct native_region *region,
                              int32_t numa, enum machine_pages pages, size_t bytes);
/* All regions of a worker (NULL: none) but one (NATIVE_REGIONS: all); the bytes that they had
 * claimed. */
size_t probe_native_regions_free(struct native_worker *worker, enum native_kind_of_region but);
/* A node that has less than twice that free is left alone: bound memory that does not fit calls the
 * OOM killer. 0 (also for numa < 0), -ENOMEM, -EACCES. */
int probe_native_node_room(int32_t numa, size_t more);
/* Memory that is not yet touched will come from that node (< 0: any). 0, -EACCES, -errno. */
int probe_native_bind(void *start, size_t bytes, int32_t numa);
size_t probe_native_huge_page_bytes(void);

/* -- worker.c: the clock is clock_gettime, not the TSC itself. It is the same on every
 * architecture, does not count a suspended machine, and its cost (some 30 ns through the vDSO) is
 * measured and subtracted. -- */
/* Cost of reading the clock (subtracted from every batch), and the shortest stretch worth timing: 1
 * us, or a hundred of the clock's steps if they are coarser (a TSC may advance in steps of 26
 * ticks). */
void probe_native_clock_calibrate(double *cost_s, double *batch_s);

/* -- chase.c, copy.c, exchange.c, devices.c, bsp.c -- */
int probe_native_traverse(struct machine *machine, const struct machine_traversal *what,
                          const uint32_t *pus, size_t count, double *seconds_per_access);
int probe_native_copy(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                      size_t count, double *bytes_per_s);
const char *probe_native_copy_method(void);
int probe_native_exchange(struct machine *machine, const struct machine_exchange *what,
                          const struct profile_pair *pairs, size_t count, double *seconds);
int probe_native_transfer(struct machine *machine, const struct profile_device *device,
                          const struct machine_transfer *places, size_t count,
                          struct machine_transferred *out, struct servet_error *why);
int probe_native_daxpy(struct machine *machine, uint32_t processors, uint32_t length,
                       double *flop_per_s);
int probe_native_superstep(struct machine *machine, uint32_t processors,
                           const struct bsp_superstep *what, double *seconds);
