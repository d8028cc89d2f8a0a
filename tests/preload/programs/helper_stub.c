/* An object with the name of an event library, whose threads help. Reports as thread 7. */
#include <pthread.h>

#include "report.h"

static void *help(void *unused)
{
    report_worker(0, 7);
    return unused;
}

int stub_help(void);
int stub_help(void)
{
    pthread_t thread;
    int code = pthread_create(&thread, NULL, help, NULL);
    return code == 0 ? pthread_join(thread, NULL) : code;
}
