#include "mapper/formats/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/formats/print.h"

/* The one list of formats: --format, --format help, the man page and the tests read it. */
const struct map_format map_formats[] = {
    {"list", "PU numbers, in worker order; one line per rank of a hybrid program",
     MAP_FORMAT_ANYTHING, map_print_list},
    {"json", "everything, for other programs", MAP_FORMAT_ANYTHING, map_print_json},
    {"omp-places", "environment of any OpenMP runtime: env $(...) ./app", MAP_FORMAT_PER_PROCESS,
     map_print_omp_places},
    {"gomp", "environment of GNU libgomp: env $(...) ./app", MAP_FORMAT_PER_PROCESS,
     map_print_gomp},
    {"kmp", "environment of LLVM and Intel OpenMP: env \"$(...)\" ./app", MAP_FORMAT_PER_PROCESS,
     map_print_kmp},
    {"taskset", "util-linux: $(...) ./app", MAP_FORMAT_PER_PROCESS, map_print_taskset},
    {"numactl", "numactl: $(...) ./app", MAP_FORMAT_PER_PROCESS, map_print_numactl},
    {"hwloc-bind", "hwloc: $(...) ./app", MAP_FORMAT_PER_PROCESS, map_print_hwloc_bind},
    {"likwid-pin", "LIKWID: $(...) ./app", MAP_FORMAT_PER_PROCESS, map_print_likwid},
    {"rankfile", "Open MPI: mpirun --mca rmaps_rank_file_physical 1 --rankfile FILE",
     MAP_FORMAT_ANYTHING, map_print_rankfile},
    {"cpu-list", "Open MPI, one node: mpirun $(...) ./app", MAP_FORMAT_EACH_NODE,
     map_print_cpu_list},
    {"host", "Open MPI, rank order over nodes: mpirun $(...) ./app", MAP_FORMAT_ANYTHING,
     map_print_host},
    {"hostfile",
     "one host per rank: Open MPI, mpirun --map-by seq --hostfile FILE; Slurm, SLURM_HOSTFILE",
     MAP_FORMAT_ANYTHING, map_print_hostfile},
    {"hydra-hosts", "MPICH, rank order over nodes: mpiexec $(...) ./app", MAP_FORMAT_ANYTHING,
     map_print_hydra_hosts},
    {"slurm-hosts", "Slurm, rank order over nodes: srun $(...) ./app", MAP_FORMAT_ANYTHING,
     map_print_slurm_hosts},
    {"hydra", "MPICH: mpiexec $(...) ./app", MAP_FORMAT_EACH_NODE, map_print_hydra},
    {"impi-list", "Intel MPI, one PU per rank: env $(...) mpirun", MAP_FORMAT_EACH_NODE,
     map_print_impi_list},
    {"impi-domain", "Intel MPI, ranks with threads: env $(...) mpirun", MAP_FORMAT_EACH_NODE,
     map_print_impi_domain},
    {"slurm-map", "Slurm, one PU per rank, whole nodes: srun $(...) ./app", MAP_FORMAT_EACH_NODE,
     map_print_slurm_map},
    {"slurm-mask", "Slurm, ranks with threads, whole nodes: srun $(...) ./app",
     MAP_FORMAT_EACH_NODE, map_print_slurm_mask},
    {0},
};

const struct map_format *map_format_find(const char *name)
{
    for (const struct map_format *format = map_formats; format->name; format++) {
        if (strcmp(format->name, name) == 0) {
            return format;
        }
    }
    return NULL;
}

void map_format_names(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (const struct map_format *format = map_formats; format->name && used < size; format++) {
        int n = snprintf(text + used, size - used, "%s%s", used ? ", " : "", format->name);
        used += n > 0 ? (size_t)n : 0;
    }
}

static int print_processes(FILE *out, const struct map_format *format,
                           const struct map_mapping *mapping, struct servet_error *error)
{
    if (!mapping->hybrid) {
        if (!map_mapping_one_node(mapping, 0, mapping->place_count)) {
            return profile_error(
                error, -EINVAL,
                "--format %s: expected a mapping on one node (this one spans several); rankfile, "
                "hostfile, list and json can say it",
                format->name);
        }
        int rc = format->print(out, mapping, 0, mapping->place_count);
        fputc('\n', out);
        return rc;
    }
    int rc = 0;
    for (size_t r = 0; rc == 0 && r < mapping->rank_count; r++) {
        rc = format->print(out, mapping, mapping->first[r], mapping->first[r + 1]);
        fputc('\n', out);
    }
    return rc;
}

static size_t next_node(const struct map_mapping *mapping, size_t rank)
{
    uint32_t node = mapping->places[mapping->first[rank]].node;
    while (rank < mapping->rank_count && mapping->places[mapping->first[rank]].node == node) {
        rank++;
    }
    return rank;
}

/* Ranks [a, a_end) and [b, b_end) have the same OS indices. */
static bool alike(const struct map_mapping *mapping, size_t a, size_t a_end, size_t b, size_t b_end)
{
    if (b_end - b > a_end - a) {
        return false;
    }
    for (size_t r = 0; r < b_end - b; r++) {
        size_t count = mapping->first[a + r + 1] - mapping->first[a + r];
        if (mapping->first[b + r + 1] - mapping->first[b + r] != count) {
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            if (mapping->places[mapping->first[a + r] + i].os_index !=
                mapping->places[mapping->first[b + r] + i].os_index) {
                return false;
            }
        }
    }
    return true;
}

static int print_each_node(FILE *out, const struct map_format *format,
                           const struct map_mapping *mapping, struct servet_error *error)
{
    size_t end = next_node(mapping, 0);
    for (size_t rank = end; rank < mapping->rank_count;) {
        size_t next = next_node(mapping, rank);
        if (!alike(mapping, 0, end, rank, next)) {
            return profile_error(error, -EINVAL,
                                 "--format %s: expected the same placement on every node, by "
                                 "blocks of ranks; rankfile, "
                                 "hostfile, list and json can say it",
                                 format->name);
        }
        rank = next;
    }
    int rc = format->print(out, mapping, 0, end);
    fputc('\n', out);
    return rc;
}

static int print_any(FILE *out, const struct map_format *format, const struct map_mapping *mapping,
                     struct servet_error *error)
{
    int rc;
    switch (format->reach) {
    case MAP_FORMAT_PER_PROCESS:
        rc = print_processes(out, format, mapping, error);
        break;
    case MAP_FORMAT_EACH_NODE:
        rc = print_each_node(out, format, mapping, error);
        break;
    default:
        rc = format->print(out, mapping, 0, mapping->place_count);
    }
    return rc == -ENOMEM ? profile_error(error, rc, "out of memory") : rc;
}

int map_format_print(FILE *out, const struct map_format *format, const struct map_mapping *mapping,
                     struct servet_error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    int rc = print_any(memory, format, mapping, error);
    if (fclose(memory) != 0 && rc == 0) {
        rc = profile_error(error, -ENOMEM, "out of memory");
    }
    if (rc == 0) {
        fwrite(text, 1, size, out);
    }
    free(text);
    return rc;
}
