/* The BSP parameters in the form of Bisseling's slides: p, g, l and the time of a 0-relation. */
#ifndef SERVET_PROFILE_SHOW_BSP_H
#define SERVET_PROFILE_SHOW_BSP_H

#include <stdio.h>

#include "model.h"

/* One table for each backend. Columns of what some entry has besides (the g of large packets, r where it depends on p,
 * how far the best two runs were apart) come after those of the slides. */
void show_bsp(const struct servet_profile *profile, FILE *stream);

#endif
