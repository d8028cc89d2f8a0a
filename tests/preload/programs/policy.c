/* Says what memory policy the main thread has after the first thread: policy [refuse] with
 * "refuse", the kernel refuses set_mempolicy, as containers do. */
#include <linux/mempolicy.h>

#include "filter.h"
#include "threads.h"

int main(int argc, char **argv __attribute__((unused)))
{
    int mode = -1;
    char line[64];

    if (argc > 1) {
        /* As in a container the filter is there when the program starts. */
        if (REFUSE(SECCOMP_RET_ERRNO | EPERM, BY_PRCTL, SYS_set_mempolicy) != 0) {
            return 77;
        }
        execl("/proc/self/exe", "policy", NULL);
        return 5;
    }
    run_thread(nothing, NULL);
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) != 0) {
        return 77;
    }
    snprintf(line, sizeof line, "policy %d\n", mode);
    report_line(line);
    return 0;
}
