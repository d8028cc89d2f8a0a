/* The ranks of one MPI job as a machine: PU numbers of this machine are ranks, of which rank 0 asks
 * the others to exchange messages. Collective calls say so. */
#ifndef SERVET_PROBES_NETWORK_RANKS_H
#define SERVET_PROBES_NETWORK_RANKS_H

#include "probes/machine.h"

#define RANK_HOST_SIZE 72
#define RANK_VERSION_SIZE 24

struct rank_info {
    char version[RANK_VERSION_SIZE];
    char host[RANK_HOST_SIZE];
    int32_t leader;   /* lowest rank on the same node */
    uint32_t allowed; /* PUs that the node lets us use */
    int32_t pu;       /* the one that this rank sits on; -1: on any */
};

struct ranks {
    int rank, size;             /* size > 0 */
    struct profile_set allowed; /* PUs of this node */
    struct rank_info *info;     /* by rank */
    int node_count;
    int *leaders; /* of the nodes, by node name */
    double spoke; /* when rank 0 last said something to everybody */
};

/* Collective: MPI_Init, who is where, and (unless `per_node`) each rank pins itself: the i-th of a
 * node to its i-th PU. 0; -EINVAL with the reason on every rank (other versions, more ranks on a
 * node than PUs, …). */
int probe_ranks_open(struct ranks *ranks, bool per_node, struct servet_error *error);

/* Does rank i of the node of `leader` sit on its i-th PU, for all its PUs? */
bool probe_ranks_cover_node(const struct ranks *ranks, int leader);

/* Collective: on the leader of each node `text` is that node's; rank 0 gets all in the order of
 * ranks->leaders (others NULL). While `busy` (may be NULL) says so, a leader has nothing to tell
 * yet; it is asked again and again, and gives its text when it is no more busy. A node that falls
 * silent ends the job. */
struct ranks_teller {
    bool (*busy)(void *context);
    char *(*text)(void *context); /* malloc()ed */
    void *context;
};
char **probe_ranks_gather(struct ranks *ranks, const struct ranks_teller *teller);

/* On rank 0: the machine. On the others: obey until told to end; gives the status to end with. */
void probe_ranks_machine(struct ranks *ranks, struct machine *out);
int probe_ranks_obey(struct ranks *ranks);

/* On rank 0: tells the others to end with `status`. */
void probe_ranks_dismiss(struct ranks *ranks, int status);

/* Collective: MPI_Finalize, as long as that takes no more than a few seconds. Does not return. */
_Noreturn void probe_ranks_end(struct ranks *ranks, int status);

/* "Open MPI v4.1.4", "MPICH Version: 4.0.2". Static. */
const char *probe_ranks_library(void);

#endif
