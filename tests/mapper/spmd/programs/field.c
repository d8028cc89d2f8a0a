/* Common to the SPMD applications: their command line, two arrays with a halo, start and border
 * values, the report. */
#include "tests/mapper/spmd/programs/field.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void stop(const char *format, ...)
{
    int rank;
    va_list args;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    va_start(args, format);
    if (rank == 0) {
        fprintf(stderr, "%s: ", kernel_name);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
    }
    va_end(args);
    MPI_Finalize();
    exit(2);
}

static void read_pair(const char *option, const char *text, size_t *a, size_t *b)
{
    char *end;
    unsigned long x = strtoul(text, &end, 10), y = 1;
    if (end != text && *end == 'x') {
        y = strtoul(end + 1, &end, 10);
    }
    if (*end || x < 1 || y < 1 || *text == '-') {
        stop("%s: expected two numbers such as 800x600, got '%s'", option, text);
    }
    *a = x;
    *b = y;
}

struct arguments read_arguments(int argc, char **argv)
{
    struct arguments arguments = {
        .problem_x = 1000, .problem_y = kernel_dimensions == 1 ? 1 : 1000, .iterations = 100};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--problem") == 0) {
            read_pair(argv[i], argv[i + 1], &arguments.problem_x, &arguments.problem_y);
        } else if (strcmp(argv[i], "--grid") == 0) {
            read_pair(argv[i], argv[i + 1], &arguments.n, &arguments.m);
        } else if (strcmp(argv[i], "--iterations") == 0) {
            arguments.iterations = strtol(argv[i + 1], NULL, 10);
        } else {
            stop("unknown option '%s', expected --problem XxY --grid NxM --iterations K", argv[i]);
        }
    }
    if (argc % 2 == 0 || arguments.iterations < 1) {
        stop("expected --problem XxY --grid NxM --iterations K, each with a value");
    }
    return arguments;
}

void make_field(struct field *f)
{
    f->stride = f->x + 2 * f->halo_x;
    f->rows = f->y + 2 * f->halo_y;
    f->now = malloc(f->stride * f->rows * sizeof *f->now);
    f->next = malloc(f->stride * f->rows * sizeof *f->next);
    if (!f->now || !f->next) {
        stop("out of memory");
    }
    for (size_t row = 0; row < f->rows; row++) {
        for (size_t column = 0; column < f->stride; column++) {
            double x = (double)(f->i * f->x + column) - (double)f->halo_x;
            double y = (double)(f->j * f->y + row) - (double)f->halo_y;
            int outside = x < 0 || y < 0 || x >= (double)f->problem_x || y >= (double)f->problem_y;
            double value = kernel_start(outside ? -1 : x, outside ? -1 : y);
            f->now[row * f->stride + column] = f->next[row * f->stride + column] = value;
        }
    }
}

void swap(struct field *field)
{
    double *now = field->now;
    field->now = field->next;
    field->next = now;
}

/* A sum of bit patterns, each weighted by where the task is: the order of adding does not
 * matter. */
static uint64_t checksum(const struct field *f)
{
    uint64_t sum = 0;
    for (size_t y = 0; y < f->y; y++) {
        for (size_t x = 0; x < f->x; x++) {
            uint64_t bits, place = (f->j * f->y + y) * f->problem_x + f->i * f->x + x;
            memcpy(&bits, &f->now[(y + f->halo_y) * f->stride + x + f->halo_x], sizeof bits);
            sum += bits * (2 * place + 1);
        }
    }
    return sum;
}

void report(const struct field *field, const char *how, double seconds, long iterations)
{
    int rank;
    double slowest = 0;
    uint64_t mine = checksum(field), all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s %s: %zu x %zu tasks, %zu x %zu processes, %ld iterations, %.6g s each, checksum "
               "%016llx\n",
               kernel_name, how, field->problem_x, field->problem_y, field->n, field->m, iterations,
               slowest / (double)iterations, (unsigned long long)all);
    }
}
