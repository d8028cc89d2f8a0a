/* Questions that a profile answers: who shares what, how much, how fast. PU numbers are those of
 * the whole machine (model.h). Nothing here allocates or fails: what is not known is 0, false or
 * -1. */
#pragma once

#include "profile/model.h"

struct profile_place {
    const struct profile_class *node_class;
    uint32_t node;
    uint32_t os_index; /* the PU within the node */
};

/* Where PU number `pu` is; false when the profile, which may be NULL, does not know it. */
bool profile_locate(const struct servet_profile *profile, uint32_t pu, struct profile_place *place);

/* Group that `member` is in, or NULL. */
const struct profile_set *profile_group_of(const struct profile_relation *relation,
                                           uint32_t member);
/* Are both in one group or listed as a pair? False for a == b. */
bool profile_related(const struct profile_relation *relation, uint32_t a, uint32_t b);

/* Is every pair of `inner` one of `outer`, too? And is it so the other way round as well? */
bool profile_relation_within(const struct profile_relation *inner,
                             const struct profile_relation *outer);
bool profile_relation_equal(const struct profile_relation *a, const struct profile_relation *b);

/* The figure of a pair in an ascending list; 0: it is not there. */
double profile_pair_figure(const struct profile_pair_figure *list, size_t count, uint32_t a,
                           uint32_t b);

/* The NUMA node with this number, or NULL. */
const struct profile_numa *profile_numa_of(const struct profile_class *node_class,
                                           uint32_t os_index);

/* Is the PU (OS index) one of those that the cache names; where it names none, of its groups? */
bool profile_cache_holds(const struct profile_cache *cache, uint32_t os_index);
/* The cache of `level` that the PU (OS index) has, or NULL. */
const struct profile_cache *profile_cache_of(const struct profile_class *node_class, uint32_t level,
                                             uint32_t os_index);

/* Largest relative spread of a settled figure: repetitions differ by 1 to 7 % on an idle machine,
 * by 40 % and more beside a load of six. */
#define PROFILE_SETTLED_SPREAD 0.2

/* May a program tile by the effective size of the cache? Not if it was measured only once, if its
 * repetitions differ, or if it is uncertain by a factor of two, unless the system declares the
 * same: such a size is reported as an interval, never as a number. Declared and published sizes are
 * always settled. */
bool profile_size_settled(const struct profile_cache *cache);

/* The layer of a message between two members, the index of it in *index (may be NULL); NULL: none
 * holds both. */
const struct profile_layer *profile_layer_of(const struct profile_communication *communication,
                                             uint32_t a, uint32_t b, size_t *index);

/* -- what lies between two PUs -- */

struct profile_link {
    const struct profile_communication *communication; /* inside the node, or between nodes */
    const struct profile_layer *layer;
    uint32_t rank; /* profile_layer_rank() of it */
    uint32_t a, b; /* the two members: PUs of the node (OS indices), or nodes */
};

/* The link of two PUs. False: one is not known, they are the same, or no layer holds both. */
bool profile_link_of(const struct servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                     struct profile_link *out);

/* 1, 2, 3 … from the nearest layer of a communication outwards; layers between nodes come after the
 * most that any class has. The distance of a layer whose latency is not known. */
uint32_t profile_layer_rank(const struct servet_profile *profile,
                            const struct profile_communication *communication, size_t index);

/* Are there layers, and is the latency of every one of them known? Where one is not, latencies of
 * the others cannot be weighed against it, and only the order is left. */
bool profile_latencies_known(const struct servet_profile *profile);

/* How far the members of a layer are from one another, for weighing layers against layers: seconds
 * where profile_latencies_known(), else the rank. */
double profile_layer_distance(const struct servet_profile *profile,
                              const struct profile_communication *communication, size_t index);

/* Seconds of one message of a layer, one way: linear between the points of its curve, the first
 * point's below it. Above the curve at the last segment's bandwidth, or as long as the last point
 * where that segment falls (noise): never less, never negative. Without a curve, or with one point
 * only, the time of the size that was measured (`message_bytes`, profile_communication; 0: not
 * said, then 32 KiB as in the papers) for all that is smaller, and in proportion above. 0 of a
 * layer whose latency is not known. */
double profile_message_seconds(const struct profile_layer *layer, uint64_t message_bytes,
                               double bytes);

/* How many times as long each of `messages` of a layer takes when they are sent at once: linear
 * between measured numbers, in proportion beyond the last. 1 where one number alone was measured
 * (no two pairs of that layer could be) or none. */
double profile_messages_slower(const struct profile_layer *layer, uint64_t messages);

/* -- memory -- */

/* The reference is the bandwidth of one core of the most capable kind. Returns the access of a PU
 * of another kind to the memory that it reaches fastest; NULL: the PU gets the reference, or
 * nothing else is known. */
const struct profile_numa_access *profile_memory_lesser(const struct profile_class *node_class,
                                                        uint32_t os_index);

/* Bytes per second that the PU gets alone. 0: not measured. */
double profile_memory_alone(const struct profile_class *node_class, uint32_t os_index);

/* Of that loop; NULL: not measured. */
const struct profile_kernel_rate *profile_kernel_rate(const struct profile_memory *memory,
                                                      enum profile_kernel kernel);

/* Bytes per second that `workers` inside one group of a level get together: linear between what was
 * measured, which is one worker alone (the reference), the colliding pair, and the level's scaling
 * curve, that counts where it has the same number. Beyond the last one its figure: more workers get
 * no more. 0: not measured. */
double profile_memory_bandwidth(const struct profile_memory *memory,
                                const struct profile_memory_level *level, uint32_t workers);

/* -- supersteps -- */

/* The parameters for `processors`, of `backend` (NULL: of the first one that covers this number):
 * those measured, or between two measured numbers on a straight line. False outside what was
 * measured. An unknown l is T(0), its lower bound. out->backend and the note belong to the
 * profile. */
bool profile_bsp_at(const struct servet_profile *profile, const char *backend, uint32_t processors,
                    struct profile_bsp *out);
