/* Did a worker of this process share its PU, and with whom? By what ran there: threads of the own
 * process by where they last ran, other processes by what /proc shows when the first worker is laid
 * over them, and at the end. Jobs that /proc hides are known by their locks. */
#include "preload/place/report.h"

#include <stdatomic.h>
#include <stdio.h>

#include "preload/base/pages.h"
#include "preload/node/log.h"
#include "preload/node/registry.h"
#include "preload/place/process.h"
#include "profile/base/format_safe.h"
#include "profile/text/record.h"

/* The jobs that this process was laid over when its first worker came. */
static struct {
    atomic_bool known;
    struct profile_mask hidden; /* PUs whose holders /proc does not show: of another container */
    struct pin_neighbours over;
} laid;

/* Both at the end; apart, because a stack may be small. */
static struct pin_neighbours now;

static void note_shared(const char *sentence, const struct profile_fact *facts)
{
    pin_record(pin_here.options.report, false, sentence, facts);
}

/* -- laid over -- */

/* A thread that the kernel may move has no PU over which another job could be laid. */
static void keep_holders(struct pin_neighbours *all, struct profile_mask *hidden)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (all->each[i].bound && !all->each[i].fellow) {
            profile_mask_remove(hidden, all->each[i].pu);
            all->each[kept++] = all->each[i];
        }
    }
    all->count = kept;
}

static void find_laid(void)
{
    char holders[PIN_WHY_HOLDERS];
    pin_process_lock();
    laid.hidden = pin_here.plan.avoid;
    profile_mask_intersect(&laid.hidden, &pin_here.plan.own);
    pin_process_unlock();
    pin_neighbours_find(&laid.hidden, pin_here.launcher.starter, &laid.over);
    pin_why_holders(&laid.hidden, &laid.over, holders);
    pin_log(pin_here.options.verbose, "laid over %s", holders);
    keep_holders(&laid.over, &laid.hidden);
}

void pin_check_laid(int32_t pu)
{
    if (pu < 0 || !(pin_here.options.report || pin_here.options.verbose)) {
        return;
    }
    pin_process_lock();
    const bool is_over = profile_mask_has(&pin_here.plan.avoid, (uint32_t)pu);
    pin_process_unlock();
    if (is_over && !atomic_exchange(&laid.known, true)) {
        (void)pin_pages_with_stack(find_laid);
    }
}

void pin_check_reset(void)
{
    laid.known = false;
    laid.hidden = (struct profile_mask){0};
    laid.over.count = 0;
}

/* -- threads of this process -- */

static bool live_together(const struct pin_worker *a, const struct pin_worker *b)
{
    return a != b && a->pu == b->pu && a->from_ns < b->until_ns && b->from_ns < a->until_ns;
}

static bool meets_any(const struct pin_worker *one, const struct pin_worker *all, size_t count)
{
    size_t i = 0;
    while (i < count && !live_together(one, &all[i])) {
        i++;
    }
    return i < count;
}

static size_t say_threads(uint32_t pu, const struct pin_worker *all, size_t count)
{
    char tids[512] = "", *at = tids;
    size_t threads = 0;
    for (size_t i = 0; i < count; i++) {
        if (all[i].pu == (int32_t)pu && meets_any(&all[i], all, count)) {
            char tid[16];
            snprintf(tid, sizeof tid, "%s%d", threads++ ? "," : "", (int)all[i].tid);
            at = profile_format_text(at, tids + sizeof tids, tid);
        }
    }
    if (threads > 0) {
        note_shared(
            "check: PU {shared_pu} was shared by {threads} threads of this process ({tids})",
            PROFILE_FACTS(PROFILE_NUMBER("shared_pu", pu), PROFILE_WORD("with", "thread"),
                          PROFILE_NUMBER("threads", threads),
                          {.key = "tids", .kind = PROFILE_LIST, .text = tids}));
    }
    return threads > 0;
}

/* -- other processes -- */

static void say_neighbour(const struct pin_neighbour *it)
{
    note_shared(
        it->fellow ? "check: PU {shared_pu} was shared with process {other_pid} ({other_name}), "
                     "of this job"
                   : "check: PU {shared_pu} was shared with process {other_pid} ({other_name})",
        PROFILE_FACTS(PROFILE_NUMBER("shared_pu", it->pu),
                      PROFILE_WORD("with", it->fellow ? "fellow" : "process"),
                      PROFILE_NUMBER("other_pid", it->pid), PROFILE_WORD("other_name", it->name)));
}

static bool runs_there(uint32_t pu, const struct pin_worker *workers, size_t count)
{
    size_t i = 0;
    while (i < count && !(workers[i].pu == (int32_t)pu && workers[i].runs)) {
        i++;
    }
    return i < count;
}

static bool is_among(const struct pin_neighbour *it, const struct pin_neighbours *all)
{
    size_t i = 0;
    while (i < all->count && (all->each[i].pu != it->pu || all->each[i].pid != it->pid)) {
        i++;
    }
    return i < all->count;
}

/* A thread that the kernel may move comes to a PU as soon as its worker waits: they share none. */
static size_t say_neighbours(const struct profile_mask *pus, const struct pin_worker *workers,
                             size_t count)
{
    size_t said = 0;
    pin_neighbours_find(pus, pin_here.launcher.starter, &now);
    for (size_t i = 0; i < now.count; i++) {
        if (now.each[i].bound || runs_there(now.each[i].pu, workers, count)) {
            say_neighbour(&now.each[i]);
            said++;
        }
    }
    for (size_t i = 0; i < laid.over.count; i++) {
        if (profile_mask_has(pus, laid.over.each[i].pu) && !is_among(&laid.over.each[i], &now)) {
            say_neighbour(&laid.over.each[i]);
            said++;
        }
    }
    return said;
}

static size_t say_hidden(uint32_t pu)
{
    struct pin_company company = {0};
    if (profile_mask_has(&laid.hidden, pu)) {
        pin_registry_count(&pin_here.registry, &pu, 1, &company);
    }
    if (company.jobs == 0) {
        return 0;
    }
    note_shared("check: PU {shared_pu} was shared with another {with}, which /proc hides",
                PROFILE_FACTS(PROFILE_NUMBER("shared_pu", pu), PROFILE_WORD("with", "job")));
    return 1;
}

void pin_check_write(const struct pin_worker *workers, size_t count)
{
    struct profile_mask pus = {0};
    size_t said = 0;
    for (size_t i = 0; i < count; i++) {
        profile_mask_add(&pus, (uint32_t)workers[i].pu);
    }
    said += say_neighbours(&pus, workers, count);
    PROFILE_MASK_EACH(&pus, pu)
    {
        said += say_threads(pu, workers, count) + say_hidden(pu);
    }
    if (said == 0) {
        const bool node = pin_here.registry.on;
        note_shared(node ? "check: no two workers shared a PU (on this {scope})"
                         : "check: no two workers shared a PU (as far as /{scope} shows)",
                    PROFILE_FACTS(PROFILE_NUMBER("shared_pu", -1),
                                  PROFILE_WORD("scope", node ? "node" : "proc")));
    }
}
