/* Command lines as lists of words, and running them: many copies at once where that is asked for,
 * killed with all that they started when their time is over.
 *
 * A run is polled for its end, every 0.2 ms: a signal handler or a thread of ours would be one more
 * thing that the machine does while it is measured. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "benchmarks/bench/run.h"
#include "benchmarks/bench/tools.h"
#include "profile/base/child.h"
#include "profile/base/cli.h"
#include "profile/base/clock.h"
#include "profile/base/file.h"

/* -- words -- */

static void append(struct words *words, char *word)
{
    char **list = realloc(words->list, (words->count + 2) * sizeof *list);
    if (!list || !word) {
        cli_fail("out of memory");
    }
    list[words->count++] = word;
    list[words->count] = NULL;
    words->list = list;
}

void bench_words_add(struct words *words, const char *format, ...)
{
    char *word = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&word, format, arguments) < 0) {
        word = NULL;
    }
    va_end(arguments);
    append(words, word);
}

void bench_words_add_all(struct words *words, char *const *list)
{
    for (; *list; list++) {
        append(words, bench_copy(*list));
    }
}

void bench_words_free(struct words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        free(words->list[i]);
    }
    free(words->list);
    *words = (struct words){0};
}

/* As a shell takes it. */
static void put_word(FILE *out, const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "@%+=:,./_-";
    if (*word && strspn(word, safe) == strlen(word)) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++) {
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, out);
    }
    fputc('\'', out);
}

char *bench_words_text(const struct words *words)
{
    char *text = NULL;
    size_t size;
    FILE *out = profile_stream_open(&text, &size);
    for (size_t i = 0; out && i < words->count; i++) {
        fputs(i ? " " : "", out);
        put_word(out, words->list[i]);
    }
    if (!out || fclose(out) != 0) {
        cli_fail("out of memory");
    }
    return text;
}

/* -- runs -- */

#define CANNOT_START 127
#define POLL_NANOSECONDS 200000 /* how often a run is looked at: 0.2 ms */

/* Variables that place programs: from the first run on, this command is without the user's. */
static const char *const placing[] = {
    "OMP_PROC_BIND",     "OMP_PLACES",   "GOMP_CPU_AFFINITY", "KMP_AFFINITY",   "SERVET_MEM_PRIOR",
    "SERVET_COMM_PRIOR", "SERVET_FORCE", "SERVET_VERBOSE",    "SERVET_DISABLE", "LD_PRELOAD"};

struct child {
    pid_t pid;
    int out, err;
    bool ended;
};

/* False: it cannot be started, and the reason is in its errors. */
static bool start(const struct words *argv, const struct words *environment, struct child *child)
{
    *child = (struct child){.out = profile_child_file(), .err = profile_child_file()};
    if (child->out < 0 || child->err < 0) {
        cli_fail("cannot keep the output of %s", argv->list[0]);
    }
    /* Out of the terminal's process group Ctrl-C does not reach it: it ends when this command
     * does. */
    const struct profile_child started = {.argv = argv->list,
                                          .environment = (const char *const *)environment->list,
                                          .in = PROFILE_CHILD_NOTHING,
                                          .out = child->out,
                                          .errors = child->err,
                                          .own_group = true,
                                          .dies_with_us = SIGTERM};
    int rc = profile_child_start(&started, &child->pid);
    if (rc == -EAGAIN || rc == -ENOMEM) {
        cli_fail("cannot start %s: %s", argv->list[0], strerror(-rc));
    }
    if (rc < 0) {
        dprintf(child->err, "%s: %s\n", argv->list[0], strerror(-rc));
    }
    return rc == 0;
}

static char *text_of(int fd)
{
    char *text;
    int rc = profile_child_read(fd, &text);
    if (rc < 0) {
        cli_fail("output of a program: %s", strerror(-rc));
    }
    return text;
}

/* A line of ten dashes and nothing else: launchers put their messages between two. */
static bool is_rule(const char *line)
{
    const size_t dashes = strspn(line, "-");
    return dashes >= 10 && line[dashes] == '\0';
}

/* The sentence that says why: the first one below a launcher's rule, however many lines it takes;
 * else the last line that is not empty. A new string, or NULL. */
static char *find_complaint(char *text)
{
    char *next, *last = NULL, *sentence = NULL;
    bool below = false, begun = false;
    for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
        if (is_rule(line)) {
            below = !sentence;
            continue;
        }
        last = line[strspn(line, " \t")] ? line : last;
        if (!below) {
            continue;
        }
        char *longer = bench_text("%s%s%s", begun ? sentence : "", begun ? " " : "", line);
        free(sentence);
        sentence = longer;
        begun = true;
        below = !strchr(".:", line[strlen(line) - 1]);
    }
    return sentence ? sentence : last ? bench_copy(last) : NULL;
}

static void finish(struct child *child, int status, double seconds, struct bench_run *run)
{
    child->ended = true;
    run->seconds = seconds;
    run->status = status;
    run->out = text_of(child->out);
    char *err = text_of(child->err);
    run->complaint = find_complaint(err);
    free(err);
    close(child->out);
    close(child->err);
}

static size_t collect(struct child *children, size_t copies, double started, struct bench_run *runs)
{
    size_t running = 0;
    for (size_t i = 0; i < copies; i++) {
        int status;
        if (children[i].ended) {
            continue;
        }
        if (waitpid(children[i].pid, &status, WNOHANG) == children[i].pid) {
            status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            finish(&children[i], status, profile_now_s() - started, &runs[i]);
        } else {
            running++;
        }
    }
    return running;
}

static void end_all(struct child *children, size_t copies, int number, struct bench_run *runs)
{
    for (size_t i = 0; i < copies; i++) {
        if (!children[i].ended) {
            runs[i].timed_out = true;
            kill(-children[i].pid, number);
        }
    }
}

/* -- being interrupted -- */

static volatile sig_atomic_t interrupted;
static bool adopts; /* processes whose parents ended become ours */

static void interrupt(int number)
{
    interrupted = number;
}

void bench_run_hold_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = interrupt};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], &action, NULL);
    }
    adopts = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

int bench_run_interrupted(void)
{
    return interrupted;
}

static const struct timespec pause_between = {0, POLL_NANOSECONDS};

/* Ranks whose launcher was killed, and what has left its process group. */
static void kill_left_behind(void)
{
    char path[64], text[4096];
    const double until = profile_now_s() + BENCH_GRACE_SECONDS;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    while (waitpid(-1, NULL, WNOHANG) >= 0 && profile_now_s() < until) {
        profile_read_small(path, text, sizeof text);
        long pid;
        for (char *at = text; (pid = strtol(at, &at, 10)) > 0;) {
            kill((pid_t)pid, SIGKILL);
        }
        nanosleep(&pause_between, NULL);
    }
}

void bench_run(const struct words *argv, const struct words *environment, size_t copies,
               double limit_seconds, struct bench_run *runs)
{
    struct child *children = bench_memory(copies, sizeof *children);
    memset(runs, 0, copies * sizeof *runs);
    double started = profile_now_s(), end = started + limit_seconds;
    for (size_t i = 0; i < sizeof placing / sizeof *placing; i++) {
        unsetenv(placing[i]);
    }
    for (size_t i = 0; i < copies; i++) {
        if (!start(argv, environment, &children[i])) {
            finish(&children[i], CANNOT_START, 0, &runs[i]);
        }
    }
    bool asked = false, killed = false;
    while (collect(children, copies, started, runs)) {
        if (!asked && (interrupted || profile_now_s() > end)) {
            end_all(children, copies, SIGTERM, runs);
            end = profile_now_s() + BENCH_GRACE_SECONDS;
            asked = true;
        } else if (asked && !killed && profile_now_s() > end) {
            end_all(children, copies, SIGKILL, runs);
            killed = true;
        }
        nanosleep(&pause_between, NULL);
    }
    free(children);
    if (asked && adopts) {
        kill_left_behind();
    }
}

void bench_run_free(struct bench_run *run)
{
    free(run->out);
    free(run->complaint);
    *run = (struct bench_run){0};
}
