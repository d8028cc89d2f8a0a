/* Interposed: prctl, by which a program shuts itself in a sandbox (seccomp); libseccomp and others use syscall(2) with
 * its number, which is in interpose_affinity.c.
 *
 * A sandbox kills the program for a system call that is not on its list, and ours are on nobody's. So the shim makes
 * none from then on: new threads run where they like. A sandbox that was there when the program started, as in every
 * container, is another thing: what it refuses, it refuses with an error.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "interpose.h"
#include "process.h"
#include "real.h"

PIN_EXPORT int prctl(int option, ...)
{
    static int (*real)(int, unsigned long, unsigned long, unsigned long, unsigned long);
    unsigned long argument[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        argument[i] = va_arg(list, unsigned long);
    va_end(list);
    if (!PIN_REAL(real, "prctl")) {
        errno = ENOSYS;
        return -1;
    }
    if (option == PR_SET_SECCOMP)
        pin_process_retire();
    return real(option, argument[0], argument[1], argument[2], argument[3]);
}
