/* How long a rank is in MPI and how long it computes between its exchanges; from that the verdict
 * whether the run was communication intensive. */
#include "preload/trace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/node/log.h"
#include "profile/base/clock.h"
#include "profile/base/statistics.h"
#include "profile/text/record.h"

/* -- how long -- */

/* Iterations whose times are kept for the median (1 MiB, which the kernel gives as they come);
 * later ones are only counted. */
#define SAMPLES 65536u

static __thread bool timed __attribute__((tls_model("initial-exec")));

struct trace_times pin_trace_times;

static struct {
    double begun, entered;
    double last,
        inside_at_last; /* when the first peer was sent its latest message, and `inside` then */
    int32_t first_peer; /* -1: none yet */
    double *iteration, *compute;
} clocked;

int pin_trace_time_begin(void)
{
    double *samples = calloc(2 * SAMPLES, sizeof *samples);
    if (!samples) {
        return -ENOMEM;
    }
    clocked.iteration = samples;
    clocked.compute = samples + SAMPLES;
    clocked.first_peer = -1;
    clocked.begun = clocked.entered = profile_now_s();
    timed = true;
    return 0;
}

void pin_trace_time_enter(void)
{
    if (timed) {
        clocked.entered = profile_now_s();
    }
}

void pin_trace_time_leave(void)
{
    if (timed) {
        pin_trace_times.inside += profile_now_s() - clocked.entered;
    }
}

void pin_trace_time_message(int32_t peer)
{
    if (!timed) {
        return;
    }
    if (clocked.first_peer < 0) {
        clocked.first_peer = peer;
    }
    if (peer != clocked.first_peer) {
        return;
    }
    if (pin_trace_times.iterations > 0 && pin_trace_times.iterations <= SAMPLES) {
        double iteration = clocked.entered - clocked.last;
        clocked.iteration[pin_trace_times.iterations - 1] = iteration;
        clocked.compute[pin_trace_times.iterations - 1] =
            iteration - (pin_trace_times.inside - clocked.inside_at_last);
    }
    pin_trace_times.iterations++;
    clocked.last = clocked.entered;
    clocked.inside_at_last = pin_trace_times.inside;
}

void pin_trace_time_stop(void)
{
    uint64_t samples = pin_trace_times.iterations > 0 ? pin_trace_times.iterations - 1 : 0;
    samples = samples < SAMPLES ? samples : SAMPLES;
    pin_trace_times.seconds = profile_now_s() - clocked.begun;
    if (samples) {
        pin_trace_times.iteration = profile_median_value(clocked.iteration, samples);
        pin_trace_times.compute = profile_median_value(clocked.compute, samples);
    }
}

/* -- the verdict -- */

void pin_trace_verdict_judge(const struct trace_sum *sum, const struct pin_priority_cache *before,
                             bool oversubscribed, struct trace_verdict *out)
{
    *out = (struct trace_verdict){.limit = before && before->communication ? TRACE_AUTO_GIVEN_UP
                                                                           : TRACE_AUTO_LIMIT,
                                  .what = {.share = 1, .ranks = sum->ranks}};
    for (int32_t r = 0; r < sum->ranks; r++) {
        const struct trace_times *times = &sum->rank[r].times;
        double share = times->seconds > 0 ? times->inside / times->seconds : 0;
        out->what.share = share < out->what.share ? share : out->what.share;
        out->seconds = times->seconds > out->seconds ? times->seconds : out->seconds;
    }
    out->what.communication = out->what.share >= out->limit;
    if (sum->ranks < 2) {
        out->judged = TRACE_TOO_FEW_RANKS;
    } else if (out->seconds < TRACE_AUTO_LEAST_S) {
        out->judged = TRACE_TOO_SHORT;
    } else if (oversubscribed) {
        out->judged = TRACE_OVERSUBSCRIBED;
    }
}

/* -- reports -- */

static const char *const why_not[] = {
    [TRACE_NOT_GATHERED] = "the ranks' counts could not be brought together",
    [TRACE_TOO_FEW_RANKS] = "one rank talks to nobody",
    [TRACE_TOO_SHORT] = "too short a run",
    [TRACE_OVERSUBSCRIBED] = "more ranks than PUs, so ranks wait for the scheduler",
};

/* `error`: why it is not remembered, or NULL. */
static void report_verdict(const struct trace_verdict *verdict, const char *error)
{
    const struct pin_priority_cache *what = &verdict->what;
    const bool judged = verdict->judged == TRACE_JUDGED;
    const char *why = judged ? error : why_not[verdict->judged];
    pin_record(
        pin_trace_options.report, false,
        !judged ? "auto: {priority}: {why}"
        : error ? "auto: {program}: of {ranks} ranks in {seconds}, the one that waited least was "
                  "in MPI for {least_share_in_mpi} (limit {limit}); not remembered: {why}"
                : "auto: {program}: of {ranks} ranks in {seconds}, the one that waited least was "
                  "in MPI for {least_share_in_mpi} (limit {limit}); next time: {priority} priority",
        PROFILE_FACTS(PROFILE_FIGURE("auto", PROFILE_INSIDE, 0),
                      PROFILE_WORD("program", what->communication ? "communication intensive"
                                                                  : "memory bound or computing"),
                      PROFILE_FIGURE("least_share_in_mpi", PROFILE_SHARE, what->share),
                      PROFILE_FIGURE("limit", PROFILE_SHARE, verdict->limit),
                      PROFILE_NUMBER("ranks", what->ranks),
                      PROFILE_FIGURE("seconds", PROFILE_SECONDS, verdict->seconds),
                      PROFILE_WORD("priority", !judged               ? "undecided"
                                               : what->communication ? "communication"
                                                                     : "memory"),
                      PROFILE_FIGURE("remembered", PROFILE_FLAG, !why),
                      PROFILE_WORD("why", why ? why : "")));
}

static int remember(const struct pin_priority_cache *what)
{
    char file[PATH_MAX], text[PIN_PRIORITY_CACHE_HEAD + 64];
    int rc = pin_priority_cache_file(NULL, file, text);
    if (rc < 0) {
        return rc;
    }
    rc = pin_cache_make_folders(file);
    if (rc < 0) {
        return rc;
    }
    const size_t head = strlen(text);
    snprintf(text + head, sizeof text - head, "priority %s share %.4f ranks %d\n",
             what->communication ? "communication" : "memory", what->share, what->ranks);
    return pin_trace_put(file, text, strlen(text));
}

/* One rank of each node remembers. Nodes that share the folder write the same verdict. */
void pin_trace_verdict_conclude(const struct trace_verdict *verdict, uint32_t node_rank)
{
    if (node_rank > 0) {
        return;
    }
    bool judged = verdict->judged == TRACE_JUDGED;
    int rc = judged ? remember(&verdict->what) : 0;
    if (rc < 0) {
        pin_failure("SERVET_AUTO: the verdict on this run cannot be remembered: %s",
                    strerrordesc_np(-rc));
    }
    if (pin_trace_options.report) {
        report_verdict(verdict, rc < 0 ? strerrordesc_np(-rc) : NULL);
    }
    pin_log(pin_trace_options.verbose && judged,
            "in MPI for at least %.0f %% of the time: %s priority next time",
            100 * verdict->what.share, verdict->what.communication ? "communication" : "memory");
}

void pin_trace_report_rank(void)
{
    struct trace_rank own;
    if (!pin_trace_options.report || !pin_trace_timing) {
        return;
    }
    pin_trace_own_totals(&own);
    const struct trace_times *times = &own.times;
    pin_record(pin_trace_options.report, false,
               "mpi: rank {rank} of {ranks}: {seconds} after MPI_Init, {in_mpi_seconds} of it in "
               "MPI, {messages} messages of {bytes} bytes sent",
               PROFILE_FACTS(PROFILE_FIGURE("mpi", PROFILE_INSIDE, 0),
                             PROFILE_NUMBER("rank", pin_trace_counts.rank),
                             PROFILE_NUMBER("ranks", pin_trace_counts.ranks),
                             PROFILE_FIGURE("seconds", PROFILE_SECONDS, times->seconds),
                             PROFILE_FIGURE("in_mpi_seconds", PROFILE_SECONDS, times->inside),
                             PROFILE_NUMBER("messages", own.messages),
                             PROFILE_NUMBER("bytes", own.bytes)));
}
