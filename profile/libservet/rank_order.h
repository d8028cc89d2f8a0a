/* New numbers for the ranks of a running program, for MPI_Comm_split and MPI_Cart_create
 * callers. */
#ifndef SERVET_PROFILE_LIBSERVET_RANK_ORDER_H
#define SERVET_PROFILE_LIBSERVET_RANK_ORDER_H

#include "profile/model.h"

/* See servet_rank_order() in servet.h. */
int profile_rank_order(const struct servet_profile *profile, const uint32_t *pus, uint32_t ranks,
                       const double *traffic, uint32_t *order, struct servet_error *error);

#endif
