/* Discrete Fourier transforms of FFT_LINES lines at once (a block), Stockham's radix 2: the lines
 * lie side by side, so that every step is a vector operation. */
#ifndef SERVET_BENCHMARKS_FFT_H
#define SERVET_BENCHMARKS_FFT_H

#include <complex.h>
#include <stddef.h>

#define FFT_LINES 8

/* exp(2 pi i k / n) for k < n / 2, as a new array. n: a power of two. */
double complex *fft_roots(size_t n);

/* Transforms the block data[n][FFT_LINES]; `work` has the same size. sign -1: forward, +1: backward
 * (not scaled). The result is in `data`. */
void fft_block(size_t n, const double complex *roots, int sign, double complex *data,
               double complex *work);

/* `count` lines, the first element of line i at first[i * line_step], elements element_step
 * apart. */
struct fft_lines {
    double complex *first;
    size_t count, line_step, element_step;
};

/* The same for lines of n elements; `work` has room for two blocks. */
void fft_lines(size_t n, const double complex *roots, int sign, const struct fft_lines *lines,
               double complex *work);

#endif
