/* Interposed: the calls of table.h. One function interprets the row of a call that sends; trace.h
 * says how each of them counts.
 *
 * Arguments pass as words of the size of a pointer, numbers and pointers as handles do (trace.h).
 * Programs of 32 bits have no tracer. */
#include <pthread.h>
#include <stdlib.h>

#include "preload/trace/table.h"
#include "preload/trace/trace.h"

_Static_assert(sizeof(trace_word) == sizeof(int64_t), "MPI_Count takes one argument");

enum direction {
    TO_PEER,
    TO_WINDOW,   /* to the peer in the window's group */
    FROM_WINDOW, /* fetched: counts as sent by the peer */
    BOTH_WAYS,
    FROM_ROOT, /* to each other rank */
    TO_ROOT,
    TO_EACH, /* from each rank to each other one */
    REDUCED,
    TO_NEXT,
    TO_NEIGHBOURS,
    KEPT,          /* TO_PEER, but later */
    STARTED,       /* persistent requests */
    REQUEST_FREED, /* `where` points to the handle */
    GROUP_FREED,   /* likewise, of a communicator or window */
    NOTHING,
};

enum form {
    ONE,        /* the same number of elements for all */
    MANY,       /* an array: a number for each of them */
    MANY_TYPES, /* and an array of types */
    OWN,        /* one to send; of the array in the receive buffer's place, the own */
};

enum { NO = UINT8_MAX };

struct call {
    enum direction direction;
    enum form form;
    uint8_t count, type, peer, where, in_count, in_type;
    bool large; /* numbers are MPI_Count */
};

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

static struct entry **find_request(trace_word request)
{
    struct entry **at = &lists[trace_slot(request) % LISTS];
    while (*at && (*at)->request != request) {
        at = &(*at)->next;
    }
    return at;
}

static void request_forget(trace_word request)
{
    pin_order_lock(HOLDS_REQUESTS, &lock);
    struct entry **at = find_request(request), *entry = *at;
    if (entry) {
        *at = entry->next;
    }
    pin_order_unlock(HOLDS_REQUESTS, &lock);
    free(entry);
}

static void request_start(trace_word request)
{
    static const struct trace_group world = {.size = INT32_MAX, .me = -1};
    pin_order_lock(HOLDS_REQUESTS, &lock);
    const struct entry *entry = *find_request(request);
    if (entry) {
        pin_trace_count_to(&world, entry->peer < 0 ? pin_trace_counts.ranks : entry->peer,
                           entry->bytes);
        if (pin_trace_timing) {
            pin_trace_time_message(entry->peer);
        }
    }
    pin_order_unlock(HOLDS_REQUESTS, &lock);
}

/* -- counting by the row -- */

/* Element `i` of an argument that is a number (one for all) or an array of them. */
static int64_t number_at(const struct call *call, trace_word word, size_t i, bool array)
{
    if (array) {
        return call->large ? ((const int64_t *)word)[i] : ((const int *)word)[i];
    }
    return call->large ? (int64_t)word : (int)word;
}

static uint64_t bytes_at(const struct call *call, const trace_word *words, size_t i, uint8_t count,
                         uint8_t type)
{
    bool array = call->form == MANY || call->form == MANY_TYPES ||
                 (call->form == OWN && count == call->in_count);
    return pin_trace_bytes(count == NO ? 1 : number_at(call, words[count], i, array),
                           call->form == MANY_TYPES ? trace_handle_at((const void *)words[type], i)
                                                    : words[type]);
}

/* The share of rank or neighbour `i`. */
static uint64_t bytes_for(const struct call *call, const trace_word *words, int32_t i)
{
    bool in_place = call->in_count != NO && words[0] == (trace_word)pin_trace_mpi.in_place;
    return bytes_at(call, words, (size_t)i, in_place ? call->in_count : call->count,
                    in_place ? call->in_type : call->type);
}

static void count_message(const struct call *call, const trace_word *words)
{
    int to = (int)words[call->peer];
    struct trace_group *group = to < 0 ? NULL : pin_trace_group_of(words[call->where], false);
    if (!group) {
        return;
    }
    pin_trace_count_to(group, to, bytes_for(call, words, 0));
    if (pin_trace_timing && to < group->size) {
        pin_trace_time_message(group->world ? group->world[to] : to);
    }
}

static void count_one_sided(const struct call *call, const trace_word *words)
{
    int peer = (int)words[call->peer];
    struct trace_group *group = peer < 0 ? NULL : pin_trace_group_of(words[call->where], true);
    if (!group) {
        return;
    }
    const uint64_t bytes = bytes_at(call, words, 0, call->count, call->type);
    if (call->direction == FROM_WINDOW) {
        pin_trace_count_from(group, peer, bytes);
    } else {
        pin_trace_count_to(group, peer, bytes);
    }
    if (call->direction == BOTH_WAYS) {
        pin_trace_count_from(group, peer, bytes_at(call, words, 0, call->in_count, call->in_type));
    }
}

static void count_to_each(const struct call *call, const trace_word *words,
                          struct trace_group *group)
{
    if (call->form == ONE || call->form == OWN) {
        pin_trace_count(&group->each, bytes_for(call, words, group->me > 0 ? group->me : 0));
        return;
    }
    for (int32_t peer = 0; peer < group->size; peer++) {
        if (peer != group->me) {
            pin_trace_count_to(group, peer, bytes_for(call, words, peer));
        }
    }
}

static void count_to_neighbours(const struct call *call, const trace_word *words,
                                struct trace_group *group)
{
    if (__atomic_load_n(&group->neighbour_count, __ATOMIC_ACQUIRE) < 0) {
        pin_trace_group_find_neighbours(group);
    }
    for (int32_t i = 0; i < group->neighbour_count; i++) {
        pin_trace_count_to(group, group->neighbours[i], bytes_for(call, words, i));
    }
}

static void count_collective(const struct call *call, const trace_word *words)
{
    struct trace_group *group = pin_trace_group_of(words[call->where], false);
    int root = call->peer == NO ? 0 : (int)words[call->peer];
    if (!group) {
        return;
    }
    switch (call->direction) {
    case FROM_ROOT:
        if (root == (group->inter ? pin_trace_mpi.root : group->me)) {
            count_to_each(call, words, group);
        }
        break;
    case TO_ROOT: /* which is below 0 on the root's side of an intercommunicator */
        if (root != group->me) {
            pin_trace_count_to(group, root, bytes_for(call, words, 0));
        }
        break;
    case REDUCED:
        pin_trace_count(&group->reduced, bytes_for(call, words, 0));
        break;
    case TO_NEXT:
        pin_trace_count_to(group, group->me + 1, bytes_for(call, words, 0));
        break;
    case TO_NEIGHBOURS:
        count_to_neighbours(call, words, group);
        break;
    default:
        count_to_each(call, words, group);
    }
}

static void count_call(const struct call *call, const trace_word *words)
{
    const void *handles = (const void *)words[call->where];
    switch (call->direction) {
    case TO_PEER:
        count_message(call, words);
        break;
    case TO_WINDOW:
    case FROM_WINDOW:
    case BOTH_WAYS:
        count_one_sided(call, words);
        break;
    case KEPT:
        break;
    case STARTED:
        for (int i = 0; i < (call->count == NO ? 1 : (int)words[call->count]); i++) {
            request_start(trace_handle_at(handles, (size_t)i));
        }
        break;
    case REQUEST_FREED:
        request_forget(trace_handle_at(handles, 0));
        break;
    case GROUP_FREED:
        pin_trace_group_forget(trace_handle_at(handles, 0));
        break;
    default:
        count_collective(call, words);
    }
}

/* After the call that made a persistent request, its last argument. */
static void keep_request(const struct call *call, const trace_word *words, trace_word request)
{
    int to = (int)words[call->peer];
    const struct trace_group *group = to < 0 ? NULL : pin_trace_group_of(words[call->where], false);
    if (!group || to >= group->size) {
        return;
    }
    const struct entry kept = {.request = trace_handle_at((const void *)request, 0),
                               .peer = group->world ? group->world[to] : to,
                               .bytes = bytes_for(call, words, 0)};
    pin_order_lock(HOLDS_REQUESTS, &lock);
    struct entry **at = find_request(kept.request), *next = *at ? (*at)->next : NULL;
    if (*at || (*at = calloc(1, sizeof **at))) {
        **at = kept;
        (*at)->next = next;
    }
    pin_order_unlock(HOLDS_REQUESTS, &lock);
}

/* -- the functions -- */

/* False: the call is passed on as it is, without leave_call(). */
static inline bool enter_call(void)
{
    int state = __atomic_load_n(&pin_trace_state, __ATOMIC_RELAXED);
    if (pin_trace_inside || (state != TRACE_ON && (state == TRACE_OFF || !pin_trace_begin()))) {
        return false;
    }
    pin_trace_inside = true;
    if (pin_trace_timing) {
        pin_trace_time_enter();
    }
    return true;
}

static inline void leave_call(void)
{
    if (pin_trace_timing) {
        pin_trace_time_leave();
    }
    pin_trace_inside = false;
}

#define W1 trace_word a0
#define W2 W1, trace_word a1
#define W3 W2, trace_word a2
#define W4 W3, trace_word a3
#define W5 W4, trace_word a4
#define W6 W5, trace_word a5
#define W7 W6, trace_word a6
#define W8 W7, trace_word a7
#define W9 W8, trace_word a8
#define W10 W9, trace_word a9
#define W12 W10, trace_word a10, trace_word a11
#define W13 W12, trace_word a12
#define A1 a0
#define A2 A1, a1
#define A3 A2, a2
#define A4 A3, a3
#define A5 A4, a4
#define A6 A5, a5
#define A7 A6, a6
#define A8 A7, a7
#define A9 A8, a8
#define A10 A9, a9
#define A12 A10, a10, a11
#define A13 A12, a12

/* Passes the call on, and counts it by its row. One that sends nothing is only timed. */
#define NAME(name, n, ...)                                                                         \
    PIN_EXPORT int name(W##n);                                                                     \
    PIN_EXPORT int name(W##n)                                                                      \
    {                                                                                              \
        static const struct call call_ = {__VA_ARGS__};                                            \
        static int (*found)(W##n);                                                                 \
        int (*real)(W##n) = PIN_ONCE(found, pin_next(#name));                                      \
        if (!real)                                                                                 \
            return TRACE_NO_MPI;                                                                   \
        if ((call_.direction == NOTHING && !pin_trace_timing) || !enter_call())                    \
            return real(A##n);                                                                     \
        const trace_word words_[] = {A##n};                                                        \
        if (call_.direction != NOTHING)                                                            \
            count_call(&call_, words_);                                                            \
        int code_ = real(A##n);                                                                    \
        if (call_.direction == KEPT && code_ == 0)                                                 \
            keep_request(&call_, words_, words_[n - 1]);                                           \
        leave_call();                                                                              \
        return code_;                                                                              \
    }

#define TWO_NAMES(name, n, ...)                                                                    \
    NAME(MPI_##name, n, __VA_ARGS__)                                                               \
    NAME(PMPI_##name, n, __VA_ARGS__)
#define SINGLE(name, n, ...) TWO_NAMES(name, n, __VA_ARGS__, false)
#define BOTH_SIZES(name, n, ...)                                                                   \
    SINGLE(name, n, __VA_ARGS__)                                                                   \
    TWO_NAMES(name##_c, n, __VA_ARGS__, true)
#define COUNTED(name, second, n, m, ...)                                                           \
    BOTH_SIZES(name, n, __VA_ARGS__) BOTH_SIZES(second, m, __VA_ARGS__)
#define TIMED(name, second, n, m)                                                                  \
    TWO_NAMES(name, n, .direction = NOTHING)                                                       \
    TWO_NAMES(second, m, .direction = NOTHING)

TRACE_COUNTED(COUNTED)
TRACE_SINGLE(SINGLE)
TRACE_TIMED(TIMED)
