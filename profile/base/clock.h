/* The time of a clock as one number. Inline: a measurement reads it in its inner loop. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds of any of the system's clocks (CLOCK_BOOTTIME, CLOCK_THREAD_CPUTIME_ID, …). */
static inline uint64_t profile_clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Seconds of any clock. */
static inline double profile_clock_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Nanoseconds, and seconds, since some moment of the past; it never goes back. */
static inline uint64_t profile_now_ns(void)
{
    return profile_clock_ns(CLOCK_MONOTONIC);
}

static inline double profile_now_s(void)
{
    return profile_clock_s(CLOCK_MONOTONIC);
}
