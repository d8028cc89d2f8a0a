/* Formats that spread ranks over nodes, for launchers that are told counts and names. */
#include "mapper/formats/formats.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

/* Ranks from `first` on that are on its node. */
static size_t run_of(const struct map_mapping *mapping, size_t first)
{
    size_t rank = first;
    while (rank < mapping->rank_count && mapping->places[mapping->first[rank]].node ==
                                             mapping->places[mapping->first[first]].node) {
        rank++;
    }
    return rank - first;
}

/* As many on each node, but perhaps on the last one? */
static bool even(const struct map_mapping *mapping)
{
    size_t each = run_of(mapping, 0);
    for (size_t rank = 0, count; rank < mapping->rank_count; rank += count) {
        count = run_of(mapping, rank);
        if (count != each && (count > each || rank + count < mapping->rank_count)) {
            return false;
        }
    }
    return true;
}

int map_print_hydra_hosts(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    bool same = even(mapping);
    (void)begin;
    (void)end;
    fprintf(out, "-hosts ");
    for (size_t rank = 0, count; rank < mapping->rank_count; rank += count) {
        char name[256];
        count = run_of(mapping, rank);
        map_mapping_node_name(mapping, mapping->places[mapping->first[rank]].node, name,
                              sizeof name);
        fprintf(out, "%s%s", rank ? "," : "", name);
        if (!same) {
            fprintf(out, ":%zu", count);
        }
    }
    if (same) {
        fprintf(out, " -ppn %zu", run_of(mapping, 0));
    }
    fputc('\n', out);
    return 0;
}

int map_print_slurm_hosts(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    fprintf(out, "--distribution=arbitrary --ntasks=%zu --nodelist=", mapping->rank_count);
    for (size_t rank = 0; rank < mapping->rank_count; rank++) {
        char name[256];
        map_mapping_node_name(mapping, mapping->places[mapping->first[rank]].node, name,
                              sizeof name);
        fprintf(out, "%s%s", rank ? "," : "", name);
    }
    fputc('\n', out);
    return 0;
}

/* Formats of our own: the list and JSON. */

static void print_numbers(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        fprintf(out, "%s%u", i > begin ? "," : "", mapping->places[i].pu);
    }
    fputc('\n', out);
}

int map_print_list(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    if (!mapping->hybrid) {
        print_numbers(out, mapping, begin, end);
        return 0;
    }
    for (size_t r = 0; r < mapping->rank_count; r++) {
        print_numbers(out, mapping, mapping->first[r], mapping->first[r + 1]);
    }
    return 0;
}

static json_t *threads_json(const struct map_mapping *mapping, size_t rank)
{
    json_t *threads = json_array();
    for (size_t i = mapping->first[rank]; threads && i < mapping->first[rank + 1]; i++) {
        const struct map_place *place = &mapping->places[i];
        json_array_append_new(threads, json_pack("{s:I, s:I}", "pu", (json_int_t)place->pu,
                                                 "os_index", (json_int_t)place->os_index));
    }
    return threads;
}

static json_t *rank_json(const struct map_mapping *mapping, size_t rank)
{
    const struct map_place *place = &mapping->places[mapping->first[rank]];
    char name[256];
    map_mapping_node_name(mapping, place->node, name, sizeof name);
    if (mapping->hybrid) {
        return json_pack("{s:I, s:s, s:o}", "rank", (json_int_t)rank, "node", name, "threads",
                         threads_json(mapping, rank));
    }
    return json_pack("{s:I, s:s, s:I, s:I}", "worker", (json_int_t)rank, "node", name, "pu",
                     (json_int_t)place->pu, "os_index", (json_int_t)place->os_index);
}

int map_print_json(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    json_t *places = json_array();
    for (size_t r = 0; places && r < mapping->rank_count; r++) {
        if (json_array_append_new(places, rank_json(mapping, r)) < 0) {
            json_decref(places);
            return -ENOMEM;
        }
    }
    json_t *root = json_pack(
        "{s:s, s:b, s:o}", "priority", mapping->priority == MAP_MEMORY ? "memory" : "communication",
        "measured", mapping->profile->measured, mapping->hybrid ? "ranks" : "workers", places);
    if (!root) {
        return -ENOMEM;
    }
    int rc = json_dumpf(root, out, JSON_INDENT(2));
    json_decref(root);
    fputc('\n', out);
    return rc < 0 ? -ENOMEM : 0;
}

/* Formats that place the threads of one process. */

static void print_indices(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        fprintf(out, "%s%u", i > begin ? "," : "", mapping->places[i].os_index);
    }
}

/* One place per thread, in thread order (OpenMP 5.2, sections 21.1.6 and 21.1.7). */
int map_print_omp_places(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "OMP_PLACES=");
    for (size_t i = begin; i < end; i++) {
        fprintf(out, "%s{%u}", i > begin ? "," : "", mapping->places[i].os_index);
    }
    fprintf(out, " OMP_PROC_BIND=true OMP_NUM_THREADS=%zu", end - begin);
    return 0;
}

int map_print_gomp(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "GOMP_CPU_AFFINITY=");
    print_indices(out, mapping, begin, end);
    fprintf(out, " OMP_NUM_THREADS=%zu", end - begin);
    return 0;
}

int map_print_kmp(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "KMP_AFFINITY=granularity=fine,explicit,proclist=[");
    print_indices(out, mapping, begin, end);
    fprintf(out, "] OMP_NUM_THREADS=%zu", end - begin);
    return 0;
}

int map_print_taskset(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "taskset -c ");
    print_indices(out, mapping, begin, end);
    return 0;
}

/* Numbers of the NUMA nodes with memory that the PUs of places [begin, end) belong to, behind
 * `first` and then `next`; nothing where those are all that have PUs: there is nothing to bind. */
static void print_memory(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end,
                         const char *first, const char *next)
{
    const struct profile_class *class =
        profile_node_class(mapping->profile, mapping->places[begin].node);
    uint32_t used[class->numa_count + 1];
    size_t used_count = 0, with_memory = 0;
    for (size_t n = 0; n < class->numa_count; n++) {
        const struct profile_numa *numa = &class->numa[n];
        bool ours = false;
        for (size_t i = begin; numa->memory_bytes && !ours && i < end; i++) {
            ours = profile_set_has(&numa->pus, mapping->places[i].os_index);
        }
        with_memory += numa->memory_bytes && numa->pus.count ? 1 : 0;
        if (ours) {
            used[used_count++] = numa->os_index;
        }
    }
    for (size_t n = 0; used_count < with_memory && n < used_count; n++) {
        fprintf(out, "%s%u", n ? next : first, used[n]);
    }
}

int map_print_numactl(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "numactl -C ");
    print_indices(out, mapping, begin, end);
    print_memory(out, mapping, begin, end, " -m ", ",");
    return 0;
}

int map_print_hwloc_bind(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "hwloc-bind --physical");
    for (size_t i = begin; i < end; i++) {
        fprintf(out, " pu:%u", mapping->places[i].os_index);
    }
    print_memory(out, mapping, begin, end, " --membind node:", " node:");
    fprintf(out, " --");
    return 0;
}

int map_print_likwid(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "likwid-pin -c ");
    print_indices(out, mapping, begin, end);
    return 0;
}

/* Formats that place ranks. */

static void print_joined(FILE *out, const struct map_mapping *mapping, size_t rank,
                         const char *separator)
{
    for (size_t i = mapping->first[rank]; i < mapping->first[rank + 1]; i++) {
        fprintf(out, "%s%u", i > mapping->first[rank] ? separator : "",
                mapping->places[i].os_index);
    }
}

/* The PUs of a rank as a hexadecimal mask without leading zeros. */
static int print_mask(FILE *out, const struct map_mapping *mapping, size_t rank)
{
    uint32_t highest = 0;
    for (size_t i = mapping->first[rank]; i < mapping->first[rank + 1]; i++) {
        highest = mapping->places[i].os_index > highest ? mapping->places[i].os_index : highest;
    }
    size_t digits = highest / 4 + 1;
    unsigned char *nibbles = calloc(digits, 1);
    if (!nibbles) {
        return -ENOMEM;
    }
    for (size_t i = mapping->first[rank]; i < mapping->first[rank + 1]; i++) {
        uint32_t index = mapping->places[i].os_index;
        nibbles[index / 4] = (unsigned char)(nibbles[index / 4] | 1u << index % 4);
    }
    for (size_t d = digits; d-- > 0;) {
        fprintf(out, "%x", nibbles[d]);
    }
    free(nibbles);
    return 0;
}

/* Slots are OS indices: with Open MPI 4 rmaps_rank_file_physical must be set, or they are read as
 * logical, and --use-hwthread-cpus, or a rank gets the whole core of each. */
int map_print_rankfile(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    for (size_t r = 0; r < mapping->rank_count; r++) {
        char name[256];
        map_mapping_node_name(mapping, mapping->places[mapping->first[r]].node, name, sizeof name);
        fprintf(out, "rank %zu=%s slot=", r, name);
        print_joined(out, mapping, r, ",");
        fputc('\n', out);
    }
    return 0;
}

/* Without `seq`, Open MPI takes the node of mpirun first, whatever the order, and all ranks of a
 * node together. */
int map_print_host(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    fprintf(out, "--map-by seq -host ");
    for (size_t r = 0; r < mapping->rank_count; r++) {
        char name[256];
        map_mapping_node_name(mapping, mapping->places[mapping->first[r]].node, name, sizeof name);
        fprintf(out, "%s%s", r ? "," : "", name);
    }
    fputc('\n', out);
    return 0;
}

int map_print_hostfile(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    for (size_t r = 0; r < mapping->rank_count; r++) {
        char name[256];
        map_mapping_node_name(mapping, mapping->places[mapping->first[r]].node, name, sizeof name);
        fprintf(out, "%s\n", name);
    }
    return 0;
}

static void print_ranks(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end,
                        const char *separator)
{
    for (size_t r = begin; r < end; r++) {
        fputs(r > begin ? "," : "", out);
        print_joined(out, mapping, r, separator);
    }
}

/* Open MPI 4 takes the list for a set of hwloc's logical cores and hands them out in ascending
 * order, whatever the order in the list. To see it:
 *
 *     mpirun --bind-to cpu-list:ordered --cpu-list 1,0 -np 1 grep Cpus /proc/self/status
 */
int map_print_cpu_list(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    const struct profile_class *class =
        profile_node_class(mapping->profile, mapping->places[mapping->first[begin]].node);
    uint32_t *logical;
    if (map_logical_indices(class, &logical) < 0) {
        return -ENOMEM;
    }
    bool same = class->cores.group_count == 0;
    for (size_t i = 0; i < class->pus.count; i++) {
        same = same && logical[i] == class->pus.ids[i];
    }
    free(logical);
    for (size_t r = begin + 1; r < end; r++) {
        same = same && mapping->places[mapping->first[r]].os_index >
                           mapping->places[mapping->first[r - 1]].os_index;
    }
    fprintf(out, "--bind-to cpu-list:ordered --cpu-list ");
    print_ranks(out, mapping, begin, end, ",");
    return same ? 0 : -EINVAL;
}

/* Open MPI 5 counts hardware threads as hwloc does, in the order of the tree (open-mpi/prrte issue
 * 63). */
int map_print_pe_list(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    const struct profile_class *class =
        profile_node_class(mapping->profile, mapping->places[mapping->first[begin]].node);
    uint32_t *logical;
    if (map_logical_indices(class, &logical) < 0) {
        return -ENOMEM;
    }
    fprintf(out, "--bind-to hwthread --map-by pe-list=");
    for (size_t r = begin; r < end; r++) {
        size_t at = 0;
        while (class->pus.ids[at] != mapping->places[mapping->first[r]].os_index) {
            at++;
        }
        fprintf(out, "%s%u", r > begin ? "," : "", logical[at]);
    }
    fprintf(out, ":ordered:hwtcpus");
    free(logical);
    return 0;
}

/* Lists of PUs, one per rank of the node, behind colons. */
int map_print_pals(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "--cpu-bind list");
    for (size_t r = begin; r < end; r++) {
        fputc(':', out);
        print_joined(out, mapping, r, ",");
    }
    return 0;
}

/* The shell of Flux reads one set per task; no blank and no quote, so that $(...) hands it on. */
int map_print_flux(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "-o cpu-affinity=map:");
    for (size_t r = begin; r < end; r++) {
        fputs(r > begin ? ";" : "", out);
        print_joined(out, mapping, r, ",");
    }
    return 0;
}

int map_print_hydra(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "-bind-to user:");
    print_ranks(out, mapping, begin, end, "+");
    return 0;
}

int map_print_impi_list(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "I_MPI_PIN=1 I_MPI_PIN_PROCESSOR_LIST=");
    print_ranks(out, mapping, begin, end, ",");
    return 0;
}

static int print_masks(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end,
                       const char *prefix)
{
    int rc = 0;
    for (size_t r = begin; rc == 0 && r < end; r++) {
        fprintf(out, "%s%s", r > begin ? "," : "", prefix);
        rc = print_mask(out, mapping, r);
    }
    return rc;
}

int map_print_impi_domain(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "I_MPI_PIN=1 I_MPI_PIN_DOMAIN=[");
    int rc = print_masks(out, mapping, begin, end, "");
    fputc(']', out);
    return rc;
}

int map_print_slurm_map(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "--cpu-bind=map_cpu:");
    print_ranks(out, mapping, begin, end, ",");
    return 0;
}

int map_print_slurm_mask(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    fprintf(out, "--cpu-bind=mask_cpu:");
    return print_masks(out, mapping, begin, end, "0x");
}
