/* Conditions of the measurement that may bias the figures: load, stolen time, busy siblings,
 * governors, virtual machines. They are recorded beside the figures. */
#include "probes/run/result.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/mask.h"
#include "profile/query.h"
#include "profile/topology/topology.h"

/* One PU of /proc/cpuinfo has 2 to 4 KiB. */
enum { CPUINFO_BYTES = 16 << 10, SETTLE_ROUNDS = 3 };
static const double settle_agreement = 0.02, settle_most_s = 0.3;
/* Below these nothing is worth a line: a tick is 10 ms, and a hypervisor's own work shows as some
 * tenths of a per cent. */
static const double steal_least = 0.005, siblings_least = 0.05;
/* A shorter standstill is a page fault that had to wait for memory; suspending takes as much. */
static const double still_least_s = 0.2;
/* A machine is idle where the load average before the first probe is lower. */
static const double idle_load = 0.5;

struct profile_ticks probe_conditions_sum(const struct profile_ticks *ticks, size_t count,
                                          const struct profile_set *pus)
{
    struct profile_ticks sum = {0};
    for (size_t i = 0; i < pus->count && pus->ids[i] < count; i++) {
        sum.all += ticks[pus->ids[i]].all;
        sum.idle += ticks[pus->ids[i]].idle;
        sum.stolen += ticks[pus->ids[i]].stolen;
    }
    return sum;
}

/* PUs that share a core with a measured one and are not measured themselves. */
static int siblings_of(const struct machine *machine, const struct profile_class *declared,
                       struct profile_set *out)
{
    FREED uint32_t *ids = malloc((declared->pus.count + 1) * sizeof *ids);
    size_t count = 0;
    TRY(ids ? 0 : -ENOMEM);
    for (size_t g = 0; g < declared->cores.group_count; g++) {
        const struct profile_set *core = &declared->cores.groups[g];
        bool measured = false;
        for (size_t i = 0; i < core->count; i++) {
            measured |= profile_set_has(&machine->pus, core->ids[i]);
        }
        for (size_t i = 0; i < core->count && measured; i++) {
            if (!profile_set_has(&machine->pus, core->ids[i])) {
                ids[count++] = core->ids[i];
            }
        }
    }
    return profile_set_from_array(ids, count, out);
}

static int look_around(const struct machine *machine, const struct profile_class *declared,
                       struct profile_ticks *measured, struct profile_ticks *siblings)
{
    FREED_BY(profile_set_free) struct profile_set others = {0};
    FREED struct profile_ticks *ticks = calloc(PROFILE_MASK_PUS, sizeof *ticks);
    TRY(ticks ? siblings_of(machine, declared, &others) : -ENOMEM);
    (void)profile_ticks_get(ticks, PROFILE_MASK_PUS);
    *measured = probe_conditions_sum(ticks, PROFILE_MASK_PUS, &machine->pus);
    *siblings = probe_conditions_sum(ticks, PROFILE_MASK_PUS, &others);
    return 0;
}

/* Are there too few samples yet to know how long workers wait beside other processes? */
static bool pace_is_open(struct machine *machine)
{
    return probe_machine_others(machine) >= 1 && machine->guard.asked_s < MACHINE_PACE_LEAST_S;
}

/* A core that was idle starts slow: loads that hit in the L1 take as long as its frequency has
 * it. */
static int settle_machine(struct machine *machine, struct conditions_before *out)
{
    const struct machine_traversal what = {
        .bytes = 8192, .stride_bytes = 256, .order = MACHINE_CHASE, .warm_passes = 64, .seed = 1};
    double last[SETTLE_ROUNDS] = {0}, end = probe_machine_elapsed(machine) + settle_most_s;
    for (size_t round = 0;
         (!out->settled || pace_is_open(machine)) && probe_machine_elapsed(machine) < end;
         round++) {
        TRY(probe_machine_traverse(machine, &what, machine->pus.ids, 1,
                                   &last[round % SETTLE_ROUNDS]));
        double low = fmin(last[0], fmin(last[1], last[2])),
               high = fmax(last[0], fmax(last[1], last[2]));
        out->settle_spread = low > 0 ? high / low - 1 : -1;
        out->settled |= round + 1 >= SETTLE_ROUNDS && out->settle_spread < settle_agreement;
    }
    return 0;
}

/* So far: one clock goes on while the machine is suspended, the other stops. The smallest of some
 * readings, for this thread may lose its PU between the two clocks. */
static double suspended_s(void)
{
    enum { READINGS = 5 };
    double least = INFINITY;
    for (int i = 0; i < READINGS; i++) {
        double monotonic = profile_clock_s(CLOCK_MONOTONIC);
        least = fmin(least, profile_clock_s(CLOCK_BOOTTIME) - monotonic);
    }
    return least;
}

int probe_conditions_before(struct machine *machine, const struct profile_class *declared,
                            struct conditions_before *out)
{
    *out = (struct conditions_before){.settle_spread = -1, .suspended_s = suspended_s()};
    char line[96];
    if (profile_first_line("/proc/loadavg", line, sizeof line)) {
        snprintf(out->load, sizeof out->load, "%.*s", (int)strcspn(line, " "), line);
    }
    TRY(look_around(machine, declared, &out->measured, &out->siblings));
    TRY(settle_machine(machine, out));
    struct machine_guard *guard = &machine->guard; /* nothing was measured yet */
    guard->operations = guard->repeated = guard->disturbed = 0;
    return 0;
}

static double share(unsigned long long part, unsigned long long all)
{
    return all > 0 ? (double)part / (double)all : 0;
}

/* Seconds that the machine, or the workers of a measurement, stood still. */
static void add_standstill(struct conditions *to, const char *key, double seconds, const char *what)
{
    if (seconds >= still_least_s) {
        probe_conditions_add(to, key, "%.1f s%s", seconds, what);
    }
}

static void add_after(const struct conditions_before *before, const struct machine *machine,
                      const struct profile_ticks *measured, const struct profile_ticks *siblings,
                      struct conditions *to)
{
    const struct machine_guard *guard = &machine->guard;
    const double stolen = share(measured->stolen - before->measured.stolen,
                                measured->all - before->measured.all),
                 busy = 1 - share(siblings->idle - before->siblings.idle,
                                  siblings->all - before->siblings.all);
    if (before->load[0]) {
        probe_conditions_add(to, "load_average", "%s", before->load);
    }
    if (before->settle_spread >= 0 && !before->settled) {
        probe_conditions_add(to, "warm_up", "not settled: L1 latency still moved by %.0f %%",
                             100 * before->settle_spread);
    }
    if (stolen >= steal_least) {
        probe_conditions_add(to, "steal", "%.1f %% of the measured PUs' time", 100 * stolen);
    }
    if (siblings->all > before->siblings.all && busy >= siblings_least) {
        probe_conditions_add(to, "smt_siblings", "busy %.0f %% of the time", 100 * busy);
    }
    /* Said even if no measurement was under way: caches are cold then, and frequencies may be
     * others. */
    add_standstill(to, "suspended", suspended_s() - before->suspended_s,
                   "; a measurement that this fell into was made again");
    add_standstill(to, "stood_still", guard->still_s,
                   ", stopped, asleep or without its virtual CPU; what was measured then was "
                   "measured again");
    if (probe_machine_was_busy(machine)) {
        probe_conditions_add(
            to, "busy",
            "other tasks ran on the measured PUs during %zu of %zu measurements; %zu were repeated",
            guard->disturbed, guard->operations, guard->repeated);
    }
}

int probe_conditions_after(const struct conditions_before *before, struct machine *machine,
                           const struct profile_class *declared, struct servet_profile *profile)
{
    struct conditions to = {profile, 0};
    struct profile_ticks measured, siblings;
    TRY(look_around(machine, declared, &measured, &siblings));
    add_after(before, machine, &measured, &siblings, &to);
    return to.rc;
}

void probe_conditions_add(struct conditions *to, const char *key, const char *format, ...)
{
    struct servet_profile *profile = to->profile;
    struct profile_condition *all =
        realloc(profile->conditions, (profile->condition_count + 1) * sizeof *all);
    struct profile_condition condition = {strdup(key), NULL};
    va_list args;
    va_start(args, format);
    const bool worded = vasprintf(&condition.value, format, args) >= 0;
    va_end(args);
    profile->conditions = all ? all : profile->conditions;
    if (to->rc < 0 || !all || !condition.key || !worded) {
        free(condition.key);
        free(worded ? condition.value : NULL);
        to->rc = -ENOMEM;
        return;
    }
    all[profile->condition_count++] = condition;
}

static void add_file(struct conditions *to, const char *key, const char *path)
{
    char line[256];
    profile_first_line(path, line, sizeof line);
    if (line[0] != '\0') {
        probe_conditions_add(to, key, "%s", line);
    }
}

/* "always [madvise] never" -> "madvise" */
static void add_chosen(struct conditions *to, const char *key, const char *path)
{
    char line[256];
    profile_first_line(path, line, sizeof line);
    const char *start = strchr(line, '['), *end = start ? strchr(start, ']') : NULL;
    if (end) {
        probe_conditions_add(to, key, "%.*s", (int)(end - start - 1), start + 1);
    }
}

/* A field of the first PU in /proc/cpuinfo, a new string; NULL: there is none. */
static char *cpuinfo(const char *key)
{
    char text[CPUINFO_BYTES];
    profile_read_small("/proc/cpuinfo", text, sizeof text);
    return profile_sysfs_value(text, key);
}

/* Governor, virtual machine, THP, SMT, microcode of this machine. Unreadable ones are left out. */
static void of_this_machine(struct conditions *to)
{
    char *flags = cpuinfo("flags"), *microcode = cpuinfo("microcode");
    add_file(to, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    add_chosen(to, "transparent_huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled");
    add_file(to, "smt", "/sys/devices/system/cpu/smt/control");
    if (flags) {
        /* x86 says so */
        probe_conditions_add(to, "virtual_machine", strstr(flags, " hypervisor") ? "yes" : "no");
    }
    if (microcode) {
        probe_conditions_add(to, "microcode", "%s", microcode);
    }
    free(flags);
    free(microcode);
}

const char *const probe_run_names[PROBE_NAMES] = {"cache", "sharing", "memory", "message",
                                                  "device"};

struct probe_run_list probe_run_list(unsigned probes, char separator)
{
    struct probe_run_list list = {""};
    size_t used = 0;
    for (size_t i = 0; i < PROBE_NAMES; i++) {
        if (probes & 1u << i && used < sizeof list.text) {
            used += (size_t)snprintf(list.text + used, sizeof list.text - used, "%c%s", separator,
                                     probe_run_names[i]);
        }
    }
    return list;
}

static void add_budget(const struct probe_results *results, struct conditions *to)
{
    char sweeps[96] = "";
    const bool out = results->left_out != 0, shortened = results->shortened != 0;
    const struct probe_cache *caches = &results->of[0].caches;
    if (results->shortened & PROBE_CACHE && caches->sweeps + caches->coarse > 0) {
        snprintf(sweeps, sizeof sweeps,
                 "; cache sizes from %u sweeps of all and %u of every other size", caches->sweeps,
                 caches->coarse);
    }
    if (out || shortened) {
        probe_conditions_add(
            to, "budget", "%g s granted%s%s%s%s%s", results->run->budget_s,
            shortened ? "; cut short:" : "", probe_run_list(results->shortened, ' ').text,
            out ? "; not measured:" : "", probe_run_list(results->left_out, ' ').text, sweeps);
    }
}

/* Probes that a control group's quota of processor time prevented. */
static void add_quota(const struct probe_results *results, struct conditions *to)
{
    const struct machine *machine = results->run->machine;
    const size_t most = probe_machine_at_once(machine);
    const size_t left_out = results->of[0].caches.unconfirmed;
    char more[112] = "";
    if (machine->guard.throttled > 0 || left_out > 0) {
        snprintf(more, sizeof more,
                 "; ran out in %zu of %zu operations; cache levels not believed: %zu",
                 machine->guard.throttled, machine->guard.operations, left_out);
    }
    if (machine->cpu_quota > 0 && machine->cpu_quota < (double)machine->pus.count) {
        probe_conditions_add(to, "cpu_quota",
                             "%.3g of %zu CPUs; at most %zu worker%s at a time%s%s%s",
                             machine->cpu_quota, machine->pus.count, most, most == 1 ? "" : "s",
                             more, results->throttled ? "; not measured:" : "",
                             probe_run_list(results->throttled, ' ').text);
    }
}

/* Size of the pages that were really granted: the system's setting does not guarantee them. */
static void add_grant(const struct machine *machine, struct conditions *to)
{
    const struct machine_grant *grant = &machine->grant;
    if (machine->huge_page_bytes == 0) {
        probe_conditions_add(to, "huge_pages", "none granted");
    } else if (grant->asked_bytes > 0) {
        probe_conditions_add(
            to, "huge_pages", "%.0f %% of the %zu MiB that were asked for in them%s",
            100.0 * (double)grant->huge_bytes / (double)grant->asked_bytes,
            grant->asked_bytes >> 20,
            machine_denies_huge_pages(machine) ? "; taken for ordinary pages" : "");
    }
}

/* Figures that were measured with smaller working sets than intended. */
static void add_memory_limits(const struct probe_results *results, struct conditions *to)
{
    char curve[64] = "", arrays[96] = "";
    if (results->of[0].caches.cut_short) {
        snprintf(curve, sizeof curve, "curve ends at %llu MiB",
                 (unsigned long long)(results->of[0].caches.largest_bytes >> 20));
    }
    if ((results->done & PROBE_MEMORY) && results->memory.cut_short) {
        snprintf(arrays, sizeof arrays, "%sbandwidth of arrays of %zu MiB, which caches may hold",
                 curve[0] ? "; " : "", results->memory.array_bytes >> 20);
    }
    if (curve[0] || arrays[0]) {
        probe_conditions_add(to, "memory_limited", "%s%s", curve, arrays);
    }
}

int probe_run_add_conditions(const struct probe_results *results, struct servet_profile *profile)
{
    const struct probe_run *run = results->run;
    struct conditions to = {profile, 0};
    const bool native = machine_is_native(run->machine);
    probe_conditions_add(&to, "machine", "%s", run->machine->name);
    if (native) {
        of_this_machine(&to);
    }
    if (results->numa.why[0]) {
        probe_conditions_add(&to, "numa_access", "%s", results->numa.why);
    }
    if (results->devices.why[0]) {
        probe_conditions_add(&to, "devices", "%s", results->devices.why);
    }
    add_budget(results, &to);
    add_quota(results, &to);
    if (run->incomplete) {
        const unsigned left = run->probes & ~results->done;
        probe_conditions_add(&to, "incomplete", "%s; not measured:%s",
                             probe_machine_strerror(run->incomplete),
                             left ? probe_run_list(left, ' ').text : " later looks");
    }
    if (run->largest_bytes > 0 && results->of[0].caches.count > 0) {
        probe_conditions_add(&to, "largest_working_set", "%zu KiB, a limit set by the user",
                             run->largest_bytes >> 10);
    }
    if (native) {
        add_grant(run->machine, &to);
    }
    add_memory_limits(results, &to);
    return to.rc;
}

/* -- what is not settled -- */

/* "sharing of L1, L2": levels that the PUs of a virtual machine share otherwise than declared. */
static void add_moved(FILE *to, const struct profile_class *node_class)
{
    const char *word = "sharing of L";
    for (size_t i = 0; i < node_class->cache_count; i++) {
        if (node_class->caches[i].quality.pus_move) {
            fprintf(to, "%s%s%u", probe_separator(to, ", "), word, node_class->caches[i].level);
            word = "L";
        }
    }
}

bool probe_conditions_others_ran(const struct servet_profile *profile)
{
    const char *load = profile_condition(profile, "load_average");
    return profile_condition(profile, "busy") || profile_condition(profile, "smt_siblings") ||
           (load && strtod(load, NULL) >= idle_load);
}

/* Reasons why figures of one kind are not settled. */
struct unsettled {
    double spread; /* the widest */
    bool cut_short, beside_others;
};

static void widen_quality(struct unsettled *of, const struct profile_quality *quality)
{
    of->spread =
        quality->origin == PROFILE_MEASURED ? fmax(of->spread, quality->spread) : of->spread;
    of->cut_short |= quality->cut_short;
    of->beside_others |= quality->beside_others;
}

static void add_unsettled(FILE *to, const char *name, const struct unsettled *of)
{
    const char *why = of->cut_short ? "cut short" : of->beside_others ? "beside others" : NULL;
    if (of->spread > PROFILE_SETTLED_SPREAD) {
        fprintf(to, "%s%s (spread %.0f %%)", probe_separator(to, ", "), name, 100 * of->spread);
    } else if (why) {
        fprintf(to, "%s%s (%s)", probe_separator(to, ", "), name, why);
    }
}

static struct unsettled messages_of(const struct servet_profile *profile)
{
    const struct profile_communication *all = &profile->classes[0].communication;
    struct unsettled of = {0};
    bool unknown = false;
    for (size_t i = 0; i < all->layer_count; i++) {
        const struct profile_layer *layer = &all->layers[i];
        widen_quality(&of, &layer->quality);
        widen_quality(&of, &layer->line_quality);
        for (size_t k = 0; k < layer->curve_count; k++) {
            of.spread = fmax(of.spread, layer->curve[k].spread);
            unknown |= layer->curve[k].spread < 0;
        }
    }
    /* without a spread is also what there was no time to see again */
    of.beside_others |= unknown && probe_conditions_others_ran(profile);
    return of;
}

static struct unsettled devices_of(const struct profile_class *node_class)
{
    struct unsettled of = {0};
    for (size_t i = 0; i < node_class->device_count; i++) {
        const struct profile_device *device = &node_class->devices[i];
        for (size_t k = 0; k < device->transfer_count; k++) {
            widen_quality(&of, &device->transfers[k].quality);
        }
    }
    return of;
}

/* By probe, as probe_run_names lists them. */
static void gather_unsettled(const struct servet_profile *profile,
                             struct unsettled of[static PROBE_NAMES])
{
    const struct profile_class *node_class = &profile->classes[0];
    struct unsettled caches = {0}, sharing = {0}, memory = {0};
    for (size_t i = 0; i < node_class->cache_count; i++) {
        widen_quality(&caches, &node_class->caches[i].quality);
        sharing.cut_short |= node_class->caches[i].sharing_quality.cut_short;
    }
    widen_quality(&memory, &node_class->memory.quality);
    for (size_t i = 0; i < node_class->memory.level_count; i++) {
        widen_quality(&memory, &node_class->memory.levels[i].quality);
    }
    of[0] = caches;
    of[1] = sharing;
    of[2] = memory;
    of[3] = messages_of(profile);
    of[4] = devices_of(node_class);
}

static bool lies_apart(const struct unsettled *of)
{
    return of->beside_others || of->spread > PROFILE_SETTLED_SPREAD;
}

unsigned probe_conditions_loosened(const struct servet_profile *old,
                                   const struct servet_profile *profile)
{
    struct unsettled before[PROBE_NAMES], now[PROBE_NAMES];
    unsigned probes = 0;
    gather_unsettled(old, before);
    gather_unsettled(profile, now);
    for (size_t i = 0; i < PROBE_NAMES && probe_conditions_others_ran(profile); i++) {
        probes |= lies_apart(&now[i]) && !lies_apart(&before[i]) ? 1u << i : 0;
    }
    return probes;
}

bool probe_conditions_unsettled(const struct servet_profile *profile, unsigned left_out, char *text,
                                size_t size)
{
    struct unsettled of[PROBE_NAMES];
    bool apart = false, cut = false;
    FILE *to = fmemopen(text, size - 1, "w");
    text[0] = text[size - 1] = '\0';
    if (!to) {
        return false;
    }
    gather_unsettled(profile, of);
    for (size_t i = 0; i < PROBE_NAMES; i++) {
        add_unsettled(to, probe_run_names[i], &of[i]);
        apart |= lies_apart(&of[i]);
        cut |= of[i].cut_short;
        if (1u << i == PROBE_SHARING) {
            add_moved(to, &profile->classes[0]);
        }
    }
    if (left_out) {
        fprintf(to, "%snot measured:%s", probe_separator(to, ", "),
                probe_run_list(left_out, ' ').text);
    }
    const bool any = ftell(to) > 0,
               alone = profile_condition(profile, "load_average") &&
                       !probe_conditions_others_ran(profile),
               wait = apart && !alone, whole = cut || left_out;
    if (any) {
        fprintf(to, "; measure again%s%s%s", wait ? " when nothing else runs" : "",
                wait && whole ? " and" : "", whole ? " without --budget" : "");
    }
    fclose(to);
    return any;
}
