/* Stockham's transform, radix 2, of many lines at once: no bit reversal, and every step is a
 * vector operation over the lines. */
#include "benchmarks/kernels/fft.h"

#include <math.h>
#include <string.h>

#include "benchmarks/kernels/kernel.h"

double complex *fft_roots(size_t n)
{
    double complex *roots = kernel_memory(n / 2 + 1, sizeof *roots);
    for (size_t k = 0; k < n / 2; k++) {
        double angle = 2.0 * M_PI * (double)k / (double)n;
        roots[k] = CMPLX(cos(angle), sin(angle));
    }
    return roots;
}

/* out[0..] = a + b, out[1..] = w (a - b), for each line. Written in real numbers: C's complex
 * product checks for NaN.
 */
static inline void butterfly(const double *a, const double *b, double wr, double wi, double *sum,
                             double *difference)
{
    for (size_t i = 0; i < 2 * FFT_LINES; i += 2) {
        double dr = a[i] - b[i], di = a[i + 1] - b[i + 1];
        sum[i] = a[i] + b[i];
        sum[i + 1] = a[i + 1] + b[i + 1];
        difference[i] = wr * dr - wi * di;
        difference[i + 1] = wr * di + wi * dr;
    }
}

void fft_block(size_t n, const double complex *roots, int sign, double complex *data,
               double complex *work)
{
    enum { LINE = 2 * FFT_LINES };
    double *from = (double *)data, *to = (double *)work;
    for (size_t half = n / 2, stride = 1; half >= 1; half /= 2, stride *= 2) {
        for (size_t p = 0; p < half; p++) {
            double wr = creal(roots[p * stride]), wi = sign * cimag(roots[p * stride]);
            for (size_t q = 0; q < stride; q++) {
                butterfly(from + (q + stride * p) * LINE, from + (q + stride * (p + half)) * LINE,
                          wr, wi, to + (q + stride * 2 * p) * LINE,
                          to + (q + stride * (2 * p + 1)) * LINE);
            }
        }
        double *swap = from;
        from = to;
        to = swap;
    }
    if (from != (double *)data) {
        memcpy(data, work, n * FFT_LINES * sizeof *data);
    }
}

void fft_lines(size_t n, const double complex *roots, int sign, const struct fft_lines *lines,
               double complex *work)
{
    size_t line_step = lines->line_step, element_step = lines->element_step;
    double complex *block = work, *scratch = work + n * FFT_LINES;
    for (size_t first = 0; first < lines->count; first += FFT_LINES) {
        size_t left = lines->count - first, here = left < FFT_LINES ? left : FFT_LINES;
        if (here < FFT_LINES) {
            memset(block, 0, n * FFT_LINES * sizeof *block);
        }
        for (size_t e = 0; e < n; e++) {
            for (size_t l = 0; l < here; l++) {
                block[e * FFT_LINES + l] = lines->first[(first + l) * line_step + e * element_step];
            }
        }
        fft_block(n, roots, sign, block, scratch);
        for (size_t e = 0; e < n; e++) {
            for (size_t l = 0; l < here; l++) {
                lines->first[(first + l) * line_step + e * element_step] = block[e * FFT_LINES + l];
            }
        }
    }
}
