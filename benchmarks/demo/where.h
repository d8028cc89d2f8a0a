/* Work of each thread or rank of both demonstration programs: a triad, and a look at where it
 * ran. */
#ifndef SERVET_DEMO_WHERE_H
#define SERVET_DEMO_WHERE_H

struct where {
    char allowed[32];   /* Cpus_allowed_list of the calling thread */
    int cpu;            /* where it ran last */
    double bytes_per_s; /* read + written */
};

/* Three arrays in one block, touched by the caller so that they lie in its memory; free() it. Never
 * NULL: ends the program with one line when memory is short. */
double *where_arrays(void);

struct where where_triad(double *arrays);

#endif
