#include "native_daxpy.h"

/* One body, compiled for each width of vector registers and chosen at run time: the project is built for any
 * processor of its architecture, but r is that of this one. */
#define DEFINE_DAXPY(name, lanes, attributes)                                                                          \
    attributes static void name(double a, const double *x, double *y, size_t length, size_t times)                     \
    {                                                                                                                  \
        typedef double vector __attribute__((vector_size(8 * (lanes))));                                               \
        const vector *from = (const vector *)x;                                                                        \
        vector *to = (vector *)y;                                                                                      \
        for (size_t t = 0; t < times; t++) {                                                                           \
            for (size_t i = 0; i < length / (lanes); i += DAXPY_BLOCK / 2 / (lanes)) {                                 \
                for (size_t j = 0; j < DAXPY_BLOCK / 2 / (lanes); j++) {                                               \
                    to[i + j] += a * from[i + j];                                                                      \
                }                                                                                                      \
            }                                                                                                          \
            __asm__ volatile("" : : : "memory"); /* every pass is done */                                              \
        }                                                                                                              \
    }

DEFINE_DAXPY(daxpy_2, 2, )
#if defined(__x86_64__)
DEFINE_DAXPY(daxpy_4, 4, __attribute__((target("avx2,fma"))))
DEFINE_DAXPY(daxpy_8, 8, __attribute__((target("avx512f"))))
#endif

void native_daxpy(double a, const double *x, double *y, size_t length, size_t times)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        daxpy_8(a, x, y, length, times);
        return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        daxpy_4(a, x, y, length, times);
        return;
    }
#endif
    daxpy_2(a, x, y, length, times);
}
