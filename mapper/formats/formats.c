/* The table of formats, and what each can say: a mapping that its consumer would carry out
 * otherwise is refused, and nothing is written unless all of it can be. */
#include "mapper/formats/formats.h"
#include "profile/base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The one list of formats: --format, --format help, the man page and the tests read it. */
const struct map_format map_formats[] = {
    {.name = "list",
     .purpose = "PU numbers, in worker order; one line per rank of a hybrid program",
     .print = map_print_list},
    {.name = "json", .purpose = "everything, for other programs", .print = map_print_json},
    {.name = "omp-places",
     .purpose = "environment of any OpenMP runtime: env $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .print = map_print_omp_places},
    {.name = "gomp",
     .purpose = "environment of GNU libgomp: env $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .print = map_print_gomp},
    {.name = "kmp",
     .purpose = "environment of LLVM and Intel OpenMP: env $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .print = map_print_kmp},
    {.name = "taskset",
     .purpose = "util-linux: $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .print = map_print_taskset},
    {.name = "numactl",
     .purpose = "numactl, memory too: $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .print = map_print_numactl},
    {.name = "hwloc-bind",
     .purpose = "hwloc, memory too: $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .print = map_print_hwloc_bind},
    {.name = "likwid-pin",
     .purpose = "LIKWID: $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .print = map_print_likwid},
    {.name = "rankfile",
     .purpose = "Open MPI: mpirun --mca rmaps_rank_file_physical 1 --rankfile FILE",
     .names = true,
     .print = map_print_rankfile},
    {.name = "cpu-list",
     .purpose = "Open MPI 4, one node: mpirun $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .with_threads = "rankfile",
     .print = map_print_cpu_list},
    {.name = "pe-list",
     .purpose = "Open MPI 5, one PU per rank, whole nodes: mpirun $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .with_threads = "rankfile",
     .print = map_print_pe_list},
    {.name = "host",
     .purpose = "Open MPI, rank order over nodes: mpirun $(...) ./app",
     .names = true,
     .print = map_print_host},
    {.name = "hostfile",
     .purpose =
         "one host per rank: Open MPI, mpirun --map-by seq --hostfile FILE; Slurm, SLURM_HOSTFILE",
     .names = true,
     .print = map_print_hostfile},
    {.name = "hydra-hosts",
     .purpose = "MPICH, rank order over nodes: mpiexec $(...) ./app",
     .names = true,
     .print = map_print_hydra_hosts},
    {.name = "slurm-hosts",
     .purpose = "Slurm, rank order over nodes: srun $(...) ./app",
     .names = true,
     .print = map_print_slurm_hosts},
    {.name = "hydra",
     .purpose = "MPICH: mpiexec $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .print = map_print_hydra},
    {.name = "impi-list",
     .purpose = "Intel MPI, one PU per rank: env $(...) mpirun",
     .reach = MAP_FORMAT_EACH_NODE,
     .with_threads = "impi-domain",
     .print = map_print_impi_list},
    {.name = "impi-domain",
     .purpose = "Intel MPI, ranks with threads: env $(...) mpirun",
     .reach = MAP_FORMAT_EACH_NODE,
     .print = map_print_impi_domain},
    {.name = "slurm-map",
     .purpose = "Slurm, one PU per rank, whole nodes: srun $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .with_threads = "slurm-mask",
     .print = map_print_slurm_map},
    {.name = "slurm-mask",
     .purpose = "Slurm, ranks with threads, whole nodes: srun $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .print = map_print_slurm_mask},
    {.name = "pals",
     .purpose = "Cray PALS, whole nodes: mpiexec $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .print = map_print_pals},
    {.name = "flux",
     .purpose = "Flux, whole nodes: flux run $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .print = map_print_flux},
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
    return rc == -EINVAL
               ? profile_error(error, rc,
                               "--format %s: Open MPI 4 reads it as a set of hwloc's numbers: "
                               "expected ascending PUs that are numbered as hwloc counts cores; "
                               "rankfile can say this mapping",
                               format->name)
               : rc;
}

/* Only what no shell interprets and no launcher takes for an option. */
static bool plain_name(const char *name)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return name[0] && name[0] != '-' && name[strspn(name, safe)] == '\0';
}

/* Can the format say this mapping, in words that reach its consumer as they are? */
static int check_format(const struct map_format *format, const struct map_mapping *mapping,
                        struct servet_error *error)
{
    if (format->with_threads && mapping->place_count > mapping->rank_count) {
        return profile_error(error, -EINVAL,
                             "--format %s: expected one PU per rank (these ranks have threads); %s "
                             "can say it",
                             format->name, format->with_threads);
    }
    for (size_t r = 0; format->names && r < mapping->rank_count; r++) {
        char name[256];
        map_mapping_node_name(mapping, mapping->places[mapping->first[r]].node, name, sizeof name);
        if (!plain_name(name)) {
            return profile_error(
                error, -EINVAL,
                "--format %s: node name of rank %zu: expected letters, digits, '.', "
                "'_' and '-' only",
                format->name, r);
        }
    }
    return 0;
}

static int print_any(FILE *out, const struct map_format *format, const struct map_mapping *mapping,
                     struct servet_error *error)
{
    int rc = check_format(format, mapping, error);
    if (rc < 0) {
        return rc;
    }
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
    FILE *memory = profile_stream_open(&text, &size);
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
