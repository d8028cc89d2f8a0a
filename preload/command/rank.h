/* servet-pin in front of a rank of a parallel program. */
#ifndef SERVET_PRELOAD_COMMAND_RANK_H
#define SERVET_PRELOAD_COMMAND_RANK_H

/* If the environment says that this process is a rank, and the user has not placed OpenMP threads
 * (or SERVET_FORCE is on): makes the rank's plan from the SERVET_* variables as the shim in it
 * will, exports it (handover.h), and moves this process onto the plan's PUs. Else, and where that
 * fails (one line on stderr), nothing is changed: the program runs under the shim alone. `command`
 * is what will be executed; SERVET_AUTO remembers it. */
void pin_rank_hand_over(const char *command);

#endif
