/* What fields of a profile promise, whichever part they are in. All: 0, or -EINVAL with the path of
 * the field. */
#ifndef SERVET_PROFILE_CODEC_CHECK_H
#define SERVET_PROFILE_CODEC_CHECK_H

#include "profile/codec/path.h"
#include "profile/model.h"

/* -EINVAL with "PATH: WHAT"; `key` may be NULL. */
int profile_refuse(struct servet_error *error, const struct json_path *at, const char *key,
                   const char *what);

int profile_check_number(const struct json_path *at, const char *key, double value,
                         bool zero_allowed, struct servet_error *error);
int profile_check_integer(const struct json_path *at, const char *key, uint64_t value, uint64_t low,
                          uint64_t high, struct servet_error *error);
int profile_check_spread(const struct json_path *at, double spread, struct servet_error *error);
int profile_check_quality(const struct json_path *at, const struct profile_quality *quality,
                          struct servet_error *error);
int profile_check_subset(const struct json_path *at, const struct profile_set *part,
                         const struct profile_set *whole, struct servet_error *error);

/* The promises that a relation between PUs (or nodes) makes: groups inside the set it speaks of,
 * disjoint, ordered by lowest member; pairs ordered, of two different members. */

/* Group of every member of `members`: owner[i] is that of members->ids[i], 1 for the first group, 0
 * for none. Frees with free(). */
struct relation_owners {
    uint32_t *owner;
};

/* 0 and the owners, -EINVAL with the path, -ENOMEM. */
int profile_check_relation(const struct json_path *at, const struct profile_relation *relation,
                           const struct profile_set *members, struct relation_owners *out,
                           struct servet_error *error);

/* Memory overhead levels nest: is every pair of `worse` related in `milder` as well? */
int profile_check_nesting(const struct json_path *at, const struct profile_relation *worse,
                          const struct profile_relation *milder,
                          const struct relation_owners *owners, const struct profile_set *members,
                          struct servet_error *error);

/* What one class of nodes promises: caches, NUMA nodes, memory, messages. */

/* 0, -EINVAL with the path, -ENOMEM. */
int profile_check_class(const struct json_path *at, const struct profile_class *node_class,
                        struct servet_error *error);
/* Layers between `members`: PUs of a class, or the nodes of a cluster. */
int profile_check_communication(const struct json_path *at,
                                const struct profile_communication *communication,
                                const struct profile_set *members, struct servet_error *error);

#endif
