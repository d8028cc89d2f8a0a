/* The promises that a relation between PUs (or nodes) makes: groups inside the set it speaks of, disjoint, ordered by
 * lowest member; pairs ordered, of two different members. */
#ifndef SERVET_PROFILE_CHECK_RELATION_H
#define SERVET_PROFILE_CHECK_RELATION_H

#include "json_path.h"
#include "model.h"

/* Group of every member of `members`: owner[i] is that of members->ids[i], 1 for the first group, 0 for none.
 * Frees with free(). */
struct relation_owners {
    uint32_t *owner;
};

/* 0 and the owners, -EINVAL with the path, -ENOMEM. */
int profile_check_relation(const struct json_path *at, const struct profile_relation *relation,
                           const struct profile_set *members, struct relation_owners *out, struct servet_error *error);

/* Memory overhead levels nest: is every pair of `worse` related in `milder` as well? */
int profile_check_nesting(const struct json_path *at, const struct profile_relation *worse,
                          const struct profile_relation *milder, const struct relation_owners *owners,
                          const struct profile_set *members, struct servet_error *error);

#endif
