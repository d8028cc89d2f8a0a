/* What one rank needs of a plan file (see spmd_plan.h for the form). */
#ifndef SERVET_MAPPER_SPMD_LIBRARY_PLAN_FILE_H
#define SERVET_MAPPER_SPMD_LIBRARY_PLAN_FILE_H

#include "mapper/spmd/library/servet_spmd.h"

enum { SPMD_FILE_MESSAGES = 8, SPMD_FILE_BOXES = 9 };

struct spmd_file_message {
    int to, dx, dy;
};

struct spmd_plan_file {
    struct servet_spmd_layout layout;
    struct spmd_file_message messages[SPMD_FILE_MESSAGES]; /* in the order of posting */
    size_t message_count;
    struct servet_spmd_box boxes[SPMD_FILE_BOXES]; /* by priority */
    size_t box_count;
};

/* 0, or -1 with one line in `error` naming the file. */
int spmd_plan_read(const char *path, int rank, int ranks, struct spmd_plan_file *out, char *error,
                   size_t size);

#endif
