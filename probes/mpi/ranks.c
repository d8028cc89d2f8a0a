/* The rank server: orders of rank 0, and how the others obey them (mpi.h).
 *
 * MPI has no time-outs, and a computer that vanishes leaves the others waiting inside the library:
 * every wait here has a deadline (deadline.c). Ranks without an order look for one now and then and
 * sleep between: they may share their PU with what is measured, and must not spin there. */
#include "probes/mpi/mpi.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A rank stays awake for a while after an order: the next order comes some 0.3 ms after an
 * answer. */
static const double awake_s = 1e-3;
/* No network that anybody measures is slower than this: longer messages are given longer. */
static const double slowest_bytes_per_s = 1e6;

/* A rank's answer to ORDER_EXCHANGE. */
struct result {
    double seconds;  /* of one message */
    double waited_s; /* this rank was ready to run, and another task had its PU */
    double moved;    /* not 0: it is not on its PU any more */
};
enum { RESULT_WORDS = sizeof(struct result) / sizeof(double) };

/* One look does not always make progress on the network (MPICH looks there now and then only):
 * several in a row do. */
enum { LOOKS = 64 };

bool probe_ranks_there_is(int source, int tag, MPI_Status *status)
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

static void wait_for_request(MPI_Request *request, unsigned sleep_us)
{
    while (!is_done(request)) {
        if (sleep_us) {
            usleep(sleep_us);
        } else {
            sched_yield();
        }
    }
}

void probe_ranks_limit_silence(const struct ranks *ranks)
{
    if (ranks->patient) {
        return;
    }
    probe_deadline_set(ranks_silence_limit_s, "%s: nothing from rank 0 on %s for %.0f s",
                       ranks->info[ranks->rank].host, ranks->info[0].host, ranks_silence_limit_s);
}

/* -- rank 0 speaks -- */

static void send_order(int to, const struct order *order)
{
    MPI_Send(order, ORDER_BYTES, MPI_BYTE, to, TAG_ORDER, MPI_COMM_WORLD);
}

static void tell_all(struct ranks *ranks, const struct order *order)
{
    probe_deadline_set(ranks_silence_limit_s, "a node does not take messages any more");
    for (int i = 1; i < ranks->size; i++) {
        send_order(i, order);
    }
    probe_deadline_clear();
    ranks->spoke = MPI_Wtime();
}

void probe_ranks_speak(struct ranks *ranks)
{
    if (MPI_Wtime() - ranks->spoke > ranks_speak_every_s) {
        tell_all(ranks, &(struct order){.kind = ORDER_STAY});
    }
}

void probe_ranks_dismiss(struct ranks *ranks, int status)
{
    tell_all(ranks, &(struct order){.kind = ORDER_END, .status = status});
}

_Noreturn void probe_ranks_end(int status)
{
    fflush(NULL);
    probe_deadline_set_silently(ranks_speak_every_s,
                                status); /* MPICH 4.0.2 over UCX was seen to hang there */
    MPI_Finalize();
    _exit(status);
}

/* -- messages: what each rank of a pair does -- */

/* Buffers begin at a page, as those of OSU's benchmarks: from where malloc() puts them 32 KiB take
 * 5 to 8 % longer. */
static size_t buffer_align(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Where the second half of a buffer begins. */
static size_t half_of(const struct machine_exchange *what)
{
    return (what->bytes + buffer_align() - 1) / buffer_align() * buffer_align();
}

/* Messages come into the first half of the buffer, and go from there, or from the second half,
 * which is never written. */
static double time_batch(char *buffer, const struct order *order)
{
    const struct machine_exchange *what = &order->exchange.what;
    const char *sent = buffer + (what->unwritten ? half_of(what) : 0);
    const int partner = order->exchange.partner, bytes = (int)what->bytes;
    double start = MPI_Wtime();
    for (uint32_t i = 0; i < what->round_trips; i++) {
        if (order->exchange.first) {
            MPI_Send(sent, bytes, MPI_CHAR, partner, TAG_MESSAGE, MPI_COMM_WORLD);
        }
        MPI_Recv(buffer, bytes, MPI_CHAR, partner, TAG_MESSAGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!order->exchange.first) {
            MPI_Send(sent, bytes, MPI_CHAR, partner, TAG_MESSAGE, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / (2.0 * what->round_trips);
}

static double time_for(const struct machine_exchange *what)
{
    return (double)(what->bytes * what->round_trips * 2) / slowest_bytes_per_s;
}

static double limited_batch(const struct ranks *ranks, char *buffer, const struct order *order)
{
    const struct rank_info *partner = &ranks->info[order->exchange.partner];
    probe_deadline_set(ranks_answer_limit_s + 5 + time_for(&order->exchange.what),
                       "%s: no message from rank %d on %s for %.0f s",
                       ranks->info[ranks->rank].host, order->exchange.partner, partner->host,
                       ranks_answer_limit_s + 5);
    return time_batch(buffer, order);
}

/* The smallest batch, alone and beside others: disturbance only lengthens, and beside others every
 * pair goes on until all have their figure (go_on()), so that no batch of one is measured with
 * fewer messages of the others on the way. */
static struct result play(const struct ranks *ranks, const struct order *order, char *buffer)
{
    int pu = ranks->info[ranks->rank].pu;
    const uint64_t waited = probe_waited_ns();
    struct result result = {.seconds = INFINITY};
    limited_batch(ranks, buffer, order); /* untimed: connections and buffers are made now */
    for (uint32_t i = 0; i < order->exchange.what.batches; i++) {
        result.seconds = fmin(result.seconds, limited_batch(ranks, buffer, order));
    }
    probe_deadline_clear();
    result.waited_s = (double)(probe_waited_ns() - waited) * 1e-9;
    result.moved = pu >= 0 && sched_getcpu() != pu; /* so does the kernel when a PU goes offline */
    return result;
}

/* Does rank 0 say that all pairs have their figure? Rank 0 itself looks whether it has them all:
 * `count` answers (0 on the others). */
static bool is_enough(MPI_Request *answers, size_t count)
{
    bool all = count > 0 || probe_ranks_there_is(0, TAG_ENOUGH, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < count && all; i++) {
        all = is_done(&answers[i]);
    }
    return all;
}

/* The first of a pair sees when it is enough, and tells the other. */
static void go_on(const struct ranks *ranks, const struct order *order, char *buffer,
                  MPI_Request *answers, size_t count)
{
    int partner = order->exchange.partner, nothing;
    char more = 1;
    while (more) {
        if (order->exchange.first) {
            more = !is_enough(answers, count);
            MPI_Send(&more, 1, MPI_CHAR, partner, TAG_MORE, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&more, 1, MPI_CHAR, partner, TAG_MORE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (more) {
            limited_batch(ranks, buffer, order);
        }
    }
    probe_deadline_clear();
    if (order->exchange.first && count == 0) {
        MPI_Recv(&nothing, 1, MPI_INT, 0, TAG_ENOUGH, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static char *message_buffer(const struct ranks *ranks, const struct machine_exchange *what)
{
    /* Written once, or all of its pages would be the one page of zeros. */
    const size_t bytes = (what->unwritten ? 2 : 1) * half_of(what) + buffer_align();
    char *buffer = aligned_alloc(buffer_align(), bytes);
    if (buffer) {
        memset(buffer, 1, bytes);
    } else {
        probe_deadline_set(0.001, "%s: not enough memory for messages",
                           ranks->info[ranks->rank].host);
        pause();
    }
    return buffer;
}

static void say_ready(void)
{
    int nothing = 0;
    MPI_Send(&nothing, 1, MPI_INT, 0, TAG_READY, MPI_COMM_WORLD);
}

static void obey_exchange(const struct ranks *ranks, const struct order *order)
{
    int nothing = 0;
    char *buffer = message_buffer(ranks, &order->exchange.what);
    if (order->exchange.together) {
        MPI_Request go;
        probe_ranks_limit_silence(ranks);
        say_ready();
        MPI_Irecv(&nothing, 1, MPI_INT, 0, TAG_GO, MPI_COMM_WORLD, &go);
        wait_for_request(&go, 0);
    }
    struct result result = play(ranks, order, buffer);
    MPI_Send(&result, RESULT_WORDS, MPI_DOUBLE, 0, TAG_RESULT, MPI_COMM_WORLD);
    if (order->exchange.together) {
        go_on(ranks, order, buffer, NULL, 0);
        say_ready(); /* or the next order would be measured beside this one's last messages */
    }
    free(buffer);
}

/* -- orders -- */

static void take_order(const struct ranks *ranks, double awake_until, struct order *order)
{
    probe_ranks_limit_silence(ranks);
    while (!probe_ranks_there_is(0, TAG_ORDER, MPI_STATUS_IGNORE)) {
        if (MPI_Wtime() > awake_until) {
            usleep(RANKS_SLEEP_US);
        }
    }
    MPI_Recv(order, ORDER_BYTES, MPI_BYTE, 0, TAG_ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    probe_deadline_clear();
}

int probe_ranks_obey(struct ranks *ranks)
{
    double awake_until = 0;
    for (;;) {
        struct order order;
        take_order(ranks, awake_until, &order);
        switch (order.kind) {
        case ORDER_EXCHANGE:
            obey_exchange(ranks, &order);
            break;
        case ORDER_SUPERSTEP:
            probe_superstep_play(order.superstep.processors, &order.superstep.what, ranks->rank);
            break;
        case ORDER_END:
            return order.status;
        default:
            continue; /* to stay: no rank should wake up for that */
        }
        awake_until = MPI_Wtime() + awake_s;
    }
}

/* -- messages: what rank 0 does -- */

/* Rank 0 is the first of its pair: it is the one that sees when all have their figure. */
static int end_of(const struct profile_pair *pair, bool second)
{
    return (int)(second == (pair->b != 0) ? pair->b : pair->a);
}

static void wait_until_ready(const struct ranks *ranks, const struct profile_pair *pairs,
                             size_t count)
{
    int nothing;
    for (size_t i = 0; i < 2 * count; i++) {
        int rank = end_of(&pairs[i / 2], i % 2);
        MPI_Request request;
        if (rank == 0) {
            continue;
        }
        probe_deadline_set(
            ranks_answer_limit_s,
            "rank %d on %s does not answer for %.0f s: no profile was written, an older one is "
            "untouched",
            rank, ranks->info[rank].host, ranks_answer_limit_s);
        MPI_Irecv(&nothing, 1, MPI_INT, rank, TAG_READY, MPI_COMM_WORLD, &request);
        wait_for_request(&request, RANKS_SLEEP_US / 4);
    }
    probe_deadline_clear();
}

static void tell_pairs(const struct profile_pair *pairs, size_t count, enum tag tag)
{
    int nothing = 0;
    for (size_t i = 0; i < 2 * count; i++) {
        int rank = end_of(&pairs[i / 2], i % 2);
        if (rank != 0 && (tag != TAG_ENOUGH || i % 2 == 0)) {
            MPI_Send(&nothing, 1, MPI_INT, rank, (int)tag, MPI_COMM_WORLD);
        }
    }
}

/* Sends the orders; `mine` is that of rank 0, of kind 0 where it has none. */
static void order_exchange(const struct machine_exchange *what, const struct profile_pair *pairs,
                           size_t count, struct order *mine)
{
    *mine = (struct order){0};
    probe_deadline_set(ranks_answer_limit_s,
                       "a node does not take messages any more: no profile was written, an "
                       "older one is untouched");
    for (size_t i = 0; i < 2 * count; i++) {
        int rank = end_of(&pairs[i / 2], i % 2);
        const struct order order = {.kind = ORDER_EXCHANGE,
                                    .exchange = {.what = *what,
                                                 .partner = end_of(&pairs[i / 2], !(i % 2)),
                                                 .first = i % 2 == 0,
                                                 .together = count > 1}};
        if (rank == 0) {
            *mine = order;
        } else {
            send_order(rank, &order);
        }
    }
    probe_deadline_clear();
}

/* In the order of the ends of the pairs. */
static void wait_for_results(const struct ranks *ranks, const struct machine_exchange *what,
                             const struct profile_pair *pairs, size_t count, MPI_Request *requests)
{
    const double limit = ranks_answer_limit_s + (what->batches + 1) * time_for(what);
    for (size_t i = 0; i < 2 * count; i++) {
        uint32_t a = pairs[i / 2].a, b = pairs[i / 2].b;
        probe_deadline_set(
            limit,
            "rank %u on %s and rank %u on %s have not answered for %.0f s: no profile was "
            "written, an older one is untouched",
            a, ranks->info[a].host, b, ranks->info[b].host, limit);
        wait_for_request(&requests[i], RANKS_SLEEP_US / 4);
    }
    probe_deadline_clear();
}

static void lead_exchange(struct ranks *ranks, const struct machine_exchange *what,
                          const struct profile_pair *pairs, size_t count, struct result *results,
                          MPI_Request *requests)
{
    struct order mine;
    bool together = count > 1;
    order_exchange(what, pairs, count, &mine);
    char *buffer = mine.kind ? message_buffer(ranks, what) : NULL;
    if (together) {
        wait_until_ready(ranks, pairs, count);
        tell_pairs(pairs, count, TAG_GO);
    }
    for (size_t i = 0; i < 2 * count; i++) {
        int rank = end_of(&pairs[i / 2], i % 2);
        requests[i] = MPI_REQUEST_NULL;
        if (rank != 0) {
            MPI_Irecv(&results[i], RESULT_WORDS, MPI_DOUBLE, rank, TAG_RESULT, MPI_COMM_WORLD,
                      &requests[i]);
        }
    }
    if (mine.kind) {
        struct result own = play(ranks, &mine, buffer);
        for (size_t i = 0; i < count; i++) {
            results[2 * i] = end_of(&pairs[i], false) == 0 ? own : results[2 * i];
        }
        if (together) {
            go_on(ranks, &mine, buffer, requests, 2 * count);
        }
    }
    wait_for_results(ranks, what, pairs, count, requests);
    if (together) {
        tell_pairs(pairs, count, TAG_ENOUGH);
        wait_until_ready(ranks, pairs, count);
    }
    free(buffer);
}

static int ranks_exchange(struct machine *machine, const struct machine_exchange *what,
                          const struct profile_pair *pairs, size_t count, double *seconds)
{
    struct ranks *ranks = machine->state;
    FREED struct result *results = calloc(2 * count, sizeof *results);
    FREED MPI_Request *requests = calloc(2 * count, sizeof *requests);
    TRY(results && requests ? 0 : -ENOMEM);
    probe_ranks_speak(ranks);
    lead_exchange(ranks, what, pairs, count, results, requests);
    for (size_t i = 0; i < 2 * count; i++) {
        seconds[i / 2] = results[i - i % 2].seconds;
        ranks->waited_s += results[i].waited_s;
        TRY(results[i].moved > 0 ? -ENODEV : 0);
    }
    return 0;
}

int probe_ranks_superstep(uint32_t processors, const struct bsp_superstep *what, double *seconds)
{
    const struct order order = {.kind = ORDER_SUPERSTEP, .superstep = {*what, processors}};
    /* the longest run of supersteps asked for takes a second or so */
    probe_deadline_set(2 * ranks_silence_limit_s,
                       "supersteps of %u ranks have not ended for %.0f s", processors,
                       2 * ranks_silence_limit_s);
    for (uint32_t i = 1; i < processors; i++) {
        send_order((int)i, &order);
    }
    double found = probe_superstep_play(processors, what, 0);
    probe_deadline_clear();
    if (!(found > 0)) {
        return -EIO;
    }
    *seconds = found;
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
