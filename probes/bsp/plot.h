/* "Always plot the benchmark results": T(h) with its fit for each number of processors, and g and l
 * against p. */
#ifndef SERVET_PROBES_BSP_PLOT_H
#define SERVET_PROBES_BSP_PLOT_H

#include "probes/bsp/probe.h"

/* Writes bsp-BACKEND-pP.dat and .gp for each result, bsp-BACKEND (g and l against p) and
 * bsp-BACKEND-r (r against the length of the vectors) for all, and draws them (.svg) when gnuplot
 * is installed; if not, one line on stderr says so and the scripts stay. 0, -errno (a file cannot
 * be written).
 */
int probe_bsp_plot(const char *folder, const char *backend, const struct probe_bsp *found,
                   size_t count, struct servet_error *error);

#endif
