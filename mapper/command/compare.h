/* What this mapping is predicted to give, beside compact and scatter. */
#ifndef SERVET_MAPPER_COMMAND_COMPARE_H
#define SERVET_MAPPER_COMMAND_COMPARE_H

#include <stdio.h>

#include "mapper/formats/mapping.h"

/* Writes the table. `allowed`: the PUs that compact and scatter may use. 0 or -ENOMEM. */
int map_compare(FILE *out, const struct map_mapping *plan, const struct profile_set *allowed,
                struct servet_error *error);

#endif
