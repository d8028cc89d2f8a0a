/* Common to the SPMD applications: their command line, two arrays with a halo, start and border
 * values, the report.
 *
 * An application is a kernel (heat.c, wave.c) with one of two main programs: plain.c
 * computes the whole tile and then exchanges its edges; planned.c runs the plan of servet-spmd.
 * Both call the same kernel on boxes of the same arrays, so their results are equal to the last
 * bit. */
#pragma once

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

struct field {
    size_t problem_x, problem_y, n, m, i, j; /* tasks; processes; this one */
    size_t x, y, halo_x, halo_y, stride, rows;
    double *now, *next;
};

/* Name of the application. */
extern const char kernel_name[];
extern const int kernel_dimensions;
/* Value of a task at the start, and of the border around the problem; x and y of the whole problem,
 * -1 at the border. */
double kernel_start(double x, double y);
/* next of the tasks x0 <= x < x1, y0 <= y < y1 of the tile. */
void kernel_compute(const struct field *field, size_t x0, size_t x1, size_t y0, size_t y1);

struct arguments {
    size_t problem_x, problem_y, n, m; /* n 0: not given */
    long iterations;
};

/* --problem XxY --grid NxM --iterations K. Ends the program with one line and status 2 on bad
 * usage. */
struct arguments read_arguments(int argc, char **argv);

/* Arrays for a tile, with start and border values. */
void make_field(struct field *field);
void swap(struct field *field);

/* Rank 0 prints name, seconds per iteration of the slowest rank, and a checksum over all tasks that
 * does not depend on how they are distributed. */
void report(const struct field *field, const char *how, double seconds, long iterations);

_Noreturn void stop(const char *format, ...) __attribute__((format(printf, 1, 2)));
