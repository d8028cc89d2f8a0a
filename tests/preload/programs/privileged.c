/* A thread, which is what wakes the shim; says whether the program is privileged. Is copied with a
 * set-user-ID bit, a set-group-ID bit and a capability. */
#include <pthread.h>
#include <sys/auxv.h>

#include "report.h"

static void *nothing(void *argument)
{
    return argument;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) != 0) {
        return 4;
    }
    pthread_join(thread, NULL);
    report_line(getauxval(AT_SECURE) ? "privileged\n" : "ordinary\n");
    return 0;
}
