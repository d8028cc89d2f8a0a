/* Preloaded into an MPI program (libservet_spmd_trace.so): how long it computes between its exchanges, and what it
 * sends to whom. For programs in C; it counts the calls below and times every one of them.
 *
 * At MPI_Finalize rank 0 writes the file $SERVET_SPMD_TRACE, one line for every rank:
 *     rank RANK seconds ALL iterations N iteration SECONDS compute SECONDS to RANK BYTES [to RANK BYTES …]
 * An iteration lies between two messages to the first neighbour (N: how many were seen); `compute` is the part of it
 * outside of these calls. Both are medians over the iterations: on a shared machine some of them are interrupted. BYTES
 * are those of one message, the largest. Without the variable nothing is written.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEIGHBOURS = 8, LINE = 512 };

#define INTERPOSER __attribute__((visibility("default")))

/* Iterations whose times are kept for the median; later ones are only counted. */
enum { SAMPLES = 1 << 16 };

static struct {
    double begun;                /* end of MPI_Init */
    double inside;               /* seconds in MPI calls so far */
    double last, inside_at_last; /* when the first neighbour was sent its latest message, and `inside` then */
    long marks;                  /* messages to it */
    double iteration[SAMPLES], compute[SAMPLES];
    int peers[NEIGHBOURS];
    long bytes[NEIGHBOURS];
    int peer_count;
} trace;

/* The first neighbour is sent a message: an iteration ends, another begins. */
static void mark(double now)
{
    if (trace.marks > 0 && trace.marks <= SAMPLES) {
        trace.iteration[trace.marks - 1] = now - trace.last;
        trace.compute[trace.marks - 1] = now - trace.last - (trace.inside - trace.inside_at_last);
    }
    trace.marks++;
    trace.last = now;
    trace.inside_at_last = trace.inside;
}

static void count_message(int count, MPI_Datatype type, int to, double now)
{
    int size = 0, k = 0;
    if (to == MPI_PROC_NULL) {
        return;
    }
    PMPI_Type_size(type, &size);
    while (k < trace.peer_count && trace.peers[k] != to) {
        k++;
    }
    if (k == NEIGHBOURS) {
        return;
    }
    if (k == trace.peer_count) {
        trace.peers[trace.peer_count++] = to;
    }
    long bytes = (long)count * size;
    trace.bytes[k] = bytes > trace.bytes[k] ? bytes : trace.bytes[k];
    if (k == 0) {
        mark(now);
    }
}

/* Runs a call and adds its time to that inside of MPI. */
#define TIMED(call)                                                                                                    \
    double timed_start = PMPI_Wtime();                                                                                 \
    int timed_rc = (call);                                                                                             \
    trace.inside += PMPI_Wtime() - timed_start;                                                                        \
    return timed_rc

INTERPOSER int MPI_Init(int *argc, char ***argv)
{
    int rc = PMPI_Init(argc, argv);
    trace.begun = PMPI_Wtime();
    return rc;
}

INTERPOSER int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rc = PMPI_Init_thread(argc, argv, required, provided);
    trace.begun = PMPI_Wtime();
    return rc;
}

INTERPOSER int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    count_message(count, type, to, PMPI_Wtime());
    TIMED(PMPI_Send(buffer, count, type, to, tag, comm));
}

INTERPOSER int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request *request)
{
    count_message(count, type, to, PMPI_Wtime());
    TIMED(PMPI_Isend(buffer, count, type, to, tag, comm, request));
}

INTERPOSER int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                        MPI_Status *status)
{
    TIMED(PMPI_Recv(buffer, count, type, from, tag, comm, status));
}

INTERPOSER int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                         MPI_Request *request)
{
    TIMED(PMPI_Irecv(buffer, count, type, from, tag, comm, request));
}

INTERPOSER int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in,
                            int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    count_message(out_count, out_type, to, PMPI_Wtime());
    TIMED(PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status));
}

INTERPOSER int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    TIMED(PMPI_Wait(request, status));
}

INTERPOSER int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    TIMED(PMPI_Waitall(count, requests, statuses));
}

INTERPOSER int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    TIMED(PMPI_Waitany(count, requests, index, status));
}

INTERPOSER int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    TIMED(PMPI_Test(request, flag, status));
}

INTERPOSER int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    TIMED(PMPI_Testall(count, requests, flag, statuses));
}

INTERPOSER int MPI_Barrier(MPI_Comm comm)
{
    TIMED(PMPI_Barrier(comm));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, long count)
{
    count = count < SAMPLES ? count : SAMPLES;
    if (count < 1) {
        return 0;
    }
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void describe(int rank, char line[LINE])
{
    int used = snprintf(line, LINE, "rank %d seconds %.9g iterations %ld iteration %.9g compute %.9g", rank,
                        PMPI_Wtime() - trace.begun, trace.marks, median(trace.iteration, trace.marks - 1),
                        median(trace.compute, trace.marks - 1));
    for (int k = 0; k < trace.peer_count && used < LINE - 1; k++) {
        used += snprintf(line + used, LINE - (size_t)used, " to %d %ld", trace.peers[k], trace.bytes[k]);
    }
}

static void write_trace(const char *path, const char *lines, int ranks)
{
    FILE *file = fopen(path, "we");
    for (int r = 0; file && r < ranks; r++) {
        fprintf(file, "%s\n", lines + (size_t)r * LINE);
    }
    if (!file || fclose(file) != 0) {
        fprintf(stderr, "servet-spmd: %s: cannot be written\n", path);
    }
}

INTERPOSER int MPI_Finalize(void)
{
    const char *path = getenv("SERVET_SPMD_TRACE");
    char line[LINE] = "", *lines = NULL;
    int rank, ranks;
    if (path && *path) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
        describe(rank, line);
        lines = rank == 0 ? calloc((size_t)ranks, LINE) : NULL;
        PMPI_Gather(line, LINE, MPI_CHAR, lines, LINE, MPI_CHAR, 0, MPI_COMM_WORLD);
        if (lines) {
            write_trace(path, lines, ranks);
        }
        free(lines);
    }
    return PMPI_Finalize();
}
