/* The part of the Fortran programs that looks at /proc. */
#include "../report.h"

void show_rank(int rank);
void show_rank(int rank)
{
    report_worker(rank, 0);
    report_masks(rank);
}
