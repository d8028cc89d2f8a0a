/* The MPI calls that the tracer takes the place of, one row each. */
#pragma once

/* Columns: the blocking function, the nonblocking one, the number of arguments of each; direction
 * and form, see calls.c; then where in the list of arguments, from 0 and NO where there is none,
 * stand the number of elements, their type, the peer or root, the communicator or window, and the
 * number and type of the receive buffer, which count if the send buffer is MPI_IN_PLACE. Each
 * function has a twin NAME_c, whose numbers of elements are MPI_Count instead of int. */

#define TRACE_COUNTED(ROW)                                                                         \
    ROW(Send, Isend, 6, 7, TO_PEER, ONE, 1, 2, 3, 5, NO, NO)                                       \
    ROW(Bsend, Ibsend, 6, 7, TO_PEER, ONE, 1, 2, 3, 5, NO, NO)                                     \
    ROW(Ssend, Issend, 6, 7, TO_PEER, ONE, 1, 2, 3, 5, NO, NO)                                     \
    ROW(Rsend, Irsend, 6, 7, TO_PEER, ONE, 1, 2, 3, 5, NO, NO)                                     \
    ROW(Send_init, Bsend_init, 7, 7, KEPT, ONE, 1, 2, 3, 5, NO, NO)                                \
    ROW(Ssend_init, Rsend_init, 7, 7, KEPT, ONE, 1, 2, 3, 5, NO, NO)                               \
    ROW(Sendrecv, Isendrecv, 12, 12, TO_PEER, ONE, 1, 2, 3, 10, NO, NO)                            \
    ROW(Sendrecv_replace, Isendrecv_replace, 9, 9, TO_PEER, ONE, 1, 2, 3, 7, NO, NO)               \
    ROW(Put, Rput, 8, 9, TO_WINDOW, ONE, 1, 2, 3, 7, NO, NO)                                       \
    ROW(Get, Rget, 8, 9, FROM_WINDOW, ONE, 1, 2, 3, 7, NO, NO)                                     \
    ROW(Accumulate, Raccumulate, 9, 10, TO_WINDOW, ONE, 1, 2, 3, 8, NO, NO)                        \
    ROW(Get_accumulate, Rget_accumulate, 12, 13, BOTH_WAYS, ONE, 1, 2, 6, 11, 4, 5)                \
    ROW(Bcast, Ibcast, 5, 6, FROM_ROOT, ONE, 1, 2, 3, 4, NO, NO)                                   \
    ROW(Scatter, Iscatter, 8, 9, FROM_ROOT, ONE, 1, 2, 6, 7, NO, NO)                               \
    ROW(Scatterv, Iscatterv, 9, 10, FROM_ROOT, MANY, 1, 3, 7, 8, NO, NO)                           \
    ROW(Gather, Igather, 8, 9, TO_ROOT, ONE, 1, 2, 6, 7, NO, NO)                                   \
    ROW(Gatherv, Igatherv, 9, 10, TO_ROOT, ONE, 1, 2, 7, 8, NO, NO)                                \
    ROW(Reduce, Ireduce, 7, 8, TO_ROOT, ONE, 2, 3, 5, 6, NO, NO)                                   \
    ROW(Allreduce, Iallreduce, 6, 7, REDUCED, ONE, 2, 3, NO, 5, NO, NO)                            \
    ROW(Allgather, Iallgather, 7, 8, TO_EACH, ONE, 1, 2, NO, 6, 4, 5)                              \
    ROW(Allgatherv, Iallgatherv, 8, 9, TO_EACH, OWN, 1, 2, NO, 7, 4, 6)                            \
    ROW(Alltoall, Ialltoall, 7, 8, TO_EACH, ONE, 1, 2, NO, 6, 4, 5)                                \
    ROW(Alltoallv, Ialltoallv, 9, 10, TO_EACH, MANY, 1, 3, NO, 8, 5, 7)                            \
    ROW(Alltoallw, Ialltoallw, 9, 10, TO_EACH, MANY_TYPES, 1, 3, NO, 8, 5, 7)                      \
    ROW(Reduce_scatter, Ireduce_scatter, 6, 7, TO_EACH, MANY, 2, 3, NO, 5, NO, NO)                 \
    ROW(Reduce_scatter_block, Ireduce_scatter_block, 6, 7, TO_EACH, ONE, 2, 3, NO, 5, NO, NO)      \
    ROW(Scan, Iscan, 6, 7, TO_NEXT, ONE, 2, 3, NO, 5, NO, NO)                                      \
    ROW(Exscan, Iexscan, 6, 7, TO_NEXT, ONE, 2, 3, NO, 5, NO, NO)                                  \
    ROW(Neighbor_allgather, Ineighbor_allgather, 7, 8, TO_NEIGHBOURS, ONE, 1, 2, NO, 6, NO, NO)    \
    ROW(Neighbor_allgatherv, Ineighbor_allgatherv, 8, 9, TO_NEIGHBOURS, ONE, 1, 2, NO, 7, NO, NO)  \
    ROW(Neighbor_alltoall, Ineighbor_alltoall, 7, 8, TO_NEIGHBOURS, ONE, 1, 2, NO, 6, NO, NO)      \
    ROW(Neighbor_alltoallv, Ineighbor_alltoallv, 9, 10, TO_NEIGHBOURS, MANY, 1, 3, NO, 8, NO, NO)  \
    ROW(Neighbor_alltoallw, Ineighbor_alltoallw, 9, 10, TO_NEIGHBOURS, MANY_TYPES, 1, 3, NO, 8,    \
        NO, NO)

/* One function each, without a twin. */
#define TRACE_SINGLE(ROW)                                                                          \
    ROW(Fetch_and_op, 7, BOTH_WAYS, ONE, NO, 2, 3, 6, NO, 2)                                       \
    ROW(Compare_and_swap, 7, BOTH_WAYS, ONE, NO, 3, 4, 6, NO, 3)                                   \
    ROW(Start, 1, STARTED, ONE, NO, NO, NO, 0, NO, NO)                                             \
    ROW(Startall, 2, STARTED, ONE, 0, NO, NO, 1, NO, NO)                                           \
    ROW(Request_free, 1, REQUEST_FREED, ONE, NO, NO, NO, 0, NO, NO)                                \
    ROW(Comm_free, 1, GROUP_FREED, ONE, NO, NO, NO, 0, NO, NO)                                     \
    ROW(Comm_disconnect, 1, GROUP_FREED, ONE, NO, NO, NO, 0, NO, NO)                               \
    ROW(Win_free, 1, GROUP_FREED, ONE, NO, NO, NO, 0, NO, NO)

/* Calls that send nothing: two names, the number of arguments of each. */
#define TRACE_TIMED(ROW)                                                                           \
    ROW(Recv, Irecv, 7, 7)                                                                         \
    ROW(Recv_c, Irecv_c, 7, 7)                                                                     \
    ROW(Mrecv, Imrecv, 5, 5)                                                                       \
    ROW(Mrecv_c, Imrecv_c, 5, 5)                                                                   \
    ROW(Probe, Iprobe, 4, 5)                                                                       \
    ROW(Mprobe, Improbe, 5, 6)                                                                     \
    ROW(Wait, Test, 2, 3)                                                                          \
    ROW(Waitall, Testall, 3, 4)                                                                    \
    ROW(Waitany, Testany, 4, 5)                                                                    \
    ROW(Waitsome, Testsome, 5, 5)                                                                  \
    ROW(Barrier, Ibarrier, 1, 2)                                                                   \
    ROW(Win_fence, Win_complete, 2, 1)                                                             \
    ROW(Win_start, Win_post, 3, 3)                                                                 \
    ROW(Win_wait, Win_test, 1, 2)                                                                  \
    ROW(Win_lock, Win_unlock, 4, 2)                                                                \
    ROW(Win_lock_all, Win_unlock_all, 2, 1)                                                        \
    ROW(Win_flush, Win_flush_all, 2, 1)                                                            \
    ROW(Win_flush_local, Win_flush_local_all, 2, 1)
