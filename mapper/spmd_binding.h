/* How mpirun is told to put the ranks of a grid where the mapping wants them. */
#ifndef SERVET_MAPPER_SPMD_BINDING_H
#define SERVET_MAPPER_SPMD_BINDING_H

#include "spmd_grid.h"

struct spmd_binding {
    const char *arguments[6]; /* of mpirun, ending with NULL */
    char *list;               /* PUs of one node */
    char rankfile[32];        /* several nodes: a temporary file, else "" */
};

/* Ends the program when memory or the temporary file is not to be had. */
void spmd_bind(const struct servet_profile *profile, const struct spmd_grid *grid, struct spmd_binding *out);
/* Removes the file. */
void spmd_unbind(struct spmd_binding *binding);

#endif
