/* What the kernels' programs share, whether they have threads, ranks or both. */
#include "benchmarks/kernels/par.h"
#include "profile/base/clock.h"

#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#endif

size_t par_threads(void)
{
#ifdef _OPENMP
    return (size_t)omp_get_max_threads();
#else
    return 1;
#endif
}

double par_seconds(void)
{
    return profile_now_s();
}

void par_share(size_t total, size_t rank, size_t *first, size_t *count)
{
    size_t each = total / par_size(), rest = total % par_size();
    *first = rank * each + (rank < rest ? rank : rest);
    *count = each + (rank < rest ? 1 : 0);
}
