/* Texts of the nodes, gathered by rank 0: each node's leader gives one when it is no more busy, and
 * beats until then; a node that falls silent ends the job, by name. */
#include "probes/mpi/mpi.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Orders of rank 0 meanwhile: to stay, or (after an error there) to end. */
static void listen_to_root(struct ranks *ranks)
{
    struct order order;
    if (!probe_ranks_there_is(0, TAG_ORDER, MPI_STATUS_IGNORE)) {
        return;
    }
    MPI_Recv(&order, ORDER_BYTES, MPI_BYTE, 0, TAG_ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    probe_ranks_limit_silence(ranks);
    if (order.kind == ORDER_END) {
        probe_ranks_end(order.status);
    }
}

static void tell_text(struct ranks *ranks, struct node_run *run)
{
    double beat = 0;
    int nothing = 0;
    probe_ranks_limit_silence(ranks);
    while (probe_node_run_busy(run)) {
        listen_to_root(ranks);
        if (MPI_Wtime() - beat > ranks_speak_every_s) {
            beat = MPI_Wtime();
            MPI_Send(&nothing, 1, MPI_INT, 0, TAG_BEAT, MPI_COMM_WORLD);
        }
        usleep(RANKS_SLEEP_US);
    }
    char *text = probe_node_run_text(run);
    probe_ranks_limit_silence(ranks);
    MPI_Send(text, (int)strlen(text) + 1, MPI_CHAR, 0, TAG_TEXT, MPI_COMM_WORLD);
    free(text);
}

static int node_of_rank(const struct ranks *ranks, int leader)
{
    int node = 0;
    while (ranks->leaders[node] != leader) {
        node++;
    }
    return node;
}

enum message { MESSAGE_NONE, MESSAGE_BEAT, MESSAGE_TEXT };

/* One message from a leader, if there is any. */
static enum message take_message(struct ranks *ranks, double *heard, char **texts)
{
    int length, nothing;
    MPI_Status status;
    if (probe_ranks_there_is(MPI_ANY_SOURCE, TAG_TEXT, &status)) {
        int node = node_of_rank(ranks, status.MPI_SOURCE);
        MPI_Get_count(&status, MPI_CHAR, &length);
        texts[node] = calloc(1, (size_t)length + 1);
        probe_deadline_set(ranks_answer_limit_s, "%s stopped in the middle of its answer",
                           ranks->info[status.MPI_SOURCE].host);
        MPI_Recv(texts[node], length, MPI_CHAR, status.MPI_SOURCE, TAG_TEXT, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        probe_deadline_clear();
        return MESSAGE_TEXT;
    }
    if (probe_ranks_there_is(MPI_ANY_SOURCE, TAG_BEAT, &status)) {
        MPI_Recv(&nothing, 1, MPI_INT, status.MPI_SOURCE, TAG_BEAT, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        heard[node_of_rank(ranks, status.MPI_SOURCE)] = MPI_Wtime();
        return MESSAGE_BEAT;
    }
    return MESSAGE_NONE;
}

static void miss(const struct ranks *ranks, const double *heard, char *const *texts)
{
    for (int i = 0; i < ranks->node_count; i++) {
        if (!texts[i] && MPI_Wtime() - heard[i] > ranks_answer_limit_s) {
            probe_deadline_set(
                0.001,
                "%s has not been heard of for %.0f s while it was measured: no profile was "
                "written, an older one is untouched",
                ranks->info[ranks->leaders[i]].host, ranks_answer_limit_s);
            pause();
        }
    }
}

/* Rank 0 may not run for seconds itself where its node is busy: that silence is not the others'. */
static void excuse(const struct ranks *ranks, double *heard, double *looked)
{
    double now = MPI_Wtime(), away = now - *looked;
    for (int i = 0; i < ranks->node_count && away > 1; i++) {
        heard[i] += away;
    }
    *looked = now;
}

/* `heard`: an array for the time of each node's last sign of life. */
static void collect_texts(struct ranks *ranks, struct node_run *run, char **texts, double *heard)
{
    double looked = MPI_Wtime();
    int missing = ranks->node_count, mine = node_of_rank(ranks, 0);
    for (int i = 0; i < ranks->node_count; i++) {
        heard[i] = looked;
    }
    while (missing > 0) {
        if (!texts[mine] && !probe_node_run_busy(run)) {
            texts[mine] = probe_node_run_text(run);
            missing--;
        }
        heard[mine] = MPI_Wtime();
        excuse(ranks, heard, &looked);
        enum message got = take_message(ranks, heard, texts);
        missing -= got == MESSAGE_TEXT;
        if (got != MESSAGE_NONE) {
            continue; /* silence is judged when nothing is waiting to be heard */
        }
        miss(ranks, heard, texts);
        probe_ranks_speak(ranks);
        usleep(RANKS_SLEEP_US);
    }
}

char **probe_ranks_gather(struct ranks *ranks, struct node_run *run)
{
    if (ranks->rank > 0) {
        if (ranks->info[ranks->rank].leader == ranks->rank) {
            tell_text(ranks, run);
        }
        return NULL;
    }
    FREED char **texts = calloc((size_t)ranks->node_count, sizeof *texts);
    FREED double *heard = calloc((size_t)ranks->node_count, sizeof *heard);
    if (!texts || !heard) {
        return NULL;
    }
    collect_texts(ranks, run, texts, heard);
    return TAKE(texts);
}
