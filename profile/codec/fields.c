/* The one description of the profile's format: keys, types, units, ranges, meanings and the members
 * that hold them, in the order in which they are written. A field is added here, in model.h, and
 * where it is measured or used; nowhere else. Promises between fields are checked in check.c. */
#include "profile/codec/codec.h"

#include <string.h>

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
    "from "                                                                                        \
    "an equivalent one that was measured; quoted: from a publication."
#define REPETITIONS_SAYS "Measurements behind the figure."
#define SPREAD_SAYS                                                                                \
    "Relative: (third quartile - first quartile) / median of those measurements; of messages and " \
    "cache lines the largest excess of measurements at several times over the least."

/* Fields of every point of a curve; a point is measured or absent. */
#define REPEATED(holder)                                                                           \
    PROFILE_FIELD(FIELD_U32, holder, repetitions, REPETITIONS_SAYS),                               \
        PROFILE_FIELD(FIELD_NUMBER, holder, spread, SPREAD_SAYS, NOT_KNOWN)

#define CUT_SHORT                                                                                  \
    PROFILE_FIELD(FIELD_BOOL, struct profile_quality, cut_short, "true: the budget ended it early.")

static const struct profile_field quality_fields[] = {
    PROFILE_FIELD(FIELD_WORD, struct profile_quality, origin, ORIGIN_SAYS, REQUIRED,
                  .words = profile_origin_names),
    REPEATED(struct profile_quality),
    CUT_SHORT,
    PROFILE_FIELD(FIELD_BOOL, struct profile_quality, beside_others,
                  "true: other tasks kept its PUs from running at the same time."),
    PROFILE_FIELD(FIELD_BOOL, struct profile_quality, through_threads,
                  "true: messages between threads, not through MPI."),
    PROFILE_FIELD(FIELD_BOOL, struct profile_quality, pus_move,
                  "true: the PUs of a virtual machine move between those of its host, so a later "
                  "run may find otherwise."),
    PROFILE_FIELD(FIELD_STRING, struct profile_quality, note,
                  "Remarks on the measurement, in one line."),
};
static const struct profile_object quality =
    PROFILE_OBJECT("quality", struct profile_quality, quality_fields,
                   "Where a figure comes from and how sure it is.");

#define QUALITY(holder)                                                                            \
    PROFILE_FIELD(FIELD_OBJECT, holder, quality, "Where it comes from and how sure it is.",        \
                  REQUIRED, .element = &quality)

static const struct profile_field evidence_fields[] = {
    PROFILE_FIELD(FIELD_WORD, struct profile_quality, origin, ORIGIN_SAYS,
                  .words = profile_origin_names),
    PROFILE_FIELD(FIELD_U32, struct profile_quality, repetitions, REPETITIONS_SAYS),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_quality, spread,
                  SPREAD_SAYS " Absent: not known, or 0."),
    CUT_SHORT,
};
static const struct profile_object evidence = PROFILE_OBJECT(
    "evidence", struct profile_quality, evidence_fields, "How a thing is known; absent: declared.");

static const struct profile_field relation_fields[] = {
    PROFILE_COUNTED("groups", FIELD_GROUPS, struct profile_relation, groups, group_count,
                    "Disjoint, ordered by lowest member; groups of one may be left out."),
    PROFILE_COUNTED("pairs", FIELD_PAIRS, struct profile_relation, pairs, pair_count,
                    "[a, b] with a < b, ascending; only what is not transitive."),
};
static const struct profile_object relation =
    PROFILE_OBJECT("relation", struct profile_relation, relation_fields,
                   "Related PUs: all of a group, and both of each pair.");

static const struct profile_field numa_fields[] = {
    PROFILE_FIELD(FIELD_U32, struct profile_numa, os_index, "Its number in the operating system.",
                  REQUIRED),
    PROFILE_FIELD(FIELD_SET, struct profile_numa, pus,
                  "Its PUs; for a node that has only memory the nearest, or none.", REQUIRED),
    PROFILE_FIELD(FIELD_U64, struct profile_numa, memory_bytes, "Size of its memory.", BYTES),
    PROFILE_FIELD(FIELD_STRING, struct profile_numa, kind,
                  "The system's name for its memory: HBM, DRAM, NVM, memory_tier4 ..."),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_numa, declared_bytes_per_s,
                  "Bandwidth of all its memory, as the firmware says; absent: not said.", POSITIVE,
                  RATE),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_numa, together_bytes_per_s,
                  "PUs near it that copy in it together, as many for each node as the one with the "
                  "fewest has; absent: not measured.",
                  POSITIVE, RATE),
};
static const struct profile_object numa =
    PROFILE_OBJECT("numa", struct profile_numa, numa_fields,
                   "A NUMA node. Those that are the memory of a device are left out.");

static const struct profile_field kind_fields[] = {
    PROFILE_FIELD(FIELD_U32, struct profile_kind, efficiency, "Rank: higher is more capable.",
                  REQUIRED),
    PROFILE_FIELD(FIELD_SET, struct profile_kind, pus, "The PUs of this kind.", REQUIRED, .low = 1),
};
static const struct profile_object kind =
    PROFILE_OBJECT("kind", struct profile_kind, kind_fields, "PUs of equal capability.");

static const struct profile_field cache_fields[] = {
    PROFILE_FIELD(FIELD_U32, struct profile_cache, level,
                  "1, 2, 3 ...; caches are in ascending order of it.", REQUIRED, .low = 1,
                  .high = CACHE_LEVEL_LIMIT),
    PROFILE_FIELD(
        FIELD_U64, struct profile_cache, size_bytes,
        "The likeliest effective size, settled or not (servet_cache_bytes(3) answers those that "
        "are); of a declared cache the declared one, 0 if it is not said.",
        REQUIRED, BYTES),
    PROFILE_FIELD(FIELD_U64, struct profile_cache, size_low_bytes,
                  "The least size that explains the measurement about as well; absent: not known.",
                  BYTES),
    PROFILE_FIELD(FIELD_U64, struct profile_cache, size_high_bytes,
                  "The largest one; only together with the least.", BYTES),
    PROFILE_FIELD(FIELD_U64, struct profile_cache, declared_size_bytes,
                  "Declared by the operating system.", BYTES),
    PROFILE_FIELD(FIELD_U32, struct profile_cache, line_bytes, "Size of a line.", BYTES),
    PROFILE_FIELD(FIELD_U32, struct profile_cache, associativity, "Ways."),
    PROFILE_FIELD(FIELD_U64, struct profile_cache, page_bytes,
                  "Size of the pages of the memory that it was measured in.", BYTES),
    PROFILE_FIELD(FIELD_SET, struct profile_cache, pus,
                  "The PUs that have such a cache; absent: all of the class.", .low = 1, SPEAKS_OF),
    PROFILE_FIELD(FIELD_OBJECT, struct profile_cache, sharing,
                  "PUs that share one; a PU in no group or pair has one of its own.", REQUIRED,
                  .element = &relation, DISJOINT),
    PROFILE_FIELD(FIELD_OBJECT, struct profile_cache, sharing_quality,
                  "Origin of its sharing; spread: of the pairs' ratios.", .element = &evidence),
    PROFILE_COUNTED("pair_ratios", FIELD_PAIR_FIGURES, struct profile_cache, pair_ratios,
                    pair_ratio_count,
                    "[a, b, ratio] of pairs that were measured: how many times as long the slower "
                    "takes when both use two thirds of the cache; ascending.",
                    ASIDE),
    QUALITY(struct profile_cache),
};
static const struct profile_object cache =
    PROFILE_OBJECT("cache", struct profile_cache, cache_fields, "A data or unified cache.");

static const struct profile_field cache_point_fields[] = {
    PROFILE_FIELD(FIELD_U64, struct profile_cache_point, bytes, "Working set of one PU alone.",
                  REQUIRED, .low = 1, BYTES),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_cache_point, seconds_per_access,
                  "Time of a dependent load out of it.", REQUIRED, POSITIVE, SECONDS),
    REPEATED(struct profile_cache_point),
};
static const struct profile_object cache_point = PROFILE_OBJECT(
    "cache_point", struct profile_cache_point, cache_point_fields, "A point of the latency curve.");

static const struct profile_field tlb_fields[] = {
    PROFILE_FIELD(FIELD_U64, struct profile_tlb, page_bytes,
                  "Size of the pages of the memory that it was measured in.", REQUIRED, .low = 1,
                  BYTES),
    PROFILE_FIELD(FIELD_U64, struct profile_tlb, reach_bytes,
                  "Loads within so much memory find their address translated.", REQUIRED, .low = 1,
                  BYTES),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_tlb, seconds,
                  "Time that a miss adds to a load; 0: not known.", SECONDS),
    QUALITY(struct profile_tlb),
};
static const struct profile_object tlb =
    PROFILE_OBJECT("tlb", struct profile_tlb, tlb_fields, "The reach of a level of the TLB.");

static const struct profile_field scaling_fields[] = {
    PROFILE_FIELD(FIELD_U32, struct profile_scaling_point, workers,
                  "Workers of one group that copy at the same time.", REQUIRED, .low = 1),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_scaling_point, bytes_per_s,
                  "Their bandwidth together, read and written.", REQUIRED, POSITIVE, RATE),
    REPEATED(struct profile_scaling_point),
};
static const struct profile_object scaling =
    PROFILE_OBJECT("scaling", struct profile_scaling_point, scaling_fields,
                   "Bandwidth of so many workers in one group.");

static const struct profile_field memory_level_fields[] = {
    PROFILE_FIELD(FIELD_NUMBER, struct profile_memory_level, bytes_per_s,
                  "Bandwidth of one worker while a second one of the same group copies too.", RATE),
    PROFILE_FIELD(FIELD_OBJECT, struct profile_memory_level, collisions, "PUs that interfere.",
                  REQUIRED, .element = &relation, DISJOINT),
    PROFILE_COUNTED("scaling", FIELD_ARRAY, struct profile_memory_level, scaling, scaling_count,
                    "In one group, by ascending number of workers.", .element = &scaling,
                    ASCENDING),
    QUALITY(struct profile_memory_level),
};
static const struct profile_object memory_level =
    PROFILE_OBJECT("memory_level", struct profile_memory_level, memory_level_fields,
                   "A level of memory access overhead.");

static const struct profile_field kernel_fields[] = {
    PROFILE_FIELD(FIELD_WORD, struct profile_kernel_rate, kernel,
                  "nt_copy: a copy by non-temporal stores; copy: by ordinary ones; read: a sum; "
                  "triad: a = b + s c, as STREAM's.",
                  REQUIRED, .words = profile_kernel_names),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_kernel_rate, bytes_per_s,
                  "One PU alone, read and written, as STREAM counts.", REQUIRED, POSITIVE, RATE),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_kernel_rate, together_bytes_per_s,
                  "All of kernel_pus together.", RATE),
    PROFILE_FIELD(FIELD_BOOL, struct profile_kernel_rate, levels,
                  "true: the reference, the overhead levels and their curves are made of this "
                  "one."),
    QUALITY(struct profile_kernel_rate),
};
static const struct profile_object kernel = PROFILE_OBJECT(
    "kernel", struct profile_kernel_rate, kernel_fields, "Memory bandwidth of one kind of loop.");

static const struct profile_field memory_fields[] = {
    PROFILE_FIELD(FIELD_NUMBER, struct profile_memory, reference_bytes_per_s,
                  "One worker alone, read and written.", RATE),
    PROFILE_FIELD(FIELD_STRING, struct profile_memory, method,
                  "Instruction set, kind of stores, pages, size of the arrays."),
    QUALITY(struct profile_memory),
    PROFILE_COUNTED("levels", FIELD_ARRAY, struct profile_memory, levels, level_count,
                    "Worst first; PUs that collide in one collide in every later one.", REQUIRED,
                    .element = &memory_level),
    PROFILE_COUNTED("pair_rates", FIELD_PAIR_FIGURES, struct profile_memory, pair_rates,
                    pair_rate_count,
                    "[a, b, bytes per second] of the slower of two PUs that copy at the same "
                    "time, where that was measured; ascending.",
                    ASIDE, RATE),
    PROFILE_COUNTED("kernels", FIELD_ARRAY, struct profile_memory, kernels, kernel_count,
                    "Bandwidth of loops on memory as the system gives it: less than on the huge "
                    "pages of the levels.",
                    ASIDE, .element = &kernel),
    PROFILE_FIELD(FIELD_SET, struct profile_memory, kernel_pus,
                  "The PUs of together_bytes_per_s: those of one NUMA node.", ASIDE, .low = 1),
};
static const struct profile_object memory = PROFILE_OBJECT(
    "memory", struct profile_memory, memory_fields, "Memory bandwidth of workers together.");

static const struct profile_field numa_access_fields[] = {
    PROFILE_FIELD(FIELD_SET, struct profile_numa_access, pus,
                  "PUs with this access; measured on the first.", REQUIRED, .low = 1),
    PROFILE_FIELD(FIELD_U32, struct profile_numa_access, node,
                  "The NUMA node that the memory is on.", REQUIRED),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_numa_access, seconds_per_access,
                  "Time of a dependent load that misses every cache; 0: not measured.", SECONDS),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_numa_access, bytes_per_s,
                  "One worker that copies within that node, read and written; 0: not measured.",
                  RATE),
    QUALITY(struct profile_numa_access),
};
static const struct profile_object numa_access =
    PROFILE_OBJECT("numa_access", struct profile_numa_access, numa_access_fields,
                   "Access of one PU to the memory of one NUMA node.");

static const struct profile_field message_fields[] = {
    PROFILE_FIELD(FIELD_U64, struct profile_message_point, bytes, "Size of the message.", REQUIRED,
                  BYTES),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_message_point, seconds, "One way.", REQUIRED,
                  POSITIVE, SECONDS),
    REPEATED(struct profile_message_point),
};
static const struct profile_object message = PROFILE_OBJECT(
    "message", struct profile_message_point, message_fields, "Time of a message of one size.");

static const struct profile_field concurrency_fields[] = {
    PROFILE_FIELD(FIELD_U32, struct profile_concurrency_point, messages, "Sent at the same time.",
                  REQUIRED, .low = 1),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_concurrency_point, seconds,
                  "Time of the slowest, one way.", REQUIRED, POSITIVE, SECONDS),
    REPEATED(struct profile_concurrency_point),
};
static const struct profile_object concurrency =
    PROFILE_OBJECT("concurrency", struct profile_concurrency_point, concurrency_fields,
                   "Time of so many messages at once.");

static const struct profile_field layer_fields[] = {
    PROFILE_FIELD(FIELD_STRING, struct profile_layer, name, "core, L3, package, node, network ..."),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_layer, seconds,
                  "One-way latency of a message of message_bytes; absent where it was not "
                  "measured: then only the order of the layers means something.",
                  POSITIVE, SECONDS),
    PROFILE_FIELD(FIELD_OBJECT, struct profile_layer, members,
                  "A pair's layer is the first that has both.", REQUIRED, .element = &relation,
                  DISJOINT),
    PROFILE_COUNTED("curve", FIELD_ARRAY, struct profile_layer, curve, curve_count,
                    "By ascending size.", ASIDE, .element = &message, ASCENDING),
    PROFILE_COUNTED("concurrency", FIELD_ARRAY, struct profile_layer, concurrency,
                    concurrency_count, "By ascending number of messages.", ASIDE,
                    .element = &concurrency, ASCENDING),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_layer, line_seconds,
                  "One cache line from PU to PU, one way, without any library; absent: not "
                  "measured.",
                  POSITIVE, SECONDS),
    PROFILE_FIELD(FIELD_OBJECT, struct profile_layer, line_quality, "How sure line_seconds is.",
                  .element = &evidence),
    QUALITY(struct profile_layer),
};
static const struct profile_object layer =
    PROFILE_OBJECT("layer", struct profile_layer, layer_fields, "A communication layer.");

static const struct profile_field communication_fields[] = {
    PROFILE_FIELD(FIELD_U64, struct profile_communication, message_bytes,
                  "Size at which layers are separated: that of the L1 cache.", BYTES),
    PROFILE_FIELD(FIELD_STRING, struct profile_communication, message_data,
                  "written: the data was written before it was sent; unwritten: never, as in "
                  "OSU's benchmarks, and larger messages take about half the time."),
    PROFILE_COUNTED("layers", FIELD_ARRAY, struct profile_communication, layers, layer_count,
                    "From the lowest latency to the highest.", .element = &layer),
    PROFILE_FIELD(FIELD_OBJECT, struct profile_communication, measured,
                  "Which pairs were measured: both in one of the groups (which may overlap), or "
                  "listed. The layers of all others are inferred. Absent: single pairs "
                  "are not recorded.",
                  ASIDE, .element = &relation),
    PROFILE_COUNTED("message_times", FIELD_PAIR_FIGURES, struct profile_communication,
                    message_times, message_time_count,
                    "[a, b, seconds] of a message of message_bytes between two PUs, one way, "
                    "where that was measured; ascending.",
                    ASIDE, SECONDS),
    PROFILE_COUNTED("line_times", FIELD_PAIR_FIGURES, struct profile_communication, line_times,
                    line_time_count,
                    "[a, b, seconds] of one cache line between two PUs, one way, where that was "
                    "measured; ascending.",
                    ASIDE, SECONDS),
};
const struct profile_object profile_communication_object =
    PROFILE_OBJECT("communication", struct profile_communication, communication_fields,
                   "Layers of latency between PUs or nodes.");

static const struct profile_field transfer_fields[] = {
    PROFILE_FIELD(FIELD_U32, struct profile_transfer, node,
                  "The NUMA node that the memory is on; it is pinned.", REQUIRED),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_transfer, to_device_bytes_per_s,
                  "Of large copies from that memory to the device, by a PU near the memory.",
                  REQUIRED, POSITIVE, RATE),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_transfer, from_device_bytes_per_s,
                  "The same from the device to that memory.", REQUIRED, POSITIVE, RATE),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_transfer, seconds,
                  "Time of the smallest copy to the device, until it is known to be done.",
                  REQUIRED, POSITIVE, SECONDS),
    QUALITY(struct profile_transfer),
};
static const struct profile_object transfer =
    PROFILE_OBJECT("transfer", struct profile_transfer, transfer_fields,
                   "Copies between a device and the memory of a NUMA node.");

static const struct profile_field device_fields[] = {
    PROFILE_FIELD(FIELD_WORD, struct profile_device, kind,
                  "gpu: a GPU or one die of it; nic: a network card or one port of it; disk.",
                  REQUIRED, .words = profile_device_kind_names),
    PROFILE_FIELD(FIELD_STRING, struct profile_device, name, "cuda0, rsmi0, mlx5_0, nvme0n1 ...",
                  REQUIRED),
    PROFILE_FIELD(FIELD_STRING, struct profile_device, aliases,
                  "Its other names, separated by blanks."),
    PROFILE_FIELD(FIELD_STRING, struct profile_device, model, "As its maker calls it."),
    PROFILE_FIELD(FIELD_STRING, struct profile_device, bus_id, "PCI address, 0000:c1:00.0."),
    PROFILE_FIELD(FIELD_U32, struct profile_device, pci_vendor, "Number of its maker.",
                  .high = UINT16_MAX),
    PROFILE_FIELD(FIELD_U32, struct profile_device, pci_device, "Number of its model.",
                  .high = UINT16_MAX),
    PROFILE_FIELD(FIELD_STRING, struct profile_device, uuid,
                  "Of a GPU, as CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES take it."),
    PROFILE_FIELD(
        FIELD_U32, struct profile_device, number,
        "Of a GPU: the number that its runtime counts it by; absent: none, as of a MIG instance.",
        NOT_KNOWN),
    PROFILE_FIELD(FIELD_U32, struct profile_device, card,
                  "Counted from 0 within the kind; dies and ports of one card have one number.",
                  REQUIRED),
    PROFILE_FIELD(FIELD_U32, struct profile_device, numa_node,
                  "Its NUMA node; absent where the system names none or several.", NOT_KNOWN),
    PROFILE_FIELD(FIELD_BOOL, struct profile_device, fabric,
                  "true: a network card that carries messages between nodes."),
    PROFILE_FIELD(FIELD_BOOL, struct profile_device, down, "true: it has no link."),
    PROFILE_FIELD(FIELD_SET, struct profile_device, pus,
                  "The PUs near it; all of the class where it is near to none.", REQUIRED,
                  .low = 1),
    PROFILE_COUNTED("transfers", FIELD_ARRAY, struct profile_device, transfers, transfer_count,
                    "Of a GPU: copies between it and host memory, by ascending node; absent: not "
                    "measured.",
                    .element = &transfer, ASCENDING),
};
static const struct profile_object device = PROFILE_OBJECT(
    "device", struct profile_device, device_fields, "A GPU, a network card or a disk.");

static const struct profile_field class_fields[] = {
    PROFILE_FIELD(FIELD_STRING, struct profile_class, name, "Free text."),
    PROFILE_FIELD(FIELD_SET, struct profile_class, pus, "The PUs that the profile speaks of.",
                  REQUIRED, .low = 1, SPEAKS_OF),
    PROFILE_FIELD(FIELD_OBJECT, struct profile_class, cores, "SMT siblings.", .element = &relation,
                  DISJOINT),
    PROFILE_FIELD(FIELD_OBJECT, struct profile_class, packages, "PUs of one package.",
                  .element = &relation, DISJOINT),
    PROFILE_COUNTED("numa", FIELD_ARRAY, struct profile_class, numa, numa_count,
                    "By ascending number.", .element = &numa, ASCENDING),
    PROFILE_COUNTED("kinds", FIELD_ARRAY, struct profile_class, kinds, kind_count,
                    "Absent: all PUs are of one kind.", .element = &kind),
    PROFILE_COUNTED("caches", FIELD_ARRAY, struct profile_class, caches, cache_count,
                    "By ascending level.", REQUIRED, .element = &cache),
    PROFILE_COUNTED("cache_curve", FIELD_ARRAY, struct profile_class, cache_curve,
                    cache_curve_count,
                    "The curve behind the cache sizes, by ascending working set.", ASIDE,
                    .element = &cache_point, ASCENDING),
    PROFILE_COUNTED("tlb", FIELD_ARRAY, struct profile_class, tlb, tlb_count,
                    "By ascending size of the pages, then of the reach.", ASIDE, .element = &tlb),
    PROFILE_FIELD(FIELD_OBJECT, struct profile_class, memory,
                  "Its bandwidth, and PUs that interfere.", REQUIRED, .element = &memory),
    PROFILE_COUNTED("numa_access", FIELD_ARRAY, struct profile_class, numa_access,
                    numa_access_count, "By lowest PU, then by node.", ASIDE,
                    .element = &numa_access),
    PROFILE_FIELD(FIELD_OBJECT, struct profile_class, communication, "Inside the node.",
                  .element = &profile_communication_object),
    PROFILE_COUNTED("devices", FIELD_ARRAY, struct profile_class, devices, device_count,
                    "GPUs, network cards and disks, as the system sees them.", ASIDE,
                    .element = &device),
};
static const struct profile_object node_class =
    PROFILE_OBJECT("node_class", struct profile_class, class_fields,
                   "Similar nodes. PU numbers are those of the operating system.");

static const struct profile_field node_range_fields[] = {
    PROFILE_FIELD(FIELD_STRING, struct profile_node_range, names,
                  "Host names, \"node1\" or \"node[001-128,200]\".", REQUIRED),
    PROFILE_FIELD(FIELD_U32, struct profile_node_range, count, "How many names that is.", REQUIRED,
                  .low = 1),
    PROFILE_FIELD(FIELD_U32, struct profile_node_range, class_index,
                  "Their class, counted from 0 in node_classes.", REQUIRED),
};
static const struct profile_object node_range = PROFILE_OBJECT(
    "node_range", struct profile_node_range, node_range_fields, "Names of nodes of one class.");

static const struct profile_field bsp_fields[] = {
    PROFILE_FIELD(FIELD_STRING, struct profile_bsp, backend,
                  "\"threads\" (shared memory) or \"mpi\"."),
    PROFILE_FIELD(FIELD_U32, struct profile_bsp, processors, "Number of processors.", REQUIRED,
                  .low = 1),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_bsp, r_flop_per_s, "Computing rate of one.",
                  REQUIRED, POSITIVE, PROFILE_UNIT("flops per second")),
    PROFILE_FIELD(FIELD_U32, struct profile_bsp, vector_length,
                  "Words of the DAXPY that reached r."),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_bsp, g_flops,
                  "Per word of 8 bytes, sent as single words: pessimistic.", REQUIRED, FLOPS),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_bsp, g_packets_flops,
                  "Per word, sent in large packets: optimistic.", FLOPS),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_bsp, l_flops,
                  "Cost of a superstep; left out if the fit gave a negative one.", NOT_KNOWN,
                  FLOPS),
    PROFILE_FIELD(FIELD_NUMBER, struct profile_bsp, t0_flops, "Measured time of a 0-relation.",
                  FLOPS),
    PROFILE_FIELD(FIELD_U32, struct profile_bsp, h_low, "Smallest h of the fit."),
    PROFILE_FIELD(FIELD_U32, struct profile_bsp, h_high, "Largest h of the fit, at least h_low."),
    PROFILE_FIELD(FIELD_U32, struct profile_bsp, bend_h,
                  "First h of a second straight piece; 0 or left out where there is one piece."),
    QUALITY(struct profile_bsp),
};
static const struct profile_object bsp = PROFILE_OBJECT(
    "bsp", struct profile_bsp, bsp_fields, "One superstep takes T(h) = h g + l, in flops.");

static const struct profile_field host_fields[] = {
    PROFILE_NAMED("name", FIELD_STRING, struct servet_profile, host_name, "Host name.", REQUIRED),
    PROFILE_FIELD(FIELD_STRING, struct servet_profile, architecture, "As uname -m says."),
    PROFILE_FIELD(FIELD_STRING, struct servet_profile, cpu_model, "Processor."),
    PROFILE_FIELD(FIELD_STRING, struct servet_profile, kernel, "As uname -r says."),
    PROFILE_FIELD(FIELD_STRING, struct servet_profile, topology_signature,
                  "Tells whether a profile is of the machine at hand."),
};
static const struct profile_object host =
    PROFILE_OBJECT("host", struct servet_profile, host_fields, "The machine that was measured.");

static const struct profile_field measurement_fields[] = {
    PROFILE_FIELD(FIELD_BOOL, struct servet_profile, measured,
                  "false: a topology profile, nothing was measured.", REQUIRED),
    PROFILE_FIELD(FIELD_STRING, struct servet_profile, tool, "Program and version."),
    PROFILE_FIELD(FIELD_STRING, struct servet_profile, started, "ISO 8601, UTC."),
    PROFILE_FIELD(FIELD_NUMBER, struct servet_profile, seconds, "How long it took.", SECONDS),
    PROFILE_COUNTED("conditions", FIELD_MAP, struct servet_profile, conditions, condition_count,
                    "Conditions of the run, such as the governor and the load.", ASIDE),
};
static const struct profile_object measurement =
    PROFILE_OBJECT("measurement", struct servet_profile, measurement_fields,
                   "Whether anything was measured at all, by what, when and how long.");

/* Some members of the profile itself are gathered under one key: their "object" is the profile. */
#define SECTION(name, object)                                                                      \
    {                                                                                              \
        .key = name, .type = FIELD_OBJECT, REQUIRED, .element = &(object)                          \
    }

static const struct profile_field document_fields[] = {
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
    PROFILE_COUNTED("nodes", FIELD_ARRAY, struct servet_profile, nodes, node_range_count,
                    "PU numbers count through the nodes in this order.", REQUIRED, .low = 1,
                    .element = &node_range),
    PROFILE_FIELD(FIELD_OBJECT, struct servet_profile, network,
                  "Between nodes; members are node numbers, counted from 0.", ASIDE,
                  .element = &profile_communication_object),
    PROFILE_COUNTED("bsp", FIELD_ARRAY, struct servet_profile, bsp, bsp_count,
                    "By backend and ascending number of processors.", ASIDE, .element = &bsp),
};
const struct profile_object profile_document = PROFILE_OBJECT(
    "profile", struct servet_profile, document_fields,
    "A machine of one or more nodes. Keys beginning with x- are free for other "
    "tools. This is what this version writes: a reader keeps and ignores other keys, and says so "
    "once.");

/* -- parts by themselves -- */

#ifndef PROFILE_FIELDS_EXPLAINED /* which lists fields and has no profile */
static void empty(const struct profile_object *type, void *object)
{
    profile_object_free(type, object);
    memset(object, 0, type->size);
}

void profile_relation_free(struct profile_relation *of)
{
    empty(&relation, of);
}

void profile_layer_free(struct profile_layer *of)
{
    empty(&layer, of);
}

void profile_communication_free(struct profile_communication *of)
{
    empty(&profile_communication_object, of);
}

void profile_memory_level_free(struct profile_memory_level *of)
{
    empty(&memory_level, of);
}

void profile_memory_free(struct profile_memory *of)
{
    empty(&memory, of);
}

void profile_device_free(struct profile_device *of)
{
    empty(&device, of);
}
#endif
