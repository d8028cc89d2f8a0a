/* y := a x + y, as fast as this processor adds and multiplies. */
#ifndef SERVET_PROBES_NATIVE_DAXPY_H
#define SERVET_PROBES_NATIVE_DAXPY_H

#include <stddef.h>

enum { DAXPY_BLOCK = 16 }; /* lengths are multiples of it; vectors are aligned to its 128 bytes */

/* Runs it `times` times on vectors of `length` words. */
void probe_native_daxpy(double a, const double *x, double *y, size_t length, size_t times);

#endif
