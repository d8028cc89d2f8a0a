/* Teams inside teams: worker OUTER INNER, all alive at the same time. */
#include <omp.h>

#include "report.h"

int main(void)
{
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int outer = omp_get_thread_num();
#pragma omp parallel num_threads(2)
        report_worker(outer, omp_get_thread_num());
    }
    return 0;
}
