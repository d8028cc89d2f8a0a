/* What the files of mapper/formats/ promise one another and the rest of the room. */
#ifndef SERVET_MAPPER_FORMATS_FORMATS_H
#define SERVET_MAPPER_FORMATS_FORMATS_H

#include <stdio.h>

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
};

/* From what map_workers() (`threads` NULL: one each) or map_domains() gave. 0, -EINVAL (a PU number
 * that the profile does not have), -ENOMEM. */
int map_mapping_make(const struct servet_profile *profile, const uint32_t *pus, size_t ranks,
                     const uint32_t *threads, struct map_mapping *out);
void map_mapping_free(struct map_mapping *mapping);

/* Do all places lie on one node? */
bool map_mapping_one_node(const struct map_mapping *mapping);

/* Name of a node as the profile has it, "node17" where it has none. */
void map_mapping_node_name(const struct map_mapping *mapping, uint32_t node, char *name,
                           size_t size);

/* hwloc's logical number of every PU of the class, in the order of class->pus: their rank in the
 * tree of packages, NUMA nodes, caches and cores, siblings by their lowest PU. Owned: free(). 0 or
 * -ENOMEM. */
int map_logical_indices(const struct profile_class *node_class, uint32_t **out);

/* -- formats -- */

/* A mapping in the language of whoever carries it out: launchers, OpenMP runtimes, pinning
 * tools. */

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

/* -- print -- */

/* The printers behind the table of formats, see formats.h for their contract. */

/* Anything: [begin, end) is the whole mapping. */
int map_print_list(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_json(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_rankfile(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_host(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_hydra_hosts(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_slurm_hosts(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_hostfile(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);

/* One process: places [begin, end). */
int map_print_omp_places(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_gomp(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_kmp(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_taskset(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_numactl(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_hwloc_bind(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_likwid(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);

/* The ranks of one node: ranks [begin, end). */
int map_print_cpu_list(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_pe_list(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_pals(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_flux(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_hydra(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_impi_list(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_impi_domain(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_slurm_map(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);
int map_print_slurm_mask(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end);

#endif
