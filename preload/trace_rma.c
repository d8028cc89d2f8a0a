/* Interposed: one-sided communication. What is fetched counts as sent by the rank that it is fetched from. */
#include "trace.h"

static void put(trace_word window, int peer, int64_t count, trace_word type)
{
    struct trace_group *group = peer < 0 ? NULL : trace_group_of_window(window);
    if (group)
        trace_count_to(group, peer, trace_bytes(count, type));
}

static void get(trace_word window, int peer, int64_t count, trace_word type)
{
    struct trace_group *group = peer < 0 ? NULL : trace_group_of_window(window);
    if (group)
        trace_count_from(group, peer, trace_bytes(count, type));
}

static void swap(trace_word window, int peer, trace_word type)
{
    put(window, peer, 1, type);
    get(window, peer, 1, type);
}

#define PUT(name, number)                                                                                              \
    TRACE_CALL(name,                                                                                                   \
               (const void *data, number count, trace_word type, int to, intptr_t at, number there, trace_word kind,   \
                trace_word window),                                                                                    \
               (data, count, type, to, at, there, kind, window), put(window, to, count, type))
#define RPUT(name, number)                                                                                             \
    TRACE_CALL(name,                                                                                                   \
               (const void *data, number count, trace_word type, int to, intptr_t at, number there, trace_word kind,   \
                trace_word window, void *request),                                                                     \
               (data, count, type, to, at, there, kind, window, request), put(window, to, count, type))
#define GET(name, number)                                                                                              \
    TRACE_CALL(name,                                                                                                   \
               (void *data, number count, trace_word type, int from, intptr_t at, number there, trace_word kind,       \
                trace_word window),                                                                                    \
               (data, count, type, from, at, there, kind, window), get(window, from, count, type))
#define RGET(name, number)                                                                                             \
    TRACE_CALL(name,                                                                                                   \
               (void *data, number count, trace_word type, int from, intptr_t at, number there, trace_word kind,       \
                trace_word window, void *request),                                                                     \
               (data, count, type, from, at, there, kind, window, request), get(window, from, count, type))
#define ACCUMULATE(name, number)                                                                                       \
    TRACE_CALL(name,                                                                                                   \
               (const void *data, number count, trace_word type, int to, intptr_t at, number there, trace_word kind,   \
                trace_word operation, trace_word window),                                                              \
               (data, count, type, to, at, there, kind, operation, window), put(window, to, count, type))
#define RACCUMULATE(name, number)                                                                                      \
    TRACE_CALL(name,                                                                                                   \
               (const void *data, number count, trace_word type, int to, intptr_t at, number there, trace_word kind,   \
                trace_word operation, trace_word window, void *request),                                               \
               (data, count, type, to, at, there, kind, operation, window, request), put(window, to, count, type))

#define RMA(number, suffix)                                                                                            \
    PUT(Put##suffix, number)                                                                                           \
    RPUT(Rput##suffix, number)                                                                                         \
    GET(Get##suffix, number)                                                                                           \
    RGET(Rget##suffix, number)                                                                                         \
    ACCUMULATE(Accumulate##suffix, number)                                                                             \
    RACCUMULATE(Raccumulate##suffix, number)

RMA(int, )
RMA(int64_t, _c)

TRACE_CALL(Get_accumulate,
           (const void *data, int count, trace_word type, void *result, int result_count, trace_word result_type,
            int peer, intptr_t at, int there, trace_word kind, trace_word operation, trace_word window),
           (data, count, type, result, result_count, result_type, peer, at, there, kind, operation, window),
           put(window, peer, count, type);
           get(window, peer, result_count, result_type))
TRACE_CALL(Fetch_and_op,
           (const void *data, void *result, trace_word type, int peer, intptr_t at, trace_word operation,
            trace_word window),
           (data, result, type, peer, at, operation, window), swap(window, peer, type))
TRACE_CALL(Compare_and_swap,
           (const void *data, const void *compared, void *result, trace_word type, int peer, intptr_t at,
            trace_word window),
           (data, compared, result, type, peer, at, window), swap(window, peer, type))

TRACE_CALL(Win_free, (void *window), (window), trace_group_forget(trace_handle_at(window, 0)))

TRACE_TIMED(Win_fence, (int assertion, trace_word window), (assertion, window))
TRACE_TIMED(Win_start, (trace_word group, int assertion, trace_word window), (group, assertion, window))
TRACE_TIMED(Win_post, (trace_word group, int assertion, trace_word window), (group, assertion, window))
TRACE_TIMED(Win_complete, (trace_word window), (window))
TRACE_TIMED(Win_wait, (trace_word window), (window))
TRACE_TIMED(Win_lock, (int kind, int rank, int assertion, trace_word window), (kind, rank, assertion, window))
TRACE_TIMED(Win_unlock, (int rank, trace_word window), (rank, window))
TRACE_TIMED(Win_lock_all, (int assertion, trace_word window), (assertion, window))
TRACE_TIMED(Win_unlock_all, (trace_word window), (window))
TRACE_TIMED(Win_flush, (int rank, trace_word window), (rank, window))
TRACE_TIMED(Win_flush_all, (trace_word window), (window))
TRACE_TIMED(Win_flush_local, (int rank, trace_word window), (rank, window))
TRACE_TIMED(Win_flush_local_all, (trace_word window), (window))
