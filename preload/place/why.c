/* Why threads have no PU of their own. pools.c keeps the cause; these are the words, and the
 * processes that are in the way, looked for at the moment when a pool is left. */
#include "preload/place/report.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload/base/order.h"
#include "preload/base/owner.h"
#include "preload/base/pages.h"
#include "preload/node/log.h"
#include "preload/place/process.h"
#include "profile/base/launchers.h"
#include "profile/base/nearness.h"
#include "profile/text/record.h"

/* As the JSON's "cause". */
static const char *const causes[] = {
    [PIN_CAUSE_NONE] = "none", [PIN_CAUSE_TOO_MANY] = "too_many",
    [PIN_CAUSE_HELD] = "held", [PIN_CAUSE_STRANGERS] = "strangers",
    [PIN_CAUSE_TEAM] = "team", [PIN_CAUSE_MASK] = "mask",
};

static struct {
    enum pin_cause known;
    bool said;
    char by[PIN_WHY_HOLDERS]; /* that has the PUs */
} whys[PIN_POOLS];

/* As they were when the lock was held last; the process's PUs, and those that others have. */
static struct pin_pools seen;
static struct profile_mask own, avoided;
static atomic_bool saying;

void pin_why_take_over(void)
{
    seen = pin_here.pools;
    own = pin_here.plan.own;
    avoided = (struct profile_mask){0};
    for (size_t at = 0; at < seen.count; at++) {
        if (seen.places[at].avoided) {
            profile_mask_add(&avoided, seen.places[at].pu);
        }
    }
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

void pin_why_holders(const struct profile_mask *pus, const struct pin_neighbours *there,
                     char out[PIN_WHY_HOLDERS])
{
    char list[96];
    pid_t last = 0;
    profile_mask_format(pus, list, sizeof list);
    size_t used = (size_t)snprintf(out, PIN_WHY_HOLDERS, "PU%s %s held by",
                                   plural(profile_mask_count(pus)), list);
    for (size_t i = 0; i < there->count && used < PIN_WHY_HOLDERS; i++) {
        const struct pin_neighbour *it = &there->each[i];
        if (it->bound && !it->fellow && it->pid != last) {
            used += (size_t)snprintf(out + used, PIN_WHY_HOLDERS - used, "%s process %d (%s)",
                                     last ? "," : "", (int)it->pid, it->name);
            last = it->pid;
        }
    }
    if (!last) {
        snprintf(out + used, PIN_WHY_HOLDERS - used, " another job, or kept busy");
    }
}

/* The PUs that a process has, where they are not all of the node, and by whose word. */
static void say_limits(size_t threads, char *out, size_t size)
{
    char pus[96];
    const struct pin_launcher *launcher = &pin_here.launcher;
    const size_t usable = seen.count;
    profile_mask_format(&own, pus, sizeof pus);
    if (launcher->name) {
        const bool is_own = launcher->mask_of == PIN_MASK_OF_RANK;
        char shared[48] = "";
        if (is_own && launcher->sharers > 1) {
            snprintf(shared, sizeof shared, ", shared with %u more", launcher->sharers - 1);
        }
        snprintf(out, size, "%zu thread%s, this %s's %s is PU%s %s%s", threads, plural(threads),
                 launcher->row->workers ? "worker" : "rank", is_own ? "own mask" : "part",
                 plural(usable), pus, shared);
    } else if (usable < (size_t)sysconf(_SC_NPROCESSORS_ONLN)) {
        const bool ours = pin_is_set(PROFILE_BESIDE) || pin_is_set("SERVET_RANK");
        snprintf(out, size, "%zu thread%s, may use PU%s %s only (%s)", threads, plural(threads),
                 plural(usable), pus, ours ? "servet-pin" : "taskset or cpuset");
    } else {
        snprintf(out, size, "%zu thread%s, %zu PU%s", threads, plural(threads), usable,
                 plural(usable));
    }
}

static void say_cause(unsigned number, char *out, size_t size)
{
    const struct pin_pools *pools = &seen;
    const size_t needs = pools->pool[number].needs;
    switch (pools->pool[number].cause) {
    case PIN_CAUSE_TOO_MANY:
        say_limits(needs, out, size);
        break;
    case PIN_CAUSE_HELD:
        snprintf(out, size, "%s", whys[number].by);
        break;
    case PIN_CAUSE_STRANGERS:
        snprintf(out, size, "%zu thread%s, beside other programs on the same PU%s", needs,
                 plural(needs), plural(pools->count));
        break;
    case PIN_CAUSE_TEAM:
        snprintf(out, size, "%zu thread%s, and %s's team has its PUs", needs, plural(needs),
                 pools->team < PIN_POOLS ? pools->pool[pools->team].name : "the rank");
        break;
    default:
        snprintf(out, size, "the program gave a mask");
    }
}

static void say_pool(unsigned number, const char *where, bool verbose)
{
    const char *name = seen.pool[number].name;
    char text[320];
    say_cause(number, text, sizeof text);
    pin_record(where, verbose, "left to the kernel: threads of {left}: {why}",
               PROFILE_FACTS(PROFILE_WORD("left", *name ? name : "the program"),
                             PROFILE_WORD("cause", causes[seen.pool[number].cause]),
                             PROFILE_WORD("why", text)));
}

static bool is_news(unsigned number)
{
    const enum pin_cause cause = seen.pool[number].cause;
    return cause != PIN_CAUSE_NONE && cause != whys[number].known;
}

static void say_pools(void)
{
    for (unsigned number = 0; number < PIN_POOLS; number++) {
        const enum pin_cause cause = seen.pool[number].cause;
        if (!is_news(number)) {
            continue;
        }
        whys[number].known = cause;
        if (cause == PIN_CAUSE_HELD) {
            static struct pin_neighbours there;
            pin_neighbours_find(&avoided, 0, &there);
            pin_why_holders(&avoided, &there, whys[number].by);
        }
        say_pool(number, NULL, pin_here.options.verbose && !whys[number].said);
        whys[number].said = true;
    }
}

void pin_why_say(void)
{
    bool any = false;
    if ((!pin_here.options.verbose && !pin_here.options.report) || atomic_exchange(&saying, true)) {
        return;
    }
    PIN_TAKES(HOLDS_SAYING);
    pin_process_lock();
    pin_why_take_over();
    pin_process_unlock();
    for (unsigned number = 0; number < PIN_POOLS; number++) {
        any |= is_news(number);
    }
    if (any) {
        (void)pin_pages_with_stack(say_pools);
    }
    PIN_GIVES(HOLDS_SAYING);
    atomic_store(&saying, false);
}

bool pin_why_report(void)
{
    bool any = false;
    say_pools();
    for (unsigned number = 0; number < PIN_POOLS; number++) {
        if (seen.pool[number].cause != PIN_CAUSE_NONE) {
            any = true;
            say_pool(number, pin_here.options.report, false);
        }
    }
    return any;
}

void pin_why_reset(void)
{
    memset(whys, 0, sizeof whys);
    atomic_store(&saying, false);
}

const char *pin_why_alone(void)
{
    return pin_here.registry.on ? "alone in a container: other programs are not seen"
                                : "without locks on this node: other programs are not seen";
}

const char *pin_why_nothing(void)
{
    static char text[128];
    if (pin_here.options.disable) {
        return "SERVET_DISABLE is set";
    }
    if (!pin_process_may_call()) {
        return NULL;
    }
    if (pin_life_state() == IDLE) {
        return pin_owner_program_is_managed() && !pin_here.options.force
                   ? "its runtime places its own threads (--force overrides it)"
                   : "the program made no thread and called no MPI_Init";
    }
    if (pin_life_state() != PLANNED) {
        return pin_plan_meets_unseen(&pin_here.options, &pin_here.registry, &pin_here.allowed)
                   ? pin_why_alone()
                   : NULL;
    }
    if (!pin_process_left_to_user()) {
        return "its threads live briefly, or are helpers";
    }
    snprintf(text, sizeof text, "%s is set%s (--force overrides it)", pin_here.users_choice,
             pin_here.launcher.node_ranks > 1 ? ", the same for all ranks of this node" : "");
    return text;
}
