/* A profile in memory: everything known of a machine.
 *
 * A profile describes a machine of one or more *nodes*. Nodes that are alike share one *node
 * class*, so that a thousand equal nodes cost one node's text. A single computer is a profile with
 * one class and one node.
 *
 *   PU number   within a node: the OS index. In the whole machine: the node's `first_pu` plus the
 *               OS index,
 *               where first_pu is the sum of the spans (largest OS index + 1) of the nodes before
 *               it; so on a single computer the two are the same. (The two-node machine of Tables 1
 *               and 2 of the 2012
 *               mapping paper has 8 PUs a node, numbered 0-7 and 8-15.)
 *
 * Relations between PUs are stored as groups where they are transitive and as explicit pairs only
 * where not:
 *
 *   caches      two PUs of one group share that cache.
 *   memory      levels ordered from the worst collision (lowest bandwidth) to the mildest. Two PUs
 *               of one group of a level, or of one explicit pair, show that overhead when both
 *               access memory. Groups nest: a pair that collides worse is in one group of every
 *               milder level too.
 *   layers      communication layers ordered from the lowest latency to the highest. The latency of
 *               a pair is that of the first layer which has both in one group or lists them as a
 *               pair.
 *
 * Every array is owned by the profile and freed by profile_free(). Numbers not known are 0 unless
 * said otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/base/error.h"
#include "profile/set.h"

#define PROFILE_VERSION 1

/* Where a figure comes from. A topology profile has nothing but PROFILE_DECLARED. */
enum profile_origin {
    PROFILE_DECLARED, /* said by the operating system, not measured */
    PROFILE_MEASURED, /* measured on this very thing */
    PROFILE_INFERRED, /* taken over from an equivalent thing that was measured */
    PROFILE_QUOTED,   /* taken from a publication, by hand */
};

struct profile_quality {
    enum profile_origin origin;
    uint32_t repetitions; /* measurements behind the figure */
    /* relative: (third quartile - first quartile) / median of those measurements; of messages and
     * cache lines how far looks apart in time reach beyond the least; < 0: not known */
    double spread;
    /* What is decided by; the note says it in words. */
    bool cut_short;       /* the budget ended it early */
    bool beside_others;   /* other tasks kept its PUs from running at the same time */
    bool through_threads; /* a message between threads, not through MPI */
    bool pus_move;        /* the PUs of a virtual machine move between those of its host */
    char *note;           /* what looked suspicious, one line, or NULL */
};

struct profile_pair {
    uint32_t a, b; /* a < b */
};

/* A figure of one pair of PUs, in the unit of its list. */
struct profile_pair_figure {
    uint32_t a, b; /* a < b */
    double value;
};

struct profile_relation {
    /* disjoint; ordered by lowest member; groups of one may be left out */
    struct profile_set *groups;
    size_t group_count;
    struct profile_pair *pairs; /* ordered; only where the relation is not transitive */
    size_t pair_count;
};

struct profile_numa {
    uint32_t os_index;
    struct profile_set pus; /* of a node that has only memory: the nearest, or none */
    uint64_t memory_bytes;
    char *kind; /* the system's name for its memory ("HBM", "memory_tier4"), or NULL */
    /* of all its memory, from the nearest PUs, as the firmware says (HMAT); 0: not said */
    double declared_bytes_per_s;
    /* measured: the PUs near it copying in it together, as many as any node has; 0: not measured */
    double together_bytes_per_s;
};

/* Cores that can do equally much (hwloc's cpukinds). */
struct profile_kind {
    uint32_t efficiency; /* higher: more capable, as hwloc's "efficiency" */
    struct profile_set pus;
};

struct profile_cache {
    uint32_t level;      /* 1, 2, 3 … (data or unified) */
    uint64_t size_bytes; /* effective: measured; of a topology profile: the declared one, 0 if not
                            said */
    /* sizes that explain the measurement about as well, `size_bytes` among them; both 0: not
     * known */
    uint64_t size_low_bytes, size_high_bytes;
    uint64_t declared_size_bytes; /* what sysfs / CPUID / hwloc says */
    uint32_t line_bytes;
    uint32_t associativity; /* ways; 0: not known */
    uint64_t page_bytes; /* of the memory that it was measured in (huge or ordinary); 0: not said */
    struct profile_set pus; /* the PUs that have such a cache; empty: every PU of the class */
    /* a PU that has the cache and is in no group or pair has one of its own */
    struct profile_relation sharing;
    struct profile_quality sharing_quality; /* of that; spread: of the pairs' ratios, 0: not known;
                                               its note is quality's */
    /* how many times as long the slower PU of a pair takes when both use two thirds of the cache,
     * ascending; may be empty */
    struct profile_pair_figure *pair_ratios;
    size_t pair_ratio_count;
    struct profile_quality quality;
};

/* How much memory a level of the TLB reaches, on one PU of the class. */
struct profile_tlb {
    uint64_t page_bytes;  /* of the memory that it was measured in: huge pages or ordinary ones */
    uint64_t reach_bytes; /* loads within so much memory find their address translated */
    double seconds;       /* that a miss adds; 0: not known */
    struct profile_quality quality;
};

/* One point of the measured latency curve that the sizes were inferred from. */
struct profile_cache_point {
    uint64_t bytes;            /* working set of one PU alone */
    double seconds_per_access; /* of a dependent load out of it */
    uint32_t repetitions;      /* this and the spread as in struct profile_quality; 0: not said */
    double spread;
};

struct profile_scaling_point {
    uint32_t workers;
    double bytes_per_s; /* of all those workers together */
    uint32_t repetitions;
    double spread;
};

/* One level of memory access overhead (2010 paper, Section III-C). */
struct profile_memory_level {
    double bytes_per_s; /* of one worker while a second one of the same group copies too; 0: not
                           measured */
    struct profile_relation collisions;
    struct profile_scaling_point *scaling; /* in one group, ascending workers; may be empty */
    size_t scaling_count;
    struct profile_quality quality;
};

/* Loops whose traffic is counted as in STREAM: bytes read and written, without the lines that are
 * fetched only to be written to. */
enum profile_kernel {
    PROFILE_NT_COPY, /* a copy by non-temporal stores: lines that are written to are not fetched */
    PROFILE_COPY,    /* a copy by ordinary stores, as compilers make of loops */
    PROFILE_READ,    /* a sum */
    PROFILE_TRIAD,   /* a = b + s c (McCalpin's STREAM) */
    PROFILE_KERNELS
};

/* Bandwidth of one kernel. */
struct profile_kernel_rate {
    enum profile_kernel kernel;
    double bytes_per_s;          /* one PU alone */
    double together_bytes_per_s; /* all of `kernel_pus` together; 0: not measured */
    bool levels; /* the reference, the overhead levels and the curves are made of this one */
    struct profile_quality quality;
};

struct profile_memory {
    /* one worker alone (copy, read + written bytes); 0: not measured */
    double reference_bytes_per_s;
    char *method; /* how it was measured: instruction set, kind of stores, pages, size of the
                     arrays; or NULL */
    struct profile_quality quality;
    struct profile_memory_level *levels; /* worst first */
    size_t level_count;
    /* bytes per second of the slower PU of a pair while both copy, ascending; may be empty */
    struct profile_pair_figure *pair_rates;
    size_t pair_rate_count;
    /* in the order of enum profile_kernel, each once; empty: not measured */
    struct profile_kernel_rate *kernels;
    size_t kernel_count;
    struct profile_set kernel_pus; /* the PUs of one memory domain; empty: none were together */
};

/* Bandwidth and latency of one PU to the memory of one NUMA node while all else is idle. Measured
 * on the first PU of a group and inferred for its other PUs. */
struct profile_numa_access {
    struct profile_set pus;    /* a group of PUs that are local to the same node; never empty */
    uint32_t node;             /* OS index of the NUMA node that the memory is on */
    double seconds_per_access; /* of a dependent load that misses every cache; 0: not measured */
    double bytes_per_s;        /* one worker, copying within that node; 0: not measured */
    struct profile_quality quality;
};

struct profile_message_point {
    uint64_t bytes;
    double seconds; /* one way */
    uint32_t repetitions;
    double spread;
};

struct profile_concurrency_point {
    uint32_t messages; /* sent at the same time */
    double seconds;    /* slowest of them, one way */
    uint32_t repetitions;
    double spread;
};

/* One communication layer (2010 paper, Section III-D). */
struct profile_layer {
    char *name;     /* "core", "L3", "package", "node", "network" … or NULL */
    double seconds; /* one-way latency of a message of profile_communication.message_bytes; 0: not
                       measured (declared), then only the order of the layers means something */
    struct profile_relation members;
    struct profile_message_point *curve; /* ascending bytes; may be empty */
    size_t curve_count;
    struct profile_concurrency_point *concurrency; /* ascending messages; may be empty */
    size_t concurrency_count;
    /* one way of one cache line between two PUs of the layer, without any library: the median of
     * the pairs that were measured; 0: not measured */
    double line_seconds;
    struct profile_quality line_quality; /* of that; its note is quality's */
    struct profile_quality quality;
};

struct profile_communication {
    uint64_t message_bytes; /* size at which layers are separated: that of the L1 cache */
    /* "written": the buffer was written before it is sent; "unwritten": never, as in OSU's
     * benchmarks; NULL: not said */
    char *message_data;
    struct profile_layer *layers;
    size_t layer_count;
    /* Which pairs were measured: both in one of the groups (which may overlap), or listed. The
     * layers of all others are inferred. Empty: nothing is said of single pairs, see the layers'
     * quality. */
    struct profile_relation measured;
    /* what single pairs of PUs took, ascending; may be empty */
    struct profile_pair_figure *message_times; /* seconds of a message of message_bytes, one way */
    size_t message_time_count;
    struct profile_pair_figure *line_times; /* seconds of one cache line, one way */
    size_t line_time_count;
};

enum profile_device_kind { PROFILE_GPU, PROFILE_NIC, PROFILE_DISK, PROFILE_DEVICE_KINDS };

/* Makers of GPUs to compute on (pci_vendor). */
enum { PROFILE_PCI_AMD = 0x1002, PROFILE_PCI_NVIDIA = 0x10de, PROFILE_PCI_INTEL = 0x8086 };

/* Of a device's numbers: not known. */
#define PROFILE_NOT_SAID UINT32_MAX

/* Copies between a device and pinned memory of one NUMA node, by a thread near that memory, while
 * all else is idle. */
struct profile_transfer {
    uint32_t node; /* OS index of the NUMA node that the memory is on */
    double to_device_bytes_per_s, from_device_bytes_per_s;
    double seconds; /* of the smallest copy, until it is known to be done */
    struct profile_quality quality;
};

/* A GPU (or one part of it that its runtime counts: die, tile, partition, MIG instance), a network
 * card or a disk, as the system sees it. The several names that runtimes and drivers have for one
 * device are one device. */
struct profile_device {
    enum profile_device_kind kind;
    char *name;                      /* "cuda0", "mlx5_0", "nvme0n1" */
    char *aliases;                   /* its other names, separated by blanks, or NULL */
    char *model;                     /* or NULL */
    char *bus_id;                    /* PCI address "0000:c1:00.0", or NULL */
    uint32_t pci_vendor, pci_device; /* 0: not known */
    char *uuid;                      /* of GPUs, as their runtime takes it ("GPU-…"), or NULL */
    uint32_t number; /* of GPUs: what their runtime counts them by, from 0; or PROFILE_NOT_SAID */
    uint32_t card;   /* counted from 0 within the kind; dies and ports of one card have the same */
    uint32_t numa_node; /* OS index of its one NUMA node, or PROFILE_NOT_SAID */
    bool fabric;        /* a network card that carries messages between nodes (InfiniBand, …) */
    bool down;          /* a network card without a link */
    struct profile_set pus; /* the PUs near it; all of the class where it is near to none */
    struct profile_transfer *transfers; /* by ascending node; empty: not measured */
    size_t transfer_count;
};

/* Nodes that are alike. All PU numbers in it are OS indices. */
struct profile_class {
    char *name;
    struct profile_set pus;        /* the PUs that the profile speaks of, never empty */
    struct profile_relation cores; /* SMT siblings: groups of PUs on one core */
    struct profile_relation packages;
    struct profile_numa *numa;
    size_t numa_count;
    struct profile_kind *kinds; /* empty: all PUs are of one kind */
    size_t kind_count;
    struct profile_cache *caches; /* ascending level; may hold one level more than once (P and E
                                     cores): disjoint PUs */
    size_t cache_count;
    /* ascending bytes, on one PU of the class; empty: not kept */
    struct profile_cache_point *cache_curve;
    size_t cache_curve_count;
    /* ascending page_bytes, then reach; empty: not measured, or none was seen */
    struct profile_tlb *tlb;
    size_t tlb_count;
    struct profile_memory memory;
    /* by lowest PU of the group, then by node; empty: not measured */
    struct profile_numa_access *numa_access;
    size_t numa_access_count;
    struct profile_communication communication; /* inside the node */
    struct profile_device *devices;             /* by kind, then by number or bus */
    size_t device_count;
};

struct profile_node_range {
    char *names; /* hostlist: "node1" or "node[001-128,200]"; expands to `count` names */
    uint32_t count;
    uint32_t class_index;
};

/* How long one superstep takes: T(h) = h * g + l (flop units: multiply by 1 / r for seconds).
 * Entries of one backend lie together, by ascending processors. */
struct profile_bsp {
    char *backend; /* "threads" (shared memory), "mpi", or NULL */
    uint32_t processors;
    double r_flop_per_s;
    uint32_t vector_length; /* of the DAXPY that reached r, words; 0: not known */
    double g_flops;         /* per word of 8 bytes, single words: the pessimistic g */
    double g_packets_flops; /* with large packets: the optimistic g; 0: not measured */
    double l_flops;         /* < 0: the fit gave none (g and l small and of the same order) */
    double t0_flops;        /* measured time of a 0-relation; 0: not measured */
    uint32_t h_low, h_high; /* interval of the fit; both 0: not known */
    uint32_t bend_h; /* T(h) is no straight line: first h of its second piece; 0: none was seen */
    struct profile_quality quality;
};

/* Something that held while measuring: "governor": "performance", "load_average": "0.3", ... */
struct profile_condition {
    char *key, *value;
};

/* A key that this version does not know, or one that begins with x-: kept for other readers. */
struct profile_extra {
    char *where;       /* path of its object: "$.node_classes[0].caches[1]" */
    char *key, *value; /* JSON */
};

struct servet_profile {
    /* host */
    char *host_name;
    char *architecture; /* uname -m */
    char *cpu_model;
    char *kernel;
    /* see find/signature.c; "" in a profile of a machine that never was here */
    char *topology_signature;
    /* measurement */
    char *tool;     /* "servet 0.1.0" */
    char *started;  /* ISO 8601 UTC, or "" */
    double seconds; /* how long it took */
    bool measured;  /* false: topology profile, nothing was measured */
    struct profile_condition *conditions;
    size_t condition_count;
    /* machine */
    struct profile_class *classes;
    size_t class_count;
    struct profile_node_range *nodes;
    size_t node_range_count;
    /* between nodes; PU numbers replaced by node numbers; empty on one node */
    struct profile_communication network;
    struct profile_bsp *bsp;
    size_t bsp_count;
    /* what is written back where it was read, as long as its object is still there */
    struct profile_extra *extras;
    size_t extra_count;
    char *unknown; /* one line that names the first key that is not known; NULL: all are */
};

/* Frees everything the profile owns, and the profile. NULL allowed. */
void profile_free(struct servet_profile *profile);

/* Checks every promise made above (sets inside the class's PUs, groups disjoint and ordered, levels
 * in order, figures positive and finite, class indices in range). 0, or -EINVAL with the JSON path
 * of the first broken one. profile_load() and profile_save() call it. */
int profile_check(const struct servet_profile *profile, struct servet_error *error);

/* Number of nodes; class of a node; first PU number of a node (see above); number of PU numbers in
 * all. */
uint32_t profile_node_count(const struct servet_profile *profile);
const struct profile_class *profile_node_class(const struct servet_profile *profile, uint32_t node);
uint32_t profile_node_first_pu(const struct servet_profile *profile, uint32_t node);
uint32_t profile_class_span(const struct profile_class *node_class);
/* Text of a condition of the measurement; NULL: no condition of that name. */
const char *profile_condition(const struct servet_profile *profile, const char *key);

/* -- codec/ -- */

/* Reads and validates a profile. Keys that are not known (a newer version wrote them) are kept and
 * ignored; profile->unknown says so. Control characters in strings become '?'. 0, -ENOENT / -EACCES
 * … (file), -EINVAL (no regular file of at most 16 MiB, not a profile, of a newer format, a field
 * that is missing or out of range: the text names file, line or JSON path, and what was expected),
 * -ENOMEM. */
int profile_load(const char *path, struct servet_profile **out, struct servet_error *error);
/* The same without what no place on a node is chosen by (curves, single pairs, what lies between
 * nodes …; `aside` in the table of fields), which is not checked either: for the shim, whose
 * program waits for it. */
int profile_load_node(const char *path, struct servet_profile **out, struct servet_error *error);
int profile_parse(const char *text, size_t length, const char *name, struct servet_profile **out,
                  struct servet_error *error);

/* Writes beside `path`, syncs, renames over it: a reader sees the old profile or the new one, never
 * half of one. Its permissions stay as they were. 0; -EINVAL (the profile breaks a promise; `path`
 * is no regular file); -EPERM (another user's link in a folder for everybody); -errno of the
 * system. */
int profile_save(const struct servet_profile *profile, const char *path,
                 struct servet_error *error);
/* Is there nothing at `path`, an empty file, what cannot be read, or the beginning of a profile? A
 * command asks before it measures, for it would replace the file. */
bool profile_replaceable(const char *path);
/* The profile as text, a new string, or NULL. */
char *profile_to_json(const struct servet_profile *profile);

/* -- lookup.c -- */

/* First of: $SERVET_PROFILE (taken even if absent: the user meant it);
 * $XDG_CONFIG_HOME/servet/HOST.json (default ~/.config/servet/HOST.json); /etc/servet/HOST.json;
 * /etc/servet/profile.json. HOST is the host name up to the first dot. A file that cannot be read
 * is found, but not in a folder of another user. 0 and the path, or -ENOENT when there is none. */
int profile_find(char *path, size_t size);
/* The same with another folder in the place of /etc. */
int profile_find_under(const char *sysconfdir, char *path, size_t size);
/* Where servet-probe writes: $SERVET_PROFILE, else the per-user place. Makes no folder. */
int profile_default_path(char *path, size_t size, struct servet_error *error);

/* -- topology/: sysfs.c (all that the shim can use), hwloc.c (commands and libservet) -- */

/* Derives a topology profile ("not measured"): caches and their groups as declared, one memory
 * overhead level per NUMA node and per package where that differs, communication layers by nesting
 * (core, each shared cache, package/NUMA, node). `root` is "" for this machine, or the folder of a
 * captured /sys and /proc. Host, processor and signature are left out: they cost more than half of
 * all of it, and the shim, which only places, is who asks. */
int profile_from_sysfs(const char *root, struct servet_profile **out, struct servet_error *error);

/* The same from hwloc, with host, processor and signature (of what is here only): `source` NULL is
 * this machine, or what HWLOC_XMLFILE says instead; a path to an existing file is hwloc XML,
 * anything else a synthetic description ("package:2 core:4 pu:2"). */
int profile_from_hwloc(const char *source, struct servet_profile **out, struct servet_error *error);

/* -- signature.c -- */

/* Signature of the machine under `root` ("" is this one), cheap enough for every start of a program
 * (tens of small files, no /proc/cpuinfo): architecture, CPU vendor/family/model, present PUs, NUMA
 * nodes, declared caches of the first PU. It does not change when a PU goes offline. Writes 16
 * hexadecimal digits and a terminator. */
#define PROFILE_SIGNATURE_SIZE 17
int profile_signature(const char *root, char out[PROFILE_SIGNATURE_SIZE]);

/* Does the profile describe this machine? 0; -ESTALE with the reason (other signature, or `allowed`
 * PUs that the profile does not know). A profile without a signature, and a cluster profile, are
 * matched by host name. */
int profile_matches(const struct servet_profile *profile, const char *root,
                    const struct profile_set *allowed, struct servet_error *error);

/* The class of the node called `host` (up to the first dot), or NULL. On a single-node profile: its
 * only class. */
const struct profile_class *profile_class_of_host(const struct servet_profile *profile,
                                                  const char *host);

/* The class of this host; the first one where the profile does not know it. */
const struct profile_class *profile_class_here(const struct servet_profile *profile);

/* -- hostlist.c: lists of host names as batch systems write them, items separated by commas, each
 * with at most one bracket of numbers, "login,node[001-128,200]-ib". Numbers keep the width they
 * are written with. -- */

/* How many names the list expands to. 0; -EINVAL (malformed, empty, a descending range); -ERANGE
 * (more than PROFILE_SET_LIMIT names, or a number of more than nine digits). */
int profile_hostlist_count(const char *list, uint32_t *count);

/* Name number `index` (from 0). 0; -ERANGE (no such name); -ENAMETOOLONG; -EINVAL (malformed
 * list). */
int profile_hostlist_name(const char *list, uint32_t index, char *name, size_t size);

/* Position of `name` in the list, or -1. Compares the whole name and, where that differs, both up
 * to the first dot. */
int64_t profile_hostlist_find(const char *list, const char *name);
