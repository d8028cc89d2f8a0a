/* A profile in words and tables. */
#ifndef SERVET_PROFILE_SHOW_TEXT_H
#define SERVET_PROFILE_SHOW_TEXT_H

#include <stdio.h>

#include "model.h"

/* `source`: the file it is from, or NULL: what the operating system declares of this machine. 0 or -ENOMEM. */
int show_text(const struct servet_profile *profile, const char *source, FILE *stream);

#endif
