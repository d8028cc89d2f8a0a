/* The printers behind the table of formats, see formats.h for their contract. */
#ifndef SERVET_MAPPER_FORMATS_PRINT_H
#define SERVET_MAPPER_FORMATS_PRINT_H

#include <stdio.h>

#include "mapper/formats/mapping.h"

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
