/* Conditions of the measurement that may bias the figures: load, stolen time, busy siblings,
 * governors, virtual machines. They are recorded beside the figures. */
#include "probes/run/conditions.h"
#include "probes/run/budget.h"
#include "probes/run/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probes/machine.h"
#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/query.h"

enum { STAT_BYTES = 1 << 20, SETTLE_ROUNDS = 3 };
static const double settle_agreement = 0.02, settle_most_s = 0.3;
/* Below these nothing is worth a line: a tick is 10 ms, and a hypervisor's own work shows as some
 * tenths of a per cent.
 */
static const double steal_least = 0.005, siblings_least = 0.05;
/* A shorter standstill is a page fault that had to wait for memory; suspending takes as much. */
static const double still_least_s = 0.2;
/* A machine is idle where the load average before the first probe is lower. */
static const double idle_load = 0.5;

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(STAT_BYTES) : NULL;
    if (text) {
        text[fread(text, 1, STAT_BYTES - 1, file)] = '\0';
    }
    if (file) {
        fclose(file);
    }
    return text;
}

struct conditions_ticks probe_conditions_sum(const char *stat_text, const struct profile_set *pus)
{
    struct conditions_ticks sum = {0};
    for (const char *line = stat_text; line && *line;
         line = strchr(line, '\n'), line += line ? 1 : 0) {
        unsigned pu;
        unsigned long long t[8] = {0}; /* user nice system idle iowait irq softirq steal */
        if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &pu, &t[0], &t[1], &t[2],
                   &t[3], &t[4], &t[5], &t[6], &t[7]) < 5 ||
            !profile_set_has(pus, pu)) {
            continue;
        }
        for (int i = 0; i < 8; i++) {
            sum.all += t[i];
        }
        sum.idle += t[3] + t[4];
        sum.stolen += t[7];
    }
    return sum;
}

/* PUs that share a core with a measured one and are not measured themselves. */
static int siblings_of(const struct machine *machine, const struct profile_class *declared,
                       struct profile_set *out)
{
    uint32_t *ids = malloc((declared->pus.count + 1) * sizeof *ids);
    size_t count = 0;
    for (size_t g = 0; ids && g < declared->cores.group_count; g++) {
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
    int rc = ids ? profile_set_from_array(ids, count, out) : -ENOMEM;
    free(ids);
    return rc;
}

static int look(const struct machine *machine, const struct profile_class *declared,
                struct conditions_ticks *measured, struct conditions_ticks *siblings)
{
    struct profile_set others;
    int rc = siblings_of(machine, declared, &others);
    if (rc < 0) {
        return rc;
    }
    char *text = read_text("/proc/stat");
    *measured = probe_conditions_sum(text, &machine->pus);
    *siblings = probe_conditions_sum(text, &others);
    free(text);
    profile_set_free(&others);
    return 0;
}

/* Are there too few samples yet to know how long workers wait beside other processes? */
static bool pace_is_open(struct machine *machine)
{
    return probe_machine_others(machine) >= 1 && machine->guard.asked_s < MACHINE_PACE_LEAST_S;
}

/* A core that was idle starts slow: loads that hit in the L1 take as long as its frequency has
 * it. */
static int settle(struct machine *machine, struct conditions_before *out)
{
    const struct machine_traversal what = {
        .bytes = 8192, .stride_bytes = 256, .order = MACHINE_CHASE, .warm_passes = 64, .seed = 1};
    double last[SETTLE_ROUNDS] = {0}, end = probe_machine_elapsed(machine) + settle_most_s;
    for (size_t round = 0;
         (!out->settled || pace_is_open(machine)) && probe_machine_elapsed(machine) < end;
         round++) {
        int rc = probe_machine_traverse(machine, &what, machine->pus.ids, 1,
                                        &last[round % SETTLE_ROUNDS]);
        if (rc < 0) {
            return rc;
        }
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
    int rc = look(machine, declared, &out->measured, &out->siblings);
    rc = rc < 0 ? rc : settle(machine, out);
    struct machine_guard *guard = &machine->guard; /* nothing was measured yet */
    guard->operations = guard->repeated = guard->disturbed = 0;
    return rc;
}

static double share(unsigned long long part, unsigned long long all)
{
    return all > 0 ? (double)part / (double)all : 0;
}

static int add_busy(const struct machine *machine, struct servet_profile *profile)
{
    char text[160];
    const struct machine_guard *guard = &machine->guard;
    if (!probe_machine_was_busy(machine)) {
        return 0;
    }
    snprintf(
        text, sizeof text,
        "other tasks ran on the measured PUs during %zu of %zu measurements; %zu were repeated",
        guard->disturbed, guard->operations, guard->repeated);
    return probe_conditions_add(profile, "busy", text);
}

/* Seconds that the machine, or the workers of a measurement, stood still. */
static int add_standstill(struct servet_profile *profile, const char *key, double seconds,
                          const char *what)
{
    char text[160];
    snprintf(text, sizeof text, "%.1f s%s", seconds, what);
    return seconds < still_least_s ? 0 : probe_conditions_add(profile, key, text);
}

int probe_conditions_after(const struct conditions_before *before, struct machine *machine,
                           const struct profile_class *declared, struct servet_profile *profile)
{
    struct conditions_ticks measured, siblings;
    char text[96];
    int rc = look(machine, declared, &measured, &siblings);
    if (rc == 0 && before->load[0]) {
        rc = probe_conditions_add(profile, "load_average", before->load);
    }
    if (rc == 0 && before->settle_spread >= 0 && !before->settled) {
        snprintf(text, sizeof text, "not settled: L1 latency still moved by %.0f %%",
                 100 * before->settle_spread);
        rc = probe_conditions_add(profile, "warm_up", text);
    }
    double stolen =
        share(measured.stolen - before->measured.stolen, measured.all - before->measured.all);
    if (rc == 0 && stolen >= steal_least) {
        snprintf(text, sizeof text, "%.1f %% of the measured PUs' time", 100 * stolen);
        rc = probe_conditions_add(profile, "steal", text);
    }
    double busy =
        1 - share(siblings.idle - before->siblings.idle, siblings.all - before->siblings.all);
    if (rc == 0 && siblings.all > before->siblings.all && busy >= siblings_least) {
        snprintf(text, sizeof text, "busy %.0f %% of the time", 100 * busy);
        rc = probe_conditions_add(profile, "smt_siblings", text);
    }
    /* Said even if no measurement was under way: caches are cold then, and frequencies may be
     * others. */
    rc = rc < 0 ? rc
                : add_standstill(profile, "suspended", suspended_s() - before->suspended_s,
                                 "; a measurement that this fell into was made again");
    rc = rc < 0 ? rc
                : add_standstill(profile, "stood_still", machine->guard.still_s,
                                 ", stopped, asleep or without its virtual CPU; what was measured "
                                 "then was measured again");
    return rc < 0 ? rc : add_busy(machine, profile);
}

int probe_conditions_add(struct servet_profile *profile, const char *key, const char *value)
{
    struct profile_condition *all =
        realloc(profile->conditions, (profile->condition_count + 1) * sizeof *profile->conditions);
    if (!all) {
        return -ENOMEM;
    }
    profile->conditions = all;
    struct profile_condition *condition = &all[profile->condition_count];
    *condition = (struct profile_condition){strdup(key), strdup(value)};
    if (!condition->key || !condition->value) {
        free(condition->key);
        free(condition->value);
        return -ENOMEM;
    }
    profile->condition_count++;
    return 0;
}

static bool read_line(const char *path, char *line, size_t size)
{
    return profile_first_line(path, line, size) && line[0] != '\0';
}

static int add_file(struct servet_profile *profile, const char *key, const char *path)
{
    char line[256];
    return read_line(path, line, sizeof line) ? probe_conditions_add(profile, key, line) : 0;
}

/* "always [madvise] never" -> "madvise" */
static int add_chosen(struct servet_profile *profile, const char *key, const char *path)
{
    char line[256];
    if (!read_line(path, line, sizeof line)) {
        return 0;
    }
    char *start = strchr(line, '['), *end = start ? strchr(start, ']') : NULL;
    if (!end) {
        return 0;
    }
    *end = '\0';
    return probe_conditions_add(profile, key, start + 1);
}

/* A field of the first PU in /proc/cpuinfo. */
static bool cpuinfo(const char *key, char *value, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[4096];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, key, strlen(key)) == 0) {
            colon[strcspn(colon, "\n")] = '\0';
            snprintf(value, size, "%s", colon + 1 + strspn(colon + 1, " "));
            found = true;
        }
    }
    if (file) {
        fclose(file);
    }
    return found;
}

bool probe_conditions_virtual_machine(void)
{
    char flags[4096];
    return cpuinfo("flags", flags, sizeof flags) && strstr(flags, " hypervisor");
}

/* Governor, virtual machine, THP, SMT, microcode of this machine. Unreadable ones are left out. */
static int of_this_machine(struct servet_profile *profile)
{
    char text[4096];
    int rc = add_file(profile, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    rc = rc < 0 ? rc
                : add_chosen(profile, "transparent_huge_pages",
                             "/sys/kernel/mm/transparent_hugepage/enabled");
    rc = rc < 0 ? rc : add_file(profile, "smt", "/sys/devices/system/cpu/smt/control");
    if (cpuinfo("flags", text, sizeof text)) {
        rc = rc < 0 ? rc
                    : probe_conditions_add(profile, "virtual_machine",
                                           probe_conditions_virtual_machine() ? "yes" : "no");
    }
    if (cpuinfo("microcode", text, sizeof text)) {
        rc = rc < 0 ? rc : probe_conditions_add(profile, "microcode", text);
    }
    return rc;
}

const char *const probe_run_names[PROBE_NAMES] = {"cache", "sharing", "memory", "message",
                                                  "device"};

/* " cache sharing …", with room for all probes. */
struct names {
    char text[96];
};

static struct names names_of(unsigned probes)
{
    struct names names = {""};
    size_t used = 0;
    for (size_t i = 0; i < PROBE_NAMES; i++) {
        if (probes & 1u << i && used < sizeof names.text) {
            used += (size_t)snprintf(names.text + used, sizeof names.text - used, " %s",
                                     probe_run_names[i]);
        }
    }
    return names;
}

static int add_incomplete(const struct probe_run *run, const struct probe_results *results,
                          struct servet_profile *profile)
{
    char text[160];
    if (!run->incomplete) {
        return 0;
    }
    snprintf(text, sizeof text, "%s; not measured:%s", probe_machine_strerror(run->incomplete),
             names_of(run->probes & ~results->done).text);
    return probe_conditions_add(profile, "incomplete", text);
}

static int add_budget(const struct probe_run *run, const struct probe_results *results,
                      struct servet_profile *profile)
{
    char text[160];
    bool out = results->left_out != 0, shortened = results->shortened != 0;
    const struct probe_cache *caches = &results->of[0].caches;
    size_t used = (size_t)snprintf(text, sizeof text, "%g s granted%s%s%s%s%s%s", run->budget_s,
                                   shortened ? "; " : "", shortened ? "cut short:" : "",
                                   names_of(results->shortened).text, out ? "; " : "",
                                   out ? "not measured:" : "", names_of(results->left_out).text);
    if (results->shortened & PROBE_CACHE && used < sizeof text &&
        caches->sweeps + caches->coarse > 0) {
        snprintf(text + used, sizeof text - used,
                 "; cache sizes from %u sweeps of all and %u of every other size", caches->sweeps,
                 caches->coarse);
    }
    return out || shortened ? probe_conditions_add(profile, "budget", text) : 0;
}

/* Probes that a control group's quota of processor time prevented. */
static int add_quota(const struct probe_run *run, const struct probe_results *results,
                     struct servet_profile *profile)
{
    char text[160];
    const struct machine *machine = run->machine;
    size_t most = probe_machine_at_once(machine);
    if (machine->cpu_quota <= 0 || machine->cpu_quota >= (double)machine->pus.count) {
        return 0;
    }
    snprintf(text, sizeof text, "%.3g of %zu CPUs; at most %zu worker%s at a time%s%s",
             machine->cpu_quota, machine->pus.count, most, most == 1 ? "" : "s",
             results->throttled ? "; not measured:" : "", names_of(results->throttled).text);
    return probe_conditions_add(profile, "cpu_quota", text);
}

/* Size of the pages that were really granted: the system's setting does not guarantee them. */
static int add_grant(const struct machine *machine, struct servet_profile *profile)
{
    char text[96];
    const struct machine_grant *grant = &machine->grant;
    if (machine->huge_page_bytes == 0) {
        return probe_conditions_add(profile, "huge_pages", "none granted");
    }
    if (grant->asked_bytes == 0) {
        return 0;
    }
    snprintf(text, sizeof text, "%.0f %% of the %zu MiB that were asked for in them%s",
             100.0 * (double)grant->huge_bytes / (double)grant->asked_bytes,
             grant->asked_bytes >> 20,
             machine_denies_huge_pages(machine) ? "; taken for ordinary pages" : "");
    return probe_conditions_add(profile, "huge_pages", text);
}

/* Figures that were measured with smaller working sets than intended. */
static int add_memory_limits(const struct probe_results *results, struct servet_profile *profile)
{
    char text[128] = "";
    size_t used = 0;
    if (results->of[0].caches.cut_short) {
        used = (size_t)snprintf(text, sizeof text, "curve ends at %llu MiB",
                                (unsigned long long)(results->of[0].caches.largest_bytes >> 20));
    }
    if ((results->done & PROBE_MEMORY) && results->memory.cut_short) {
        snprintf(text + used, sizeof text - used,
                 "%sbandwidth of arrays of %zu MiB, which caches may hold", used ? "; " : "",
                 results->memory.array_bytes >> 20);
    }
    return text[0] ? probe_conditions_add(profile, "memory_limited", text) : 0;
}

int probe_run_add_conditions(const struct probe_run *run, const struct probe_results *results,
                             struct servet_profile *profile)
{
    bool native = strcmp(run->machine->name, "native") == 0;
    int rc = probe_conditions_add(profile, "machine", run->machine->name);
    rc = rc < 0 || !native ? rc : of_this_machine(profile);
    if (rc == 0 && results->numa.why[0]) {
        rc = probe_conditions_add(profile, "numa_access", results->numa.why);
    }
    if (rc == 0 && results->devices.why[0]) {
        rc = probe_conditions_add(profile, "devices", results->devices.why);
    }
    rc = rc < 0 ? rc : add_budget(run, results, profile);
    rc = rc < 0 ? rc : add_quota(run, results, profile);
    rc = rc < 0 ? rc : add_incomplete(run, results, profile);
    if (rc == 0 && run->largest_bytes > 0 && results->of[0].caches.count > 0) {
        char text[64];
        snprintf(text, sizeof text, "%zu KiB, a limit set by the user", run->largest_bytes >> 10);
        rc = probe_conditions_add(profile, "largest_working_set", text);
    }
    rc = rc < 0 || !native ? rc : add_grant(run->machine, profile);
    return rc < 0 ? rc : add_memory_limits(results, profile);
}

/* -- what is not settled -- */

/* "sharing of L1, L2": levels that the PUs of a virtual machine share otherwise than declared. */
static void add_moved(const struct profile_class *node_class, char *text, size_t size)
{
    const char *word = text[0] ? ", sharing of L" : "sharing of L";
    for (size_t i = 0; i < node_class->cache_count; i++) {
        size_t length = strlen(text);
        if (node_class->caches[i].quality.pus_move) {
            snprintf(text + length, size - length, "%s%u", word, node_class->caches[i].level);
            word = ", L";
        }
    }
}

bool probe_conditions_others_ran(const struct servet_profile *profile)
{
    const char *load = profile_condition(profile, "load_average");
    return profile_condition(profile, "busy") || profile_condition(profile, "smt_siblings") ||
           (load && strtod(load, NULL) >= idle_load);
}

/* "; measure again when nothing else runs and without --budget". `apart`: rounds are, beside other
 * programs or perhaps so; `cut`: the budget left something out. */
static void add_advice(bool apart, bool cut, char *text, size_t size)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "; measure again%s%s%s",
             apart ? " when nothing else runs" : "", apart && cut ? " and" : "",
             cut ? " without --budget" : "");
}

/* Reasons why figures of one kind are not settled. */
struct unsettled {
    double spread; /* the widest */
    bool cut_short, beside_others;
};

static void widen(struct unsettled *of, const struct profile_quality *quality)
{
    of->spread =
        quality->origin == PROFILE_MEASURED ? fmax(of->spread, quality->spread) : of->spread;
    of->cut_short |= quality->cut_short;
    of->beside_others |= quality->beside_others;
}

static void add_unsettled(char *text, size_t size, const char *name, const struct unsettled *of)
{
    const char *why = of->cut_short ? "cut short" : of->beside_others ? "beside others" : NULL;
    size_t length = strlen(text);
    if (of->spread > PROFILE_SETTLED_SPREAD) {
        snprintf(text + length, size - length, "%s%s (spread %.0f %%)", length ? ", " : "", name,
                 100 * of->spread);
    } else if (why) {
        snprintf(text + length, size - length, "%s%s (%s)", length ? ", " : "", name, why);
    }
}

static struct unsettled messages_of(const struct servet_profile *profile)
{
    const struct profile_communication *all = &profile->classes[0].communication;
    struct unsettled of = {0};
    bool unknown = false;
    for (size_t i = 0; i < all->layer_count; i++) {
        const struct profile_layer *layer = &all->layers[i];
        widen(&of, &layer->quality);
        widen(&of, &layer->line_quality);
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
            widen(&of, &device->transfers[k].quality);
        }
    }
    return of;
}

bool probe_conditions_unsettled(const struct servet_profile *profile, unsigned left_out, char *text,
                                size_t size)
{
    const struct profile_class *node_class = &profile->classes[0];
    struct unsettled caches = {0}, sharing = {0}, memory = {0}, messages = messages_of(profile),
                     devices = devices_of(node_class);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        widen(&caches, &node_class->caches[i].quality);
        sharing.cut_short |= node_class->caches[i].sharing_quality.cut_short;
    }
    widen(&memory, &node_class->memory.quality);
    for (size_t i = 0; i < node_class->memory.level_count; i++) {
        widen(&memory, &node_class->memory.levels[i].quality);
    }
    const bool apart = memory.beside_others || messages.beside_others ||
                       fmax(fmax(caches.spread, devices.spread),
                            fmax(memory.spread, messages.spread)) > PROFILE_SETTLED_SPREAD;
    const bool cut =
        caches.cut_short || sharing.cut_short || memory.cut_short || messages.cut_short;
    text[0] = '\0';
    add_unsettled(text, size, "cache", &caches);
    add_unsettled(text, size, "sharing", &sharing);
    add_moved(node_class, text, size);
    add_unsettled(text, size, "memory", &memory);
    add_unsettled(text, size, "message", &messages);
    add_unsettled(text, size, "device", &devices);
    if (left_out) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%snot measured:%s", used ? ", " : "",
                 names_of(left_out).text);
    }
    if (text[0] == '\0') {
        return false;
    }
    const bool alone =
        profile_condition(profile, "load_average") && !probe_conditions_others_ran(profile);
    add_advice(apart && !alone, cut || left_out, text, size);
    return true;
}
