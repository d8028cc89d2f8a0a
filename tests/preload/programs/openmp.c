/* An OpenMP program: counts processors before, in and after a parallel region. */
#include <omp.h>

#include "report.h"

int main(void)
{
    report_count(0, omp_get_num_procs());
#pragma omp parallel
    {
        report_worker(0, omp_get_thread_num());
#pragma omp barrier
        report_count(0, omp_get_num_procs());
    }
    report_count(0, omp_get_num_procs());
    omp_set_num_threads(omp_get_num_procs());
#pragma omp parallel
    {
#pragma omp single
        report_count(0, omp_get_num_threads());
    }
    return 0;
}
