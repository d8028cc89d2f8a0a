/* A preloaded object that costs every program 30 ms. */
#include <time.h>

__attribute__((constructor)) static void delay(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}
