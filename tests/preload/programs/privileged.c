/* A thread, which is what wakes the shim; says whether the program is privileged. Is copied with a
 * set-user-ID bit, a set-group-ID bit and a capability. */
#include <sys/auxv.h>

#include "threads.h"

int main(void)
{
    run_thread(nothing, NULL);
    report_line(getauxval(AT_SECURE) ? "privileged\n" : "ordinary\n");
    return 0;
}
