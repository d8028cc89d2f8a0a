/* PUs that other processes keep busy at this moment. */
#ifndef SERVET_PRELOAD_NODE_FOREIGN_LOAD_H
#define SERVET_PRELOAD_NODE_FOREIGN_LOAD_H

#include <sys/types.h>

#include "profile/base/mask.h"

/* PUs of `allowed` without an idle moment now, the load of the calling thread and of `launcher` and
 * its descendants (0: no launcher) not counted. Returns at once where nothing else is runnable,
 * else after 11 ms. False, and empty: not known, or the job's own load is not. */
bool pin_foreign_load_pus(const struct profile_mask *allowed, pid_t launcher,
                          struct profile_mask *out);

#endif
