/* Are the tracer's rows true to the library's own header? Every column is a compile-time check. */
#include <mpi.h>

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "preload/trace/table.h"

/* MPI 4 functions, with the arguments of older ones. */
#if MPI_VERSION < 4
#define PMPI_Isendrecv PMPI_Sendrecv
#define PMPI_Isendrecv_replace PMPI_Sendrecv_replace
#define PMPI_Recv_c PMPI_Recv
#define PMPI_Irecv_c PMPI_Irecv
#define PMPI_Mrecv_c PMPI_Mrecv
#define PMPI_Imrecv_c PMPI_Imrecv
#endif

constexpr int NO = -1;

template <int at, class Wanted, class... All> constexpr bool is(int (*)(All...))
{
    if constexpr (at == NO) {
        return true;
    } else {
        using Type = std::tuple_element_t<at, std::tuple<All...>>;
        using Bare = std::remove_const_t<std::remove_pointer_t<Type>>;
        return std::is_same_v<Type, Wanted> || std::is_same_v<Bare, Wanted>;
    }
}

template <class... All> constexpr int words(int (*)(All...))
{
    return sizeof...(All);
}

#define CHECK(name, n, direction, form, count, type, peer, where, in_count, in_type)               \
    static_assert(words(PMPI_##name) == n, #name ": number of arguments");                         \
    static_assert(is<count, int>(PMPI_##name) && is<in_count, int>(PMPI_##name), #name);           \
    static_assert(is<type, MPI_Datatype>(PMPI_##name), #name ": type");                            \
    static_assert(is<in_type, MPI_Datatype>(PMPI_##name), #name ": type received");                \
    static_assert(is<peer, int>(PMPI_##name), #name ": peer");                                     \
    static_assert(is<where, MPI_Comm>(PMPI_##name) || is<where, MPI_Win>(PMPI_##name) ||           \
                      is<where, MPI_Request>(PMPI_##name),                                         \
                  #name ": communicator, window or request");
#define CHECK_TWO(name, second, n, m, ...) CHECK(name, n, __VA_ARGS__) CHECK(second, m, __VA_ARGS__)
#define CHECK_TIMED(name, second, n, m)                                                            \
    static_assert(words(PMPI_##name) == n && words(PMPI_##second) == m, #name);

TRACE_COUNTED(CHECK_TWO)
TRACE_SINGLE(CHECK)
TRACE_TIMED(CHECK_TIMED)

int main()
{
    return 0;
}
