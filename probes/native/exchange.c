/* Messages between threads through shared memory. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "probes/native/native.h"

/* Two threads hand a message to and fro through memory they share: the sender copies it in and
 * raises a flag, the receiver copies it out and answers. Up to one line there is nothing but the
 * flag's own line to hand over, which both write, as the programs do that people know. */
#define STOP UINT64_MAX

/* The partner of a short message is waited for this long, and once more for each so many bytes: no
 * known machine copies less than 0.3 GB/s. Beside other tasks both run when their PUs' ticks come,
 * which may be 30 us apart: one that gave up within them would never meet the other. */
static const uint32_t patience = 8; /* x NATIVE_LOOKS_BEFORE_YIELD: 0.1 to 0.4 ms */
static const size_t patience_bytes = 16 << 10;

struct buffers {
    unsigned char *mine; /* what comes in, and is sent on */
    unsigned char *sent; /* sent: `mine`, or memory that is never written */
};

struct channel {
    _Alignas(NATIVE_LINE_BYTES) _Atomic uint64_t request;
    _Alignas(NATIVE_LINE_BYTES) _Atomic uint64_t answer;
    unsigned char *buffers[2]; /* through which a, and b, sends */
};

/* Where turn `turn` is answered. A message of up to a line is the line of its flag, and that one
 * line goes to and fro; turns are odd on their way there, and even on their way back. */
static _Atomic uint64_t *answer_of(struct channel *channel, const struct machine_exchange *what)
{
    return what->bytes > NATIVE_LINE_BYTES ? &channel->answer : &channel->request;
}

static bool wait_for_flag(_Atomic uint64_t *flag, uint64_t value, struct native_worker *worker,
                          struct native_job *job)
{
    for (uint32_t spins = 1;; spins++) {
        uint64_t seen = atomic_load_explicit(flag, memory_order_acquire);
        if (seen == value) {
            return true;
        }
        if (seen == STOP || !native_wait_on(worker, job, spins)) {
            return false;
        }
    }
}

static void answer_worker(struct native_worker *worker, struct native_job *job,
                          struct channel *channel, const struct buffers *own)
{
    const struct machine_exchange *what = job->what;
    for (uint64_t turn = 1; wait_for_flag(&channel->request, turn, worker, job); turn += 2) {
        if (what->bytes > NATIVE_LINE_BYTES) {
            memcpy(own->mine, channel->buffers[0], what->bytes);
            memcpy(channel->buffers[1], own->sent, what->bytes);
        }
        atomic_store_explicit(answer_of(channel, what), turn + 1, memory_order_release);
    }
}

static bool round_trips(struct native_worker *worker, struct native_job *job,
                        struct channel *channel, const struct buffers *own, uint64_t *turn)
{
    const struct machine_exchange *what = job->what;
    for (uint32_t i = 0; i < what->round_trips; i++) {
        if (what->bytes > NATIVE_LINE_BYTES) {
            memcpy(channel->buffers[0], own->sent, what->bytes);
        }
        atomic_store_explicit(&channel->request, *turn + 1, memory_order_release);
        *turn += 2;
        if (!wait_for_flag(answer_of(channel, what), *turn, worker, job)) {
            return false;
        }
        if (what->bytes > NATIVE_LINE_BYTES) {
            memcpy(own->mine, channel->buffers[1], what->bytes);
        }
    }
    return true;
}

/* How often this thread was put off its PU. */
static long times_put_off(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* The least of the batches counts. Those with another task's turn on the PU measure the wait for
 * it: they are not among the wanted number. */
static const uint32_t tries_most = 20;

static int ask_worker(struct native_worker *worker, struct native_job *job, struct channel *channel,
                      const struct buffers *own)
{
    const struct machine_exchange *what = job->what;
    const bool alone = worker->native->folded.count == 0;
    double best = INFINITY;
    uint32_t calm = 0;
    uint64_t turn = 0, tries = 0;
    bool alive = round_trips(worker, job, channel, own,
                             &turn); /* untimed: both run and all lines are theirs */
    for (; calm < what->batches && tries < (uint64_t)tries_most * what->batches && alive &&
           !probe_native_cancelled(worker);
         tries++) {
        const long before = times_put_off();
        uint64_t start = profile_now_ns();
        alive = round_trips(worker, job, channel, own, &turn);
        double seconds = (double)(profile_now_ns() - start) * 1e-9 / (2.0 * what->round_trips);
        best = alive ? fmin(best, seconds) : best;
        calm += !alone || times_put_off() == before;
    }
    job->result[worker->index / 2] = best;
    probe_native_done(job);
    probe_native_done(job); /* the partner as well */
    while (alive && probe_native_others_busy(worker, job)) {
        alive = round_trips(worker, job, channel, own, &turn);
    }
    atomic_store(&channel->request, STOP);
    /* Where both wait for their PUs in turn batches of a millisecond take seconds: when the time is
     * over those that there are count. */
    return isfinite(best) ? 0 : -EINTR;
}

static int run_exchange(struct native_worker *worker, struct native_job *job)
{
    const struct machine_exchange *what = job->what;
    struct channel *channel = (struct channel *)job->shared + worker->index / 2;
    const size_t bytes = (what->unwritten ? 2 : 1) * what->bytes,
                 lines = (what->bytes + NATIVE_LINE_BYTES - 1) / NATIVE_LINE_BYTES;
    FREED unsigned char *memory = malloc(bytes);
    /* The sender's buffer lies where the sender runs. */
    unsigned char *out = aligned_alloc(NATIVE_LINE_BYTES, lines * NATIVE_LINE_BYTES);
    channel->buffers[worker->index % 2] = out;
    TRY(memory && out ? 0 : -ENOMEM);
    /* Written once, or all of its pages would be the one page of zeros. */
    memset(memory, 1, bytes);
    memset(out, 1, what->bytes);
    const struct buffers own = {memory, what->unwritten ? memory + what->bytes : memory};
    TRY(probe_native_meet(worker, job) ? 0 : -EINTR);
    if (worker->index % 2 == 0) {
        return ask_worker(worker, job, channel, &own);
    }
    answer_worker(worker, job, channel, &own);
    return 0;
}

int probe_native_exchange(struct machine *machine, const struct machine_exchange *what,
                          const struct profile_pair *pairs, size_t count, double *seconds)
{
    const bool alone = ((struct native *)machine->state)->folded.count == 0;
    FREED struct channel *channels = aligned_alloc(NATIVE_LINE_BYTES, count * sizeof *channels);
    TRY(channels ? 0 : -ENOMEM);
    memset(channels, 0, count * sizeof *channels);
    struct native_job job = {.run = run_exchange,
                             .what = what,
                             .result = seconds,
                             .patience =
                                 alone ? patience + (uint32_t)(what->bytes / patience_bytes) : 0,
                             .shared = channels};
    int rc = probe_native_run(machine->state, &job, machine_pair_pus(pairs), 2 * count);
    for (size_t i = 0; i < count; i++) {
        free(channels[i].buffers[0]);
        free(channels[i].buffers[1]);
    }
    return rc;
}
