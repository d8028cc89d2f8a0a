/* Every wait has a limit: when it is over, the prepared line goes to stderr and the process ends with status 1. A rank
 * that ends so makes the launcher end the others; a launcher that does not manage that within a few seconds (it waits
 * for a node that has vanished) is killed. */
#ifndef SERVET_PROBES_CLUSTER_GUARD_H
#define SERVET_PROBES_CLUSTER_GUARD_H

/* From now on at most `seconds`, counted anew with every call. */
void guard(double seconds, const char *format, ...) __attribute__((format(printf, 2, 3)));
void guard_off(void);
/* When the limit is over, the process ends with `status` and says nothing. */
void guard_silently(double seconds, int status);

#endif
