/* From measured times T(h) of full h-relations to g and l: Bisseling's least squares. A stall does
 * not reach it, since each h has the least of several times in random order. */
#include "probes/bsp/bsp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/statistics.h"

/* A piece of a curve with a bend has at least this many points: fewer are fitted by any line. */
#define PIECE_POINTS 6
/* Two lines have three parameters more than one (g, l and the place). F of chance alone stays below
 * 10 even when the place is the best of a hundred; noise with stalls reached 20. */
#define BEND_F 40.0
/* A bend is looked for in at most about so many points: in the medians of blocks of a longer curve,
 * out of which one stall among thousands of points cannot make a piece of its own. */
#define BEND_POINTS 256

int probe_bsp_least_squares(const struct bsp_curve *curve, struct bsp_line *out)
{
    const size_t count = curve->count;
    if (count < 2) {
        return -EINVAL;
    }
    /* Longer sums than the figures: exact T(h) must give back g and l to twelve digits. */
    long double mean_h = 0, mean_t = 0, hh = 0, ht = 0;
    for (size_t i = 0; i < count; i++) {
        mean_h += curve->h[i];
        mean_t += (long double)curve->time[i];
    }
    mean_h /= (long double)count;
    mean_t /= (long double)count;
    for (size_t i = 0; i < count; i++) {
        long double dh = curve->h[i] - mean_h;
        hh += dh * dh;
        ht += dh * ((long double)curve->time[i] - mean_t);
    }
    if (!(hh > 0)) {
        return -EINVAL;
    }
    long double g = ht / hh;
    *out = (struct bsp_line){(double)g, (double)(mean_t - g * mean_h)};
    return 0;
}

/* -- bend -- */

static double at(const struct bsp_line *line, double h)
{
    return h * line->g + line->l;
}

static double squares(const struct bsp_curve *curve, const struct bsp_line *line)
{
    double sum = 0;
    for (size_t i = 0; i < curve->count; i++) {
        double miss = curve->time[i] - at(line, curve->h[i]);
        sum += miss * miss;
    }
    return sum;
}

static double split_at(const struct bsp_curve *curve, size_t place, struct bsp_bend *out)
{
    const struct bsp_curve before = {curve->h, curve->time, place},
                           after = {curve->h + place, curve->time + place, curve->count - place};
    probe_bsp_least_squares(&before, &out->before);
    probe_bsp_least_squares(&after, &out->after);
    out->h = curve->h[place];
    return squares(&before, &out->before) + squares(&after, &out->after);
}

static void free_curve(struct bsp_curve *curve)
{
    free(curve->h);
    free(curve->time);
}

static int make_medians(const struct bsp_curve *curve, size_t block, struct bsp_curve *out)
{
    size_t count = curve->count / block;
    *out = (struct bsp_curve){malloc(count * sizeof *out->h), malloc(count * sizeof *out->time),
                              count};
    FREED double *values = malloc(block * sizeof *values);
    TRY(out->h && out->time && values ? 0 : -ENOMEM);
    for (size_t i = 0; i < count; i++) {
        memcpy(values, curve->time + i * block, block * sizeof *values);
        out->h[i] = curve->h[i * block + block / 2];
        out->time[i] = profile_median_value(values, block);
    }
    return 0;
}

static bool has_bend(const struct bsp_curve *curve, struct bsp_bend *out)
{
    struct bsp_line whole;
    if (curve->count < 2 * PIECE_POINTS || probe_bsp_least_squares(curve, &whole) < 0) {
        return false;
    }
    double one = squares(curve, &whole), two = INFINITY;
    struct bsp_bend best = {0};
    for (size_t place = PIECE_POINTS; place + PIECE_POINTS <= curve->count; place++) {
        struct bsp_bend bend;
        double sum = split_at(curve, place, &bend);
        if (sum < two) {
            two = sum;
            best = bend;
        }
    }
    double f = (one - two) / 3 / (two / (double)(curve->count - 5));
    double middle = at(&whole, (curve->h[0] + (double)curve->h[curve->count - 1]) / 2);
    double miss = fmax(fabs(at(&best.before, best.h) - at(&whole, best.h)),
                       fabs(at(&best.after, best.h) - at(&whole, best.h)));
    *out = best;
    /* Rounding alone makes exact curves differ from their own line: the miss decides there, not
     * f. */
    return f > BEND_F && miss > BSP_AGREEMENT / 2 * fabs(middle);
}

int probe_bsp_find_bend(const struct bsp_curve *all, struct bsp_bend *out)
{
    size_t skip = all->count &&
                  all->h[0] == 0; /* T(0) sends nothing: it lies below the line of any machine */
    const struct bsp_curve curve = {all->h + skip, all->time + skip, all->count - skip};
    size_t block = curve.count / BEND_POINTS | 1; /* odd: the median is a point of the curve */
    FREED_BY(free_curve) struct bsp_curve medians = {0};
    struct bsp_bend bend;
    TRY(curve.count < 2 ? -EINVAL : make_medians(&curve, block, &medians));
    *out = has_bend(&medians, &bend) ? bend : (struct bsp_bend){0};
    return 0;
}

/* -- judging -- */

double probe_bsp_difference(const struct bsp_line *a, const struct bsp_line *b, double low,
                            double high)
{
    double slope = fmin(fabs(a->g), fabs(b->g));
    double middle = fmin(fabs(at(a, (low + high) / 2)), fabs(at(b, (low + high) / 2)));
    double g = fabs(a->g - b->g) / slope;
    double ends = fmax(fabs(at(a, low) - at(b, low)), fabs(at(a, high) - at(b, high))) / middle;
    return fmax(g, ends);
}
