/* What SERVET_REPORT asks for: at exit one line for every thread that ran, with what it was, where
 * it was put and where it last ran, and with whom a worker shared its PU.
 *
 * Without SERVET_REPORT nothing is kept. A process that ends by _exit(), exec or a signal reports
 * nothing. */
#ifndef SERVET_PRELOAD_PLACE_REPORT_H
#define SERVET_PRELOAD_PLACE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/place/options.h"
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

#endif
