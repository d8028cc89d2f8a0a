/* A sandbox, or a container, that refuses calls of the kernel. */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BY_PRCTL = -1, UNSEEN = -2, MOST_REFUSED = 16 };

/* From now on the kernel gives these calls this answer (SECCOMP_RET_KILL_PROCESS,
 * SECCOMP_RET_ERRNO | code); the rest is free. `flags`: of seccomp(), BY_PRCTL: by prctl(), UNSEEN:
 * by its number, which the shim does not see. Not 0 where that cannot be. */
static inline int refuse(unsigned answer, const unsigned *calls, unsigned count, int flags)
{
    struct sock_filter code[MOST_REFUSED + 3] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (unsigned i = 0; i < count; i++) {
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i],
                                                   (unsigned char)(count - i), 0);
    }
    code[count + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[count + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    struct sock_fprog program = {.len = (unsigned short)(count + 3), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    if (flags == UNSEEN) {
        return (int)syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    }
    return flags == BY_PRCTL ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
                             : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* The same for the calls that are named. */
#define REFUSE(answer, flags, ...)                                                                 \
    refuse(answer, (const unsigned[]){__VA_ARGS__},                                                \
           sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned), flags)
