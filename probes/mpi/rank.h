/* What the ranks of a measuring program have in common: pinned, silent but for lines, asleep when
 * they have nothing to do. An MPI library that spins in a barrier on a PU that is not its own would
 * be measured as a slow machine. */
#ifndef SERVET_PROBES_MPI_RANK_H
#define SERVET_PROBES_MPI_RANK_H

#include <mpi.h>
#include <stdint.h>

#include "profile/set.h"

struct rank_team {
    struct profile_set pus; /* rank i sits on the i-th of them. Owned */
    int rank, ranks;
};

/* Starts MPI for a program called with the list of PUs, one rank each, pins this rank and says
 * "ready RANKS" once all sit. 0, or the exit status of the program after one line "! ..." of rank
 * 0. probe_rank_team_end() is due in both cases. */
int probe_rank_team_start(int *argc, char ***argv, struct rank_team *out);
void probe_rank_team_end(struct rank_team *team);

/* One line on stdout, at once. */
void probe_rank_say(const char *line);
/* Waits for the request, sleeping between looks. */
void probe_rank_wait_asleep(MPI_Request *request);
/* The same for a rank that is told more at once, if it is told more: looks without a pause for a
 * millisecond first. */
void probe_rank_wait_awake(MPI_Request *request);
/* Seconds since its start that this thread was ready to run and another had its PU; 0 where the
 * kernel keeps no account.
 */
double probe_rank_waited_s(void);
/* Moves this process to one PU. 0 or -errno. */
int probe_rank_pin(uint32_t pu);

#endif
