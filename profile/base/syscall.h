/* System calls made directly, without libc's wrappers: the wrappers set errno, which belongs to the
 * application, and some of them (sched_getaffinity, syscall) are interposed by this very library.
 *
 * profile_syscall() returns what the kernel returns: a value, or -errno. */
#pragma once

#include <sys/syscall.h>

#if !defined(__x86_64__) && !defined(__i386__) && !defined(__aarch64__) &&                         \
    !defined(__powerpc64__) && !(defined(__riscv) && __riscv_xlen == 64)
#include <errno.h>
#include <unistd.h>

/* libc's function serves, and `syscall` itself is not interposed (libomp's workers then move back
 * to the process's whole set when they start). */
#define PROFILE_HAVE_RAW 0
#else
#define PROFILE_HAVE_RAW 1
#endif

/* On i386 the plain names are those of older calls: with arguments in memory, without wide inodes
 * or locks. */
#if defined(__i386__)
#define PROFILE_SYS_MMAP SYS_mmap2
#define PROFILE_SYS_FSTATAT SYS_fstatat64
#define PROFILE_SYS_FCNTL SYS_fcntl64
#else
#define PROFILE_SYS_MMAP SYS_mmap
#define PROFILE_SYS_FSTATAT SYS_newfstatat
#define PROFILE_SYS_FCNTL SYS_fcntl
#endif

/* Newer than some headers, with one number everywhere. */
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* The body of a function with profile_syscall()'s parameters: the call, and what is `behind` it,
 * with operands of its own. */
#if defined(__x86_64__)
#define PROFILE_RAW(behind, ...)                                                                   \
    long result;                                                                                   \
    register long r10 __asm__("r10") = d;                                                          \
    register long r8 __asm__("r8") = e;                                                            \
    register long r9 __asm__("r9") = f;                                                            \
    __asm__ volatile("syscall" behind                                                              \
                     : "=a"(result)                                                                \
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)__VA_ARGS__  \
                     : "rcx", "r11", "memory", "cc");                                              \
    return result
#elif defined(__aarch64__)
#define PROFILE_RAW(behind, ...)                                                                   \
    register long x8 __asm__("x8") = number;                                                       \
    register long x0 __asm__("x0") = a;                                                            \
    register long x1 __asm__("x1") = b;                                                            \
    register long x2 __asm__("x2") = c;                                                            \
    register long x3 __asm__("x3") = d;                                                            \
    register long x4 __asm__("x4") = e;                                                            \
    register long x5 __asm__("x5") = f;                                                            \
    __asm__ volatile("svc 0" behind                                                                \
                     : "+r"(x0)                                                                    \
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)__VA_ARGS__             \
                     : "memory", "cc");                                                            \
    return x0
#endif

/* As many parameters as the kernel takes: the number of the call and six arguments. */
static inline long profile_syscall(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    PROFILE_RAW("", );
#elif defined(__i386__)
    /* ebp may be the compiler's, so the last argument goes there over the stack. */
    long result;
    __asm__ volatile("pushl %7\n\tpushl %%ebp\n\tmovl 4(%%esp), %%ebp\n\tint $0x80\n\t"
                     "popl %%ebp\n\taddl $4, %%esp"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e), "g"(f)
                     : "memory");
    return result;
#elif defined(__aarch64__)
    PROFILE_RAW("", );
#elif defined(__riscv) && __riscv_xlen == 64
    register long a7 __asm__("a7") = number;
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    register long a3 __asm__("a3") = d;
    register long a4 __asm__("a4") = e;
    register long a5 __asm__("a5") = f;
    __asm__ volatile("ecall"
                     : "+r"(a0)
                     : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
                     : "memory");
    return a0;
#elif defined(__powerpc64__)
    /* The summary overflow bit of CR0 says that r3 is an error; sc changes volatile registers. */
    register long r0 __asm__("r0") = number;
    register long r3 __asm__("r3") = a;
    register long r4 __asm__("r4") = b;
    register long r5 __asm__("r5") = c;
    register long r6 __asm__("r6") = d;
    register long r7 __asm__("r7") = e;
    register long r8 __asm__("r8") = f;
    __asm__ volatile("sc\n\tbns+ 1f\n\tneg %1, %1\n1:"
                     : "+r"(r0), "+r"(r3), "+r"(r4), "+r"(r5), "+r"(r6), "+r"(r7), "+r"(r8)
                     :
                     : "r9", "r10", "r11", "r12", "cr0", "ctr", "memory");
    return r3;
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
