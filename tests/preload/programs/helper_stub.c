/* An object with the name of an event library, whose threads help. One reports as thread 7, one
 * does what it is given. */
#include "threads.h"

int stub_help(void);
int stub_help(void)
{
    run_reporter(7);
    return 0;
}

static void *run_work(void *work)
{
    ((void (*)(void))work)();
    return NULL;
}

int stub_help_with(void (*work)(void));
int stub_help_with(void (*work)(void))
{
    begin_thread(run_work, (void *)work);
    return 0;
}
