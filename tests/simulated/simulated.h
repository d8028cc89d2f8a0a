/* A simulated machine: its description in memory, and its answers. */
#pragma once

#include "probes/machine.h"
#include "profile/base/random.h"
#include "profile/codec/codec.h"
#include "profile/model.h"

/* A machine out of a JSON description (tests/fixtures/machines/README.md). `seed` drives its noise
 * and page placement. -ENOENT …, -EINVAL with file and place. Here and below the program ends where
 * there is no memory: a test has nothing to ask then. */
int probe_machine_open_simulated(const char *path, uint64_t seed, struct machine *out,
                                 struct servet_error *error);
/* Its processors (bsp.c): rates, and words over the links of its layers. -ENOTSUP: none are
 * described. */
int probe_sim_daxpy(struct machine *machine, uint32_t processors, uint32_t length,
                    double *flop_per_s);
int probe_sim_superstep(struct machine *machine, uint32_t processors,
                        const struct bsp_superstep *what, double *seconds);

/* -- a machine described in JSON, as tests/fixtures/machines/README.md says -- */

/* Caches in front of one PU, and in the description of a machine whose kinds of cores have their
 * own. */
enum { SIM_DEPTH_MAX = 5, SIM_CACHES_MAX = 16 };

enum sim_policy {
    SIM_LRU,
    SIM_TREE_PLRU, /* for ways that are no power of two: one reference bit per way */
    SIM_RANDOM,
    SIM_AGED,     /* four ages, as CACHE_AGED; a row is full of strangers' lines at first */
    SIM_ADAPTIVE, /* DRRIP: set dueling between SRRIP and BRRIP (Jaleel et al., ISCA 2010) */
};

enum sim_inclusion {
    SIM_FILLED,    /* every miss fills it */
    SIM_INCLUSIVE, /* the same, and what it evicts leaves the levels before it */
    SIM_VICTIM,    /* holds what the level before it evicted, and gives it back on a hit */
};

enum sim_indexing {
    SIM_PHYSICAL,
    SIM_VIRTUAL,
    SIM_BY_PLACE, /* only while reading: virtual in front of all others, else physical */
};

enum sim_mapping { SIM_PAGES_RANDOM, SIM_PAGES_COLOURED, SIM_PAGES_CONTIGUOUS };

struct sim_cache {
    uint32_t level, ways, line_bytes, slices;
    uint64_t size_bytes, declared_size_bytes;
    uint64_t sets; /* of one slice */
    double seconds;
    enum sim_policy policy;
    enum sim_inclusion inclusion;
    enum sim_indexing indexing;
    struct profile_set pus; /* that have it */
    /* by position of the PU in the machine's set; SIM_NO_INSTANCE: has none */
    uint32_t *instance_of;
    uint32_t instances;
    struct profile_set *groups;
    size_t group_count;
    struct profile_set *declared_groups; /* none: what is so is declared */
    size_t declared_group_count;
};

#define SIM_NO_INSTANCE UINT32_MAX

/* The caches in front of one PU, nearest first: positions in `caches` of the machine. */
struct sim_path {
    uint8_t caches[SIM_DEPTH_MAX];
    uint8_t depth;
};

struct sim_tlb {
    struct profile_set pus; /* that have it */
    uint64_t entries;
    uint32_t ways;  /* of a set, of which the least recently used one goes */
    double seconds; /* that a miss adds */
};

/* Cores that can do equally much, as the machine declares them. */
struct sim_kind {
    struct profile_set pus;
    uint32_t efficiency; /* the least capable: 0 */
    double memory_seconds, pu_bytes_per_s;
};

/* Bandwidth of a number of PUs of a domain together. */
struct sim_capacity {
    uint32_t workers;
    double bytes_per_s;
};

/* Memory traffic of these PUs together is limited; domains may nest (core, L3, link of a die, bus,
 * cell, NUMA node, package, machine). */
struct sim_domain {
    const struct profile_set *pus; /* its kind's, or one of its groups */
    const struct sim_domain_kind *kind;
};

/* As the description has them: one domain, or several alike. */
struct sim_domain_kind {
    struct profile_set pus;
    struct profile_set *groups;
    size_t group_count;
    struct sim_capacity *capacities; /* ascending by workers, at least one; straight lines between
                                        them, the same beyond either end */
    size_t capacity_count;
};

/* Bandwidth of these PUs to a NUMA node's memory. */
struct sim_access {
    struct profile_set pus;
    double seconds, bytes_per_s;
};

struct sim_node {
    uint32_t os_index;
    struct profile_set pus; /* empty: memory only */
    uint64_t memory_bytes;
    double together_bytes_per_s; /* what its memory gives all that copy in it; 0: no limit */
    /* PUs in none of these: the machine's memory_seconds and pu_bytes_per_s */
    struct sim_access *from;
    size_t from_count;
};

/* Copies between a GPU and the memory of a NUMA node. */
struct sim_transfer {
    uint32_t node;
    double to_device_bytes_per_s, from_device_bytes_per_s, seconds;
};

struct sim_gpu {
    char *name;
    struct profile_set pus;         /* near it */
    struct sim_transfer *transfers; /* empty: it is out of reach */
    size_t transfer_count;
};

struct sim_layer {
    char *name;
    struct profile_set *groups;
    size_t group_count;
    double seconds, bytes_per_s;
    double rendezvous_seconds; /* added from `eager_bytes` on */
    uint64_t eager_bytes;
    double parallel; /* messages at once that do not slow each other down; 0: any number */
};

/* Measured one-way times between PUs, beside or instead of layers. */
struct sim_matrix {
    char *file;      /* NULL: there is none */
    double *seconds; /* of one line, by the PUs' positions, row by row; NULL: there is none */
};

/* Costs of a processor and its BSP library in a superstep, besides the layers' links (bsp.c). */
struct sim_bsp {
    double flop_per_s;          /* of long vectors; 0: the description has no `bsp` */
    double word_seconds;        /* to put a single word, and to store one that came */
    double packed_word_seconds; /* the same for a word of a packet */
    double alone_seconds;       /* the barrier of a lone processor */
    double start_seconds;       /* of the communication of a superstep that has any */
    double partner_seconds;     /* for each processor that it sends to */
};

struct sim_noise {
    double relative;            /* standard deviation of every figure */
    double outlier_probability; /* of a figure that is up to `outlier_factor` times too slow */
    double outlier_factor;
    double others;                /* tasks that each PU is shared with, a turn each */
    double neighbour_probability; /* of another program using the last level cache during a
                                     traversal */
    double neighbour_lines;       /* that it brings in per access of ours */
    double sibling_probability;   /* the same for the first level: a busy sibling on the core */
    double sibling_lines;
};

struct sim {
    char *name, *source; /* source: where the description comes from */
    struct profile_set pus;
    size_t pu_count;
    struct profile_set *cores, *packages;
    size_t core_count, package_count;
    uint64_t page_bytes, huge_page_bytes;
    enum sim_mapping mapping;
    struct sim_cache *caches; /* at most SIM_CACHES_MAX */
    size_t cache_count;
    struct sim_path *paths; /* by position of the PU in the machine's set */
    struct sim_kind *kinds; /* empty: all PUs are alike */
    size_t kind_count;
    struct sim_tlb *tlbs;
    size_t tlb_count;
    uint64_t prefetched_stride_bytes; /* strides up to this are fetched ahead */
    double memory_seconds, pu_bytes_per_s;
    struct sim_domain_kind *domain_kinds;
    size_t domain_kind_count;
    struct sim_domain *domains;
    size_t domain_count;
    struct sim_node *nodes;
    size_t node_count;
    struct sim_gpu *gpus;
    size_t gpu_count;
    struct sim_layer *layers;
    size_t layer_count;
    struct sim_matrix matrix;
    struct sim_bsp bsp;
    struct sim_links *links; /* made for the first superstep (bsp.c) */
    struct sim_noise noise;
    struct random random;
    /* by cache, then instance; made when first asked for (cache.c) */
    struct sim_ways *ways[SIM_CACHES_MAX];
    uint64_t offline_after, copies; /* a PU is offline after so many copies; 0: never */
    double clock_s; /* what the same measurements would have taken on the machine itself */
    struct machine_times times;
};

/* Reads a description; fills the machine's public fields (pus, declared, page sizes) as well. */
int probe_sim_load(const char *path, struct sim *sim, struct machine *machine,
                   struct servet_error *error);
void probe_sim_free(struct sim *sim);

/* Seconds of a load by `pu` from node `numa` (< 0: the PU's own), and what it copies there in a
 * second. -EACCES when the machine has no such node. */
int probe_sim_memory_of(const struct sim *sim, int32_t numa, uint32_t pu, double *seconds,
                        double *bytes_per_s);

/* Seconds per access of each PU in a traversal, without noise. 0, -EACCES as above. */
int probe_sim_traverse(struct sim *sim, const struct machine_traversal *what, const uint32_t *pus,
                       size_t count, double *seconds_per_access);

/* The layer of a pair, and which of its groups; NULL: none has both. */
const struct sim_layer *probe_sim_layer_of(const struct sim *sim, const struct profile_pair *pair,
                                           size_t *group);
/* As late as the machine's noise makes what would take so long. */
double probe_sim_noisy(struct sim *sim, double seconds);

/* -- cache -- */

/* One cache, set by set. Lines are physical (or virtual) line numbers +
 * 1; 0 is empty.
 *
 * A traversal visits a few of a large cache's rows only, and millions of traversals are simulated:
 * rows are kept together in slots, given out when a traversal is prepared, and the next traversal
 * begins with none. */

#define SIM_NO_SLOT UINT32_MAX

struct sim_ways {
    const struct sim_cache *kind;
    uint32_t *slot_of; /* by row (sets * slices), + 1; 0: none */
    uint32_t *row_of;  /* by slot, as all below */
    uint64_t *lines;   /* `ways` of each; LRU: most recent first */
    uint8_t *marks;    /* by line: re-reference prediction */
    uint64_t *trees;   /* the bits of pseudo-LRU */
    size_t used, room; /* slots */
    int32_t duel;      /* which of the two policies of SIM_ADAPTIVE loses less */
    uint32_t seed;
};

/* An empty cache without slots; the first call for zeroed memory allocates. */
void probe_sim_ways_clear(struct sim_ways *ways, const struct sim_cache *kind, uint32_t seed);
void probe_sim_ways_free(struct sim_ways *ways);

/* The slot of the line's row, given out if it has none. */
uint32_t probe_sim_ways_reserve(struct sim_ways *ways, uint64_t line);
/* SIM_NO_SLOT: the row is none of this traversal's. */
uint32_t probe_sim_ways_slot(const struct sim_ways *ways, uint64_t line);

/* True when the line is there; then it is also marked as used. */
bool probe_sim_ways_hit(struct sim_ways *ways, uint32_t slot, uint64_t line);
/* Brings the line in; the line it evicts, or 0. */
uint64_t probe_sim_ways_fill(struct sim_ways *ways, uint32_t slot, uint64_t line);
void probe_sim_ways_remove(struct sim_ways *ways, uint32_t slot, uint64_t line);

extern const struct profile_object probe_sim_description; /* fields.c; struct sim */
