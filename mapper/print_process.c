/* Formats that place the threads of one process. */
#include "print.h"

#include <errno.h>

static void print_indices(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        fprintf(out, "%s%u", i > begin ? "," : "", plan->places[i].os_index);
    }
}

/* One place per thread, in thread order (OpenMP 5.2, sections 21.1.6 and 21.1.7). */
int print_omp_places(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "OMP_PLACES=");
    for (size_t i = begin; i < end; i++) {
        fprintf(out, "%s{%u}", i > begin ? "," : "", plan->places[i].os_index);
    }
    fprintf(out, " OMP_PROC_BIND=true OMP_NUM_THREADS=%zu", end - begin);
    return 0;
}

int print_gomp(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "GOMP_CPU_AFFINITY=");
    print_indices(out, plan, begin, end);
    fprintf(out, " OMP_NUM_THREADS=%zu", end - begin);
    return 0;
}

int print_kmp(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "KMP_AFFINITY=granularity=fine,explicit,proclist=[");
    print_indices(out, plan, begin, end);
    fprintf(out, "]");
    return 0;
}

int print_taskset(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "taskset -c ");
    print_indices(out, plan, begin, end);
    return 0;
}

int print_numactl(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "numactl -C ");
    print_indices(out, plan, begin, end);
    return 0;
}

int print_hwloc_bind(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "hwloc-bind --physical");
    for (size_t i = begin; i < end; i++) {
        fprintf(out, " pu:%u", plan->places[i].os_index);
    }
    fprintf(out, " --");
    return 0;
}

int print_likwid(FILE *out, const struct map_plan *plan, size_t begin, size_t end)
{
    fprintf(out, "likwid-pin -c ");
    print_indices(out, plan, begin, end);
    return 0;
}
