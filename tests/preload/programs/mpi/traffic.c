/* Known traffic between three MPI ranks (talk, compute and nothing: any number):  traffic PATTERN
 *
 * What each pattern sends to whom stands beside its expected matrix in test_trace.c. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, LONGEST = 4096 };

static int rank, ranks;
static char out[RANKS * LONGEST], in[RANKS * LONGEST];

static int next(void)
{
    return (rank + 1) % ranks;
}

static int before(void)
{
    return (rank + ranks - 1) % ranks;
}

/* Each rank sends to the next. */
static void send_all_ways(void)
{
    MPI_Request request[2];
    char buffer[8 * (100 + MPI_BSEND_OVERHEAD)];
    int size = (int)sizeof buffer;
    void *detached;
    MPI_Buffer_attach(buffer, size);
    for (int kind = 0; kind < 8; kind++) {
        MPI_Irecv(in, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request[0]);
        request[1] = MPI_REQUEST_NULL;
        MPI_Barrier(MPI_COMM_WORLD); /* a ready send needs the receive */
        int (*const blocking[])(const void *, int, MPI_Datatype, int, int,
                                MPI_Comm) = {MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend};
        int (*const nonblocking[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                                   MPI_Request *) = {MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend};
        if (kind == 2) /* synchronous: one after the other would wait in a ring */
            MPI_Issend(out, 10, MPI_INT, next(), kind, MPI_COMM_WORLD, &request[1]);
        else if (kind < 4)
            blocking[kind](out, 10, MPI_INT, next(), kind, MPI_COMM_WORLD);
        else
            nonblocking[kind - 4](out, 10, MPI_INT, next(), kind, MPI_COMM_WORLD, &request[1]);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
    MPI_Buffer_detach(&detached, &size);
    MPI_Sendrecv(out, 3, MPI_DOUBLE, next(), 0, in, 3, MPI_DOUBLE, before(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(in, 1, MPI_DOUBLE, before(), 0, next(), 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    MPI_Send(out, 10, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Ssend(out, 7, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    else if (rank == 1)
        MPI_Recv(in, 7, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Each rank sends three times to the next: one request, started, started with the receive,
 * started. */
static void persistent(void)
{
    MPI_Request request[2], of_nobody;
    MPI_Send_init(out, 100, MPI_BYTE, next(), 0, MPI_COMM_WORLD, &request[0]);
    MPI_Recv_init(in, 100, MPI_BYTE, before(), 0, MPI_COMM_WORLD, &request[1]);
    MPI_Send_init(out, 100, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &of_nobody);
    for (int i = 0; i < 3; i++) {
        if (i == 1) {
            MPI_Startall(2, request);
        } else {
            MPI_Start(&request[1]);
            MPI_Start(&request[0]);
        }
        MPI_Start(&of_nobody);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        MPI_Wait(&of_nobody, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request[0]);
    MPI_Request_free(&of_nobody);
    /* Its handle may be the freed one's; a start of it sends nothing. */
    MPI_Request again;
    MPI_Recv_init(in, 100, MPI_BYTE, before(), 0, MPI_COMM_WORLD, &again);
    MPI_Request sent;
    MPI_Start(&again);
    MPI_Isend(out, 1, MPI_BYTE, next(), 0, MPI_COMM_WORLD, &sent);
    MPI_Wait(&again, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Request_free(&again);
    MPI_Request_free(&request[1]);
}

/* A column of doubles, a structure: what counts is what is sent, not what it spans. Freed types
 * make room for others. */
static void types(void)
{
    for (int columns = 1; columns <= 3; columns++) {
        MPI_Datatype column;
        MPI_Type_vector(5, columns, 10, MPI_DOUBLE, &column);
        MPI_Type_commit(&column);
        if (rank == 0)
            MPI_Send(out, 2, column, 1, 0, MPI_COMM_WORLD);
        else if (rank == 1)
            MPI_Recv(in, 2, column, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Type_free(&column);
    }
}

/* Ranks 2 and 0, in this order, are 0 and 1 of the halves; then new ones again and again, so that
 * handles return. */
static void communicators(void)
{
    MPI_Comm copy, half;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Bcast(in, 1000, MPI_BYTE, 2, copy);
    MPI_Comm_free(&copy);
    for (int i = 0; i < 4; i++) {
        int of_rank = i % 2 ? -rank : rank;
        MPI_Comm_split(MPI_COMM_WORLD, rank == 1, of_rank, &half);
        int size, me;
        MPI_Comm_size(half, &size);
        MPI_Comm_rank(half, &me);
        if (size == 2 && me == 0)
            MPI_Send(out, 10 + i, MPI_BYTE, 1, 0, half);
        else if (size == 2)
            MPI_Recv(in, 10 + i, MPI_BYTE, 0, 0, half, MPI_STATUS_IGNORE);
        MPI_Comm_free(&half);
    }
}

static void around(int times, int count, MPI_Datatype type, MPI_Comm comm)
{
    MPI_Request request[2];
    int me;
    MPI_Comm_rank(comm, &me);
    for (int i = 0; i < times; i++) {
        MPI_Irecv(in, count, type, (me + ranks - 1) % ranks, 0, comm, &request[0]);
        MPI_Isend(out, count, type, (me + 1) % ranks, 0, comm, &request[1]);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
}

/* The same again and again, on communicators of another order and with types of another size that
 * may have the handle of the one before. */
static void repeated(void)
{
    for (int i = 0; i < 4; i++) {
        MPI_Comm turned;
        MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? -rank : rank, &turned);
        around(5, 1, MPI_INT, turned);
        MPI_Comm_free(&turned);
    }
    for (int i = 0; i < 4; i++) {
        MPI_Datatype type;
        MPI_Type_contiguous(i + 1, MPI_INT, &type);
        MPI_Type_commit(&type);
        around(2, 1, type, MPI_COMM_WORLD);
        MPI_Type_free(&type);
        around(10, 2, MPI_INT, MPI_COMM_WORLD);
        MPI_Send(out, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    }
}

/* {0, 1} and {2}: rank 0 of the other side is 2 for the former, 0 for the latter. */
static void intercommunicator(void)
{
    MPI_Comm side, both;
    int right = rank == 2;
    MPI_Comm_split(MPI_COMM_WORLD, right, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, right ? 0 : 2, 0, &both);
    if (rank == 1)
        MPI_Send(out, 30, MPI_BYTE, 0, 0, both);
    if (right)
        MPI_Recv(in, 30, MPI_BYTE, 1, 0, both, MPI_STATUS_IGNORE);
    MPI_Bcast(in, 500, MPI_BYTE, right ? MPI_ROOT : 0, both);
    MPI_Bcast(in, 6, MPI_BYTE, right ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, both);
    MPI_Comm_free(&both);
    MPI_Comm_free(&side);
}

static void rooted(void)
{
    int counts[RANKS] = {10, 20, 30}, places[RANKS] = {0, 100, 200};
    MPI_Request request;
    MPI_Bcast(in, 1000, MPI_BYTE, 1, MPI_COMM_WORLD);
    MPI_Ibcast(in, 1000, MPI_BYTE, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Reduce(out, in, 3, MPI_DOUBLE, MPI_SUM, 2, MPI_COMM_WORLD);
    MPI_Gather(rank ? out : MPI_IN_PLACE, 7, MPI_BYTE, in, 7, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Gatherv(out, counts[rank], MPI_BYTE, in, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Scatter(out, 5, MPI_BYTE, in, 5, MPI_BYTE, 2, MPI_COMM_WORLD);
    MPI_Scatterv(out, counts, places, MPI_BYTE, in, counts[rank], MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void all_to_all(void)
{
    int counts[RANKS], in_counts[RANKS], places[RANKS], bytes[RANKS];
    MPI_Datatype of[RANKS];
    for (int r = 0; r < RANKS; r++) {
        counts[r] = 100 * rank + r;
        in_counts[r] = 100 * r + rank;
        places[r] = bytes[r] = r * LONGEST;
        of[r] = MPI_BYTE;
    }
    MPI_Alltoallv(out, counts, places, MPI_BYTE, in, in_counts, places, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Alltoallw(out, counts, bytes, of, in, in_counts, bytes, of, MPI_COMM_WORLD);
    MPI_Alltoall(out, 4, MPI_INT, in, 4, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_BYTE, in, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void gather_all(void)
{
    int counts[RANKS] = {10, 20, 30}, places[RANKS] = {0, 100, 200};
    MPI_Request request;
    MPI_Allgather(out, 50, MPI_BYTE, in, 50, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, in, 1, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Allgatherv(out, counts[rank], MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD,
                    &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Two thirds of 3,000 bytes and of 9 x 1 byte, added up before they are divided. */
static void reduce(void)
{
    int counts[RANKS] = {1, 2, 3};
    MPI_Allreduce(out, in, 3000, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    for (int i = 0; i < 9; i++)
        MPI_Allreduce(out, in, 1, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    MPI_Reduce_scatter(out, in, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(out, in, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(out, in, 10, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    MPI_Exscan(out, in, 1, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
}

/* A line 0 - 1 - 2, then a ring with an edge each way of other sizes. */
static void neighbours(void)
{
    MPI_Comm line, ring;
    int size = RANKS, open = 0, from = before(), to = next(), count = 20 + rank,
        in_count = 20 + before(), place = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &open, 0, &line);
    MPI_Neighbor_alltoall(out, 10, MPI_BYTE, in, 10, MPI_BYTE, line);
    MPI_Neighbor_allgather(out, 1, MPI_BYTE, in, 1, MPI_BYTE, line);
    MPI_Comm_free(&line);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
    MPI_Neighbor_alltoallv(out, &count, &place, MPI_BYTE, in, &in_count, &place, MPI_BYTE, ring);
    MPI_Comm_free(&ring);
}

static void one_sided(void)
{
    MPI_Win window;
    int one = 1, result;
    MPI_Win_create(in, LONGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    if (rank == 0) {
        MPI_Put(out, 100, MPI_BYTE, 1, 0, 100, MPI_BYTE, window);
        MPI_Accumulate(&one, 1, MPI_INT, 2, 0, 1, MPI_INT, MPI_SUM, window);
    }
    MPI_Win_fence(0, window);
    if (rank == 2)
        MPI_Get(out, 200, MPI_BYTE, 0, 0, 200, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window);
        MPI_Fetch_and_op(&one, &result, MPI_INT, 2, 0, MPI_SUM, window);
        MPI_Win_unlock(2, window);
    }
    MPI_Win_free(&window);
}

static void *send_some(void *communicator)
{
    MPI_Comm comm = *(MPI_Comm *)communicator;
    for (int i = 0; i < 200; i++)
        MPI_Sendrecv(out, 1, MPI_BYTE, next(), 0, in, 1, MPI_BYTE, before(), 0, comm,
                     MPI_STATUS_IGNORE);
    return NULL;
}

/* Two threads, each on a communicator of its own. */
static void many_threads(void)
{
    pthread_t thread[2];
    MPI_Comm comm[2];
    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, send_some, &comm[i]);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
    }
}

/* Nothing but waiting for each other. */
/* Rank 0 says when it ends: no rank comes after it has begun. */
static void talk(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double end = MPI_Wtime() + 0.4;
    for (int on = 1; on;) {
        MPI_Sendrecv(out, 8, MPI_BYTE, next(), 0, in, 8, MPI_BYTE, before(), 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        on = MPI_Wtime() < end;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

static void compute(void)
{
    double end = MPI_Wtime() + 1.2;
    while (MPI_Wtime() < end) {
        ;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void move_away(void)
{
    if (chdir("/") < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    send_all_ways();
}

static void nothing(void)
{
}

static const struct {
    const char *name;
    void (*run)(void);
} patterns[] = {
    {"send", send_all_ways},
    {"persistent", persistent},
    {"types", types},
    {"communicators", communicators},
    {"repeated", repeated},
    {"intercommunicator", intercommunicator},
    {"rooted", rooted},
    {"alltoall", all_to_all},
    {"allgather", gather_all},
    {"reduce", reduce},
    {"neighbours", neighbours},
    {"rma", one_sided},
    {"threads", many_threads},
    {"away", move_away},
    {"talk", talk},
    {"compute", compute},
    {"nothing", nothing},
};

int main(int argc, char **argv)
{
    int level, threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    if (threads) {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    } else {
        MPI_Init(&argc, &argv);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; argc > 1 && i < sizeof patterns / sizeof patterns[0]; i++) {
        if (strcmp(argv[1], patterns[i].name) == 0) {
            patterns[i].run();
        }
    }
    MPI_Finalize();
    return 0;
}
