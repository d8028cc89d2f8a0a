/* The costs of costs.h as a picture. */
#ifndef SERVET_BENCH_COSTS_PLOT_H
#define SERVET_BENCH_COSTS_PLOT_H

#include <jansson.h>

/* One panel for each thing that was measured, one bar for each way, seconds on a logarithmic axis,
 * from what costs_run() returned. By gnuplot, the format after the name (.svg, .png). Fails by
 * cli_fail(). */
void costs_plot(const char *path, const json_t *costs);

#endif
