/* Why threads have no PU of their own. pools.c keeps the cause; these are the words, and the
 * processes that are in the way, looked for at the moment when a pool is left. */
#include "preload/place/why.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "preload/base/pages.h"
#include "preload/node/node.h"
#include "preload/place/life.h"

/* As the JSON's "cause". */
static const char *const causes[] = {
    [PIN_CAUSE_NONE] = "none", [PIN_CAUSE_TOO_MANY] = "too_many",
    [PIN_CAUSE_HELD] = "held", [PIN_CAUSE_STRANGERS] = "strangers",
    [PIN_CAUSE_TEAM] = "team", [PIN_CAUSE_MASK] = "mask",
};

static struct {
    enum pin_cause known;
    bool said;
    char by[192]; /* what holds the PUs */
} whys[PIN_POOLS];

/* As they were when the lock was held last; the PUs that others have. */
static struct pin_pools seen;
static struct profile_mask avoided;

static void take_over(void)
{
    seen = pin_here.pools;
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

/* The processes that run there and nowhere else. */
static void find_holders(char *out, size_t size)
{
    static struct pin_neighbours there;
    char pus[96];
    pid_t last = 0;
    pin_neighbours_find(&avoided, 0, &there);
    profile_mask_format(&avoided, pus, sizeof pus);
    size_t used =
        (size_t)snprintf(out, size, "PU%s %s held by", plural(profile_mask_count(&avoided)), pus);
    for (size_t i = 0; i < there.count && used < size; i++) {
        if (there.each[i].bound && there.each[i].pid != last) {
            used += (size_t)snprintf(out + used, size - used, "%s process %d (%s)", last ? "," : "",
                                     (int)there.each[i].pid, there.each[i].name);
            last = there.each[i].pid;
        }
    }
    if (!last) {
        snprintf(out + used, size - used, " another job, or kept busy");
    }
}

/* The PUs that a process has, where they are not all of the node. */
static void say_limits(size_t threads, char *out, size_t size)
{
    char pus[96];
    const size_t usable = pin_here.pools.count;
    profile_mask_format(&pin_here.plan.own, pus, sizeof pus);
    if (seen.rank) {
        snprintf(out, size, "%zu thread%s, this rank's part is PUs %s", threads, plural(threads),
                 pus);
    } else if (usable < (size_t)sysconf(_SC_NPROCESSORS_ONLN)) {
        snprintf(out, size, "%zu thread%s, may use PU%s %s only (taskset or cpuset)", threads,
                 plural(threads), plural(usable), pus);
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
        snprintf(out, size, "%zu thread%s, %zu PU%s, beside %zu busy program%s at unknown places",
                 needs, plural(needs), pools->count, plural(pools->count), pools->strangers,
                 plural(pools->strangers));
        break;
    case PIN_CAUSE_TEAM:
        snprintf(out, size, "%zu thread%s, and %s's team has its PUs", needs, plural(needs),
                 pools->team < PIN_POOLS ? pools->pool[pools->team].name : "the rank");
        break;
    default:
        snprintf(out, size, "the program gave a mask");
    }
}

static const char *name_of(unsigned number)
{
    const char *name = seen.pool[number].name;
    return name[0] ? name : "the program";
}

static void say_pools(void)
{
    char text[320];
    for (unsigned number = 0; number < PIN_POOLS; number++) {
        const enum pin_cause cause = seen.pool[number].cause;
        if (cause == PIN_CAUSE_NONE || cause == whys[number].known) {
            continue;
        }
        whys[number].known = cause;
        if (cause == PIN_CAUSE_HELD) {
            find_holders(whys[number].by, sizeof whys[number].by);
        }
        say_cause(number, text, sizeof text);
        pin_log(pin_here.options.verbose && !whys[number].said,
                "threads of %s are left to the kernel: %s", name_of(number), text);
        whys[number].said = true;
    }
}

static bool is_news(void)
{
    unsigned number = 0;
    while (number < PIN_POOLS && (seen.pool[number].cause == PIN_CAUSE_NONE ||
                                  seen.pool[number].cause == whys[number].known)) {
        number++;
    }
    return number < PIN_POOLS;
}

void pin_why_say(void)
{
    static atomic_bool saying;
    if ((!pin_here.options.verbose && !pin_here.options.report) || atomic_exchange(&saying, true)) {
        return;
    }
    pin_process_lock();
    take_over();
    pin_process_unlock();
    if (is_news()) {
        (void)pin_pages_with_stack(say_pools);
    }
    atomic_store(&saying, false);
}

bool pin_why_report(void)
{
    const char *where = pin_here.options.report;
    bool any = false;
    char text[320];
    take_over(); /* the program ends, maybe in a handler in a thread that has the lock */
    say_pools();
    for (unsigned number = 0; number < PIN_POOLS; number++) {
        const struct pin_pool *pool = &seen.pool[number];
        if (pool->cause == PIN_CAUSE_NONE) {
            continue;
        }
        any = true;
        say_cause(number, text, sizeof text);
        if (where && pin_file_is_json(where)) {
            pin_file_report(where, "\"left\":\"%s\",\"cause\":\"%s\",\"why\":\"%s\"",
                            name_of(number), causes[pool->cause], text);
        } else if (where) {
            pin_file_report(where, "left to the kernel: threads of %s: %s", name_of(number), text);
        }
    }
    return any;
}

void pin_why_reset(void)
{
    for (unsigned number = 0; number < PIN_POOLS; number++) {
        whys[number].known = PIN_CAUSE_NONE;
        whys[number].said = false;
    }
}
