/* What SERVET_REPORT asks for. */
#include "preload/place/report.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "preload/node/node.h"
#include "preload/place/pages.h"
#include "preload/place/process.h"
#include "preload/place/watch.h"
#include "profile/base/affinity_of_process.h"
#include "profile/base/file.h"
#include "profile/base/syscall.h"

struct line {
    atomic_bool begun, ended;
    pid_t tid;
    int32_t pu; /* -1: none of its own */
    int32_t last_pu;
    const char *role, *decided_by;
    char name[16];
};

/* Line 0 is the main thread's. */
static _Atomic(void *) lines; /* PIN_REPORT_THREADS of struct line */
static atomic_uint used = 1;

static struct line *get_lines(void)
{
    return pin_pages_map_once(&lines, PIN_REPORT_THREADS * sizeof(struct line));
}

void pin_report_reset(void)
{
    atomic_store(&lines, NULL);
    atomic_store(&used, 1);
}

static void begin(struct line *line, pid_t tid, const char *role, int32_t pu,
                  const char *decided_by)
{
    line->tid = tid;
    line->pu = pu;
    line->role = role;
    line->decided_by = decided_by;
    atomic_store(&line->begun, true);
}

void pin_report_main(const struct pin_options *options, int32_t pu, const char *decided_by)
{
    struct line *all = options->report[0] ? get_lines() : NULL;
    if (all) {
        begin(&all[0], getpid(), "main", pu, decided_by);
    }
}

uint32_t pin_report_begin(const struct pin_options *options, const char *role, int32_t pu,
                          const char *decided_by)
{
    struct line *all = options->report[0] ? get_lines() : NULL;
    uint32_t number = all ? atomic_fetch_add(&used, 1) : 0;
    if (!all || number >= PIN_REPORT_THREADS) {
        return 0;
    }
    begin(&all[number], (pid_t)profile_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0), role, pu, decided_by);
    return number;
}

void pin_report_end(uint32_t number)
{
    struct line *all = atomic_load_explicit(&lines, memory_order_acquire);
    unsigned cpu = 0;
    if (number == 0 || !all) {
        return;
    }
    profile_syscall(SYS_getcpu, (long)&cpu, 0, 0, 0, 0, 0);
    profile_syscall(SYS_prctl, PR_GET_NAME, (long)all[number].name, 0, 0, 0, 0);
    all[number].last_pu = (int32_t)cpu;
    atomic_store(&all[number].ended, true);
}

void pin_report_moved(uint32_t number, int32_t pu)
{
    struct line *all = atomic_load_explicit(&lines, memory_order_acquire);
    if (all && atomic_load(&all[number].begun)) {
        all[number].pu = pu >= 0 ? pu : -1;
        all[number].decided_by = pu >= 0 ? "servet" : PIN_LEFT_TEXT;
    }
}

static bool is_known(const struct line *all, uint32_t count, pid_t tid)
{
    for (uint32_t i = 0; i < count; i++) {
        if (atomic_load(&all[i].begun) && all[i].tid == tid && !atomic_load(&all[i].ended)) {
            return true;
        }
    }
    return false;
}

struct output {
    FILE *file;
    bool json;
    const char *host;
    const struct pin_launcher *launcher;
};

static void print_thread(const struct output *to, const struct profile_thread_now *now,
                         const char *role, int32_t pu, const char *decided_by)
{
    char rank[16] = "-", on[16];
    if (to->launcher->name) {
        snprintf(rank, sizeof rank, "%u", to->launcher->local_rank);
    }
    snprintf(on, sizeof on, "%d", pu);
    const struct profile_thread_said said = {
        .host = to->host,
        .rank = rank,
        .role = role,
        .pus = pu >= 0 ? on : now->allowed,
        .decided_by = decided_by,
    };
    profile_affinity_print(to->file, to->json, now, &said);
}

static void print_line(const struct output *to, struct line *line)
{
    struct profile_thread_now now;
    if (!atomic_load(&line->begun)) {
        return;
    }
    bool alive =
        !atomic_load(&line->ended) && profile_affinity_of_thread(getpid(), line->tid, &now) == 0;
    if (!alive) {
        now = (struct profile_thread_now){
            .pid = getpid(), .tid = line->tid, .last_pu = line->last_pu};
        memcpy(now.name, line->name, sizeof line->name);
        snprintf(now.allowed, sizeof now.allowed, "-");
    }
    print_thread(to, &now, line->role, line->pu, line->decided_by);
}

/* Threads that were made by other means than we see, or that were left alone. */
static void print_others(const struct output *to, const struct line *all, uint32_t count)
{
    struct dirent *entry;
    DIR *folder = opendir("/proc/self/task");
    while (folder && (entry = readdir(folder))) {
        struct profile_thread_now now;
        pid_t tid = atoi(entry->d_name);
        if (tid > 0 && !is_known(all, count, tid) &&
            profile_affinity_of_thread(getpid(), tid, &now) == 0) {
            bool ours = strcmp(now.name, PIN_WATCH_NAME) == 0;
            print_thread(to, &now, ours ? "watch" : "other", -1, ours ? "servet" : "nobody");
        }
    }
    if (folder) {
        closedir(folder);
    }
}

static void say_check(const char *where, bool whole_node, int32_t shared_pu)
{
    if (pin_file_is_json(where)) {
        pin_file_report(where, "\"shared_pu\":%d,\"scope\":\"%s\"", shared_pu,
                        whole_node ? "node" : "process");
    } else if (shared_pu < 0) {
        pin_file_report(where, "check: no two workers shared a PU (%s)",
                        whole_node ? "on this node" : "this process only");
    } else {
        pin_file_report(where, "check: workers shared a PU (%d), with another process", shared_pu);
    }
}

/* What SERVET_AUTO made of the run before. */
static void say_choice(const char *where, const struct pin_priority_cache *recalled)
{
    const char *priority = recalled->communication ? "communication" : "memory";
    if (pin_file_is_json(where)) {
        pin_file_report(where, "\"priority\":\"%s\",\"because_share_in_mpi\":%.4f", priority,
                        recalled->share);
    } else {
        pin_file_report(where, "auto: %s priority, for the run before was in MPI for %.0f %%",
                        priority, 100 * recalled->share);
    }
}

/* The tier that SERVET_MEMBIND asks for, and whether its part of it was enough. */
static void say_memory(const char *where, enum pin_membind tier, const struct pin_memory *memory)
{
    const unsigned long long peak = pin_memory_peak(), share = memory->share_bytes;
    if (share && pin_file_is_json(where)) {
        pin_file_report(
            where, "\"memory\":\"%s\",\"nodes\":\"%s\",\"share_bytes\":%llu,\"peak_bytes\":%llu",
            pin_membind_words[tier], memory->text, share, peak);
    } else if (share) {
        pin_file_report(where, "memory: %s (nodes %s), at most %llu MiB of a share of %llu MiB%s",
                        pin_membind_words[tier], memory->text, peak >> 20, share >> 20,
                        peak > share ? ": it does not fit" : "");
    }
}

void pin_report_write(struct pin_process *process)
{
    const char *where = process->options.report;
    char *text = NULL, host[256] = "?";
    size_t length;
    struct line *all = atomic_load_explicit(&lines, memory_order_acquire);
    if (!where[0] || !all) {
        return;
    }
    const bool whole_node = process->registry.on;
    const int32_t shared = pin_registry_shared(&process->registry, &process->plan.ours);
    FILE *file = profile_stream_open(&text, &length);
    if (!file) {
        return;
    }
    gethostname(host, sizeof host - 1);
    struct output to = {.file = file,
                        .json = pin_file_is_json(where),
                        .host = host,
                        .launcher = &process->launcher};
    uint32_t begun = atomic_load(&used),
             count = begun < PIN_REPORT_THREADS ? begun : PIN_REPORT_THREADS;
    for (uint32_t i = 0; i < count; i++) {
        print_line(&to, &all[i]);
    }
    print_others(&to, all, count);
    if (begun > count && !to.json) {
        fprintf(file, "%s %d and %u threads more\n", host, (int)getpid(), begun - count);
    }
    if (fclose(file) == 0) {
        pin_file_append(pin_option_table[PIN_REPORT].name, where, text, length);
    }
    free(text);
    say_check(where, whole_node, shared);
    pin_watch_report(where);
    say_memory(where, process->options.membind, &process->plan.memory);
    if (process->recalled_priority) {
        say_choice(where, &process->recalled);
    }
}

/* Has the parent been started under the shim? */
static bool is_started_by_ours(void)
{
    static const char preload[] = "LD_PRELOAD=";
    char path[64], *variable = NULL;
    size_t size = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)getppid());
    FILE *file = fopen(path, "re");
    while (file && !found && getdelim(&variable, &size, '\0', file) > 0) {
        found = strncmp(variable, preload, sizeof preload - 1) == 0 &&
                strstr(variable, "libservet_pin.so");
    }
    free(variable);
    if (file) {
        fclose(file);
    }
    return found;
}

void pin_report_nothing(const struct pin_options *options, const char *why)
{
    const char *where = options->report;
    int saved = errno;
    if (!is_started_by_ours()) {
        if (where[0]) {
            pin_file_report(where,
                            pin_file_is_json(where) ? "\"nothing_placed\":\"%s\""
                                                    : "nothing was placed: %s",
                            why);
        }
        pin_log(options->verbose, "nothing was placed: %s", why);
    }
    errno = saved;
}
