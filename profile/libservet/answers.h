/* What the files of libservet that answer questions share. */
#ifndef SERVET_PROFILE_LIBSERVET_ANSWERS_H
#define SERVET_PROFILE_LIBSERVET_ANSWERS_H

#include "profile/query.h"
#include "profile/servet.h"

/* The places of two different PUs of one node of a measured profile; false: they are none. */
bool profile_find_pair(const servet_profile *profile, uint32_t pu_a, uint32_t pu_b,
                       struct profile_place *a, struct profile_place *b);

/* How sure a figure is. `there`: it was measured on the PUs that were asked for; else what was
 * measured is inferred for them. Returns 0. */
int profile_answer(const struct profile_quality *quality, bool there, struct servet_quality *out);

/* The same of evidence, whose spread is 0 where it is not known. */
int profile_answer_evidence(const struct profile_quality *evidence, bool there,
                            struct servet_quality *out);

#endif
