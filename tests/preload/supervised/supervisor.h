/* A machine that is not here: a supervisor answers what its processes ask of masks, of the PU that
 * a thread runs on, and of /proc/PID/task/TID/stat. So it knows where each thread ran. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A thread on that machine, of at most 64 PUs. */
struct supervised {
    pid_t tid, process;
    uint64_t mask;
    bool works; /* else it has hardly run, as a helper */
};

/* Runs `work` in a child whose calls, and those of all that descend from it, are answered from now
 * on. `seed` decides where threads run that may run on several PUs. Its pid; ends the test program
 * with status 77 where the kernel does not allow it. */
pid_t supervisor_begin(uint32_t pus, unsigned seed, void (*work)(void *argument), void *argument);
void supervisor_end(void);

/* All threads of a process that are known by now; returns how many. */
uint32_t supervisor_threads(pid_t process, struct supervised *out, uint32_t most);
/* The thread has run all the time. */
void supervisor_works(pid_t tid);
/* The PU that a thread runs on. */
uint32_t supervisor_pu(const struct supervised *thread);
