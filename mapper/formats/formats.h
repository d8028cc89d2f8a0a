/* The interface of mapper/formats/ to its own files and to the rest of the room. Commands alone
 * link it: where memory is short, they end. */
#pragma once

#include <stdio.h>

#include "mapper/devices/devices.h"
#include "mapper/map.h"

/* -- mapping -- */

/* A finished mapping, for printing: who sits where, by node and OS index. */

struct map_place {
    uint32_t pu; /* in the whole machine */
    uint32_t node, os_index;
};

/* Ranks own consecutive places: rank r those from first[r] to first[r + 1] - 1, its threads in
 * order. A mapping of plain workers (servet-map -n) has one place for each rank, and is not
 * `hybrid`. */
struct map_mapping {
    const struct servet_profile *profile;
    enum map_priority priority;
    bool hybrid;
    struct map_place *places;
    size_t place_count;
    size_t *first; /* rank_count + 1 */
    size_t rank_count;
    const struct map_devices *devices; /* borrowed; NULL: none were asked for */
};

/* From what map_workers() (`threads` NULL: one each) or map_domains() gave. */
struct map_mapping map_mapping_make(const struct servet_profile *profile, const uint32_t *pus,
                                    size_t ranks, const uint32_t *threads);
void map_mapping_free(struct map_mapping *mapping);

/* The first rank behind `rank` that is on another node than it. */
size_t map_mapping_next_node(const struct map_mapping *mapping, size_t rank);

/* How many of the rank's PUs are near one of its GPUs. */
size_t map_mapping_near(const struct map_mapping *mapping, size_t rank);

/* Do all places lie on one node? */
bool map_mapping_one_node(const struct map_mapping *mapping);

/* Name of a node as the profile has it, "node17" where it has none. */
void map_mapping_node_name(const struct map_mapping *mapping, uint32_t node, char *name,
                           size_t size);

/* hwloc's logical number of every PU of the class, in the order of class->pus: their rank in the
 * tree of packages, NUMA nodes, caches and cores, siblings by their lowest PU. Owned: free(). */
uint32_t *map_logical_indices(const struct profile_class *node_class);

/* -- formats -- */

/* A mapping in the language of its consumer: launchers, OpenMP runtimes, pinning tools. */

/* The mappings that a format can say. */
enum map_format_reach {
    MAP_FORMAT_ANYTHING,    /* any mapping */
    MAP_FORMAT_PER_PROCESS, /* the threads of one process: one line per rank of a hybrid mapping; no
                             * process spans nodes
                             */
    MAP_FORMAT_EACH_NODE, /* the ranks of a node, said once for all nodes: every node used must look
                             alike */
};

/* The words of a format: start, items (PUs of one process; ranks of a node) between `open` and
 * `close`, end. A member that is missing is "". Where a format names nodes, `open` stands between
 * the name and the PUs of a rank, which then has its number, too. */
struct map_words {
    const char *start, *open, *close, *between, *end;
    const char *count;     /* behind the number of ranks, before all; NULL: it is not there */
    const char *thread;    /* between the PUs of a rank */
    const char *memory[2]; /* before the first NUMA node to bind memory to, and before the others */
    bool mask;             /* items are hexadecimal masks */
    bool threads;          /* OMP_NUM_THREADS behind all */
    const char *gpus;      /* before the GPUs of the ranks, by their runtime's numbers: as PUs where
                              there is `thread`, else masks; NULL: the format cannot say them */
};

/* One entry of the table says all of a format: what it can say, and how. */
struct map_format {
    const char *name;
    const char *purpose;
    enum map_format_reach reach;
    const char *with_threads; /* formats that can say ranks with threads, where this one cannot (one
                                 PU per rank); NULL: it can */
    bool names;               /* it writes the names of nodes, which a shell will read */
    bool logical;             /* its numbers are hwloc's */
    bool ascending;           /* it is read as a set of hwloc's numbers, of PUs that are cores */
    struct map_words words;
    /* Of MAP_FORMAT_ANYTHING: it writes the whole mapping. */
    void (*print)(FILE *out, const struct map_format *format, const struct map_mapping *mapping);
};

/* The table ends with a nameless entry. */
extern const struct map_format map_formats[];

/* NULL when there is none of that name. */
const struct map_format *map_format_find(const char *name);

/* Prints the whole mapping. 0; -EINVAL (the format cannot say it: the text names what it can, and
 * nothing is written). */
int map_format_print(FILE *out, const struct map_format *format, const struct map_mapping *mapping,
                     struct servet_error *error);

/* Writes places [begin, end) of MAP_FORMAT_PER_PROCESS, ranks [begin, end) of one node of
 * MAP_FORMAT_EACH_NODE, with a newline. */
void map_print_words(FILE *out, const struct map_format *format, const struct map_mapping *mapping,
                     size_t begin, size_t end);
