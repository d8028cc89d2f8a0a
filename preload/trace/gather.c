/* The counts of all ranks, brought together on rank 0, and the file that SERVET_TRACE names. */
#include "preload/trace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "preload/node/log.h"
#include "profile/base/clock.h"
#include "profile/base/file.h"

static void print_rank(FILE *out, int32_t number, const struct trace_rank *rank)
{
    fprintf(out, "%% rank %d messages %" PRIu64 " bytes %" PRIu64 " largest %" PRIu64, number + 1,
            rank->messages, rank->bytes, rank->largest);
    if (pin_trace_timing) {
        fprintf(out, " seconds %.9g mpi %.9g iterations %" PRIu64 " iteration %.9g compute %.9g",
                rank->times.seconds, rank->times.inside, rank->times.iterations,
                rank->times.iteration, rank->times.compute);
    }
    fputc('\n', out);
}

static void print_losses(FILE *out, const struct trace_sum *sum)
{
    uint64_t outside = 0, lost = 0;
    for (int32_t r = 0; r < sum->ranks; r++) {
        outside += sum->rank[r].outside;
        lost += sum->rank[r].lost;
    }
    if (outside > 0) {
        fprintf(out,
                "%% left out: %" PRIu64 " bytes to or from processes outside of MPI_COMM_WORLD\n",
                outside);
    }
    if (lost > 0) {
        fprintf(out,
                "%% not counted: %" PRIu64
                " calls on communicators or windows that could not be resolved\n",
                lost);
    }
}

static void print(FILE *out, const struct trace_sum *sum)
{
    fputs("%%MatrixMarket matrix coordinate integer general\n", out);
    fputs("% Servet: bytes sent from MPI_Init to MPI_Finalize; row: sender, column: receiver, "
          "ranks from 1\n",
          out);
    print_losses(out, sum);
    for (int32_t r = 0; r < sum->ranks; r++) {
        print_rank(out, r, &sum->rank[r]);
    }
    for (size_t i = 0; i < sum->count; i++) {
        fprintf(out, "%% messages %d %d %" PRIu64 "\n", sum->entries[i].from + 1,
                sum->entries[i].to + 1, sum->entries[i].messages);
    }
    fprintf(out, "%d %d %zu\n", sum->ranks, sum->ranks, sum->count);
    for (size_t i = 0; i < sum->count; i++) {
        fprintf(out, "%d %d %" PRIu64 "\n", sum->entries[i].from + 1, sum->entries[i].to + 1,
                sum->entries[i].bytes);
    }
}

int pin_trace_put(const char *path, const char *text, size_t length)
{
    struct pin_signals before;
    pin_signals_hold(&before);
    int rc = profile_save_file(path, text, length, NULL);
    pin_signals_release(&before);
    return rc;
}

int pin_trace_file_write(const char *path, const struct trace_sum *sum)
{
    char *text = NULL;
    size_t length;
    FILE *out = profile_stream_open(&text, &length);
    if (!out) {
        return -ENOMEM;
    }
    print(out, sum);
    int code = fclose(out) == 0 ? pin_trace_put(path, text, length) : -ENOMEM;
    free(text);
    return code;
}

/* Between looks: first as long as a message takes, at most this. */
#define LONGEST_PAUSE_NS 1000000
#define FIRST_PAUSE_NS 10000

/* -- waiting, with a limit -- */

static int complete_request(trace_word request, double limit_s)
{
    int done = 0;
    long pause = FIRST_PAUSE_NS;
    double end = profile_now_s() + limit_s;
    while (pin_trace_mpi.test(&request, &done, pin_trace_mpi.status_ignore) == 0 && !done) {
        if (profile_now_s() > end) {
            return -ETIMEDOUT;
        }
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        pause = 2 * pause < LONGEST_PAUSE_NS ? 2 * pause : LONGEST_PAUSE_NS;
    }
    return done ? 0 : -EIO;
}

int pin_trace_gather_meet(trace_word *comm)
{
    static trace_word fresh; /* the library writes to it when the last rank comes, which may be
                                later than this ends */
    trace_word request = 0;
    double limit =
        TRACE_MEET_LEAST_S + TRACE_MEET_PART * (profile_now_s() - pin_trace_counts.begun_s);
    if (pin_trace_mpi.comm_idup(pin_trace_mpi.comm_world, &fresh, &request) != 0) {
        return -EIO;
    }
    int code = complete_request(request, limit < TRACE_MEET_MOST_S ? limit : TRACE_MEET_MOST_S);
    *comm = code == 0 ? fresh : 0;
    return code;
}

int pin_trace_gather_tell(trace_word comm, void *data, size_t bytes)
{
    trace_word request = 0;
    if (pin_trace_mpi.ibcast(data, (int)bytes, pin_trace_mpi.byte_type, 0, comm, &request) != 0) {
        return -EIO;
    }
    return complete_request(request, TRACE_MEET_MOST_S);
}

/* -- this rank's -- */

void pin_trace_own_totals(struct trace_rank *out)
{
    *out = (struct trace_rank){.largest = pin_trace_counts.largest, .lost = pin_trace_counts.lost};
    for (int32_t i = 0; i <= pin_trace_counts.ranks; i++) {
        out->messages += pin_trace_counts.sent[i].messages;
        out->bytes += pin_trace_counts.sent[i].bytes;
    }
    out->outside = pin_trace_counts.sent[pin_trace_counts.ranks].bytes +
                   pin_trace_counts.got[pin_trace_counts.ranks].bytes;
    out->times = pin_trace_times;
}

/* Two for each rank at most. */
static size_t fill_entries(struct trace_entry *out)
{
    size_t count = 0;
    for (int32_t i = 0; i < pin_trace_counts.ranks; i++) {
        const struct trace_peer *sent = &pin_trace_counts.sent[i], *got = &pin_trace_counts.got[i];
        if (sent->messages > 0) {
            out[count++] =
                (struct trace_entry){pin_trace_counts.rank, i, sent->bytes, sent->messages};
        }
        if (got->messages > 0) {
            out[count++] =
                (struct trace_entry){i, pin_trace_counts.rank, got->bytes, got->messages};
        }
    }
    return count;
}

/* -- over the wire -- */

/* To or from `peer`: a rank has two entries for each rank at most, so their bytes are an int. */
static int carry(trace_word comm, int peer, bool send, void *data, size_t bytes)
{
    trace_word request = 0, type = pin_trace_mpi.byte_type;
    int rc = send ? pin_trace_mpi.isend(data, (int)bytes, type, peer, 0, comm, &request)
                  : pin_trace_mpi.irecv(data, (int)bytes, type, peer, 0, comm, &request);
    return rc == 0 ? complete_request(request, TRACE_MEET_MOST_S) : -EIO;
}

/* Without memory for its entries a rank sends none, and says so by its number of lost calls. */
static int give_own(trace_word comm)
{
    static struct trace_rank own;
    pin_trace_own_totals(&own);
    struct trace_entry *entries = calloc(2 * (size_t)pin_trace_counts.ranks, sizeof *entries);
    if (entries) {
        own.entries = fill_entries(entries);
    } else {
        own.lost++;
    }
    int code = carry(comm, 0, true, &own, sizeof own);
    if (code == 0) {
        code = carry(comm, 0, true, entries, own.entries * sizeof *entries);
    }
    if (code == 0) {
        free(entries); /* else the library may still read them */
    }
    return code;
}

/* The totals and entries of rank `r`, rank 0 itself among them. */
static int take_rank(trace_word comm, int32_t r, struct trace_sum *sum)
{
    struct trace_rank *rank = &sum->rank[r];
    int rc = r == 0 ? 0 : carry(comm, r, false, rank, sizeof *rank);
    if (rc < 0) {
        return rc;
    }
    const size_t most = r == 0 ? 2 * (size_t)sum->ranks : rank->entries;
    struct trace_entry *all = reallocarray(sum->entries, sum->count + most + 1, sizeof *all);
    if (!all) {
        return -ENOMEM;
    }
    sum->entries = all;
    if (r == 0) {
        pin_trace_own_totals(rank);
        rank->entries = fill_entries(all);
    } else {
        rc = carry(comm, r, false, all + sum->count, rank->entries * sizeof *all);
    }
    sum->count += rank->entries;
    return rc;
}

static int by_pair(const void *a, const void *b)
{
    const struct trace_entry *x = a, *y = b;
    if (x->from != y->from) {
        return x->from < y->from ? -1 : 1;
    }
    return (x->to > y->to) - (x->to < y->to);
}

static void merge(struct trace_sum *sum)
{
    size_t kept = 0;
    if (sum->count > 0) {
        qsort(sum->entries, sum->count, sizeof *sum->entries, by_pair);
    }
    for (size_t i = 0; i < sum->count; i++) {
        struct trace_entry *before = kept > 0 ? &sum->entries[kept - 1] : NULL,
                           *now = &sum->entries[i];
        if (before && by_pair(before, now) == 0) {
            before->bytes += now->bytes;
            before->messages += now->messages;
        } else {
            sum->entries[kept++] = *now;
        }
    }
    sum->count = kept;
}

int pin_trace_gather(trace_word comm, struct trace_sum *out)
{
    struct trace_sum sum = {.ranks = pin_trace_counts.ranks};
    if (pin_trace_counts.rank != 0) {
        return give_own(comm);
    }
    sum.rank = calloc((size_t)sum.ranks, sizeof *sum.rank);
    int code = sum.rank ? 0 : -ENOMEM;
    for (int32_t r = 0; code == 0 && r < sum.ranks; r++) {
        code = take_rank(comm, r, &sum);
    }
    if (code == -ETIMEDOUT) {
        return code; /* the library may still write to it */
    }
    if (code < 0) {
        pin_trace_sum_free(&sum);
        return code;
    }
    merge(&sum);
    *out = sum;
    return 0;
}

void pin_trace_sum_free(struct trace_sum *sum)
{
    free(sum->rank);
    free(sum->entries);
    *sum = (struct trace_sum){0};
}
