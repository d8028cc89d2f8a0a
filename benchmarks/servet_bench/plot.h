/* gnuplot as a child process: a script goes in, a picture comes out. */
#ifndef SERVET_BENCH_PLOT_H
#define SERVET_BENCH_PLOT_H

#include <stdio.h>

/* Starts gnuplot with a terminal that follows the name of `path` (.svg, .png, .pdf). cli_fail()
 * when it cannot, or the name says none of these. */
FILE *report_plot_open(const char *path, unsigned width, unsigned height);
/* Ends it; cli_fail() when gnuplot was not content. */
void report_plot_close(FILE *gnuplot, const char *path);
/* Writes `text` with what gnuplot would take for markup or quotes made harmless. */
void plot_text(FILE *gnuplot, const char *text);

#endif
