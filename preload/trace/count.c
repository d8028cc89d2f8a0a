/* What this rank has sent to whom. */
#include "preload/trace/trace.h"

#include <errno.h>
#include <stdlib.h>

struct trace_counts pin_trace_counts;
struct trace_recent pin_trace_recent;

int pin_trace_count_begin(int32_t rank, int32_t ranks, bool multiple)
{
    pin_trace_counts.sent = calloc((size_t)ranks + 1, sizeof *pin_trace_counts.sent);
    pin_trace_counts.got = calloc((size_t)ranks + 1, sizeof *pin_trace_counts.got);
    if (!pin_trace_counts.sent || !pin_trace_counts.got) {
        return -ENOMEM;
    }
    pin_trace_counts.rank = rank;
    pin_trace_counts.ranks = ranks;
    pin_trace_counts.multiple = multiple;
    return 0;
}

/* A locked addition costs as much as a tenth of a message; it is needed only where MPI itself has
 * to lock. */
static inline void add(uint64_t *counter, uint64_t more)
{
    if (pin_trace_counts.multiple) {
        __atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
    } else {
        __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + more,
                         __ATOMIC_RELAXED);
    }
}

static inline void add_message(struct trace_peer *peer, uint64_t bytes)
{
    add(&peer->bytes, bytes);
    add(&peer->messages, 1);
}

/* -- sizes -- */

/* Sizes of the predefined types, which no program can free: an entry is made once and stays. */
#define TYPE_SLOTS 256u
static struct {
    trace_word type;
    uint64_t size;
} types[TYPE_SLOTS];

static uint32_t slot_of_type(trace_word type)
{
    return (uint32_t)((type >> 4) ^ (type >> 12) ^ type) % TYPE_SLOTS;
}

static bool is_predefined(trace_word type)
{
    int integers, addresses, inner, combiner;
    return pin_trace_mpi.type_get_envelope(type, &integers, &addresses, &inner, &combiner) == 0 &&
           integers == 0 && addresses == 0 && inner == 0;
}

static void remember(trace_word type, uint64_t size)
{
    static int busy;
    uint32_t slot = slot_of_type(type);
    if (__atomic_load_n(&types[slot].type, __ATOMIC_RELAXED) || !is_predefined(type) ||
        __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) {
        return;
    }
    if (!types[slot].type) {
        types[slot].size = size;
        __atomic_store_n(&types[slot].type, type, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

/* Kept apart: inlined, it would make every counted message save registers for it. */
__attribute__((noinline, cold)) static uint64_t ask_size(trace_word type)
{
    int64_t large = 0;
    int size = 0;
    int code = pin_trace_mpi.type_size_x ? pin_trace_mpi.type_size_x(type, &large)
                                         : pin_trace_mpi.type_size(type, &size);
    large = pin_trace_mpi.type_size_x ? large : size;
    if (code != 0 || large < 0) {
        return 0;
    }
    remember(type, (uint64_t)large);
    return (uint64_t)large;
}

uint64_t pin_trace_bytes(int64_t count, trace_word passed)
{
    trace_word type = trace_handle(passed);
    uint32_t slot = slot_of_type(type);
    if (count <= 0) {
        return 0;
    }
    if (__atomic_load_n(&types[slot].type, __ATOMIC_ACQUIRE) == type) {
        return (uint64_t)count * types[slot].size;
    }
    return (uint64_t)count * ask_size(type);
}

void pin_trace_recent_set(const struct trace_group *group, trace_word passed)
{
    trace_word type = trace_handle(passed);
    uint32_t slot = slot_of_type(type);
    if (pin_trace_counts.multiple || !group->world || types[slot].type != type) {
        return;
    }
    pin_trace_recent = (struct trace_recent){.comm = group->handle,
                                             .type = type,
                                             .mask = pin_trace_mpi.wide ? UINTPTR_MAX : UINT32_MAX,
                                             .size = (uint32_t)group->size,
                                             .type_size = types[slot].size,
                                             .world = group->world};
}

/* -- counting -- */

static inline int32_t world_rank(const struct trace_group *group, int32_t peer)
{
    int32_t rank = group->world ? group->world[peer] : peer;
    return rank < 0 ? pin_trace_counts.ranks : rank;
}

static inline void note_largest(uint64_t bytes)
{
    if (bytes > __atomic_load_n(&pin_trace_counts.largest, __ATOMIC_RELAXED)) {
        __atomic_store_n(&pin_trace_counts.largest, bytes, __ATOMIC_RELAXED);
    }
}

/* A peer below 0 is MPI_PROC_NULL; one above the size is an error that the library will report. */
void pin_trace_count_to(const struct trace_group *group, int32_t peer, uint64_t bytes)
{
    if (peer < 0 || peer >= group->size) {
        return;
    }
    add_message(&pin_trace_counts.sent[world_rank(group, peer)], bytes);
    note_largest(bytes);
}

void pin_trace_count_from(const struct trace_group *group, int32_t peer, uint64_t bytes)
{
    if (peer >= 0 && peer < group->size) {
        add_message(&pin_trace_counts.got[world_rank(group, peer)], bytes);
    }
}

void pin_trace_count_each(struct trace_group *group, uint64_t bytes)
{
    add_message(&group->each, bytes);
}

void pin_trace_count_reduced(struct trace_group *group, uint64_t bytes)
{
    add_message(&group->reduced, bytes);
}

void pin_trace_count_spread(struct trace_group *group)
{
    uint64_t size = (uint64_t)group->size;
    uint64_t bytes = group->each.bytes + (2 * group->reduced.bytes + size / 2) / size;
    uint64_t messages = group->each.messages + group->reduced.messages;
    for (int32_t peer = 0; messages > 0 && peer < group->size; peer++) {
        if (peer == group->me) {
            continue;
        }
        struct trace_peer *to = &pin_trace_counts.sent[world_rank(group, peer)];
        add(&to->bytes, bytes);
        add(&to->messages, messages);
    }
    group->each = group->reduced = (struct trace_peer){0};
}
