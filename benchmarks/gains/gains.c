/* gains SHIM SECONDS PROGRAM..., gains --table FILE: OpenMP programs as they are, bound by
 * OMP_PROC_BIND=close, and under the shim, in turns, in situations of a shared node of n PUs; or
 * the table of what a file has of that.
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

#include "benchmarks/gains/gains.h"
#include "profile/base/clock.h"

#define MOST 64
#define LIMIT_S 15.0

const char *const bench_gains_ways[GAINS_WAYS] = {"default", "close", "shim"};

const struct bench_gains_situation bench_gains_situations[GAINS_SITUATIONS] = {
    {"whole beside free", "all PUs, beside a busy loop", 1, 1, GAINS_FREE},
    {"two, half", "two jobs, half of the PUs each", 2, 2, 0},
    {"four, quarter", "four jobs, a quarter each", 4, 4, 0},
    {"half beside quarter", "half, beside busy loops on a quarter", 1, 2, 4},
    {"alone, half", "one job on half of the PUs", 1, 2, 0},
    {"alone, whole", "one job on all PUs", 1, 1, 0},
    {"two, whole", "two jobs, all PUs each", 2, 1, 0},
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
    if (pu != GAINS_FREE) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)pu, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    for (volatile unsigned long i = 0;; i++) {
    }
}

static int start_loops(const struct bench_gains_situation *where, pid_t *loops)
{
    int count = where->loops == GAINS_FREE ? 1 : where->loops > 0 ? pus / where->loops : 0;
    for (int i = 0; i < count; i++) {
        loops[i] = start_loop(where->loops == GAINS_FREE ? GAINS_FREE : i);
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

static void run(const char *program, const struct bench_gains_situation *where, const char *way,
                int round)
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
    const size_t count = GAINS_SITUATIONS;
    if (argc == 3 && strcmp(argv[1], "--table") == 0) {
        return bench_gains_table(argv[2]);
    }
    if (argc < 4) {
        fprintf(stderr, "usage: gains SHIM SECONDS PROGRAM... | --table FILE\n");
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
                for (int way = 0; way < GAINS_WAYS; way++) {
                    if (profile_now_s() > until_s) {
                        return 0;
                    }
                    run(argv[p], &bench_gains_situations[s],
                        bench_gains_ways[(way + round + p) % GAINS_WAYS], round);
                }
            }
        }
    }
}
