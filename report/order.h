/* PUs (or nodes) in an order in which those that are near are beside one another. */
#ifndef SERVET_REPORT_ORDER_H
#define SERVET_REPORT_ORDER_H

#include "profile/model.h"

/* Orders `members` by their groups, the largest groups first: what shares more stands closer. `out`
 * has room for members->count. 0 or -ENOMEM. */
int report_order_by_groups(const struct profile_set *members,
                           const struct profile_relation *const *relations, size_t count,
                           uint32_t *out);

/* The same for the PUs of a class, by everything that the profile groups them by. */
int report_order_class(const struct profile_class *node_class, uint32_t *out);

#endif
