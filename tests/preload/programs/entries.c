/* Calls one entry of entries_stub by its name and reports as rank 0:  entries NAME */
#include <dlfcn.h>

#include "report.h"

int MPI_Init(void *a, void *b, void *c, void *d);

/* So that the linker keeps the library. */
int (*volatile needed)(void *, void *, void *, void *) = MPI_Init;

int main(int argc, char **argv)
{
    int first = 0, second = 0, third = 0, fourth = 0;
    int (*entry)(void *, void *, void *, void *);
    if (argc < 2 ||
        !(entry = (int (*)(void *, void *, void *, void *))dlsym(RTLD_DEFAULT, argv[1]))) {
        return 3;
    }
    int code = entry(&first, &second, &third, &fourth);
    report_worker(0, 0);
    report_count(0, code);
    return 0;
}
