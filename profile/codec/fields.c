/* The one description of the profile's format: keys, types, units, ranges, meanings and the members
 * that hold them, in the order in which they are written. A field is added here, in model.h, and
 * where it is measured or used; nowhere else. Promises between fields are checked in check.c. */
#include "profile/codec/codec.h"

#include <string.h>

/* A member whose key is its name; a list of them, with its count. */
#define FIELD(kind, holder, member, ...)                                                           \
    PROFILE_FIELD(FIELD_##kind, struct holder, member, __VA_ARGS__)
#define NEEDED(...) FIELD(__VA_ARGS__, REQUIRED)
#define LIST(kind, holder, member, count, ...)                                                     \
    PROFILE_COUNTED(#member, FIELD_##kind, struct holder, member, count, __VA_ARGS__)
#define OBJECT(id, holder, says) PROFILE_OBJECT(#id, struct holder, id##_fields, says)

#define REQUIRED .required = true
#define POSITIVE .positive = true
#define ASIDE .aside = true
#define ASCENDING .ascending = true
#define DISJOINT .disjoint = true
#define SPEAKS_OF .speaks_of = true
#define NOT_KNOWN .absent = -1 /* a number for which 0 is an answer */
#define BYTES PROFILE_UNIT("bytes")
#define SECONDS PROFILE_UNIT("seconds")
#define RATE PROFILE_UNIT("bytes per second")
#define FLOPS PROFILE_UNIT("flops")

/* Deeper than any machine: L4 exists (eDRAM), L5 does not. */
#define CACHE_LEVEL_LIMIT 8

const char *const profile_origin_names[] = {
    [PROFILE_DECLARED] = "declared", [PROFILE_MEASURED] = "measured",
    [PROFILE_INFERRED] = "inferred", [PROFILE_QUOTED] = "quoted",
    [PROFILE_QUOTED + 1] = NULL,
};

const char *const profile_kernel_names[] = {
    [PROFILE_NT_COPY] = "nt_copy", [PROFILE_COPY] = "copy",  [PROFILE_READ] = "read",
    [PROFILE_TRIAD] = "triad",     [PROFILE_KERNELS] = NULL,
};

const char *const profile_device_kind_names[] = {
    [PROFILE_GPU] = "gpu",
    [PROFILE_NIC] = "nic",
    [PROFILE_DISK] = "disk",
    [PROFILE_DEVICE_KINDS] = NULL,
};

#define ORIGIN_SAYS                                                                                \
    "declared: by the operating system; measured: on this PU, pair or node itself; inferred: "     \
    "from an equivalent one that was measured; quoted: from a publication."
#define REPETITIONS_SAYS "Measurements behind the figure."
#define SPREAD_SAYS                                                                                \
    "Relative: (third quartile - first quartile) / median of those measurements; of messages and " \
    "cache lines the largest excess of measurements at several times over the least."

/* Fields of every point of a curve; a point is measured or absent. */
#define REPEATED(holder)                                                                           \
    FIELD(U32, holder, repetitions, REPETITIONS_SAYS),                                             \
        FIELD(NUMBER, holder, spread, SPREAD_SAYS, NOT_KNOWN)

#define CUT_SHORT FIELD(BOOL, profile_quality, cut_short, "true: the budget ended it early.")

static const struct profile_field quality_fields[] = {
    NEEDED(WORD, profile_quality, origin, ORIGIN_SAYS, .words = profile_origin_names),
    REPEATED(profile_quality),
    CUT_SHORT,
    FIELD(BOOL, profile_quality, beside_others,
          "true: other tasks kept its PUs from running at the same time."),
    FIELD(BOOL, profile_quality, through_threads,
          "true: messages between threads, not through MPI."),
    FIELD(BOOL, profile_quality, pus_move,
          "true: the PUs of a virtual machine move between those of its host, so a later run may "
          "find otherwise."),
    FIELD(STRING, profile_quality, note, "Remarks on the measurement, in one line."),
};
static const struct profile_object quality =
    OBJECT(quality, profile_quality, "Where a figure comes from and how sure it is.");

#define QUALITY(holder)                                                                            \
    FIELD(OBJECT, holder, quality, "Where it comes from and how sure it is.", REQUIRED,            \
          .element = &quality)

static const struct profile_field evidence_fields[] = {
    FIELD(WORD, profile_quality, origin, ORIGIN_SAYS, .words = profile_origin_names),
    FIELD(U32, profile_quality, repetitions, REPETITIONS_SAYS),
    FIELD(NUMBER, profile_quality, spread, SPREAD_SAYS " Absent: not known, or 0."),
    CUT_SHORT,
};
static const struct profile_object evidence =
    OBJECT(evidence, profile_quality, "How a thing is known; absent: declared.");

static const struct profile_field relation_fields[] = {
    LIST(GROUPS, profile_relation, groups, group_count,
         "Disjoint, ordered by lowest member; groups of one may be left out."),
    LIST(PAIRS, profile_relation, pairs, pair_count,
         "[a, b] with a < b, ascending; only what is not transitive."),
};
static const struct profile_object relation =
    OBJECT(relation, profile_relation, "Related PUs: all of a group, and both of each pair.");

static const struct profile_field numa_fields[] = {
    NEEDED(U32, profile_numa, os_index, "Its number in the operating system."),
    NEEDED(SET, profile_numa, pus,
           "Its PUs; for a node that has only memory the nearest, or none."),
    FIELD(U64, profile_numa, memory_bytes, "Size of its memory.", BYTES),
    FIELD(STRING, profile_numa, kind,
          "The system's name for its memory: HBM, DRAM, NVM, memory_tier4 ..."),
    FIELD(NUMBER, profile_numa, declared_bytes_per_s,
          "Bandwidth of all its memory, as the firmware says; absent: not said.", POSITIVE, RATE),
    FIELD(NUMBER, profile_numa, together_bytes_per_s,
          "PUs near it that copy in it together, as many for each node as the one with the fewest "
          "has; absent: not measured.",
          POSITIVE, RATE),
};
static const struct profile_object numa =
    OBJECT(numa, profile_numa, "A NUMA node. Those that are the memory of a device are left out.");

static const struct profile_field kind_fields[] = {
    NEEDED(U32, profile_kind, efficiency, "Rank: higher is more capable."),
    NEEDED(SET, profile_kind, pus, "The PUs of this kind.", .low = 1),
};
static const struct profile_object kind = OBJECT(kind, profile_kind, "PUs of equal capability.");

static const struct profile_field cache_fields[] = {
    NEEDED(U32, profile_cache, level, "1, 2, 3 ...; caches are in ascending order of it.", .low = 1,
           .high = CACHE_LEVEL_LIMIT),
    NEEDED(U64, profile_cache, size_bytes,
           "The likeliest effective size, settled or not (servet_cache_bytes(3) answers those that "
           "are); of a declared cache the declared one, 0 if it is not said.",
           BYTES),
    FIELD(U64, profile_cache, size_low_bytes,
          "The least size that explains the measurement about as well; absent: not known.", BYTES),
    FIELD(U64, profile_cache, size_high_bytes, "The largest one; only together with the least.",
          BYTES),
    FIELD(U64, profile_cache, declared_size_bytes, "Declared by the operating system.", BYTES),
    FIELD(U32, profile_cache, line_bytes, "Size of a line.", BYTES),
    FIELD(U32, profile_cache, associativity, "Ways."),
    FIELD(U64, profile_cache, page_bytes,
          "Size of the pages of the memory that it was measured in.", BYTES),
    FIELD(SET, profile_cache, pus, "The PUs that have such a cache; absent: all of the class.",
          .low = 1, SPEAKS_OF),
    NEEDED(OBJECT, profile_cache, sharing,
           "PUs that share one; a PU in no group or pair has one of its own.", .element = &relation,
           DISJOINT),
    FIELD(OBJECT, profile_cache, sharing_quality,
          "Origin of its sharing; spread: of the pairs' ratios.", .element = &evidence),
    LIST(PAIR_FIGURES, profile_cache, pair_ratios, pair_ratio_count,
         "[a, b, ratio] of pairs that were measured: how many times as long the slower takes when "
         "both use two thirds of the cache; ascending.",
         ASIDE),
    QUALITY(profile_cache),
};
static const struct profile_object cache = OBJECT(cache, profile_cache, "A data or unified cache.");

static const struct profile_field cache_point_fields[] = {
    NEEDED(U64, profile_cache_point, bytes, "Working set of one PU alone.", .low = 1, BYTES),
    NEEDED(NUMBER, profile_cache_point, seconds_per_access, "Time of a dependent load out of it.",
           POSITIVE, SECONDS),
    REPEATED(profile_cache_point),
};
static const struct profile_object cache_point =
    OBJECT(cache_point, profile_cache_point, "A point of the latency curve.");

static const struct profile_field tlb_fields[] = {
    NEEDED(U64, profile_tlb, page_bytes, "Size of the pages of the memory that it was measured in.",
           .low = 1, BYTES),
    NEEDED(U64, profile_tlb, reach_bytes,
           "Loads within so much memory find their address translated.", .low = 1, BYTES),
    FIELD(NUMBER, profile_tlb, seconds, "Time that a miss adds to a load; 0: not known.", SECONDS),
    QUALITY(profile_tlb),
};
static const struct profile_object tlb =
    OBJECT(tlb, profile_tlb, "The reach of a level of the TLB.");

static const struct profile_field scaling_fields[] = {
    NEEDED(U32, profile_scaling_point, workers, "Workers of one group that copy at the same time.",
           .low = 1),
    NEEDED(NUMBER, profile_scaling_point, bytes_per_s,
           "Their bandwidth together, read and written.", POSITIVE, RATE),
    REPEATED(profile_scaling_point),
};
static const struct profile_object scaling =
    OBJECT(scaling, profile_scaling_point, "Bandwidth of so many workers in one group.");

static const struct profile_field memory_level_fields[] = {
    FIELD(NUMBER, profile_memory_level, bytes_per_s,
          "Bandwidth of one worker while a second one of the same group copies too.", RATE),
    NEEDED(OBJECT, profile_memory_level, collisions, "PUs that interfere.", .element = &relation,
           DISJOINT),
    LIST(ARRAY, profile_memory_level, scaling, scaling_count,
         "In one group, by ascending number of workers.", .element = &scaling, ASCENDING),
    QUALITY(profile_memory_level),
};
static const struct profile_object memory_level =
    OBJECT(memory_level, profile_memory_level, "A level of memory access overhead.");

static const struct profile_field kernel_fields[] = {
    NEEDED(WORD, profile_kernel_rate, kernel,
           "nt_copy: a copy by non-temporal stores; copy: by ordinary ones; read: a sum; triad: a "
           "= b + s c, as STREAM's.",
           .words = profile_kernel_names),
    NEEDED(NUMBER, profile_kernel_rate, bytes_per_s,
           "One PU alone, read and written, as STREAM counts.", POSITIVE, RATE),
    FIELD(NUMBER, profile_kernel_rate, together_bytes_per_s, "All of kernel_pus together.", RATE),
    FIELD(BOOL, profile_kernel_rate, levels,
          "true: the reference, the overhead levels and their curves are made of this one."),
    QUALITY(profile_kernel_rate),
};
static const struct profile_object kernel =
    OBJECT(kernel, profile_kernel_rate, "Memory bandwidth of one kind of loop.");

static const struct profile_field memory_fields[] = {
    FIELD(NUMBER, profile_memory, reference_bytes_per_s, "One worker alone, read and written.",
          RATE),
    FIELD(STRING, profile_memory, method,
          "Instruction set, kind of stores, pages, size of the arrays."),
    QUALITY(profile_memory),
    LIST(ARRAY, profile_memory, levels, level_count,
         "Worst first; PUs that collide in one collide in every later one.", REQUIRED,
         .element = &memory_level),
    LIST(PAIR_FIGURES, profile_memory, pair_rates, pair_rate_count,
         "[a, b, bytes per second] of the slower of two PUs that copy at the same time, where that "
         "was measured; ascending.",
         ASIDE, RATE),
    LIST(ARRAY, profile_memory, kernels, kernel_count,
         "Bandwidth of loops on memory as the system gives it: less than on the huge pages of the "
         "levels.",
         ASIDE, .element = &kernel),
    FIELD(SET, profile_memory, kernel_pus,
          "The PUs of together_bytes_per_s: those of one NUMA node.", ASIDE, .low = 1),
};
static const struct profile_object memory =
    OBJECT(memory, profile_memory, "Memory bandwidth of workers together.");

static const struct profile_field numa_access_fields[] = {
    NEEDED(SET, profile_numa_access, pus, "PUs with this access; measured on the first.", .low = 1),
    NEEDED(U32, profile_numa_access, node, "The NUMA node that the memory is on."),
    FIELD(NUMBER, profile_numa_access, seconds_per_access,
          "Time of a dependent load that misses every cache; 0: not measured.", SECONDS),
    FIELD(NUMBER, profile_numa_access, bytes_per_s,
          "One worker that copies within that node, read and written; 0: not measured.", RATE),
    QUALITY(profile_numa_access),
};
static const struct profile_object numa_access =
    OBJECT(numa_access, profile_numa_access, "Access of one PU to the memory of one NUMA node.");

static const struct profile_field message_fields[] = {
    NEEDED(U64, profile_message_point, bytes, "Size of the message.", BYTES),
    NEEDED(NUMBER, profile_message_point, seconds, "One way.", POSITIVE, SECONDS),
    REPEATED(profile_message_point),
};
static const struct profile_object message =
    OBJECT(message, profile_message_point, "Time of a message of one size.");

static const struct profile_field concurrency_fields[] = {
    NEEDED(U32, profile_concurrency_point, messages, "Sent at the same time.", .low = 1),
    NEEDED(NUMBER, profile_concurrency_point, seconds, "Time of the slowest, one way.", POSITIVE,
           SECONDS),
    REPEATED(profile_concurrency_point),
};
static const struct profile_object concurrency =
    OBJECT(concurrency, profile_concurrency_point, "Time of so many messages at once.");

static const struct profile_field layer_fields[] = {
    FIELD(STRING, profile_layer, name, "core, L3, package, node, network ..."),
    FIELD(NUMBER, profile_layer, seconds,
          "One-way latency of a message of message_bytes; absent where it was not measured: then "
          "only the order of the layers means something.",
          POSITIVE, SECONDS),
    NEEDED(OBJECT, profile_layer, members, "A pair's layer is the first that has both.",
           .element = &relation, DISJOINT),
    LIST(ARRAY, profile_layer, curve, curve_count, "By ascending size.", ASIDE, .element = &message,
         ASCENDING),
    LIST(ARRAY, profile_layer, concurrency, concurrency_count, "By ascending number of messages.",
         ASIDE, .element = &concurrency, ASCENDING),
    FIELD(NUMBER, profile_layer, line_seconds,
          "One cache line from PU to PU, one way, without any library; absent: not measured.",
          POSITIVE, SECONDS),
    FIELD(OBJECT, profile_layer, line_quality, "How sure line_seconds is.", .element = &evidence),
    QUALITY(profile_layer),
};
static const struct profile_object layer = OBJECT(layer, profile_layer, "A communication layer.");

static const struct profile_field communication_fields[] = {
    FIELD(U64, profile_communication, message_bytes,
          "Size at which layers are separated: that of the L1 cache.", BYTES),
    FIELD(STRING, profile_communication, message_data,
          "written: the data was written before it was sent; unwritten: never, as in OSU's "
          "benchmarks, and larger messages take about half the time."),
    LIST(ARRAY, profile_communication, layers, layer_count,
         "From the lowest latency to the highest.", .element = &layer),
    FIELD(OBJECT, profile_communication, measured,
          "Which pairs were measured: both in one of the groups (which may overlap), or listed. "
          "The layers of all others are inferred. Absent: single pairs are not recorded.",
          ASIDE, .element = &relation),
    LIST(PAIR_FIGURES, profile_communication, message_times, message_time_count,
         "[a, b, seconds] of a message of message_bytes between two PUs, one way, where that was "
         "measured; ascending.",
         ASIDE, SECONDS),
    LIST(PAIR_FIGURES, profile_communication, line_times, line_time_count,
         "[a, b, seconds] of one cache line between two PUs, one way, where that was measured; "
         "ascending.",
         ASIDE, SECONDS),
};
const struct profile_object profile_communication_object =
    OBJECT(communication, profile_communication, "Layers of latency between PUs or nodes.");

static const struct profile_field transfer_fields[] = {
    NEEDED(U32, profile_transfer, node, "The NUMA node that the memory is on; it is pinned."),
    NEEDED(NUMBER, profile_transfer, to_device_bytes_per_s,
           "Of large copies from that memory to the device, by a PU near the memory.", POSITIVE,
           RATE),
    NEEDED(NUMBER, profile_transfer, from_device_bytes_per_s,
           "The same from the device to that memory.", POSITIVE, RATE),
    NEEDED(NUMBER, profile_transfer, seconds,
           "Time of the smallest copy to the device, until it is known to be done.", POSITIVE,
           SECONDS),
    QUALITY(profile_transfer),
};
static const struct profile_object transfer =
    OBJECT(transfer, profile_transfer, "Copies between a device and the memory of a NUMA node.");

static const struct profile_field device_fields[] = {
    NEEDED(WORD, profile_device, kind,
           "gpu: a GPU or one die of it; nic: a network card or one port of it; disk.",
           .words = profile_device_kind_names),
    NEEDED(STRING, profile_device, name, "cuda0, rsmi0, mlx5_0, nvme0n1 ..."),
    FIELD(STRING, profile_device, aliases, "Its other names, separated by blanks."),
    FIELD(STRING, profile_device, model, "As its maker calls it."),
    FIELD(STRING, profile_device, bus_id, "PCI address, 0000:c1:00.0."),
    FIELD(U32, profile_device, pci_vendor, "Number of its maker.", .high = UINT16_MAX),
    FIELD(U32, profile_device, pci_device, "Number of its model.", .high = UINT16_MAX),
    FIELD(STRING, profile_device, uuid,
          "Of a GPU, as CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES take it."),
    FIELD(U32, profile_device, number,
          "Of a GPU: the number that its runtime counts it by; absent: none, as of a MIG instance.",
          NOT_KNOWN),
    NEEDED(U32, profile_device, card,
           "Counted from 0 within the kind; dies and ports of one card have one number."),
    FIELD(U32, profile_device, numa_node,
          "Its NUMA node; absent where the system names none or several.", NOT_KNOWN),
    FIELD(BOOL, profile_device, fabric,
          "true: a network card that carries messages between nodes."),
    FIELD(BOOL, profile_device, down, "true: it has no link."),
    NEEDED(SET, profile_device, pus, "The PUs near it; all of the class where it is near to none.",
           .low = 1),
    LIST(ARRAY, profile_device, transfers, transfer_count,
         "Of a GPU: copies between it and host memory, by ascending node; absent: not measured.",
         .element = &transfer, ASCENDING),
};
static const struct profile_object device =
    OBJECT(device, profile_device, "A GPU, a network card or a disk.");

static const struct profile_field node_class_fields[] = {
    FIELD(STRING, profile_class, name, "Free text."),
    NEEDED(SET, profile_class, pus, "The PUs that the profile speaks of.", .low = 1, SPEAKS_OF),
    FIELD(OBJECT, profile_class, cores, "SMT siblings.", .element = &relation, DISJOINT),
    FIELD(OBJECT, profile_class, packages, "PUs of one package.", .element = &relation, DISJOINT),
    LIST(ARRAY, profile_class, numa, numa_count, "By ascending number.", .element = &numa,
         ASCENDING),
    LIST(ARRAY, profile_class, kinds, kind_count, "Absent: all PUs are of one kind.",
         .element = &kind),
    LIST(ARRAY, profile_class, caches, cache_count, "By ascending level.", REQUIRED,
         .element = &cache),
    LIST(ARRAY, profile_class, cache_curve, cache_curve_count,
         "The curve behind the cache sizes, by ascending working set.", ASIDE,
         .element = &cache_point, ASCENDING),
    LIST(ARRAY, profile_class, tlb, tlb_count, "By ascending size of the pages, then of the reach.",
         ASIDE, .element = &tlb),
    NEEDED(OBJECT, profile_class, memory, "Its bandwidth, and PUs that interfere.",
           .element = &memory),
    LIST(ARRAY, profile_class, numa_access, numa_access_count, "By lowest PU, then by node.", ASIDE,
         .element = &numa_access),
    FIELD(OBJECT, profile_class, communication, "Inside the node.",
          .element = &profile_communication_object),
    LIST(ARRAY, profile_class, devices, device_count,
         "GPUs, network cards and disks, as the system sees them.", ASIDE, .element = &device),
};
static const struct profile_object node_class = OBJECT(
    node_class, profile_class, "Similar nodes. PU numbers are those of the operating system.");

static const struct profile_field node_range_fields[] = {
    NEEDED(STRING, profile_node_range, names, "Host names, \"node1\" or \"node[001-128,200]\"."),
    NEEDED(U32, profile_node_range, count, "How many names that is.", .low = 1),
    NEEDED(U32, profile_node_range, class_index, "Their class, counted from 0 in node_classes."),
};
static const struct profile_object node_range =
    OBJECT(node_range, profile_node_range, "Names of nodes of one class.");

static const struct profile_field bsp_fields[] = {
    FIELD(STRING, profile_bsp, backend, "\"threads\" (shared memory) or \"mpi\"."),
    NEEDED(U32, profile_bsp, processors, "Number of processors.", .low = 1),
    NEEDED(NUMBER, profile_bsp, r_flop_per_s, "Computing rate of one.", POSITIVE,
           PROFILE_UNIT("flops per second")),
    FIELD(U32, profile_bsp, vector_length, "Words of the DAXPY that reached r."),
    NEEDED(NUMBER, profile_bsp, g_flops, "Per word of 8 bytes, sent as single words: pessimistic.",
           FLOPS),
    FIELD(NUMBER, profile_bsp, g_packets_flops, "Per word, sent in large packets: optimistic.",
          FLOPS),
    FIELD(NUMBER, profile_bsp, l_flops,
          "Cost of a superstep; left out if the fit gave a negative one.", NOT_KNOWN, FLOPS),
    FIELD(NUMBER, profile_bsp, t0_flops, "Measured time of a 0-relation.", FLOPS),
    FIELD(U32, profile_bsp, h_low, "Smallest h of the fit."),
    FIELD(U32, profile_bsp, h_high, "Largest h of the fit, at least h_low."),
    FIELD(U32, profile_bsp, bend_h,
          "First h of a second straight piece; 0 or left out where there is one piece."),
    QUALITY(profile_bsp),
};
static const struct profile_object bsp =
    OBJECT(bsp, profile_bsp, "One superstep takes T(h) = h g + l, in flops.");

static const struct profile_field host_fields[] = {
    PROFILE_NAMED("name", FIELD_STRING, struct servet_profile, host_name, "Host name.", REQUIRED),
    FIELD(STRING, servet_profile, architecture, "As uname -m says."),
    FIELD(STRING, servet_profile, cpu_model, "Processor."),
    FIELD(STRING, servet_profile, kernel, "As uname -r says."),
    FIELD(STRING, servet_profile, topology_signature,
          "Tells whether a profile is of the machine at hand."),
};
static const struct profile_object host =
    OBJECT(host, servet_profile, "The machine that was measured.");

static const struct profile_field measurement_fields[] = {
    NEEDED(BOOL, servet_profile, measured, "false: a topology profile, nothing was measured."),
    FIELD(STRING, servet_profile, tool, "Program and version."),
    FIELD(STRING, servet_profile, started, "ISO 8601, UTC."),
    FIELD(NUMBER, servet_profile, seconds, "How long it took.", SECONDS),
    LIST(MAP, servet_profile, conditions, condition_count,
         "Conditions of the run, such as the governor and the load.", ASIDE),
};
static const struct profile_object measurement =
    OBJECT(measurement, servet_profile,
           "Whether anything was measured at all, by what, when and how long.");

/* Some members of the profile itself are gathered under one key: their "object" is the profile. */
#define SECTION(name, object)                                                                      \
    {                                                                                              \
        .key = name, .type = FIELD_OBJECT, REQUIRED, .element = &(object)                          \
    }

static const struct profile_field profile_fields[] = {
    {.key = "servet_profile",
     .type = FIELD_VERSION,
     REQUIRED,
     .high = PROFILE_VERSION,
     .meaning = PROFILE_SAYS("Version of this format.")},
    SECTION("host", host),
    SECTION("measurement", measurement),
    PROFILE_COUNTED("node_classes", FIELD_ARRAY, struct servet_profile, classes, class_count,
                    "Similar nodes are described once.", REQUIRED, .low = 1,
                    .element = &node_class),
    LIST(ARRAY, servet_profile, nodes, node_range_count,
         "PU numbers count through the nodes in this order.", REQUIRED, .low = 1,
         .element = &node_range),
    FIELD(OBJECT, servet_profile, network,
          "Between nodes; members are node numbers, counted from 0.", ASIDE,
          .element = &profile_communication_object),
    LIST(ARRAY, servet_profile, bsp, bsp_count, "By backend and ascending number of processors.",
         ASIDE, .element = &bsp),
};
const struct profile_object profile_document =
    OBJECT(profile, servet_profile,
           "A machine of one or more nodes. Keys beginning with x- are free for other tools. This "
           "is what this version writes: a reader keeps and ignores other keys, and says so once.");

/* -- parts by themselves -- */

#ifndef PROFILE_FIELDS_EXPLAINED /* which lists fields and has no profile */
#define FREE_PART(part, type)                                                                      \
    void profile_##part##_free(struct profile_##part *of)                                          \
    {                                                                                              \
        profile_object_free(&(type), of);                                                          \
        memset(of, 0, sizeof *of);                                                                 \
    }
FREE_PART(relation, relation)
FREE_PART(layer, layer)
FREE_PART(communication, profile_communication_object)
FREE_PART(memory_level, memory_level)
FREE_PART(memory, memory)
FREE_PART(device, device)
FREE_PART(cache, cache)
FREE_PART(class, node_class)
FREE_PART(bsp, bsp)
#endif
