/* What one class of nodes promises: caches, NUMA nodes, memory, messages. */
#ifndef SERVET_PROFILE_CHECK_CLASS_H
#define SERVET_PROFILE_CHECK_CLASS_H

#include "json_path.h"
#include "model.h"

/* 0, -EINVAL with the path, -ENOMEM. */
int profile_check_class(const struct json_path *at, const struct profile_class *node_class, struct servet_error *error);
/* Layers between `members`: PUs of a class, or the nodes of a cluster. */
int profile_check_communication(const struct json_path *at, const struct profile_communication *communication,
                                const struct profile_set *members, struct servet_error *error);

#endif
