/* Calls of hwloc to ask every PU for its caches, in an object with the name of a library by which
 * programs look where they are. */
#include <sched.h>

int stub_visit(const cpu_set_t *all);
int stub_visit(const cpu_set_t *all)
{
    cpu_set_t before, one;
    if (sched_getaffinity(0, sizeof before, &before) != 0) {
        return -1;
    }
    for (size_t pu = 0; pu < CPU_SETSIZE; pu++) {
        CPU_ZERO(&one);
        CPU_SET(pu, &one);
        if (CPU_ISSET(pu, all) && sched_setaffinity(0, sizeof one, &one) != 0) {
            return -1;
        }
    }
    return sched_setaffinity(0, sizeof before, &before) == 0 ? 0 : -1;
}
