/* A mapping in the language of whoever carries it out: launchers, OpenMP runtimes, pinning
 * tools. */
#ifndef SERVET_MAPPER_FORMATS_FORMATS_H
#define SERVET_MAPPER_FORMATS_FORMATS_H

#include <stdio.h>

#include "mapper/formats/mapping.h"

/* What a format can say. */
enum map_format_reach {
    MAP_FORMAT_ANYTHING,    /* any mapping */
    MAP_FORMAT_PER_PROCESS, /* the threads of one process: one line per rank of a hybrid mapping; no
                             * process spans nodes
                             */
    MAP_FORMAT_EACH_NODE, /* the ranks of a node, said once for all nodes: every node used must look
                             alike */
};

struct map_format {
    const char *name;
    const char *purpose;
    enum map_format_reach reach;
    const char *with_threads; /* formats that can say ranks with threads, where this one cannot (one
                                 PU per rank); NULL: it can */
    bool names;               /* it writes the names of nodes, which a shell will read */
    /* Writes the mapping; of MAP_FORMAT_PER_PROCESS that of places [begin, end), one line without
     * its newline; of MAP_FORMAT_EACH_NODE ranks [begin, end). 0; -ENOMEM; -EINVAL: what its
     * consumer would do with it is not this mapping (cpu-list, map_format_print() words it). */
    int (*print)(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
};

/* The table ends with a nameless entry. */
extern const struct map_format map_formats[];

/* NULL when there is none of that name. */
const struct map_format *map_format_find(const char *name);

/* "a, b, c": the names. */
void map_format_names(char *text, size_t size);

/* Prints the whole mapping. 0; -EINVAL (the format cannot say it: the text names what it can);
 * -ENOMEM. Nothing is written unless all of it can be. */
int map_format_print(FILE *out, const struct map_format *format, const struct map_mapping *mapping,
                     struct servet_error *error);

#endif
