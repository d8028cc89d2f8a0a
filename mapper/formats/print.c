/* The table of formats, and what writes them. */
#include <jansson.h>

#include "mapper/formats/formats.h"
#include "profile/base/cli.h"
#include "profile/scope.h"

/* -- names of nodes -- */

static void print_name(FILE *out, const struct map_mapping *mapping, size_t rank)
{
    char name[256];
    map_mapping_node_name(mapping, mapping->places[mapping->first[rank]].node, name, sizeof name);
    fputs(name, out);
}

/* Where as many ranks are on each node, but perhaps on the last one, their number stands behind all
 * names. */
static void print_hydra_hosts(FILE *out, const struct map_format *format,
                              const struct map_mapping *mapping)
{
    (void)format;
    size_t each = map_mapping_next_node(mapping, 0);
    bool even = true;
    for (size_t rank = 0, next; rank < mapping->rank_count; rank = next) {
        next = map_mapping_next_node(mapping, rank);
        even = even && (next == mapping->rank_count ? next - rank <= each : next - rank == each);
    }
    fprintf(out, "-hosts ");
    for (size_t rank = 0, next; rank < mapping->rank_count; rank = next) {
        next = map_mapping_next_node(mapping, rank);
        fputs(rank ? "," : "", out);
        print_name(out, mapping, rank);
        if (!even) {
            fprintf(out, ":%zu", next - rank);
        }
    }
    if (even) {
        fprintf(out, " -ppn %zu", each);
    }
    fputc('\n', out);
}

/* -- anything -- */

static void print_list(FILE *out, const struct map_format *format,
                       const struct map_mapping *mapping)
{
    (void)format;
    for (size_t r = 0; r < mapping->rank_count; r++) {
        for (size_t i = mapping->first[r]; i < mapping->first[r + 1]; i++) {
            bool line = mapping->hybrid && i == mapping->first[r];
            fprintf(out, "%s%u", i == 0 ? "" : line ? "\n" : ",", mapping->places[i].pu);
        }
    }
    fputc('\n', out);
}

static json_t *threads_json(const struct map_mapping *mapping, size_t rank)
{
    json_t *threads = json_array();
    for (size_t i = mapping->first[rank]; i < mapping->first[rank + 1]; i++) {
        const struct map_place *place = &mapping->places[i];
        json_array_append_new(threads, json_pack("{s:I, s:I}", "pu", (json_int_t)place->pu,
                                                 "os_index", (json_int_t)place->os_index));
    }
    return threads;
}

/* -- devices -- */

/* The rank's device of that kind behind `before` (NULL: its first); NULL: there is no other. */
static const struct map_held *next_held(const struct map_mapping *mapping, size_t rank,
                                        enum profile_device_kind kind,
                                        const struct map_held *before)
{
    const struct map_devices *all = mapping->devices;
    if (!all) {
        return NULL;
    }
    const struct map_held *at = before ? before + 1 : all->held + all->first[rank];
    while (at < all->held + all->first[rank + 1] && at->device->kind != kind) {
        at++;
    }
    return at < all->held + all->first[rank + 1] ? at : NULL;
}

/* A column: the rank's devices of one kind as their runtimes call them, a far one marked by "*", or
 * their cards, each once: dies of one card lie beside one another. "-" where it has none. */
static void print_rank_devices(FILE *out, const struct map_mapping *mapping, size_t rank,
                               enum profile_device_kind kind, bool cards)
{
    const char *between = "\t";
    uint32_t last = PROFILE_NOT_SAID;
    for (const struct map_held *held = NULL; (held = next_held(mapping, rank, kind, held));) {
        if (!cards) {
            fprintf(out, "%s%s%s", between, held->device->name, held->far ? "*" : "");
        } else if (held->device->card != last) {
            last = held->device->card;
            fprintf(out, "%s%u", between, last);
        }
        between = ",";
    }
    fputs(*between == ',' ? "" : "\t-", out);
}

size_t map_mapping_near(const struct map_mapping *mapping, size_t rank)
{
    size_t near = 0;
    for (size_t i = mapping->first[rank]; i < mapping->first[rank + 1]; i++) {
        const struct map_held *held = next_held(mapping, rank, PROFILE_GPU, NULL);
        while (held && !profile_set_has(&held->device->pus, mapping->places[i].os_index)) {
            held = next_held(mapping, rank, PROFILE_GPU, held);
        }
        near += held != NULL;
    }
    return near;
}

/* "far" and "near" of none and of all. */
static void print_distance(FILE *out, const struct map_mapping *mapping, size_t rank)
{
    const size_t count = mapping->first[rank + 1] - mapping->first[rank];
    const size_t near = map_mapping_near(mapping, rank);
    if (near && near < count) {
        fprintf(out, "\t%zu of %zu near\n", near, count);
        return;
    }
    bool has = next_held(mapping, rank, PROFILE_GPU, NULL);
    fprintf(out, "\t%s\n", near ? "near" : has ? "far" : "-");
}

/* The lists are as long as they are: columns are separated by tabs, for cut(1) and column(1). */
static void print_devices(FILE *out, const struct map_format *format,
                          const struct map_mapping *mapping)
{
    (void)format;
    fprintf(out, "rank\tnode\tPUs\tGPUs\tcards\tNICs\tdistance\n");
    for (size_t r = 0; r < mapping->rank_count; r++) {
        fprintf(out, "%zu\t", r);
        print_name(out, mapping, r);
        for (size_t i = mapping->first[r]; i < mapping->first[r + 1]; i++) {
            fprintf(out, "%s%u", i > mapping->first[r] ? "," : "\t", mapping->places[i].os_index);
        }
        print_rank_devices(out, mapping, r, PROFILE_GPU, false);
        print_rank_devices(out, mapping, r, PROFILE_GPU, true);
        print_rank_devices(out, mapping, r, PROFILE_NIC, false);
        print_distance(out, mapping, r);
    }
}

static json_t *device_json(const struct map_held *held)
{
    const struct profile_device *device = held->device;
    json_t *number = device->number == PROFILE_NOT_SAID ? NULL : json_integer(device->number);
    return json_pack("{s:s, s:s*, s:s*, s:o*, s:I, s:b}", "name", device->name, "bus_id",
                     device->bus_id, "uuid", device->uuid, "number", number, "card",
                     (json_int_t)device->card, "near", !held->far);
}

static void add_rank_devices(json_t *rank_object, const struct map_mapping *mapping, size_t rank)
{
    static const char *const keys[] = {[PROFILE_GPU] = "gpus", [PROFILE_NIC] = "nics"};
    for (enum profile_device_kind kind = PROFILE_GPU; mapping->devices && kind <= PROFILE_NIC;
         kind++) {
        json_t *list = json_array();
        for (const struct map_held *held = NULL; (held = next_held(mapping, rank, kind, held));) {
            json_array_append_new(list, device_json(held));
        }
        json_object_set_new(rank_object, keys[kind], list);
    }
}

/* jansson's functions do not fail in a command (cli.c). */
static json_t *rank_json(const struct map_mapping *mapping, size_t rank)
{
    const struct map_place *place = &mapping->places[mapping->first[rank]];
    char name[256];
    json_t *object;
    map_mapping_node_name(mapping, place->node, name, sizeof name);
    if (mapping->hybrid) {
        object = json_pack("{s:I, s:s, s:o}", "rank", (json_int_t)rank, "node", name, "threads",
                           threads_json(mapping, rank));
    } else {
        object = json_pack("{s:I, s:s, s:I, s:I}", "worker", (json_int_t)rank, "node", name, "pu",
                           (json_int_t)place->pu, "os_index", (json_int_t)place->os_index);
    }
    add_rank_devices(object, mapping, rank);
    return object;
}

static void print_json(FILE *out, const struct map_format *format,
                       const struct map_mapping *mapping)
{
    (void)format;
    json_t *places = json_array();
    for (size_t r = 0; r < mapping->rank_count; r++) {
        json_array_append_new(places, rank_json(mapping, r));
    }
    json_t *root = json_pack(
        "{s:s, s:b, s:o}", "priority", mapping->priority == MAP_MEMORY ? "memory" : "communication",
        "measured", mapping->profile->measured, mapping->hybrid ? "ranks" : "workers", places);
    cli_done(json_dumpf(cli_needed(root), out, JSON_INDENT(2)));
    json_decref(root);
    fputc('\n', out);
}

/* -- words of the table -- */

/* Numbers of the NUMA nodes with memory that the PUs of places [begin, end) belong to, behind
 * memory[0] and then memory[1]; nothing where those are all that have PUs: there is nothing to
 * bind. */
static void print_memory_nodes(FILE *out, const struct map_mapping *mapping, size_t begin,
                               size_t end, const char *const memory[2])
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
        fprintf(out, "%s%u", memory[n > 0], used[n]);
    }
}

/* The PUs of places [begin, end) as a hexadecimal mask without leading zeros. */
static void print_mask(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end)
{
    uint32_t highest = 0;
    for (size_t i = begin; i < end; i++) {
        highest = mapping->places[i].os_index > highest ? mapping->places[i].os_index : highest;
    }
    for (uint32_t nibble = highest / 4 + 1; nibble-- > 0;) {
        unsigned digit = 0;
        for (size_t i = begin; i < end; i++) {
            uint32_t index = mapping->places[i].os_index;
            digit |= index / 4 == nibble ? 1u << index % 4 : 0;
        }
        fprintf(out, "%x", digit);
    }
}

/* Slurm's masks have 64 bits at most here. */
#define MOST_GPUS 64

static bool gpus_are_numbered(const struct map_mapping *mapping, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const struct map_held *held = next_held(mapping, r, PROFILE_GPU, NULL);
        if (!held) {
            return false;
        }
        for (; held; held = next_held(mapping, r, PROFILE_GPU, held)) {
            if (held->device->number >= MOST_GPUS) {
                return false;
            }
        }
    }
    return true;
}

/* The GPUs of ranks [begin, end) by number, as lists where the format has lists of PUs, else as
 * masks; nothing where one has no number. */
static void print_gpus(FILE *out, const struct map_mapping *mapping, size_t begin, size_t end,
                       const struct map_words *words)
{
    if (!words->gpus || !gpus_are_numbered(mapping, begin, end)) {
        return;
    }
    for (size_t r = begin; r < end; r++) {
        const char *separator = r > begin ? words->between : words->gpus;
        unsigned long long mask = 0;
        for (const struct map_held *held = NULL;
             (held = next_held(mapping, r, PROFILE_GPU, held));) {
            mask |= 1ull << held->device->number;
            if (words->thread) {
                fprintf(out, "%s%u", separator, held->device->number);
                separator = words->thread;
            }
        }
        if (!words->thread) {
            fprintf(out, "%s0x%llx", separator, mask);
        }
    }
}

/* hwloc's number of every PU of the rank's node, for formats that count so; else NULL: OS
 * indices. */
static uint32_t *logical_of(const struct map_format *format, const struct map_mapping *mapping,
                            size_t rank)
{
    if (!format->logical) {
        return NULL; /* before `rank` is looked at: those of one process begin at a place */
    }
    const uint32_t node = mapping->places[mapping->first[rank]].node;
    return map_logical_indices(profile_node_class(mapping->profile, node));
}

static uint32_t printed_number(const struct map_mapping *mapping, size_t at,
                               const uint32_t *logical)
{
    const struct map_place *place = &mapping->places[at];
    const struct profile_set *pus = &profile_node_class(mapping->profile, place->node)->pus;
    return logical ? logical[profile_set_position(pus, place->os_index)] : place->os_index;
}

/* The ranks in their order, by the names of their nodes. With Open MPI 4 slots are OS indices:
 * rmaps_rank_file_physical must be set, or they are read as logical, and --use-hwthread-cpus, or a
 * rank gets the whole core of each. PRRTE has no physical slots
 * (src/docs/prrte-rst-content/detail-placement-rankfiles.rst): a slot is hwloc's number of a
 * hardware thread, by HWTCPUS, else of a core. */
static void print_ranks(FILE *out, const struct map_format *format,
                        const struct map_mapping *mapping)
{
    const struct map_words *words = &format->words;
    fputs(words->start, out);
    if (words->count) {
        fprintf(out, "%zu%s", mapping->rank_count, words->count);
    }
    for (size_t rank = 0, end; rank < mapping->rank_count;) {
        FREED uint32_t *logical = logical_of(format, mapping, rank);
        end = map_mapping_next_node(mapping, rank);
        for (; rank < end; rank++) {
            fputs(rank ? words->between : "", out);
            if (words->open) {
                fprintf(out, "rank %zu=", rank);
            }
            print_name(out, mapping, rank);
            for (size_t i = mapping->first[rank]; words->open && i < mapping->first[rank + 1];
                 i++) {
                fprintf(out, "%s%u", i > mapping->first[rank] ? "," : words->open,
                        printed_number(mapping, i, logical));
            }
        }
    }
    fputc('\n', out);
}

/* One process: each of the places [begin, end) is an item. A node: each of the ranks [begin, end)
 * is one, with all its places. */
void map_print_words(FILE *out, const struct map_format *format, const struct map_mapping *mapping,
                     size_t begin, size_t end)
{
    const struct map_words *words = &format->words;
    bool node = format->reach == MAP_FORMAT_EACH_NODE;
    FREED uint32_t *logical = logical_of(format, mapping, begin);
    fputs(words->start, out);
    for (size_t item = begin; item < end; item++) {
        size_t first = node ? mapping->first[item] : item;
        size_t last = node ? mapping->first[item + 1] : item + 1;
        fprintf(out, "%s%s", item > begin ? words->between : "", words->open ? words->open : "");
        if (words->mask) {
            print_mask(out, mapping, first, last);
        }
        for (size_t i = first; !words->mask && i < last; i++) {
            fprintf(out, "%s%u", i > first ? words->thread : "",
                    printed_number(mapping, i, logical));
        }
        fputs(words->close ? words->close : "", out);
    }
    if (words->memory[0]) {
        print_memory_nodes(out, mapping, begin, end, words->memory);
    }
    fputs(words->end ? words->end : "", out);
    if (words->threads) {
        fprintf(out, " OMP_NUM_THREADS=%zu", end - begin);
    }
    if (node) {
        print_gpus(out, mapping, begin, end, words);
    }
    fputc('\n', out);
}

/* -- the table -- */

#define GPU_BIND " --gpu-bind=mask_gpu:"

/* The one list of formats: --format, --format help, the man page and the tests read it. */
const struct map_format map_formats[] = {
    {.name = "list",
     .purpose = "PU numbers, in worker order; one line per rank of a hybrid program",
     .print = print_list},
    {.name = "json", .purpose = "everything, for other programs", .print = print_json},
    {.name = "devices",
     .purpose = "a table of ranks, their PUs, GPUs and network cards (default with --gpus, --nics)",
     .print = print_devices},
    {.name = "omp-places",
     .purpose = "environment of any OpenMP runtime: env $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .words = {"OMP_PLACES=", .open = "{", .close = "}", .between = ",",
               .end = " OMP_PROC_BIND=true", .threads = true}},
    {.name = "gomp",
     .purpose = "environment of GNU libgomp: env $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .words = {"GOMP_CPU_AFFINITY=", .between = ",", .threads = true}},
    {.name = "kmp",
     .purpose = "environment of LLVM and Intel OpenMP: env $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .words = {"KMP_AFFINITY=granularity=fine,explicit,proclist=[", .between = ",", .end = "]",
               .threads = true}},
    {.name = "taskset",
     .purpose = "util-linux: $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .words = {"taskset -c ", .between = ","}},
    {.name = "numactl",
     .purpose = "numactl, memory too: $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .words = {"numactl -C ", .between = ",", .memory = {" -m ", ","}}},
    {.name = "hwloc-bind",
     .purpose = "hwloc, memory too: $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .words = {"hwloc-bind --physical", .open = " pu:", .between = "",
               .memory = {" --membind node:", " node:"}, .end = " --"}},
    {.name = "likwid-pin",
     .purpose = "LIKWID: $(...) ./app",
     .reach = MAP_FORMAT_PER_PROCESS,
     .words = {"likwid-pin -c ", .between = ","}},
    {.name = "rankfile",
     .purpose =
         "Open MPI: mpirun --use-hwthread-cpus --mca rmaps_rank_file_physical 1 --rankfile FILE",
     .names = true,
     .words = {"", .open = " slot=", .between = "\n"},
     .print = print_ranks},
    {.name = "prrte-rankfile",
     .purpose = "Open MPI 5 and PRRTE: mpirun --map-by rankfile:file=FILE:hwtcpus ./app",
     .names = true,
     .logical = true,
     .words = {"", .open = " slot=", .between = "\n"},
     .print = print_ranks},
    {.name = "cpu-list",
     .purpose = "Open MPI 4, one node: mpirun $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .with_threads = "rankfile",
     .ascending = true,
     .words = {"--bind-to cpu-list:ordered --cpu-list ", .between = ","}},
    {.name = "pe-list",
     .purpose = "Open MPI 5, one PU per rank, whole nodes: mpirun $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .with_threads = "prrte-rankfile",
     /* Open MPI 5 counts hardware threads as hwloc does, in the order of the tree. */
     .logical = true,
     .words = {"--bind-to hwthread --map-by pe-list=", .between = ",", .end = ":ordered:hwtcpus"}},
    {.name = "host",
     .purpose = "Open MPI, rank order over nodes: mpirun $(...) ./app",
     .names = true,
     /* Without `seq`, Open MPI takes the node of mpirun first, whatever the order, and all ranks
      * of a node together. */
     .words = {"--map-by seq -host ", .between = ","},
     .print = print_ranks},
    {.name = "hostfile",
     .purpose =
         "one host per rank: Open MPI, mpirun --map-by seq --hostfile FILE; Slurm, SLURM_HOSTFILE",
     .names = true,
     .words = {"", .between = "\n"},
     .print = print_ranks},
    {.name = "hydra-hosts",
     .purpose = "MPICH, rank order over nodes: mpiexec $(...) ./app",
     .names = true,
     .print = print_hydra_hosts},
    {.name = "slurm-hosts",
     .purpose = "Slurm, rank order over nodes: srun $(...) ./app",
     .names = true,
     .words = {"--distribution=arbitrary --ntasks=", .count = " --nodelist=", .between = ","},
     .print = print_ranks},
    {.name = "hydra",
     .purpose = "MPICH: mpiexec $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .words = {"-bind-to user:", .between = ",", .thread = "+"}},
    {.name = "impi-list",
     .purpose = "Intel MPI, one PU per rank: env $(...) mpirun",
     .reach = MAP_FORMAT_EACH_NODE,
     .with_threads = "impi-domain",
     .words = {"I_MPI_PIN=1 I_MPI_PIN_PROCESSOR_LIST=", .between = ","}},
    {.name = "impi-domain",
     .purpose = "Intel MPI, ranks with threads: env $(...) mpirun",
     .reach = MAP_FORMAT_EACH_NODE,
     .words = {"I_MPI_PIN=1 I_MPI_PIN_DOMAIN=[", .between = ",", .mask = true, .end = "]"}},
    {.name = "slurm-map",
     .purpose = "Slurm, one PU per rank, whole nodes: srun $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .with_threads = "slurm-mask",
     .words = {"--cpu-bind=map_cpu:", .between = ",", .gpus = GPU_BIND}},
    {.name = "slurm-mask",
     .purpose = "Slurm, ranks with threads, whole nodes: srun $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .words = {"--cpu-bind=mask_cpu:", .open = "0x", .between = ",", .mask = true,
               .gpus = GPU_BIND}},
    {.name = "pals",
     .purpose = "Cray PALS, whole nodes: mpiexec $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     .words = {"--cpu-bind list", .open = ":", .between = "", .thread = ","}},
    {.name = "flux",
     .purpose = "Flux, whole nodes: flux run $(...) ./app",
     .reach = MAP_FORMAT_EACH_NODE,
     /* No blank and no quote, so that $(...) hands it on. */
     .words = {"-o cpu-affinity=map:", .between = ";", .thread = ",",
               .gpus = " -o gpu-affinity=map:"}},
    {0},
};
