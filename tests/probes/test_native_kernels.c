/* Do the kernels that are written for one kind of processor do what the plain ones do? Each that
 * this processor runs. They are static in their files, so these are included. */
#include "probes/native/bsp.c"
#include "probes/native/copy.c"

#include "tests/base/runner.h"

enum { BYTES = 64 << 10, GUARD = 4096, LENGTH = 512, TIMES = 3 };

static void check_copy(copy_function *copy)
{
    unsigned char *from = aligned_alloc(4096, BYTES), *to = aligned_alloc(4096, BYTES + GUARD);
    ck_assert(from && to);
    for (size_t i = 0; i < BYTES; i++) {
        from[i] = (unsigned char)(i * 7 + i / 251);
    }
    for (size_t bytes = 4096; bytes <= BYTES; bytes *= 2) {
        memset(to, 0xa5, BYTES + GUARD);
        copy(to, from, bytes);
        ck_assert_int_eq(memcmp(to, from, bytes), 0);
        for (size_t i = bytes; i < bytes + GUARD; i++) {
            ck_assert_uint_eq(to[i], 0xa5);
        }
    }
    free(from);
    free(to);
}

TEST(copies_copy_all_and_no_more)
{
    const char *name = NULL;
    check_copy(best_copy(&name));
    ck_assert_ptr_nonnull(name);
#if defined(__x86_64__)
    check_copy(copy_sse2);
#elif defined(__aarch64__)
    check_copy(copy_stnp);
#endif
}

TEST(daxpy_is_daxpy)
{
    _Alignas(256) static double x[LENGTH], y[LENGTH + 8];
    for (int i = 0; i < LENGTH; i++) {
        x[i] = i;
        y[i] = 1;
    }
    daxpy(0.5, x, y, LENGTH, TIMES);
    for (int i = 0; i < LENGTH; i++) {
        ck_assert_double_eq(y[i], 1 + TIMES * 0.5 * i);
    }
    for (int i = LENGTH; i < LENGTH + 8; i++) {
        ck_assert_double_eq(y[i], 0);
    }
}
