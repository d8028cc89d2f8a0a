/* Why servet may be slower than another way to place a program: what is known of the two
 * placements. */
#ifndef SERVET_BENCH_REASON_H
#define SERVET_BENCH_REASON_H

#include "benchmarks/servet_bench/measure.h"
#include "benchmarks/servet_bench/report.h"

/* One sentence, for a comparison whose verdict is "slower". */
const char *reason_of(const struct comparison *comparison, const struct verdict *verdict);

#endif
