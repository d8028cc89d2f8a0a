/* A class narrowed to some of its PUs: what a run inside a cpuset may speak of. */
#ifndef SERVET_PROBES_RESTRICT_H
#define SERVET_PROBES_RESTRICT_H

#include "model.h"

/* Drops every other PU from all sets, groups and pairs, and what is left without any. 0 or -ENOMEM. */
int restrict_class(struct profile_class *node_class, const struct profile_set *pus);

#endif
