/* Every wait of a rank has a limit: when it is over, the prepared line goes to stderr and the
 * process ends with status 1. A rank that ends so makes the launcher end the others; a launcher
 * that does not manage that within a few seconds (it waits for a node that has vanished) is
 * killed. */
#ifndef SERVET_PROBES_MPI_DEADLINE_H
#define SERVET_PROBES_MPI_DEADLINE_H

/* From now on at most `seconds`, counted anew with every call. */
void probe_deadline_set(double seconds, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void probe_deadline_clear(void);
/* When the limit is over, the process ends with `status` and says nothing. */
void probe_deadline_set_silently(double seconds, int status);

#endif
