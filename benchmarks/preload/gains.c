/* gains SHIM SECONDS PROGRAM...: OpenMP programs as they are, bound by OMP_PROC_BIND=close, and
 * under the shim, in turns, in situations of a shared node of n PUs.
 *
 * A line for each program, situation and way of each round: the seconds until the last copy ended,
 * and whether a copy failed or was stopped (after LIMIT_S). No round begins a run after SECONDS.
 * Nothing is linked but libc, so that it can be carried to another machine. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/base/clock.h"

#define MOST 64
#define LIMIT_S 15.0
#define FREE (-1)

static const char *const ways[] = {"default", "close", "shim"};

/* Parts of the machine: copies of n / `part` threads each, beside n / `loops` busy loops, each
 * bound to a PU of the first ones; FREE: one that is not bound. */
static const struct situation {
    const char *name;
    int copies, part, loops;
} situations[] = {
    {"alone, half", 1, 2, 0},  {"two, half", 2, 2, 0},           {"four, quarter", 4, 4, 0},
    {"two, whole", 2, 1, 0},   {"half beside quarter", 1, 2, 4}, {"whole beside free", 1, 1, FREE},
    {"alone, whole", 1, 1, 0},
};

static int pus;
static const char *shim;

static pid_t start(const char *program, int threads, const char *way)
{
    char number[16];
    pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    snprintf(number, sizeof number, "%d", threads);
    setenv("OMP_NUM_THREADS", number, 1);
    if (strcmp(way, "close") == 0) {
        setenv("OMP_PROC_BIND", "close", 1);
        setenv("OMP_PLACES", "cores", 1);
    } else if (strcmp(way, "shim") == 0) {
        setenv("LD_PRELOAD", shim, 1);
        setenv("SERVET_MEM_PRIOR", "1", 1);
    }
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execl(program, program, (char *)NULL);
    _exit(127);
}

static pid_t start_loop(int pu)
{
    pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    if (pu != FREE) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)pu, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    for (volatile unsigned long i = 0;; i++) {
    }
}

static int start_loops(const struct situation *where, pid_t *loops)
{
    int count = where->loops == FREE ? 1 : where->loops > 0 ? pus / where->loops : 0;
    for (int i = 0; i < count; i++) {
        loops[i] = start_loop(where->loops == FREE ? FREE : i);
    }
    if (count > 0) {
        usleep(150000);
    }
    return count;
}

static bool wait_for_all(const pid_t *pids, int count, double since_s, double *took_s)
{
    bool good = true;
    for (int left = count; left > 0;) {
        int status;
        if (waitpid(-1, &status, WNOHANG) > 0) {
            left--;
            good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
            continue;
        }
        if (profile_now_s() - since_s > LIMIT_S) {
            for (int i = 0; i < count; i++) {
                kill(pids[i], SIGKILL);
            }
            good = false;
        }
        usleep(500);
    }
    *took_s = profile_now_s() - since_s;
    return good;
}

static void run(const char *program, const struct situation *where, const char *way, int round)
{
    pid_t loops[MOST], pids[MOST];
    double took_s = 0;
    int beside = start_loops(where, loops), threads = pus / where->part;
    double since_s = profile_now_s();
    for (int i = 0; i < where->copies; i++) {
        pids[i] = start(program, threads > 0 ? threads : 1, way);
    }
    bool good = wait_for_all(pids, where->copies, since_s, &took_s);
    for (int i = 0; i < beside; i++) {
        kill(loops[i], SIGKILL);
        waitpid(loops[i], NULL, 0);
    }
    const char *name = strrchr(program, '/');
    printf("%d,%s,\"%s\",%s,%.4f,%s\n", round, name ? name + 1 : program, where->name, way, took_s,
           good ? "good" : "bad");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const size_t count = sizeof situations / sizeof *situations;
    if (argc < 4) {
        fprintf(stderr, "usage: gains SHIM SECONDS PROGRAM...\n");
        return 2;
    }
    shim = argv[1];
    const double until_s = profile_now_s() + atof(argv[2]);
    pus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    pus = pus < MOST ? pus : MOST;
    printf("round,program,situation,way,seconds,end\n");
    for (int round = 0;; round++) {
        for (size_t s = 0; s < count; s++) {
            for (int p = 3; p < argc; p++) {
                for (int way = 0; way < 3; way++) {
                    if (profile_now_s() > until_s) {
                        return 0;
                    }
                    run(argv[p], &situations[s], ways[(way + round + p) % 3], round);
                }
            }
        }
    }
}
