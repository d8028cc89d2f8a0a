/* Interposed: receiving and waiting. They send nothing; only their time counts. */
#include "trace.h"

#define RECEIVE(name, number)                                                                                          \
    TRACE_TIMED(name, (void *data, number count, trace_word type, int from, int tag, trace_word comm, void *end),      \
                (data, count, type, from, tag, comm, end))
#define MATCHED(name, number)                                                                                          \
    TRACE_TIMED(name, (void *data, number count, trace_word type, void *message, void *end),                           \
                (data, count, type, message, end))

RECEIVE(Recv, int)
RECEIVE(Irecv, int)
RECEIVE(Recv_c, int64_t)
RECEIVE(Irecv_c, int64_t)
MATCHED(Mrecv, int)
MATCHED(Imrecv, int)
MATCHED(Mrecv_c, int64_t)
MATCHED(Imrecv_c, int64_t)

TRACE_TIMED(Probe, (int from, int tag, trace_word comm, void *status), (from, tag, comm, status))
TRACE_TIMED(Iprobe, (int from, int tag, trace_word comm, int *flag, void *status), (from, tag, comm, flag, status))
TRACE_TIMED(Mprobe, (int from, int tag, trace_word comm, void *message, void *status),
            (from, tag, comm, message, status))
TRACE_TIMED(Improbe, (int from, int tag, trace_word comm, int *flag, void *message, void *status),
            (from, tag, comm, flag, message, status))

TRACE_TIMED(Wait, (void *request, void *status), (request, status))
TRACE_TIMED(Waitall, (int count, void *requests, void *statuses), (count, requests, statuses))
TRACE_TIMED(Waitany, (int count, void *requests, int *index, void *status), (count, requests, index, status))
TRACE_TIMED(Waitsome, (int count, void *requests, int *done, int *indices, void *statuses),
            (count, requests, done, indices, statuses))
TRACE_TIMED(Test, (void *request, int *flag, void *status), (request, flag, status))
TRACE_TIMED(Testall, (int count, void *requests, int *flag, void *statuses), (count, requests, flag, statuses))
TRACE_TIMED(Testany, (int count, void *requests, int *index, int *flag, void *status),
            (count, requests, index, flag, status))
TRACE_TIMED(Testsome, (int count, void *requests, int *done, int *indices, void *statuses),
            (count, requests, done, indices, statuses))

TRACE_TIMED(Barrier, (trace_word comm), (comm))
TRACE_TIMED(Ibarrier, (trace_word comm, void *request), (comm, request))
