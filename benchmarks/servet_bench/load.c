#include "benchmarks/servet_bench/load.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/base/cli.h"

#define LOAD_BYTES ((size_t)32 << 20) /* past most caches, little enough for many PUs */

static void pin_to_nth(size_t nth)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) {
        return;
    }
    for (size_t pu = 0; pu < CPU_SETSIZE; pu++) {
        if (CPU_ISSET(pu, &allowed) && nth-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(pu, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

static _Noreturn void keep_busy(size_t nth, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(0); /* it ended before the line above */
    }
    pin_to_nth(nth);
    volatile char *from = malloc(LOAD_BYTES), *to = malloc(LOAD_BYTES);
    for (char value = 0; from && to; value++) {
        memset((char *)from, value, LOAD_BYTES);
        memcpy((char *)to, (const char *)from, LOAD_BYTES);
    }
    _exit(1);
}

void load_start(size_t pus, struct load *out)
{
    *out = (struct load){.pids = calloc(pus ? pus : 1, sizeof(pid_t))};
    if (!out->pids) {
        cli_fail("out of memory");
    }
    pid_t self = getpid();
    for (; out->count < pus; out->count++) {
        pid_t pid = fork();
        if (pid < 0) {
            cli_fail("cannot start the background job: %s", strerror(errno));
        }
        if (pid == 0) {
            keep_busy(out->count, self);
        }
        out->pids[out->count] = pid;
    }
}

void load_stop(struct load *load)
{
    for (size_t i = 0; i < load->count; i++) {
        kill(load->pids[i], SIGKILL);
        waitpid(load->pids[i], NULL, 0);
    }
    free(load->pids);
    *load = (struct load){0};
}
