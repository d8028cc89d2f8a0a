/* The file that SERVET_TRACE names. */
#include "trace_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "put_file.h"
#include "trace.h"

static void print_rank(FILE *out, int32_t number, const struct trace_rank *rank)
{
    fprintf(out, "%% rank %d messages %" PRIu64 " bytes %" PRIu64 " largest %" PRIu64, number + 1, rank->messages,
            rank->bytes, rank->largest);
    if (trace_timing)
        fprintf(out, " seconds %.9g mpi %.9g iterations %" PRIu64 " iteration %.9g compute %.9g", rank->times.seconds,
                rank->times.inside, rank->times.iterations, rank->times.iteration, rank->times.compute);
    fputc('\n', out);
}

static void print_losses(FILE *out, const struct trace_sum *sum)
{
    uint64_t outside = 0, lost = 0;
    for (int32_t r = 0; r < sum->ranks; r++) {
        outside += sum->rank[r].outside;
        lost += sum->rank[r].lost;
    }
    if (outside > 0)
        fprintf(out, "%% left out: %" PRIu64 " bytes to or from processes outside of MPI_COMM_WORLD\n", outside);
    if (lost > 0)
        fprintf(out, "%% not counted: %" PRIu64 " calls on communicators or windows that could not be resolved\n",
                lost);
}

static void print(FILE *out, const struct trace_sum *sum)
{
    fputs("%%MatrixMarket matrix coordinate integer general\n", out);
    fputs("% Servet: bytes sent from MPI_Init to MPI_Finalize; row: sender, column: receiver, ranks from 1\n", out);
    print_losses(out, sum);
    for (int32_t r = 0; r < sum->ranks; r++)
        print_rank(out, r, &sum->rank[r]);
    for (size_t i = 0; i < sum->count; i++)
        fprintf(out, "%% messages %d %d %" PRIu64 "\n", sum->entries[i].from + 1, sum->entries[i].to + 1,
                sum->entries[i].messages);
    fprintf(out, "%d %d %zu\n", sum->ranks, sum->ranks, sum->count);
    for (size_t i = 0; i < sum->count; i++)
        fprintf(out, "%d %d %" PRIu64 "\n", sum->entries[i].from + 1, sum->entries[i].to + 1, sum->entries[i].bytes);
}

int trace_file_write(const char *path, const struct trace_sum *sum)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return -ENOMEM;
    print(out, sum);
    int code = fclose(out) == 0 ? pin_file_put(path, text, length) : -ENOMEM;
    free(text);
    return code;
}
