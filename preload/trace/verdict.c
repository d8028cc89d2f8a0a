/* Was the run communication intensive? */
#include "preload/trace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/node/node.h"

void pin_trace_verdict_judge(const struct trace_sum *sum, const struct pin_remembered *before,
                             bool oversubscribed, struct trace_verdict *out)
{
    struct trace_verdict verdict = {.limit = before && before->communication ? TRACE_AUTO_GIVEN_UP
                                                                             : TRACE_AUTO_LIMIT};
    verdict.what = (struct pin_remembered){.share = 1, .ranks = sum->ranks};
    for (int32_t r = 0; r < sum->ranks; r++) {
        const struct trace_times *times = &sum->rank[r].times;
        double share = times->seconds > 0 ? times->inside / times->seconds : 0;
        verdict.what.share = share < verdict.what.share ? share : verdict.what.share;
        verdict.seconds = times->seconds > verdict.seconds ? times->seconds : verdict.seconds;
    }
    verdict.what.communication = verdict.what.share >= verdict.limit;
    if (sum->ranks < 2) {
        verdict.judged = TRACE_TOO_FEW_RANKS;
    } else if (verdict.seconds < TRACE_AUTO_LEAST_S) {
        verdict.judged = TRACE_TOO_SHORT;
    } else if (oversubscribed) {
        verdict.judged = TRACE_OVERSUBSCRIBED;
    }
    *out = verdict;
}

/* -- saying so -- */

static void host_name(char *name, size_t size)
{
    if (gethostname(name, size) < 0) {
        snprintf(name, size, "?");
    }
    name[size - 1] = '\0';
}

static void report(const char *text)
{
    pin_file_append(pin_option_table[PIN_REPORT].name, pin_trace_options.report, text,
                    strlen(text));
}

static const char *const why_not[] = {
    [TRACE_NOT_GATHERED] = "the ranks' counts could not be brought together",
    [TRACE_TOO_FEW_RANKS] = "one rank talks to nobody",
    [TRACE_TOO_SHORT] = "too short a run",
    [TRACE_OVERSUBSCRIBED] = "more ranks than PUs, so ranks wait for the scheduler",
};

static void report_verdict(const struct trace_verdict *verdict, const char *remembered)
{
    char text[1024], host[256];
    const char *what = verdict->what.communication ? "communication" : "memory";
    host_name(host, sizeof host);
    if (pin_file_is_json(pin_trace_options.report)) {
        snprintf(text, sizeof text,
                 "{\"host\":\"%s\",\"pid\":%d,\"auto\":{\"least_share_in_mpi\":%.4f,\"limit\":%.2f,"
                 "\"ranks\":%d,"
                 "\"seconds\":%.6g,\"priority\":\"%s\",\"remembered\":%s}}\n",
                 host, (int)getpid(), verdict->what.share, verdict->limit, verdict->what.ranks,
                 verdict->seconds, verdict->judged == TRACE_JUDGED ? what : "undecided",
                 remembered ? "false" : "true");
    } else if (verdict->judged != TRACE_JUDGED) {
        snprintf(text, sizeof text, "%s %d auto: undecided: %s\n", host, (int)getpid(),
                 why_not[verdict->judged]);
    } else {
        snprintf(
            text, sizeof text,
            "%s %d auto: %s: of %d ranks in %.3g s, the one that waited least was in MPI for %.0f "
            "%% (limit %.0f "
            "%%); %s%s\n",
            host, (int)getpid(),
            verdict->what.communication ? "communication intensive" : "memory bound or computing",
            verdict->what.ranks, verdict->seconds, 100 * verdict->what.share, 100 * verdict->limit,
            remembered ? "not remembered: " : "next time: ",
            remembered
                ? remembered
                : (verdict->what.communication ? "communication priority" : "memory priority"));
    }
    report(text);
}

/* One rank of each node remembers; nodes often share the folder, and then the last one wins with
 * the same verdict. */
void pin_trace_verdict_conclude(const struct trace_verdict *verdict, uint32_t node_rank)
{
    int code = 0;
    if (node_rank > 0) {
        return;
    }
    if (verdict->judged == TRACE_JUDGED) {
        code = pin_remembered_keep(NULL, &verdict->what);
    }
    if (code < 0) {
        pin_failure("SERVET_AUTO: what this run was like cannot be remembered: %s",
                    strerrordesc_np(-code));
    }
    if (pin_trace_options.report[0]) {
        report_verdict(verdict, code < 0 ? strerrordesc_np(-code) : NULL);
    }
    if (pin_trace_options.verbose && verdict->judged == TRACE_JUDGED) {
        pin_note("process %d: in MPI for at least %.0f %% of the time: %s priority next time",
                 (int)getpid(), 100 * verdict->what.share,
                 verdict->what.communication ? "communication" : "memory");
    }
}

void pin_trace_report_rank(void)
{
    char text[1024], host[256];
    struct trace_rank own;
    if (!pin_trace_options.report[0] || !pin_trace_timing) {
        return;
    }
    host_name(host, sizeof host);
    pin_trace_own_totals(&own);
    double share = own.times.seconds > 0 ? own.times.inside / own.times.seconds : 0;
    if (pin_file_is_json(pin_trace_options.report)) {
        snprintf(text, sizeof text,
                 "{\"host\":\"%s\",\"pid\":%d,\"mpi\":{\"rank\":%d,\"ranks\":%d,\"seconds\":%.6g,"
                 "\"in_mpi_seconds\":%.6g,"
                 "\"messages\":%" PRIu64 ",\"bytes\":%" PRIu64 "}}\n",
                 host, (int)getpid(), pin_trace_counts.rank, pin_trace_counts.ranks,
                 own.times.seconds, own.times.inside, own.messages, own.bytes);
    } else {
        snprintf(text, sizeof text,
                 "%s %d mpi: rank %d of %d: %.3g s after MPI_Init, %.0f %% of it in MPI, %" PRIu64
                 " messages of %" PRIu64 " bytes sent\n",
                 host, (int)getpid(), pin_trace_counts.rank, pin_trace_counts.ranks,
                 own.times.seconds, 100 * share, own.messages, own.bytes);
    }
    report(text);
}
