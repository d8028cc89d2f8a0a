/* Prints the PU that each OpenMP thread may run on, in thread order: "0,1". */
#include <omp.h>
#include <sched.h>
#include <stdio.h>

#define MOST 256

int main(void)
{
    static int pu[MOST];
    int threads = 0;
#pragma omp parallel
    {
        cpu_set_t set;
        CPU_ZERO(&set);
        int self = omp_get_thread_num();
        if (self < MOST && sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1) {
            while (!CPU_ISSET(pu[self], &set)) {
                pu[self]++;
            }
        } else if (self < MOST) {
            pu[self] = -1;
        }
#pragma omp single
        threads = omp_get_num_threads();
    }
    for (int i = 0; i < threads && i < MOST; i++) {
        printf("%s%d", i ? "," : "", pu[i]);
    }
    printf("\n");
    return 0;
}
