/* What SERVET_REPORT would say of a program that runs: for `servet-show --live PID`. */
#ifndef SERVET_REPORT_LIVE_H
#define SERVET_REPORT_LIVE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* One line for every thread of process `pid` (see profile_where_print()). From outside a thread on one
 * PU is a worker and any other one is not; whether the shim decided is known only as far as that it
 * is loaded. Ends with the check that no two threads that have one PU have the same. 0; -ESRCH when
 * there is no such process; -EACCES when it is another user's. */
int report_live_print(FILE *out, bool json, pid_t pid);

#endif
