/* The profile that a plan is made from: of this machine, or the declared topology. */
#ifndef SERVET_PRELOAD_PLACE_PROFILE_H
#define SERVET_PRELOAD_PLACE_PROFILE_H

#include "preload/place/launcher.h"
#include "preload/place/options.h"
#include "profile/model.h"

#define PIN_SOURCE_SIZE 256u

/* The profile that the options name, or that is found, if it is of these PUs of this machine; else
 * the topology. `source`: the file, or that it is the topology. A profile that cannot be used is
 * one line on stderr, said by the first of a node's ranks. */
int pin_profile_read(const struct pin_options *options, const struct pin_launcher *launcher,
                     const struct profile_set *allowed, struct servet_profile **out,
                     char source[PIN_SOURCE_SIZE]);

#endif
