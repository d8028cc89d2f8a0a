/* Interposed: what goes from one rank to another, by messages, persistent requests and one-sided
 * communication, and what waits for it. */
#include <pthread.h>
#include <stdlib.h>

#include "preload/trace/trace.h"

/* -- persistent requests that send -- */

struct entry {
    struct entry *next;
    trace_word request;
    int32_t peer;
    uint64_t bytes;
};

/* Enough for lists of a few entries in programs with one request for each neighbour and field. */
#define LISTS 1024u
static struct entry *lists[LISTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry **find(trace_word request)
{
    struct entry **at = &lists[((request * 0x9e3779b97f4a7c15u) >> 40) % LISTS];
    while (*at && (*at)->request != request) {
        at = &(*at)->next;
    }
    return at;
}

static void request_keep(trace_word request, int32_t peer, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    struct entry **at = find(request), *entry = *at;
    if (!entry && (entry = calloc(1, sizeof *entry))) {
        *at = entry;
    }
    if (entry) {
        entry->request = request;
        entry->peer = peer;
        entry->bytes = bytes;
    }
    pthread_mutex_unlock(&lock);
}

static bool request_find(trace_word request, int32_t *peer, uint64_t *bytes)
{
    pthread_mutex_lock(&lock);
    struct entry *entry = *find(request);
    if (entry) {
        *peer = entry->peer;
        *bytes = entry->bytes;
    }
    pthread_mutex_unlock(&lock);
    return entry;
}

static void request_forget(trace_word request)
{
    pthread_mutex_lock(&lock);
    struct entry **at = find(request), *entry = *at;
    if (entry) {
        *at = entry->next;
    }
    pthread_mutex_unlock(&lock);
    free(entry);
}

/* Interposed: one-sided communication. What is fetched counts as sent by the rank that it is
 * fetched from. */

static void put(trace_word window, int peer, int64_t count, trace_word type)
{
    struct trace_group *group = peer < 0 ? NULL : pin_trace_group_of_window(window);
    if (group) {
        pin_trace_count_to(group, peer, pin_trace_bytes(count, type));
    }
}

static void get(trace_word window, int peer, int64_t count, trace_word type)
{
    struct trace_group *group = peer < 0 ? NULL : pin_trace_group_of_window(window);
    if (group) {
        pin_trace_count_from(group, peer, pin_trace_bytes(count, type));
    }
}

static void swap(trace_word window, int peer, trace_word type)
{
    put(window, peer, 1, type);
    get(window, peer, 1, type);
}

/* `more` and `it`: those that end with a request. */
#define MORE_REQUEST , void *request
#define THE_REQUEST , request
#define PUT(name, number, more, it)                                                                \
    TRACE_CALL(name,                                                                               \
               (const void *data, number count, trace_word type, int to, intptr_t at,              \
                number there, trace_word kind, trace_word window more),                            \
               (data, count, type, to, at, there, kind, window it), put(window, to, count, type))
#define GET(name, number, more, it)                                                                \
    TRACE_CALL(name,                                                                               \
               (void *data, number count, trace_word type, int from, intptr_t at, number there,    \
                trace_word kind, trace_word window more),                                          \
               (data, count, type, from, at, there, kind, window it),                              \
               get(window, from, count, type))
#define ACCUMULATE(name, number, more, it)                                                         \
    TRACE_CALL(name,                                                                               \
               (const void *data, number count, trace_word type, int to, intptr_t at,              \
                number there, trace_word kind, trace_word operation, trace_word window more),      \
               (data, count, type, to, at, there, kind, operation, window it),                     \
               put(window, to, count, type))

#define RMA(number, suffix)                                                                        \
    PUT(Put##suffix, number, , )                                                                   \
    PUT(Rput##suffix, number, MORE_REQUEST, THE_REQUEST)                                           \
    GET(Get##suffix, number, , )                                                                   \
    GET(Rget##suffix, number, MORE_REQUEST, THE_REQUEST)                                           \
    ACCUMULATE(Accumulate##suffix, number, , )                                                     \
    ACCUMULATE(Raccumulate##suffix, number, MORE_REQUEST, THE_REQUEST)

RMA(int, )
RMA(int64_t, _c)

TRACE_CALL(Get_accumulate,
           (const void *data, int count, trace_word type, void *result, int result_count,
            trace_word result_type, int peer, intptr_t at, int there, trace_word kind,
            trace_word operation, trace_word window),
           (data, count, type, result, result_count, result_type, peer, at, there, kind, operation,
            window),
           put(window, peer, count, type);
           get(window, peer, result_count, result_type))
TRACE_CALL(Fetch_and_op,
           (const void *data, void *result, trace_word type, int peer, intptr_t at,
            trace_word operation, trace_word window),
           (data, result, type, peer, at, operation, window), swap(window, peer, type))
TRACE_CALL(Compare_and_swap,
           (const void *data, const void *compared, void *result, trace_word type, int peer,
            intptr_t at, trace_word window),
           (data, compared, result, type, peer, at, window), swap(window, peer, type))

TRACE_CALL(Win_free, (void *window), (window), pin_trace_group_forget(trace_handle_at(window, 0)))

TRACE_TIMED(Win_fence, (int assertion, trace_word window), (assertion, window))
TRACE_TIMED(Win_start, (trace_word group, int assertion, trace_word window),
            (group, assertion, window))
TRACE_TIMED(Win_post, (trace_word group, int assertion, trace_word window),
            (group, assertion, window))
TRACE_TIMED(Win_complete, (trace_word window), (window))
TRACE_TIMED(Win_wait, (trace_word window), (window))
TRACE_TIMED(Win_lock, (int kind, int rank, int assertion, trace_word window),
            (kind, rank, assertion, window))
TRACE_TIMED(Win_unlock, (int rank, trace_word window), (rank, window))
TRACE_TIMED(Win_lock_all, (int assertion, trace_word window), (assertion, window))
TRACE_TIMED(Win_unlock_all, (trace_word window), (window))
TRACE_TIMED(Win_flush, (int rank, trace_word window), (rank, window))
TRACE_TIMED(Win_flush_all, (trace_word window), (window))
TRACE_TIMED(Win_flush_local, (int rank, trace_word window), (rank, window))
TRACE_TIMED(Win_flush_local_all, (trace_word window), (window))

/* Interposed: messages from one rank to another, in C and through the Fortran entries that call
 * these.
 *
 * The number of elements is an int, or MPI_Count (64 bits) in the MPI 4 functions whose names end
 * in _c.
 */

static inline void count_message(trace_word comm, int to, int64_t count, trace_word type)
{
    struct trace_group *group = to < 0 ? NULL : pin_trace_group_of_comm(comm);
    if (!group) {
        return;
    }
    pin_trace_count_to(group, to, pin_trace_bytes(count, type));
    if (!pin_trace_timing) {
        pin_trace_recent_set(group, type);
    } else if (to < group->size) {
        pin_trace_time_message(group->world ? group->world[to] : to);
    }
}

/* A plain send goes the short way if it is like the one before it and nothing lies between here and
 * the library, which calls no MPI function itself to send: then it needs no mark that it is
 * counted, and the library returns to the program. Another tool in between may have its MPI_X call
 * PMPI_X, which comes by here again. */
#define SHORT_NAME(name, twin, parameters, arguments)                                              \
    PIN_EXPORT int name parameters;                                                                \
    static int(*short_##name) parameters; /* NULL: not, or not yet */                              \
    __attribute__((noinline)) static int long_##name parameters                                    \
    {                                                                                              \
        static int(*real) parameters;                                                              \
        TRACE_PASS(                                                                                \
            name, arguments, count_message(comm, to, count, type);                                 \
            if (!short_##name && !pin_trace_timing && real == (__typeof__(real))pin_next(#twin))   \
                __atomic_store_n(&short_##name, real, __ATOMIC_RELAXED),                           \
            (void)0);                                                                              \
    }                                                                                              \
    PIN_EXPORT int name parameters                                                                 \
    {                                                                                              \
        __typeof__(short_##name) real = __atomic_load_n(&short_##name, __ATOMIC_RELAXED);          \
        if (__builtin_expect(                                                                      \
                real && !pin_trace_inside && trace_recent_count(comm, to, count, type), 1))        \
            return real arguments;                                                                 \
        return long_##name arguments;                                                              \
    }

#define SHORT(name, parameters, arguments)                                                         \
    SHORT_NAME(MPI_##name, PMPI_##name, parameters, arguments)                                     \
    SHORT_NAME(PMPI_##name, MPI_##name, parameters, arguments)

#define SEND(name, number, more, it)                                                               \
    SHORT(                                                                                         \
        name,                                                                                      \
        (const void *data, number count, trace_word type, int to, int tag, trace_word comm more),  \
        (data, count, type, to, tag, comm it))

#define SENDRECV(name, number)                                                                     \
    TRACE_CALL(                                                                                    \
        name,                                                                                      \
        (const void *out, number out_count, trace_word out_type, int to, int out_tag, void *in,    \
         number in_count, trace_word in_type, int from, int in_tag, trace_word comm, void *end),   \
        (out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, end),   \
        count_message(comm, to, out_count, out_type))

#define SENDRECV_REPLACE(name, number)                                                             \
    TRACE_CALL(name,                                                                               \
               (void *data, number count, trace_word type, int to, int out_tag, int from,          \
                int in_tag, trace_word comm, void *end),                                           \
               (data, count, type, to, out_tag, from, in_tag, comm, end),                          \
               count_message(comm, to, count, type))

/* Kept until the request is freed; counted at every start. */
static void keep(int code, trace_word comm, int to, int64_t count, trace_word type,
                 const void *request)
{
    struct trace_group *group = code != 0 || to < 0 ? NULL : pin_trace_group_of_comm(comm);
    if (group && to < group->size) {
        request_keep(trace_handle_at(request, 0), group->world ? group->world[to] : to,
                     pin_trace_bytes(count, type));
    }
}

#define SEND_INIT(name, number)                                                                    \
    TRACE_BOTH(name,                                                                               \
               (const void *data, number count, trace_word type, int to, int tag, trace_word comm, \
                void *request),                                                                    \
               (data, count, type, to, tag, comm, request), (void)0,                               \
               keep(trace_code_, comm, to, count, type, request))

#define SENDS(number, suffix)                                                                      \
    SEND(Send##suffix, number, , )                                                                 \
    SEND(Bsend##suffix, number, , )                                                                \
    SEND(Ssend##suffix, number, , )                                                                \
    SEND(Rsend##suffix, number, , )                                                                \
    SEND(Isend##suffix, number, MORE_REQUEST, THE_REQUEST)                                         \
    SEND(Ibsend##suffix, number, MORE_REQUEST, THE_REQUEST)                                        \
    SEND(Issend##suffix, number, MORE_REQUEST, THE_REQUEST)                                        \
    SEND(Irsend##suffix, number, MORE_REQUEST, THE_REQUEST)                                        \
    SENDRECV(Sendrecv##suffix, number)                                                             \
    SENDRECV(Isendrecv##suffix, number)                                                            \
    SENDRECV_REPLACE(Sendrecv_replace##suffix, number)                                             \
    SENDRECV_REPLACE(Isendrecv_replace##suffix, number)                                            \
    SEND_INIT(Send_init##suffix, number)                                                           \
    SEND_INIT(Bsend_init##suffix, number)                                                          \
    SEND_INIT(Ssend_init##suffix, number)                                                          \
    SEND_INIT(Rsend_init##suffix, number)

SENDS(int, )
SENDS(int64_t, _c)

static void start(const void *requests, int count)
{
    for (int i = 0; i < count; i++) {
        int32_t peer;
        uint64_t bytes;
        static const struct trace_group world = {.size = INT32_MAX, .me = -1};
        if (!request_find(trace_handle_at(requests, (size_t)i), &peer, &bytes)) {
            continue;
        }
        pin_trace_count_to(&world, peer < 0 ? pin_trace_counts.ranks : peer, bytes);
        if (pin_trace_timing) {
            pin_trace_time_message(peer);
        }
    }
}

TRACE_CALL(Start, (void *request), (request), start(request, 1))
TRACE_CALL(Startall, (int count, void *requests), (count, requests), start(requests, count))
TRACE_CALL(Request_free, (void *request), (request), request_forget(trace_handle_at(request, 0)))

/* Interposed: receiving and waiting. They send nothing; only their time counts. */

#define RECEIVE(name, number)                                                                      \
    TRACE_TIMED(name,                                                                              \
                (void *data, number count, trace_word type, int from, int tag, trace_word comm,    \
                 void *end),                                                                       \
                (data, count, type, from, tag, comm, end))
#define MATCHED(name, number)                                                                      \
    TRACE_TIMED(name, (void *data, number count, trace_word type, void *message, void *end),       \
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
TRACE_TIMED(Iprobe, (int from, int tag, trace_word comm, int *flag, void *status),
            (from, tag, comm, flag, status))
TRACE_TIMED(Mprobe, (int from, int tag, trace_word comm, void *message, void *status),
            (from, tag, comm, message, status))
TRACE_TIMED(Improbe, (int from, int tag, trace_word comm, int *flag, void *message, void *status),
            (from, tag, comm, flag, message, status))

TRACE_TIMED(Wait, (void *request, void *status), (request, status))
TRACE_TIMED(Waitall, (int count, void *requests, void *statuses), (count, requests, statuses))
TRACE_TIMED(Waitany, (int count, void *requests, int *index, void *status),
            (count, requests, index, status))
TRACE_TIMED(Waitsome, (int count, void *requests, int *done, int *indices, void *statuses),
            (count, requests, done, indices, statuses))
TRACE_TIMED(Test, (void *request, int *flag, void *status), (request, flag, status))
TRACE_TIMED(Testall, (int count, void *requests, int *flag, void *statuses),
            (count, requests, flag, statuses))
TRACE_TIMED(Testany, (int count, void *requests, int *index, int *flag, void *status),
            (count, requests, index, flag, status))
TRACE_TIMED(Testsome, (int count, void *requests, int *done, int *indices, void *statuses),
            (count, requests, done, indices, statuses))

TRACE_TIMED(Barrier, (trace_word comm), (comm))
TRACE_TIMED(Ibarrier, (trace_word comm, void *request), (comm, request))
