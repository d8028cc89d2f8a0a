/* report_worker() for programs that are not in C. */
#include "report.h"

void show(int rank, int thread);
void show(int rank, int thread)
{
    report_worker(rank, thread);
}
