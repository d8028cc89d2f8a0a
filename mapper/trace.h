/* The same choices with every step shown: the rows of the papers' tables. */
#ifndef SERVET_MAPPER_TRACE_H
#define SERVET_MAPPER_TRACE_H

#include "slots.h"

/* Chooses `workers` PUs as map_workers() does and reports each row. 0 or -ENOMEM. */
int map_traced(struct map_view *view, struct map_slots *slots, size_t workers, uint32_t *out,
               const struct map_trace *trace);

#endif
