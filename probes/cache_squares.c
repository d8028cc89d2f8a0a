#include "cache_squares.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

double cache_dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* Solves the n x n symmetric system over the columns in `use` (Gaussian elimination; the diagonal is made a little
 * heavier, since two shapes may be all but equal). */
static void solve(const double gram[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX], const double *right, const bool *use,
                  size_t n, double *x)
{
    double a[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX + 1];
    size_t at[CACHE_COLUMNS_MAX], m = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = 0;
        if (use[i]) {
            at[m++] = i;
        }
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < m; j++) {
            a[i][j] = gram[at[i]][at[j]] * (i == j ? 1 + 1e-9 : 1);
        }
        a[i][m] = right[at[i]];
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t k = i + 1; k < m; k++) {
            double factor = a[i][i] > 0 ? a[k][i] / a[i][i] : 0;
            for (size_t j = i; j <= m; j++) {
                a[k][j] -= factor * a[i][j];
            }
        }
    }
    for (size_t i = m; i-- > 0;) {
        double sum = a[i][m];
        for (size_t j = i + 1; j < m; j++) {
            sum -= a[i][j] * x[at[j]];
        }
        x[at[i]] = a[i][i] > 0 ? sum / a[i][i] : 0;
    }
}

/* The most negative coefficient is left out until none is. */
double cache_solve_positive(const double gram[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX], const double *right, double total,
                            size_t n, double *x)
{
    bool use[CACHE_COLUMNS_MAX];
    memset(use, 1, sizeof use);
    for (;;) {
        size_t worst = n;
        solve(gram, right, use, n, x);
        for (size_t i = 0; i < n; i++) {
            if (x[i] < 0 && (worst == n || x[i] < x[worst])) {
                worst = i;
            }
        }
        if (worst == n) {
            break;
        }
        use[worst] = false;
    }
    double rss = total;
    for (size_t i = 0; i < n; i++) {
        rss -= x[i] * right[i];
    }
    return rss > 0 ? rss : 0;
}

void cache_isotonic(double *values, size_t count)
{
    double *mean = malloc(count * sizeof *mean);
    size_t *size = malloc(count * sizeof *size), blocks = 0;
    if (mean && size) {
        for (size_t i = 0; i < count; i++) {
            mean[blocks] = log(values[i]);
            size[blocks++] = 1;
            while (blocks > 1 && mean[blocks - 2] > mean[blocks - 1]) {
                size_t all = size[blocks - 2] + size[blocks - 1];
                mean[blocks - 2] =
                    (mean[blocks - 2] * (double)size[blocks - 2] + mean[blocks - 1] * (double)size[blocks - 1]) /
                    (double)all;
                size[blocks - 2] = all;
                blocks--;
            }
        }
        for (size_t b = 0, i = 0; b < blocks; b++) {
            for (size_t j = 0; j < size[b]; j++) {
                values[i++] = exp(mean[b]);
            }
        }
    }
    free(mean);
    free(size);
}
