/* The BSP parameters in the form of Bisseling's slides: p, g, l and the time of a 0-relation. */
#ifndef SERVET_PROFILE_TEXT_SHOW_H
#define SERVET_PROFILE_TEXT_SHOW_H

#include <stdio.h>

#include "profile/model.h"

/* One table for each backend. Columns of what some entry has besides (the g of large packets, r
 * where it depends on p, how far the best two runs were apart) come after those of the slides. */
void profile_show_bsp(const struct servet_profile *profile, FILE *stream);

/* A profile in words and tables. */

/* `source`: the file it is from, or NULL: what the operating system declares of this machine. 0 or
 * -ENOMEM. */
int profile_show_text(const struct servet_profile *profile, const char *source, FILE *stream);

#endif
