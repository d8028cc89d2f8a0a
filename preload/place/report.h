/* What SERVET_REPORT and SERVET_VERBOSE ask for: at exit one line for every thread that ran, with
 * what it was, where it was put and where it last ran, why threads have no PU, and with whom a
 * worker shared its own.
 *
 * Without SERVET_REPORT nothing is kept. A process that ends by _exit(), exec or a signal reports
 * nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "preload/node/neighbours.h"
#include "preload/place/priority_cache.h"
#include "profile/processes/threads.h"

struct pin_process;

/* Threads that are remembered; further ones are only counted. */
#define PIN_REPORT_THREADS 4096u

/* The calling thread, or the main thread, begins, or has been put on `pu` (-1: left where it was).
 * The number of its line, for pin_report_end(); 0: the main thread's, or none is kept. */
uint32_t pin_report_begin(enum profile_role role, int32_t pu, enum profile_decider decider);
void pin_report_end(uint32_t line);
/* The thread of a line, 0: the main thread, is on `pu` from now on, or left to the kernel (< 0). */
void pin_report_moved(uint32_t line, int32_t pu);

/* Forgets everything: for the child of a fork. */
void pin_report_reset(void);

/* Writes the report. Called once, when the process ends. */
void pin_report_write(struct pin_process *process);

/* What SERVET_AUTO made of the run before, in the report `where`, or NULL, and on stderr. */
void pin_report_choice(const char *where, bool verbose, const struct pin_priority_cache *recalled);

/* A record, in the report and on stderr (SERVET_VERBOSE), of the program that was asked about: not
 * of those that it starts in turn. */
struct profile_fact;
void pin_report_once(const char *sentence, const struct profile_fact *facts);
/* The same of a rank in which no thread came, if servet-pin has put it where it is. */
bool pin_report_rank(void);

/* -- why threads have no PU of their own: once for each pool, with figures (why.c) -- */

/* Says it of pools that have been left since the last call. The lock is not held: files are
 * read. */
void pin_why_say(void);
/* For the report at the end: as it is now, while the lock is held; then the same of that. True:
 * some pool was left. */
void pin_why_take_over(void);
bool pin_why_report(void);
/* In the child of a fork. */
void pin_why_reset(void);

/* Why no thread has been placed; NULL: a line has said it. */
const char *pin_why_nothing(void);
/* Why other programs are not seen. */
const char *pin_why_alone(void);

/* "PU 1 held by process 5 (NAME)": those of the processes `there` that may run nowhere else and are
 * of no rank of this job. */
#define PIN_WHY_HOLDERS 192
void pin_why_holders(const struct profile_mask *pus, const struct pin_neighbours *there,
                     char out[PIN_WHY_HOLDERS]);

/* -- did a worker of this process share its PU, and with whom (check.c)? -- */

/* A thread of this process that worked. */
struct pin_worker {
    pid_t tid;
    int32_t pu; /* it last ran on */
    bool runs;  /* at this moment */
    uint64_t from_ns, until_ns;
};

/* A worker has `pu`. Where that is another job's, it is said once whom the process is laid over,
 * and kept. The lock is not held: files are read. */
void pin_check_laid(int32_t pu);

/* One line for each process, or group of threads, that shared a PU with one of the workers. */
void pin_check_write(const struct pin_worker *workers, size_t count);

/* In the child of a fork. */
void pin_check_reset(void);
