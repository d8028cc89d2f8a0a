/* Says what memory policy the main thread has after the first thread: policy [refuse] with
 * "refuse", the kernel refuses set_mempolicy, as containers do. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "report.h"

static void refuse_policies(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_set_mempolicy, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        exit(77);
    }
}

static void *work(void *unused)
{
    return unused;
}

int main(int argc, char **argv __attribute__((unused)))
{
    pthread_t thread;
    int mode = -1;
    char line[64];

    if (argc > 1) {
        /* As in a container the filter is there when the program starts. */
        refuse_policies();
        execl("/proc/self/exe", "policy", NULL);
        return 5;
    }
    if (pthread_create(&thread, NULL, work, NULL) != 0) {
        return 4;
    }
    pthread_join(thread, NULL);
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) != 0) {
        return 77;
    }
    snprintf(line, sizeof line, "policy %d\n", mode);
    report_line(line);
    return 0;
}
