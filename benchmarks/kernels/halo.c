/* HALO: Jacobi sweeps over a square, dealt out by rows to ranks, whose edge rows go to both
 * neighbours on the ring before each sweep: short messages against short computation.
 * The start value u(x, y) = x^2 - y^2 on a strip that is periodic in neither direction is harmonic
 * on the grid too: the mean of the four neighbours is the point itself, in exact arithmetic of
 * small integers. So every sweep must leave it as it is, and a lost or misplaced message shows. */
#include <stdlib.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/par.h"
#include "profile/base/clock.h"

const char kernel_name[] = "HALO";

static const struct problem {
    size_t side;
    int sweeps;
} problems[] = {{128, 200}, {512, 400}, {2048, 200}, {4096, 200}};

struct strip {
    size_t side, first, rows; /* this rank's rows */
    double *now, *next;       /* (rows + 2) x side */
};

static double exact(size_t row, size_t column)
{
    double y = (double)row, x = (double)column;
    return x * x - y * y;
}

/* Row `row` of the square, 0 being the edge above the first; ghosts included. */
static void fill_row(const struct strip *s, double *grid, size_t place)
{
    for (size_t x = 0; x < s->side; x++) {
        grid[place * s->side + x] = exact(s->first + place, x);
    }
}

static void exchange(const struct strip *s, double *grid)
{
    size_t bytes = s->side * sizeof *grid;
    double *top_ghost = grid, *bottom_ghost = grid + (s->rows + 1) * s->side;
    par_pass(1, grid + s->rows * s->side, top_ghost, bytes);
    par_pass(-1, grid + s->side, bottom_ghost, bytes);
    /* the ring closes where the square has its edges */
    if (par_rank() == 0) {
        fill_row(s, grid, 0);
    }
    if (par_rank() + 1 == par_size()) {
        fill_row(s, grid, s->rows + 1);
    }
}

static void sweep(struct strip *s)
{
    size_t side = s->side;
    exchange(s, s->now);
#pragma omp parallel for schedule(static)
    for (size_t row = 1; row <= s->rows; row++) {
        const double *above = s->now + (row - 1) * side, *here = above + side;
        double *there = s->next + row * side;
        there[0] = here[0];
        for (size_t x = 1; x + 1 < side; x++) {
            there[x] = 0.25 * (here[x - 1] + here[x + 1] + above[x] + here[x + side]);
        }
        there[side - 1] = here[side - 1];
    }
    double *swap = s->now;
    s->now = s->next;
    s->next = swap;
}

bool kernel_run(char problem, struct kernel_result *result)
{
    const struct problem *what = &problems[kernel_class_index(problem)];
    if (par_size() > what->side) {
        result->checked = "expected no more ranks than rows";
        return false;
    }
    struct strip s = {.side = what->side};
    par_share(what->side, par_rank(), &s.first, &s.rows);
    s.now = kernel_memory((s.rows + 2) * s.side, sizeof *s.now);
    s.next = kernel_memory((s.rows + 2) * s.side, sizeof *s.next);
    for (size_t place = 1; place <= s.rows; place++) {
        fill_row(&s, s.now, place);
    }
    par_barrier();
    double start = profile_now_s();
    for (int i = 0; i < what->sweeps; i++) {
        sweep(&s);
    }
    result->seconds = par_maximum(profile_now_s() - start);
    double wrong = 0;
    for (size_t place = 1; place <= s.rows; place++) {
        for (size_t x = 0; x < s.side; x++) {
            wrong += s.now[place * s.side + x] != exact(s.first + place, x);
        }
    }
    result->rate = what->sweeps * (double)what->side * (double)what->side / result->seconds * 1e-6;
    result->unit = "M points/s";
    result->verified = par_sum(wrong) == 0;
    result->checked = "the harmonic start value stays exactly as it is";
    free(s.now);
    free(s.next);
    return true;
}
