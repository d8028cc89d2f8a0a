/* Do ranks of different widths fit into memory domains, each into one? */
#ifndef SERVET_MAPPER_PACKING_H
#define SERVET_MAPPER_PACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `sizes` descending; `room` of each domain is used as scratch and left as it was. Gives up with false after
 * MAP_PACKING_STEPS tries: bin packing is NP-hard, though machines have few domains and few kinds of rank. */
#define MAP_PACKING_STEPS 20000
bool map_packing_fits(const uint32_t *sizes, size_t count, uint32_t *room, size_t domains);

#endif
