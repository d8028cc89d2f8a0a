/* What changed between two profiles, and whether the mapping would. */
#ifndef SERVET_REPORT_DIFF_H
#define SERVET_REPORT_DIFF_H

#include "model.h"

#include <stdio.h>

/* Numbers that lie closer than this, or than the spread of either of them, count as the same: repeated measurements of
 * one idle machine differ by less. */
#define DIFF_TOLERANCE 0.1

/* Prints, one line each, the figures that changed, came and went; then whether the weight algorithm would choose other
 * PUs, for every number of workers up to DIFF_WORKERS_ALL and by powers of two beyond. 0 or -ENOMEM. */
int diff_print(const struct servet_profile *old, const struct servet_profile *new, FILE *stream,
               struct servet_error *error);
#define DIFF_WORKERS_ALL 16

#endif
