/* Threads of other processes that work on given PUs. */
#ifndef SERVET_PRELOAD_NODE_NEIGHBOURS_H
#define SERVET_PRELOAD_NODE_NEIGHBOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/base/mask.h"

/* Pairs of a PU and another process; further ones are not kept. */
#define PIN_NEIGHBOURS 256u
#define PIN_NEIGHBOUR_NAME 16

/* Another process that has a thread on a PU (profile_thread_pu()). */
struct pin_neighbour {
    uint32_t pu;
    pid_t pid;
    bool fellow; /* of this rank's job */
    bool bound;  /* that thread may run nowhere else */
    char name[PIN_NEIGHBOUR_NAME];
};

struct pin_neighbours {
    size_t count;
    struct pin_neighbour each[PIN_NEIGHBOURS];
};

/* Those on `pus` at this moment. `launcher`: of this rank's job, 0: none. */
void pin_neighbours_find(const struct profile_mask *pus, pid_t launcher,
                         struct pin_neighbours *out);

#endif
