/* Interposed: messages from one rank to another, in C and through the Fortran entries that call these.
 *
 * The number of elements is an int, or MPI_Count (64 bits) in the MPI 4 functions whose names end in _c.
 */
#include "trace.h"
#include "trace_requests.h"

static inline void count_message(trace_word comm, int to, int64_t count, trace_word type)
{
    struct trace_group *group = to < 0 ? NULL : trace_group_of_comm(comm);
    if (!group)
        return;
    trace_count_to(group, to, trace_bytes(count, type));
    if (!trace_timing)
        trace_recent_set(group, type);
    else if (to < group->size)
        trace_time_message(group->world ? group->world[to] : to);
}

/* A plain send goes the short way if it is like the one before it and nothing lies between here and the library, which
 * calls no MPI function itself to send: then it needs no mark that it is counted, and the library returns to the
 * program. Another tool in between may have its MPI_X call PMPI_X, which comes by here again. */
#define SHORT_NAME(name, twin, parameters, arguments)                                                                  \
    PIN_EXPORT int name parameters;                                                                                    \
    static int(*short_##name) parameters; /* NULL: not, or not yet */                                                  \
    __attribute__((noinline)) static int long_##name parameters                                                        \
    {                                                                                                                  \
        static int(*real) parameters;                                                                                  \
        if (!TRACE_REAL(real, #name))                                                                                  \
            return TRACE_NO_MPI;                                                                                       \
        if (!trace_enter())                                                                                            \
            return real arguments;                                                                                     \
        count_message(comm, to, count, type);                                                                          \
        if (!short_##name && !trace_timing && real == (__typeof__(real))pin_next(#twin))                               \
            __atomic_store_n(&short_##name, real, __ATOMIC_RELAXED);                                                   \
        int trace_code_ = real arguments;                                                                              \
        trace_leave();                                                                                                 \
        return trace_code_;                                                                                            \
    }                                                                                                                  \
    PIN_EXPORT int name parameters                                                                                     \
    {                                                                                                                  \
        __typeof__(short_##name) real = __atomic_load_n(&short_##name, __ATOMIC_RELAXED);                              \
        if (__builtin_expect(real && !trace_inside && trace_recent_count(comm, to, count, type), 1))                   \
            return real arguments;                                                                                     \
        return long_##name arguments;                                                                                  \
    }

#define SHORT(name, parameters, arguments)                                                                             \
    SHORT_NAME(MPI_##name, PMPI_##name, parameters, arguments)                                                         \
    SHORT_NAME(PMPI_##name, MPI_##name, parameters, arguments)

#define SEND(name, number)                                                                                             \
    SHORT(name, (const void *data, number count, trace_word type, int to, int tag, trace_word comm),                   \
          (data, count, type, to, tag, comm))

#define ISEND(name, number)                                                                                            \
    SHORT(name, (const void *data, number count, trace_word type, int to, int tag, trace_word comm, void *request),    \
          (data, count, type, to, tag, comm, request))

#define SENDRECV(name, number)                                                                                         \
    TRACE_CALL(name,                                                                                                   \
               (const void *out, number out_count, trace_word out_type, int to, int out_tag, void *in,                 \
                number in_count, trace_word in_type, int from, int in_tag, trace_word comm, void *end),                \
               (out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, end),                \
               count_message(comm, to, out_count, out_type))

#define SENDRECV_REPLACE(name, number)                                                                                 \
    TRACE_CALL(name,                                                                                                   \
               (void *data, number count, trace_word type, int to, int out_tag, int from, int in_tag, trace_word comm, \
                void *end),                                                                                            \
               (data, count, type, to, out_tag, from, in_tag, comm, end), count_message(comm, to, count, type))

/* Kept until the request is freed; counted at every start. */
static void keep(int code, trace_word comm, int to, int64_t count, trace_word type, const void *request)
{
    struct trace_group *group = code != 0 || to < 0 ? NULL : trace_group_of_comm(comm);
    if (group && to < group->size)
        trace_request_keep(trace_handle_at(request, 0), group->world ? group->world[to] : to, trace_bytes(count, type));
}

#define SEND_INIT(name, number)                                                                                        \
    TRACE_BOTH(                                                                                                        \
        name, (const void *data, number count, trace_word type, int to, int tag, trace_word comm, void *request),      \
        (data, count, type, to, tag, comm, request), (void)0, keep(trace_code_, comm, to, count, type, request))

#define SENDS(number, suffix)                                                                                          \
    SEND(Send##suffix, number)                                                                                         \
    SEND(Bsend##suffix, number)                                                                                        \
    SEND(Ssend##suffix, number)                                                                                        \
    SEND(Rsend##suffix, number)                                                                                        \
    ISEND(Isend##suffix, number)                                                                                       \
    ISEND(Ibsend##suffix, number)                                                                                      \
    ISEND(Issend##suffix, number)                                                                                      \
    ISEND(Irsend##suffix, number)                                                                                      \
    SENDRECV(Sendrecv##suffix, number)                                                                                 \
    SENDRECV(Isendrecv##suffix, number)                                                                                \
    SENDRECV_REPLACE(Sendrecv_replace##suffix, number)                                                                 \
    SENDRECV_REPLACE(Isendrecv_replace##suffix, number)                                                                \
    SEND_INIT(Send_init##suffix, number)                                                                               \
    SEND_INIT(Bsend_init##suffix, number)                                                                              \
    SEND_INIT(Ssend_init##suffix, number)                                                                              \
    SEND_INIT(Rsend_init##suffix, number)

SENDS(int, )
SENDS(int64_t, _c)

static void start(const void *requests, int count)
{
    for (int i = 0; i < count; i++) {
        int32_t peer;
        uint64_t bytes;
        static const struct trace_group world = {.size = INT32_MAX, .me = -1};
        if (!trace_request_find(trace_handle_at(requests, (size_t)i), &peer, &bytes))
            continue;
        trace_count_to(&world, peer < 0 ? trace_counts.ranks : peer, bytes);
        if (trace_timing)
            trace_time_message(peer);
    }
}

TRACE_CALL(Start, (void *request), (request), start(request, 1))
TRACE_CALL(Startall, (int count, void *requests), (count, requests), start(requests, count))
TRACE_CALL(Request_free, (void *request), (request), trace_request_forget(trace_handle_at(request, 0)))
