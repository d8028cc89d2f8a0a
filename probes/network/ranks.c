#include "probes/network/ranks.h"

#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/network/inside.h"

enum tag { TAG_ORDER = 1, TAG_READY, TAG_GO, TAG_MESSAGE, TAG_RESULT, TAG_BEAT, TAG_TEXT };
enum order_kind { ORDER_EXCHANGE = 1, ORDER_STAY, ORDER_END };
enum { SLEEP_US = 500 };

/* Limits of waits. Rank 0 speaks to everybody every few seconds, so silence of half a minute means
 * that it is gone; it hears of a missing answer before the others give up, and can name it. */
static const double answer_limit_s = 15, silence_limit_s = 25, speak_every_s = 5, end_limit_s = 3;
/* No network that anybody measures is slower than this: longer messages are given longer. */
static const double slowest_bytes_per_s = 1e6;

struct order {
    uint64_t kind, bytes, round_trips, batches;
    int64_t partner;
    uint64_t first; /* this rank sends first, and reports */
    uint64_t
        together;   /* other pairs do the same at the same time: say that you are ready and wait */
    int64_t status; /* ORDER_END */
};
enum { ORDER_WORDS = sizeof(struct order) / sizeof(uint64_t) };

/* One look does not always make progress on the network (MPICH looks there now and then only):
 * several in a row do. */
enum { LOOKS = 64 };

static bool there_is(int source, int tag, MPI_Status *status)
{
    int there = 0;
    for (int i = 0; i < LOOKS && !there; i++) {
        MPI_Iprobe(source, tag, MPI_COMM_WORLD, &there, status);
    }
    return there;
}

static bool is_done(MPI_Request *request)
{
    int done = 0;
    for (int i = 0; i < LOOKS && !done; i++) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
    return done;
}

static void wait_for(MPI_Request *request, unsigned sleep_us)
{
    while (!is_done(request)) {
        if (sleep_us) {
            usleep(sleep_us);
        } else {
            sched_yield();
        }
    }
}

static void guard_silence(const struct ranks *ranks)
{
    probe_network_guard(silence_limit_s, "%s: nothing from rank 0 on %s for %.0f s",
                        ranks->info[ranks->rank].host, ranks->info[0].host, silence_limit_s);
}

/* -- rank 0 speaks -- */

static void send_order(int to, const struct order *order)
{
    MPI_Send(order, ORDER_WORDS, MPI_UINT64_T, to, TAG_ORDER, MPI_COMM_WORLD);
}

static void tell_all(struct ranks *ranks, const struct order *order)
{
    probe_network_guard(silence_limit_s, "a node does not take messages any more");
    for (int i = 1; i < ranks->size; i++) {
        send_order(i, order);
    }
    probe_network_guard_off();
    ranks->spoke = MPI_Wtime();
}

static void speak(struct ranks *ranks)
{
    if (MPI_Wtime() - ranks->spoke > speak_every_s) {
        tell_all(ranks, &(struct order){.kind = ORDER_STAY});
    }
}

void probe_ranks_dismiss(struct ranks *ranks, int status)
{
    tell_all(ranks, &(struct order){.kind = ORDER_END, .status = status});
}

_Noreturn void probe_ranks_end(struct ranks *ranks, int status)
{
    (void)ranks;
    fflush(NULL);
    probe_network_guard_silently(end_limit_s,
                                 status); /* MPICH 4.0.2 over UCX was seen to hang there */
    MPI_Finalize();
    _exit(status);
}

/* -- texts of the nodes -- */

/* What rank 0 says meanwhile: to stay, or (something went wrong there) to end. */
static void listen_to_root(struct ranks *ranks)
{
    struct order order;
    if (!there_is(0, TAG_ORDER, MPI_STATUS_IGNORE)) {
        return;
    }
    MPI_Recv(&order, ORDER_WORDS, MPI_UINT64_T, 0, TAG_ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    guard_silence(ranks);
    if (order.kind == ORDER_END) {
        probe_ranks_end(ranks, (int)order.status);
    }
}

static void tell_text(struct ranks *ranks, const struct ranks_teller *teller)
{
    double beat = 0;
    int nothing = 0;
    guard_silence(ranks);
    while (teller->busy && teller->busy(teller->context)) {
        listen_to_root(ranks);
        if (MPI_Wtime() - beat > speak_every_s) {
            beat = MPI_Wtime();
            MPI_Send(&nothing, 1, MPI_INT, 0, TAG_BEAT, MPI_COMM_WORLD);
        }
        usleep(SLEEP_US);
    }
    char *text = teller->text(teller->context);
    guard_silence(ranks);
    MPI_Send(text, (int)strlen(text) + 1, MPI_CHAR, 0, TAG_TEXT, MPI_COMM_WORLD);
    free(text);
}

static int node_of(const struct ranks *ranks, int leader)
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
    if (there_is(MPI_ANY_SOURCE, TAG_TEXT, &status)) {
        int node = node_of(ranks, status.MPI_SOURCE);
        MPI_Get_count(&status, MPI_CHAR, &length);
        texts[node] = calloc(1, (size_t)length + 1);
        probe_network_guard(answer_limit_s, "%s stopped in the middle of its answer",
                            ranks->info[status.MPI_SOURCE].host);
        MPI_Recv(texts[node], length, MPI_CHAR, status.MPI_SOURCE, TAG_TEXT, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        probe_network_guard_off();
        return MESSAGE_TEXT;
    }
    if (there_is(MPI_ANY_SOURCE, TAG_BEAT, &status)) {
        MPI_Recv(&nothing, 1, MPI_INT, status.MPI_SOURCE, TAG_BEAT, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        heard[node_of(ranks, status.MPI_SOURCE)] = MPI_Wtime();
        return MESSAGE_BEAT;
    }
    return MESSAGE_NONE;
}

static void miss(const struct ranks *ranks, const double *heard, char *const *texts)
{
    for (int i = 0; i < ranks->node_count; i++) {
        if (!texts[i] && MPI_Wtime() - heard[i] > answer_limit_s) {
            probe_network_guard(
                0.001,
                "%s has not been heard of for %.0f s while it was measured: no profile was "
                "written, an older "
                "one is untouched",
                ranks->info[ranks->leaders[i]].host, answer_limit_s);
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

static void collect(struct ranks *ranks, const struct ranks_teller *teller, char **texts)
{
    double *heard = calloc((size_t)ranks->node_count, sizeof *heard), looked = MPI_Wtime();
    int missing = ranks->node_count, mine = node_of(ranks, 0);
    for (int i = 0; i < ranks->node_count; i++) {
        heard[i] = looked;
    }
    while (missing > 0) {
        bool busy = !texts[mine] && teller->busy && teller->busy(teller->context);
        if (!texts[mine] && !busy) {
            texts[mine] = teller->text(teller->context);
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
        speak(ranks);
        usleep(SLEEP_US);
    }
    free(heard);
}

char **probe_ranks_gather(struct ranks *ranks, const struct ranks_teller *teller)
{
    if (ranks->rank == 0) {
        char **texts = calloc((size_t)ranks->node_count, sizeof *texts);
        if (texts) {
            collect(ranks, teller, texts);
        }
        return texts;
    }
    if (ranks->info[ranks->rank].leader == ranks->rank) {
        tell_text(ranks, teller);
    }
    return NULL;
}

/* -- exchange -- */

static double batch(char *buffer, const struct order *order)
{
    int partner = (int)order->partner, bytes = (int)order->bytes;
    double start = MPI_Wtime();
    for (uint64_t i = 0; i < order->round_trips; i++) {
        if (order->first) {
            MPI_Send(buffer, bytes, MPI_CHAR, partner, TAG_MESSAGE, MPI_COMM_WORLD);
        }
        MPI_Recv(buffer, bytes, MPI_CHAR, partner, TAG_MESSAGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!order->first) {
            MPI_Send(buffer, bytes, MPI_CHAR, partner, TAG_MESSAGE, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / (2.0 * (double)order->round_trips);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_for(const struct order *order)
{
    return (double)(order->bytes * order->round_trips * 2) / slowest_bytes_per_s;
}

/* Alone the smallest batch counts; among other pairs the median, since the smallest may have run
 * after the others. */
static double play(const struct ranks *ranks, const struct order *order)
{
    const struct rank_info *partner = &ranks->info[order->partner];
    char *buffer = calloc(1, order->bytes);
    double *seconds = calloc(order->batches, sizeof *seconds), result = 0;
    if (!buffer || !seconds) {
        probe_network_guard(0.001, "%s: not enough memory for messages",
                            ranks->info[ranks->rank].host);
        pause();
    }
    for (uint64_t i = 0; i <= order->batches; i++) {
        probe_network_guard(
            answer_limit_s + 5 + time_for(order), "%s: no message from rank %d on %s for %.0f s",
            ranks->info[ranks->rank].host, (int)order->partner, partner->host, answer_limit_s + 5);
        double time = batch(buffer, order);
        if (i > 0) { /* the first one only warms up */
            seconds[i - 1] = time;
        }
    }
    probe_network_guard_off();
    qsort(seconds, order->batches, sizeof *seconds, compare);
    result = seconds[order->together ? order->batches / 2 : 0];
    free(buffer);
    free(seconds);
    return result;
}

static double obey_exchange(const struct ranks *ranks, const struct order *order)
{
    int nothing = 0;
    if (order->together) {
        MPI_Request go;
        guard_silence(ranks);
        MPI_Send(&nothing, 1, MPI_INT, 0, TAG_READY, MPI_COMM_WORLD);
        MPI_Irecv(&nothing, 1, MPI_INT, 0, TAG_GO, MPI_COMM_WORLD, &go);
        wait_for(&go, 0);
    }
    double seconds = play(ranks, order);
    if (order->first) {
        MPI_Send(&seconds, 1, MPI_DOUBLE, 0, TAG_RESULT, MPI_COMM_WORLD);
    }
    return seconds;
}

int probe_ranks_obey(struct ranks *ranks)
{
    for (;;) {
        struct order order;
        guard_silence(ranks);
        while (!there_is(0, TAG_ORDER, MPI_STATUS_IGNORE)) {
            usleep(SLEEP_US);
        }
        MPI_Recv(&order, ORDER_WORDS, MPI_UINT64_T, 0, TAG_ORDER, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        probe_network_guard_off();
        if (order.kind == ORDER_END) {
            return (int)order.status;
        }
        if (order.kind == ORDER_EXCHANGE) {
            obey_exchange(ranks, &order);
        }
    }
}

static struct order order_for(const struct machine_exchange *what, uint32_t partner, bool first,
                              bool together)
{
    return (struct order){.kind = ORDER_EXCHANGE,
                          .bytes = what->bytes,
                          .round_trips = what->round_trips,
                          .batches = what->batches,
                          .partner = partner,
                          .first = first,
                          .together = together};
}

static void wait_until_ready(const struct ranks *ranks, const struct profile_pair *pairs,
                             size_t count)
{
    int nothing;
    for (size_t i = 0; i < 2 * count; i++) {
        uint32_t rank = i % 2 ? pairs[i / 2].b : pairs[i / 2].a;
        MPI_Request request;
        if (rank == 0) {
            continue;
        }
        probe_network_guard(
            answer_limit_s,
            "rank %u on %s does not answer for %.0f s: no profile was written, an older one is "
            "untouched",
            rank, ranks->info[rank].host, answer_limit_s);
        MPI_Irecv(&nothing, 1, MPI_INT, (int)rank, TAG_READY, MPI_COMM_WORLD, &request);
        wait_for(&request, SLEEP_US / 10);
    }
    for (size_t i = 0; i < 2 * count; i++) {
        uint32_t rank = i % 2 ? pairs[i / 2].b : pairs[i / 2].a;
        if (rank) {
            MPI_Send(&nothing, 1, MPI_INT, (int)rank, TAG_GO, MPI_COMM_WORLD);
        }
    }
    probe_network_guard_off();
}

static int ranks_exchange(struct machine *machine, const struct machine_exchange *what,
                          const struct profile_pair *pairs, size_t count, double *seconds)
{
    struct ranks *ranks = machine->state;
    struct order mine = {0};
    bool together = count > 1;
    double own = 0;
    speak(ranks);
    probe_network_guard(answer_limit_s,
                        "a node does not take messages any more: no profile was written, an "
                        "older one is untouched");
    for (size_t i = 0; i < count; i++) {
        const struct order to_a = order_for(what, pairs[i].b, true, together);
        const struct order to_b = order_for(what, pairs[i].a, false, together);
        if (pairs[i].a != 0) {
            send_order((int)pairs[i].a, &to_a);
        }
        if (pairs[i].b != 0) {
            send_order((int)pairs[i].b, &to_b);
        }
        mine = pairs[i].a == 0 ? to_a : pairs[i].b == 0 ? to_b : mine;
    }
    probe_network_guard_off();
    if (together) {
        wait_until_ready(ranks, pairs, count);
    }
    if (mine.kind) {
        own = play(ranks, &mine);
    }
    double limit = answer_limit_s + (what->batches + 1) *
                                        time_for(&(struct order){.bytes = what->bytes,
                                                                 .round_trips = what->round_trips});
    for (size_t i = 0; i < count; i++) {
        if (pairs[i].a == 0) {
            seconds[i] = own;
            continue;
        }
        MPI_Request request;
        probe_network_guard(
            limit,
            "rank %u on %s and rank %u on %s have not answered for %.0f s: no profile was "
            "written, an older one is "
            "untouched",
            pairs[i].a, ranks->info[pairs[i].a].host, pairs[i].b, ranks->info[pairs[i].b].host,
            limit);
        MPI_Irecv(&seconds[i], 1, MPI_DOUBLE, (int)pairs[i].a, TAG_RESULT, MPI_COMM_WORLD,
                  &request);
        wait_for(&request, SLEEP_US / 10);
    }
    probe_network_guard_off();
    return 0;
}

static double ranks_elapsed(struct machine *machine)
{
    (void)machine;
    return MPI_Wtime();
}

static const struct machine_ops ranks_ops = {.exchange = ranks_exchange, .elapsed = ranks_elapsed};

void probe_ranks_machine(struct ranks *ranks, struct machine *out)
{
    *out = (struct machine){.ops = &ranks_ops, .name = "mpi", .state = ranks};
    out->pus.ids = malloc((size_t)ranks->size * sizeof *out->pus.ids);
    for (int i = 0; out->pus.ids && i < ranks->size; i++) {
        out->pus.ids[out->pus.count++] = (uint32_t)i;
    }
}
