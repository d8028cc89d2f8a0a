/* The file that the registry's locks are on. */
#pragma once

#include <fcntl.h>

#include "preload/node/registry.h"

/* The file, opened for reading; only fcntl() makes anything of it. `path`: one that the user names,
 * made if there is none; NULL: the node's. Sets what is known of it. -errno. */
int pin_registry_find(const char *path, struct pin_registry *out);

/* fcntl(2) with a lock on these bytes. 0, -errno. */
int pin_registry_lock(int file, int command, short type, uint64_t start, uint64_t bytes,
                      struct flock *lock);

/* The file, open for a moment. */
struct pin_file {
    const struct pin_registry *of;
    int number; /* below 0: it could not be opened */
    bool is_kept;
};

/* Opens it, and closes it again. Locks that were taken meanwhile last as long as the process after
 * keep(). False: there is no number for it. */
struct pin_file pin_registry_begin(const struct pin_registry *registry);
bool pin_registry_keep(struct pin_registry *registry, struct pin_file file);
void pin_registry_end(struct pin_file file);

/* Keeps what the program before this one had kept `over_exec`. */
void pin_registry_adopt(struct pin_registry *registry);
