/* What fields of a profile promise, whichever part they are in. All: 0, or -EINVAL with the path of the field. */
#ifndef SERVET_PROFILE_CHECK_FIELDS_H
#define SERVET_PROFILE_CHECK_FIELDS_H

#include "json_path.h"
#include "model.h"

/* -EINVAL with "PATH: WHAT"; `key` may be NULL. */
int profile_refuse(struct servet_error *error, const struct json_path *at, const char *key, const char *what);

int profile_check_number(const struct json_path *at, const char *key, double value, bool zero_allowed,
                         struct servet_error *error);
int profile_check_integer(const struct json_path *at, const char *key, uint64_t value, uint64_t low, uint64_t high,
                          struct servet_error *error);
int profile_check_spread(const struct json_path *at, double spread, struct servet_error *error);
int profile_check_quality(const struct json_path *at, const struct profile_quality *quality,
                          struct servet_error *error);
int profile_check_subset(const struct json_path *at, const struct profile_set *part, const struct profile_set *whole,
                         struct servet_error *error);

#endif
