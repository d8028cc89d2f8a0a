/* libservet: what Servet knows of this machine, for programs that tune themselves.
 *
 *     servet_profile *p; struct servet_error e;
 *     if (servet_profile_open(NULL, &p, &e) < 0) { fprintf(stderr, "%s\n", e.text); return 2; }
 *     double bytes = (double)servet_cache_bytes(p, 2, 0); // 0: not known
 *     size_t tile = bytes > 0 ? (size_t)sqrt(bytes / (3 * sizeof(double))) : 64;
 *
 * Every function that can fail returns 0 or a negative errno value and sets its outputs only on
 * success. The others answer 0 (or -1 where 0 is an answer) for what is not known: a PU that the
 * profile does not speak of, a cache level that a PU does not have, a figure that was not measured.
 * Nothing is known of a profile that is NULL.
 *
 * PU numbers are OS indices on a single computer. In the profile of a cluster they are counted
 * through the nodes: node 0 has the numbers from 0 to its largest OS index, node 1 goes on from
 * there, and so on.
 *
 * A profile does not change while it is open: any number of threads may ask it at the same time.
 *
 * The comments below are the functions' manual pages, too: man/functions.py says what they keep to.
 */
#ifndef SERVET_H
#define SERVET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct servet_profile servet_profile;

/* Why a call failed, in one line without its newline; empty when none did. */
struct servet_error {
    char text[512];
};

/* -- the library -- */

/* Version of the library. It is text such as "0.1.0", which is not to be freed. */
const char *servet_version(void);

/* -- opening -- */

/* Opens the profile in a file. `path` NULL: of this machine, the first of $SERVET_PROFILE, the
 * user's profile ($XDG_CONFIG_HOME/servet/HOST.json, by default under ~/.config),
 * /etc/servet/HOST.json and /etc/servet/profile.json; when there is none, what the operating system
 * declares, for which servet_measured() says 0.
 *
 * 0 and *profile, to be closed with servet_profile_close(). Otherwise `error` (may be NULL) says in
 * one line what is wrong with which file:
 *   -ENOENT, -EACCES, …  the file cannot be read
 *   -EINVAL              it is not a profile, or one of a version that this library does not know
 *   -ESTALE              (`path` NULL only) the profile found is of another machine
 *   -ENOMEM */
int servet_profile_open(const char *path, servet_profile **profile, struct servet_error *error);

/* Opens what the operating system declares of this machine, as if there were no profile. 0 and
 * *profile, to be closed with servet_profile_close(); -ENOMEM; -EIO: it cannot be asked. */
int servet_topology_open(servet_profile **profile, struct servet_error *error);

/* Ends the use of a profile. NULL is allowed; what was got from the profile goes with it. */
void servet_profile_close(servet_profile *profile);

/* -- the machine -- */

/* Says whether the figures were measured. 1: they were, by servet-probe(1); 0: they are declared by
 * the operating system, and there are no bandwidths and no latencies. */
int servet_measured(const servet_profile *profile);

/* Number of nodes, and of PUs of all nodes together. 1 or more: a profile has both. */
uint32_t servet_node_count(const servet_profile *profile);
uint32_t servet_pu_count(const servet_profile *profile);

/* Writes the PU numbers, ascending: up to `room` of them to `pus` (may be NULL when `room` is 0).
 * 1 or more: how many there are. */
size_t servet_pus(const servet_profile *profile, uint32_t *pus, size_t room);

/* -- caches (IPDPS 2010 paper, Sections III-A and III-B) -- */

/* Highest level of cache of any PU. 0: none is known; 3: there are L1, L2 and L3. */
uint32_t servet_cache_levels(const servet_profile *profile);

/* Effective size in bytes of the data or unified cache of `level` that `pu` uses: a program can
 * fill so much before it gets slower, all sharers together. A profile that was not measured gives
 * the declared size. 0: unknown, no such cache, or not settled. A size is not settled if it was
 * measured once, if its repetitions differ, or if it is uncertain by a factor of two and differs
 * from the declared size; servet_cache_interval() says between which sizes it lies. */
uint64_t servet_cache_bytes(const servet_profile *profile, uint32_t level, uint32_t pu);

/* Bytes of one line of the cache of `level` that `pu` uses. 0: not known, or no such cache. */
uint32_t servet_cache_line_bytes(const servet_profile *profile, uint32_t level, uint32_t pu);

/* Size in bytes that the operating system declares for the cache of `level` that `pu` uses,
 * measured or not. 0: it says none. */
uint64_t servet_cache_declared_bytes(const servet_profile *profile, uint32_t level, uint32_t pu);

/* The least and the largest size that explain the measurement of the cache of `level` that `pu`
 * uses about as well as the likeliest does, settled or not. They are meant to hold
 * the true size in 95 % of runs; a program that must not overflow the cache takes the least.
 * `low_bytes` or `high_bytes` may be NULL. 0; -ENOENT: there is no such cache, or its size was not
 * measured, or has no interval. */
int servet_cache_interval(const servet_profile *profile, uint32_t level, uint32_t pu,
                          uint64_t *low_bytes, uint64_t *high_bytes);

/* Ways of the cache of `level` that `pu` uses: how many lines of one set it holds at a time. 0: not
 * known, or no such cache. */
uint32_t servet_cache_ways(const servet_profile *profile, uint32_t level, uint32_t pu);

/* Bytes of memory that a level of the TLB of `pu` reaches: loads within so much find their address
 * translated. `level` is 1, 2 …, and the memory is in pages of `page_bytes`. 0: not measured, or
 * no such level. */
uint64_t servet_tlb_bytes(const servet_profile *profile, uint32_t level, uint64_t page_bytes,
                          uint32_t pu);

/* Says whether two PUs share one cache of `level`. 1: they do (also when they are the same and have
 * one); 0: they do not. */
int servet_cache_shared(const servet_profile *profile, uint32_t level, uint32_t pu_a,
                        uint32_t pu_b);

/* Number of PUs that use the same cache of `level` as `pu`, itself included. 0: it
 * has none. */
uint32_t servet_cache_sharers(const servet_profile *profile, uint32_t level, uint32_t pu);

/* -- memory (2010 paper, Section III-C) -- */

/* Bytes per second, read and written, that a number of workers get together. They copy at the same
 * time, from the memory of `pu`, in the group of PUs around it that collide worst. One alone gets
 * what its kind of cores gets. Between measured numbers of `workers` (the first is 1) a straight
 * line; above the largest one its figure. 0: not measured, `workers` is 0, or there are several and
 * `pu` collides with no other (servet_overhead_level()): then each gets what one gets alone. */
double servet_memory_bandwidth(const servet_profile *profile, uint32_t pu, uint32_t workers);

/* Bytes per second, read and written, of one worker on `pu` that copies within the memory of a NUMA
 * node, while all else is idle. `numa_node` is the operating system's number on the PU's own node;
 * nodes that have memory only are asked in the same way. 0: not measured. */
double servet_numa_bandwidth(const servet_profile *profile, uint32_t pu, uint32_t numa_node);

/* Seconds of a load on `pu` from the memory of NUMA node `numa_node` that misses every cache.
 * 0: not measured. */
double servet_numa_seconds(const servet_profile *profile, uint32_t pu, uint32_t numa_node);

/* Memory overhead level of two PUs that copy at the same time: the first one is the worst. A
 * profile that was not measured answers by its declared NUMA nodes and packages. 0, 1 … or -1: no
 * interference, or it is not known (servet_measured()), or the same PU twice. */
int servet_overhead_level(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b);

/* Number of memory overhead levels of the node that has most; they are numbered from 0, the worst.
 * 0: none was found, or none is declared. */
uint32_t servet_overhead_levels(const servet_profile *profile);

/* Bytes per second, read and written, that a number of workers get together in one group of a
 * memory overhead level: that of `pu`. Between and above measured numbers as
 * servet_memory_bandwidth(), which asks the worst level of the PU. 0: not measured, `workers` is 0,
 * no such `level`, or the PU is in none of its groups. */
double servet_level_bandwidth(const servet_profile *profile, uint32_t level, uint32_t pu,
                              uint32_t workers);

/* Bytes per second, read and written, that each of two PUs gets while both copy; of two that do not
 * disturb each other what one alone gets, of two kinds of cores the lesser figure, and never more
 * than one of them gets alone. 0: not measured, or the same PU twice. */
double servet_overhead_bandwidth(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b);

/* Loops whose traffic is counted as in STREAM (McCalpin, 1995): bytes read and written, without the
 * lines that are fetched only to be written to. */
enum servet_kernel {
    SERVET_NT_COPY = 0, /* a copy by non-temporal stores: what the functions above are made of */
    SERVET_COPY = 1,    /* a copy by ordinary stores, as compilers make of loops */
    SERVET_READ = 2,    /* a sum */
    SERVET_TRIAD = 3,   /* a = b + s c: STREAM's triad */
};

/* Bytes per second that a loop over memory gets. Where `workers` is NULL one PU runs it alone;
 * otherwise all PUs of a NUMA node do together, and their number is then in *workers (untouched
 * when 0 is returned). 0: not measured, or no such `kernel`. */
double servet_kernel_bandwidth(const servet_profile *profile, uint32_t pu,
                               enum servet_kernel kernel, uint32_t *workers);

/* Bytes per second that the slower of two PUs got while both copied (2010 paper, Figure 9a). The
 * figure belongs to this pair, not to its level: by default some pairs of each kind are measured,
 * with servet-probe --exhaustive all. 0: this pair was not measured, or is one PU twice or of two
 * nodes. */
double servet_pair_bandwidth(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b);

/* Bytes of memory that a NUMA node has. `numa_node` is the operating system's number on the node of
 * `pu`. 0: not said, or no such node. */
uint64_t servet_numa_memory_bytes(const servet_profile *profile, uint32_t pu, uint32_t numa_node);

/* Writes the operating system's numbers of the NUMA nodes of the node that `pu` is on, ascending,
 * those without PUs too: up to `room` of them to `nodes` (may be NULL when `room` is 0). 1 or more:
 * how many there are; 0: not known, or the profile does not have the PU. */
size_t servet_numa_nodes(const servet_profile *profile, uint32_t pu, uint32_t *nodes, size_t room);

/* NUMA node with memory that `pu` is local to, by the operating system's number; the lowest of
 * several. -1: not known. */
int64_t servet_numa_node(const servet_profile *profile, uint32_t pu);

/* -- devices -- */

enum servet_device_kind {
    SERVET_GPU = 0,  /* or one die of it */
    SERVET_NIC = 1,  /* a network card, or one port of it */
    SERVET_DISK = 2, /* NVMe and other block devices */
};

/* Texts belong to the profile; NULL: not known. */
struct servet_device {
    enum servet_device_kind kind;
    const char *name;   /* "cuda0", "mlx5_0", "nvme0n1" */
    const char *bus_id; /* PCI address, "0000:c1:00.0" */
    const char *uuid;   /* of a GPU, as CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES take it */
    int64_t number;     /* of a GPU: what its runtime counts it by; -1: not known */
    int64_t numa_node;  /* the operating system's number; -1: none, or several */
    uint32_t card;      /* dies and ports of one card have the same number, from 0 in each kind */
};

/* Writes the devices of one kind that `pu` is near to, the nearest first: those that fewest PUs are
 * near to. Up to `room` of them go to `out` (may be NULL when `room` is 0). A device that is near
 * to no PUs in particular counts as near to all of its node, and comes last. 1 or more: how many
 * there are; 0: none is known, or the profile does not have the PU. */
size_t servet_devices_near(const servet_profile *profile, uint32_t pu, enum servet_device_kind kind,
                           struct servet_device *out, size_t room);

/* Copies between a device and pinned memory of one NUMA node, by a thread near that memory. */
struct servet_transfer {
    double to_device_bytes_per_s, from_device_bytes_per_s; /* of large copies */
    double seconds; /* of the smallest copy, until it is known to be done */
    double spread;  /* of those measurements, relative; < 0: not known */
};

/* Bandwidth and latency of copies between the memory of a NUMA node and a GPU, while all else is
 * idle. `device` is a name as of servet_devices_near(), `numa_node` the operating system's number;
 * both are of the node of `pu`. 0 and *out; -ENOENT: not measured, or no such device or node. */
int servet_device_transfer(const servet_profile *profile, uint32_t pu, const char *device,
                           uint32_t numa_node, struct servet_transfer *out);

/* -- messages (2010 paper, Section III-D) -- */

/* Seconds that a message takes from one PU to another, one way. Between measured sizes a straight
 * line of `bytes`; above the largest one at its bandwidth, and never less than that one took. When
 * only one size was measured for the pair's layer: as long as that one up to its size, in
 * proportion above. 0: not measured, or the same PU twice. */
double servet_message_seconds(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                              uint64_t bytes);

/* Seconds that a message took between two PUs, one way. The figure belongs to this pair, not to its
 * layer. Its size is the one that separates layers, and is then in *bytes (may be NULL; untouched
 * when 0 is returned). 0: this pair was not measured, or is one PU twice or of two nodes. */
double servet_pair_seconds(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                           uint64_t *bytes);

/* Seconds that one cache line takes from one PU to the other, one way. This is the core-to-core
 * latency, between two threads and without any library. The figure is that of this pair if it was
 * measured, else that of its layer. 0: not measured, or the same PU twice, or PUs of two nodes. */
double servet_line_seconds(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b);

/* How many times as long a message takes when several go over the layer of two PUs at the same time
 * (2010 paper, Figure 10b): between measured numbers of `messages` a straight line, in proportion
 * above. 0: not measured, the same PU twice, or no message. */
double servet_messages_slower(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                              uint32_t messages);

/* Communication layer of two PUs: 0 is the fastest of a node, the layers between nodes come after
 * those within. Known without measurement too, then in the order that the caches suggest.
 * -1: not known, or the same PU twice. */
int servet_message_layer(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b);

/* -- how sure a figure is --
 *
 * A profile may hold a part only (a probe was not asked for, there was no time or no memory for
 * it), and figures may be inferred from equivalent ones that were measured. 0 and *out; or -ENOENT:
 * there is no such figure. */

enum servet_origin {
    SERVET_DECLARED = 0, /* declared by the operating system, or the order that it suggests */
    SERVET_MEASURED = 1, /* measured on this PU, pair or node itself */
    SERVET_INFERRED = 2, /* inferred from an equivalent one that was measured */
};

struct servet_quality {
    enum servet_origin origin;
    uint32_t repetitions; /* measurements behind the figure; 0: not said */
    /* relative: (third quartile - first quartile) / median of them; of messages and cache lines:
     * largest excess over the least of several looks at different times; < 0: not known */
    double spread;
};

/* How sure the size of a cache is: of servet_cache_bytes() for the same arguments. */
int servet_cache_quality(const servet_profile *profile, uint32_t level, uint32_t pu,
                         struct servet_quality *out);
/* How sure it is who shares a cache: of servet_cache_shared() and servet_cache_sharers(). The
 * spread is that of the ratios of time that decided. */
int servet_sharing_quality(const servet_profile *profile, uint32_t level, uint32_t pu,
                           struct servet_quality *out);
/* How sure a bandwidth is: of servet_memory_bandwidth() for the same arguments, between two numbers
 * of workers that of the less sure. */
int servet_memory_quality(const servet_profile *profile, uint32_t pu, uint32_t workers,
                          struct servet_quality *out);
/* How sure the bandwidth of a loop is: of servet_kernel_bandwidth(). SERVET_MEASURED says that it
 * was on this PU, or that this PU was one of those together. */
int servet_kernel_quality(const servet_profile *profile, uint32_t pu, enum servet_kernel kernel,
                          struct servet_quality *out);
/* How sure the figures of a NUMA node are: of servet_numa_bandwidth() and servet_numa_seconds() for
 * the same arguments. */
int servet_numa_quality(const servet_profile *profile, uint32_t pu, uint32_t numa_node,
                        struct servet_quality *out);
/* Quality of the layer of two PUs: for servet_message_layer(), and for servet_message_seconds() at
 * the size that separates layers. SERVET_MEASURED: messages between these two PUs were measured. */
int servet_message_quality(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                           struct servet_quality *out);
/* How sure the time of a cache line is: of servet_line_seconds(). SERVET_MEASURED says that a line
 * between these two PUs was; the spread is that of their layer. */
int servet_line_quality(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                        struct servet_quality *out);

/* -- conditions -- */
/* A condition of the measurement, called `name`, such as "busy" (other tasks ran on the measured
 * PUs), "incomplete", "budget" or "memory_limited". It is the condition's text, owned by the
 * profile, or NULL when it did not hold. */
const char *servet_condition(const servet_profile *profile, const char *name);

/* -- placing (2012 paper, Algorithm 1; for programs that place their own threads or ranks) -- */

enum servet_priority {
    SERVET_MEMORY = 0,        /* bandwidth and caches before latency */
    SERVET_COMMUNICATION = 1, /* latency before bandwidth and caches */
};

/* Request to servet_map(). A member that is 0 or NULL has its default. */
struct servet_map_request {
    enum servet_priority priority;
    uint32_t ranks;          /* >= 1: threads, or processes with `threads` */
    const uint32_t *threads; /* of each rank, >= 1 each; NULL: one each */
    const uint32_t *allowed; /* PU numbers that may be used, in any order; NULL: all */
    size_t allowed_count;
    const uint32_t *taken; /* PU numbers that other programs hold; NULL: none */
    size_t taken_count;
    /* 1: threads come one by one and their number is not known beforehand: they are numbered in the
     * order of choice, and more of them do not move those that are there. 0: `ranks` is the number,
     * and neighbours in rank order are near. With `threads` the number is known. */
    int one_by_one;
};

/* Chooses PUs for threads or ranks: the same ones as servet-map(1) and the preloaded library. pus[]
 * gets the PU numbers of rank 0's threads, then those of rank 1, …: as many as all threads
 * together, `ranks` where `threads` is NULL. More workers than PUs take the least occupied ones. A
 * rank does not leave its node; its threads share a region of the machine. Nothing is bound: that
 * is for the caller to do (sched_setaffinity(2)).
 *
 * 0; -EINVAL (no rank, a rank without threads, 16777216 workers or more, a PU in `allowed` or
 * `taken` that the profile does not have: the text says which); -ENOMEM. */
int servet_map(const servet_profile *profile, const struct servet_map_request *request,
               uint32_t *pus, struct servet_error *error);

/* Which memory is asked about: that of the node of a PU, of its package, or of the group of a
 * memory overhead level (0, 1, …, as servet_overhead_level()) that it is in. */
#define SERVET_NODE (-2)
#define SERVET_PACKAGE (-1)

struct servet_worth {
    uint32_t workers;        /* the smallest number that gets 95 % of what any number gets */
    double bytes_per_s;      /* that they get together, predicted from the measured curves */
    double most_bytes_per_s; /* of the number of workers that gets most */
    /* Most workers of one group of a memory level that were measured at once; where groups have
     * more PUs, the least of such levels: more are taken to get no more. 0: none is shared. */
    uint32_t measured_workers;
};

/* How many workers are worth having on one memory: more of them get no more together (2010 paper,
 * Sections III-C and V). `scope` is SERVET_NODE, SERVET_PACKAGE or the number of a memory overhead
 * level. pus[] (may be NULL) gets out->workers PU numbers, in rank order; as many as the profile
 * has PUs always fit.
 *
 * 0; -ENOENT (the profile does not have the PU, or it is in no such package or group); -ENODATA
 * (bandwidth was not measured, or is known of pairs only); -ENOMEM. */
int servet_workers_worth(const servet_profile *profile, uint32_t pu, int scope, uint32_t *pus,
                         struct servet_worth *out, struct servet_error *error);

/* Messages at a time that are worth sending over the layer of two PUs (2010 paper, Figure 10b): the
 * smallest number at which 95 % of the most messages a second arrive; more only wait for one
 * another. As many as were measured, where none queued. 0: not measured, or the same PU twice. */
uint32_t servet_messages_worth(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b);

/* Workers that a quota lets run at a time: control groups, such as a container's, may give this
 * process less time than it sees PUs, and more workers then only wait for the next period. It is
 * the quota's whole CPUs, 1 at least, as servet-pin(1) sets OMP_NUM_THREADS. 0: no quota, or it
 * cannot be read. */
uint32_t servet_quota_workers(void);

/* -- order of ranks (2012 paper: ranks that are neighbours in their order talk most) -- */

/* New numbers for the ranks of a program that may renumber them before its data are laid out: rank
 * i, which sits on PU pus[i], should become rank order[i]. As the key of MPI_Comm_split this gives
 * a communicator to use instead of MPI_COMM_WORLD, or to make a Cartesian one of without
 * reordering:
 *
 *     MPI_Comm_split(MPI_COMM_WORLD, 0, (int)order[rank], &reordered);
 *
 * `traffic` NULL: new ranks that follow each other talk. Otherwise ranks x ranks numbers from 0,
 * row by row: what new rank i sends to new rank j, in any unit. Greedy, as servet-map(1) places by
 * --matrix, and never worse than the order there is (which then stays), by the sum of traffic times
 * latency. Every rank that asks with the same arguments gets the same answer.
 *
 * 0 and order[0 … ranks - 1]; -EINVAL (no rank or more than 16384, a PU that the profile does not
 * have, a number below 0); -ENOMEM. */
int servet_rank_order(const servet_profile *profile, const uint32_t *pus, uint32_t ranks,
                      const double *traffic, uint32_t *order, struct servet_error *error);

/* -- supersteps (Bisseling's BSP cost model) -- */

/* Flops are a unit of time here: divide by r_flop_per_s for seconds. */
struct servet_bsp {
    uint32_t processors;
    double r_flop_per_s;    /* of one processor (DAXPY) */
    double g_flops;         /* per word of 8 bytes, sent as single words: pessimistic */
    double g_packets_flops; /* sent in large packets: optimistic; 0: not measured */
    double l_flops;         /* of a synchronisation */
    double t0_flops;        /* measured time of a superstep that sends nothing; 0: not measured */
};

/* BSP parameters of a number of processors, as measured or on a straight line between the measured
 * numbers. `backend` is "threads" (shared memory) or "mpi"; NULL: the first one of the profile that
 * covers this number. Where the fit gave no l, it is T(0). 0 and *out; -ENOENT: the profile does
 * not cover it. */
int servet_bsp_parameters(const servet_profile *profile, const char *backend, uint32_t processors,
                          struct servet_bsp *out);

/* Cost of one superstep in flops, w + h g + l: each of `processors` computes at most `work_flops`
 * and sends and receives at most `h_words` words of 8 bytes. Backend and interpolation as
 * servet_bsp_parameters() with NULL. 0: not known, or a negative number was given. */
double servet_bsp_cost(const servet_profile *profile, uint32_t processors, double work_flops,
                       double h_words);

#ifdef __cplusplus
}
#endif

#endif
