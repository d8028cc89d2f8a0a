/* A shared object with a parallel region in it, for a program that loads it later. */
#include <omp.h>

#include "report.h"

void run_team(int number);
void run_team(int number)
{
#pragma omp parallel num_threads(2)
    report_worker(number, omp_get_thread_num());
    report_count(number, omp_get_num_procs());
}
