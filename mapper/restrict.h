/* Which PUs a user lets us use: a list, so many of each core, one kind of core. */
#ifndef SERVET_MAPPER_RESTRICT_H
#define SERVET_MAPPER_RESTRICT_H

#include "model.h"

struct map_limits {
    const struct profile_set *pus; /* PU numbers; NULL: all */
    uint32_t smt;                  /* most PUs of one core, the lowest first; 0: all */
    int kind;                      /* 0 is the most capable kind, MAP_KIND_LAST the least; < 0: all */
};

#define MAP_KIND_ANY (-1)
#define MAP_KIND_LAST 1000

/* The PU numbers that are left. 0; -EINVAL (no PU is left, or there is no such kind: the text says which); -ENOMEM. */
int map_restrict(const struct servet_profile *profile, const struct map_limits *limits, struct profile_set *out,
                 struct servet_error *error);

#endif
