/* Bytes and messages that this rank has sent to each other, and its communicators and windows. */
#include "preload/trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* -- what was sent -- */

struct trace_counts pin_trace_counts;

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
static inline void add_count(uint64_t *counter, uint64_t more)
{
    if (pin_trace_counts.multiple) {
        __atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
    } else {
        __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + more,
                         __ATOMIC_RELAXED);
    }
}

void pin_trace_count(struct trace_peer *peer, uint64_t bytes)
{
    add_count(&peer->bytes, bytes);
    add_count(&peer->messages, 1);
}

/* A type whose size the library does not tell counts nothing. */
uint64_t pin_trace_bytes(int64_t count, trace_word passed)
{
    const trace_word type = trace_handle(passed);
    int64_t size = 0;
    return count > 0 && pin_trace_mpi.type_size_x(type, &size) == 0 && size > 0
               ? (uint64_t)count * (uint64_t)size
               : 0;
}

/* -- counting -- */

static inline int32_t world_rank(const struct trace_group *group, int32_t peer)
{
    int32_t rank = group->world ? group->world[peer] : peer;
    return rank < 0 ? pin_trace_counts.ranks : rank;
}

/* A peer below 0 is MPI_PROC_NULL; one above the size is an error that the library will report. */
void pin_trace_count_to(const struct trace_group *group, int32_t peer, uint64_t bytes)
{
    if (peer < 0 || peer >= group->size) {
        return;
    }
    pin_trace_count(&pin_trace_counts.sent[world_rank(group, peer)], bytes);
    if (bytes > __atomic_load_n(&pin_trace_counts.largest, __ATOMIC_RELAXED)) {
        __atomic_store_n(&pin_trace_counts.largest, bytes, __ATOMIC_RELAXED);
    }
}

void pin_trace_count_from(const struct trace_group *group, int32_t peer, uint64_t bytes)
{
    if (peer >= 0 && peer < group->size) {
        pin_trace_count(&pin_trace_counts.got[world_rank(group, peer)], bytes);
    }
}

/* Once for each group. */
static void spread(struct trace_group *group)
{
    uint64_t size = (uint64_t)group->size;
    uint64_t bytes = group->each.bytes + (2 * group->reduced.bytes + size / 2) / size;
    uint64_t messages = group->each.messages + group->reduced.messages;
    for (int32_t peer = 0; messages > 0 && peer < group->size; peer++) {
        if (peer == group->me) {
            continue;
        }
        struct trace_peer *to = &pin_trace_counts.sent[world_rank(group, peer)];
        add_count(&to->bytes, bytes);
        add_count(&to->messages, messages);
    }
    group->each = group->reduced = (struct trace_peer){0};
}

/* -- communicators and windows, by handle -- */

/* Enough for lists of a few entries: MPICH has 2,048 contexts. */
#define LISTS 1024u
static struct trace_group *lists[LISTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned freed; /* how many have been */

/* Most calls are on the communicator of the call before. */
static __thread struct {
    struct trace_group *group;
    trace_word handle;
    unsigned freed; /* then: what was found before may be gone */
} last __attribute__((tls_model("initial-exec")));

/* Where the group is in its list, or would be. */
static struct trace_group **find_group(trace_word handle)
{
    struct trace_group **at = &lists[trace_slot(handle) % LISTS];
    while (*at && (*at)->handle != handle) {
        at = &(*at)->next;
    }
    return at;
}

/* -- asking the library -- */

static bool translate(trace_word ranks, struct trace_group *out)
{
    trace_word world;
    int *numbers = malloc((size_t)out->size * sizeof *numbers);
    out->world = malloc((size_t)out->size * sizeof *out->world); /* MPI_UNDEFINED is below 0 */
    bool found =
        numbers && out->world && pin_trace_mpi.comm_group(pin_trace_mpi.comm_world, &world) == 0;
    for (int i = 0; found && i < out->size; i++) {
        numbers[i] = i;
    }
    if (found) {
        found =
            pin_trace_mpi.group_translate_ranks(ranks, out->size, numbers, world, out->world) == 0;
        pin_trace_mpi.group_free(&world);
    }
    free(numbers);
    return found;
}

static bool ask_ranks(trace_word handle, bool window, trace_word *ranks, bool *inter)
{
    int is_inter = 0;
    if (window) {
        return pin_trace_mpi.win_get_group(handle, ranks) == 0;
    }
    if (pin_trace_mpi.comm_test_inter(handle, &is_inter) != 0) {
        return false;
    }
    *inter = is_inter;
    return (is_inter ? pin_trace_mpi.comm_remote_group : pin_trace_mpi.comm_group)(handle, ranks) ==
           0;
}

static bool resolve(bool window, struct trace_group *out)
{
    trace_word ranks = 0;
    if (!ask_ranks(out->handle, window, &ranks, &out->inter)) {
        return false;
    }
    const bool found = pin_trace_mpi.group_size(ranks, &out->size) == 0 &&
                       pin_trace_mpi.group_rank(ranks, &out->me) == 0 && out->size > 0 &&
                       translate(ranks, out);
    out->me = out->me >= 0 ? out->me : -1;
    pin_trace_mpi.group_free(&ranks);
    return found;
}

/* -- keeping -- */

static struct trace_group *make_group(trace_word handle, bool window)
{
    struct trace_group *group = handle ? calloc(1, sizeof *group) : NULL;
    if (group) {
        *group = (struct trace_group){.handle = handle, .me = -1, .neighbour_count = -1};
        if (resolve(window, group)) {
            return group;
        }
        free(group->world);
        free(group);
    }
    pin_trace_counts.lost += handle != 0;
    return NULL;
}

struct trace_group *pin_trace_group_of(trace_word passed, bool window)
{
    const trace_word handle = trace_handle(passed);
    if (last.group && last.handle == handle &&
        last.freed == __atomic_load_n(&freed, __ATOMIC_ACQUIRE)) {
        return last.group;
    }
    pin_order_lock(HOLDS_GROUPS, &lock);
    struct trace_group **at = find_group(handle);
    if (!*at) {
        *at = make_group(handle, window);
    }
    last.group = *at;
    last.handle = handle;
    last.freed = freed;
    pin_order_unlock(HOLDS_GROUPS, &lock);
    return last.group;
}

void pin_trace_group_forget(trace_word passed)
{
    pin_order_lock(HOLDS_GROUPS, &lock);
    struct trace_group **at = find_group(trace_handle(passed)), *group = *at;
    if (group) {
        spread(group);
        *at = group->next;
        __atomic_store_n(&freed, freed + 1, __ATOMIC_RELEASE);
        free(group->world);
        free(group->neighbours);
        free(group);
    }
    pin_order_unlock(HOLDS_GROUPS, &lock);
}

void pin_trace_groups_spread(void)
{
    pin_order_lock(HOLDS_GROUPS, &lock);
    for (uint32_t i = 0; i < LISTS; i++) {
        for (struct trace_group *group = lists[i]; group; group = group->next) {
            spread(group);
        }
    }
    pin_order_unlock(HOLDS_GROUPS, &lock);
}

/* -- neighbours -- */

/* In each dimension the one below, then the one above (MPI 4.0, section 8.6). */
static int cart_neighbours(struct trace_group *group)
{
    int dimensions = 0;
    if (pin_trace_mpi.cartdim_get(group->handle, &dimensions) != 0) {
        return 0;
    }
    group->neighbours = calloc(2 * (size_t)dimensions + 1, sizeof *group->neighbours);
    for (int i = 0; group->neighbours && i < dimensions; i++) {
        pin_trace_mpi.cart_shift(group->handle, i, 1, &group->neighbours[2 * i],
                                 &group->neighbours[2 * i + 1]);
    }
    return group->neighbours ? 2 * dimensions : 0;
}

static int graph_neighbours(struct trace_group *group)
{
    int count = 0;
    if (pin_trace_mpi.graph_neighbors_count(group->handle, group->me, &count) != 0) {
        return 0;
    }
    group->neighbours = calloc((size_t)count + 1, sizeof *group->neighbours);
    if (!group->neighbours ||
        pin_trace_mpi.graph_neighbors(group->handle, group->me, count, group->neighbours) != 0) {
        return 0;
    }
    return count;
}

static int dist_graph_neighbours(struct trace_group *group)
{
    int in = 0, out = 0, weighted = 0;
    if (pin_trace_mpi.dist_graph_neighbors_count(group->handle, &in, &out, &weighted) != 0) {
        return 0;
    }
    group->neighbours = calloc((size_t)out + 1, sizeof *group->neighbours);
    int *rest = calloc(2 * (size_t)in + (size_t)out + 1, sizeof *rest);
    bool found = group->neighbours && rest &&
                 pin_trace_mpi.dist_graph_neighbors(group->handle, in, rest, rest + in, out,
                                                    group->neighbours, rest + 2 * in) == 0;
    free(rest);
    return found ? out : 0;
}

void pin_trace_group_find_neighbours(struct trace_group *group)
{
    int kind = 0, count = 0;
    pin_order_lock(HOLDS_GROUPS, &lock);
    if (group->neighbour_count < 0) {
        if (pin_trace_mpi.topo_test(group->handle, &kind) != 0 || kind <= 0) {
            count = 0;
        } else if (kind == pin_trace_mpi.cart) {
            count = cart_neighbours(group);
        } else {
            count = kind == pin_trace_mpi.graph ? graph_neighbours(group)
                                                : dist_graph_neighbours(group);
        }
        __atomic_store_n(&group->neighbour_count, count, __ATOMIC_RELEASE);
    }
    pin_order_unlock(HOLDS_GROUPS, &lock);
}
