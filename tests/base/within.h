/* Is a figure the expected one, but for this part of it? For sums and fits, which may be off by a
 * part of themselves. */
#pragma once

#include <check.h>
#include <math.h>

static inline void assert_within(double found, double expected, double part)
{
    ck_assert_msg(fabs(found - expected) <= part * fabs(expected),
                  "%.17g, expected %.17g within %g", found, expected, part);
}
