/* Interposed: collective operations, blocking and not. trace.h says what each of them
 * counts. */
#include "preload/trace/trace.h"

/* Numbers of elements, one for each rank: int, or MPI_Count in the functions whose names end in
 * _c. */
struct numbers {
    const void *first;
    bool large;
};
#define NUMBERS(array) ((struct numbers){array, sizeof *(array) == sizeof(int64_t)})

static int64_t number(struct numbers all, size_t i)
{
    return all.large ? ((const int64_t *)all.first)[i] : ((const int *)all.first)[i];
}

/* Is the calling rank the one that gives to all? */
static bool is_giver(const struct trace_group *group, int root)
{
    return group->inter ? root == pin_trace_mpi.root : root == group->me;
}

/* From the root. */
static void give(trace_word comm, int root, int64_t count, trace_word type)
{
    struct trace_group *group = pin_trace_group_of_comm(comm);
    if (group && is_giver(group, root)) {
        pin_trace_count_each(group, pin_trace_bytes(count, type));
    }
}

/* To the root, which is below 0 on the root's side of an intercommunicator. */
static void take(trace_word comm, int root, int64_t count, trace_word type)
{
    struct trace_group *group = pin_trace_group_of_comm(comm);
    if (group && root != group->me) {
        pin_trace_count_to(group, root, pin_trace_bytes(count, type));
    }
}

static void share(trace_word comm, int64_t count, trace_word type)
{
    struct trace_group *group = pin_trace_group_of_comm(comm);
    if (group) {
        pin_trace_count_each(group, pin_trace_bytes(count, type));
    }
}

static void reduce_all(trace_word comm, int64_t count, trace_word type)
{
    struct trace_group *group = pin_trace_group_of_comm(comm);
    if (group) {
        pin_trace_count_reduced(group, pin_trace_bytes(count, type));
    }
}

static void pass_on(trace_word comm, int64_t count, trace_word type)
{
    struct trace_group *group = pin_trace_group_of_comm(comm);
    if (group) {
        pin_trace_count_to(group, group->me + 1, pin_trace_bytes(count, type));
    }
}

/* To each other rank its own number. */
static void deal(struct trace_group *group, struct numbers counts, trace_word type)
{
    for (int32_t peer = 0; peer < group->size; peer++) {
        if (peer != group->me) {
            pin_trace_count_to(group, peer, pin_trace_bytes(number(counts, (size_t)peer), type));
        }
    }
}

static void deal_out(trace_word comm, struct numbers counts, trace_word type)
{
    struct trace_group *group = pin_trace_group_of_comm(comm);
    if (group) {
        deal(group, counts, type);
    }
}

static void deal_types(trace_word comm, struct numbers counts, const void *types)
{
    struct trace_group *group = pin_trace_group_of_comm(comm);
    for (int32_t peer = 0; group && peer < group->size; peer++) {
        if (peer != group->me) {
            pin_trace_count_to(group, peer,
                               pin_trace_bytes(number(counts, (size_t)peer),
                                               trace_handle_at(types, (size_t)peer)));
        }
    }
}

static void scatter(trace_word comm, int root, struct numbers counts, trace_word type)
{
    struct trace_group *group = pin_trace_group_of_comm(comm);
    if (group && is_giver(group, root)) {
        deal(group, counts, type);
    }
}

/* In place, the own part lies in the receive buffer. */
static void share_own(trace_word comm, const void *out, int64_t count, trace_word type,
                      struct numbers counts, trace_word in_type)
{
    struct trace_group *group = pin_trace_group_of_comm(comm);
    if (!group) {
        return;
    }
    bool in_place = out == pin_trace_mpi.in_place && group->me >= 0;
    pin_trace_count_each(group, in_place
                                    ? pin_trace_bytes(number(counts, (size_t)group->me), in_type)
                                    : pin_trace_bytes(count, type));
}

/* -- neighbours -- */

static struct trace_group *with_neighbours(trace_word comm)
{
    struct trace_group *group = pin_trace_group_of_comm(comm);
    if (group && __atomic_load_n(&group->neighbour_count, __ATOMIC_ACQUIRE) < 0) {
        pin_trace_group_find_neighbours(group);
    }
    return group;
}

static void to_neighbours(trace_word comm, int64_t count, trace_word type)
{
    struct trace_group *group = with_neighbours(comm);
    for (int32_t i = 0; group && i < group->neighbour_count; i++) {
        pin_trace_count_to(group, group->neighbours[i], pin_trace_bytes(count, type));
    }
}

static void deal_to_neighbours(trace_word comm, struct numbers counts, trace_word type)
{
    struct trace_group *group = with_neighbours(comm);
    for (int32_t i = 0; group && i < group->neighbour_count; i++) {
        pin_trace_count_to(group, group->neighbours[i],
                           pin_trace_bytes(number(counts, (size_t)i), type));
    }
}

static void deal_types_to_neighbours(trace_word comm, struct numbers counts, const void *types)
{
    struct trace_group *group = with_neighbours(comm);
    for (int32_t i = 0; group && i < group->neighbour_count; i++) {
        pin_trace_count_to(
            group, group->neighbours[i],
            pin_trace_bytes(number(counts, (size_t)i), trace_handle_at(types, (size_t)i)));
    }
}

/* -- the functions: MPI_X and MPI_Ix, which has a request besides -- */

#define UNPACK(...) __VA_ARGS__
#define BLOCKING_OR_NOT(name, name_of_nonblocking, suffix, parameters, arguments, counted)         \
    TRACE_CALL(name##suffix, (UNPACK parameters), (UNPACK arguments), counted)                     \
    TRACE_CALL(name_of_nonblocking##suffix, (UNPACK parameters, void *request),                    \
               (UNPACK arguments, request), counted)

#define ROOTED(n, suffix)                                                                          \
    BLOCKING_OR_NOT(Bcast, Ibcast, suffix,                                                         \
                    (void *data, n count, trace_word type, int root, trace_word comm),             \
                    (data, count, type, root, comm), give(comm, root, count, type))                \
    BLOCKING_OR_NOT(Reduce, Ireduce, suffix,                                                       \
                    (const void *out, void *in, n count, trace_word type, trace_word operation,    \
                     int root, trace_word comm),                                                   \
                    (out, in, count, type, operation, root, comm), take(comm, root, count, type))  \
    BLOCKING_OR_NOT(Gather, Igather, suffix,                                                       \
                    (const void *out, n count, trace_word type, void *in, n in_count,              \
                     trace_word in_type, int root, trace_word comm),                               \
                    (out, count, type, in, in_count, in_type, root, comm),                         \
                    take(comm, root, count, type))                                                 \
    BLOCKING_OR_NOT(Gatherv, Igatherv, suffix,                                                     \
                    (const void *out, n count, trace_word type, void *in, const n *in_counts,      \
                     const void *places, trace_word in_type, int root, trace_word comm),           \
                    (out, count, type, in, in_counts, places, in_type, root, comm),                \
                    take(comm, root, count, type))                                                 \
    BLOCKING_OR_NOT(Scatter, Iscatter, suffix,                                                     \
                    (const void *out, n count, trace_word type, void *in, n in_count,              \
                     trace_word in_type, int root, trace_word comm),                               \
                    (out, count, type, in, in_count, in_type, root, comm),                         \
                    give(comm, root, count, type))                                                 \
    BLOCKING_OR_NOT(Scatterv, Iscatterv, suffix,                                                   \
                    (const void *out, const n *counts, const void *places, trace_word type,        \
                     void *in, n in_count, trace_word in_type, int root, trace_word comm),         \
                    (out, counts, places, type, in, in_count, in_type, root, comm),                \
                    scatter(comm, root, NUMBERS(counts), type))

#define ALL(n, suffix)                                                                             \
    BLOCKING_OR_NOT(Allreduce, Iallreduce, suffix,                                                 \
                    (const void *out, void *in, n count, trace_word type, trace_word operation,    \
                     trace_word comm),                                                             \
                    (out, in, count, type, operation, comm), reduce_all(comm, count, type))        \
    BLOCKING_OR_NOT(Allgather, Iallgather, suffix,                                                 \
                    (const void *out, n count, trace_word type, void *in, n in_count,              \
                     trace_word in_type, trace_word comm),                                         \
                    (out, count, type, in, in_count, in_type, comm),                               \
                    share(comm, out == pin_trace_mpi.in_place ? in_count : count,                  \
                          out == pin_trace_mpi.in_place ? in_type : type))                         \
    BLOCKING_OR_NOT(Allgatherv, Iallgatherv, suffix,                                               \
                    (const void *out, n count, trace_word type, void *in, const n *in_counts,      \
                     const void *places, trace_word in_type, trace_word comm),                     \
                    (out, count, type, in, in_counts, places, in_type, comm),                      \
                    share_own(comm, out, count, type, NUMBERS(in_counts), in_type))                \
    BLOCKING_OR_NOT(Alltoall, Ialltoall, suffix,                                                   \
                    (const void *out, n count, trace_word type, void *in, n in_count,              \
                     trace_word in_type, trace_word comm),                                         \
                    (out, count, type, in, in_count, in_type, comm),                               \
                    share(comm, out == pin_trace_mpi.in_place ? in_count : count,                  \
                          out == pin_trace_mpi.in_place ? in_type : type))                         \
    BLOCKING_OR_NOT(Alltoallv, Ialltoallv, suffix,                                                 \
                    (const void *out, const n *counts, const void *places, trace_word type,        \
                     void *in, const n *in_counts, const void *in_places, trace_word in_type,      \
                     trace_word comm),                                                             \
                    (out, counts, places, type, in, in_counts, in_places, in_type, comm),          \
                    out == pin_trace_mpi.in_place ? deal_out(comm, NUMBERS(in_counts), in_type)    \
                                                  : deal_out(comm, NUMBERS(counts), type))         \
    BLOCKING_OR_NOT(Alltoallw, Ialltoallw, suffix,                                                 \
                    (const void *out, const n *counts, const void *places, const void *types,      \
                     void *in, const n *in_counts, const void *in_places, const void *in_types,    \
                     trace_word comm),                                                             \
                    (out, counts, places, types, in, in_counts, in_places, in_types, comm),        \
                    out == pin_trace_mpi.in_place ? deal_types(comm, NUMBERS(in_counts), in_types) \
                                                  : deal_types(comm, NUMBERS(counts), types))      \
    BLOCKING_OR_NOT(Reduce_scatter, Ireduce_scatter, suffix,                                       \
                    (const void *out, void *in, const n *counts, trace_word type,                  \
                     trace_word operation, trace_word comm),                                       \
                    (out, in, counts, type, operation, comm),                                      \
                    deal_out(comm, NUMBERS(counts), type))                                         \
    BLOCKING_OR_NOT(Reduce_scatter_block, Ireduce_scatter_block, suffix,                           \
                    (const void *out, void *in, n count, trace_word type, trace_word operation,    \
                     trace_word comm),                                                             \
                    (out, in, count, type, operation, comm), share(comm, count, type))             \
    BLOCKING_OR_NOT(Scan, Iscan, suffix,                                                           \
                    (const void *out, void *in, n count, trace_word type, trace_word operation,    \
                     trace_word comm),                                                             \
                    (out, in, count, type, operation, comm), pass_on(comm, count, type))           \
    BLOCKING_OR_NOT(Exscan, Iexscan, suffix,                                                       \
                    (const void *out, void *in, n count, trace_word type, trace_word operation,    \
                     trace_word comm),                                                             \
                    (out, in, count, type, operation, comm), pass_on(comm, count, type))

#define NEIGHBOURS(n, suffix)                                                                      \
    BLOCKING_OR_NOT(Neighbor_allgather, Ineighbor_allgather, suffix,                               \
                    (const void *out, n count, trace_word type, void *in, n in_count,              \
                     trace_word in_type, trace_word comm),                                         \
                    (out, count, type, in, in_count, in_type, comm),                               \
                    to_neighbours(comm, count, type))                                              \
    BLOCKING_OR_NOT(Neighbor_allgatherv, Ineighbor_allgatherv, suffix,                             \
                    (const void *out, n count, trace_word type, void *in, const n *in_counts,      \
                     const void *places, trace_word in_type, trace_word comm),                     \
                    (out, count, type, in, in_counts, places, in_type, comm),                      \
                    to_neighbours(comm, count, type))                                              \
    BLOCKING_OR_NOT(Neighbor_alltoall, Ineighbor_alltoall, suffix,                                 \
                    (const void *out, n count, trace_word type, void *in, n in_count,              \
                     trace_word in_type, trace_word comm),                                         \
                    (out, count, type, in, in_count, in_type, comm),                               \
                    to_neighbours(comm, count, type))                                              \
    BLOCKING_OR_NOT(Neighbor_alltoallv, Ineighbor_alltoallv, suffix,                               \
                    (const void *out, const n *counts, const void *places, trace_word type,        \
                     void *in, const n *in_counts, const void *in_places, trace_word in_type,      \
                     trace_word comm),                                                             \
                    (out, counts, places, type, in, in_counts, in_places, in_type, comm),          \
                    deal_to_neighbours(comm, NUMBERS(counts), type))                               \
    BLOCKING_OR_NOT(Neighbor_alltoallw, Ineighbor_alltoallw, suffix,                               \
                    (const void *out, const n *counts, const void *places, const void *types,      \
                     void *in, const n *in_counts, const void *in_places, const void *in_types,    \
                     trace_word comm),                                                             \
                    (out, counts, places, types, in, in_counts, in_places, in_types, comm),        \
                    deal_types_to_neighbours(comm, NUMBERS(counts), types))

ROOTED(int, )
ROOTED(int64_t, _c)
ALL(int, )
ALL(int64_t, _c)
NEIGHBOURS(int, )
NEIGHBOURS(int64_t, _c)
