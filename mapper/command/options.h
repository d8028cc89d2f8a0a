/* What servet-map is asked to do. */
#ifndef SERVET_MAPPER_COMMAND_OPTIONS_H
#define SERVET_MAPPER_COMMAND_OPTIONS_H

#include "mapper/command/common_options.h"

struct map_options {
    size_t workers, ranks;
    uint32_t *threads; /* by rank; NULL: not hybrid */
    const char *thread_list;
    bool memory, communication, paper, one_by_one, explain, compare;
    struct common_machine machine;
    const char *matrix;
    bool cluster, slurm;
    const char *nodes; /* file with the nodes of a job; NULL: all of the profile */
    const struct map_format *format;
    uint32_t smt;
    int kind;
};

/* Reads the command line; bad usage ends the program (cli.h). */
void map_options_read(int argc, char **argv, struct map_options *options);
void map_options_free(struct map_options *options);

/* `memory`, or the end of the program when it is NULL. */
void *map_needed(void *memory);

#endif
