/* Why a mapping is what it is: the table of the 2012 paper (iteration x rule x PU). */
#ifndef SERVET_MAPPER_COMMAND_EXPLAIN_H
#define SERVET_MAPPER_COMMAND_EXPLAIN_H

#include <stdio.h>

#include "mapper/formats/mapping.h"

/* Widest and longest table that anybody reads; larger machines get a summary. */
#define MAP_EXPLAIN_MOST_PUS 64
#define MAP_EXPLAIN_MOST_WORKERS 64

/* Maps as map_workers() does and writes each row. A taken PU shows "-"; the chosen one has a
 * "*". */
int map_explain_table(FILE *out, const struct servet_profile *profile,
                      const struct map_request *request, uint32_t *pus, struct servet_error *error);

/* How many workers every node, package, memory domain, cache, layer group and core got. 0 or
 * -ENOMEM. */
int map_explain_summary(FILE *out, const struct map_mapping *plan, struct servet_error *error);

#endif
