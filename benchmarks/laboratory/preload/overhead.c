/* The costs of the shim: overhead [ROUNDS [THREADS [start]]] start: only that part
 *
 * Every comparison runs its candidates in turn, round by round, in one run, and prints medians and
 * the ratio to the first candidate: on a shared machine only that is comparable. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/place/process.h"
#include "profile/base/clock.h"
#include "profile/base/statistics.h"
#include "profile/model.h"

#define MOST_ROUNDS 2000

struct candidate {
    const char *name;
    const char *preload;
    const char *argv[12];
    double sample[MOST_ROUNDS];
};

static double now_us(void)
{
    return 1e6 * profile_now_s();
}

static void become(const struct candidate *candidate, int output)
{
    if (candidate->preload) {
        setenv("LD_PRELOAD", candidate->preload, 1);
    }
    setenv("SERVET_REGISTRY", "/dev/shm/servet-benchmark", 1);
    /* A look for other processes waits; its wait is not measured here. */
    setenv("SERVET_WATCH", "0", 1);
    dup2(output, STDOUT_FILENO);
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    execvp(candidate->argv[0], (char *const *)(uintptr_t)candidate->argv);
    _exit(127);
}

/* Wall time of the whole process in microseconds, and in `*said` the number that it printed. */
static double run(const struct candidate *candidate, double *said)
{
    int output[2], status;
    char text[4096] = "";
    if (pipe2(output, O_CLOEXEC) < 0) {
        exit(1);
    }
    double start = now_us();
    pid_t pid = fork();
    if (pid == 0) {
        become(candidate, output[1]);
    }
    close(output[1]);
    size_t length = 0;
    for (ssize_t got; length < sizeof text - 1 &&
                      (got = read(output[0], text + length, sizeof text - 1 - length)) > 0;) {
        length += (size_t)got;
    }
    close(output[0]);
    waitpid(pid, &status, 0);
    double took = now_us() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "overhead: %s failed\n", candidate->argv[0]);
        exit(1);
    }
    /* likwid-pin says things on stdout first; the number is the last line. */
    text[length] = '\0';
    while (length > 0 && text[length - 1] == '\n') {
        text[--length] = '\0';
    }
    const char *last = strrchr(text, '\n');
    *said = atof(last ? last + 1 : text);
    return took;
}

static void compare(const char *title, const char *unit, struct candidate *candidates, size_t count,
                    size_t rounds, bool whole)
{
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            double said, took = run(&candidates[i], &said);
            candidates[i].sample[round] = whole ? took : said;
        }
    }
    printf("%s (%s; median and lower quartile of %zu interleaved runs)\n", title, unit, rounds);
    double base = 0, base_low = 0;
    for (size_t i = 0; i < count; i++) {
        double low = profile_quantile(candidates[i].sample, rounds, 0.25),
               median = profile_quantile(candidates[i].sample, rounds, 0.5);
        base = i == 0 ? median : base;
        base_low = i == 0 ? low : base_low;
        printf("  %-44s %12.1f  x %.3f   %12.1f  x %.3f\n", candidates[i].name, median,
               median / base, low, low / base_low);
    }
    fflush(stdout);
}

static bool have(const char *tool)
{
    char command[256];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", tool);
    return system(command) == 0;
}

/* A profile of 256 PUs (8 packages of 32 cores) for this host, as a cluster's file would hold
 * it. */
static void write_big_profile(const char *path)
{
    struct servet_profile *profile;
    struct servet_error error;
    char host[256];
    if (profile_from_hwloc("package:8 l3:4 l2:8 pu:1", &profile, &error) < 0) {
        fprintf(stderr, "overhead: %s\n", error.text);
        exit(1);
    }
    gethostname(host, sizeof host);
    host[strcspn(host, ".")] = '\0';
    free(profile->host_name);
    free(profile->topology_signature);
    free(profile->nodes[0].names);
    profile->host_name = strdup(host);
    profile->topology_signature = strdup("");
    profile->nodes[0].names = strdup(host);
    if (profile_save(profile, path, &error) < 0) {
        fprintf(stderr, "overhead: %s\n", error.text);
        exit(1);
    }
    profile_free(profile);
}

/* Profile read and plan made for all 256 PUs, in this process. */
static void measure_plan(const char *path, size_t rounds)
{
    static double sample[MOST_ROUNDS];
    static struct pin_options options;
    struct pin_launcher launcher = {0};
    static struct pin_registry registry;
    struct profile_mask allowed = {0};
    const struct pin_plan_request request = {
        .options = &options, .launcher = &launcher, .allowed = &allowed, .registry = &registry};
    for (uint32_t pu = 0; pu < 256; pu++) {
        profile_mask_add(&allowed, pu);
    }
    options.profile = path;
    for (size_t i = 0; i < rounds; i++) {
        struct pin_plan plan;
        double start = now_us();
        if (pin_plan_make(&request, &plan) < 0 || plan.count != 256) {
            fprintf(stderr, "overhead: no plan for 256 PUs\n");
            exit(1);
        }
        sample[i] = now_us() - start;
        pin_plan_free(&plan);
    }
    printf("profile of 256 PUs read, plan for all of them made (us; of %zu)\n  median %.1f  lower "
           "quartile %.1f\n",
           rounds, profile_quantile(sample, rounds, 0.5), profile_quantile(sample, rounds, 0.25));
    fflush(stdout);
}

/* Under a profile of 256 PUs; `threads` is how many are made one at a time. */
static void measure_threads(const char *threads, size_t rounds)
{
    size_t some = rounds / 10 > 5 ? rounds / 10 : 5;
    static struct candidate first[] = {
        {.name = "nothing preloaded", .argv = {CHILD, "first"}},
        {.name = "shim, profile of 256 PUs", .preload = SHIM, .argv = {CHILD, "first"}},
    };
    compare("first thread, created and joined", "ns", first, 2, rounds, false);

    static struct candidate loop[] = {
        {.name = "sched_setaffinity by hand in the child", .argv = {CHILD, "loop", NULL, "hand"}},
        {.name = "shim", .preload = SHIM, .argv = {CHILD, "loop", NULL, "nobody"}},
        {.name = "not pinned", .argv = {CHILD, "loop", NULL, "nobody"}},
    };
    for (size_t i = 0; i < 3; i++) {
        loop[i].argv[2] = threads;
    }
    compare("each further thread, one at a time", "ns", loop, 3, some, false);

    static struct candidate burst[] = {
        {.name = "sched_setaffinity by hand in the child", .argv = {CHILD, "burst", "50", "hand"}},
        {.name = "shim", .preload = SHIM, .argv = {CHILD, "burst", "50", "nobody"}},
        {.name = "not pinned", .argv = {CHILD, "burst", "50", "nobody"}},
    };
    compare("64 threads at once by 8 creators, each thread", "ns", burst, 3, some, false);
}

static void measure_launchers(void)
{
    static struct candidate launch[] = {
        {.name = "servet-pin", .argv = {PIN, "--", CHILD, "nothing"}},
        {.name = "likwid-pin -c 0,1", .argv = {"likwid-pin", "-q", "-c", "0,1", CHILD, "nothing"}},
        {.name = "taskset -c 0,1", .argv = {"taskset", "-c", "0,1", CHILD, "nothing"}},
    };
    compare("start through a launcher", "us", launch, 3, 5, true);
    static struct candidate pinned[] = {
        {.name = "servet-pin", .argv = {PIN, "--", CHILD, "loop", NULL, "nobody"}},
        {.name = "likwid-pin -c 0,1",
         .argv = {"likwid-pin", "-q", "-c", "0,1", CHILD, "loop", NULL, "nobody"}},
    };
    pinned[0].argv[4] = pinned[1].argv[6] = "100";
    compare("each further thread under a launcher", "ns", pinned, 2, 3, false);
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    const char *threads = argc > 2 ? argv[2] : "2000";
    char profile[] = "/tmp/servet-overhead-XXXXXX";
    rounds = rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS;
    static struct candidate start[] = {
        {.name = "empty preload object", .preload = EMPTY, .argv = {CHILD, "nothing"}},
        {.name = "shim", .preload = SHIM, .argv = {CHILD, "nothing"}},
        {.name = "nothing preloaded", .argv = {CHILD, "nothing"}},
    };
    compare("start of a program that makes no thread", "us", start, 3, rounds, true);
    if (argc > 3) {
        return 0;
    }

    close(mkstemp(profile));
    write_big_profile(profile);
    measure_plan(profile, rounds);
    setenv("SERVET_PROFILE", profile, 1);
    measure_threads(threads, rounds);
    if (have("likwid-pin")) {
        measure_launchers();
    }
    unlink(profile);
    unlink("/dev/shm/servet-benchmark");
    return 0;
}
