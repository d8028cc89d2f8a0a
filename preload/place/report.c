/* The lines of the report. */
#include "preload/place/report.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "preload/base/pages.h"
#include "preload/node/log.h"
#include "preload/place/places.h"
#include "preload/place/process.h"
#include "preload/place/watch.h"
#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/launchers.h"
#include "profile/base/nearness.h"
#include "profile/base/syscall.h"
#include "profile/processes/process.h"
#include "profile/processes/roles.h"
#include "profile/processes/threads.h"
#include "profile/text/record.h"

struct line {
    atomic_bool begun, ended;
    pid_t tid;
    int32_t pu; /* -1: none of its own */
    int32_t last_pu;
    enum profile_role role;
    enum profile_decider decider;
    bool works; /* as profile_thread_now.works, at its end */
    uint64_t begun_ns, ended_ns;
    char name[16];
};

/* Line 0 is the main thread's. */
static _Atomic(void *) lines; /* PIN_REPORT_THREADS of struct line */
static atomic_uint used = 1;

void pin_report_reset(void)
{
    atomic_store(&lines, NULL);
    atomic_store(&used, 1);
    pin_check_reset();
    pin_why_reset();
}

uint32_t pin_report_begin(enum profile_role role, int32_t pu, enum profile_decider decider)
{
    struct line *all = pin_here.options.report
                           ? pin_pages_map_once(&lines, PIN_REPORT_THREADS * sizeof(struct line))
                           : NULL;
    const bool main = role == PROFILE_ROLE_MAIN;
    const uint32_t number = all && !main ? atomic_fetch_add(&used, 1) : 0;
    if (!all || number >= PIN_REPORT_THREADS) {
        return 0;
    }
    all[number].tid = main ? getpid() : (pid_t)profile_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    all[number].pu = pu;
    all[number].role = role;
    all[number].decider = decider;
    all[number].begun_ns = profile_now_ns();
    atomic_store(&all[number].begun, true);
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
    all[number].ended_ns = profile_now_ns();
    all[number].works = profile_works(profile_clock_ns(CLOCK_THREAD_CPUTIME_ID),
                                      all[number].ended_ns - all[number].begun_ns);
    atomic_store(&all[number].ended, true);
}

void pin_report_moved(uint32_t number, int32_t pu)
{
    struct line *all = atomic_load_explicit(&lines, memory_order_acquire);
    if (all && atomic_load(&all[number].begun)) {
        all[number].pu = pu >= 0 ? pu : -1;
        all[number].decider = pu >= 0 ? PROFILE_BY_SERVET : PROFILE_BY_KERNEL;
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
    const struct pin_process *process;
    struct line *lines;
    uint32_t lines_used;
    struct profile_roles roles; /* of threads that have no line */
    struct pin_worker *workers; /* NULL: no memory for them */
    size_t count, room;
};

/* A main thread that is in no team and no rank waits. */
static bool is_worker(const struct pin_process *process, const struct line *line)
{
    return line->role == PROFILE_ROLE_WORKER || line->role == PROFILE_ROLE_THREAD ||
           (line->role == PROFILE_ROLE_MAIN &&
            (line->pu >= 0 || process->launcher.name || process->pools.team != PIN_POOLS ||
             pin_process_left_to_user()));
}

static void add_worker(const struct line *line, const struct profile_thread_now *now,
                       struct output *to)
{
    const bool ended = atomic_load(&line->ended);
    const int32_t pu = !ended && now->only_pu >= 0    ? now->only_pu
                       : !ended                       ? profile_thread_pu(now)
                       : line->pu >= 0 || line->works ? line->last_pu
                                                      : -1;
    if (pu >= 0 && to->count < to->room && is_worker(to->process, line)) {
        to->workers[to->count++] =
            (struct pin_worker){.tid = line->tid,
                                .pu = pu,
                                .runs = !ended && now->runs,
                                .from_ns = line->begun_ns,
                                .until_ns = ended ? line->ended_ns : UINT64_MAX};
    }
}

static void print_thread(struct output *to, const struct profile_thread_now *now,
                         const struct line *line)
{
    char rank[16] = "-", on[16];
    if (to->process->launcher.name) {
        snprintf(rank, sizeof rank, "%u", to->process->launcher.node_rank);
    }
    snprintf(on, sizeof on, "%d", line->pu);
    const struct profile_thread_said said = {
        .rank = rank,
        .role = line->role,
        .decider = line->decider,
        .pus = line->pu >= 0 ? on : now->allowed,
    };
    profile_affinity_print(to->file, to->json, now, &said);
    add_worker(line, now, to);
}

static void print_line(struct output *to, struct line *line)
{
    struct profile_thread_now now;
    if (!atomic_load(&line->begun)) {
        return;
    }
    bool alive =
        !atomic_load(&line->ended) && profile_affinity_of_thread(getpid(), line->tid, &now) == 0;
    if (!alive) {
        now = (struct profile_thread_now){
            .pid = getpid(), .tid = line->tid, .last_pu = line->last_pu, .only_pu = -1};
        memcpy(now.name, line->name, sizeof line->name);
        snprintf(now.allowed, sizeof now.allowed, "-");
    }
    print_thread(to, &now, line);
}

/* Threads that were made by other means than we see, or that were left alone. */
static void print_other(const struct profile_thread_now *now, void *argument)
{
    struct output *to = argument;
    const bool watch = strcmp(now->name, PIN_WATCH_NAME) == 0;
    struct line line = {.tid = now->tid, .pu = -1};
    line.role = watch ? PROFILE_ROLE_WATCH : profile_role_of(&to->roles, now, &line.last_pu);
    line.decider = line.role == PROFILE_ROLE_WORKER && pin_process_left_to_user() ? PROFILE_BY_USER
                   : now->only_pu < 0 ? PROFILE_BY_KERNEL
                                      : PROFILE_BY_OTHERS;
    if (!is_known(to->lines, to->lines_used, now->tid)) {
        print_thread(to, now, &line);
    }
}

void pin_report_choice(const char *where, bool verbose, const struct pin_priority_cache *recalled)
{
    pin_record(where, verbose,
               "auto: {priority} priority, for the run before was in MPI for "
               "{because_share_in_mpi} of its time",
               PROFILE_FACTS(
                   PROFILE_WORD("priority", recalled->communication ? "communication" : "memory"),
                   PROFILE_FIGURE("because_share_in_mpi", PROFILE_SHARE, recalled->share)));
}

/* The tier that SERVET_MEMBIND asks for, and whether its part of it was enough. */
static void say_memory(const char *where, enum pin_membind tier, const struct pin_memory *memory)
{
    const unsigned long long peak = pin_memory_peak(), share = memory->share_bytes;
    if (share > 0) {
        pin_record(where, false,
                   peak > share
                       ? "memory: {memory} (nodes {nodes}), at most {peak_bytes} of a share "
                         "of {share_bytes}: it does not fit"
                       : "memory: {memory} (nodes {nodes}), at most {peak_bytes} of a share "
                         "of {share_bytes}",
                   PROFILE_FACTS(PROFILE_WORD("memory", pin_membind_words[tier]),
                                 PROFILE_WORD("nodes", memory->text),
                                 PROFILE_FIGURE("share_bytes", PROFILE_BYTES, share),
                                 PROFILE_FIGURE("peak_bytes", PROFILE_BYTES, peak)));
    }
}

static void say_gpus(bool verbose, const struct profile_mask *own)
{
    const char *at = profile_first_beside(pin_environment(PROFILE_BESIDE));
    struct profile_mask near;
    char name[64];
    while (profile_next_beside(&at, name, sizeof name, &near)) {
        pin_record(pin_here.options.report, verbose, "gpu: {gpu}, {nearness}",
                   PROFILE_FACTS(PROFILE_WORD("gpu", name),
                                 PROFILE_WORD("nearness", profile_nearness(own, &near))));
    }
}

static void say_watch(const char *where)
{
    const unsigned moved = atomic_load(&pin_life.moved), loosened = atomic_load(&pin_life.loosened),
                   tightened = atomic_load(&pin_life.tightened);
    if (moved + loosened + tightened > 0) {
        pin_record(where, false,
                   "watch: {moved} moves to idle PUs, {loosened} times a pool was left to the "
                   "kernel, {tightened} threads put back",
                   PROFILE_FACTS(PROFILE_FIGURE("watch", PROFILE_INSIDE, 0),
                                 PROFILE_NUMBER("moved", moved),
                                 PROFILE_NUMBER("loosened", loosened),
                                 PROFILE_NUMBER("tightened", tightened)));
    }
}

void pin_report_write(struct pin_process *process)
{
    const char *where = process->options.report;
    char *text = NULL;
    size_t length;
    struct line *all = atomic_load_explicit(&lines, memory_order_acquire);
    if (!where || !all) {
        return;
    }
    FILE *file = profile_stream_open(&text, &length);
    if (!file) {
        return;
    }
    const uint32_t begun = atomic_load(&used);
    struct output to = {.file = file,
                        .json = pin_file_is_json(where),
                        .process = process,
                        .lines = all,
                        .lines_used = begun < PIN_REPORT_THREADS ? begun : PIN_REPORT_THREADS};
    profile_roles_read(getpid(), &to.roles);
    to.room = to.lines_used + to.roles.count;
    to.workers = calloc(to.room, sizeof *to.workers);
    to.room = to.workers ? to.room : 0;
    for (uint32_t i = 0; i < to.lines_used; i++) {
        if (atomic_load(&pin_life.gave_up)) {
            pin_report_moved(i, -1);
        }
        print_line(&to, &all[i]);
    }
    (void)profile_affinity_of_threads(getpid(), print_other, &to);
    if (begun > to.lines_used) {
        profile_record_print(file, to.json, getpid(), "and {more_threads} threads more",
                             PROFILE_FACTS(PROFILE_NUMBER("more_threads", begun - to.lines_used)));
    }
    if (fclose(file) == 0) {
        pin_file_append(where, text, length);
    }
    free(text);
    profile_roles_free(&to.roles);
    pin_check_write(to.workers, to.count);
    free(to.workers);
    say_watch(where);
    say_gpus(false, &process->plan.own);
    say_memory(where, process->options.membind, &process->plan.memory);
    if (process->recalled_priority) {
        pin_report_choice(where, false, &process->recalled);
    }
}

/* Has the parent been started under the shim? */
static bool is_started_by_ours(void)
{
    char *preload = profile_variable_of(getppid(), "LD_PRELOAD");
    const bool ours = preload && strstr(preload, "libservet_pin.so");
    free(preload);
    return ours;
}

void pin_report_once(const char *sentence, const struct profile_fact *facts)
{
    int saved = errno;
    if (!is_started_by_ours()) {
        pin_record(pin_here.options.report, pin_here.options.verbose, sentence, facts);
    }
    errno = saved;
}

bool pin_report_rank(void)
{
    struct pin_launcher rank;
    struct profile_mask mask, before;
    char pus[256];
    pin_launcher_read(pin_here.options.rebind, &rank);
    if (!rank.name || profile_mask_get(0, &mask) < 0) {
        return false;
    }
    before = mask;
    if (!pin_places_read(&rank, false, &before)) {
        pin_launcher_allowed(&rank, &mask, &before);
        if (rank.mask_of != PIN_MASK_BY_SERVET) {
            return false;
        }
    }
    profile_mask_format(&mask, pus, sizeof pus);
    pin_report_once("{role} {rank} of {ranks} ({launcher}) on PU {pus}, by {decided_by}",
                    PROFILE_FACTS(PROFILE_WORD("role", rank.row->workers ? "worker" : "rank"),
                                  PROFILE_NUMBER("rank", rank.node_rank),
                                  PROFILE_NUMBER("ranks", rank.node_ranks),
                                  PROFILE_WORD("launcher", rank.name), PROFILE_WORD("pus", pus),
                                  PROFILE_WORD("decided_by", "servet-pin")));
    say_gpus(pin_here.options.verbose, &mask);
    return true;
}
