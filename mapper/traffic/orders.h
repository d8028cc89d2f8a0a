/* The two orders that everybody knows, to compare with: compact (fill one group after the other)
 * and scatter (go round the widest groups first). Both take one PU of every core before any second
 * one.
 */
#ifndef SERVET_MAPPER_TRAFFIC_ORDERS_H
#define SERVET_MAPPER_TRAFFIC_ORDERS_H

#include "mapper/weights/view.h"

/* All leaves of the view, in that order. 0 or -ENOMEM. */
int map_order_compact(struct map_view *view, uint32_t *leaves);
int map_order_scatter(struct map_view *view, uint32_t *leaves);

#endif
