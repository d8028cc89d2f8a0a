/* System calls made directly, without libc's wrappers: the wrappers set errno, which belongs to the
 * application, and some of them (sched_getaffinity, syscall) are interposed by this very library.
 *
 * profile_raw() returns what the kernel returns: a value, or -errno.
 */
#ifndef SERVET_PROFILE_BASE_RAW_H
#define SERVET_PROFILE_BASE_RAW_H

#include <sys/syscall.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <errno.h>
#include <unistd.h>

/* libc's function serves, and `syscall` itself is not interposed (libomp's workers then move back
 * to the process's whole set when they start). */
#define PROFILE_HAVE_RAW 0
#else
#define PROFILE_HAVE_RAW 1
#endif

/* As many parameters as the kernel takes: the number of the call and six arguments. */
static inline long profile_raw(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
    int saved = errno;
    long result = syscall(number, a, b, c, d, e, f);
    if (result == -1) {
        result = -errno;
    }
    errno = saved;
    return result;
#endif
}

#endif
