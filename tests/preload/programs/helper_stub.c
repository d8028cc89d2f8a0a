/* An object with the name of an event library, whose threads help. Reports as thread 7. */
#include "threads.h"

int stub_help(void);
int stub_help(void)
{
    run_reporter(7);
    return 0;
}
