/* From measured times T(h) of full h-relations to the BSP parameters g and l: T(h) = h g + l.
 *
 * Source: Bisseling's BSP benchmarking ("Least-squares fit", "Advice from the trenches"). Pure
 * arithmetic; the times may be in any unit, g and l come in the same one.
 */
#ifndef SERVET_PROBES_BSP_FIT_H
#define SERVET_PROBES_BSP_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bsp_curve {
    uint32_t *h;  /* ascending, unique */
    double *time; /* T(h), same index */
    size_t count;
};

struct bsp_line {
    double g, l;
};

/* A change of the straight line: the library switches to another way of packing data. */
struct bsp_bend {
    uint32_t h; /* first h of the second piece; 0: no bend */
    struct bsp_line before, after;
};

/* The two-run test of the advice: relative difference that still counts as agreement. The advice
 * names none; repeats within one start of a program were seen 1 to 32 % apart, those on a quiet
 * machine under 10. */
#define BSP_AGREEMENT 0.10
/* Least squares and Theil-Sen further apart than this: outliers or a bend bent one of them. */
#define BSP_FITS_AGREEMENT 0.25

/* The line that minimises the sum over all points of (T(h) - (h g + l))^2: the 2 x 2 normal
 * equations, solved around the mean of h, where they are diagonal. 0, -EINVAL (fewer than two
 * points). */
int probe_bsp_least_squares(const struct bsp_curve *curve, struct bsp_line *out);

/* The median of the slopes of all pairs of points (of more than 256 points: of the pairs half a
 * curve apart), and the median of T(h) - h g: up to 29 % of the points may be wrong. 0, -EINVAL
 * (fewer than two points), -ENOMEM. */
int probe_bsp_theil_sen(const struct bsp_curve *curve, struct bsp_line *out);

/* Is the curve two straight pieces rather than one? Only where two explain it much better than
 * noise would let them, and differ visibly from one; T(0) is left out. out->h is 0 where there is
 * no bend. 0, -EINVAL (fewer than two points), -ENOMEM. */
int probe_bsp_find_bend(const struct bsp_curve *curve, struct bsp_bend *out);

/* How far two fits are apart over [low, high]: the larger of the relative difference of their g,
 * and of their times at both ends over the smaller of their times in the middle. */
double probe_bsp_difference(const struct bsp_line *a, const struct bsp_line *b, double low,
                            double high);

/* The fit to keep, and whether it is one to be sure of. */
struct bsp_choice {
    struct bsp_line line, least_squares, theil_sen;
    bool robust;   /* the Theil-Sen line was kept */
    bool differ;   /* the two g are more than BSP_FITS_AGREEMENT apart */
    bool negative; /* g or l of the kept line is below zero */
};

/* Least squares where both fits agree or the other is no better; otherwise that of the two whose l
 * is not negative and nearest to the measured T(0) (T(0) <= l is expected, so a far larger l is the
 * outlier's). 0, -EINVAL, -ENOMEM. */
int probe_bsp_choose(const struct bsp_curve *curve, double t0, struct bsp_choice *out);

#endif
