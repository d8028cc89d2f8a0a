/* par.h for a program of one process. */
#include <string.h>

#include "benchmarks/kernels/par.h"

void par_start(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
}

void par_finish(void)
{
}

size_t par_rank(void)
{
    return 0;
}

size_t par_size(void)
{
    return 1;
}

const char *par_form(void)
{
    return "OpenMP";
}

void par_barrier(void)
{
}

void par_sum(double *values, size_t count)
{
    (void)values;
    (void)count;
}

void par_sum_integers(int64_t *values, size_t count)
{
    (void)values;
    (void)count;
}

void par_maximum(double *values, size_t count)
{
    (void)values;
    (void)count;
}

void par_gather_parts(void *all, const size_t *first)
{
    (void)all;
    (void)first;
}

void par_to_next(const void *send, void *receive, size_t bytes)
{
    memcpy(receive, send, bytes);
}

void par_to_previous(const void *send, void *receive, size_t bytes)
{
    memcpy(receive, send, bytes);
}
