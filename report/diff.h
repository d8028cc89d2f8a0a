/* What changed between two profiles, and whether the mapping would. */
#ifndef SERVET_REPORT_DIFF_H
#define SERVET_REPORT_DIFF_H

#include "model.h"

#include <jansson.h>
#include <stdio.h>

/* Numbers that lie closer than this, or than the spread of either of them, count as the same: repeated measurements of
 * one idle machine differ by less. */
#define DIFF_TOLERANCE 0.1

/* Compares the figures, and whether the weight algorithm would choose other PUs, for every number of workers up to
 * DIFF_WORKERS_ALL and by powers of two beyond. A new object: "same" (how many figures), "changed" (list of where,
 * figure, old, new, and for numbers ratio = new / old), "gone" and "new" (where, figure, value), "tolerance",
 * "most_workers", "mappings" (those that differ: workers, priority, old and new PUs). 0 or -ENOMEM. */
int diff_profiles(const struct servet_profile *old, const struct servet_profile *new, json_t **out,
                  struct servet_error *error);
#define DIFF_WORKERS_ALL 16

/* The same in words, one line each. */
void diff_print(const json_t *diff, FILE *stream);

#endif
